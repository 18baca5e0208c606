//! What a call has started so far: each program once with its arguments and its folder, and how
//! often.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use super::exit_code;
use super::process::Arguments;
use podbay_wire::BytesPath;
use podbay_wire::Program;
use podbay_wire::Programs;
use podbay_wire::programs::MAX_ALL_ARGUMENTS;
use podbay_wire::programs::MAX_ARGUMENTS;
use podbay_wire::programs::MAX_PROGRAMS;

#[derive(Debug, Default)]
pub(super) struct Ran {
    listed: Vec<Listed>,
    /// Where one that is started again stands.
    places: HashMap<(Vec<Vec<u8>>, Vec<u8>), usize>,
    n_bytes: usize,
    n_more: u64,
}

#[derive(Debug)]
struct Listed {
    program: Program,
    /// The process that was the last one of it.
    last: Option<OwnedFd>,
}

impl Ran {
    /// Notes a program that was started.
    pub(super) fn add(&mut self, argv: &Arguments, directory: Vec<u8>, process: Option<OwnedFd>) {
        let (words, truncated) = shortened(argv);
        let n_bytes = words.iter().map(|word| word.len() + 1).sum::<usize>() + directory.len();
        let key = (words, directory);
        if let Some(listed) = self
            .places
            .get(&key)
            .and_then(|&at| self.listed.get_mut(at))
        {
            listed.program.count += 1;
            listed.last = process;
            return;
        }
        if self.listed.len() >= MAX_PROGRAMS || self.n_bytes + n_bytes > MAX_ALL_ARGUMENTS {
            self.n_more += 1;
            return;
        }
        let (words, directory) = &key;
        let argv = words
            .iter()
            .map(|word| BytesPath::from_bytes(word.clone()))
            .collect();
        let directory = BytesPath::from_bytes(directory.clone());
        self.listed.push(Listed {
            program: Program {
                argv,
                directory,
                count: 1,
                exit_code: None,
                truncated,
            },
            last: process,
        });
        self.n_bytes += n_bytes;
        self.places.insert(key, self.listed.len() - 1);
    }

    /// Returns all of it when the processes have ended.
    pub(super) fn take(&mut self) -> Programs {
        let all = std::mem::take(self);
        let listed = all.listed.into_iter().map(|Listed { program, last }| {
            let exit_code = last.as_ref().and_then(exit_code::of);
            Program {
                exit_code,
                ..program
            }
        });
        Programs {
            listed: listed.collect(),
            n_more: all.n_more,
        }
    }
}

/// Returns as many of the words as are told, and whether some is missing.
pub(super) fn shortened(argv: &Arguments) -> (Vec<Vec<u8>>, bool) {
    let mut room = MAX_ARGUMENTS;
    let mut words = Vec::new();
    for word in &argv.words {
        if word.len() >= room {
            words.push(word[..room].to_vec());
            return (words, true);
        }
        room -= word.len() + 1;
        words.push(word.clone());
    }
    (words, argv.truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&[u8]]) -> Arguments {
        Arguments {
            words: words.iter().map(|word| word.to_vec()).collect(),
            truncated: false,
        }
    }

    #[test]
    fn the_same_program_in_the_same_folder_is_listed_once() {
        let mut ran = Ran::default();
        for (words, folder) in [
            ([&b"cc"[..], b"a.c"], "/a"),
            ([b"cc", b"a.c"], "/a"),
            ([b"cc", b"a.c"], "/b"),
            ([b"cc", b"b.c"], "/a"),
        ] {
            ran.add(&argv(&words), folder.into(), None);
        }
        let programs = ran.take();
        assert_eq!(
            programs
                .listed
                .iter()
                .map(|program| program.count)
                .collect::<Vec<_>>(),
            [2, 1, 1]
        );
        assert_eq!((programs.n_more, programs.n_started()), (0, 4));
        assert!(ran.take().is_empty());
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_and_what_is_long_is_truncated() {
        let mut ran = Ran::default();
        ran.add(&argv(&[b"\xff\x1b", b""]), b"/\xfe".to_vec(), None);
        let words: Vec<Vec<u8>> = (0..100_000).map(|_| b"x".to_vec()).collect();
        ran.add(
            &Arguments {
                words,
                truncated: false,
            },
            b"/".to_vec(),
            None,
        );
        ran.add(&argv(&[&vec![b'y'; 128 << 10]]), b"/".to_vec(), None);
        let [odd, many, long] = &ran.take().listed[..] else {
            panic!("three")
        };
        assert_eq!(
            (
                odd.argv[0].as_bytes(),
                odd.argv[1].as_bytes(),
                odd.truncated
            ),
            (&b"\xff\x1b"[..], &b""[..], false)
        );
        assert_eq!(odd.directory.as_bytes(), b"/\xfe");
        assert_eq!(
            (many.argv.len(), many.truncated),
            (MAX_ARGUMENTS / 2 + 1, true)
        );
        assert_eq!(
            (long.argv[0].as_bytes().len(), long.truncated),
            (MAX_ARGUMENTS, true)
        );
    }

    #[test]
    fn beyond_the_bounds_starts_are_only_counted() {
        let mut ran = Ran::default();
        for n in 0..1000_u32 {
            ran.add(
                &argv(&[b"true", n.to_string().as_bytes()]),
                b"/".to_vec(),
                None,
            );
        }
        let programs = ran.take();
        assert_eq!(
            (programs.listed.len(), programs.n_more),
            (MAX_PROGRAMS, 800)
        );
        for n in 0..100_u32 {
            ran.add(
                &argv(&[&vec![b'x'; 2000], n.to_string().as_bytes()]),
                b"/".to_vec(),
                None,
            );
        }
        let programs = ran.take();
        assert!(
            programs.listed.len() < 40 && programs.n_started() == 100 && !programs.is_too_much()
        );
    }
}
