use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::Spec;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Owner;
use podbay_engine::Role;

/// Name prefix of the volume of a session's git folder.
const PREFIX: &str = "podbay-git-";

/// Name prefix of the volume that no sandbox mounts as a whole: it has the folders of nested
/// repositories, and the pointer of a linked worktree. What the engine mounts by path must be where
/// no command can replace it.
const PREFIX_BELOW: &str = "podbay-below-";

pub(super) fn name(id: &str) -> String {
    format!("{PREFIX}{id}")
}

pub(super) fn name_of_below(id: &str) -> String {
    format!("{PREFIX_BELOW}{id}")
}

/// Returns the session's git id in the name of a volume.
pub(super) fn id(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

/// Makes the volume. Until a keeper has it, its folder is root's, and it only says that there is a
/// session to be settled.
pub(super) async fn make(
    engine: &Engine,
    spec: &Spec,
    labels: &Labels,
    name: &str,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let labels = Labels {
        project: Some(spec.project.key()),
        path: Some(spec.project.text().to_owned()),
        owner: Some(Owner::current()),
        session: labels.session.clone(),
        ..Labels::new(Role::Git)
    };
    engine
        .create_volume(name, &labels, cancel)
        .await
        .map_err(Error::engine(
            "make the volume for the session's git folder",
        ))
}

/// Removes both volumes once they are unused; a container that used one may take a moment to go.
pub(super) async fn remove(engine: &Engine, id: &str) {
    let both = async {
        // The other one tells the next start that something is left.
        remove_in_time(engine, name_of_below(id)).await;
        remove_in_time(engine, name(id)).await;
    };
    // The next start removes what is left.
    tokio::select! {
        () = both => {}
        () = engine.late() => {}
    }
}

async fn remove_in_time(engine: &Engine, name: String) {
    const MOST_TRIES: u32 = 300;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
    let cancel = CancellationToken::new();
    for _ in 0..MOST_TRIES {
        match engine.remove_volume(&name, &cancel).await {
            Ok(true) => return,
            Ok(false) if matches!(engine.volume_folder(&name, &cancel).await, Ok(None)) => return,
            Ok(false) => tokio::time::sleep(PAUSE).await,
            Err(error) => {
                return tracing::debug!(%error, name, "the volume is removed at the next start");
            }
        }
    }
    tracing::debug!(
        name,
        "the volume is in use, and is removed at the next start"
    );
}
