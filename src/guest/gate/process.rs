//! What is read of a process that waits: its arguments, where it is.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

/// Most bytes of arguments that are looked at.
const MAX_BYTES: u64 = 256 * 1024;

/// A program that stands there and has not begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) argv: Arguments,
}

/// The words a program is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) words: Vec<Vec<u8>>,
    /// Whether there are more of them than were read.
    pub(crate) truncated: bool,
}

impl Arguments {
    /// Takes what the kernel says of a process: each word with a zero byte behind it.
    fn parse(mut bytes: Vec<u8>) -> Self {
        let truncated = bytes.len() as u64 > MAX_BYTES;
        bytes.truncate(MAX_BYTES as usize);
        if bytes.last() == Some(&0) {
            bytes.pop();
        } else if bytes.is_empty() {
            return Self::default();
        }
        Self { words: bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect(), truncated }
    }
}

/// Reads what a process executes by now; `None`: it is gone.
pub(crate) fn begun(process: i32) -> Option<Begun> {
    let mut bytes = Vec::with_capacity(1024);
    File::open(format!("/proc/{process}/cmdline")).ok()?.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    Some(Begun { argv: Arguments::parse(bytes) })
}

/// Returns where a process is.
pub(crate) fn directory(process: i32) -> Vec<u8> {
    fs::read_link(format!("/proc/{process}/cwd")).map(|path| path.into_os_string().into_vec()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_empty_and_need_not_end() {
        let words = |bytes: &[u8]| Arguments::parse(bytes.to_vec()).words;
        assert_eq!(words(b"a\0\0b\0"), [&b"a"[..], b"", b"b"]);
        assert_eq!(words(b"a\0"), [b"a"]);
        assert_eq!(words(b"\0"), [b""]);
        assert_eq!(words(b"a b"), [b"a b"]);
        assert_eq!(words(b""), Vec::<Vec<u8>>::new());
        let long = Arguments::parse([b"x\0".repeat(200 * 1024)].concat());
        assert_eq!((long.truncated, long.words.len()), (true, 128 * 1024));
    }

    #[test]
    fn this_process_is_read_as_it_was_started() {
        let begun = begun(std::process::id() as i32).expect("it is there");
        let own: Vec<Vec<u8>> = std::env::args_os().map(OsStringExt::into_vec).collect();
        assert_eq!(begun.argv, Arguments { words: own, truncated: false });
        assert!(super::begun(i32::MAX).is_none());
    }
}
