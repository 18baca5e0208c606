//! System calls that may write: which paths each one changes, and how.

use podbay_wire::WriteChange;

use super::listener::Question;

/// A system call that may write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WriteCall {
    Open { at: PathArgument, opening: Opening },
    Change(Vec<WriteTarget>),
}

/// The flags and mode of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) flags: i32,
    pub(super) mode: u32,
}

/// A path that a system call changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WriteTarget {
    pub(super) at: PathArgument,
    /// Whether a link at the end of the path is followed.
    pub(super) follow: bool,
    pub(super) expects: Expects,
    pub(super) change: WriteChange,
}

/// A path argument of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathArgument {
    /// A path, by its address in memory and the folder descriptor that it starts from.
    Path {
        folder: i32,
        pointer: u64,
        empty_is_folder: bool,
    },
    Descriptor(i32),
}

/// What must exist for the call to have an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expects {
    HeldEntry,
    Missing,
    Either,
}

/// Returns what a call changes; `None`: it cannot write.
pub(super) fn of(question: &Question) -> Option<WriteCall> {
    let (call, [first, second, third, fourth, fifth]) = modern(question);
    let path = |folder: u64, pointer: u64| PathArgument::Path {
        folder: folder as i32,
        pointer,
        empty_is_folder: false,
    };
    let with = |folder: u64, pointer: u64, flags: u64| {
        let empty_is_folder = flags as i32 & libc::AT_EMPTY_PATH != 0;
        (
            PathArgument::Path {
                folder: folder as i32,
                pointer,
                empty_is_folder,
            },
            flags as i32 & libc::AT_SYMLINK_NOFOLLOW == 0,
        )
    };
    let cwd = libc::AT_FDCWD as u64;
    let made = |at, change| WriteTarget {
        at,
        follow: false,
        expects: Expects::Missing,
        change,
    };
    let changed = |at, follow| WriteTarget {
        at,
        follow,
        expects: Expects::HeldEntry,
        change: WriteChange::Attributes,
    };
    let one = match call {
        libc::SYS_openat => {
            let opening = Opening {
                flags: third as i32,
                mode: fourth as u32,
            };
            return Some(WriteCall::Open {
                at: path(first, second),
                opening,
            });
        }
        libc::SYS_renameat | libc::SYS_renameat2 => {
            let flags = if call == libc::SYS_renameat {
                0
            } else {
                fifth as u32
            };
            let expects = match flags {
                0 => Expects::Either,
                flags if flags & libc::RENAME_EXCHANGE != 0 => Expects::HeldEntry,
                _ => Expects::Missing,
            };
            let end = |at, expects| WriteTarget {
                at,
                follow: false,
                expects,
                change: WriteChange::Rename,
            };
            return Some(WriteCall::Change(vec![
                end(path(first, second), Expects::HeldEntry),
                end(path(third, fourth), expects),
            ]));
        }
        // A hard link is another way to write to the file.
        libc::SYS_linkat => {
            let (at, _) = with(first, second, fifth);
            let follow = fifth as i32 & libc::AT_SYMLINK_FOLLOW != 0;
            let old = WriteTarget {
                at,
                follow,
                expects: Expects::HeldEntry,
                change: WriteChange::Link,
            };
            return Some(WriteCall::Change(vec![
                made(path(third, fourth), WriteChange::Link),
                old,
            ]));
        }
        libc::SYS_truncate => WriteTarget {
            change: WriteChange::Write,
            ..changed(path(cwd, first), true)
        },
        libc::SYS_unlinkat => WriteTarget {
            change: WriteChange::Remove,
            ..changed(path(first, second), false)
        },
        libc::SYS_symlinkat => made(path(second, third), WriteChange::Link),
        libc::SYS_mkdirat => made(path(first, second), WriteChange::MakeFolder),
        libc::SYS_mknodat => made(path(first, second), WriteChange::Write),
        libc::SYS_fchmod | libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr => {
            changed(PathArgument::Descriptor(first as i32), true)
        }
        libc::SYS_utimensat if second == 0 => changed(PathArgument::Descriptor(first as i32), true),
        libc::SYS_fchmodat => changed(path(first, second), true),
        libc::SYS_fchownat => {
            let (at, follow) = with(first, second, fifth);
            changed(at, follow)
        }
        libc::SYS_utimensat => {
            let (at, follow) = with(first, second, fourth);
            changed(at, follow)
        }
        libc::SYS_setxattr | libc::SYS_removexattr => changed(path(cwd, first), true),
        libc::SYS_lsetxattr | libc::SYS_lremovexattr => changed(path(cwd, first), false),
        _ => return None,
    };
    Some(WriteCall::Change(vec![one]))
}

/// Returns the variant of a call that exists on every architecture, with its first five arguments.
fn modern(question: &Question) -> (i64, [u64; 5]) {
    let [first, second, third, fourth, fifth, _] = question.arguments;
    #[cfg(target_arch = "x86_64")]
    {
        let cwd = libc::AT_FDCWD as u64;
        let flags = |flags: i32| flags as u64;
        let creates = flags(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC);
        let older = match question.call {
            libc::SYS_open => Some((libc::SYS_openat, [cwd, first, second, third, 0])),
            libc::SYS_creat => Some((libc::SYS_openat, [cwd, first, creates, second, 0])),
            libc::SYS_unlink | libc::SYS_rmdir => Some((libc::SYS_unlinkat, [cwd, first, 0, 0, 0])),
            libc::SYS_rename => Some((libc::SYS_renameat, [cwd, first, cwd, second, 0])),
            libc::SYS_link => Some((libc::SYS_linkat, [cwd, first, cwd, second, 0])),
            libc::SYS_symlink => Some((libc::SYS_symlinkat, [first, cwd, second, 0, 0])),
            libc::SYS_mkdir => Some((libc::SYS_mkdirat, [cwd, first, second, 0, 0])),
            libc::SYS_mknod => Some((libc::SYS_mknodat, [cwd, first, second, third, 0])),
            libc::SYS_chmod => Some((libc::SYS_fchmodat, [cwd, first, second, 0, 0])),
            libc::SYS_chown => Some((libc::SYS_fchownat, [cwd, first, second, third, 0])),
            libc::SYS_lchown => Some((
                libc::SYS_fchownat,
                [cwd, first, second, third, flags(libc::AT_SYMLINK_NOFOLLOW)],
            )),
            libc::SYS_utime | libc::SYS_utimes => {
                Some((libc::SYS_utimensat, [cwd, first, second, 0, 0]))
            }
            libc::SYS_futimesat => Some((libc::SYS_utimensat, [first, second, third, 0, 0])),
            _ => None,
        };
        if let Some(older) = older {
            return older;
        }
    }
    (question.call, [first, second, third, fourth, fifth])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(call: i64, arguments: [u64; 6]) -> Option<WriteCall> {
        of(&Question {
            id: 0,
            thread: 1,
            call,
            arguments,
        })
    }

    #[test]
    fn every_filtered_call_names_what_it_changes() {
        for call in crate::write_filter::changes() {
            assert!(asked(call, [1; 6]).is_some(), "{call}");
        }
        assert_eq!(asked(libc::SYS_read, [1; 6]), None);
    }

    #[test]
    fn paths_are_read_from_the_arguments_that_the_kernel_uses() {
        let at = |folder, pointer| PathArgument::Path {
            folder,
            pointer,
            empty_is_folder: false,
        };
        let opening = Opening { flags: 3, mode: 4 };
        assert_eq!(
            asked(libc::SYS_openat, [1, 2, 3, 4, 5, 6]),
            Some(WriteCall::Open {
                at: at(1, 2),
                opening
            })
        );
        let target = |at, follow, expects, change| WriteTarget {
            at,
            follow,
            expects,
            change,
        };
        let renamed = |expects| {
            let from = target(at(1, 2), false, Expects::HeldEntry, WriteChange::Rename);
            Some(WriteCall::Change(vec![
                from,
                target(at(3, 4), false, expects, WriteChange::Rename),
            ]))
        };
        assert_eq!(
            asked(libc::SYS_renameat, [1, 2, 3, 4, 9, 9]),
            renamed(Expects::Either)
        );
        assert_eq!(
            asked(libc::SYS_renameat2, [1, 2, 3, 4, 0, 0]),
            renamed(Expects::Either)
        );
        assert_eq!(
            asked(
                libc::SYS_renameat2,
                [1, 2, 3, 4, u64::from(libc::RENAME_NOREPLACE), 0]
            ),
            renamed(Expects::Missing)
        );
        assert_eq!(
            asked(
                libc::SYS_renameat2,
                [1, 2, 3, 4, u64::from(libc::RENAME_EXCHANGE), 0]
            ),
            renamed(Expects::HeldEntry)
        );
        let attributes = |at, follow| {
            Some(WriteCall::Change(vec![target(
                at,
                follow,
                Expects::HeldEntry,
                WriteChange::Attributes,
            )]))
        };
        assert_eq!(
            asked(libc::SYS_utimensat, [7, 0, 0, 0, 0, 0]),
            attributes(PathArgument::Descriptor(7), true)
        );
        let nofollow = libc::AT_SYMLINK_NOFOLLOW as u64;
        assert_eq!(
            asked(libc::SYS_utimensat, [7, 8, 0, nofollow, 0, 0]),
            attributes(at(7, 8), false)
        );
        let empty = PathArgument::Path {
            folder: 7,
            pointer: 8,
            empty_is_folder: true,
        };
        assert_eq!(
            asked(
                libc::SYS_fchownat,
                [7, 8, 0, 0, libc::AT_EMPTY_PATH as u64, 0]
            ),
            attributes(empty, true)
        );
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn an_old_call_is_the_at_variant_in_the_working_directory() {
        let cwd = libc::AT_FDCWD as u64;
        for (older, newer, arguments) in [
            (libc::SYS_open, libc::SYS_openat, [cwd, 1, 2, 3, 0, 0]),
            (libc::SYS_rename, libc::SYS_renameat, [cwd, 1, cwd, 2, 0, 0]),
            (libc::SYS_symlink, libc::SYS_symlinkat, [1, cwd, 2, 0, 0, 0]),
            (libc::SYS_futimesat, libc::SYS_utimensat, [1, 2, 3, 0, 0, 0]),
        ] {
            assert_eq!(
                asked(older, [1, 2, 3, 4, 5, 6]),
                asked(newer, arguments),
                "{older}"
            );
        }
    }
}
