//! Downloads files over HTTP: in several segments at once, resuming earlier attempts, and renaming
//! a file only when it is complete and verified.

mod address;
mod partial_file;
mod probe;
mod remedies;
mod request;
mod segment;

use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use futures::StreamExt;
use futures::TryStreamExt;
use reqwest::Client;
use reqwest::Url;
use tokio_util::sync::CancellationToken;

use self::partial_file::Goal;
use self::partial_file::PartialFile;
use self::probe::SourceInfo;
use self::probe::probe;
use self::remedies::ELSEWHERE;
use self::remedies::NOT_IT;
use self::request::Requester;
use self::segment::Loader;
use super::Error;
use super::atomic_file;
use super::gguf;
use super::paths::make_private;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Unit;

pub use self::request::Hub;

pub(super) use self::address::is_safe;
pub(super) use self::address::shown;
pub(super) use self::partial_file::digest;
pub(super) use self::partial_file::left_of;
pub(super) use self::partial_file::remove_part;
pub(super) use self::request::chain;

/// Attempts of the first request. Nothing is lost when it fails, so an unreachable source is given
/// up soon.
const PROBES: u32 = 2;

/// Largest plausible file, 4 TiB.
pub(super) const MOST: u64 = 1 << 42;

/// One file to download.
///
/// Resumes an earlier attempt, by this process or one that was killed. The file gets its name only
/// when size and hash are right; until then it is called `NAME.part`, and the state of its segments
/// is in `NAME.part.json`.
#[derive(Clone, Debug)]
pub struct Download {
    pub url: String,
    pub expected: ExpectedFile,
    /// The hub of the URL, which is asked for size and hash.
    pub hub: Option<Hub>,
    pub to: PathBuf,
    /// The task under which progress is shown.
    pub task: String,
    /// Bytes that must be free besides the file itself.
    pub room: u64,
    /// Whether it must be a GGUF file.
    pub is_model: bool,
}

/// What is known of a file before the download.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedFile {
    pub size: Option<u64>,
    /// In hexadecimal.
    pub sha256: Option<String>,
}

/// A completed download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedDownload {
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
    /// Whether that hash was known before the download, so that the file was verified.
    pub checked: bool,
}

/// Timeouts, retries and parallelism of a download.
#[derive(Clone, Copy, Debug)]
pub struct DownloadLimits {
    /// Longest time without data.
    pub idle: Duration,
    /// Lowest rate in bytes per second, measured over `idle`; a slower download counts as stalled.
    /// 0: any rate.
    pub slowest: u64,
    /// Attempts in a row that bring less than `least`.
    pub retries: u32,
    /// Bytes that a connection must bring to count as progress, so that a server which cuts every
    /// connection short is given up.
    pub least: u64,
    /// Pause before the first retry; each further one is twice as long.
    pub pause: Duration,
    /// Connections at once for one file.
    pub connections: u32,
    /// Bytes that are worth a connection of their own.
    pub stretch: u64,
}

impl Default for DownloadLimits {
    fn default() -> Self {
        let (idle, pause) = (Duration::from_mins(1), Duration::from_millis(500));
        Self {
            idle,
            slowest: 1 << 10,
            retries: 5,
            least: 64 << 10,
            pause,
            connections: 4,
            stretch: 16 << 20,
        }
    }
}

/// Why one connection ended before its segment was complete.
enum AttemptError {
    /// A retry may succeed.
    Early(String),
    /// It was too slow, however much came.
    Slow(String),
    /// The server does not support ranges; the whole file must be requested.
    Whole,
    /// No retry would succeed.
    Fatal(Error),
}

impl Download {
    /// Downloads the file. The caller holds a lock, since two processes must not download the same
    /// file at once.
    #[boxed]
    pub async fn fetch(
        &self,
        client: &Client,
        patience: &DownloadLimits,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<CompletedDownload, Error> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Error::Cancelled { doing: self.task.clone() }),
            outcome = Box::pin(self.fetch_all(client, patience, progress, cancel)) => outcome,
        }
    }

    async fn fetch_all(
        &self,
        client: &Client,
        patience: &DownloadLimits,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<CompletedDownload, Error> {
        let failed = |problem: String| Error::Download {
            url: self.url.clone(),
            problem,
            remedy: None,
        };
        let url = Url::parse(&self.url)
            .map_err(|error| failed(format!("the address is invalid: {error}")))?;
        // A known hash makes any URL safe enough, such as that of a mirror on the local network.
        let is_good = is_safe(&url) || (url.scheme() == "http" && self.expected.sha256.is_some());
        if !is_good {
            let remedy = Some("name an address that begins with https://");
            return Err(Error::Download {
                url: shown(&url),
                problem: "the address is not encrypted".to_owned(),
                remedy,
            });
        }
        let requester = Requester {
            client,
            url: &url,
            hub: self.hub.as_ref(),
            idle: patience.idle,
        };
        let found = self.request_metadata(&requester, patience).await?;
        if found.goal.size > MOST {
            return Err(requester.error(
                format!(
                    "the server says that it has {} bytes, and no model is that large",
                    found.goal.size
                ),
                ELSEWHERE,
            ));
        }
        let folder = self.to.parent().unwrap_or(Path::new("/"));
        make_private(folder)?;
        // Before any file is created: a file that does not fit leaves nothing behind.
        let left = left_of(&self.to).unwrap_or(0);
        atomic_file::check_space(
            folder,
            found
                .goal
                .size
                .saturating_sub(left)
                .saturating_add(self.room),
        )?;
        let wanted = if found.has_parts {
            (found.goal.size / patience.stretch.max(1)).clamp(1, patience.connections.max(1).into())
        } else {
            1
        };
        let mut part = PartialFile::open(&self.to, found.goal.clone(), wanted)?;
        atomic_file::check_space(
            folder,
            found
                .goal
                .size
                .saturating_sub(part.done())
                .saturating_add(self.room),
        )?;
        loop {
            let was_inherited = part.inherited;
            self.load_all(&requester, &mut part, patience, progress)
                .await?;
            let sha256 = part.digest(&self.task, progress, cancel).await?;
            match &found.goal.sha256 {
                Some(expected) if *expected != sha256 => {
                    // Data of an earlier process may be of another file; data that this process
                    // downloaded from start to end is what the source has.
                    if !was_inherited {
                        remove_part(&self.to)?;
                        return Err(Error::WrongHash {
                            from: shown(&url),
                            expected: expected.clone(),
                            found: sha256,
                        });
                    }
                    tracing::info!(
                        "the data of an earlier attempt was wrong, and is downloaded again"
                    );
                    part.restart(wanted)?;
                }
                expected => {
                    self.check_model(&part, &url)?;
                    part.finish(&self.to)?;
                    progress(bytes_done(
                        &self.task,
                        found.goal.size,
                        found.goal.size,
                        true,
                    ));
                    return Ok(CompletedDownload {
                        size: found.goal.size,
                        sha256,
                        checked: expected.is_some(),
                    });
                }
            }
        }
    }

    /// Requests what is not known of the file from the source.
    async fn request_metadata(
        &self,
        requester: &Requester<'_>,
        patience: &DownloadLimits,
    ) -> Result<SourceInfo, Error> {
        if let ExpectedFile {
            size: Some(size),
            sha256: Some(sha256),
        } = &self.expected
            && (patience.connections <= 1 || *size < patience.stretch)
        {
            let goal = Goal {
                size: *size,
                sha256: Some(sha256.clone()),
                validator: None,
            };
            return Ok(SourceInfo {
                goal,
                announced: false,
                has_parts: false,
            });
        }
        let mut problem = String::new();
        for at in 0..PROBES {
            match probe(requester, &self.expected, self.is_model).await {
                Ok(found) => return Ok(found),
                Err(AttemptError::Fatal(error)) => return Err(error),
                Err(AttemptError::Early(early) | AttemptError::Slow(early)) => problem = early,
                Err(AttemptError::Whole) => {}
            }
            if at + 1 < PROBES {
                tokio::time::sleep(patience.pause).await;
            }
        }
        Err(Error::Download {
            url: shown(requester.url),
            problem,
            remedy: None,
        })
    }

    /// Downloads what is missing, in segments if the server supports ranges, else in one piece.
    async fn load_all(
        &self,
        requester: &Requester<'_>,
        part: &mut PartialFile,
        patience: &DownloadLimits,
        progress: &ProgressSink,
    ) -> Result<(), Error> {
        loop {
            let shown_at = Mutex::new(Instant::now());
            let loader = Loader {
                requester,
                part,
                patience,
                task: &self.task,
                progress,
                shown_at,
            };
            let missing: Vec<_> = part
                .segments
                .iter()
                .filter(|segment| !segment.is_whole())
                .collect();
            if !missing.is_empty() {
                progress(bytes_done(&self.task, part.done(), part.goal.size, false));
            }
            let n = patience.connections.max(1) as usize;
            // The first failure cancels the others; their data stays.
            let loads: Vec<_> = missing
                .into_iter()
                .map(|segment| loader.load(segment))
                .collect();
            let outcome: Result<(), AttemptError> = futures::stream::iter(loads)
                .buffer_unordered(n)
                .try_collect()
                .await;
            part.save()?;
            match outcome {
                Ok(()) => return Ok(()),
                Err(AttemptError::Fatal(error)) => return Err(error),
                Err(AttemptError::Whole) if part.segments.len() > 1 => {
                    tracing::info!(
                        "the server does not support ranges; the file is downloaded in one piece"
                    );
                    part.restart(1)?;
                }
                Err(AttemptError::Whole) => {
                    return Err(requester.error(
                        "the server sends another part than it is asked for",
                        ELSEWHERE,
                    ));
                }
                Err(AttemptError::Early(problem) | AttemptError::Slow(problem)) => {
                    return Err(Error::Download {
                        url: shown(requester.url),
                        problem,
                        remedy: None,
                    });
                }
            }
        }
    }

    /// A file without a known hash must at least be a complete model.
    fn check_model(&self, part: &PartialFile, url: &Url) -> Result<(), Error> {
        if !self.is_model {
            return Ok(());
        }
        let file = std::fs::File::open(&part.path).map_err(|source| Error::File {
            doing: "read",
            path: part.path.clone(),
            source,
        })?;
        match gguf::read(file) {
            Ok(_) => Ok(()),
            Err(gguf::GgufError::Unreadable(source)) => Err(Error::File {
                doing: "read",
                path: part.path.clone(),
                source,
            }),
            Err(problem) => {
                remove_part(&self.to)?;
                let problem = format!("the file is not a model: {problem}");
                Err(Error::Download {
                    url: shown(url),
                    problem,
                    remedy: Some(NOT_IT),
                })
            }
        }
    }
}

pub(super) fn bytes_done(task: &str, done: u64, total: u64, finished: bool) -> Progress {
    Progress {
        task: task.to_owned(),
        done,
        total: Some(total),
        unit: Unit::Bytes,
        detail: String::new(),
        finished,
    }
}
