//! Names as git quotes them: `"caf\303\251.txt"`, `"a\tb"`, `"two words"`. A model that read such a
//! name writes it back.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Pipeline;
use podbay_policy::Action;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Fault;
use podbay_wire::ListDirectory;
use podbay_wire::Output;
use podbay_wire::unquoted;

/// Time limit for checking whether a name exists.
const LOOK: Duration = Duration::from_secs(10);

/// Returns whether a text is a quoted name.
pub(super) fn is_quoted(text: &str) -> bool {
    text.strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'))
        .is_some_and(|inner| !inner.is_empty())
}

/// Returns what a git-quoted path can mean, the likeliest first.
fn meant(path: &BytesPath) -> Vec<BytesPath> {
    let bytes = path.as_bytes();
    let Some(inner) = bytes
        .strip_prefix(b"\"")
        .and_then(|inner| inner.strip_suffix(b"\""))
        .filter(|inner| !inner.is_empty())
    else {
        return Vec::new();
    };
    let read = unquoted(bytes)
        .filter(|(name, after)| after.is_empty() && !name.is_empty() && !name.contains(&0))
        .map(|(name, _)| name);
    // Quotes around a name that git would not have escaped.
    let plain = (!inner.contains(&b'"')).then(|| inner.to_vec());
    let mut meant: Vec<BytesPath> = read
        .into_iter()
        .chain(plain)
        .map(BytesPath::from_bytes)
        .collect();
    meant.dedup();
    meant
}

/// Returns the name of a file whose own name has the quotes.
fn as_shown(path: &BytesPath) -> BytesPath {
    std::str::from_utf8(path.as_bytes()).map_or_else(|_| path.clone(), BytesPath::from_text)
}

impl Pipeline {
    /// Replaces git-quoted names by plain ones, unless a file of the quoted name exists. Runs
    /// before the call is judged, so that rules and questions see the actual file.
    pub(super) async fn read_git_names(
        &self,
        action: Action,
        notes: &mut Vec<String>,
        cancel: &CancellationToken,
    ) -> Action {
        let Action::Box(mut call) = action else {
            return action;
        };
        let paths: Vec<&mut BytesPath> = call
            .fields_mut()
            .paths
            .into_iter()
            .filter(|path| !meant(path).is_empty())
            .collect();
        for path in paths {
            let shown = as_shown(path);
            if self.lacks(&shown, cancel).await != Some(true) {
                *path = shown;
                continue;
            }
            let meant = meant(path);
            let mut chosen = meant.first();
            for one in &meant {
                if self.lacks(one, cancel).await == Some(false) {
                    chosen = Some(one);
                    break;
                }
            }
            if let Some(chosen) = chosen {
                notes.push(format!("{path} was read as git writes names: {chosen}"));
                *path = chosen.clone();
            }
        }
        Action::Box(call)
    }

    /// Returns whether no file has this name; `None` if the rules forbid the check.
    async fn lacks(&self, path: &BytesPath, cancel: &CancellationToken) -> Option<bool> {
        let look = ListDirectory {
            path: path.clone(),
            recursive: false,
            show_hidden: true,
            show_size: false,
            max_entries: 1,
        };
        let output = self
            .peek(Call::ListDirectory(look), Box::new(|_, _| ()), cancel, LOOK)
            .await
            .ok()??;
        Some(matches!(
            output,
            Output::Fault(
                Fault::NotFound { .. } | Fault::NotDirectory { .. } | Fault::DanglingLink { .. }
            )
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::written;

    #[track_caller]
    fn check(text: &str, expected: &[&[u8]]) {
        let meant = meant(&written(text));
        assert_eq!(
            meant.iter().map(BytesPath::as_bytes).collect::<Vec<_>>(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn git_quoted_names_are_unquoted() {
        check(
            r#""caf\303\251.txt""#,
            &["caf\u{e9}.txt".as_bytes(), br"caf\303\251.txt"],
        );
        check(r#""a\tb""#, &[b"a\tb", br"a\tb"]);
        check(r#""a\\tb""#, &[br"a\tb", br"a\\tb"]);
        check(
            r#""\346\227\245/x \"y\".md""#,
            &["\u{65e5}/x \"y\".md".as_bytes()],
        );
        check(r#""two words.txt""#, &[b"two words.txt"]);
        check(
            r#""\001\a\v\f\r\n""#,
            &[b"\x01\x07\x0b\x0c\r\n", br"\001\a\v\f\r\n"],
        );
        for text in ["plain", r#"""#, r#""""#, r#""open"#, r#"end""#, r"'x'"] {
            check(text, &[]);
        }
        check(r#""\q""#, &[br"\q"]);
    }
}
