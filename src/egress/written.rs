//! Rules as people write them, in settings and on the command line: a host, and words behind it.

use podbay_wire::EgressEffect;
use podbay_wire::EgressRule;

use super::rule::RuleError;
use super::rule::Rules;

/// Why a written rule does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrittenError {
    #[error("it is empty; write a host, such as `registry.npmjs.org` or `*.example.com:8443`")]
    Empty,
    #[error(
        "`{0}` behind the host means nothing; there are `raw`, `private`, methods such as `GET`, and paths that begin with `/`"
    )]
    Word(String),
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Reads `HOST[:PORT[,PORT]] [raw] [private] [METHOD]… [/PATH]…`.
pub fn parse(text: &str, effect: EgressEffect) -> Result<EgressRule, WrittenError> {
    let mut words = text.split_whitespace();
    let host = words.next().ok_or(WrittenError::Empty)?;
    let mut rule = EgressRule {
        host: host.to_owned(),
        effect,
        ..EgressRule::default()
    };
    for word in words {
        match word {
            "raw" => rule.raw = true,
            "private" => rule.private = true,
            path if path.starts_with('/') => rule.paths.push(path.to_owned()),
            method if method.bytes().all(|byte| byte.is_ascii_uppercase()) => {
                rule.methods.push(method.to_owned());
            }
            other => return Err(WrittenError::Word(other.chars().take(80).collect())),
        }
    }
    Rules::parse(std::slice::from_ref(&rule))?;
    Ok(rule)
}

/// Writes a rule the way [`parse`] reads it.
pub fn write(rule: &EgressRule) -> String {
    let words = [("raw", rule.raw), ("private", rule.private)]
        .into_iter()
        .filter_map(|(word, is_set)| is_set.then_some(word));
    std::iter::once(rule.host.as_str())
        .chain(words)
        .chain(rule.methods.iter().map(String::as_str))
        .chain(rule.paths.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_host_and_words_behind_it() {
        for text in [
            "registry.npmjs.org",
            "*.example.com:8443",
            "db.example:5432 raw private",
            "mirror.example:80 GET HEAD /debian",
        ] {
            let rule = parse(text, EgressEffect::Allow).expect(text);
            assert_eq!(write(&rule), text);
        }
        let rule = parse("  db.example:5432   raw ", EgressEffect::Allow).expect("a rule");
        assert!(rule.raw && !rule.private && rule.host == "db.example:5432");
        let denied = parse("a.example", EgressEffect::Deny).expect("a rule");
        assert_eq!(denied.effect, EgressEffect::Deny);
    }

    #[test]
    fn what_is_no_rule_is_said_with_what_is_wrong() {
        for (text, problem) in [
            ("", "it is empty"),
            (" ", "it is empty"),
            ("a.example Raw", "`Raw` behind the host means nothing"),
            ("*", "network mode `open`"),
            ("10.0.0.1", "is an address"),
            ("https://a.example/", "is no"),
            ("a.example:0", "is no port"),
            ("a.example raw GET", "`raw` lets through what is not HTTP"),
        ] {
            let error = parse(text, EgressEffect::Allow)
                .expect_err(text)
                .to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
