//! What is mounted in a project from elsewhere: another file system, or another folder.

use std::path::Path;

use podbay_guest::foreign_below;
use podbay_wire::BytesPath;

/// Mounts that are named.
const MOST_NAMED: usize = 8;

/// Says which folders of a project are none of its own; `None`: all are.
pub(super) fn warning(project: &Path) -> Option<String> {
    words(&foreign_below(project).into_iter().collect::<Vec<_>>())
}

fn words(mounts: &[BytesPath]) -> Option<String> {
    let mut named: Vec<String> = mounts.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    named.extend((mounts.len() > MOST_NAMED).then(|| format!("{} more", mounts.len() - MOST_NAMED)));
    let (is, it) = match mounts.len() {
        0 => return None,
        1 => ("is mounted in the project from elsewhere", "it"),
        _ => ("are mounted in the project from elsewhere", "them"),
    };
    Some(format!(
        "{} {is}: what changes in {it} is no change of the project, so that nobody reports, applies or undoes it. Where changes are held back or \
         applied turn by turn, commands see the folder that lies under the mount, and what they write there is dropped",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mount_is_named_up_to_a_number() {
        let paths = |n: usize| (0..n).map(|number| BytesPath::from_text(&format!("m{number}"))).collect::<Vec<_>>();
        assert_eq!(words(&[]), None);
        assert!(
            words(&paths(1)).is_some_and(|said| said.starts_with("m0 is mounted in the project from elsewhere: what changes in it is"))
        );
        let many = words(&paths(10)).expect("said");
        assert!(many.starts_with("m0, m1, m2, m3, m4, m5, m6, m7, 2 more are mounted in the project"), "{many}");
    }
}
