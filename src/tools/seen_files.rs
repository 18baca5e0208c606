//! What the model knows of files, for the whole session, across sandboxes and resumes.
//!
//! It is built from the guest's outputs. The guest is trusted only so far that the model knows of
//! a conflict, or is not.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::MutexGuard;

use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Known;
use podbay_wire::KnownFile;
use podbay_wire::Mark;
use podbay_wire::Memo;
use podbay_wire::Output;
use podbay_wire::below;

/// Bounds on the files remembered and on the bytes of their paths; those seen longest ago are
/// forgotten first.
const MOST: usize = 4096;
const MOST_BYTES: usize = 256 << 10;

/// Bounds on what is taken from one call: the guest must not fill the log.
const MOST_OF_CALL: usize = 512;
const MOST_BYTES_OF_CALL: usize = 64 << 10;
/// Longest valid mark.
const LONGEST_MARK: usize = 128;

/// Files by their path in the project, with symlinks resolved.
#[derive(Debug, Default)]
pub(super) struct SeenFiles(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    by_path: HashMap<Vec<u8>, File>,
    n_bytes: usize,
    n_seen: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    mark: Mark,
    shown: Shown,
    /// Order in which files were seen.
    number: u64,
}

/// How much of a file the model was shown, or wrote itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Whole,
    /// This many lines from the first on.
    Lines(u64),
}

impl SeenFiles {
    /// Returns what a call that changes files must know: the state of the files it names, and of
    /// those in `besides`.
    pub(super) fn known(&self, call: &Call, besides: &[BytesPath]) -> Known {
        let mut told: Vec<BytesPath> = call
            .facts()
            .changes()
            .iter()
            .map(|path| plain(path))
            .chain(besides.iter().cloned())
            .collect();
        told.sort();
        told.dedup();
        let files = self.lock();
        let is_told = |path: &[u8]| {
            told.iter()
                .any(|told| below(path, told.as_bytes()).is_some())
        };
        let known = files.by_path.iter().filter(|(path, _)| is_told(path));
        let mut known: Vec<KnownFile> = known
            .map(|(path, file)| KnownFile {
                path: BytesPath::from_bytes(path.clone()),
                mark: file.mark.clone(),
            })
            .collect();
        known.sort_by(|a, b| a.path.cmp(&b.path));
        Known { told, files: known }
    }

    /// Remembers what a call says. Returns files of which the model had been shown only a part and
    /// that it replaced as a whole.
    pub(super) fn take(&self, memos: &[Memo]) -> Vec<BytesPath> {
        let mut files = self.lock();
        memos
            .iter()
            .filter(|memo| files.take(memo))
            .filter_map(|memo| memo.paths().next().cloned())
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0
            .lock()
            .expect("nothing panics while it holds this lock")
    }
}

impl Files {
    /// Takes one memo; returns whether it replaces a file of which the model had been shown only a
    /// part.
    fn take(&mut self, memo: &Memo) -> bool {
        match memo {
            Memo::Read {
                path,
                mark,
                first_line,
                n_lines,
                more,
            } => {
                let before = match self.by_path.get(path.as_bytes()) {
                    Some(file) if file.mark == *mark => file.shown,
                    _ => Shown::Lines(0),
                };
                let shown = match before {
                    Shown::Lines(n) if *first_line <= n.saturating_add(1) => {
                        if *more {
                            Shown::Lines(
                                n.max(first_line.saturating_add(*n_lines).saturating_sub(1)),
                            )
                        } else {
                            Shown::Whole
                        }
                    }
                    before => before,
                };
                self.put(path, mark, shown);
                false
            }
            Memo::Wrote { path, mark } => {
                let before = self.by_path.get(path.as_bytes()).map(|file| file.shown);
                self.put(path, mark, Shown::Whole);
                before.is_some_and(|shown| shown != Shown::Whole)
            }
            Memo::Changed { path, mark } => {
                // The numbers of the lines it was shown may have changed, but not how many there
                // are.
                let shown = self
                    .by_path
                    .get(path.as_bytes())
                    .map_or(Shown::Lines(0), |file| file.shown);
                self.put(path, mark, shown);
                false
            }
            Memo::Gone { path } => {
                self.forget(path.as_bytes());
                false
            }
            Memo::Moved { from, to } => {
                self.rename(from.as_bytes(), to.as_bytes());
                false
            }
        }
    }

    fn put(&mut self, path: &BytesPath, mark: &Mark, shown: Shown) {
        self.n_seen += 1;
        let file = File {
            mark: mark.clone(),
            shown,
            number: self.n_seen,
        };
        if self
            .by_path
            .insert(path.as_bytes().to_vec(), file)
            .is_none()
        {
            self.n_bytes += path.as_bytes().len();
        }
        while (self.by_path.len() > MOST || self.n_bytes > MOST_BYTES)
            && let Some(oldest) = self
                .by_path
                .iter()
                .min_by_key(|(_, file)| file.number)
                .map(|(path, _)| path.clone())
        {
            self.by_path.remove(&oldest);
            self.n_bytes -= oldest.len();
        }
    }

    fn forget(&mut self, top: &[u8]) {
        self.by_path.retain(|path, _| below(path, top).is_none());
        self.count();
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        self.forget(to);
        for (path, file) in std::mem::take(&mut self.by_path) {
            let path = below(&path, from)
                .map(|rest| [to, rest].concat())
                .unwrap_or(path);
            self.by_path.insert(path, file);
        }
        self.count();
    }

    fn count(&mut self) {
        self.n_bytes = self.by_path.keys().map(Vec::len).sum();
    }
}

/// Returns the valid memos of an output. Of a file that was read, at most `most` characters were
/// shown.
pub fn memos(output: &Output, most: usize) -> Vec<Memo> {
    let is_cut = match output {
        // Line numbers take some characters too.
        Output::Read(read) => {
            read.files
                .iter()
                .map(|file| file.text.len() + 10 * file.text.lines().count())
                .sum::<usize>()
                > most
        }
        _ => false,
    };
    let mut n_bytes = 0;
    let sound = output.memos().iter().take(MOST_OF_CALL).take_while(|memo| {
        n_bytes += memo
            .paths()
            .map(|path| path.as_bytes().len())
            .sum::<usize>();
        n_bytes <= MOST_BYTES_OF_CALL && memo.mark().is_none_or(|mark| mark.0.len() <= LONGEST_MARK)
    });
    let shown = |memo: &Memo| match memo.clone() {
        Memo::Read {
            path,
            mark,
            first_line,
            ..
        } if is_cut => Memo::Read {
            path,
            mark,
            first_line,
            n_lines: 0,
            more: true,
        },
        memo => memo,
    };
    sound.map(shown).collect()
}

/// Returns where a path leads if no symlink is on the way. If there is one, the guest asks for the
/// other name.
fn plain(path: &BytesPath) -> BytesPath {
    let bytes = path.as_bytes();
    let bytes = bytes
        .strip_prefix(b"/workspace".as_slice())
        .filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
        .unwrap_or(bytes);
    let mut names: Vec<&[u8]> = Vec::new();
    for name in bytes.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    BytesPath::from_bytes(names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::DeleteFile;

    fn path(path: &str) -> BytesPath {
        BytesPath::from_text(path)
    }

    fn mark(text: &str) -> Mark {
        Mark(text.to_owned())
    }

    fn wrote(name: &str, text: &str) -> Memo {
        Memo::Wrote {
            path: path(name),
            mark: mark(text),
        }
    }

    fn read(first_line: u64, n_lines: u64, more: bool) -> Memo {
        Memo::Read {
            path: path("a"),
            mark: mark("1"),
            first_line,
            n_lines,
            more,
        }
    }

    fn known(seen: &SeenFiles, named: &str) -> Vec<(String, String)> {
        let call = Call::DeleteFile(DeleteFile {
            path: path(named),
            recursive: false,
            protected: false,
            known: None,
        });
        let known = seen.known(&call, &[]);
        known
            .files
            .into_iter()
            .map(|file| (file.path.to_text(), file.mark.0))
            .collect()
    }

    #[track_caller]
    fn check(memos: &[Memo], named: &str, expected: &[(&str, &str)]) {
        let seen = SeenFiles::default();
        seen.take(memos);
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(path, mark)| ((*path).to_owned(), (*mark).to_owned()))
            .collect();
        assert_eq!(known(&seen, named), expected);
    }

    #[test]
    fn a_call_carries_known_state_of_named_files_and_folders() {
        let all = [wrote("a/b", "1"), wrote("a/c/d", "2"), wrote("ab", "3")];
        check(&all, "a", &[("a/b", "1"), ("a/c/d", "2")]);
        check(&all, "/workspace/x/.././a//b", &[("a/b", "1")]);
        check(&all, "/elsewhere/ab", &[]);
        check(
            &[&all[..], &[wrote("a/b", "4")]].concat(),
            "a/b",
            &[("a/b", "4")],
        );
    }

    #[test]
    fn known_state_follows_a_renamed_file() {
        let all = [
            wrote("a/b", "1"),
            wrote("a/c/d", "2"),
            wrote("ab", "3"),
            wrote("z", "4"),
        ];
        let moved = [
            &all[..],
            &[Memo::Moved {
                from: path("a"),
                to: path("z"),
            }],
        ]
        .concat();
        check(&moved, "", &[("ab", "3"), ("z/b", "1"), ("z/c/d", "2")]);
        check(
            &[&moved[..], &[Memo::Gone { path: path("z") }]].concat(),
            "",
            &[("ab", "3")],
        );
    }

    #[test]
    fn replacing_a_partly_shown_file_is_noted() {
        #[track_caller]
        fn check(before: &[Memo], is_part: bool) {
            let seen = SeenFiles::default();
            assert!(seen.take(before).is_empty());
            assert_eq!(
                seen.take(&[wrote("a", "2")]).len(),
                usize::from(is_part),
                "{before:?}"
            );
            assert!(
                seen.take(&[wrote("a", "3")]).is_empty(),
                "by now it is its own"
            );
        }
        check(&[], false);
        check(&[read(1, 9, false)], false);
        check(&[read(1, 9, true)], true);
        check(&[read(1, 9, true), read(10, 5, false)], false);
        check(&[read(1, 9, true), read(5, 10, false)], false);
        check(&[read(1, 9, true), read(11, 5, false)], true);
        check(&[read(10, 5, false)], true);
        check(&[read(1, 9, false), read(3, 1, true)], false);
        check(
            &[
                read(1, 9, false),
                Memo::Changed {
                    path: path("a"),
                    mark: mark("9"),
                },
            ],
            false,
        );
        check(
            &[
                read(1, 9, false),
                Memo::Read {
                    path: path("a"),
                    mark: mark("8"),
                    first_line: 4,
                    n_lines: 9,
                    more: false,
                },
            ],
            true,
        );
    }

    #[test]
    fn the_file_seen_longest_ago_is_forgotten_first() {
        let seen = SeenFiles::default();
        let many: Vec<Memo> = (0..=MOST)
            .map(|number| wrote(&number.to_string(), "1"))
            .collect();
        seen.take(&many);
        assert!(known(&seen, "0").is_empty() && known(&seen, "1").len() == 1);
        let long = |number: usize| wrote(&format!("{number}{}", "x".repeat(60 << 10)), "1");
        seen.take(&(0..5).map(long).collect::<Vec<_>>());
        assert_eq!(
            known(&seen, "").len(),
            4,
            "all paths together have a bound too"
        );
    }

    #[test]
    fn memos_of_one_call_are_bounded() {
        let output = |memos| {
            Output::Changed(podbay_wire::Changed {
                memos,
                ..Default::default()
            })
        };
        assert_eq!(
            memos(&output(vec![wrote("a", "1"); 1000]), 1000).len(),
            MOST_OF_CALL
        );
        assert!(
            memos(
                &output(vec![wrote(&"x".repeat(MOST_BYTES_OF_CALL + 1), "1")]),
                1000
            )
            .is_empty()
        );
        assert!(
            memos(
                &output(vec![wrote("a", &"1".repeat(LONGEST_MARK + 1))]),
                1000
            )
            .is_empty()
        );
    }
}
