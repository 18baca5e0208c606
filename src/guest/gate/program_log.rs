//! The programs that a call has started so far: each once with its arguments and its working
//! directory, and how often.

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
pub(super) struct ProgramLog {
    listed: Vec<Listed>,
    /// Index in the list of a program that is started again.
    places: HashMap<(Vec<Vec<u8>>, Vec<u8>), usize>,
    n_bytes: usize,
    n_more: u64,
}

#[derive(Debug)]
struct Listed {
    program: Program,
    /// The last process that executed it.
    last: Option<OwnedFd>,
}

impl ProgramLog {
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

    /// Returns all programs, with exit codes, once the processes have ended.
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

/// Returns the arguments that a result reports, and whether some are missing.
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
    fn equal_programs_in_one_folder_are_listed_once() {
        let mut program_log = ProgramLog::default();
        for (words, folder) in [
            ([&b"cc"[..], b"a.c"], "/a"),
            ([b"cc", b"a.c"], "/a"),
            ([b"cc", b"a.c"], "/b"),
            ([b"cc", b"b.c"], "/a"),
        ] {
            program_log.add(&argv(&words), folder.into(), None);
        }
        let programs = program_log.take();
        assert_eq!(
            programs
                .listed
                .iter()
                .map(|program| program.count)
                .collect::<Vec<_>>(),
            [2, 1, 1]
        );
        assert_eq!((programs.n_more, programs.n_started()), (0, 4));
        assert!(program_log.take().is_empty());
    }

    #[test]
    fn arguments_keep_their_bytes_and_long_ones_are_truncated() {
        let mut program_log = ProgramLog::default();
        program_log.add(&argv(&[b"\xff\x1b", b""]), b"/\xfe".to_vec(), None);
        let words: Vec<Vec<u8>> = (0..100_000).map(|_| b"x".to_vec()).collect();
        program_log.add(
            &Arguments {
                words,
                truncated: false,
            },
            b"/".to_vec(),
            None,
        );
        program_log.add(&argv(&[&vec![b'y'; 128 << 10]]), b"/".to_vec(), None);
        let [odd, many, long] = &program_log.take().listed[..] else {
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
        let mut program_log = ProgramLog::default();
        for n in 0..1000_u32 {
            program_log.add(
                &argv(&[b"true", n.to_string().as_bytes()]),
                b"/".to_vec(),
                None,
            );
        }
        let programs = program_log.take();
        assert_eq!(
            (programs.listed.len(), programs.n_more),
            (MAX_PROGRAMS, 800)
        );
        for n in 0..100_u32 {
            program_log.add(
                &argv(&[&vec![b'x'; 2000], n.to_string().as_bytes()]),
                b"/".to_vec(),
                None,
            );
        }
        let programs = program_log.take();
        assert!(
            programs.listed.len() < 40 && programs.n_started() == 100 && !programs.is_too_much()
        );
    }
}
