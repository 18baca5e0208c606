//! Names of hosts in the one form in which they are compared and resolved: ASCII, lower case, no
//! dot at the end.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

/// Longest name, and longest part of one, in bytes (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A name that a resolver may be asked for. It is never an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// Why a text is no name of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("`{0}` is an address, and rules are about names")]
    Address(String),
    #[error("a name has at most 253 bytes, and at most 63 between two dots")]
    TooLong,
    #[error("`{0}` is no name of a host: letters, digits, `-` and `_` between dots")]
    Characters(String),
}

impl HostName {
    /// Reads a name as it is written in a rule, a URL or a request: in any case, with or without a
    /// dot at its end, in any script (IDNA, UTS 46).
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() || text == "." {
            return Err(NameError::Empty);
        }
        // Bounded before it is converted, which costs more than a look.
        if text.len() > 4 * MAX_NAME {
            return Err(NameError::TooLong);
        }
        let shown = || text.chars().take(80).collect::<String>();
        if is_address(text) {
            return Err(NameError::Address(shown()));
        }
        let name = idna::domain_to_ascii(text).map_err(|_| NameError::Characters(shown()))?;
        let name = name.strip_suffix('.').unwrap_or(&name);
        if name.len() > MAX_NAME || name.split('.').any(|label| label.len() > MAX_LABEL) {
            return Err(NameError::TooLong);
        }
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name
            .split('.')
            .any(|label| label.is_empty() || !label.chars().all(is_of_name))
        {
            return Err(NameError::Characters(shown()));
        }
        // Full-width digits and dots become such an address only now.
        if is_address(name) {
            return Err(NameError::Address(shown()));
        }
        Ok(Self(name.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it lies below another name: `a.b.example` below `b.example`, at any depth.
    pub fn is_below(&self, above: &Self) -> bool {
        self.0
            .strip_suffix(above.as_str())
            .is_some_and(|rest| rest.ends_with('.'))
    }

    /// Returns how many parts it has.
    pub fn n_labels(&self) -> usize {
        self.0.split('.').count()
    }
}

/// Returns whether a resolver of any kind takes a text for an address: as it is usually written, in
/// brackets, or as the C library reads it, which takes `127.1`, `0x7f000001` and `017700000001`
/// too. A name's last part that is a number is always read so (WHATWG URL, "ends in a number").
fn is_address(text: &str) -> bool {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    let last = bare.rsplit('.').next().unwrap_or(bare);
    let is_hex = |text: &str| {
        text.strip_prefix("0x")
            .or_else(|| text.strip_prefix("0X"))
            .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_hexdigit()))
    };
    let is_number = !last.is_empty() && last.chars().all(|c| c.is_ascii_digit()) || is_hex(last);
    is_number || bare.contains(':') || IpAddr::from_str(bare).is_ok()
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for HostName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn name(text: &str) -> HostName {
        HostName::parse(text).expect(text)
    }

    #[test]
    fn a_name_has_one_form_however_it_is_written() {
        for (text, expected) in [
            ("registry.npmjs.org", "registry.npmjs.org"),
            ("REGISTRY.npmjs.Org.", "registry.npmjs.org"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("\u{ff45}xample.com", "example.com"),
            ("_dmarc.a_b.example", "_dmarc.a_b.example"),
            ("localhost", "localhost"),
            ("a\u{3002}example", "a.example"),
            ("1password.com", "1password.com"),
        ] {
            assert_eq!(name(text).as_str(), expected, "{text}");
        }
    }

    #[test]
    fn addresses_are_no_names_in_any_spelling() {
        for text in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "017700000001",
            "::1",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "169.254.169.254.",
            "fe80::1%eth0",
            "\u{ff11}27.0.0.1",
            "127\u{3002}0\u{3002}0\u{3002}1",
            "\u{2460}.\u{2461}",
        ] {
            assert!(
                matches!(HostName::parse(text), Err(NameError::Address(_))),
                "{text}: {:?}",
                HostName::parse(text)
            );
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "",
            ".",
            "a..b",
            ".a",
            "a b",
            "a/b",
            "evil.com#ok.example",
            "ok@evil.com",
            "a:80",
            "a\0b",
            "*.a",
            "a%2eb",
            "\u{200d}",
        ] {
            assert!(HostName::parse(text).is_err(), "{text:?}");
        }
        let label = "a".repeat(63);
        assert!(HostName::parse(&format!("{label}.{label}.{label}.{}", "a".repeat(61))).is_ok());
        assert_eq!(
            HostName::parse(&format!("{label}.{label}.{label}.{label}")),
            Err(NameError::TooLong)
        );
        assert_eq!(
            HostName::parse(&format!("{label}a.example")),
            Err(NameError::TooLong)
        );
        assert_eq!(
            HostName::parse(&"a.".repeat(10_000)),
            Err(NameError::TooLong)
        );
    }

    #[test]
    fn a_name_is_below_another_one_by_whole_parts() {
        let above = name("example.com");
        assert!(name("a.example.com").is_below(&above) && name("a.b.example.com").is_below(&above));
        assert!(
            !name("example.com").is_below(&above)
                && !name("notexample.com").is_below(&above)
                && !name("com").is_below(&above)
        );
    }
}
