//! Repositories around a project, whose folders no sandbox sees: one that the project is a
//! subfolder of, and one that its `.git` file points to, as a submodule's does. Their settings can
//! make the user's git obey files of the project, and only the host can read them. Git itself is
//! never run for it.

use std::collections::BTreeSet;
use std::fs;
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use super::top::Top;
use crate::Project;
use crate::project::git_folder;
use podbay_guest::keep::git::HOOKS;
use podbay_guest::keep::git::UntrustedFolder;
use podbay_guest::keep::git::linked;
use podbay_guest::keep::git::obeyed_paths;
use podbay_guest::keep::git::obeyed_paths_in_worktree;
use podbay_wire::BytesPath;
use podbay_wire::keep::ObeyedPaths;

/// Returns patterns, in the form of `sandbox.auto_run`, for what the user's git obeys in the
/// project because of a surrounding repository's settings: hook folders, and included settings
/// files.
pub fn obeyed_around(project: &Project) -> Vec<String> {
    let mut patterns = BTreeSet::new();
    for tree in project.path().ancestors() {
        let Ok(within) = project.path().strip_prefix(tree) else {
            continue;
        };
        let obeyed = obeyed_in(tree, tree == project.path()).unwrap_or_default();
        for path in obeyed.paths.into_iter().chain(obeyed.said) {
            match path.as_path().strip_prefix(within) {
                // If that folder is the whole project, only hooks count.
                Ok(path) if path.as_os_str().is_empty() => {
                    patterns.extend(HOOKS.map(|hook| format!("/{hook}")));
                }
                Ok(path) => drop(patterns.insert(pattern(path))),
                Err(_) => {}
            }
        }
    }
    patterns.into_iter().collect()
}

/// Returns why a sandbox has no git, although the user's git would find a repository for the
/// project. A session has a git folder of its own for a linked worktree.
pub(crate) fn why_no_git(project: &Project, is_of_session: bool) -> Option<String> {
    let place = if is_of_session { "session" } else { "sandbox" };
    match Top::of(project) {
        Top::Folder => return None,
        Top::Worktree { .. } if is_of_session => return None,
        Top::Worktree { common, .. } => {
            return Some(format!(
                "git does not work in this {place}: the project is a linked worktree of {}, which is not in the sandbox; \
                 in `podbay run` and `podbay chat` it does",
                common.display()
            ));
        }
        Top::None => {}
    }
    let tree = project
        .path()
        .ancestors()
        .find(|tree| fs::symlink_metadata(tree.join(".git")).is_ok())?;
    Some(if tree == project.path() {
        let named = git_folder(tree).ok().flatten()?;
        format!(
            "git does not work in this {place}: the project's file `.git` leads to {}, which is not in the sandbox; where the project is a \
             submodule, git works in a session of the repository that it belongs to: name that one's folder, -C DIR",
            named.display()
        )
    } else {
        format!(
            "git does not work in this {place}: the project is a folder of the repository {0}, whose `.git` is not in the sandbox; name that \
             one's folder if you want it there: -C {0}",
            tree.display()
        )
    })
}

/// Returns what git obeys in a working tree by its repository's settings, relative to the tree. The
/// keeper reads the repository at the top of a project.
fn obeyed_in(tree: &Path, is_project: bool) -> Option<ObeyedPaths> {
    let git = tree.join(".git");
    let facts = fs::symlink_metadata(&git).ok()?;
    let place = tree.as_os_str().as_bytes();
    let place = place.strip_suffix(b"/").unwrap_or(place);
    if facts.is_dir() {
        return (!is_project)
            .then(|| UntrustedFolder::open(tree).ok())
            .flatten()
            .map(|folder| obeyed_paths(&folder, iter::empty(), place));
    }
    let real = if facts.is_symlink() {
        git
    } else {
        tree.join(git_folder(tree).ok().flatten()?)
    };
    let (real, name) = repository(real);
    let (folder, real) = (
        UntrustedFolder::open(tree).ok()?,
        UntrustedFolder::open(&real).ok()?,
    );
    Some(obeyed_paths_in_worktree(
        &folder,
        &real,
        name.as_bytes(),
        place,
    ))
}

/// Returns the folder with the settings of a repository, and the name of the linked worktree, empty
/// if there is none.
fn repository(real: PathBuf) -> (PathBuf, BytesPath) {
    match linked(&BytesPath::from(real.as_path())) {
        Some((common, name)) => (common.as_path().to_owned(), name),
        None => (real, BytesPath::default()),
    }
}

/// Returns a pattern for a path in the project and all below it. Characters that are special in
/// patterns or not UTF-8 become wildcards: rather one file too many than none.
fn pattern(path: &Path) -> String {
    let mut pattern = String::from("/");
    for character in path.to_string_lossy().chars() {
        match character {
            char::REPLACEMENT_CHARACTER => pattern.push('*'),
            '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\' => pattern.push('?'),
            other if other.is_whitespace() || other.is_control() => pattern.push('?'),
            other => pattern.push(other),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with repositories that have these settings.
    struct Place {
        _place: tempfile::TempDir,
        root: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let place = tempfile::tempdir().expect("a folder");
            let root = fs::canonicalize(place.path()).expect("a path");
            Self {
                _place: place,
                root,
            }
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }

        fn repository(&self, git: &str, settings: &str) {
            for folder in ["objects", "refs"] {
                fs::create_dir_all(self.root.join(git).join(folder)).expect("made");
            }
            self.write(&format!("{git}/HEAD"), "ref: refs/heads/main\n");
            self.write(&format!("{git}/config"), settings);
        }

        fn project(&self, path: &str) -> Project {
            fs::create_dir_all(self.root.join(path)).expect("made");
            Project::open(&self.root.join(path), None, Path::new("/nonexistent"))
                .expect("a project")
        }
    }

    fn hooks(path: &str) -> String {
        format!("[core]\n\thooksPath = {path}\n")
    }

    #[test]
    fn settings_of_a_surrounding_repository_are_obeyed_in_the_project() {
        let place = Place::new();
        let project = place.project("repo/a/sub");
        let root = place.root.display().to_string();
        assert_eq!(obeyed_around(&project), Vec::<String>::new());
        assert_eq!(why_no_git(&project, true), None);
        let around = |settings: &str| {
            place.repository("repo/.git", settings);
            obeyed_around(&project)
        };
        for path in [
            "a/sub/tools/hooks",
            "./a//sub/x/../tools/hooks/",
            &format!("{root}/repo/a/sub/tools/hooks"),
        ] {
            assert_eq!(around(&hooks(path)), ["/tools/hooks"], "{path}");
        }
        // Whether the included file exists or not, and with what it includes itself.
        assert_eq!(around("[include]\n\tpath = ../a/sub/x.cfg\n"), ["/x.cfg"]);
        place.write("repo/a/sub/x.cfg", &hooks("a/sub/in it,\\\\[1]"));
        assert_eq!(
            around("[includeIf \"onbranch:main\"]\n\tpath = ../a/sub/x.cfg\n"),
            ["/in?it???1?", "/x.cfg"]
        );
        // Programs named in the settings too.
        assert_eq!(
            around("[filter \"a\"]\n\tclean = sh a/sub/tools/clean.sh %f\n"),
            ["/tools/clean.sh"]
        );
        assert!(around(&hooks("a/sub")).contains(&"/pre-commit".to_owned()));
        // And what its hooks name.
        place.write(
            "repo/.git/hooks/pre-commit",
            "a/sub/tools/check && python a/sub/lint/all.py && python -m lint\n",
        );
        assert_eq!(around(""), ["/lint/all.py", "/tools/check"]);
        fs::remove_file(place.root.join("repo/.git/hooks/pre-commit")).expect("removed");
        for path in [
            "tools/hooks",
            "a/subs/hooks",
            "a",
            "/dev/null",
            ".git/hooks",
        ] {
            assert_eq!(around(&hooks(path)), Vec::<String>::new(), "{path}");
        }
        let why = why_no_git(&project, true).expect("told");
        assert!(
            why.contains(&format!("a folder of the repository {root}/repo,")),
            "{why}"
        );
        // Of a linked worktree too.
        fs::remove_dir_all(place.root.join("repo/.git")).expect("removed");
        place.write("repo/.git", "gitdir: ../main/.git/worktrees/repo\n");
        place.repository("main/.git", &hooks("a/sub/all"));
        place.write(
            "main/.git/worktrees/repo/config.worktree",
            &hooks("a/sub/own"),
        );
        assert_eq!(obeyed_around(&project), ["/all", "/own"]);
    }

    #[test]
    fn only_a_session_has_the_git_of_a_linked_worktree() {
        let place = Place::new();
        place.repository("bare.git", "");
        place.write("bare.git/worktrees/w/HEAD", "ref: refs/heads/w\n");
        let project = place.project("w");
        place.write(
            "w/.git",
            &format!("gitdir: {}/bare.git/worktrees/w\n", place.root.display()),
        );
        assert_eq!(why_no_git(&project, true), None);
        let why = why_no_git(&project, false).expect("told");
        let repository = place.root.join("bare.git");
        assert!(
            why.contains(&format!("a linked worktree of {}", repository.display())),
            "{why}"
        );
    }

    #[test]
    fn settings_of_a_submodule_and_its_superproject_are_obeyed() {
        let place = Place::new();
        place.repository("super/.git", &hooks("sm/above"));
        place.repository(
            "super/.git/modules/sm",
            "[core]\n\tworktree = ../../../sm\n\thooksPath = own\n[include]\n\tpath = ../../../sm/x.cfg\n",
        );
        place.write("super/sm/.git", "gitdir: ../.git/modules/sm\n");
        let project = place.project("super/sm");
        assert_eq!(obeyed_around(&project), ["/above", "/own", "/x.cfg"]);
        assert!(obeyed_around(&place.project("super/sm/own")).contains(&"/pre-commit".to_owned()));
        let why = why_no_git(&project, true).expect("told");
        assert!(why.contains("leads to ../.git/modules/sm,"), "{why}");
        // At another place, without a repository above the project.
        place.repository("apart", &hooks("own"));
        place.write("alone/.git", "gitdir: ../apart\n");
        assert_eq!(obeyed_around(&place.project("alone")), ["/own"]);
        // The keeper reads the project's own repository.
        place.repository("whole/.git", &hooks("own"));
        assert_eq!(obeyed_around(&place.project("whole")), Vec::<String>::new());
    }
}
