//! Jobs: commands that stay in the sandbox of `podbay up` after `podbay sh --detach` has returned.
//!
//! Each has a folder with a record, the end of whose writer is told by a lock, and its output, of
//! which a bounded part is kept.

use std::fmt;
use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde::Serialize;

use podbay_event::InstanceId;

use super::State;
use super::log_file::lock_soon;

/// Most bytes of output that are kept of one job.
const MOST_OUTPUT: u64 = 16 << 20;

/// Written where output was left out.
const CUT: &[u8] = b"\n[podbay: 16 MiB are kept of a job's output; the rest is left out]\n";

/// How long, and how many, jobs that have ended are remembered.
const REMEMBERED: Duration = Duration::from_hours(7 * 24);
const MOST_ENDED: usize = 100;

/// Longest record.
const LONGEST: u64 = 64 << 10;

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    pub id: String,
    /// The project's folder.
    pub project: String,
    /// The command line in words.
    pub command: String,
    pub started_at: Timestamp,
    #[serde(flatten)]
    pub state: JobState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobState {
    Starting,
    /// `pid` is of the process on this machine that holds the job.
    Running {
        pid: u32,
    },
    Ended {
        exit_code: u8,
        /// Why, where the code alone does not say it.
        note: Option<String>,
        ended_at: Timestamp,
    },
    /// It did not start, or the process that held it was killed.
    Failed {
        problem: String,
    },
}

/// The jobs of this user.
#[derive(Clone, Debug)]
pub struct Jobs {
    folder: PathBuf,
}

/// A job, as the process that holds it writes it.
#[derive(Debug)]
pub struct JobWriter {
    folder: PathBuf,
    record: JobRecord,
    log: File,
    n_written: u64,
    /// Held for as long as this process lives.
    _lock: File,
}

impl Jobs {
    pub fn of(state: &State) -> Self {
        Self {
            folder: state.jobs(),
        }
    }

    /// Makes the folder of a job that is about to start; those that ended long ago go.
    pub fn begin(&self, project: &str, command: &str) -> io::Result<JobRecord> {
        self.forget_old()?;
        let record = JobRecord {
            id: InstanceId::random().to_string(),
            project: project.to_owned(),
            command: command.to_owned(),
            started_at: Timestamp::now(),
            state: JobState::Starting,
        };
        let folder = self.folder.join(&record.id);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        write_record(&folder, &record)?;
        Ok(record)
    }

    /// Opens a job to write it, in the process that holds it.
    pub fn hold(&self, id: &str) -> io::Result<JobWriter> {
        let folder = self.place(id).ok_or(io::ErrorKind::NotFound)?;
        let open = |name: &str| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(folder.join(name))
        };
        let lock = open("lock")?;
        lock_soon(&lock)?;
        Ok(JobWriter {
            record: read_record(&folder)?,
            log: open("log")?,
            n_written: 0,
            _lock: lock,
            folder,
        })
    }

    /// Returns all jobs, the newest first.
    pub fn list(&self) -> io::Result<Vec<JobRecord>> {
        let mut records = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            // One that is being made or removed has no record.
            records.extend(self.read(&entry?.file_name().to_string_lossy()));
        }
        records.sort_by_key(|job| std::cmp::Reverse(job.started_at));
        Ok(records)
    }

    /// Returns a job by its id, or by a beginning that only it has.
    pub fn find(&self, id: &str) -> io::Result<Option<JobRecord>> {
        let mut found = self
            .list()?
            .into_iter()
            .filter(|record| !id.is_empty() && record.id.starts_with(id));
        Ok(found.next().filter(|_| found.next().is_none()))
    }

    /// Returns what a job has printed from a byte on, at most 64 KiB.
    pub fn output(&self, id: &str, from: u64) -> io::Result<Vec<u8>> {
        let folder = self.place(id).ok_or(io::ErrorKind::NotFound)?;
        let mut log = match File::open(folder.join("log")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        log.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        log.take(64 << 10).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read(&self, id: &str) -> Option<JobRecord> {
        let folder = self.place(id)?;
        let mut record = read_record(&folder).ok()?;
        let is_held = || {
            let lock = File::open(folder.join("lock"));
            lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
        };
        if matches!(record.state, JobState::Running { .. }) && !is_held() {
            // It may have ended in between.
            record = read_record(&folder).ok()?;
            if matches!(record.state, JobState::Running { .. }) {
                record.state = JobState::Failed {
                    problem: "the process that held it was killed".to_owned(),
                };
            }
        }
        Some(record)
    }

    fn place(&self, id: &str) -> Option<PathBuf> {
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_id.then(|| self.folder.join(id))
    }

    fn forget_old(&self) -> io::Result<()> {
        let ended = self
            .list()?
            .into_iter()
            .filter(|job| matches!(job.state, JobState::Ended { .. } | JobState::Failed { .. }));
        for (number, job) in ended.enumerate() {
            let age = Timestamp::now().duration_since(job.started_at);
            let is_old = Duration::try_from(age).is_ok_and(|age| age > REMEMBERED);
            if is_old || number >= MOST_ENDED {
                let _ = fs::remove_dir_all(self.folder.join(&job.id));
            }
        }
        Ok(())
    }
}

impl JobWriter {
    pub fn record(&self) -> &JobRecord {
        &self.record
    }

    pub fn set(&mut self, state: JobState) -> io::Result<()> {
        self.record.state = state;
        write_record(&self.folder, &self.record)
    }

    /// Keeps output, as far as there is room for it.
    pub fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = MOST_OUTPUT.saturating_sub(self.n_written);
        if room == 0 {
            return Ok(());
        }
        let n_kept = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.log.write_all(&bytes[..n_kept])?;
        self.n_written += n_kept as u64;
        if self.n_written == MOST_OUTPUT {
            self.log.write_all(CUT)?;
        }
        Ok(())
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Running { .. } => f.write_str("running"),
            Self::Ended {
                exit_code, note, ..
            } => {
                write!(f, "exit code {exit_code}")?;
                note.as_ref().map_or(Ok(()), |note| write!(f, ": {note}"))
            }
            Self::Failed { problem } => write!(f, "failed: {problem}"),
        }
    }
}

fn read_record(folder: &Path) -> io::Result<JobRecord> {
    let mut bytes = Vec::new();
    let file = File::open(folder.join("job.json"))?;
    file.take(LONGEST).read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes).map_err(io::Error::from)
}

/// Readers see the old record or the new one.
fn write_record(folder: &Path, record: &JobRecord) -> io::Result<()> {
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(&serde_json::to_vec(record)?)?;
    new.persist(folder.join("job.json"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs() -> (tempfile::TempDir, Jobs) {
        let temp = tempfile::tempdir().expect("a folder");
        let state = State::open(&temp.path().join("state")).expect("opens");
        (temp, Jobs::of(&state))
    }

    #[test]
    fn a_job_is_found_by_the_beginning_of_its_id_and_tells_its_end() {
        let (_temp, jobs) = jobs();
        let id = jobs.begin("/project", "sleep 9").expect("made").id;
        let mut writer = jobs.hold(&id).expect("held");
        assert!(jobs.hold(&id).is_err(), "one process holds it");
        writer.set(JobState::Running { pid: 7 }).expect("written");
        writer.keep(b"hello\n").expect("kept");
        let found = || jobs.find(&id[..4]).expect("read").expect("there");
        assert_eq!(found().state, JobState::Running { pid: 7 });
        assert_eq!(jobs.output(&id, 2).expect("read"), b"llo\n");
        let ended = JobState::Ended {
            exit_code: 3,
            note: None,
            ended_at: Timestamp::now(),
        };
        writer.set(ended.clone()).expect("written");
        drop(writer);
        assert_eq!(found().state, ended);
        assert_eq!(found().state.to_string(), "exit code 3");
        assert_eq!(jobs.find("").expect("read"), None);
        assert_eq!(jobs.find("../x").expect("read"), None);
    }

    #[test]
    fn a_job_whose_process_was_killed_is_not_running() {
        let (_temp, jobs) = jobs();
        let id = jobs.begin("/project", "sleep 9").expect("made").id;
        let mut writer = jobs.hold(&id).expect("held");
        writer.set(JobState::Running { pid: 7 }).expect("written");
        drop(writer);
        let state = jobs.find(&id).expect("read").expect("there").state;
        assert!(matches!(state, JobState::Failed { .. }), "{state}");
    }

    #[test]
    fn output_is_bounded_and_so_is_what_is_remembered() {
        let (_temp, jobs) = jobs();
        let id = jobs.begin("/project", "yes").expect("made").id;
        let mut writer = jobs.hold(&id).expect("held");
        let piece = vec![b'y'; 5 << 20];
        for _ in 0..4 {
            writer.keep(&piece).expect("kept");
        }
        assert_eq!(
            jobs.output(&id, MOST_OUTPUT).expect("read"),
            CUT,
            "said where it is cut"
        );
        drop(writer);
        for _ in 0..MOST_ENDED + 5 {
            let id = jobs.begin("/project", "true").expect("made").id;
            let mut writer = jobs.hold(&id).expect("held");
            let problem = "no".to_owned();
            writer.set(JobState::Failed { problem }).expect("written");
        }
        let n_kept = jobs.list().expect("listed").len();
        assert!(n_kept <= MOST_ENDED + 2, "{n_kept}");
    }
}
