//! What is mounted in a project from elsewhere: another file system, or another folder.
//!
//! A container does not see such a mount, but the folder below it; and the kernel takes the mount
//! away with that folder, on the user's machine too. So something of the container's own is
//! mounted there: what lies there is empty, and can be neither written to, moved nor removed.

use std::path::Path;

use podbay_guest::foreign_below;
use podbay_wire::BytesPath;

/// Mounts that are named.
const MOST_NAMED: usize = 8;

/// Returns the folders and files of a project that are none of its own.
pub(super) fn mounts(project: &Path) -> Vec<BytesPath> {
    foreign_below(project).into_iter().collect()
}

/// Says which they are; `None`: there are none.
pub(super) fn warning(mounts: &[BytesPath]) -> Option<String> {
    let (named, it) = named(mounts)?;
    Some(format!(
        "{named}: commands find {it} empty and read-only. What changes in {it} is no change of the project, so that nobody reports, applies or undoes it"
    ))
}

/// The same of a sandbox that is attached, in which they are what they are.
pub(super) fn warning_attached(mounts: &[BytesPath]) -> Option<String> {
    let (named, it) = named(mounts)?;
    Some(format!(
        "{named}: what is written to {it} does not reach the project's own files, and is not reported as a change of the project"
    ))
}

/// Says which are mounted, and how to speak of them.
fn named(mounts: &[BytesPath]) -> Option<(String, &'static str)> {
    let mut named: Vec<String> = mounts
        .iter()
        .take(MOST_NAMED)
        .map(ToString::to_string)
        .collect();
    named
        .extend((mounts.len() > MOST_NAMED).then(|| format!("{} more", mounts.len() - MOST_NAMED)));
    let (is, it) = match mounts.len() {
        0 => return None,
        1 => ("is mounted in the project from elsewhere", "it"),
        _ => ("are mounted in the project from elsewhere", "them"),
    };
    Some((format!("{} {is}", named.join(", ")), it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mount_is_named_up_to_a_number() {
        let paths = |n: usize| {
            (0..n)
                .map(|number| BytesPath::from_text(&format!("m{number}")))
                .collect::<Vec<_>>()
        };
        assert_eq!(warning(&[]), None);
        assert!(warning(&paths(1)).is_some_and(|said| {
            said.starts_with("m0 is mounted in the project from elsewhere: commands find it empty")
        }));
        assert!(warning_attached(&paths(2)).is_some_and(|said| {
            said.starts_with("m0, m1 are mounted in the project from elsewhere: what is written to them does not reach")
        }));
        let many = warning(&paths(10)).expect("said");
        assert!(
            many.starts_with("m0, m1, m2, m3, m4, m5, m6, m7, 2 more are mounted in the project"),
            "{many}"
        );
    }
}
