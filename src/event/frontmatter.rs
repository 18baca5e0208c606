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
