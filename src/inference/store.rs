use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use reqwest::Url;
use tokio_util::sync::CancellationToken;

use super::Catalogue;
use super::DownloadRecord;
use super::Entry;
use super::Error;
use super::Machine;
use super::Model;
use super::Options;
use super::Paths;
use super::Source;
use super::atomic_file;
use super::catalogue;
use super::download::digest;
use super::download::left_of;
use super::download::remove_part;
use super::fetch;
use super::fetch::Fetcher;
use super::model_choice;
use super::model_file::FileSource;
use super::model_file::ModelFile;
use super::opened_model::open;
use super::own_folder;
use super::record;
use super::reference;
use podbay_engine::FileLock;
use podbay_event::ByteSize;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Unit;

/// How long the hub may take to answer.
const HUB_ANSWERS: Duration = Duration::from_secs(4);

/// The models on this machine, and those that could be downloaded.
pub struct Store {
    options: Options,
    pub(super) paths: Paths,
    offline: bool,
    pub(super) hub: Url,
    pub(super) catalogue: Catalogue,
}

/// A model in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedModel {
    /// Its unique name: its id, or its path where other models have that id too.
    pub name: String,
    pub entry: Entry,
    pub files: Vec<ListedFile>,
    pub presence: Presence,
    /// What is wrong with its record or files, if that makes it unusable.
    pub damage: Option<String>,
    /// Memory that it takes with 8k tokens of context; 0 if its size is unknown.
    pub memory: u64,
    /// What was wrong with files that were just downloaded again.
    pub replaced: Vec<String>,
}

/// A file of a model in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedFile {
    /// Its path, present or future.
    pub path: PathBuf,
    /// Its source, for the user.
    pub origin: String,
    /// Its record, once it was downloaded.
    pub record: Option<DownloadRecord>,
}

/// How much of a model is on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Absent,
    /// This many bytes of it.
    Partial(u64),
    /// A file is present, but its record is damaged.
    Damaged,
    Here,
}

/// The default model of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    pub id: String,
    /// Why, in one sentence.
    pub reason: String,
}

impl Store {
    /// With `offline`, nothing is downloaded.
    pub fn new(options: &Options, paths: &Paths, offline: bool) -> Result<Self, Error> {
        let hub = fetch::hub(&Options {
            hub_token_env: None,
            ..options.clone()
        })?
        .base;
        Ok(Self {
            options: options.clone(),
            paths: paths.clone(),
            offline,
            hub,
            catalogue: Catalogue::load(options),
        })
    }

    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Returns the model of the settings without downloading it; `None` for a path.
    pub fn wanted(&self) -> Result<Option<ListedModel>, Error> {
        let entry = match self.name() {
            None => Some(self.usual()),
            Some(name) => self.find(name)?,
        };
        Ok(entry.map(|entry| self.look(&entry)))
    }

    fn name(&self) -> Option<&str> {
        self.options
            .model
            .as_deref()
            .map(str::trim)
            .filter(|name| !name.is_empty())
    }

    /// Returns the default model; nothing large is downloaded for it.
    fn usual(&self) -> Entry {
        self.best_here(&Machine::detect(&self.options))
            .unwrap_or_else(|| catalogue::smoke().clone())
    }

    /// Returns the model of the settings. A named one is downloaded if it is missing; the default
    /// downloads nothing large unasked.
    #[boxed]
    pub async fn resolve(
        &self,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<Model, Error> {
        match self.name() {
            None => self.have_or_open(&self.usual(), progress, cancel).await,
            Some(name) => match self.find(name)? {
                Some(entry) => self.have_or_open(&entry, progress, cancel).await,
                None => open(self.path(name)?).await,
            },
        }
    }

    /// Opens what lies in the user's own folder; has the model loaded where it does not.
    async fn have_or_open(
        &self,
        entry: &Entry,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<Model, Error> {
        match own_folder::find(entry, &self.pieces(entry)) {
            Some(path) => open(path).await,
            None => self.have(entry, progress, cancel).await,
        }
    }

    /// Downloads a model, or verifies a present one by its hash and downloads it again if it is
    /// damaged.
    #[boxed]
    pub async fn pull(
        &self,
        name: &str,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<ListedModel, Error> {
        let entry = if let Some(entry) = self.find(name)? {
            entry
        } else {
            let path = self.path(name)?;
            let path = std::path::absolute(&path).map_err(|source| Error::File {
                doing: "find",
                path,
                source,
            })?;
            // A file that cannot be served is not copied.
            open(path.clone()).await?;
            reference::of_path(&path)
        };
        let pieces = self.pieces(&entry);
        if let Some(path) = own_folder::find(&entry, &pieces) {
            open(path.clone()).await?;
            let file = ListedFile {
                origin: path.display().to_string(),
                path,
                record: None,
            };
            return Ok(ListedModel {
                files: vec![file],
                ..self.named(&entry)
            });
        }
        // Checked before the download, whose record could not be written otherwise.
        pieces
            .iter()
            .try_for_each(|piece| record::make_way(&self.paths.models().join(&piece.to)))?;
        let mut replaced = Vec::new();
        for piece in pieces {
            replaced.extend(self.ensure(&entry, &piece, true, progress, cancel).await?);
        }
        open(self.paths.models().join(self.first(&entry))).await?;
        Ok(ListedModel {
            replaced,
            ..self.named(&entry)
        })
    }

    /// Lists every named model, and those that were downloaded by URL.
    pub fn list(&self) -> Vec<ListedModel> {
        let mut listed: Vec<ListedModel> = self
            .catalogue
            .entries
            .iter()
            .map(|entry| self.look(entry))
            .collect();
        for (name, entry) in self.named_unlisted() {
            listed.push(ListedModel {
                name,
                ..self.look(&entry)
            });
        }
        listed
    }

    /// Returns one model.
    pub fn info(&self, name: &str) -> Result<ListedModel, Error> {
        self.find_here(name)?
            .map(|entry| self.named(&entry))
            .ok_or_else(|| self.unknown(name))
    }

    /// Refuses a name that no model has, and a path at which there is none.
    #[boxed]
    pub async fn check(&self, name: &str) -> Result<(), Error> {
        match self.find(name)? {
            Some(_) => Ok(()),
            None => open(self.path(name)?).await.map(drop),
        }
    }

    /// Removes a model's files, complete or not; returns whether there were any.
    #[boxed]
    pub async fn remove(&self, name: &str) -> Result<bool, Error> {
        let entry = self.find_here(name)?.ok_or_else(|| self.unknown(name))?;
        let (mut removed, pieces) = (false, self.pieces(&entry));
        // Before any of them is removed: a file without a record would belong to no model.
        pieces
            .iter()
            .try_for_each(|piece| record::make_way(&self.paths.models().join(&piece.to)))?;
        for piece in pieces {
            let to = self.paths.models().join(&piece.to);
            let busy = CancellationToken::new();
            let (folder, name) = (self.paths.locks(), lock_of(&piece));
            let lock = FileLock::wait(&folder, &name, || busy.cancel(), &busy);
            let _lock = lock.await.map_err(|_| Error::InUse {
                name: entry.id.clone(),
                by: "another Podbay is downloading it",
            })?;
            let package = fetch::package_of(&to);
            // An unlisted file may have a package's name; only ours has a package.
            if piece.from == FileSource::Package {
                removed |= remove_part(&package)? | atomic_file::remove(&package)?;
            }
            removed |= remove_part(&to)? | atomic_file::remove(&to)?;
            record::forget(&to)?;
            if let Some(folder) = to.parent().filter(|folder| *folder != self.paths.models()) {
                // The folder may have other files.
                let _ = std::fs::remove_dir(folder);
            }
        }
        Ok(removed)
    }

    /// Returns the default model of this machine.
    pub fn choice(&self, machine: &Machine) -> Result<ModelChoice, Error> {
        let entry = model_choice::choose(&self.catalogue.entries, machine, &self.options);
        let entry = entry.ok_or(Error::NoneFits {
            memory: ByteSize::new(machine.memory),
        })?;
        Ok(ModelChoice {
            id: entry.id.clone(),
            reason: model_choice::reason(entry, machine, &self.options),
        })
    }

    /// Returns whether a model that can write code is present.
    pub fn has_one(&self) -> bool {
        self.best_here(&Machine::detect(&self.options)).is_some()
    }

    /// Returns whether the hub answers within a few seconds.
    #[boxed]
    pub async fn hub_answers(&self) -> Result<bool, Error> {
        if self.offline {
            return Ok(false);
        }
        fetch::hub_answers(&self.options, HUB_ANSWERS).await
    }

    /// Returns the model with this name, URL or path of a download; `None` for text that may be a
    /// path.
    pub(super) fn find(&self, name: &str) -> Result<Option<Entry>, Error> {
        if let Some(entry) = self.catalogue.find(name) {
            return Ok(Some(entry.clone()));
        }
        if let Some(entry) = reference::parse(name, &self.hub)? {
            return Ok(Some(entry));
        }
        self.find_unlisted(name)
    }

    fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let path = reference::expand(name);
        let is_path = name.contains('/')
            || path
                .extension()
                .is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
            || path.exists();
        if is_path {
            Ok(path)
        } else {
            Err(self.unknown(name))
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let known = self.list().into_iter().map(|listed| listed.name).collect();
        let mistakes = self
            .catalogue
            .mistakes
            .iter()
            .map(ToString::to_string)
            .collect();
        Error::UnknownModel {
            name: name.to_owned(),
            known,
            mistakes,
        }
    }

    /// Returns a model whose files are present; downloads missing ones.
    async fn have(
        &self,
        entry: &Entry,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<Model, Error> {
        if let Some(problem) = self.look(entry).damage {
            return Err(Error::Damaged {
                name: self.named(entry).name,
                problem,
            });
        }
        for piece in self.pieces(entry) {
            self.ensure(entry, &piece, false, progress, cancel).await?;
        }
        let model = open(self.paths.models().join(self.first(entry))).await?;
        Ok(Model {
            name: entry.id.clone(),
            is_smoke: entry.smoke,
            note: entry.note.clone(),
            ..model
        })
    }

    /// Makes sure that one file is present and right. With `thorough` its hash is computed even if
    /// its time is unchanged, and a damaged file is replaced; returns what was wrong with it.
    async fn ensure(
        &self,
        entry: &Entry,
        piece: &ModelFile,
        thorough: bool,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        let to = self.paths.models().join(&piece.to);
        if !thorough && self.is_right(entry, &to, false, progress, cancel).await? {
            return Ok(None);
        }
        let task = format!("downloading the model {}", entry.id);
        let waiting = || {
            let task = format!(
                "waiting for another Podbay that downloads the model {}",
                entry.id
            );
            progress(Progress {
                task,
                done: 0,
                total: None,
                unit: Unit::Steps,
                detail: String::new(),
                finished: false,
            });
        };
        let (folder, name) = (self.paths.locks(), lock_of(piece));
        let lock = FileLock::wait(&folder, &name, waiting, cancel);
        let _lock = lock
            .await
            .map_err(Error::engine("wait for another download of the model"))?;
        let damage = match self.is_right(entry, &to, thorough, progress, cancel).await {
            Ok(true) => return Ok(None),
            Ok(false) => None,
            Err(error @ Error::Changed { .. }) if thorough => {
                // It would be served again otherwise: its size and time are those of a good file.
                atomic_file::remove(&to)?;
                Some(error)
            }
            Err(error) => return Err(error),
        };
        let replaced = damage.as_ref().map(ToString::to_string);
        let instead = |error: Error| match (damage, error) {
            (None, error) | (_, error @ Error::Cancelled { .. }) => error,
            (Some(damage), error) => Error::NotReplaced {
                damage: damage.to_string(),
                source: Box::new(error),
            },
        };
        if matches!(&piece.from, FileSource::File(path) if *path == to) {
            let problem =
                "only a part of it is on this machine, and its source is unknown".to_owned();
            let hint = Some(
                "pull it by its original address, or remove that part: `podbay models list` has its name for `podbay models rm`",
            );
            return Err(instead(Error::Model {
                path: to,
                problem,
                hint,
            }));
        }
        if self.offline && !matches!(piece.from, FileSource::File(_)) {
            return Err(instead(Error::Offline {
                name: entry.id.clone(),
            }));
        }
        let fetcher = Fetcher {
            options: &self.options,
            progress,
            cancel,
        };
        let loaded = Box::pin(fetcher.fetch(entry, piece, &to, task))
            .await
            .map_err(instead)?;
        DownloadRecord::keep(&to, entry, &loaded.sha256, loaded.checked)?;
        Ok(replaced)
    }

    /// Returns whether a file is present; an error if it has changed since it was verified.
    async fn is_right(
        &self,
        entry: &Entry,
        to: &Path,
        thorough: bool,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let Ok(facts) = std::fs::metadata(to) else {
            return Ok(false);
        };
        let Some(record) = DownloadRecord::of(to) else {
            if thorough
                && matches!(&entry.source, Source::Path { files } if files.iter().any(|file| file == to))
            {
                return self
                    .believe(entry, to, progress, cancel)
                    .await
                    .map(|()| true);
            }
            // Downloaded before records existed, or copied by hand: the list decides.
            let Some(sha256) = entry
                .sha256
                .as_deref()
                .filter(|_| facts.len() == entry.size)
            else {
                return Ok(false);
            };
            let record = DownloadRecord::keep(to, entry, sha256, true)?;
            record
                .check_hash(to, progress, cancel)
                .await
                .inspect_err(|_| drop(record::forget(to)))?;
            return Ok(true);
        };
        if record.source != entry.source
            || entry
                .sha256
                .as_ref()
                .is_some_and(|sha256| *sha256 != record.sha256)
        {
            return Ok(false);
        }
        let check = if thorough {
            record.check_hash(to, progress, cancel).await
        } else {
            record.check(to, progress, cancel).await
        };
        check.map(|()| true)
    }

    /// Writes the record of a file of unknown source, if it is at least a complete model.
    async fn believe(
        &self,
        entry: &Entry,
        to: &Path,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        open(to.to_owned()).await?;
        let sha256 = digest(
            to.to_owned(),
            format!("checking the model {}", entry.id),
            progress,
            cancel,
        )
        .await?;
        DownloadRecord::keep(to, entry, &sha256, false).map(drop)
    }

    pub(super) fn look(&self, entry: &Entry) -> ListedModel {
        let (mut files, mut entry) = (Vec::new(), entry.clone());
        let (mut n_here, mut bytes, mut damage) = (0, 0, None);
        for piece in self.pieces(&entry) {
            let path = self.paths.models().join(&piece.to);
            let record = DownloadRecord::of(&path).filter(|record| record.source == entry.source);
            let length = std::fs::metadata(&path).map_or(0, |facts| facts.len());
            let is_here = record
                .as_ref()
                .map_or(entry.sha256.is_some() && length == entry.size, |record| {
                    length == record.size
                });
            let left = || {
                left_of(&path)
                    .or_else(|| left_of(&fetch::package_of(&path)))
                    .unwrap_or(0)
            };
            n_here += usize::from(is_here);
            if !is_here && path.exists() {
                damage = damage.or_else(|| record::damage(&path));
            }
            bytes += if is_here { length } else { left() };
            files.push(ListedFile {
                origin: piece.origin(&entry),
                path,
                record: record.filter(|_| is_here),
            });
        }
        let presence = match bytes {
            _ if n_here > 0 && n_here == files.len() => Presence::Here,
            _ if damage.is_some() => Presence::Damaged,
            0 => Presence::Absent,
            bytes => Presence::Partial(bytes),
        };
        if presence == Presence::Here {
            entry.size = bytes;
        } else if let (0, Source::Path { files }) = (entry.size, &entry.source) {
            // Files of this machine: if one is missing, the size is unknown.
            let sizes: Option<Vec<u64>> = files
                .iter()
                .map(|path| Some(std::fs::metadata(path).ok()?.len()))
                .collect();
            entry.size = sizes.map_or(0, |sizes| sizes.iter().sum());
        }
        let memory = if entry.size == 0 {
            0
        } else {
            model_choice::memory(&entry)
        };
        ListedModel {
            name: entry.id.clone(),
            entry,
            files,
            presence,
            damage,
            memory,
            replaced: Vec::new(),
        }
    }

    /// Returns the largest present model that fits the machine.
    fn best_here(&self, machine: &Machine) -> Option<Entry> {
        // Models downloaded by URL must be named: their purpose and compute needs are unknown.
        let listed = self.catalogue.entries.iter().map(|entry| self.look(entry));
        let here: Vec<Entry> = listed
            .filter(|listed| listed.presence == Presence::Here)
            .map(|listed| listed.entry)
            .collect();
        model_choice::choose(&here, machine, &self.options).cloned()
    }
}

/// Returns the name of the lock on a file: processes that download the same file wait for each
/// other, under whatever name it was requested.
fn lock_of(piece: &ModelFile) -> String {
    format!(
        "model-{}",
        &atomic_file::hex(&atomic_file::sha256(
            piece.to.as_os_str().as_encoded_bytes()
        ))[..16]
    )
}
