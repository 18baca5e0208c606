//! The `.env` of compose, read as compose does: comments, quotes, values of several lines.

/// Returns every variable that a file sets, in its order. What is no such line is passed over.
pub(super) fn read(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let statement = line.trim_start();
        let Some((key, value)) = statement
            .split_once(['=', ':'])
            .filter(|_| !statement.starts_with('#'))
        else {
            rest = after;
            continue;
        };
        let key = key.trim().trim_start_matches("export ").trim();
        // Up to here a value of several lines looks like any other.
        let begin = line.len() - value.len();
        let (value, end) = value_of(&rest[begin..]);
        found.push((key.to_owned(), value));
        let behind = &rest[begin + end..];
        rest = behind.split_once('\n').map_or("", |(_, next)| next);
    }
    found
}

/// Returns the value at the beginning of a text, and where it ends.
fn value_of(text: &str) -> (String, usize) {
    let blank = text.len() - text.trim_start_matches([' ', '\t']).len();
    let value = &text[blank..];
    if let Some(quote) = value.chars().next().filter(|c| ['"', '\''].contains(c)) {
        let mut is_escaped = false;
        for (at, c) in value.char_indices().skip(1) {
            if c == quote && !is_escaped {
                return (value[1..at].to_owned(), blank + at + 1);
            }
            is_escaped = c == '\\' && quote == '"' && !is_escaped;
        }
        // Never closed: it is a value like any other, quote and all.
    }
    let line = value.split('\n').next().unwrap_or_default();
    // A comment stands apart; a `#` within a word belongs to it.
    let comment = line.char_indices().find(|&(at, c)| {
        c == '#'
            && line[..at]
                .chars()
                .next_back()
                .is_none_or(char::is_whitespace)
    });
    let plain = comment.map_or(line, |(at, _)| &line[..at]);
    (plain.trim().to_owned(), blank + line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(read(text), expected, "{text:?}");
    }

    #[test]
    fn values_are_read_as_compose_does() {
        check("", &[]);
        check("A=1", &[("A", "1")]);
        check("A=1\nB=2\n", &[("A", "1"), ("B", "2")]);
        check(
            "\u{feff}A = 1 \r\n\r\n  export B: 2",
            &[("A", "1"), ("B", "2")],
        );
        check("A=\nB=2\n\n", &[("A", ""), ("B", "2")]);
        check("nothing\nA=1\n", &[("A", "1")]);
    }

    #[test]
    fn comments_are_no_part_of_a_value() {
        check(
            "# A=1\nA=2 # two\nB=a#b\nC=#c\n",
            &[("A", "2"), ("B", "a#b"), ("C", "")],
        );
        check("A=\"1\" # one\nB='2'# two\n", &[("A", "1"), ("B", "2")]);
        check("A='# none'\n", &[("A", "# none")]);
    }

    #[test]
    fn what_stands_within_quotes_sets_nothing() {
        check("A='x\nB=1\n'\nC=2\n", &[("A", "x\nB=1\n"), ("C", "2")]);
        check("A=\"x\\\"\nB=1\"\nC=2", &[("A", "x\\\"\nB=1"), ("C", "2")]);
        check("A='it\nB=1\n", &[("A", "'it"), ("B", "1")]);
        check("A=\"é\nB=1", &[("A", "\"é"), ("B", "1")]);
    }
}
