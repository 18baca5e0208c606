//! What is never brought into a project, whoever asks.

use std::collections::BTreeSet;

use super::bare::NewParts;
use super::compare::Change;
use super::node::Node;
use super::project::Project;
use super::unheld::can_come;
use super::unheld::why;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::is_hidden;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::Unkept;

/// Mode bits that let a program act for its owner.
pub(super) const SET_ID: u32 = 0o6000;

/// Where a state that is brought about comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It stood in this very project before: to bring it back adds nothing that was not there.
    Before,
    /// It was made where it could harm nobody.
    Elsewhere,
}

/// Knows of some changes why each of them is not made, if it is not.
#[derive(Debug)]
pub(super) struct Forbidden {
    origin: Origin,
    new_parts: NewParts,
    /// Links that lead out over links which stand in the project.
    led_out: BTreeSet<BytesPath>,
}

impl Forbidden {
    /// Looks at what the changes come to together, with what stands in the project.
    pub(super) fn of(project: &Project, changes: &[Change], origin: Origin) -> Self {
        let new_parts = if origin == Origin::Elsewhere {
            NewParts::of(project, changes)
        } else {
            NewParts::default()
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

/// Returns why a change is not made by itself.
fn reason(change: &Change, origin: Origin) -> Option<LeftReason> {
    if is_gits(change.path.as_bytes(), origin) {
        return Some(LeftReason::Git);
    }
    let comes = matches!(change.after, Some(Node::File { .. } | Node::Unkept { .. }));
    match (why(change.before.as_ref()), why(change.after.as_ref())) {
        (Some(Unkept::GitFolder), _) | (_, Some(Unkept::GitFolder)) => {
            return Some(LeftReason::Git);
        }
        (Some(why), None) if origin == Origin::Before => return Some(LeftReason::NotKept { why }),
        // What the session worked on holds it; a file that only went could never be had again.
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
        // Whatever is behind such a name is git's, which it would have another one for.
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

/// Whether a name on the way is `.git` to any file system; the file of that name that a submodule
/// has may come back.
fn is_gits(path: &[u8], origin: Origin) -> bool {
    let (folder, name) = split(path);
    folder.split(|byte| *byte == b'/').any(means_git)
        || means_git(name) && !(origin == Origin::Before && name == b".git")
}

/// Returns why no link of a session's comes in as a file there, by its letters.
pub(super) fn why_no_link(path: &[u8], target: &[u8]) -> Option<&'static str> {
    if target.split(|byte| *byte == b'/').any(means_git) {
        return Some("a link to what belongs to git");
    }
    leads_out(path, target).then_some("a link that leads out of the project")
}

fn means_git(name: &[u8]) -> bool {
    let name = folded(name);
    name == ".git" || name == "git~1"
}

/// Returns what some file system takes a name for: some do not tell capital letters apart, drop
/// blanks and dots at the end, or letters that cannot be seen.
pub(super) fn folded(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let seen: String = text
        .chars()
        .filter(|character| !is_hidden(*character))
        .flat_map(char::to_lowercase)
        .collect();
    seen.split(':')
        .next()
        .unwrap_or_default()
        .trim_end_matches([' ', '.'])
        .to_owned()
}

/// Whether a link there would lead out of the project, as far as can be told from the two paths: a
/// `..` behind a name counts as out, since that name may be a link itself.
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
    fn a_link_is_let_in_only_where_it_stays_in() {
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
    fn links_to_what_is_gits_come_no_more_than_those_out_of_the_project() {
        let why = |path: &str, target: &str| why_no_link(path.as_bytes(), target.as_bytes());
        assert_eq!(
            why("sub/g", "../.GIT/hooks"),
            Some("a link to what belongs to git")
        );
        assert_eq!(
            why("up", "../../.ssh"),
            Some("a link that leads out of the project")
        );
        assert_eq!((why("in/a", "../b"), why("a", "github")), (None, None));
    }

    #[test]
    fn gits_own_names_are_known_in_every_spelling() {
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
        assert!(is_gits(b".git/hooks/pre-commit", Origin::Before));
        assert!(is_gits(b"sub/.git", Origin::Elsewhere));
        assert!(!is_gits(b"sub/.git", Origin::Before));
        assert!(is_gits(b"sub/.GIT", Origin::Before));
    }
}
