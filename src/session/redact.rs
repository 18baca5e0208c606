use std::borrow::Cow;

/// Prefixes of known kinds of keys, and the least number of characters that must follow.
const PREFIXES: [(&str, usize); 18] = [
    ("sk-", 16),
    ("rk_live_", 16),
    ("sk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("hf_", 20),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("pypi-", 30),
    ("eyJ", 40),
];
/// Words before a secret in files and headers, in lower case; the secret is the next word.
const NAMES: [&str; 9] = [
    "api_key",
    "api-key",
    "apikey",
    "access_token",
    "secret_key",
    "client_secret",
    "password",
    "passwd",
    "bearer",
];
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const MASK: &str = "***";

/// Replaces what looks like a key by `***`.
///
/// A heuristic for texts that leave the machine: it knows the common forms and no others.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        match find_secret(text, at) {
            Some((from, to)) => {
                out.push_str(&text[copied..from]);
                out.push_str(MASK);
                (copied, at) = (to, to);
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the range of a secret whose prefix or name begins here.
fn find_secret(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &text[at..];
    if let Some(block) = private_key(rest) {
        return Some((at, at + block));
    }
    // Prefixes match only at the start of a word: `task-list` holds no key.
    if text[..at].ends_with(is_key) {
        return None;
    }
    if let Some((prefix, least)) = PREFIXES.iter().find(|(prefix, _)| rest.starts_with(prefix)) {
        let length = rest[prefix.len()..]
            .find(|c: char| !is_key(c))
            .unwrap_or(rest.len() - prefix.len());
        return (length >= *least).then_some((at, at + prefix.len() + length));
    }
    let name = NAMES.iter().find(|name| {
        rest.get(..name.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(name))
    })?;
    let behind = &rest[name.len()..];
    let between = behind
        .find(|c: char| !matches!(c, ' ' | '"' | '\'' | ':' | '=' | '\\'))
        .unwrap_or(behind.len());
    let needs_sign = *name != "bearer";
    if between == 0 || needs_sign && !behind[..between].contains([':', '=']) {
        return None;
    }
    let value = &behind[between..];
    let length = value
        .find(|c: char| {
            c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '}' | ')' | '\\' | '`')
        })
        .unwrap_or(value.len());
    let from = at + name.len() + between;
    // A variable's name or a type is no secret.
    let is_secret = length >= 8
        && !value.starts_with(['$', '<', '{'])
        && value[..length].contains(|c: char| c.is_ascii_digit());
    is_secret.then_some((from, from + length))
}

fn private_key(rest: &str) -> Option<usize> {
    let head = rest.strip_prefix(BEGIN)?;
    let line = head.lines().next()?;
    if !line.contains("PRIVATE KEY") {
        return None;
    }
    match rest.find(END) {
        Some(end) => Some(
            end + rest[end..]
                .find("KEY-----")
                .map_or(rest.len() - end, |at| at + "KEY-----".len()),
        ),
        None => Some(rest.len()),
    }
}

fn is_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(redact(text), expected);
    }

    #[test]
    fn what_looks_like_a_key_is_redacted() {
        check("key sk-abcdefghijklmnop1234 end", "key *** end");
        check("AKIAIOSFODNN7EXAMPLE", "***");
        check("export API_KEY=abc123def456", "export API_KEY=***");
        check(
            r#"{"password": "hunter2hunter2"}"#,
            r#"{"password": "***"}"#,
        );
        check(
            r#"{\"api_key\":\"abcd1234efgh\"}"#,
            r#"{\"api_key\":\"***\"}"#,
        );
        check(
            "Authorization: Bearer abc.def-123456",
            "Authorization: Bearer ***",
        );
        check(
            "x\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\ny",
            "x\n***\ny",
        );
        check("-----BEGIN PRIVATE KEY-----\ncut", "***");
    }

    #[test]
    fn ordinary_text_is_not_redacted() {
        for text in [
            "the task-list of a risk-averse person",
            "password: String",
            "api_key = $API_KEY",
            "a bearer of news",
            "fn password(x: u8)",
            "-----BEGIN CERTIFICATE-----",
            "AKIA",
            "é sk-short",
        ] {
            assert!(
                matches!(redact(text), Cow::Borrowed(same) if same == text),
                "{text}: {}",
                redact(text)
            );
        }
    }
}
