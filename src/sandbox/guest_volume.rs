use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Spec;
use crate::engine::ContainerSpec;
use crate::engine::Engine;
use crate::engine::Labels;
use crate::engine::Mount;
use crate::engine::Owner;
use crate::engine::Role;
use crate::engine::VolumeFile;
use crate::event::InstanceId;
use crate::guest;

/// Returns the name of the volume that holds this build's guest.
pub fn guest_volume_name() -> String {
    format!("podbay-guest-{}", guest::build_id())
}

/// Brings this very program into the volume that boxes run it from.
///
/// The file belongs to root with mode 0711: commands of another uid can run it and never read it, and the kernel therefore keeps the
/// running guest's memory and pipes from them.
pub(super) async fn fill(engine: &Engine, spec: &Spec, cancel: &CancellationToken) -> Result<(), Error> {
    if !guest::is_static() {
        return Err(Error::Guest { problem: "this program was not linked statically, so it cannot run in other images".to_owned() });
    }
    // The path may have been replaced by a newer build meanwhile; the link leads to the file that runs.
    let program =
        tokio::fs::read("/proc/self/exe").await.map_err(|error| Error::Guest { problem: format!("it cannot be read: {error}") })?;
    let volume = guest_volume_name();
    let failed = Error::engine("bring the guest program into the sandbox");
    let labels = Labels { owner: Some(Owner::current()), ..Labels::new(Role::Filler) };
    let filler = filler(spec, labels);
    let files = [VolumeFile { path: "podbay".to_owned(), mode: 0o711, uid: 0, gid: 0, content: Some(Bytes::from(program)) }];
    let exchange = async {
        // One that exists without its content was left by a controller that ended in the middle.
        engine.remove_volume(&volume, cancel).await?;
        engine.create_volume(&volume, &Labels::new(Role::Guest), cancel).await?;
        engine.fill_volume(&volume, &filler, &files, cancel).await
    };
    exchange.await.map_err(failed)
}

fn filler(spec: &Spec, labels: Labels) -> ContainerSpec {
    let mut filler = spec.container(format!("podbay-filler-{}", InstanceId::random()), labels);
    filler.mounts = Vec::<Mount>::new();
    filler.tmpfs = Vec::new();
    filler.readonly_paths.retain(|path| !path.starts_with("/workspace"));
    filler.attached = false;
    filler.auto_remove = false;
    filler
}
