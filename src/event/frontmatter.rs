//! The frontmatter of a Markdown file: `key: value` lines between two lines of `---`.
//!
//! It comes from a model, an editor or a project. It is read by strict rules, a line for each key,
//! and not as YAML: there are no references, types and tags to be bounded.

/// The line before it and the line after it.
pub const FRONTMATTER_FENCE: &str = "---";

/// Reads the values of `keys`, in their order, and returns them with the text that follows the
/// frontmatter. The error names the line and what is wrong with it.
pub fn frontmatter<'a, const N: usize>(
    text: &'a str,
    keys: [&str; N],
) -> Result<([Option<String>; N], &'a str), String> {
    let (head, body) = split(text)?;
    let mut values = [const { None }; N];
    for (line, number) in head.lines().zip(2..) {
        if line.trim().is_empty() {
            continue;
        }
        let (key, value) = line
            .split_once(':')
            .ok_or_else(|| format!("line {number} is no `key: value`"))?;
        let at = keys
            .iter()
            .position(|known| *known == key.trim())
            .ok_or_else(|| format!("line {number}: the keys are {}", keys.join(", ")))?;
        if values[at].is_some() {
            return Err(format!("line {number}: this key stands there twice"));
        }
        values[at] =
            Some(unquoted(value.trim()).map_err(|problem| format!("line {number}: {problem}"))?);
    }
    Ok((values, body))
}

/// Reads the same from a file that was written for other programs too: keys besides `keys` are
/// skipped with all that belongs to them. A value may be in single quotes, and may continue on
/// indented lines, which become one line with it.
pub fn frontmatter_among_others<'a, const N: usize>(
    text: &'a str,
    keys: [&str; N],
) -> Result<([Option<String>; N], &'a str), String> {
    let (head, body) = split(text)?;
    let mut values = [const { None::<String> }; N];
    let mut last = None;
    for line in head.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with([' ', '\t']) {
            if let Some(value) = last.and_then(|at: usize| values[at].as_mut()) {
                value.push(' ');
                value.push_str(line.trim());
            }
            continue;
        }
        last = line
            .split_once(':')
            .and_then(|(key, value)| {
                let at = keys.iter().position(|known| *known == key.trim())?;
                Some((at, value.trim()))
            })
            .map(|(at, value)| {
                // Of two the first one counts.
                values[at].get_or_insert_with(|| value.to_owned());
                at
            });
    }
    for (key, value) in keys.iter().zip(&mut values) {
        if let Some(written) = value {
            *written = one_line(written).map_err(|problem| format!("its {key}: {problem}"))?;
        }
    }
    Ok((values, body))
}

/// Returns a value without the mark of a block, or without its quotes.
fn one_line(value: &str) -> Result<String, String> {
    let (first, rest) = value.split_once(' ').unwrap_or((value, ""));
    if matches!(first, "|" | ">" | "|-" | ">-" | "|+" | ">+") {
        return Ok(rest.to_owned());
    }
    let quoted = value
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    quoted.map_or_else(|| unquoted(value), |inner| Ok(inner.replace("''", "'")))
}

/// Returns the frontmatter and what follows it.
fn split(text: &str) -> Result<(&str, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text
        .split_once('\n')
        .filter(|(first, _)| first.trim_end() == FRONTMATTER_FENCE)
        .ok_or("it does not begin with frontmatter between lines of `---`")?
        .1;
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == FRONTMATTER_FENCE {
            return Ok((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    Err("its frontmatter has no end, a line of `---`".to_owned())
}

/// Returns a value without its quotes. `*` and `[` stay as they are: a list of tools begins with
/// either.
fn unquoted(value: &str) -> Result<String, String> {
    match value.chars().next() {
        Some('"') => serde_json::from_str(value).map_err(|_| "the quotes do not fit".to_owned()),
        // These begin something else in YAML.
        Some('\'' | '&' | '!' | '|' | '>' | '{' | '%' | '@' | '`') => {
            Err("put this value in double quotes".to_owned())
        }
        _ => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_the_order_of_the_keys_and_the_rest_is_the_body() {
        let text = "\u{feff}---\r\nb: [x, *]\r\n\r\na: \"one: \\\"two\\\"\"\r\n---\r\nBody\n---\n";
        let (values, body) = frontmatter(text, ["a", "b", "c"]).expect("reads");
        let expected = [Some("one: \"two\""), Some("[x, *]"), None];
        assert_eq!(values.each_ref().map(Option::as_deref), expected);
        assert_eq!(body, "Body\n---\n");
    }

    #[test]
    fn among_the_keys_of_other_programs_values_are_found_whole() {
        let text = "---\nname: pdf\nmetadata:\n  name: not this\n  - item\nlicense: MIT\ndescription: >-\n  Fills forms:\n  all kinds.\nallowed-tools: [Read, Bash(git:*)]\nname: second\n---\nBody";
        let (values, body) =
            frontmatter_among_others(text, ["description", "name", "turns"]).expect("reads");
        let expected = [Some("Fills forms: all kinds."), Some("pdf"), None];
        assert_eq!(values.each_ref().map(Option::as_deref), expected);
        assert_eq!(body, "Body");
        for (written, expected) in [
            ("'it''s: one'", "it's: one"),
            ("\"a \\\"b\\\"\"", "a \"b\""),
            ("plain\n  and on", "plain and on"),
            ("|\n  a\n  b", "a b"),
        ] {
            let text = format!("---\na: {written}\n---\n");
            let (values, _) = frontmatter_among_others(&text, ["a"]).expect(written);
            assert_eq!(values[0].as_deref(), Some(expected), "{written}");
        }
        let problem = frontmatter_among_others("---\na: &x 1\n---\n", ["a"]).expect_err("YAML");
        assert!(problem.starts_with("its a: put this value"), "{problem}");
        assert!(frontmatter_among_others("a: 1\n", ["a"]).is_err());
    }

    #[test]
    fn what_is_no_frontmatter_is_refused_with_the_line_and_the_reason() {
        for (text, reason) in [
            ("", "does not begin with frontmatter"),
            ("a: 1\n---\n", "does not begin with frontmatter"),
            ("---\na: 1\n", "has no end"),
            ("---\n- a\n---\n", "line 2 is no `key: value`"),
            ("---\na: 1\nd: 2\n---\n", "line 3: the keys are a, b"),
            (
                "---\na: 1\na: 2\n---\n",
                "line 3: this key stands there twice",
            ),
            (
                "---\na: &x 1\n---\n",
                "line 2: put this value in double quotes",
            ),
            ("---\na: \"x\n---\n", "line 2: the quotes do not fit"),
        ] {
            let problem = frontmatter(text, ["a", "b"]).expect_err(reason);
            assert!(problem.contains(reason), "{text}: {problem}");
        }
    }
}
