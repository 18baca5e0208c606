//! Mounts in the project: whether its `.git` is protected in a sandbox that others have set up, and
//! whether the mounts that mask files are still there.
//!
//! A writer of `.git` can make the user's next git command run a program. A controller with an
//! engine mounts it read-only itself; where the mounts come from a file of the user's, the guest
//! checks them before it serves.
//!
//! When a masked file is replaced on the host (most editors save that way), the kernel removes the
//! mount on it. Commands cannot do that: for them a mount point is busy. When the file or a parent
//! folder is renamed on the host, the mount moves along without a notification.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::Interest;

use super::unix::watch_for;
use podbay_wire::BytesPath;

/// Interval at which the table is read anyway.
const EVERY: Duration = Duration::from_millis(500);

/// The kernel's mount table, which also signals changes.
pub(super) const TABLE: &str = "/proc/self/mountinfo";

/// Returns the mount points below a folder, as paths from there.
pub(super) fn below(folder: &Path) -> BTreeSet<BytesPath> {
    let table = fs::read(TABLE).unwrap_or_default();
    let table = String::from_utf8_lossy(&table);
    table
        .lines()
        .filter_map(parse)
        .filter_map(|mounted| {
            Some(BytesPath::from(
                Path::new(&mounted.at).strip_prefix(folder).ok()?,
            ))
        })
        .filter(|path| !path.is_empty())
        .collect()
}

/// Returns the mount point that a path lies on.
pub(super) fn mount_of(path: &Path) -> Option<String> {
    let table = fs::read(TABLE).ok()?;
    String::from_utf8_lossy(&table)
        .lines()
        .filter_map(parse)
        .map(|mounted| mounted.at)
        .filter(|at| path.starts_with(at))
        .max_by_key(String::len)
}

/// Returns the mount points below a folder that show other files than the folder's own: another
/// file system, or another place of the same one.
pub fn foreign_below(folder: &Path) -> BTreeSet<BytesPath> {
    let table = fs::read(TABLE).unwrap_or_default();
    foreign_in(&String::from_utf8_lossy(&table), folder)
}

fn foreign_in(table: &str, folder: &Path) -> BTreeSet<BytesPath> {
    let mounts: Vec<Mounted> = table.lines().filter_map(parse).collect();
    let holds_folder = |mounted: &&Mounted| folder.starts_with(&mounted.at);
    // Of several mounts on one place the last one is visible.
    let Some(own) = mounts
        .iter()
        .filter(holds_folder)
        .max_by_key(|mounted| mounted.at.len())
    else {
        return BTreeSet::new();
    };
    let is_own = |mounted: &Mounted| {
        let from_own = Path::new(&mounted.at)
            .strip_prefix(&own.at)
            .ok()
            .map(|path| Path::new(&own.root).join(path));
        mounted.device == own.device
            && from_own.is_some_and(|place| place == Path::new(&mounted.root))
    };
    let mut seen: BTreeMap<&str, &Mounted> = BTreeMap::new();
    for mounted in &mounts {
        seen.insert(&mounted.at, mounted);
    }
    let foreign = seen.into_values().filter(|mounted| !is_own(mounted));
    foreign
        .filter_map(|mounted| {
            Some(BytesPath::from(
                Path::new(&mounted.at).strip_prefix(folder).ok()?,
            ))
        })
        .filter(|path| !path.is_empty())
        .collect()
}

/// Waits until one of the mounts below a folder is gone, and returns it; forever without mounts.
pub(super) async fn gone(folder: &Path, covered: &BTreeSet<BytesPath>) -> io::Result<BytesPath> {
    // Opening the table marks its current state as seen: a change before that must be found by
    // reading.
    let table = watch_for(File::open(TABLE)?, Interest::PRIORITY)?;
    loop {
        if let Some(gone) = covered.difference(&below(folder)).next() {
            return Ok(gone.clone());
        }
        if covered.is_empty() {
            return std::future::pending().await;
        }
        tokio::select! {
            ready = table.ready(Interest::PRIORITY) => ready?.clear_ready(),
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// The relevant fields of a line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) device: String,
    /// The folder or file of the file system that is mounted there.
    pub(super) root: String,
    pub(super) at: String,
    read_only: bool,
}

/// Returns why the project cannot be used: a `.git` that commands could write, or one that is not
/// the project's own.
pub(super) fn git_problem(workspace: &Path) -> Option<String> {
    let git = workspace.join(".git");
    // A missing one cannot be protected; one created later is found at the next connection.
    fs::symlink_metadata(&git).ok()?;
    let mounts = fs::read_to_string(TABLE).unwrap_or_default();
    judge(
        &mounts,
        &workspace.to_string_lossy(),
        &git.to_string_lossy(),
    )
}

fn judge(mounts: &str, workspace: &str, git: &str) -> Option<String> {
    let mounts: Vec<Mounted> = mounts.lines().filter_map(parse).collect();
    // The last mount on a place is visible.
    let at = |path: &str| mounts.iter().rfind(|mounted| mounted.at == path);
    let (Some(project), Some(protected)) =
        (at(workspace), at(git).filter(|mounted| mounted.read_only))
    else {
        return Some(format!(
            "{git} could be written here, and git would run what is put into it on your machine; mount it read-only: \
             leave PODBAY_GIT unset and run `docker compose up -d --force-recreate workspace`"
        ));
    };
    let own = format!("{}/.git", project.root.trim_end_matches('/'));
    let is_own = protected.device == project.device && protected.root == own;
    (!is_own).then(|| {
        format!("{git} is a link that leads to another place than the project's own `.git`; replace it by a file with `gitdir: PATH`")
    })
}

pub(super) fn parse(line: &str) -> Option<Mounted> {
    let mut fields = line.split(' ');
    let device = fields.nth(2)?.to_owned();
    let (root, at, options) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Mounted {
        device,
        root: plain(root),
        at: plain(at),
        read_only: options.split(',').any(|option| option == "ro"),
    })
}

/// Decodes octal escapes such as `\040` for a space.
fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|digits| {
            first == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
        });
        if let Some(digits) = digits {
            bytes.push(digits.iter().fold(0_u8, |value, digit| {
                value.wrapping_mul(8).wrapping_add(digit - b'0')
            }));
            rest = &tail[3..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_mounts_are_told_from_the_projects_own_folders() {
        let table = concat!(
            "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
            "21 20 0:30 / /home/a/project/cache rw - tmpfs tmpfs rw\n",
            "22 20 8:1 /data /home/a/project/data rw - ext4 /dev/sda1 rw\n",
            "23 20 8:1 /home/a/project/src /home/a/project/src ro - ext4 /dev/sda1 rw\n",
            "24 20 0:31 / /home/a/project/two\\040words rw - nfs4 server:/x rw\n",
            "25 20 0:32 / /home/a/project-two rw - tmpfs tmpfs rw\n",
            "26 20 0:33 / /home/a/other rw - tmpfs tmpfs rw\n",
        );
        let foreign = |folder: &str| {
            foreign_in(table, Path::new(folder))
                .iter()
                .map(BytesPath::to_text)
                .collect::<Vec<_>>()
        };
        assert_eq!(foreign("/home/a/project"), ["cache", "data", "two words"]);
        assert_eq!(foreign("/home/a/project/src"), [""; 0]);
        assert_eq!(foreign("/home/a/project/cache"), [""; 0]);
        assert_eq!(foreign("/home/a/project-two"), [""; 0]);
        assert_eq!(foreign_in("", Path::new("/")), BTreeSet::new());
        // One project is itself a mount, and the last of two on a place is visible.
        let inner = "20 1 8:1 / / rw - ext4 a rw\n21 20 8:2 /p /workspace rw - ext4 b rw\n22 21 8:2 /p/sub /workspace/sub ro - ext4 b rw\n\
                     23 21 8:2 /q /workspace/x rw - ext4 b rw\n24 23 8:2 /p/x /workspace/x rw - ext4 b rw\n25 21 0:9 / /workspace/t rw - tmpfs t rw\n";
        assert_eq!(
            foreign_in(inner, Path::new("/workspace")),
            BTreeSet::from(["t".into()])
        );
    }

    #[track_caller]
    fn check(mounts: &str, problem: Option<&str>) {
        let found = judge(mounts, "/workspace", "/workspace/.git");
        match problem {
            None => assert_eq!(found, None),
            Some(words) => assert!(
                found.as_ref().is_some_and(|found| found.contains(words)),
                "{found:?}"
            ),
        }
    }

    #[test]
    fn only_the_projects_own_read_only_git_is_accepted() {
        let project = "9 1 8:1 /home/me/my\\040app /workspace rw,relatime - ext4 /dev/sda1 rw\n";
        let git = |device: &str, root: &str, options: &str| {
            format!(
                "{project}10 9 {device} {root} /workspace/.git {options},relatime - ext4 /dev/sda1 rw\n"
            )
        };
        check(&git("8:1", "/home/me/my\\040app/.git", "ro"), None);
        check(
            &git("8:1", "/home/me/my\\040app/.git", "rw"),
            Some("could be written"),
        );
        check(project, Some("could be written"));
        check("", Some("could be written"));
        check(&git("8:1", "/home/me/.ssh", "ro"), Some("another place"));
        check(
            &git("8:2", "/home/me/my\\040app/.git", "ro"),
            Some("another place"),
        );
        // A project that is a file system of its own.
        check(
            "9 1 8:1 / /workspace rw - ext4 x rw\n10 9 8:1 /.git /workspace/.git ro - ext4 x rw\n",
            None,
        );
    }
}
