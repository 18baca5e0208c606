//! What is inserted or computed, and certainly does no more.

/// Returns whether an expansion only inserts a value: `${NAME}`, `${#NAME}`, a default or a part cut off, all of plain letters.
pub(super) fn is_plain_expansion(text: &str) -> bool {
    let Some(body) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else { return false };
    let body = body.strip_prefix('#').filter(|rest| !rest.is_empty()).unwrap_or(body);
    let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(body.len());
    let (name, mut rest) = body.split_at(end);
    if name.is_empty() {
        return matches!(body, "@" | "*" | "#" | "?" | "-" | "$" | "!");
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
            _ => return false,
        },
        Some('-' | '+' | '?' | '#' | '%' | '/' | '^' | ',') => &rest[1..],
        Some(_) => return false,
    };
    rest.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/*:,%#^ ".contains(c))
}

/// Returns whether `((…))` computes from numbers alone.
pub(super) fn is_plain_computation(text: &str) -> bool {
    let body = text.strip_prefix("((").and_then(|rest| rest.strip_suffix("))"));
    body.is_some_and(|body| body.chars().all(|c| c.is_ascii_digit() || "+-*/%<>=!&| ()".contains(c)))
}

/// Returns whether something is computed from numbers alone.
pub(super) fn is_plain_arithmetic(text: &str) -> bool {
    let Some(body) = text.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")) else { return false };
    body.chars().all(|c| c.is_ascii_digit() || "+-*/% ()".contains(c))
}
