use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::Spec;
use crate::guest_volume::bare;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_event::InstanceId;
use podbay_guest as guest;

/// How the volume of a session's git folder is named.
const PREFIX: &str = "podbay-git-";

/// How the volume is named that no box has as a whole: it has the folders for repositories below
/// the top, and what leads a linked worktree to its own. What the engine is to mount by its path
/// must lie where no command can put something else in its place.
const PREFIX_BELOW: &str = "podbay-below-";

pub(super) fn name(id: &str) -> String {
    format!("{PREFIX}{id}")
}

pub(super) fn name_of_below(id: &str) -> String {
    format!("{PREFIX_BELOW}{id}")
}

/// Returns the name of the session's git that a volume is of.
pub(super) fn id(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

/// Makes the volume; `owned`: with a folder for the user that the box runs as. Without, it says
/// that there is a session to be settled.
pub(super) async fn make(
    engine: &Engine,
    spec: &Spec,
    labels: &Labels,
    (name, owned): (&str, bool),
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let failed = Error::engine("make the volume for the session's git folder");
    let labels = Labels {
        project: Some(spec.project.key()),
        path: Some(spec.project.text().to_owned()),
        owner: Some(Owner::current()),
        session: labels.session.clone(),
        ..Labels::new(Role::Git)
    };
    let exchange = async {
        engine.create_volume(name, &labels, cancel).await?;
        if owned {
            let labels = Labels {
                owner: Some(Owner::current()),
                ..Labels::new(Role::Filler)
            };
            let filler = spec.container(
                format!(
                    "podbay-filler-{}-{}",
                    guest::build_id(),
                    InstanceId::random()
                ),
                labels,
                None,
            );
            engine
                .own_volume(name, &bare(&filler), spec.ids(), cancel)
                .await?;
        }
        Ok(())
    };
    exchange.await.map_err(failed)
}

/// Removes both volumes once nothing uses them; a container that used one may take a moment to go.
pub(super) async fn remove(engine: &Engine, id: &str) {
    let both = async {
        // The other one is what the next start goes by.
        remove_in_time(engine, name_of_below(id)).await;
        remove_in_time(engine, name(id)).await;
    };
    // What is left is removed at the next start.
    tokio::select! {
        () = both => {}
        () = engine.late() => {}
    }
}

async fn remove_in_time(engine: &Engine, name: String) {
    const MOST_TRIES: u32 = 60;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
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
