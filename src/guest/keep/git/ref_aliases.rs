//! Which new branches and tags keep their names on import, and what the others are renamed to.
//!
//! The rule is an allow-list: a shell must read the name as one word anywhere, and a reader must
//! not mistake it for another. All other names stay in the session, and their commits are imported
//! as `podbay/SESSION/N`.

use std::collections::BTreeMap;

use unicode_normalization::is_nfc;
use unicode_security::RestrictionLevel;
use unicode_security::RestrictionLevelDetection;
use unicode_security::skeleton;

use super::refs::Head;
use podbay_wire::BytesPath;
use podbay_wire::keep::name_of_review;

/// Characters without a meaning within a word to any shell, and to git.
const SIGNS: &str = "/._-+@=,";

/// Prefixes of branches and of tags.
const KINDS: [&[u8]; 2] = [b"refs/heads/", b"refs/tags/"];

/// Returns whether a name, without its prefix, may be kept.
fn is_plain(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    // Another leading character may start an option, an expansion or a comment.
    name.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        && name
            .chars()
            .all(|c| !c.is_ascii() || c.is_ascii_alphanumeric() || SIGNS.contains(c))
        && is_nfc(name)
        && name
            .split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric())
            .all(is_plain_word)
}

/// Whether a word of letters and digits is of one script, without invisible characters, and cannot
/// be mistaken for an ASCII word if it is not one.
fn is_plain_word(word: &str) -> bool {
    word.is_ascii()
        || word.starts_with(char::is_alphanumeric)
            && word.check_restriction_level(RestrictionLevel::HighlyRestrictive)
            && !skeleton(word).all(|c| c.is_ascii())
}

/// The names that are not kept, with their aliases.
#[derive(Clone, Debug, Default)]
pub(super) struct RefAliases {
    given: BTreeMap<BytesPath, BytesPath>,
    /// The reverse map.
    called: BTreeMap<BytesPath, BytesPath>,
}

impl RefAliases {
    /// Gives aliases to those of `new` that need one: the same ones each time for the same session.
    /// `bound` holds all names of the session, which may look like aliases as well.
    pub(super) fn of<'a>(
        new: impl Iterator<Item = &'a BytesPath>,
        bound: &BTreeMap<BytesPath, String>,
        id: &str,
    ) -> Self {
        let mut names = Self::default();
        let mut n = 0;
        for name in new {
            let Some((kind, short)) = KINDS
                .iter()
                .find_map(|kind| Some((kind, name.as_bytes().strip_prefix(*kind)?)))
            else {
                continue;
            };
            if is_plain(short) {
                continue;
            }
            loop {
                n += 1;
                let short = format!("podbay/{}/{n}", name_of_review(id));
                let all =
                    KINDS.map(|kind| BytesPath::from_bytes([kind, short.as_bytes()].concat()));
                if !all.iter().any(|name| bound.contains_key(name)) {
                    let given = BytesPath::from_bytes([kind, short.as_bytes()].concat());
                    names.given.insert(name.clone(), given.clone());
                    names.called.insert(given, name.clone());
                    break;
                }
            }
        }
        names
    }

    /// Returns the name that something is imported as.
    pub(super) fn name(&self, name: &BytesPath) -> BytesPath {
        self.given.get(name).unwrap_or(name).clone()
    }

    pub(super) fn head(&self, head: Head) -> Head {
        match head {
            Head::Branch { name } => Head::Branch {
                name: self.name(&name),
            },
            head @ Head::Commit { .. } => head,
        }
    }

    /// Returns the session's name of something that is imported under an alias.
    pub(super) fn called(&self, name: &BytesPath) -> Option<String> {
        self.called.get(name).map(shown)
    }
}

/// Returns a name with unambiguous characters.
fn shown(name: &BytesPath) -> String {
    let mut text = String::new();
    for c in name.to_string().chars() {
        if c.is_ascii_graphic() {
            text.push(c);
        } else {
            text.extend(c.escape_unicode());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::super::sample::SampleSession;
    use super::super::sample::moved;
    use super::*;

    #[test]
    fn names_that_a_shell_expands_or_that_mislead_are_not_kept() {
        for name in [
            "$(touch${IFS}x)",
            "`id`",
            "a'b",
            "a\"b",
            "a|sh",
            "a;sh",
            "a&b",
            "a>b",
            "a<b",
            "a(b)",
            "{a,b}",
            "a!b",
            "fix/#1",
            "%PATH%",
            "=ls",
            "@x",
            "+main",
            "-x",
            "a\u{1b}b",
            "main\u{200b}",
            "ma\u{200d}in",
            "main\u{e0041}",
            "\u{202e}niam",
            "main\u{2800}",
            "ma\u{ad}in",
            "a\u{a0}b",
            "a\u{3000}b",
            // Cyrillic between Latin letters, and whole words that look like others.
            "m\u{430}in",
            "rel\u{435}ase/1",
            "\u{441}\u{43e}\u{440}\u{435}",
            "r-\u{435}-l",
            "\u{ff4d}ain",
            "ma\u{131}n\u{338}",
            "a\u{2215}b",
            "o\u{308}de",
            "-\u{301}x",
            "a/\u{301}x",
            "a-\u{1f980}",
        ] {
            assert!(!is_plain(name.as_bytes()), "{name:?}");
        }
        assert!(!is_plain(b"a\xff") && !is_plain(b""));
    }

    #[test]
    fn a_name_in_any_single_script_is_kept() {
        for name in [
            "main",
            "feature/login-form_2",
            "release/2024.1",
            "v1.0.0+build.5",
            "dependabot/npm_and_yarn/@types/node-20.1",
            "user@host,x=1",
            "_x",
            "gr\u{f6}\u{df}e",
            "na\u{ef}ve/\u{65e5}\u{672c}\u{8a9e}",
            "fix\u{4fee}\u{6b63}",
            "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}-fix",
            "feature/\u{395}\u{3bb}\u{3bb}\u{3b7}\u{3bd}\u{3b9}\u{3ba}\u{3ac}",
            "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
            "\u{d55c}\u{ad6d}\u{c5b4}",
            "\u{639}\u{631}\u{628}\u{64a}",
        ] {
            assert!(is_plain(name.as_bytes()), "{name:?}");
        }
    }

    #[test]
    fn commits_with_a_bad_name_are_imported_under_a_reported_alias() {
        let sample = Sample::new();
        sample.commit("a", "1");
        sample.git(&["branch", "it's"]);
        let session = SampleSession::of(sample);
        session.git(&["checkout", "-q", "-b", "$(touch${IFS}x)"]);
        let tip = session.sample.commit("b", "1");
        for name in ["m\u{430}in", "gr\u{f6}\u{df}e"] {
            session.git(&["branch", name]);
        }
        // The user's own branches of such names stay.
        session.git(&["branch", "-f", "it's"]);
        session.git(&["tag", "`id`"]);
        let sample = session.end();
        let one = sample.import_one();
        let ours = [
            "refs/heads/podbay/session-1/1",
            "refs/heads/podbay/session-1/2",
        ];
        let expected = [
            "refs/heads/it's",
            "refs/heads/gr\u{f6}\u{df}e",
            ours[0],
            ours[1],
            "refs/tags/podbay/session-1/3",
        ];
        let mut names = moved(&one);
        names.sort();
        let mut sorted = expected.map(str::to_owned);
        sorted.sort();
        assert_eq!(names, sorted);
        let said = |what: &str| {
            format!(
                "{what}: a shell would expand the name, or it could be mistaken for another one"
            )
        };
        assert_eq!(
            one.notes,
            [
                said("refs/heads/$(touch${IFS}x) is imported as refs/heads/podbay/session-1/1"),
                said("refs/heads/m\\u{430}in is imported as refs/heads/podbay/session-1/2"),
                said("refs/tags/`id` is imported as refs/tags/podbay/session-1/3"),
            ]
        );
        assert_eq!((one.head.as_deref(), one.is_whole()), (Some(ours[0]), true));
        assert_eq!(sample.git(&["rev-parse", "HEAD"]).trim(), tip);
        assert!(!sample.git(&["for-each-ref"]).contains("touch"));
    }

    #[test]
    fn each_alias_is_an_unused_name() {
        let names = [
            "refs/heads/$(a)",
            "refs/heads/podbay/s/2",
            "refs/tags/b c",
            "refs/tags/v1",
        ]
        .map(BytesPath::from);
        let bound: BTreeMap<BytesPath, String> = names
            .iter()
            .map(|name| (name.clone(), String::new()))
            .collect();
        let given = RefAliases::of(bound.keys(), &bound, "s-review");
        let all: Vec<String> = bound
            .keys()
            .map(|name| given.name(name).to_text())
            .collect();
        assert_eq!(
            all,
            [
                "refs/heads/podbay/s/1",
                "refs/heads/podbay/s/2",
                "refs/tags/podbay/s/3",
                "refs/tags/v1"
            ]
        );
        assert_eq!(
            given.called(&"refs/tags/podbay/s/3".into()).as_deref(),
            Some("refs/tags/b\\u{20}c")
        );
        assert_eq!(given.called(&"refs/tags/v1".into()), None);
    }
}
