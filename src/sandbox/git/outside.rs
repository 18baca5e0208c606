//! Repositories outside of a project that `.git` files below its top point to, as those of linked
//! worktrees do. No sandbox and no keeper sees them, and only the host can read what their settings
//! make the user's git obey in the project. Git itself is never run for it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::Project;
use podbay_guest::keep::git::UntrustedFolder;
use podbay_guest::keep::git::is_repository;
use podbay_guest::keep::git::linked;
use podbay_guest::keep::git::obeyed_paths_below;
use podbay_guest::keep::git::outside_repository as leads_outside;
use podbay_guest::root::join;
use podbay_guest::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::ObeyedPaths;
use podbay_wire::keep::OutsideRepositories;

/// Most such files that are read: each may point anywhere.
const MOST: usize = 100;

/// Reads the settings of these repositories. `gits` are the `.git` folders and files below the top.
pub(crate) fn outside<'a>(
    project: &Project,
    gits: impl Iterator<Item = &'a [u8]>,
) -> OutsideRepositories {
    let mut read = OutsideRepositories::default();
    let Ok(folder) = UntrustedFolder::open(project.path()) else {
        return read;
    };
    for git in gits.take(MOST) {
        if let Some((config, obeyed)) = one(project.path(), &folder, git) {
            OutsideRepositories {
                read: Vec::new(),
                obeyed,
            }
            .add_to(&mut read.obeyed);
            read.read.push(config);
        }
    }
    read.read.sort();
    read.read.dedup();
    read
}

/// Reads one, if the file points outside. No symlink in the project is followed on the way to the
/// file, and none in the repository.
fn one(path: &Path, project: &UntrustedFolder, git: &[u8]) -> Option<(BytesPath, ObeyedPaths)> {
    let place = path.as_os_str().as_bytes();
    let (to, config) = leads_outside(project, git, place)?;
    let (common, name) = linked(&to).unwrap_or_else(|| (to, BytesPath::default()));
    let tree = BytesPath::from_bytes(join(place, split(git).0));
    let real = UntrustedFolder::open(&tree.as_path().join(common.as_path())).ok()?;
    if !is_repository(&real.names(b"").ok()?) {
        return None;
    }
    let at = split(config.as_bytes()).0;
    let obeyed = obeyed_paths_below(
        project,
        git,
        (&real, BytesPath::from_bytes(at).as_path()),
        name.as_bytes(),
        place,
    )?;
    Some((config, obeyed))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Place {
        _place: tempfile::TempDir,
        project: Project,
    }

    impl Place {
        fn new() -> Self {
            let place = tempfile::tempdir().expect("a folder");
            fs::create_dir(place.path().join("project")).expect("made");
            let project = Project::open(
                &place.path().join("project"),
                None,
                Path::new("/nonexistent"),
            )
            .expect("a project");
            Self {
                _place: place,
                project,
            }
        }

        /// Writes a file, relative to the project.
        fn write(&self, path: &str, text: &str) {
            let path = self.project.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }

        fn repository(&self, git: &str, settings: &str) {
            for folder in ["objects", "refs"] {
                fs::create_dir_all(self.project.path().join(git).join(folder)).expect("made");
            }
            self.write(&format!("{git}/HEAD"), "ref: refs/heads/main\n");
            self.write(&format!("{git}/config"), settings);
        }

        /// Returns which settings were read, and what is obeyed because of them.
        fn read(&self, git: &str) -> (Vec<String>, Vec<String>) {
            let OutsideRepositories { read, obeyed } =
                outside(&self.project, [git.as_bytes()].into_iter());
            let above = format!(
                "{}/",
                self.project.path().parent().expect("a folder").display()
            );
            let texts = |paths: &[BytesPath]| {
                paths
                    .iter()
                    .map(|path| path.to_text().replace(&above, ""))
                    .collect()
            };
            (texts(&read), texts(&obeyed.said))
        }
    }

    #[test]
    fn settings_outside_the_project_are_read_on_the_host() {
        let place = Place::new();
        let hooks = "[core]\n\thooksPath = hk\n[filter \"f\"]\n\tclean = tools/clean %f\n";
        let none = (Vec::<String>::new(), Vec::<String>::new());
        place.repository("../apart", hooks);
        place.write("a/.git", "gitdir: ../../apart\n");
        assert_eq!(
            place.read("a/.git"),
            (
                vec!["apart/config".to_owned()],
                vec!["a/hk".to_owned(), "a/tools/clean".to_owned()]
            )
        );
        // A linked worktree, with settings of its own.
        place.repository(
            "../main/.git",
            "[extensions]\n\tworktreeConfig = true\n[core]\n\tworktree = /elsewhere\n",
        );
        let own = "../main/.git/worktrees/w";
        place.write(&format!("{own}/config.worktree"), hooks);
        place.write(
            "w/.git",
            &format!(
                "gitdir: {}/../main/.git/worktrees/w\n",
                place.project.path().display()
            ),
        );
        assert_eq!(
            place.read("w/.git"),
            (
                vec!["main/.git/config".to_owned()],
                vec!["w/hk".to_owned(), "w/tools/clean".to_owned()]
            )
        );
        // A repository with a worktree elsewhere is reported instead, and so is an unreadable one.
        for (settings, is_read) in [
            ("[core]\nworktree = ../project/a\n", true),
            ("[core]\nworktree = ../project/b\n", false),
            ("[core\n", false),
        ] {
            place.repository("../apart", settings);
            assert_eq!(
                place.read("a/.git").0.len(),
                usize::from(is_read),
                "{settings}"
            );
        }
        place.repository("../apart", hooks);
        fs::rename(
            place.project.path().join("../apart/config"),
            place.project.path().join("../kept"),
        )
        .expect("moved");
        assert_eq!(place.read("a/.git"), none);
        std::os::unix::fs::symlink("../kept", place.project.path().join("../apart/config"))
            .expect("linked");
        assert_eq!(place.read("a/.git"), none, "no link is followed");
        fs::remove_file(place.project.path().join("../apart/config")).expect("removed");
        nix::unistd::mkfifo(
            &place.project.path().join("../apart/config"),
            nix::sys::stat::Mode::S_IRWXU,
        )
        .expect("made");
        assert_eq!(place.read("a/.git"), none, "no pipe is waited for");
        // What is inside the project is not read on the host, nor is anything behind a symlink
        // there.
        place.repository("inside", hooks);
        place.write("i/.git", "gitdir: ../inside\n");
        place.repository("../fine", hooks);
        place.write("f/.git", "gitdir: ../../fine\n");
        std::os::unix::fs::symlink("f", place.project.path().join("link")).expect("linked");
        for git in ["i/.git", "link/.git", "inside", "not/there/.git", ".git"] {
            assert_eq!(place.read(git), none, "{git}");
        }
        assert_eq!(place.read("f/.git").0, ["fine/config"]);
    }
}
