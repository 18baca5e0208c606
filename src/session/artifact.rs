use std::fs;
use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use podbay_event::SessionId;

use super::Error;
use super::Options;
use super::State;
use super::log_file;
use super::state;

const ID_MAX: usize = 64;
/// Most bytes of a page: it goes to a model or a screen, and a single line may be of any length.
const PAGE_MAX: usize = 256 << 10;

/// The large outputs of one session.
#[derive(Clone, Debug)]
pub struct Artifacts {
    folder: PathBuf,
    max: u64,
}

/// An output that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub id: String,
    /// Older artifacts that were deleted to make room.
    pub dropped: Vec<String>,
}

/// Some lines of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactPage {
    /// Bytes that are not UTF-8 are replaced by U+FFFD.
    pub text: String,
    /// The number of the first line, counted from 1.
    pub first: u64,
    pub n_lines: u64,
    /// The number of the next line; `None` at the end.
    pub next: Option<u64>,
    /// Whether a line was truncated.
    pub cut: bool,
    /// Size of the whole artifact in bytes.
    pub bytes: u64,
}

impl Artifacts {
    pub fn new(state: &State, session: &SessionId, options: &Options) -> Self {
        Self {
            folder: state.artifacts(session),
            max: options.artifacts_max.bytes(),
        }
    }

    /// Stores an output under a name made from its call's id; deletes the oldest artifacts where
    /// there is no room for it.
    pub fn store(&self, call: &str, bytes: &[u8]) -> Result<Stored, Error> {
        if bytes.len() as u64 > self.max {
            return Err(Error::ArtifactTooLarge {
                size: bytes.len() as u64,
                max: self.max,
            });
        }
        state::own(&self.folder)?;
        let dropped = self.make_room(bytes.len() as u64)?;
        let write = || -> io::Result<tempfile::NamedTempFile> {
            let mut file = tempfile::Builder::new()
                .prefix(".new-")
                .tempfile_in(&self.folder)?;
            file.write_all(bytes)?;
            Ok(file)
        };
        let mut file = write().map_err(Error::io("write an artifact in", &self.folder))?;
        let name = clean(call);
        for n in 1.. {
            let id = if n == 1 {
                name.clone()
            } else {
                format!("{name}-{n}")
            };
            match file.persist_noclobber(self.folder.join(&id)) {
                Ok(_) => return Ok(Stored { id, dropped }),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                    file = error.file;
                }
                Err(error) => return Err(Error::io("write", self.folder.join(&id))(error.error)),
            }
        }
        unreachable!("a folder does not hold all numbers")
    }

    /// Opens an artifact for reading.
    pub fn open(&self, id: &str) -> Result<File, Error> {
        if id != clean(id) {
            return Err(Error::BadArtifact {
                id: id.chars().take(ID_MAX).collect(),
            });
        }
        let path = self.folder.join(id);
        log_file::open_read(&path).map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                let near = self
                    .all()
                    .unwrap_or_default()
                    .into_iter()
                    .rev()
                    .take(5)
                    .map(|file| file.id)
                    .collect();
                Error::NoArtifact {
                    id: id.to_owned(),
                    near,
                }
            } else {
                Error::io("open", path)(source)
            }
        })
    }

    /// Returns up to `limit` lines from line `first` on, counted from 1.
    pub fn page(&self, id: &str, first: u64, limit: u64) -> Result<ArtifactPage, Error> {
        let file = self.open(id)?;
        let read = || -> io::Result<ArtifactPage> {
            let bytes = file.metadata()?.len();
            Ok(ArtifactPage {
                bytes,
                ..page(BufReader::new(&file), first.max(1), limit)?
            })
        };
        read().map_err(Error::io("read", self.folder.join(id)))
    }

    fn make_room(&self, size: u64) -> Result<Vec<String>, Error> {
        let all = self.all().map_err(Error::io("read", &self.folder))?;
        let mut sum: u64 = all.iter().map(|file| file.size).sum();
        let mut dropped = Vec::new();
        for file in all {
            if sum + size <= self.max {
                break;
            }
            fs::remove_file(self.folder.join(&file.id))
                .map_err(Error::io("remove", self.folder.join(&file.id)))?;
            sum -= file.size;
            dropped.push(file.id);
        }
        Ok(dropped)
    }

    /// Returns all artifacts, the oldest first.
    fn all(&self) -> io::Result<Vec<StoredArtifact>> {
        let mut all = Vec::new();
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            let (metadata, name) = (entry.metadata()?, entry.file_name());
            if let Some(id) = name
                .to_str()
                .filter(|name| metadata.is_file() && !name.starts_with('.'))
            {
                all.push(StoredArtifact {
                    at: metadata.modified()?,
                    id: id.to_owned(),
                    size: metadata.len(),
                });
            }
        }
        all.sort_unstable_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        Ok(all)
    }
}

struct StoredArtifact {
    at: SystemTime,
    id: String,
    size: u64,
}

/// Makes a file name of a call's id, which the model server chose. The result has no path in it,
/// and cleaning it again changes nothing.
fn clean(call: &str) -> String {
    let name: String = call
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(ID_MAX)
        .collect();
    if name.is_empty() {
        "output".to_owned()
    } else {
        name
    }
}

fn page(mut reader: impl BufRead, first: u64, limit: u64) -> io::Result<ArtifactPage> {
    let mut page = ArtifactPage {
        text: String::new(),
        first,
        n_lines: 0,
        next: None,
        cut: false,
        bytes: 0,
    };
    for _ in 1..first {
        if reader.skip_until(b'\n')? == 0 {
            return Ok(page);
        }
    }
    let mut bytes = Vec::new();
    while page.n_lines < limit {
        bytes.clear();
        let room = PAGE_MAX - page.text.len().min(PAGE_MAX);
        if room == 0 {
            break;
        }
        if reader
            .by_ref()
            .take(room as u64)
            .read_until(b'\n', &mut bytes)?
            == 0
        {
            return Ok(page);
        }
        if bytes.last() != Some(&b'\n') && bytes.len() == room && !reader.fill_buf()?.is_empty() {
            // The line does not fit: it starts the next page, unless it is the only one of this
            // page.
            if page.n_lines > 0 {
                break;
            }
            page.cut = true;
            reader.skip_until(b'\n')?;
        }
        page.text.push_str(&String::from_utf8_lossy(&bytes));
        page.n_lines += 1;
    }
    if page.n_lines < limit || !reader.fill_buf()?.is_empty() {
        page.next = Some(first + page.n_lines);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, first: u64, limit: u64, shown: &str, next: Option<u64>) {
        let page = page(text.as_bytes(), first, limit).expect("memory can be read");
        assert_eq!((page.text.as_str(), page.next), (shown, next));
    }

    #[test]
    fn a_page_has_whole_lines_and_the_next_line_number() {
        check("a\nb\nc\n", 1, 2, "a\nb\n", Some(3));
        check("a\nb\nc\n", 3, 2, "c\n", None);
        check("a\nb\nc", 2, 2, "b\nc", None);
        check("a\n", 5, 2, "", None);
        check("", 1, 2, "", None);
    }

    #[test]
    fn a_page_is_bounded_even_for_one_very_long_line() {
        let long = "x".repeat(PAGE_MAX + 10);
        let first = page(format!("a\n{long}\nb\n").as_bytes(), 1, 10).expect("memory can be read");
        assert_eq!(
            (first.text.as_str(), first.next, first.cut),
            ("a\n", Some(2), false)
        );
        let second = page(format!("a\n{long}\nb\n").as_bytes(), 2, 10).expect("memory can be read");
        assert_eq!(
            (second.text.len(), second.next, second.cut),
            (PAGE_MAX, Some(3), true)
        );
    }

    #[test]
    fn an_artifacts_name_is_never_a_path() {
        assert_eq!(clean("../../etc/passwd"), "etcpasswd");
        assert_eq!(clean("call_1-a"), "call_1-a");
        assert_eq!(clean("/.."), "output");
        assert_eq!(clean(&"x".repeat(200)).len(), ID_MAX);
    }
}
