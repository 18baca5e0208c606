//! Changes that are never made in a project, whatever was asked for.

use std::collections::BTreeSet;

use super::bare_repository::NewRepositoryParts;
use super::compare::Change;
use super::node::Node;
use super::project::Project;
use super::uncaptured::can_come;
use super::uncaptured::why;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::is_hidden;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::UncapturedReason;

/// The set-user-id and set-group-id bits.
pub(super) const SET_ID: u32 = 0o6000;

/// Where the new state comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// From an earlier state of this project: restoring it adds nothing new.
    Before,
    /// From a session that had no access to the project.
    Elsewhere,
}

/// The reasons why some changes are not made.
#[derive(Debug)]
pub(super) struct ForbiddenChanges {
    origin: Origin,
    new_parts: NewRepositoryParts,
    /// Links that lead out of the project through links that exist in it.
    led_out: BTreeSet<BytesPath>,
}

impl ForbiddenChanges {
    /// Examines the changes together with what exists in the project.
    pub(super) fn of(project: &Project, changes: &[Change], origin: Origin) -> Self {
        let new_parts = if origin == Origin::Elsewhere {
            NewRepositoryParts::of(project, changes)
        } else {
            NewRepositoryParts::default()
        };
        let leads_out = |change: &&Change| {
            let Some(Node::Link { target }) = &change.after else {
                return false;
            };
            origin == Origin::Elsewhere
                && project.leads_out(&join(split(change.path.as_bytes()).0, target.as_bytes()))
        };
        let led_out = changes
            .iter()
            .filter(leads_out)
            .map(|change| change.path.clone())
            .collect();
        Self {
            origin,
            new_parts,
            led_out,
        }
    }

    pub(super) fn reason(&self, change: &Change) -> Option<LeftReason> {
        if change.after.is_some() && self.new_parts.has(change.path.as_bytes()) {
            return Some(LeftReason::Git);
        }
        let led_out = || match &change.after {
            Some(Node::Link { target }) if self.led_out.contains(&change.path) => {
                Some(LeftReason::LeadsOut {
                    target: target.clone(),
                })
            }
            _ => None,
        };
        reason(change, self.origin).or_else(led_out)
    }
}

/// Returns why a change is not made, judged alone.
fn reason(change: &Change, origin: Origin) -> Option<LeftReason> {
    if is_git_name(change.path.as_bytes(), origin) {
        return Some(LeftReason::Git);
    }
    let comes = matches!(change.after, Some(Node::File { .. } | Node::Unkept { .. }));
    match (why(change.before.as_ref()), why(change.after.as_ref())) {
        (Some(UncapturedReason::GitFolder), _) | (_, Some(UncapturedReason::GitFolder)) => {
            return Some(LeftReason::Git);
        }
        (Some(why), None) if origin == Origin::Before => return Some(LeftReason::NotKept { why }),
        // The session's copy holds it; a file that was only removed could never be restored.
        (before, after)
            if origin == Origin::Elsewhere
                && comes
                && [before, after].into_iter().flatten().all(can_come) => {}
        (_, Some(why)) => return Some(LeftReason::Unkept { why }),
        (Some(why), None) => return Some(LeftReason::ForGood { why }),
        (None, None) => {}
    }
    match &change.after {
        Some(Node::File { mode, .. }) if mode & SET_ID != 0 => Some(LeftReason::SetId),
        // Whatever such a name leads to is git's, and this would give it another name.
        Some(Node::Link { target })
            if origin == Origin::Elsewhere
                && target.as_bytes().split(|byte| *byte == b'/').any(means_git) =>
        {
            Some(LeftReason::Git)
        }
        Some(Node::Link { target })
            if origin == Origin::Elsewhere
                && leads_out(change.path.as_bytes(), target.as_bytes()) =>
        {
            Some(LeftReason::LeadsOut {
                target: target.clone(),
            })
        }
        _ => None,
    }
}

/// Whether a name on the path is `.git` to any file system; a submodule's file of that name may be
/// restored.
fn is_git_name(path: &[u8], origin: Origin) -> bool {
    let (folder, name) = split(path);
    folder.split(|byte| *byte == b'/').any(means_git)
        || means_git(name) && !(origin == Origin::Before && name == b".git")
}

/// Returns why a session's link is not applied as a file, judged by its path and target.
pub(super) fn refusal_of_link(path: &[u8], target: &[u8]) -> Option<&'static str> {
    if target.split(|byte| *byte == b'/').any(means_git) {
        return Some("a link into a git folder");
    }
    leads_out(path, target).then_some("a link that leads out of the project")
}

fn means_git(name: &[u8]) -> bool {
    let name = folded(name);
    name == ".git" || name == "git~1"
}

/// Returns a name as some file systems see it: case-insensitive, without blanks and dots at the
/// end, without invisible characters.
pub(super) fn folded(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let mut seen = String::with_capacity(text.len());
    for character in text.chars().filter(|character| !is_hidden(*character)) {
        // Nearly all are of this kind, and this is done for each name of a project.
        if character.is_ascii() {
            seen.push(character.to_ascii_lowercase());
        } else {
            seen.extend(character.to_lowercase());
        }
    }
    seen.split(':')
        .next()
        .unwrap_or_default()
        .trim_end_matches([' ', '.'])
        .to_owned()
}

/// Whether a link would lead out of the project, judged by the two paths: a `..` behind a name
/// counts as out, since that name may be a link itself.
fn leads_out(path: &[u8], target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return true;
    }
    let mut depth = path.split(|byte| *byte == b'/').count() - 1;
    let mut named = false;
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." if named || depth == 0 => return true,
            b".." => depth -= 1,
            _ => named = true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_that_stay_in_the_project_are_allowed() {
        for (path, target) in [
            ("a", "b"),
            ("in/a", "../b"),
            ("a/b/c", "../../d"),
            ("a", "./b/c"),
            ("a", ""),
        ] {
            assert!(
                !leads_out(path.as_bytes(), target.as_bytes()),
                "{path} -> {target}"
            );
        }
        for (path, target) in [
            ("a", "/etc"),
            ("a", ".."),
            ("a", "../b"),
            ("in/a", "../../b"),
            ("in/a", "b/../../.."),
            ("a", "b/.."),
        ] {
            assert!(
                leads_out(path.as_bytes(), target.as_bytes()),
                "{path} -> {target}"
            );
        }
    }

    #[test]
    fn links_into_git_folders_are_refused_like_those_out_of_the_project() {
        let why = |path: &str, target: &str| refusal_of_link(path.as_bytes(), target.as_bytes());
        assert_eq!(
            why("sub/g", "../.GIT/hooks"),
            Some("a link into a git folder")
        );
        assert_eq!(
            why("up", "../../.ssh"),
            Some("a link that leads out of the project")
        );
        assert_eq!((why("in/a", "../b"), why("a", "github")), (None, None));
    }

    #[test]
    fn git_names_are_recognized_in_every_spelling() {
        for name in [
            ".git",
            ".GIT",
            ".Git ",
            ".git.",
            ".g\u{200c}it",
            "git~1",
            "GIT~1",
            ".git::$INDEX_ALLOCATION",
        ] {
            assert!(means_git(name.as_bytes()), "{name:?}");
        }
        for name in [".gitignore", ".github", "git", "a.git", ".git2", ""] {
            assert!(!means_git(name.as_bytes()), "{name:?}");
        }
        assert!(is_git_name(b".git/hooks/pre-commit", Origin::Before));
        assert!(is_git_name(b"sub/.git", Origin::Elsewhere));
        assert!(!is_git_name(b"sub/.git", Origin::Before));
        assert!(is_git_name(b"sub/.GIT", Origin::Before));
    }
}
