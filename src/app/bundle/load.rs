use std::fs;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use async_recursion::async_recursion as boxed;
use bytes::Bytes;
use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Bundled;
use super::Error;
use super::archive::Archive;
use super::archive::Problem;
use super::file;
use super::file::Meter;
use super::file::Watched;
use super::file::failed;
use super::manifest::Image;
use super::manifest::Manifest;
use super::manifest::Model;
use super::packed;
use super::save::stopped;
use crate as app;
use podbay_config::Config;
use podbay_engine::Engine;
use podbay_engine::Facts;
use podbay_event::ProgressSink;
use podbay_inference as inference;
use podbay_inference::Paths;
use podbay_inference::Store;
use podbay_session::State;

/// Bytes of one piece on its way to the engine.
const PIECE: usize = 256 << 10;

/// What is to be loaded, and how.
#[derive(Clone, Debug)]
pub struct LoadBundle {
    pub file: PathBuf,
    /// Replaces images and models of the same names.
    pub force: bool,
    /// Only checks it.
    pub check: bool,
}

/// A bundle of which every byte was read and compared.
struct Verified {
    archive: Archive,
    begin: u64,
    manifest: Manifest,
    /// Models whose files are written, under names that nobody looks for.
    models: Vec<(Model, NamedTempFile)>,
}

/// Loads a bundle: all of it, or nothing.
///
/// Every byte is compared with the manifest before the engine or the folder of models gets to see
/// any of it. Then come the images, then the models get their names.
#[boxed]
pub async fn load_bundle(
    config: &Config,
    state: &State,
    request: &LoadBundle,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Bundled, app::Error> {
    let path = request.file.clone();
    let (_, manifest, _) = file::open(&path)?;
    let here = std::env::consts::ARCH;
    if manifest.architecture != here {
        return Err(Error::Architecture {
            path,
            found: shown(&manifest.architecture),
            here,
        }
        .into());
    }
    let paths = Paths::new(state.root());
    let folder = paths.models();
    let store = Store::new(&config.inference, &paths, true).map_err(app::Error::Inference)?;
    check_known(&manifest, &store, &path)?;
    let places: Vec<PathBuf> = manifest
        .models
        .iter()
        .map(|model| store.place(&model.name, &model.file, &model.sha256))
        .collect();
    let mut notes = app::model_mistakes(config);
    if manifest.podbay != env!("CARGO_PKG_VERSION") {
        let text = format!(
            "podbay {} made this bundle; `podbay images list` says which images this version would build anew",
            shown(&manifest.podbay)
        );
        notes.push(text);
    }
    // What is here is asked before gigabytes are read.
    let engine = if request.check {
        None
    } else {
        Some(
            Engine::connect(&config.engine, cancel)
                .await
                .map_err(app::Error::Engine)?,
        )
    };
    let mut wanted = Vec::new();
    if let Some(engine) = &engine {
        wanted = missing(engine, &manifest, request.force, progress, cancel).await?;
        check_room(
            engine.facts(cancel).await.map_err(app::Error::Engine)?,
            &manifest,
            &folder,
        )?;
    }
    let work = {
        let (request, progress, cancel, places) = (
            request.clone(),
            progress.clone(),
            cancel.clone(),
            places.clone(),
        );
        move || verify(&request, &manifest, &folder, &places, &progress, &cancel)
    };
    let verified = tokio::task::spawn_blocking(work)
        .await
        .expect("reading a file does not panic")?;
    let mut bundled = Bundled {
        size: fs::metadata(&path).map_err(failed("look at", &path))?.len(),
        notes,
        ..Bundled::default()
    };
    bundled.images = verified
        .manifest
        .images
        .iter()
        .map(|image| (image.name.clone(), id(image)))
        .collect();
    let names = verified
        .manifest
        .models
        .iter()
        .map(|model| store.bundled_name(&model.name, &model.file, &model.sha256));
    bundled.models = names.zip(places).collect();
    let Some(engine) = engine else {
        return Ok(bundled);
    };
    if !wanted.is_empty() {
        load_images(&engine, &path, &verified, progress, cancel).await?;
        confirm(&engine, &wanted, cancel).await?;
    }
    for (model, temporary) in verified.models {
        let to = store.place(&model.name, &model.file, &model.sha256);
        let folder = to.parent().expect("the folder of models, or one below it");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed("make the folder", folder))?;
        temporary
            .persist(&to)
            .map_err(|error| failed("write", &to)(error.error))?;
        store
            .adopt(&model.name, &model.file, &model.sha256)
            .map_err(app::Error::Inference)?;
    }
    Ok(bundled)
}

fn id(image: &Image) -> String {
    format!("sha256:{}", image.config)
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// Compares the models with what Podbay knows of those that have a name.
fn check_known(manifest: &Manifest, store: &Store, path: &Path) -> Result<(), Error> {
    for model in &manifest.models {
        if store.contradicts(&model.name, &model.file, model.size, &model.sha256) {
            let problem = format!(
                "`{}` is not the model that Podbay knows by that name: its hash is another",
                model.file
            );
            return Err(Error::Refused {
                path: path.to_owned(),
                problem,
            });
        }
    }
    Ok(())
}

/// Returns the images that are not here; a name that means another image is not taken from it
/// unasked.
async fn missing(
    engine: &Engine,
    manifest: &Manifest,
    force: bool,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Vec<Image>, app::Error> {
    let (mut missing, mut others) = (Vec::new(), Vec::new());
    for image in &manifest.images {
        match engine
            .image(&image.name, cancel)
            .await
            .map_err(app::Error::Engine)?
        {
            None => missing.push(image.clone()),
            Some(facts) if facts.id == id(image) => {}
            Some(_) => others.push(image.clone()),
        }
    }
    // Where ids do not tell, the same image looks like another one.
    let has_other_ids = engine
        .facts(cancel)
        .await
        .map_err(app::Error::Engine)?
        .containerd_images;
    if has_other_ids && !force && !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|image| image.name.as_str()).collect();
        let here = packed::look(engine, &names, progress, cancel).await?;
        others.retain(|image| !here.contains(image));
    }
    if force {
        missing.append(&mut others);
    }
    if others.is_empty() {
        Ok(missing)
    } else {
        Err(Error::Taken {
            what: others.into_iter().map(|image| image.name).collect(),
        }
        .into())
    }
}

/// Checks the disks: the engine unpacks the archive beside what it makes of it.
fn check_room(engine: &Facts, manifest: &Manifest, folder: &Path) -> Result<(), Error> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(failed("make the folder", folder))?;
    file::check_space(folder, manifest.models.iter().map(|model| model.size).sum())?;
    // Its folder is only ours to look at where it is on this machine.
    if engine.local && !engine.desktop && engine.root.is_dir() {
        file::check_space(&engine.root, manifest.archive.size.saturating_mul(2))?;
    }
    Ok(())
}

/// Reads the whole file once and compares all of it; models are written on the way.
fn verify(
    request: &LoadBundle,
    expected: &Manifest,
    folder: &Path,
    places: &[PathBuf],
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Verified, app::Error> {
    let path = &request.file;
    let (mut file, manifest, begin) = file::open(path)?;
    let changed = || Error::Damaged {
        path: path.clone(),
        problem: "it was changed while it was read".to_owned(),
    };
    if manifest != *expected {
        return Err(changed().into());
    }
    let read = |source| stopped(failed("read", path)(source).into(), cancel);
    let wrong = |name: &str| Error::Damaged {
        path: path.clone(),
        problem: format!("`{name}` does not have the hash that the manifest gives"),
    };
    let mut at = begin;
    let mut models = Vec::new();
    let mut archive = None;
    for (index, (name, size, sha256)) in manifest.entries().into_iter().enumerate() {
        file::go_to(&mut file, at, &name, size, path)?;
        let meter = Meter::new(format!("checking {name}"), Some(size), progress);
        let mut reader = Watched::new(
            io::BufReader::with_capacity(1 << 20, &mut file).take(size),
            meter,
            cancel,
        );
        if index == 0 {
            let found = Archive::inspect(&mut reader);
            // Where the hash is wrong, whatever else is wrong comes from there.
            let rest = io::copy(&mut reader, &mut io::sink()).map_err(read);
            if cancel.is_cancelled() {
                return Err(app::Error::Interrupted);
            }
            rest?;
            if reader.end() != (size, sha256.to_owned()) {
                return Err(wrong(&name).into());
            }
            archive = Some(found);
        } else {
            let model = &manifest.models[index - 1];
            let target = keep(request, model, &places[index - 1], folder, cancel)?;
            let mut target = match target {
                Some(to) => Target::File(to),
                None => Target::Nowhere,
            };
            io::copy(&mut reader, &mut target)
                .map_err(|source| stopped(failed("write", folder)(source).into(), cancel))?;
            if reader.end() != (size, sha256.to_owned()) {
                return Err(wrong(&name).into());
            }
            check_model(path, at, &name, size)?;
            if let Target::File(to) = target {
                to.as_file().sync_all().map_err(failed("write", folder))?;
                models.push((model.clone(), to));
            }
        }
        at += file::span(size);
    }
    let archive = match archive.transpose() {
        Ok(Some(archive)) => archive.images().map(|images| (archive, images)),
        Ok(None) => return Err(changed().into()),
        Err(problem) => Err(problem),
    };
    let (archive, images) = archive.map_err(|problem| match problem {
        // The disk gave every byte, and they are those that were meant: it is the archive that is
        // no archive.
        Problem::Read(source) => Error::Refused {
            path: path.clone(),
            problem: format!("its archive of images cannot be read: {source}"),
        },
        Problem::Odd(problem) => Error::Refused {
            path: path.clone(),
            problem,
        },
    })?;
    let mut listed = manifest.images.clone();
    listed.sort();
    if images != listed {
        let names: Vec<String> = images.iter().map(|image| shown(&image.name)).collect();
        let problem = format!(
            "its archive has other images than its manifest says: {}",
            names.join(", ")
        );
        return Err(Error::Refused {
            path: path.clone(),
            problem,
        }
        .into());
    }
    Ok(Verified {
        archive,
        begin,
        manifest,
        models,
    })
}

/// Checks that an entry which has the right hash is a model at all: nobody but `save` says that it
/// is.
fn check_model(path: &Path, at: u64, name: &str, size: u64) -> Result<(), Error> {
    let (mut file, _) = file::regular(path)?;
    file::go_to(&mut file, at, name, size, path)?;
    inference::check_model(file, size).map_err(|problem| Error::Refused {
        path: path.to_owned(),
        problem: format!("`{name}` in it is no model: {problem}"),
    })
}

/// Returns where a model's bytes go; `None` where they are here already, or nothing is to be kept.
fn keep(
    request: &LoadBundle,
    model: &Model,
    to: &Path,
    folder: &Path,
    cancel: &CancellationToken,
) -> Result<Option<NamedTempFile>, app::Error> {
    if request.check {
        return Ok(None);
    }
    if let Ok(there) = fs::symlink_metadata(to) {
        if there.is_file() && there.len() == model.size && hash(to, cancel)? == model.sha256 {
            return Ok(None);
        }
        if !request.force {
            return Err(Error::Taken {
                what: vec![to.display().to_string()],
            }
            .into());
        }
    }
    let made = tempfile::Builder::new()
        .prefix(".bundle-")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(folder);
    Ok(Some(made.map_err(failed("write", folder))?))
}

fn hash(path: &Path, cancel: &CancellationToken) -> Result<String, app::Error> {
    let (file, _) = file::regular(path)?;
    let silent: ProgressSink = std::sync::Arc::new(|_| {});
    let mut reader = Watched::new(file, Meter::new("", None, &silent), cancel);
    io::copy(&mut reader, &mut io::sink())
        .map_err(|source| stopped(failed("read", path)(source).into(), cancel))?;
    Ok(reader.end().1)
}

/// Where a model's bytes go.
enum Target {
    File(NamedTempFile),
    Nowhere,
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Nowhere => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Nowhere => Ok(()),
        }
    }
}

/// Sends the archive to the engine, written anew. The file is compared once more on the way: should
/// somebody have changed it since, the archive breaks off, and the engine takes
/// nothing of it.
async fn load_images(
    engine: &Engine,
    path: &Path,
    verified: &Verified,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<(), app::Error> {
    let (send, mut receive) = mpsc::channel::<io::Result<Bytes>>(4);
    let part = verified.manifest.archive.clone();
    let (mut file, _) = file::regular(path)?;
    file::go_to(
        &mut file,
        verified.begin,
        super::manifest::IMAGES,
        part.size,
        path,
    )?;
    let meter = Meter::new("loading the images", Some(part.size), progress);
    let mut reader = Watched::new(
        io::BufReader::with_capacity(1 << 20, file).take(part.size),
        meter,
        cancel,
    );
    let archive = verified.archive.clone();
    let feeding = tokio::task::spawn_blocking(move || {
        let mut pieces = Pieces {
            send: send.clone(),
            piece: Vec::with_capacity(PIECE),
        };
        let outcome = archive.rewrite(&mut reader, &mut pieces).and_then(|()| {
            let changed = || io::Error::other("the bundle was changed while it was read");
            if reader.end() == (part.size, part.sha256) {
                Ok(())
            } else {
                Err(changed())
            }
        });
        // The last piece has the end of the archive in it, so it goes only when all was right.
        let outcome = outcome.and_then(|()| pieces.send_piece());
        if let Err(error) = outcome {
            // An engine that has gone away says so itself.
            let _ = send.blocking_send(Err(error));
        }
    });
    let stream = futures::stream::poll_fn(move |context| receive.poll_recv(context));
    let loaded = engine.load_images(stream, None, cancel).await;
    if let Err(error) = feeding.await {
        tracing::warn!(%error, "reading the bundle ended early");
    }
    loaded.map_err(app::Error::Engine)
}

/// What is written goes to the engine in pieces; the last one waits for [`Pieces::send_piece`].
struct Pieces {
    send: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Pieces {
    fn send_piece(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.send
            .blocking_send(Ok(piece.into()))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() >= PIECE {
            self.send_piece()?;
        }
        let n = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks that the names mean now what the manifest says.
async fn confirm(
    engine: &Engine,
    wanted: &[Image],
    cancel: &CancellationToken,
) -> Result<(), app::Error> {
    let has_other_ids = engine
        .facts(cancel)
        .await
        .map_err(app::Error::Engine)?
        .containerd_images;
    for image in wanted {
        let found = engine
            .image(&image.name, cancel)
            .await
            .map_err(app::Error::Engine)?;
        if let Some(problem) = problem(
            image,
            found.as_ref().map(|facts| facts.id.as_str()),
            has_other_ids,
        ) {
            return Err(Error::NotLoaded { problem }.into());
        }
    }
    Ok(())
}

/// Says what is wrong with what a name means now. Where the engine gives images other ids, only the
/// name can be looked for.
fn problem(wanted: &Image, found: Option<&str>, has_other_ids: bool) -> Option<String> {
    match found {
        None => Some(format!("`{}` is not there", wanted.name)),
        Some(found) if !has_other_ids && found != id(wanted) => {
            Some(format!("`{}` is {found}", wanted.name))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_became_another_is_told_of_where_ids_can_be_compared() {
        let wanted = Image {
            name: "a:1".to_owned(),
            config: "ab".to_owned(),
        };
        assert_eq!(
            problem(&wanted, None, false).as_deref(),
            Some("`a:1` is not there")
        );
        assert_eq!(
            problem(&wanted, None, true).as_deref(),
            Some("`a:1` is not there")
        );
        assert_eq!(problem(&wanted, Some("sha256:ab"), false), None);
        assert_eq!(
            problem(&wanted, Some("sha256:cd"), false).as_deref(),
            Some("`a:1` is sha256:cd")
        );
        assert_eq!(problem(&wanted, Some("sha256:cd"), true), None);
    }
}
