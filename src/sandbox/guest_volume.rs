use std::time::Duration;
use std::time::Instant;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Spec;
use super::docker::facts_of;
use super::spec::SECCOMP;
use podbay_engine as engine;
use podbay_engine::ContainerSpec;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Leftover;
use podbay_engine::Mount;
use podbay_engine::Network;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_engine::VolumeFile;
use podbay_event::InstanceId;
use podbay_guest as guest;

/// How long another controller may take to fill the volume.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the name of the volume that holds this build's guest.
pub fn guest_volume_name() -> String {
    format!("podbay-guest-{}", guest::build_id())
}

/// The names that a sandbox knows; it has no resolver, and programs of all kinds open connections to
/// `localhost`.
const HOSTS: &str = "127.0.0.1\tlocalhost workspace\n::1\tlocalhost ip6-localhost ip6-loopback\n";

/// Name of that list in the volume.
const HOSTS_FILE: &str = "hosts";

/// The volume that a sandbox runs its guest from.
pub(super) struct GuestVolume {
    /// Path of the list of hosts on the engine's machine; `None` where the engine cannot mount it
    /// by that.
    pub(super) hosts: Option<String>,
    /// Whether it was filled just now.
    pub(super) filled: bool,
}

/// Held while this process fills the volume: a session's sandbox and its keeper start at once, and
/// the second must neither fill it again nor start from one that is half full.
static FILLING: Mutex<()> = Mutex::const_new(());

/// Returns the volume, filled first where it is missing.
pub(super) async fn ready(
    engine: &Engine,
    spec: &Spec,
    cancel: &CancellationToken,
) -> Result<GuestVolume, Error> {
    let name = guest_volume_name();
    let find = || async {
        engine
            .volume_folder(&name, cancel)
            .await
            .map_err(Error::engine("look for the guest program"))
    };
    let mut found = find().await?;
    let _one_at_a_time = FILLING.lock().await;
    if found.is_none() {
        found = find().await?;
    }
    let filled = found.is_none();
    let folder = if filled {
        fill(engine, spec, cancel).await?;
        find().await?
    } else {
        found
    };
    // Docker Desktop takes paths for those of the machine around its own.
    let is_desktop = facts_of(engine, cancel).await?.desktop;
    let folder = folder.filter(|folder| folder.starts_with('/') && !is_desktop);
    Ok(GuestVolume {
        hosts: folder.map(|folder| format!("{folder}/{HOSTS_FILE}")),
        filled,
    })
}

/// Brings this very program into the volume that sandboxes run it from.
///
/// The file belongs to root with mode 0111: commands can run it and never read it, whatever their
/// uid, and the kernel therefore keeps the running guest's memory and pipes from them.
pub(super) async fn fill(
    engine: &Engine,
    spec: &Spec,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    if !guest::is_static() {
        return Err(Error::Guest {
            problem: "this program was not linked statically, so it cannot run in other images"
                .to_owned(),
        });
    }
    // The path may have been replaced by a newer build meanwhile; the link leads to the file that
    // runs.
    let program = tokio::fs::read("/proc/self/exe")
        .await
        .map_err(|error| Error::Guest {
            problem: format!("it cannot be read: {error}"),
        })?;
    let volume = guest_volume_name();
    let failed = Error::engine("bring the guest program into the sandbox");
    let labels = Labels {
        owner: Some(Owner::current()),
        ..Labels::new(Role::Filler)
    };
    let filler = filler(spec, labels);
    // The name appears last, when the file behind it is whole: a sandbox never starts from half a
    // program.
    let mut files = vec![VolumeFile::text(HOSTS_FILE, HOSTS)];
    files.extend(spec.user_files());
    files.extend([
        VolumeFile::program("podbay.new", program),
        VolumeFile::link("podbay", "podbay.new"),
    ]);
    let exchange = async {
        // One without our label was made by the engine for a sandbox that found none.
        let ours = |leftover: &Leftover| matches!(leftover, Leftover::Volume { name, .. } if *name == volume);
        if !engine.volumes(cancel).await?.iter().any(ours) {
            engine.remove_volume(&volume, cancel).await?;
        }
        engine
            .create_volume(&volume, &Labels::new(Role::Guest), cancel)
            .await?;
        engine.fill_volume(&volume, &filler, &files, cancel).await
    };
    match exchange.await {
        Err(error) if error.is_conflict() => wait_for_other(engine, &filler.name, cancel)
            .await
            .map_err(failed),
        other => other.map_err(failed),
    }
}

/// Brings the lists of users of a sandbox into the guest's volume.
pub(super) async fn fill_users(
    engine: &Engine,
    spec: &Spec,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let (volume, filler) = (guest_volume_name(), filler_of_others(spec));
    engine
        .fill_volume(&volume, &filler, &spec.user_files(), cancel)
        .await
        .map_err(Error::engine("bring the list of users into the sandbox"))
}

/// Waits while another controller fills the volume. Whether it succeeded is seen when a sandbox starts.
async fn wait_for_other(
    engine: &Engine,
    filler: &str,
    cancel: &CancellationToken,
) -> Result<(), engine::Error> {
    let begun = Instant::now();
    while let Some(state) = engine.state(filler, cancel).await? {
        let is_gone = state
            .labels
            .and_then(|labels| labels.owner)
            .is_some_and(|owner| owner.is_gone());
        if is_gone || begun.elapsed() > PATIENCE {
            return engine.remove(&state.id).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The filler's name is the lock: of several controllers that find no volume, the engine lets one
/// make it.
fn filler(spec: &Spec, labels: Labels) -> ContainerSpec {
    bare(&spec.container(format!("podbay-filler-{}", guest::build_id()), labels, None))
}

/// Returns a container to fill other volumes through, with a name of its own.
pub(super) fn filler_of_others(spec: &Spec) -> ContainerSpec {
    let labels = Labels {
        owner: Some(Owner::current()),
        ..Labels::new(Role::Filler)
    };
    let name = format!(
        "podbay-filler-{}-{}",
        guest::build_id(),
        InstanceId::random()
    );
    bare(&spec.container(name, labels, None))
}

/// Returns a container that is there to be looked into or to be filled, and never started: with
/// nothing of the host.
pub(super) fn bare(container: &ContainerSpec) -> ContainerSpec {
    let mut bare = container.clone();
    bare.mounts = Vec::<Mount>::new();
    bare.tmpfs = Vec::new();
    bare.network = Network::None;
    bare.readonly_paths
        .retain(|path| !path.starts_with("/workspace"));
    bare.seccomp = Some(SECCOMP.to_owned());
    bare.attached = false;
    bare.auto_remove = false;
    bare
}
