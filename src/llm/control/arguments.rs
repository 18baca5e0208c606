//! Control tokens in the arguments of a call, which are JSON: a token may be written with escapes
//! there, and the server that parses the JSON for its template decodes it.

use std::borrow::Cow;

use super::ControlTokens;

/// The token that is a quotation mark, as it is escaped in a JSON string, and its neutralized form.
const QUOTE: (&str, &str) = ("<|\\\"|>", "<\u{200b}|\\\"|>");

impl ControlTokens {
    /// Neutralizes every control token in the arguments of a call; without any the bytes are
    /// unchanged.
    pub fn neutralise_json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        rewritten(json, |text| {
            swapped(self.neutralise(text), QUOTE.0, QUOTE.1)
        })
    }

    /// Restores the arguments as the model meant them; the bytes are unchanged where it copied no
    /// neutralized token.
    pub fn restore_json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        rewritten(json, |text| swapped(self.restore(text), QUOTE.1, QUOTE.0))
    }
}

fn swapped<'b>(text: Cow<'b, str>, from: &str, to: &str) -> Cow<'b, str> {
    if text.contains(from) {
        Cow::Owned(text.replace(from, to))
    } else {
        text
    }
}

fn rewritten<'a>(json: &'a str, rewrite: impl for<'b> Fn(&'b str) -> Cow<'b, str>) -> Cow<'a, str> {
    if !json.contains('\\') {
        return rewrite(json);
    }
    let plain = unescaped(json);
    match rewrite(&plain) {
        Cow::Owned(text) if text != plain => Cow::Owned(text),
        _ => Cow::Borrowed(json),
    }
}

/// Returns the same JSON without unnecessary escapes.
fn unescaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let code = escape
            .strip_prefix("\\u")
            .and_then(|code| code.get(..4))
            .filter(is_hex)
            .and_then(|code| u32::from_str_radix(code, 16).ok());
        let plain = code
            .and_then(char::from_u32)
            .filter(|c| !c.is_control() && !matches!(c, '"' | '\\'));
        let n_read = match plain {
            // The shortest form still has an escape.
            None if code == Some(u32::from('"')) => {
                out.push_str("\\\"");
                6
            }
            Some(c) => {
                out.push(c);
                6
            }
            None if escape.starts_with("\\/") => {
                out.push('/');
                2
            }
            // Together with the next character, which may be a backslash itself.
            None => {
                let n_kept = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
                out.push_str(&escape[..n_kept]);
                n_kept
            }
        };
        rest = &escape[n_read..];
    }
    out + rest
}

fn is_hex(code: &&str) -> bool {
    code.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        let tokens = ControlTokens::default();
        let broken = tokens.neutralise_json(json);
        assert_eq!(broken, expected);
        let restored = tokens.restore_json(&broken);
        assert_eq!(
            serde_json::from_str::<Value>(&restored).expect("JSON"),
            serde_json::from_str::<Value>(json).expect("JSON")
        );
        assert_eq!(
            tokens.neutralise_json(&restored),
            expected,
            "what is sent again is the same"
        );
    }

    #[test]
    fn escaped_tokens_are_found_and_other_bytes_are_unchanged() {
        check(r#"{"a": "<|im_end|>"}"#, "{\"a\": \"<\u{200b}|im_end|>\"}");
        check(
            r#"{"a": "\u003c|im_\u0065nd|\u003E\n"}"#,
            "{\"a\": \"<\u{200b}|im_end|>\\n\"}",
        );
        check(r#"{"a": "[\/INST]"}"#, "{\"a\": \"[\u{200b}/INST]\"}");
        check(r#"{"a": "<|\"|>"}"#, "{\"a\": \"<\u{200b}|\\\"|>\"}");
        check(
            r#"{"a": "<|\u0022|\u003e"}"#,
            "{\"a\": \"<\u{200b}|\\\"|>\"}",
        );
        check(r#"{"a": "<|\\\"|>"}"#, r#"{"a": "<|\\\"|>"}"#);
        for same in [
            r#"{ "a" : 1.0e2, "b": "\u00e9 \/ \u003c\n" }"#,
            r#"{"a": "\\u003c|im_end\u0022|>"}"#,
            r#"{"a": ["\ud83d\ude00", [null]]}"#,
        ] {
            check(same, same);
        }
        let tokens = ControlTokens::default();
        assert_eq!(
            tokens.restore_json(r#"{"a": "<\u200b|im_end|>"}"#),
            r#"{"a": "<|im_end|>"}"#
        );
        for broken in [
            "{\"a\\",
            "\\u12",
            "\\u\u{e9}\u{e9}",
            "\\\u{e9}",
            "{\"a\": \"<\\u200b|im_en",
        ] {
            assert_eq!(tokens.restore_json(broken), broken);
        }
    }

    proptest! {
        #[test]
        fn neutralizing_keeps_the_value_of_the_json(text in "([<|>\\[\\]/\"\\\\a-c\n\u{e9}\u{1f600}]|<s>|<\\|im_end\\|>){0,20}") {
            let json = serde_json::json!({ "a": text }).to_string().replace('<', "\\u003c").replace('/', "\\/");
            let tokens = ControlTokens::default();
            let value: Value = serde_json::from_str(&tokens.neutralise_json(&json)).expect("still JSON");
            prop_assert_eq!(value["a"].as_str(), Some(&*tokens.neutralise(&text)));
        }
    }
}
