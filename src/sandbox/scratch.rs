//! Where a sandbox has its temporary files and its home folder.
//!
//! They lie on the engine's disk, in volumes that begin as the image has these folders: with the
//! mode that lets every user write. The engine makes such a volume with the container and removes
//! it with it, which takes no request of ours, whoever is killed. Those of a session whose turns
//! are applied have names, since they move to its next sandbox.
//!
//! An image whose `/tmp` is not for every user gets both in memory.

use super::held::Held;
use super::image_paths::TMP;
use super::image_paths::VAR_TMP;
use super::spec::HOME;
use super::user_names::ImageUsers;
use podbay_engine::ContainerSpec;
use podbay_engine::Mount;

/// The home folder where the image has none that every user may write to. A dot keeps it out of
/// `/tmp/*`.
const HOME_IN_TMP: &str = "/tmp/.home";

/// Said of an image without a usable `/tmp`.
const IN_MEMORY: &str = "the image has no /tmp that every user may write to (mode 1777), so /tmp and the home folder lie in memory, within \
                         `sandbox.memory`";

/// The folders of a sandbox that are on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scratch {
    pub(super) home: &'static str,
    /// None: both are in memory.
    folders: Vec<&'static str>,
}

/// A folder that a session takes from one sandbox to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CarriedFolder {
    pub(super) volume: String,
    pub(super) target: &'static str,
}

impl Scratch {
    pub(super) fn in_memory() -> Self {
        Self {
            home: HOME,
            folders: Vec::new(),
        }
    }

    /// Returns those for an image, and what is to be said of them.
    pub(super) fn of(image: &ImageUsers) -> (Self, Option<String>) {
        let is_open = |folder: &&str| image.open_folders.iter().any(|open| open == folder);
        if !is_open(&TMP) {
            return (Self::in_memory(), Some(IN_MEMORY.to_owned()));
        }
        let folders: Vec<_> = [TMP, VAR_TMP, HOME].into_iter().filter(is_open).collect();
        let home = if folders.contains(&HOME) {
            HOME
        } else {
            HOME_IN_TMP
        };
        (Self { home, folders }, None)
    }

    pub(super) fn is_in_memory(&self) -> bool {
        self.folders.is_empty()
    }

    /// Returns the folders that a session takes along whose turns are applied.
    pub(super) fn carried(&self, held: &Held) -> Vec<CarriedFolder> {
        if held.view.is_none() {
            return Vec::new();
        }
        let folders = if self.is_in_memory() {
            vec![TMP, HOME]
        } else {
            self.folders.clone()
        };
        let of = |target: &'static str| CarriedFolder {
            volume: format!("{}-{}", held.upper(), kind(target)),
            target,
        };
        folders.into_iter().map(of).collect()
    }

    /// Puts them into a container, instead of those in memory.
    pub(super) fn mount(&self, container: &mut ContainerSpec, held: Option<&Held>) {
        let carried = held.map_or_else(Vec::new, |held| self.carried(held));
        if !self.is_in_memory() {
            container.tmpfs.retain(|(path, _)| path != HOME);
        }
        for CarriedFolder { volume, target } in &carried {
            container.tmpfs.retain(|(path, _)| path != target);
            let (name, target) = (volume.clone(), (*target).to_owned());
            container.mounts.push(if self.is_in_memory() {
                Mount::Volume {
                    name,
                    target,
                    read_only: false,
                }
            } else {
                Mount::Seeded {
                    name,
                    target,
                    read_only: false,
                }
            });
        }
        if carried.is_empty() {
            for &folder in &self.folders {
                container.tmpfs.retain(|(path, _)| path != folder);
                container.mounts.push(Mount::Anonymous {
                    target: folder.to_owned(),
                });
            }
        }
    }
}

/// Names a folder within the name of its volume.
fn kind(folder: &str) -> &'static str {
    match folder {
        TMP => "tmp",
        VAR_TMP => "var-tmp",
        _ => "home",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(open: &[&str], home: &str, folders: &[&str], is_said: bool) {
        let image = ImageUsers {
            open_folders: open.iter().map(|&folder| folder.to_owned()).collect(),
            ..ImageUsers::default()
        };
        let (scratch, said) = Scratch::of(&image);
        assert_eq!(
            (scratch.home, scratch.folders.as_slice(), said.is_some()),
            (home, folders, is_said)
        );
    }

    #[test]
    fn what_an_image_lets_all_users_write_is_on_disk() {
        check(&[TMP, VAR_TMP, HOME], HOME, &[TMP, VAR_TMP, HOME], false);
        check(&[TMP], HOME_IN_TMP, &[TMP], false);
        check(&[HOME, VAR_TMP], HOME, &[], true);
        check(&[], HOME, &[], true);
    }
}
