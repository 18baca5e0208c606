//! What is inserted or computed, and certainly does no more.

/// Returns whether an expansion only inserts a value: `${NAME}`, `${#NAME}`, a default or a part cut off, all of plain letters.
pub(super) fn is_plain_expansion(text: &str) -> bool {
    let Some(body) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else { return false };
    let body = body.strip_prefix('#').filter(|rest| !rest.is_empty()).unwrap_or(body);
    let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(body.len());
    let (name, mut rest) = body.split_at(end);
    if name.is_empty() {
        let is_part_of_all = body.strip_prefix(['@', '*']).is_some_and(is_part);
        return matches!(body, "@" | "*" | "#" | "?" | "-" | "$" | "!") || is_part_of_all;
    }
    // An element by its number; by anything else it would be computed.
    if let Some((index, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let is_plain = matches!(index, "@" | "*") || (!index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()));
        rest = if is_plain { after } else { rest };
    }
    let rest = match rest.chars().next() {
        None => return true,
        Some(':') => match rest[1..].chars().next() {
            Some('-' | '+' | '?') => &rest[2..],
            _ => return is_part(rest),
        },
        Some('-' | '+' | '?' | '#' | '%' | '/' | '^' | ',') => &rest[1..],
        Some(_) => return false,
    };
    rest.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/*:,%#^ ".contains(c))
}

/// Returns whether an expansion takes a part of a value, from one number on and as long as another: `:0:7`, `: -3`.
fn is_part(text: &str) -> bool {
    let Some((from, length)) = text.strip_prefix(':').map(|text| text.split_once(':').unwrap_or((text, "0"))) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number(from.strip_prefix(" -").unwrap_or(from)) && is_number(length.strip_prefix('-').unwrap_or(length))
}

/// Returns the variables that `((…))` or the head of a `for` computes from, where it certainly does no more.
pub(super) fn variables_of_computation(text: &str) -> Option<Vec<String>> {
    variables(text.strip_prefix("((")?.strip_suffix("))")?)
}

/// Returns the variables that `$((…))` computes from, where it certainly does no more.
pub(super) fn variables_of_arithmetic(text: &str) -> Option<Vec<String>> {
    variables(text.strip_prefix("$((")?.strip_suffix("))")?)
}

/// Returns the variable that an operand of a test is, or none for a number; `None` where it is neither.
pub(super) fn variables_of_operand(text: &str) -> Option<Vec<String>> {
    let number = text.strip_prefix('-').unwrap_or(text);
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        Some(Vec::new())
    } else {
        variables(text).filter(|variables| variables.len() == 1)
    }
}

/// Reads an expression of numbers and variables alone. Names that follow each other without an operator would be words of a command.
pub(in crate::shell) fn variables(body: &str) -> Option<Vec<String>> {
    let mut variables = Vec::new();
    let (mut depth, mut after_operand) = (0_usize, false);
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("$#").or_else(|| rest.strip_prefix("$?")) {
            if std::mem::replace(&mut after_operand, true) {
                return None;
            }
            rest = behind;
            continue;
        }
        let is_braced = rest.starts_with("${");
        let named = rest.strip_prefix("${").or_else(|| rest.strip_prefix('$')).unwrap_or(rest);
        let name = &named[..named.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(named.len())];
        if !name.is_empty() {
            let is_number = name.starts_with(|c: char| c.is_ascii_digit());
            // `$1` is whatever the script was given.
            if std::mem::replace(&mut after_operand, true) || (is_number && c == '$') {
                return None;
            }
            if !is_number {
                variables.push(name.to_owned());
            }
            let behind = &named[name.len()..];
            rest = if is_braced { behind.strip_prefix('}')? } else { behind };
            continue;
        }
        match c {
            '(' => {
                depth += 1;
                after_operand = false;
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                after_operand = true;
            }
            ' ' | '\t' | '\n' => {}
            _ if rest.starts_with("++") || rest.starts_with("--") => {}
            _ if "+-*/%<>=!&|^~?:,;".contains(c) => after_operand = false,
            _ => return None,
        }
        rest = &rest[if rest.starts_with("++") || rest.starts_with("--") { 2 } else { 1 }..];
    }
    (depth == 0).then_some(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_computes_from_numbers_and_variables_alone_is_known() {
        for (text, names) in [
            ("i+1", "i"),
            ("1 + 2", ""),
            ("i++", "i"),
            ("++i", "i"),
            ("$i * (${n} - 1)", "i n"),
            ("x = y > 3 ? 0x1f : -z", "x y z"),
            ("i=0; i<10; i+=2", "i i i"),
            ("$# - 1", ""),
            ("", ""),
        ] {
            assert_eq!(variables(text).map(|names| names.join(" ")).as_deref(), Some(names), "{text}");
        }
        for text in [
            "a[0]",
            "a[$(x)]",
            "rm x",
            "$(x)",
            "`x`",
            "i)+(1",
            "rm) | (ls",
            "16#ff",
            "$1",
            "${x:-1}",
            "i + \"1\"",
            "a.b",
            "(1",
            "1 2",
            "$$",
        ] {
            assert_eq!(variables(text), None, "{text}");
        }
    }
}
