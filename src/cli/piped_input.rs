//! What a pipe or a file on the standard input adds to a task.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::PollFd;
use nix::poll::PollFlags;
use nix::poll::PollTimeout;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use nix::unistd::Whence;
use nix::unistd::lseek;

use podbay_event::ByteSize;

/// Most bytes of the standard input that are added to a task.
const MOST: usize = 256 << 10;
/// A pipe that brought nothing for so long has nothing to say.
const PATIENCE: Duration = Duration::from_secs(2);

/// What became of the standard input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piped {
    /// There is no pipe and no file, or it is empty.
    Nothing,
    /// It brought nothing in time, and is not read.
    Silent,
    Text {
        text: String,
        is_cut: bool,
    },
}

impl Piped {
    /// Reads the standard input, if it is a pipe or a file. To be called where it may block.
    pub(super) fn read() -> io::Result<Self> {
        let stdin = io::stdin();
        let file = File::from(stdin.as_fd().try_clone_to_owned()?);
        let kind = SFlag::from_bits_truncate(fstat(&file)?.st_mode & SFlag::S_IFMT.bits());
        if kind == SFlag::S_IFREG {
            Self::of_file(&file)
        } else if kind == SFlag::S_IFIFO {
            Self::of_pipe(file, PATIENCE)
        } else {
            Ok(Self::Nothing)
        }
    }

    /// Reads a file from its beginning. Where somebody has read some of it, such as a loop over its
    /// lines, it is theirs; and the place that they read on from stays as it is.
    fn of_file(file: &File) -> io::Result<Self> {
        if lseek(file, 0, Whence::SeekCur)? != 0 {
            return Ok(Self::Nothing);
        }
        let mut bytes = vec![0; MOST + 1];
        let mut n_read = 0;
        while n_read < bytes.len() {
            match file.read_at(&mut bytes[n_read..], n_read as u64)? {
                0 => break,
                n => n_read += n,
            }
        }
        bytes.truncate(n_read);
        Ok(Self::of(bytes))
    }

    fn of_pipe(mut pipe: File, patience: Duration) -> io::Result<Self> {
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        loop {
            let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
            match nix::poll::poll(&mut polled, timeout) {
                Ok(0) => return Ok(Self::Silent),
                Ok(_) => break,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut bytes = Vec::new();
        pipe.by_ref()
            .take(MOST as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(Self::of(bytes))
    }

    fn of(mut bytes: Vec<u8>) -> Self {
        let is_cut = bytes.len() > MOST;
        bytes.truncate(MOST);
        if bytes.is_empty() {
            return Self::Nothing;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Self::Text { text, is_cut }
    }

    /// Says what is read of it, if there is anything to say.
    pub(super) fn notice(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Silent => Some(
                "the standard input is a pipe that brought nothing for 2 seconds: it is not read \
                 (`</dev/null` says that there is none)"
                    .to_owned(),
            ),
            Self::Text { text, is_cut } => {
                let size = ByteSize::new(text.len() as u64).rounded();
                let part = if *is_cut { "the first " } else { "" };
                Some(format!(
                    "added to the task: {part}{size} of the standard input"
                ))
            }
        }
    }

    /// Returns what the model reads behind the task.
    pub(super) fn material(self) -> Option<String> {
        let Self::Text { text, is_cut } = self else {
            return None;
        };
        let mut material = format!("The user's standard input:\n{text}");
        if !text.ends_with('\n') {
            material.push('\n');
        }
        if is_cut {
            let _ = writeln!(material, "[cut: this is its first {} KiB]", MOST >> 10);
        }
        Some(material)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::io::SeekFrom;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    fn text(text: &str) -> Piped {
        Piped::Text {
            text: text.to_owned(),
            is_cut: false,
        }
    }

    fn pipe() -> (File, File) {
        let (reader, writer): (OwnedFd, OwnedFd) = nix::unistd::pipe().expect("a pipe");
        (reader.into(), writer.into())
    }

    #[test]
    fn a_file_is_read_and_its_place_is_kept() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"one\ntwo\n").expect("written");
        file.rewind().expect("a file");
        assert_eq!(Piped::of_file(&file).expect("read"), text("one\ntwo\n"));
        assert_eq!(file.stream_position().expect("a file"), 0);
        // A loop has read its first line.
        file.seek(SeekFrom::Start(4)).expect("a file");
        assert_eq!(Piped::of_file(&file).expect("read"), Piped::Nothing);
    }

    #[test]
    fn a_pipe_is_read_to_its_end_unless_it_brings_nothing() {
        let (reader, mut writer) = pipe();
        let writing = std::thread::spawn(move || {
            writer.write_all(b"a ").expect("written");
            writer.write_all(b"log").expect("written");
        });
        let read = Piped::of_pipe(reader, Duration::from_mins(1)).expect("read");
        writing.join().expect("written");
        assert_eq!(read, text("a log"));
        let (reader, writer) = pipe();
        let read = Piped::of_pipe(reader, Duration::ZERO).expect("read");
        assert_eq!(read, Piped::Silent);
        assert!(read.notice().expect("said").contains("is not read"));
        drop(writer);
        let (reader, writer) = pipe();
        drop(writer);
        let read = Piped::of_pipe(reader, Duration::from_mins(1)).expect("read");
        assert_eq!(read, Piped::Nothing, "it was closed at once");
    }

    #[test]
    fn more_than_there_is_room_for_is_cut_and_said() {
        let cut = Piped::of(vec![b'x'; MOST + 1]);
        let notice = cut.notice().expect("said");
        assert_eq!(
            notice,
            "added to the task: the first 256.0 KiB of the standard input"
        );
        let material = cut.material().expect("there is something");
        assert!(material.ends_with("x\n[cut: this is its first 256 KiB]\n"));
        assert_eq!(
            Piped::of(vec![b'x'; MOST]).material().expect("all").len(),
            MOST + 28
        );
    }
}
