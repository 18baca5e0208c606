//! The image of a session's keeper: folders, and no program.
//!
//! Its only program is ours, from the guest's volume. The folders are what new volumes of a session
//! begin with: the engine copies them there, with their owners, when it makes the keeper. Otherwise
//! a container would have to be made and filled for each volume before anything else can start.

use std::os::unix::fs::PermissionsExt;

use tokio_util::sync::CancellationToken;

use crate::Spec;
use podbay_engine as engine;
use podbay_engine::Engine;
use podbay_engine::VolumeFile;

/// Counts what the folders have been; an image of other folders has another name.
const LAYOUT: u32 = 1;

/// Names the image for a project: its folders belong to the project's owner, and what a copy of the
/// project is laid out with has the mode of the project.
pub(super) fn name(spec: &Spec) -> String {
    let (uid, gid) = spec.ids();
    format!("podbay/keeper:{LAYOUT}-{uid}-{gid}-{:03o}", mode(spec))
}

/// Makes it.
pub(super) async fn make(
    engine: &Engine,
    spec: &Spec,
    cancel: &CancellationToken,
) -> Result<(), engine::Error> {
    engine
        .make_folders_image(&name(spec), &folders(spec), cancel)
        .await
}

fn mode(spec: &Spec) -> u32 {
    std::fs::metadata(spec.project.path()).map_or(0o755, |facts| facts.permissions().mode() & 0o777)
}

fn folders(spec: &Spec) -> Vec<VolumeFile> {
    let root = |path: &str| VolumeFile::folder(path, 0o755, (0, 0));
    let own = |path: &str, mode: u32| VolumeFile::folder(path, mode, spec.ids());
    vec![
        root("workspace/"),
        root("keep/"),
        own("keep/state/", 0o700),
        root("review/"),
        root("review/upper/"),
        own("review/upper/up/", mode(spec)),
        VolumeFile::folder("review/upper/wk/", 0o700, (0, 0)),
        // Of a session whose turns go into the project.
        own("review/upper/v/", 0o700),
        own("review/upper/v/0/", 0o700),
        own("review/upper/v/0/up/", mode(spec)),
        own("review/upper/v/0/wk/", 0o700),
        root("session/"),
        own("session/0/", 0o700),
        own("below/", 0o700),
    ]
}
