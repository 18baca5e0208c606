//! Whether what is mounted into a box lands where it should.
//!
//! An engine follows the image's own links to the place of a mount and makes what is missing there, as root. With a link that leads into
//! `/workspace` that place lies in the project, on the host. So an image is looked at before the first box is made from it.

use std::fs;
use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::Spec;
use super::guest_volume::filler;
use super::spec::clean;
use crate::engine::Engine;
use crate::engine::ImageFacts;
use crate::engine::ImageLink;
use crate::engine::Labels;
use crate::engine::Owner;
use crate::engine::Role;
use crate::event::InstanceId;

/// Places of our own mounts and of the engine's, none of which may be a link. What lies deeper is hidden by a mount on one of these.
const PLACES: [&str; 9] = ["/dev", "/etc", "/home", "/home/agent", "/proc", "/run", "/sys", "/tmp", "/workspace"];

/// Files that the engine mounts; images do have links for them, which may lead anywhere but into the project.
const FILES: [&str; 3] = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"];

/// Counts the changes of what is looked for here: an image that was good by older rules is looked at again.
const RULES: u32 = 2;

/// Looks at an image, once: what was found good is remembered in a folder, by the image's id, which is a hash of all of it.
pub(super) async fn check(engine: &Engine, spec: &Spec, image: &ImageFacts, seen: &Path, cancel: &CancellationToken) -> Result<(), Error> {
    let known = seen.join(format!("{}-{RULES}", image.id.replace(|c: char| !c.is_ascii_alphanumeric(), "-")));
    if known.exists() {
        return Ok(());
    }
    let mut look = filler(spec, Labels { owner: Some(Owner::current()), ..Labels::new(Role::Filler) });
    look.name = format!("podbay-look-{}", InstanceId::random());
    let links = engine.links(&look, &paths(&image.volumes), cancel).await.map_err(Error::engine("look at the image"))?;
    if let Some(problem) = links.iter().find_map(problem) {
        return Err(Error::Image { image: image.tags.first().unwrap_or(&image.id).clone(), problem });
    }
    match fs::File::create(known) {
        Ok(_) => {}
        // Then it is looked at again the next time.
        Err(error) => tracing::debug!(%error, "that the image is good cannot be remembered"),
    }
    Ok(())
}

/// Returns every path on the way to a mount: ours, the engine's, the image's volumes.
fn paths(volumes: &[String]) -> Vec<String> {
    let mut paths: Vec<String> = PLACES.iter().chain(&FILES).map(|&path| path.to_owned()).collect();
    for volume in volumes {
        let mut path = String::new();
        // As the engine reads it.
        for part in clean(volume).split('/').filter(|part| !part.is_empty()) {
            path = format!("{path}/{part}");
            if !paths.contains(&path) {
                paths.push(path.clone());
            }
        }
    }
    paths
}

fn problem(link: &ImageLink) -> Option<String> {
    let ImageLink { path, target } = link;
    // Without `/proc` mounted nobody can tell where a link into it leads, and in a box it may lead anywhere.
    let is_at = |place: &str| Path::new(target).starts_with(place);
    // On the way to one of the engine's files links are usual; on the way to a volume nobody needs one.
    let is_allowed = FILES.contains(&path.as_str()) && !is_at("/workspace") && !is_at("/proc");
    (!is_allowed).then(|| {
        format!("its `{path}` is a symbolic link to `{target}`, and the engine would follow it and make folders there, in your project too, as root")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, target: &str, is_refused: bool) {
        let link = ImageLink { path: path.to_owned(), target: target.to_owned() };
        assert_eq!(problem(&link).is_some(), is_refused, "{link:?}");
    }

    #[test]
    fn links_at_our_places_and_into_the_project_are_refused() {
        check("/home/agent", "/workspace/home", true);
        check("/run", "/var/run", true);
        check("/workspace", "/srv", true);
        check("/srv/data", "/workspace", true);
        check("/srv/data", "/workspaces", true);
        check("/srv/data", "/proc/self/root/workspace/made", true);
        check("/etc/resolv.conf", "/proc/self/root/workspace/made", true);
        check("/etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", false);
        check("/etc/resolv.conf", "/workspace/resolv.conf", true);
        let volumes = ["/var/lib/data/".to_owned(), "/var/lib/more".to_owned(), "/a/../srv/data".to_owned()];
        assert_eq!(
            paths(&volumes)[PLACES.len() + FILES.len()..],
            ["/var", "/var/lib", "/var/lib/data", "/var/lib/more", "/srv", "/srv/data"]
        );
    }
}
