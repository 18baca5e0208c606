//! Copies a project completely, where no overlay can be mounted over it.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::fcntl::readlinkat;
use nix::sys::stat::FchmodatFlags;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::UtimensatFlags;
use nix::sys::stat::fchmod;
use nix::sys::stat::fchmodat;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;
use nix::sys::stat::futimens;
use nix::sys::stat::mkdirat;
use nix::sys::stat::utimensat;
use nix::sys::statvfs::fstatvfs;
use nix::sys::time::TimeSpec;
use nix::unistd::UnlinkatFlags;
use nix::unistd::symlinkat;
use nix::unistd::unlinkat;

use crate::keep::Error;
use crate::keep::Project;
use crate::keep::sparse_copy;
use crate::root::file_type;
use crate::root::join;
use crate::root::split;
use crate::tools::save::errno_of;
use podbay_wire::BytesPath;
use podbay_wire::keep::ProjectCopied;

/// Space that is left free beside a copy, for the work in it: a completely full disk would stop
/// more than the copying.
const LEFT_FREE: u64 = 256 << 20;

/// Space that a copy takes, or that is free; `n_files` counts inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DiskUse {
    n_bytes: u64,
    n_files: u64,
}

/// Returns the space of a folder and all below it, as far as it can be read; holes in files take
/// none, and are not copied.
fn measure(project: &Project) -> DiskUse {
    let mut room = DiskUse::default();
    let mut folders = vec![Vec::new()];
    while let Some(path) = folders.pop() {
        let Ok(folder) = project.list(&path) else {
            continue;
        };
        let Ok(mut listed) = folder
            .try_clone()
            .map_err(|error| errno_of(&error))
            .and_then(Dir::from_fd)
        else {
            continue;
        };
        for entry in listed.iter().flatten() {
            let name = entry.file_name().to_bytes();
            let Ok(stat) = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
                continue;
            };
            if name == b"." || name == b".." {
                continue;
            }
            room.n_files += 1;
            room.n_bytes += stat.st_blocks.unsigned_abs() * 512;
            if file_type(&stat) == SFlag::S_IFDIR {
                folders.push(join(&path, name));
            }
        }
    }
    room
}

/// Returns the free space at the target; `None`: unknown.
fn free(into: &Project) -> Option<DiskUse> {
    let facts = fstatvfs(&into.list(b"").ok()?).ok()?;
    // Some file systems do not count files.
    let n_files = if facts.files() == 0 {
        u64::MAX
    } else {
        facts.files_available()
    };
    Some(DiskUse {
        n_bytes: facts
            .blocks_available()
            .saturating_mul(facts.fragment_size()),
        n_files,
    })
}

/// Refuses a copy without enough space before anything of it is written. An interrupted copy has
/// its space already.
fn check(needed: DiskUse, there: DiskUse, free: DiskUse) -> Result<(), Error> {
    let (n_bytes, n_files) = (
        needed.n_bytes.saturating_sub(there.n_bytes),
        needed.n_files.saturating_sub(there.n_files),
    );
    let free = if n_files > free.n_files {
        format!("it has room for {} more files", free.n_files)
    } else if n_bytes.saturating_add(LEFT_FREE) > free.n_bytes {
        format!(
            "{} MiB are free, {} of them reserved",
            free.n_bytes >> 20,
            LEFT_FREE >> 20
        )
    } else {
        return Ok(());
    };
    Err(Error::NoRoom {
        mib: n_bytes.div_ceil(1 << 20),
        n_files,
        free,
    })
}

/// Copies a whole project if there is enough space.
pub(in crate::keep) fn duplicate(
    project: &Project,
    into: &Project,
) -> Result<ProjectCopied, Error> {
    if let Some(free) = free(into) {
        check(measure(project), measure(into), free)?;
    }
    copy_all(project, into)
}

/// Copies a whole project, git folders included, and pipes, sockets and devices not. What an
/// interrupted copy left is replaced.
fn copy_all(project: &Project, into: &Project) -> Result<ProjectCopied, Error> {
    let mut copied = ProjectCopied::default();
    let mut folders = vec![Vec::new()];
    let mut modes: Vec<(Vec<u8>, FileStat)> = Vec::new();
    while let Some(path) = folders.pop() {
        let failed = |source| Error::Project {
            doing: "copy",
            path: BytesPath::from_bytes(path.as_slice()),
            source,
        };
        let from = match project.list(&path) {
            Err(Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {
                copied.n_passed_over += 1;
                continue;
            }
            other => other.map_err(failed)?,
        };
        let to = into.list(&path).map_err(failed)?;
        let mut listed = from
            .try_clone()
            .map_err(|error| failed(errno_of(&error)))
            .and_then(|fd| Dir::from_fd(fd).map_err(failed))?;
        for entry in listed.iter() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let below = join(&path, name);
            let failed = |source| Error::Project {
                doing: "copy",
                path: BytesPath::from_bytes(below.as_slice()),
                source,
            };
            let Ok(stat) = fstatat(&from, name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
                continue;
            };
            match file_type(&stat) {
                SFlag::S_IFDIR => {
                    match mkdirat(&to, name, Mode::S_IRWXU) {
                        Ok(()) => {}
                        // It may have its final mode already.
                        Err(Errno::EEXIST) => {
                            fchmodat(&to, name, Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink)
                                .map_err(failed)?;
                        }
                        Err(errno) => return Err(failed(errno)),
                    }
                    modes.push((below.clone(), stat));
                    folders.push(below);
                }
                SFlag::S_IFREG => match file(from.as_fd(), to.as_fd(), name) {
                    Ok(n_bytes) => {
                        copied.n_files += 1;
                        copied.n_bytes += n_bytes;
                    }
                    Err(Errno::EACCES | Errno::ENOENT | Errno::ELOOP | Errno::ENXIO) => {
                        copied.n_passed_over += 1;
                    }
                    Err(errno) => return Err(failed(errno)),
                },
                SFlag::S_IFLNK => link(from.as_fd(), to.as_fd(), name, &stat).map_err(failed)?,
                _ => copied.n_passed_over += 1,
            }
        }
    }
    // From the inside out: the contents of a closed folder cannot be reached.
    for (path, stat) in modes.iter().rev() {
        let (parent, name) = split(path);
        let failed = |source| Error::Project {
            doing: "copy",
            path: BytesPath::from_bytes(path.as_slice()),
            source,
        };
        let folder = into.folder(parent).map_err(failed)?;
        let [accessed, changed] = times(stat);
        utimensat(
            &folder,
            name,
            &accessed,
            &changed,
            UtimensatFlags::NoFollowSymlink,
        )
        .map_err(failed)?;
        fchmodat(&folder, name, mode(stat), FchmodatFlags::NoFollowSymlink).map_err(failed)?;
    }
    Ok(copied)
}

fn file(from: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &[u8]) -> Result<u64, Errno> {
    let flags = OFlag::O_RDONLY
        | OFlag::O_NOFOLLOW
        | OFlag::O_NONBLOCK
        | OFlag::O_NOCTTY
        | OFlag::O_CLOEXEC;
    let source = File::from(openat(from, name, flags, Mode::empty())?);
    let stat = fstat(&source)?;
    if file_type(&stat) != SFlag::S_IFREG {
        return Err(Errno::ENXIO);
    }
    make_room(to, name)?;
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let target = File::from(openat(to, name, flags, Mode::from_bits_truncate(0o600))?);
    let n_bytes =
        sparse_copy::copy(&source, &target, stat.st_size).map_err(|error| errno_of(&error))?;
    let [accessed, changed] = times(&stat);
    futimens(&target, &accessed, &changed)?;
    fchmod(&target, mode(&stat))?;
    Ok(n_bytes)
}

fn link(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    name: &[u8],
    stat: &FileStat,
) -> Result<(), Errno> {
    let target = match readlinkat(from, name) {
        Err(Errno::ENOENT | Errno::EINVAL) => return Ok(()),
        other => other?,
    };
    make_room(to, name)?;
    symlinkat(target.as_os_str(), to, name)?;
    let [accessed, changed] = times(stat);
    utimensat(
        to,
        name,
        &accessed,
        &changed,
        UtimensatFlags::NoFollowSymlink,
    )
}

fn make_room(folder: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn mode(stat: &FileStat) -> Mode {
    Mode::from_bits_truncate(stat.st_mode & 0o1777)
}

/// Kept, so that no build treats an old file as a new one.
fn times(stat: &FileStat) -> [TimeSpec; 2] {
    [
        TimeSpec::new(stat.st_atime, stat.st_atime_nsec),
        TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec),
    ]
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::keep::testing::Scene;

    #[test]
    fn a_copy_without_enough_space_is_refused() {
        let scene = Scene::new();
        scene.write("in/file", vec![1; 3 << 20]);
        std::fs::File::create(scene.path("sparse"))
            .expect("made")
            .set_len(8 << 30)
            .expect("grown");
        let needed = measure(&scene.project());
        assert_eq!(needed.n_files, 3);
        assert!((3 << 20..4 << 20).contains(&needed.n_bytes), "{needed:?}");
        let free = |n_bytes: u64, n_files: u64| {
            check(needed, DiskUse::default(), DiskUse { n_bytes, n_files })
        };
        free(LEFT_FREE + (4 << 20), 3).expect("there is room");
        let refused = |result: Result<(), Error>| result.expect_err("no room").to_string();
        let said = refused(free(LEFT_FREE, 100));
        assert!(
            said.contains("it takes 4 MiB in 3 files") && said.contains("256 MiB are free"),
            "{said}"
        );
        assert!(said.contains("`--changes live`"), "{said}");
        let said = refused(free(1 << 40, 2));
        assert!(said.contains("room for 2 more files"), "{said}");
        // What exists already needs no space.
        check(
            needed,
            needed,
            DiskUse {
                n_bytes: LEFT_FREE,
                n_files: 0,
            },
        )
        .expect("there is room");
        let into = Scene::new();
        assert_eq!(
            duplicate(&scene.project(), &into.project())
                .expect("copied")
                .n_files,
            2
        );
    }

    #[test]
    fn a_copy_equals_the_project_and_an_interrupted_one_is_finished() {
        let (scene, other) = (Scene::new(), Scene::new());
        scene.write("in/deep/file", "content");
        scene.write(b"not \xff UTF-8", "x");
        scene.write(".git/config", "[core]\n");
        scene.mode("in/deep/file", 0o751);
        scene.link("/etc/passwd", "in/link");
        scene.make("empty");
        scene.mode("in/deep", 0o500);
        nix::unistd::mkfifo(&scene.path("pipe"), Mode::S_IRWXU).expect("made");
        other.write("in/deep/file", "half");
        other.link("elsewhere", "in/link");
        for _ in 0..2 {
            let copied = duplicate(&scene.project(), &other.project()).expect("copied");
            assert_eq!(
                (copied.n_files, copied.n_bytes, copied.n_passed_over),
                (3, 15, 1)
            );
        }
        scene.remove("pipe");
        assert_eq!(other.all(), scene.all());
        let changed = |scene: &Scene| {
            fs::metadata(scene.path("in/deep/file"))
                .expect("there")
                .mtime_nsec()
        };
        assert_eq!(changed(&other), changed(&scene));
        assert_eq!(other.take().id, scene.take().id);
    }
}
