use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Ended;
use super::Options;
use super::below;
use super::below::BELOW;
use super::top::Top;
use super::volume;
use crate::DEFAULT_IMAGE;
use crate::Error;
use crate::Spec;
use crate::keeper::Keeper;
use crate::keeper::Purpose;
use crate::keeper::Sees;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Leftover;
use podbay_engine::Mount;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_wire::BytesPath;
use podbay_wire::keep::GitAnswer;
use podbay_wire::keep::GitOrder;
use podbay_wire::keep::ReviewOrder;
use podbay_wire::keep::ReviewedGit;
use podbay_wire::keep::git_of_review;

/// An ended session.
pub(super) struct Left<'a> {
    pub(super) id: &'a str,
    pub(super) top: Top,
    /// Whether it had a folder of its own.
    pub(super) has_folder: bool,
    /// Whether the `.git` at the top is the user's, if that was watched.
    pub(super) is_top_theirs: Option<bool>,
    /// For a session whose changes were pending review.
    pub(super) review: Option<OfReview>,
}

/// A review whose commits are to be imported.
pub(super) struct OfReview {
    pub(super) name: String,
    pub(super) how: ReviewedGit,
}

/// Has a keeper import what a session left; the keeper can write to the project meanwhile. On
/// cancellation it waits a moment; the next start repeats an interrupted import.
pub(super) async fn settle(
    engine: &Engine,
    spec: &Spec,
    labels: &Labels,
    options: &Options,
    left: Left<'_>,
    within: Duration,
) -> Result<Ended, Error> {
    tokio::select! {
        ended = Box::pin(to_its_end(engine, spec, labels, options, left, within)) => ended,
        () = engine.late() => Err(Error::Cancelled),
    }
}

async fn to_its_end(
    engine: &Engine,
    spec: &Spec,
    labels: &Labels,
    options: &Options,
    left: Left<'_>,
    within: Duration,
) -> Result<Ended, Error> {
    let cancel = CancellationToken::new();
    let Left {
        id,
        top,
        has_folder,
        is_top_theirs,
        review,
    } = left;
    let mut no_import = None;
    let mut tries_again = false;
    let mut spec = spec.clone();
    if has_folder {
        // Git on the real repository runs in our own image, whatever the session's was.
        let image = engine
            .image(DEFAULT_IMAGE, &cancel)
            .await
            .map_err(Error::engine("look for the image that has git"))?;
        if let Some(image) = image {
            spec = spec.in_image(&image);
        } else {
            tries_again = true;
            no_import = Some(format!(
                "there is no image `{DEFAULT_IMAGE}`, whose git does it; `podbay images build` makes it"
            ));
        }
    }
    let mut mounts = top.mounts(&volume::name(id), true);
    // The engine would create a missing volume.
    let other = engine
        .volume_folder(&volume::name_of_below(id), &cancel)
        .await;
    let has_other = other
        .map_err(Error::engine("look for the session's git folders"))?
        .is_some();
    mounts.extend(has_other.then(|| below::mount(id, true)));
    // A session under review cannot create repositories in the project.
    let folder = if review.is_none() {
        Some(Folder::make(&options.aside, id, spec.ids())?)
    } else {
        None
    };
    if let Some(folder) = &folder {
        mounts.push(Mount::Bind {
            source: folder.text()?,
            target: "/aside".to_owned(),
            read_only: false,
        });
    }
    let mut keeper = Keeper::start_with(
        engine,
        &spec,
        labels,
        Purpose::Restore,
        Sees::Aside(&mounts),
        within,
        &cancel,
    )
    .await?;
    // A review stays until it is discarded.
    tries_again |= review.is_some();
    let (id_there, top, below) = (
        id.to_owned(),
        top.source(&spec.project),
        has_other.then(|| BELOW.into()),
    );
    let how = review.as_ref().map(|review| review.how.clone());
    let (auto_run, place) = (
        options.auto_run.clone(),
        BytesPath::from(spec.project.path()),
    );
    let order = GitOrder::Settle {
        id: id_there,
        top,
        below,
        no_import,
        tries_again,
        is_top_theirs,
        review: how,
        auto_run,
        place,
        file_size: options.file_size,
    };
    let answer = keeper.git(order, &cancel).await;
    let is_settled = matches!(&answer, Ok(GitAnswer::Settled(settled)) if settled.is_settled);
    let noted = match review.as_ref().filter(|_| is_settled) {
        // The same keeper records it, so that the review can be done at once.
        Some(review) => keeper
            .review(
                ReviewOrder::GitTaken {
                    name: review.name.clone(),
                },
                &cancel,
            )
            .await
            .map(drop),
        None => Ok(()),
    };
    match (&answer, &noted) {
        (Ok(_), Ok(())) => keeper.close(),
        _ => keeper.discard(engine).await,
    }
    let GitAnswer::Settled(settled) = answer? else {
        return Err(Keeper::unexpected());
    };
    noted?;
    if settled.is_settled {
        volume::remove(engine, id).await;
    }
    let aside = folder.map(|folder| {
        folder.remove_if_empty();
        folder.path
    });
    Ok(Ended {
        settled,
        volume: volume::name(id),
        volume_of_below: volume::name_of_below(id),
        aside: aside.unwrap_or_default(),
        review: review.map(|review| review.name),
    })
}

/// Settles the sessions of a project whose controllers were killed, before another one starts;
/// returns the result of each.
pub(crate) async fn settle_left(
    engine: &Engine,
    spec: &Spec,
    labels: &Labels,
    options: &Options,
    within: Duration,
    cancel: &CancellationToken,
) -> Vec<Result<Ended, (String, Error)>> {
    let mut ended = Vec::new();
    let volumes = match engine.volumes(cancel).await {
        Ok(volumes) => volumes,
        Err(error) => {
            tracing::debug!(%error, "volumes of sessions were not looked for");
            return ended;
        }
    };
    for leftover in volumes {
        let Leftover::Volume {
            name,
            labels: of_volume,
            ..
        } = leftover
        else {
            continue;
        };
        let is_ours = of_volume.role == Role::Git
            && of_volume.project.as_deref() == Some(spec.project.key().as_str());
        if !is_ours || !of_volume.owner.as_ref().is_some_and(Owner::is_gone) {
            continue;
        }
        let Some(id) = volume::id(&name) else {
            continue;
        };
        if of_volume
            .session
            .as_ref()
            .is_some_and(|session| git_of_review(session.as_str()) == id)
        {
            // It is pending until the user accepts it, whatever happened to its session.
            continue;
        }
        let left = Left {
            id,
            top: Top::of(&spec.project),
            has_folder: true,
            is_top_theirs: None,
            review: None,
        };
        let settled = Box::pin(settle(engine, spec, labels, options, left, within)).await;
        ended.push(settled.map_err(|error| (name.clone(), error)));
    }
    ended
}

impl Ended {
    /// Returns whether a path was in a repository that was moved out of the project.
    pub fn has_moved(&self, path: &BytesPath) -> bool {
        self.settled
            .aside
            .moved
            .first
            .iter()
            .any(|aside| !aside.is_stuck() && aside.has(path.as_bytes()))
    }

    /// Returns whether there are more such repositories than are named.
    pub fn has_moved_more(&self) -> bool {
        let moved = &self.settled.aside.moved;
        moved.n > moved.first.len() as u64
    }
}

/// The folder for what a session created, which the keeper can write to.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn make(above: &Path, id: &str, ids: (u32, u32)) -> Result<Self, Error> {
        let path = above.join(id);
        let failed = |error: std::io::Error| Error::Setting {
            key: "PODBAY_HOME",
            problem: format!(
                "{} cannot be made, for repositories that a session made: {error}",
                path.display()
            ),
        };
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        // Unless this process is root, it is the user that sandboxes run as, or is mapped to root
        // there.
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(ids.0), Some(ids.1)).map_err(failed)?;
        }
        let path = fs::canonicalize(&path).map_err(failed)?;
        Ok(Self { path })
    }

    fn text(&self) -> Result<String, Error> {
        let problem = || {
            format!(
                "{} is not UTF-8, which no engine takes",
                self.path.display()
            )
        };
        self.path
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| Error::Setting {
                key: "PODBAY_HOME",
                problem: problem(),
            })
    }

    fn remove_if_empty(&self) {
        let _ = fs::remove_dir(&self.path);
    }
}
