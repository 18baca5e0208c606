use std::fs;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use reqwest::Client;
use reqwest::Response;
use reqwest::StatusCode;
use reqwest::Url;
use reqwest::header;
use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::file;
use super::paths::make_private;
use crate::event::ByteSize;
use crate::event::Progress;
use crate::event::ProgressSink;
use crate::event::Unit;

/// Most redirects from an address to where its file lies.
const MOST_REDIRECTS: u32 = 5;

/// Most connections for one file, however often each of them got a little further.
const MOST_ATTEMPTS: u32 = 100;

/// One file to load, whose content is known beforehand.
///
/// Loading goes on where an earlier try ended, be it of this process or of one that was killed. The file gets its name only when it
/// has the right size and hash; until then it is called `NAME.part`.
#[derive(Clone, Debug)]
pub struct Download {
    pub url: String,
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
    pub to: PathBuf,
    /// What progress is shown under.
    pub task: String,
    /// Bytes that must be free beside the file itself.
    pub room: u64,
}

/// How much is put up with.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long a server may say nothing.
    pub idle: Duration,
    /// Tries in a row that bring not one byte.
    pub retries: u32,
    /// Pause before the first of them; each further one is twice as long.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { idle: Duration::from_mins(1), retries: 5, pause: Duration::from_millis(500) }
    }
}

/// How one connection ended before the file was whole.
enum Ended {
    /// Another try may do better.
    Early(String),
    /// No other try would.
    Fatal(Error),
}

impl Download {
    /// Loads the file. Two processes must not load the same one at once: whoever calls holds a lock.
    pub async fn fetch(
        &self,
        client: &Client,
        patience: &Patience,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let url = Url::parse(&self.url).map_err(|error| self.failed(format!("the address is none: {error}")))?;
        let folder = self.to.parent().unwrap_or(Path::new("/"));
        make_private(folder)?;
        let mut part = Part::open(&self.to, self.size, progress, &self.task, cancel).await?;
        file::check_space(folder, self.size.saturating_sub(part.length) + self.room)?;
        let mut failures = 0;
        for _ in 0..MOST_ATTEMPTS {
            if part.length == self.size {
                let found = part.digest();
                if found == self.sha256 {
                    file::finish(&part.file, &part.path, &self.to)?;
                    self.show(progress, self.size, true);
                    return Ok(());
                }
                // What an earlier process left may have been something else; what this one loaded from start to end is the source's.
                if !part.inherited {
                    file::remove(&part.path)?;
                    return Err(Error::WrongHash { from: shown(&url), expected: self.sha256.clone(), found });
                }
                part.restart()?;
            }
            let before = part.length;
            let ended = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Error::Cancelled { doing: self.task.clone() }),
                ended = self.attempt(client, &url, &mut part, patience.idle, progress) => ended,
            };
            let problem = match ended {
                Ok(()) if part.length == self.size => continue,
                Ok(()) => format!("the connection ended after {} of {} bytes", part.length, self.size),
                Err(Ended::Early(problem)) => problem,
                Err(Ended::Fatal(error)) => return Err(error),
            };
            failures = if part.length > before { 0 } else { failures + 1 };
            if failures > patience.retries {
                return Err(self.failed(problem));
            }
            tracing::info!(%problem, "a download goes on with a new connection");
            tokio::select! {
                () = cancel.cancelled() => return Err(Error::Cancelled { doing: self.task.clone() }),
                () = tokio::time::sleep(patience.pause * 2_u32.pow(failures.min(6))) => {}
            }
        }
        Err(self.failed(format!("{MOST_ATTEMPTS} connections did not bring it to its end")))
    }

    /// Takes what one connection gives.
    async fn attempt(&self, client: &Client, url: &Url, part: &mut Part, idle: Duration, progress: &ProgressSink) -> Result<(), Ended> {
        let mut response = self.ask(client, url, part, idle).await?;
        let header = |name: header::HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let (start, total) = header(header::CONTENT_RANGE).as_deref().and_then(parse_range).unwrap_or_default();
                if total.is_some_and(|total| total != self.size) {
                    return Err(Ended::Fatal(self.wrong_size(total.unwrap_or_default())));
                }
                if start != part.length {
                    part.restart().map_err(Ended::Fatal)?;
                    return Err(Ended::Early("the server sent another part than was asked for".to_owned()));
                }
            }
            StatusCode::OK => {
                // Also when a part was asked for: a server need not know parts, and sends the whole again if the file has changed.
                part.restart().map_err(Ended::Fatal)?;
                if let Some(announced) = response.content_length().filter(|&announced| announced != self.size) {
                    return Err(Ended::Fatal(self.wrong_size(announced)));
                }
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                part.restart().map_err(Ended::Fatal)?;
                return Err(Ended::Early("the server has no such part of the file".to_owned()));
            }
            status if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) => {
                return Err(Ended::Early(format!("the server answered {status}")));
            }
            status => return Err(Ended::Fatal(self.failed(format!("the server answered {status}")))),
        }
        if header(header::CONTENT_ENCODING).is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
            return Err(Ended::Fatal(self.failed("the server sends it compressed, though it was asked not to".to_owned())));
        }
        part.etag = header(header::ETAG).filter(|tag| tag.starts_with('"'));
        let mut shown_at = Instant::now();
        loop {
            let bytes = match tokio::time::timeout(idle, response.chunk()).await {
                Err(_) => return Err(Ended::Early(format!("the server said nothing for {} s", idle.as_secs()))),
                Ok(Err(error)) => return Err(Ended::Early(chain(&error))),
                Ok(Ok(None)) => return Ok(()),
                Ok(Ok(Some(bytes))) => bytes,
            };
            if part.length + bytes.len() as u64 > self.size {
                file::remove(&part.path).map_err(Ended::Fatal)?;
                return Err(Ended::Fatal(self.failed(format!("the server sends more than the {} bytes of the file", self.size))));
            }
            part.write(&bytes).map_err(Ended::Fatal)?;
            if shown_at.elapsed() > Duration::from_millis(100) {
                shown_at = Instant::now();
                self.show(progress, part.length, false);
            }
        }
    }

    /// Sends the request, and again to wherever the answer points.
    async fn ask(&self, client: &Client, url: &Url, part: &Part, idle: Duration) -> Result<Response, Ended> {
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            // A proxy on the way might otherwise compress what is compressed already, and lengths would mean nothing.
            let mut request = client.get(url.clone()).header(header::ACCEPT_ENCODING, "identity");
            if part.length > 0 {
                request = request.header(header::RANGE, format!("bytes={}-", part.length));
                if let Some(etag) = &part.etag {
                    request = request.header(header::IF_RANGE, etag);
                }
            }
            let response = match tokio::time::timeout(idle, request.send()).await {
                Err(_) => return Err(Ended::Early(format!("the server did not answer for {} s", idle.as_secs()))),
                Ok(Err(error)) => return Err(Ended::Early(chain(&error))),
                Ok(Ok(response)) => response,
            };
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let target = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
            let Some(next) = target.and_then(|target| url.join(target).ok()) else {
                return Err(Ended::Fatal(self.failed(format!("the server answered {} without saying where to", response.status()))));
            };
            if next.scheme() != "https" && next.scheme() != url.scheme() {
                return Err(Ended::Fatal(self.failed(format!("the server points to `{}`, which is not encrypted", shown(&next)))));
            }
            url = next;
        }
        Err(Ended::Fatal(self.failed(format!("more than {MOST_REDIRECTS} redirects"))))
    }

    fn show(&self, progress: &ProgressSink, done: u64, finished: bool) {
        progress(bytes_done(&self.task, done, self.size, finished));
    }

    fn failed(&self, problem: String) -> Error {
        Error::Download { url: Url::parse(&self.url).map_or_else(|_| self.url.clone(), |url| shown(&url)), problem }
    }

    fn wrong_size(&self, found: u64) -> Error {
        self.failed(format!("the server's file has {found} bytes instead of {}", self.size))
    }
}

/// A file that is not whole yet, and the hash of what is there.
struct Part {
    path: PathBuf,
    file: fs::File,
    length: u64,
    hasher: Sha256,
    /// Whether some of it was there when this process began.
    inherited: bool,
    /// Of the answer that the bytes come from; an earlier process's is not known.
    etag: Option<String>,
}

impl Part {
    async fn open(to: &Path, size: u64, progress: &ProgressSink, task: &str, cancel: &CancellationToken) -> Result<Self, Error> {
        let path = file::part_of(to);
        let (progress, task, cancel) = (progress.clone(), task.to_owned(), cancel.clone());
        // Hashing gigabytes that are there already takes seconds.
        let open = move || Self::open_blocking(path, size, &progress, &task, &cancel);
        tokio::task::spawn_blocking(open).await.expect("reading a file does not panic")
    }

    fn open_blocking(path: PathBuf, size: u64, progress: &ProgressSink, task: &str, cancel: &CancellationToken) -> Result<Self, Error> {
        let failed = |source| Error::File { doing: "open", path: path.clone(), source };
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(&path).map_err(failed)?;
        let (mut hasher, mut length) = (Sha256::new(), 0);
        let mut buffer = vec![0; 1 << 20];
        loop {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled { doing: task.to_owned() });
            }
            let n = file.read(&mut buffer).map_err(failed)?;
            if n == 0 {
                break;
            }
            hasher.update(&buffer[..n]);
            length += n as u64;
            progress(Progress { detail: "checking what is here".to_owned(), ..bytes_done(task, length, size, false) });
        }
        let mut part = Self { path, file, length, hasher, inherited: length > 0, etag: None };
        if part.length > size {
            part.restart()?;
        }
        Ok(part)
    }

    fn restart(&mut self) -> Result<(), Error> {
        use std::io::Seek;
        self.file.set_len(0).and_then(|()| self.file.rewind()).map_err(|source| Error::File {
            doing: "empty",
            path: self.path.clone(),
            source,
        })?;
        self.hasher = Sha256::new();
        self.length = 0;
        self.inherited = false;
        self.etag = None;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|source| Error::File { doing: "write", path: self.path.clone(), source })?;
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn digest(&self) -> String {
        file::hex(&self.hasher.clone().finalize())
    }
}

/// Returns where a part begins and how long the whole is: `bytes 5-9/10`.
fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, total.parse().ok()))
}

pub(super) fn bytes_done(task: &str, done: u64, total: u64, finished: bool) -> Progress {
    Progress {
        task: task.to_owned(),
        done,
        total: Some(total),
        unit: Unit::Bytes,
        detail: ByteSize::mib(total >> 20).to_string(),
        finished,
    }
}

/// Returns an address as it may be shown: one of a person's own mirror may hold a password.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    if !url.username().is_empty() || url.password().is_some() {
        // Both only fail for addresses that can hold neither.
        let _ = url.set_username("***");
        let _ = url.set_password(None);
    }
    url.to_string()
}

/// Returns an error with its causes, without the address, which is said already.
pub(super) fn chain(error: &reqwest::Error) -> String {
    let mut text = "the connection failed".to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_part_is_read() {
        assert_eq!(parse_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse_range("bytes 5-9/*"), Some((5, None)));
        for other in ["", "bytes */10", "bytes 5/10", "lines 5-9/10"] {
            assert_eq!(parse_range(other), None, "{other}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        let url = Url::parse("https://me:sesame@mirror.example/a?token=sesame").expect("an address");
        assert_eq!(shown(&url), "https://***@mirror.example/a");
    }
}
