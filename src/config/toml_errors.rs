//! Rewords errors of the TOML parser, which name Rust types.

/// Rewords an error about a value's type; others stay as they are. `key` is the value's place.
pub(super) fn plain(message: &str, key: &str) -> String {
    let message = message.replace('\n', ", ");
    if let Some((word, choice)) = message
        .strip_prefix("unknown variant ")
        .and_then(|rest| rest.split_once(", expected "))
    {
        return format!("there is no {word}: write {choice}");
    }
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("{field} is missing");
    }
    let rest = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "));
    // The found value may contain anything; the expected type is our own text and does not.
    match rest.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, wanted)) => format!(
            "{} does not fit: write {}",
            self::found(found),
            self::wanted(wanted, key)
        ),
        None => message,
    }
}

fn found(text: &str) -> String {
    let kinds = ["integer ", "floating point ", "boolean ", "string "];
    match text {
        "sequence" => "a list".to_owned(),
        "map" => "a section".to_owned(),
        _ => kinds
            .iter()
            .find_map(|kind| text.strip_prefix(kind))
            .unwrap_or(text)
            .to_owned(),
    }
}

fn wanted(text: &str, key: &str) -> String {
    let up_to = |most: u64| format!("a whole number from 0 to {most}");
    match text {
        "u8" => up_to(u8::MAX.into()),
        "u16" => up_to(u16::MAX.into()),
        "u32" => up_to(u32::MAX.into()),
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "i64" => "a whole number".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a string" => "a text, in double quotes".to_owned(),
        "a sequence" => "a list, such as [\"one\", \"two\"]".to_owned(),
        text if text == "a map" || text.starts_with("struct ") => {
            format!("a section, [{key}] and below it its keys")
        }
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, words: &str) {
        assert_eq!(plain(message, "a.b"), words);
    }

    #[test]
    fn no_rust_type_is_named_in_an_error() {
        check(
            "invalid type: integer `3`, expected struct Options",
            "`3` does not fit: write a section, [a.b] and below it its keys",
        );
        check(
            "invalid value: integer `-1`, expected u32",
            "`-1` does not fit: write a whole number from 0 to 4294967295",
        );
        check(
            "invalid type: string \"x, expected y\", expected f64",
            "\"x, expected y\" does not fit: write a number",
        );
        check(
            "invalid type: sequence, expected a boolean",
            "a list does not fit: write `true` or `false`",
        );
        check(
            "invalid type: map, expected a string",
            "a section does not fit: write a text, in double quotes",
        );
        check(
            "unknown variant `x`, expected `a` or `b`",
            "there is no `x`: write `a` or `b`",
        );
        check("missing field `base_url`", "`base_url` is missing");
        check(
            "`1 x` is no size:\nwrite `2GiB`",
            "`1 x` is no size:, write `2GiB`",
        );
    }
}
