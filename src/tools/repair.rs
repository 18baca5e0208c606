//! Repairs of malformed calls, where only one meaning is possible. Each repair is noted in the
//! result: the user sees it, and the model may learn from it.

use serde_json::Map;
use serde_json::Value;

use super::duplicate_keys;
use super::tool::Tool;
use podbay_event::is_same_name;
use podbay_llm::text;

/// Names of objects that some models wrap the arguments in.
const WRAPPERS: [&str; 6] = [
    "arguments",
    "parameters",
    "params",
    "args",
    "input",
    "kwargs",
];

/// Parses the arguments of a tool; the error tells the model what is wrong.
pub(super) fn read(
    tool: &Tool,
    given: &str,
    notes: &mut Vec<String>,
) -> Result<Map<String, Value>, String> {
    fields(given, |name| tool.takes(name), notes)
}

/// Parses arguments; `takes` says whether the tool has an argument of a name.
pub(super) fn fields(
    given: &str,
    takes: impl Fn(&str) -> bool,
    notes: &mut Vec<String>,
) -> Result<Map<String, Value>, String> {
    let given = if given.trim().is_empty() { "{}" } else { given };
    let value = match duplicate_keys::read(given) {
        Ok((_, Some(key))) => {
            return Err(format!(
                "say `{key}` twice, with different values. Send it once"
            ));
        }
        Ok((value, None)) => value,
        Err(_) if given.len() >= text::TRUNCATED_ARGUMENTS => {
            return Err(
                "are longer than the 1 MiB that one call may have, and were cut there: do it in parts, as write_file does with append"
                    .to_owned(),
            );
        }
        Err(error) => {
            let Some(value) =
                text::repaired_object(given).and_then(|meant| serde_json::from_str(&meant).ok())
            else {
                let problem = error.to_string();
                let remedy = if problem.contains("hex escape") {
                    "An escape such as `\\ud83d` is half a sign and needs its other half behind it: write the sign itself"
                } else {
                    "Send one JSON object"
                };
                return Err(format!("are not valid JSON: {problem}. {remedy}"));
            };
            notes.push("the arguments were no valid JSON and were mended".to_owned());
            value
        }
    };
    let value = match value {
        // The string may be in another string, or escaped once too often.
        Value::String(_) => match text::unescaped_object(given)
            .and_then(|inner| serde_json::from_str(&inner).ok())
        {
            Some(inner) => {
                notes.push(
                    "the arguments were written into a string; send them as an object".to_owned(),
                );
                inner
            }
            None => value,
        },
        other => other,
    };
    let Value::Object(mut fields) = value else {
        return Err("must be a JSON object".to_owned());
    };
    if fields.len() == 1
        && let Some((name, Value::Object(inner))) = fields.iter().next()
        && WRAPPERS
            .iter()
            .any(|wrapper| is_same_name(wrapper, name) && !takes(wrapper))
    {
        notes.push(format!("the arguments were taken out of {name}"));
        fields = inner.clone();
    }
    Ok(fields)
}

/// Adds what the tool's alias implies: `delete_lines` implies the operation `delete`.
pub(super) fn imply(name: &str, tool: &Tool, fields: &mut Map<String, Value>) {
    if tool.name == "edit_lines"
        && let Some(operation) = name
            .strip_suffix("_lines")
            .filter(|operation| *operation != "edit")
    {
        fields
            .entry("operation")
            .or_insert_with(|| operation.into());
    }
}

/// Removes one level of backslashes from a text that was escaped twice, so that it is one long
/// line.
pub(super) fn unescape(tool: &str, fields: &mut Map<String, Value>, notes: &mut Vec<String>) {
    let name = match tool {
        "write_file" => "content",
        "bash" => "command",
        _ => return,
    };
    let Some(Value::String(written)) = fields.get_mut(name) else {
        return;
    };
    // A command may well contain `\n`; one that starts a here-document on its only line cannot
    // work.
    let is_meant = if name == "command" {
        begins_document(written)
    } else {
        is_one_escaped_line(written)
    };
    if written.contains('\n') || !is_meant {
        return;
    }
    if let Some(text) = once(written) {
        *written = text;
        notes.push(format!(
            "{name} had its line ends written as \\n; they were made real ones"
        ));
    }
}

/// Returns whether a here-document's delimiter is followed by an escaped newline: `cat <<EOF\n`.
fn begins_document(command: &str) -> bool {
    command.match_indices("<<").any(|(at, _)| {
        let is_more = command[..at].ends_with('<') || command[at + 2..].starts_with('<');
        let word = command[at + 2..]
            .trim_start_matches('-')
            .trim_start()
            .trim_start_matches(['\'', '"', '\\']);
        let end = word
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(word.len());
        let begins = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        !is_more
            && begins
            && word[end..]
                .trim_start_matches(['\'', '"'])
                .trim_start_matches("\\\"")
                .starts_with("\\n")
    })
}

/// Returns whether a text is one line with several escaped newlines outside of quotes and looks
/// like lines of a file: indented or empty ones, or escaped quotes. A format such as `%h %s\n%b\n`
/// has neither.
fn is_one_escaped_line(text: &str) -> bool {
    n_outside(text) > 1
        && ["\\n ", "\\n\\n", "\\n\\t", "\\\""]
            .iter()
            .any(|sign| text.contains(sign))
}

/// Counts the `\n` outside of quotes; `\"` is no quote, since it would have been escaped twice too.
fn n_outside(text: &str) -> usize {
    let (mut n, mut quote, mut last) = (0, None, ' ');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let escaped = chars.next();
                n += usize::from(escaped == Some('n') && quote.is_none());
            }
            '"' | '\'' | '`' if quote == Some(c) => quote = None,
            // An apostrophe within a word is no quote.
            '"' | '`' if quote.is_none() => quote = Some(c),
            '\'' if quote.is_none() && !last.is_alphanumeric() => quote = Some(c),
            _ => {}
        }
        last = c;
    }
    n
}

/// Removes one level of backslashes; `None` for an escape that JSON does not have.
fn once(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            same @ ('"' | '\'' | '\\' | '/') => same,
            _ => return None,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tool: &str, name: &str, written: &str, expected: &str) {
        let mut fields = Map::from_iter([(name.to_owned(), Value::from(written))]);
        let mut notes = Vec::new();
        unescape(tool, &mut fields, &mut notes);
        assert_eq!(
            (fields[name].as_str(), notes.len()),
            (Some(expected), usize::from(written != expected)),
            "{written}"
        );
    }

    #[test]
    fn a_text_that_was_escaped_twice_is_unescaped_once() {
        check(
            "write_file",
            "content",
            r#"def f():\n    return \"a\"\n"#,
            "def f():\n    return \"a\"\n",
        );
        check(
            "write_file",
            "content",
            r"# Title\n\ntext\n",
            "# Title\n\ntext\n",
        );
        check(
            "bash",
            "command",
            r"cat > a <<-'EOF'\none\nEOF",
            "cat > a <<-'EOF'\none\nEOF",
        );
        check(
            "bash",
            "command",
            r"cat > a <<EOF\none\nEOF",
            "cat > a <<EOF\none\nEOF",
        );
    }

    #[test]
    fn an_intended_backslash_stays() {
        for text in [
            r#"print("a\nb\n")"#,
            r"printf 'a\nb\n'",
            r"C:\new",
            r"one \n in a line",
            "real\nlines\\n",
            r"a\nb \d\n",
        ] {
            check("write_file", "content", text, text);
        }
        check("bash", "command", r"printf 'a\nb\n'", r"printf 'a\nb\n'");
        check("bash", "command", r"printf a\n", r"printf a\n");
        for text in [
            r"greeting=Hello\nWorld\nBye",
            r"format=%t %m\n",
            r"%h %s\n%b\n",
        ] {
            check("write_file", "content", text, text);
        }
        for text in [
            r"tr , \n <<< a,b,c",
            r"echo $((1<<4)) | sed s/6/\nx/",
            r"awk '{print}' <<<x; printf %s\n y",
            r"echo $((x<<y)) \n",
        ] {
            check("bash", "command", text, text);
        }
        check("grep", "pattern", r"a\nb\n", r"a\nb\n");
    }
}
