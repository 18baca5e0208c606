use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use async_recursion::async_recursion as boxed;
use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use super::Bundled;
use super::Error;
use super::archive::Archive;
use super::archive::Problem;
use super::file;
use super::file::Meter;
use super::file::Watched;
use super::file::failed;
use super::manifest::FORMAT;
use super::manifest::IMAGES;
use super::manifest::Image;
use super::manifest::MANIFEST;
use super::manifest::Manifest;
use super::manifest::Model;
use super::manifest::Part;
use super::manifest::ambiguous;
use super::manifest::is_model_file;
use crate as app;
use podbay_config::Config;
use podbay_engine::Engine;
use podbay_engine::Provision;
use podbay_engine::with_tag;
use podbay_event::ProgressSink;
use podbay_inference::Paths;
use podbay_inference::Store;
use podbay_session::State;

/// What is to be saved, and where.
#[derive(Clone, Debug)]
pub struct SaveBundle {
    pub file: PathBuf,
    /// Names of images; those that every set-up needs if empty.
    pub images: Vec<String>,
    /// Names or paths of models; `None` for none, and the one that the settings name if empty.
    pub models: Option<Vec<String>>,
    /// Replaces a file that is there.
    pub force: bool,
}

/// A model's file that goes into the bundle.
struct ModelFile {
    name: String,
    file: String,
    path: PathBuf,
    size: u64,
}

/// Gets the images and the models, and puts them into one file. It has its name when it is whole;
/// until then it is called `FILE.part`.
#[boxed]
pub async fn save_bundle(
    config: &Config,
    state: &State,
    request: &SaveBundle,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Bundled, app::Error> {
    check_target(request)?;
    let engine = Engine::connect(&config.engine, cancel)
        .await
        .map_err(app::Error::Engine)?;
    let provision = Provision::new(
        &engine,
        &config.engine,
        config.offline,
        state.locks(),
        progress,
    );
    let needed = [
        podbay_sandbox::DEFAULT_IMAGE.to_owned(),
        config.inference.image_name().to_owned(),
    ];
    let mut names = Vec::new();
    let mut expected = 0;
    for name in if request.images.is_empty() {
        &needed[..]
    } else {
        &request.images[..]
    } {
        let full = with_tag(name).ok_or_else(|| not_by_digest(name))?;
        let facts = provision
            .ensure(&full, cancel)
            .await
            .map_err(app::Error::Engine)?;
        if !facts.tags.contains(&full) {
            let problem = format!(
                "`{name}` is not how the engine calls that image; it says {}",
                facts.tags.join(", ")
            );
            return Err(Error::Request {
                problem,
                hint: "write its name as `docker images` shows it",
            }
            .into());
        }
        if !names.contains(&full) {
            names.push(full);
            expected += facts.size;
        }
    }
    let models = models(config, state, request, progress, cancel).await?;
    let folder = request
        .file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    file::check_space(
        folder,
        expected + models.iter().map(|model| model.size).sum::<u64>(),
    )?;

    let mut part = Unfinished::create(&request.file)?;
    let manifest = Manifest {
        format: FORMAT,
        podbay: env!("CARGO_PKG_VERSION").to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        images: names
            .iter()
            .map(|name| Image {
                name: name.clone(),
                config: "0".repeat(64),
            })
            .collect(),
        archive: Part {
            size: u64::MAX,
            sha256: "0".repeat(64),
        },
        models: models
            .iter()
            .map(|model| Model {
                name: model.name.clone(),
                file: model.file.clone(),
                size: model.size,
                sha256: "0".repeat(64),
            })
            .collect(),
    };
    // The manifest comes first and is known last: its place is kept, and no number in it gets
    // longer than those that stand there now.
    let room = serde_json::to_vec(&manifest)
        .map_err(io::Error::other)
        .map_err(failed("write", &part.path))?
        .len() as u64;
    let room = room.next_multiple_of(file::BLOCK);
    let (manifest, part) = {
        let begin = file::span(room);
        let archive = save_images(
            &engine, &names, expected, &mut part, begin, progress, cancel,
        )
        .await?;
        let (progress, cancel) = (progress.clone(), cancel.clone());
        let work = move || finish(manifest, archive, &models, part, room, &progress, &cancel);
        tokio::task::spawn_blocking(work)
            .await
            .expect("writing a file does not panic")?
    };
    let size = part.publish(&request.file)?;
    Ok(Bundled {
        size,
        images: manifest
            .images
            .into_iter()
            .map(|image| (image.name, format!("sha256:{}", image.config)))
            .collect(),
        models: manifest
            .models
            .into_iter()
            .map(|model| (model.name, PathBuf::from(model.file)))
            .collect(),
        notes: if request.models.is_some() {
            app::model_mistakes(config)
        } else {
            Vec::new()
        },
    })
}

fn not_by_digest(name: &str) -> app::Error {
    Error::Request {
        problem: format!("`{name}` names no tag, so nothing could find the image again"),
        hint: "name it by a tag",
    }
    .into()
}

fn check_target(request: &SaveBundle) -> Result<(), Error> {
    match fs::symlink_metadata(&request.file) {
        Ok(facts) if !facts.is_file() => {
            let problem = format!("`{}` is not a regular file", request.file.display());
            Err(Error::Request {
                problem,
                hint: "give the path of a file",
            })
        }
        Ok(_) if !request.force => Err(Error::Exists {
            path: request.file.clone(),
        }),
        _ => Ok(()),
    }
}

/// Gets every model that is wanted.
async fn models(
    config: &Config,
    state: &State,
    request: &SaveBundle,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Vec<ModelFile>, app::Error> {
    let wanted: Vec<Option<&str>> = match &request.models {
        None => Vec::new(),
        Some(names) if names.is_empty() => vec![None],
        Some(names) => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut files: Vec<ModelFile> = Vec::new();
    for name in wanted {
        let mut options = config.inference.clone();
        if let Some(name) = name {
            options.model = Some(name.to_owned());
        }
        let store = Store::new(&options, &Paths::new(state.root()), config.offline)
            .map_err(app::Error::Inference)?;
        let model = store
            .resolve(progress, cancel)
            .await
            .map_err(app::Error::Inference)?;
        for path in model.files {
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if !is_model_file(&file) {
                let problem = format!("`{file}` is no name for a model's file in a bundle");
                return Err(Error::Request {
                    problem,
                    hint: "rename it: letters, digits, `.`, `_`, `-`, `+`, at most 90, ending in .gguf",
                }
                .into());
            }
            if files.iter().any(|there| there.path == path) {
                continue;
            }
            if files
                .iter()
                .any(|there| there.file.eq_ignore_ascii_case(&file))
            {
                let problem = format!("two of the models have the file name `{file}`");
                return Err(Error::Request {
                    problem,
                    hint: "rename one of them",
                }
                .into());
            }
            let size = fs::metadata(&path).map_err(failed("look at", &path))?.len();
            files.push(ModelFile {
                name: model.name.clone(),
                file,
                path,
                size,
            });
        }
    }
    if let Some(name) = ambiguous(
        files
            .iter()
            .map(|file| (file.name.as_str(), file.file.as_str())),
    ) {
        let problem =
            format!("two of the models have the name `{name}`, and nothing could tell them apart");
        return Err(Error::Request {
            problem,
            hint: "leave one of them out, or rename its file",
        }
        .into());
    }
    Ok(files)
}

/// Writes the engine's archive as the second entry; returns its size and hash.
async fn save_images(
    engine: &Engine,
    names: &[String],
    expected: u64,
    part: &mut Unfinished,
    begin: u64,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Part, app::Error> {
    part.file
        .seek(SeekFrom::Start(begin + file::BLOCK))
        .map_err(failed("write", &part.path))?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut saved = engine.save_images(&names, None, cancel);
    let mut meter = Meter::new(
        "saving the images",
        (expected > 0).then_some(expected),
        progress,
    );
    let (mut hasher, mut size) = (Sha256::new(), 0);
    while let Some(bytes) = saved.next().await.map_err(app::Error::Engine)? {
        part.file
            .write_all(&bytes)
            .map_err(failed("write", &part.path))?;
        hasher.update(&bytes);
        size += bytes.len() as u64;
        meter.add(bytes.len() as u64);
    }
    Ok(Part {
        size,
        sha256: file::hex(&hasher.finalize()),
    })
}

/// Reads the archive back, adds the models and writes the manifest.
fn finish(
    mut manifest: Manifest,
    archive: Part,
    models: &[ModelFile],
    mut part: Unfinished,
    room: u64,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<(Manifest, Unfinished), app::Error> {
    let path = part.path.clone();
    let write = |source| stopped(failed("write", &path)(source).into(), cancel);
    let begin = file::span(room);
    part.file
        .seek(SeekFrom::Start(begin + file::BLOCK))
        .map_err(write)?;
    let meter = Meter::new("checking the images", Some(archive.size), progress);
    let mut reader = Watched::new(
        io::BufReader::with_capacity(1 << 20, &part.file).take(archive.size),
        meter,
        cancel,
    );
    let found = Archive::inspect(&mut reader).and_then(|archive| archive.images());
    drop(reader);
    let found = found.map_err(|problem| match problem {
        Problem::Read(source) => write(source),
        Problem::Odd(problem) => Error::NotLoaded { problem }.into(),
    })?;
    let wanted: Vec<&String> = manifest.images.iter().map(|image| &image.name).collect();
    if found.len() != wanted.len() || !found.iter().all(|image| wanted.contains(&&image.name)) {
        let names: Vec<&str> = found.iter().map(|image| image.name.as_str()).collect();
        return Err(Error::NotLoaded {
            problem: format!(
                "it was asked for other images than it saved: {}",
                names.join(", ")
            ),
        }
        .into());
    }
    manifest.images = found;
    let mut at = begin + file::span(archive.size);
    part.file
        .write_all_at(&file::entry(IMAGES, archive.size).map_err(write)?, begin)
        .map_err(write)?;
    manifest.archive = archive;
    for (model, listed) in models.iter().zip(&mut manifest.models) {
        let header = file::entry(&format!("models/{}", model.file), model.size).map_err(write)?;
        part.file.write_all_at(&header, at).map_err(write)?;
        part.file
            .seek(SeekFrom::Start(at + file::BLOCK))
            .map_err(write)?;
        let source = File::open(&model.path)
            .map_err(failed("open", &model.path))
            .map_err(app::Error::from)?;
        let meter = Meter::new(
            format!("saving the model {}", model.name),
            Some(model.size),
            progress,
        );
        let mut reader = Watched::new(source.take(model.size), meter, cancel);
        io::copy(&mut reader, &mut part.file).map_err(write)?;
        let (n, sha256) = reader.end();
        if n != model.size {
            let problem = format!(
                "`{}` became shorter while it was read",
                model.path.display()
            );
            return Err(Error::Request {
                problem,
                hint: "try again when nothing writes to it",
            }
            .into());
        }
        listed.sha256 = sha256;
        at += file::span(model.size);
    }
    // Two empty blocks end a tar.
    part.file.set_len(at + 2 * file::BLOCK).map_err(write)?;
    let mut text = serde_json::to_vec(&manifest)
        .map_err(io::Error::other)
        .map_err(write)?;
    text.resize(room as usize, b' ');
    part.file
        .write_all_at(&file::entry(MANIFEST, room).map_err(write)?, 0)
        .map_err(write)?;
    part.file.write_all_at(&text, file::BLOCK).map_err(write)?;
    Ok((manifest, part))
}

/// Returns the error, or that the user stopped it.
pub(super) fn stopped(error: app::Error, cancel: &CancellationToken) -> app::Error {
    if cancel.is_cancelled() {
        app::Error::Interrupted
    } else {
        error
    }
}

/// The file that is being written; it goes away unless it is published.
struct Unfinished {
    file: File,
    path: PathBuf,
    published: bool,
}

impl Unfinished {
    fn create(target: &Path) -> Result<Self, Error> {
        let mut name = target.as_os_str().to_owned();
        name.push(".part");
        let path = PathBuf::from(name);
        let mut options = fs::OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(libc::O_NOFOLLOW);
        let file = options.open(&path).map_err(failed("write", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Error::Busy {
                    path: target.to_owned(),
                });
            }
            Err(fs::TryLockError::Error(source)) => return Err(failed("lock", &path)(source)),
        }
        let part = Self {
            file,
            path,
            published: false,
        };
        // What an earlier, killed one left.
        part.file.set_len(0).map_err(failed("write", &part.path))?;
        Ok(part)
    }

    /// Gives the file its name, once its bytes are on the disk; returns its size.
    fn publish(mut self, target: &Path) -> Result<u64, Error> {
        self.file.sync_all().map_err(failed("write", &self.path))?;
        fs::rename(&self.path, target).map_err(failed("write", target))?;
        self.published = true;
        Ok(self
            .file
            .metadata()
            .map_err(failed("look at", target))?
            .len())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.published
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, "an unfinished bundle stays");
        }
    }
}
