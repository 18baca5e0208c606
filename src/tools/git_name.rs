//! Names as git writes them where they hold odd characters: `"caf\303\251.txt"`, `"a\tb"`, `"two words"`. A model that was shown such a name
//! gives it back.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Pipeline;
use podbay_policy::Action;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Fault;
use podbay_wire::ListDirectory;
use podbay_wire::Output;

/// How long a look at whether a name is there may take.
const LOOK: Duration = Duration::from_secs(10);

/// Reads a name in git's quotes; returns it and what follows the quotes. `None`: it is no such name.
pub(super) fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Some((name, after)),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                name.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            [b'\\', sign, after @ ..] => {
                name.push(match sign {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'"' | b'\\' => *sign,
                    _ => return None,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                name.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

/// Returns what a path can mean that is written in git's quotes, the likeliest first.
fn meant(path: &BytesPath) -> Vec<BytesPath> {
    let bytes = path.as_bytes();
    let Some(inner) = bytes.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).filter(|inner| !inner.is_empty()) else {
        return Vec::new();
    };
    let read = unquoted(bytes).filter(|(name, after)| after.is_empty() && !name.is_empty() && !name.contains(&0)).map(|(name, _)| name);
    // Of two backslashes one is left by now, which then is the name's own.
    let plain = (!inner.contains(&b'"')).then(|| inner.to_vec());
    let mut meant: Vec<BytesPath> = read.into_iter().chain(plain).map(BytesPath::from_bytes).collect();
    meant.dedup();
    meant
}

impl Pipeline {
    /// Puts the names that are in git's quotes in plain ones, where nothing is called so with the quotes. It comes before a call is judged: rules and
    /// persons are asked about the file that is meant.
    pub(super) async fn read_git_names(&self, action: Action, notes: &mut Vec<String>, cancel: &CancellationToken) -> Action {
        let Action::Box(mut call) = action else { return action };
        let paths: Vec<&mut BytesPath> = call.paths_mut().into_iter().filter(|path| !meant(path).is_empty()).collect();
        for path in paths {
            if self.lacks(path, cancel).await != Some(true) {
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

    /// Returns whether there is nothing of this name; `None`: the rules do not let anybody look.
    async fn lacks(&self, path: &BytesPath, cancel: &CancellationToken) -> Option<bool> {
        let look = ListDirectory { path: path.clone(), recursive: false, show_hidden: true, show_size: false, max_entries: 1 };
        let output = self.peek(Call::ListDirectory(look), Box::new(|_, _| ()), cancel, LOOK).await.ok()??;
        Some(matches!(output, Output::Fault(Fault::NotFound { .. } | Fault::NotDirectory { .. } | Fault::DanglingLink { .. })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&[u8]]) {
        let meant = meant(&BytesPath::from_text(text));
        assert_eq!(meant.iter().map(BytesPath::as_bytes).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn names_in_gits_quotes_are_read_as_git_writes_them() {
        check(r#""caf\303\251.txt""#, &["caf\u{e9}.txt".as_bytes(), br"caf\303\251.txt"]);
        check(r#""a\tb""#, &[b"a\tb", br"a\tb"]);
        check(r#""a\\tb""#, &[b"a\tb", br"a\tb"]);
        check(r#""\346\227\245/x \"y\".md""#, &["\u{65e5}/x \"y\".md".as_bytes()]);
        check(r#""two words.txt""#, &[b"two words.txt"]);
        check(r#""\001\a\v\f\r\n""#, &[b"\x01\x07\x0b\x0c\r\n", br"\001\a\v\f\r\n"]);
        for text in ["plain", r#"""#, r#""""#, r#""open"#, r#"end""#, r"'x'"] {
            check(text, &[]);
        }
        check(r#""\q""#, &[br"\q"]);
        assert_eq!(unquoted(br#""a b" rest"#), Some((b"a b".to_vec(), &b" rest"[..])));
    }
}
