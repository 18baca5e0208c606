//! Answers that the user stored for a project ("always"), in the state folder.
//!
//! Like trust, an answer is bound to one folder at one path: a moved folder, or another folder at
//! the path, has none. Each is about exactly one call, never a pattern.

use std::fs;
use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use podbay_policy::ExactCall;

/// Most bytes of a record.
const LONGEST: u64 = 4 << 20;
/// Most answers of a project; beyond that, rules are the better means.
const MOST: usize = 500;

/// The stored answers of one project.
#[derive(Clone, Debug)]
pub struct Answers {
    file: PathBuf,
    project: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The project's folder.
    project: PathBuf,
    allowed: Vec<ExactCall>,
}

impl Answers {
    /// Names the record of a project; `key` identifies its folder independent of the path.
    pub fn new(folder: &Path, key: &str, project: &Path) -> Self {
        Self {
            file: folder.join(format!("{key}.json")),
            project: project.to_owned(),
        }
    }

    /// Returns the stored answers, the oldest first. A record of another folder is ignored; a
    /// damaged one is an error, so that it is not overwritten while it could still be read.
    pub fn list(&self) -> Result<Vec<ExactCall>, Error> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.file)
        {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.map_err(self.failed("read"))?,
        };
        let mut bytes = Vec::new();
        file.take(LONGEST)
            .read_to_end(&mut bytes)
            .map_err(self.failed("read"))?;
        let damaged = |source| Error::DamagedAnswers {
            path: self.file.clone(),
            source,
        };
        let record: Record = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(if record.project == self.project {
            record.allowed
        } else {
            Vec::new()
        })
    }

    /// Adds an answer.
    pub fn add(&self, exact: &ExactCall) -> Result<(), Error> {
        let mut allowed = self.list()?;
        if allowed.contains(exact) {
            return Ok(());
        }
        if allowed.len() >= MOST {
            return Err(Error::TooManyAnswers { most: MOST });
        }
        allowed.push(exact.clone());
        self.write(allowed)
    }

    /// Removes an answer; returns whether it existed.
    pub fn remove(&self, exact: &ExactCall) -> Result<bool, Error> {
        let mut allowed = self.list()?;
        let before = allowed.len();
        allowed.retain(|other| other != exact);
        if allowed.len() == before {
            return Ok(false);
        }
        self.write(allowed).map(|()| true)
    }

    /// Removes all answers.
    pub fn clear(&self) -> Result<(), Error> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("remove")(error))
            }
            _ => Ok(()),
        }
    }

    fn write(&self, allowed: Vec<ExactCall>) -> Result<(), Error> {
        let record = Record {
            project: self.project.clone(),
            allowed,
        };
        let text = serde_json::to_vec_pretty(&record)
            .map_err(|error| self.failed("write")(error.into()))?;
        // Written atomically, with mode 0600.
        let write = || -> io::Result<()> {
            let mut new =
                tempfile::NamedTempFile::new_in(self.file.parent().unwrap_or(Path::new(".")))?;
            new.write_all(&text)?;
            new.as_file().sync_all()?;
            new.persist(&self.file)?;
            Ok(())
        };
        write().map_err(self.failed("write"))
    }

    fn failed(&self, doing: &'static str) -> impl Fn(io::Error) -> Error + use<> {
        let path = self.file.clone();
        move |source| Error::Answers {
            doing,
            path: path.clone(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn command(text: &str) -> ExactCall {
        ExactCall {
            tool: "bash".into(),
            command: Some(text.into()),
            directory: String::new(),
            paths: Vec::new(),
            with: Vec::new(),
        }
    }

    #[test]
    fn a_stored_answer_is_bound_to_its_folder_until_removed() {
        let temp = tempfile::tempdir().expect("a folder");
        let answers = |key: &str, project: &str| Answers::new(temp.path(), key, Path::new(project));
        let mine = answers("1-2", "/a");
        assert_eq!(mine.list().expect("nothing yet"), []);
        for text in ["make", "cargo test", "make"] {
            mine.add(&command(text)).expect("writes");
        }
        assert_eq!(
            mine.list().expect("reads"),
            [command("make"), command("cargo test")]
        );
        assert_eq!(
            answers("1-3", "/a").list().expect("reads"),
            [],
            "another folder at that path"
        );
        assert_eq!(
            answers("1-2", "/b").list().expect("reads"),
            [],
            "another path with that number"
        );
        let file = temp.path().join("1-2.json");
        assert_eq!(
            fs::metadata(&file).expect("there").permissions().mode() & 0o777,
            0o600
        );
        assert!(
            mine.remove(&command("make")).expect("writes")
                && !mine.remove(&command("make")).expect("reads")
        );
        assert_eq!(mine.list().expect("reads"), [command("cargo test")]);
        mine.clear().expect("removes");
        mine.clear().expect("nothing to remove");
        assert!(!file.exists());
    }

    #[test]
    fn a_damaged_record_is_reported_and_never_overwritten() {
        let temp = tempfile::tempdir().expect("a folder");
        let answers = Answers::new(temp.path(), "1-2", Path::new("/a"));
        let file = temp.path().join("1-2.json");
        for text in [
            "{\"project\": \"/a\", \"allow",
            "",
            "[]",
            "{\"project\": \"/a\", \"allowed\": [{\"tool\": 1}]}",
        ] {
            fs::write(&file, text).expect("written");
            let errors = [
                answers.list().map(drop),
                answers.add(&command("make")),
                answers.remove(&command("make")).map(drop),
            ];
            for error in errors.map(|done| done.expect_err(text)) {
                assert!(
                    error.to_string().contains(&file.display().to_string())
                        && error.hint().contains("move"),
                    "{error}: {}",
                    error.hint()
                );
            }
            assert_eq!(fs::read_to_string(&file).expect("there"), text);
        }
        answers.clear().expect("by the user's word");
        answers.add(&command("make")).expect("writes");
    }

    #[test]
    fn stored_answers_are_bounded() {
        let temp = tempfile::tempdir().expect("a folder");
        let answers = Answers::new(temp.path(), "1-2", Path::new("/a"));
        answers
            .write((0..MOST).map(|n| command(&n.to_string())).collect())
            .expect("writes");
        answers.add(&command("1")).expect("it is there");
        let error = answers.add(&command("x")).expect_err("too many");
        assert!(
            error.hint().contains("podbay config answers"),
            "{}",
            error.hint()
        );
    }
}
