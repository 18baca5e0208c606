//! Refuses a project that overlaps with the folder of compose.yaml. Compose starts as root what is
//! written there, so a command must not reach it. Both are mounted into the container that prepares
//! the volumes, as the project is into the workspace.
//!
//! A folder has one place in its file system, whatever path, link or bind mount led to it, and the
//! kernel's mount table names that place. So two mounts of one file system overlap where one's
//! place is, or is below, the other's; no folder has to be walked or entered. Nested mounts count
//! too. Only a symbolic or hard link in the compose folder can lead where no mount shows it, so the
//! files that compose reads by default must not be links.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::mounts;
use super::mounts::Mounted;

/// Prefixes of files that compose reads by default.
const READ: [&str; 4] = ["compose.", "docker-compose.", ".env", ".dockerignore"];

/// Folders that compose.yaml names: the seccomp profile, the override files, and the image sources.
const FOLDERS: [&str; 2] = ["docker", "images"];

/// Refuses a project from which a command could write what compose reads.
pub(super) fn refuse(project: &Path, compose: &Path) -> io::Result<()> {
    let table = fs::read(mounts::TABLE)?;
    let problem = match judge(&String::from_utf8_lossy(&table), project, compose) {
        None if identity(project)? == identity(compose)? => {
            Some("the project is the folder of compose.yaml".to_owned())
        }
        problem => problem,
    };
    if let Some(problem) = problem {
        return Err(io::Error::other(format!(
            "{problem}: a command in the sandbox could write there what compose starts as root on your machine. Nothing is started.\n\
             hint: the two must lie beside each other: move the folder of compose.yaml out of the project, or name another project in its \
             `.env` (PODBAY_PROJECT), and start again from there; docs/guides/compose.md says where it goes"
        )));
    }
    look_through(compose)
}

/// Returns how the two overlap, by the kernel's mount table.
fn judge(table: &str, project: &Path, compose: &Path) -> Option<String> {
    let mounts: Vec<Mounted> = table.lines().filter_map(mounts::parse).collect();
    for (folder, what) in [
        (project, "the project"),
        (compose, "the folder of compose.yaml"),
    ] {
        if !mounts
            .iter()
            .any(|mounted| Path::new(&mounted.at) == folder)
        {
            return Some(format!(
                "{what} is not mounted at {}, so its place cannot be determined",
                folder.display()
            ));
        }
    }
    let below = |folder: &Path| {
        mounts
            .iter()
            .filter(|mounted| Path::new(&mounted.at).starts_with(folder))
            .collect::<Vec<_>>()
    };
    let theirs = below(compose);
    below(project).into_iter().find_map(|own| {
        theirs
            .iter()
            .find_map(|other| overlap(own, other, project, compose))
    })
}

fn overlap(own: &Mounted, other: &Mounted, project: &Path, compose: &Path) -> Option<String> {
    let holds = Path::new(&other.root).starts_with(&own.root);
    let lies_in = Path::new(&own.root).starts_with(&other.root);
    if own.device != other.device || !(holds || lies_in) {
        return None;
    }
    let (is_all, is_whole) = (
        Path::new(&own.at) == project,
        Path::new(&other.at) == compose,
    );
    let how = match (holds, lies_in) {
        (true, true) if is_all && is_whole => "is",
        (true, _) if is_whole => "contains",
        (_, true) if is_all => "lies in",
        _ => "shares files with",
    };
    let (own, other) = (own.root.escape_debug(), other.root.escape_debug());
    Some(format!(
        "the project ({own}) {how} the folder of compose.yaml ({other})"
    ))
}

fn identity(folder: &Path) -> io::Result<(u64, u64)> {
    let facts = fs::metadata(folder).map_err(|error| cannot_look(folder, &error))?;
    Ok((facts.dev(), facts.ino()))
}

/// Refuses files that compose reads and that may be written through another name.
fn look_through(compose: &Path) -> io::Result<()> {
    for entry in fs::read_dir(compose).map_err(|error| cannot_look(compose, &error))? {
        let entry = entry.map_err(|error| cannot_look(compose, &error))?;
        let (name, path) = (entry.file_name(), entry.path());
        if FOLDERS.iter().any(|folder| name == OsStr::new(folder)) {
            look_at(&path, compose)?;
            look_below(&path, compose)?;
        } else if READ.iter().any(|read| {
            name == OsStr::new(read)
                || read.ends_with('.') && name.as_bytes().starts_with(read.as_bytes())
        }) {
            look_at(&path, compose)?;
        }
    }
    Ok(())
}

fn look_below(folder: &Path, compose: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(folder)
        .map_err(|error| cannot_look(folder, &error))?
        .is_dir()
    {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(|error| cannot_look(folder, &error))? {
        let path = entry.map_err(|error| cannot_look(folder, &error))?.path();
        look_at(&path, compose)?;
        look_below(&path, compose)?;
    }
    Ok(())
}

fn look_at(path: &Path, compose: &Path) -> io::Result<()> {
    let facts = fs::symlink_metadata(path).map_err(|error| cannot_look(path, &error))?;
    let problem = match (facts.is_symlink(), facts.is_file() && facts.nlink() > 1) {
        (true, _) => "is a link, and may lead into the project".to_owned(),
        (_, true) => format!(
            "is one of {} names (hard links) of a file, and another may be in the project",
            facts.nlink()
        ),
        (false, false) => return Ok(()),
    };
    let name = path
        .strip_prefix(compose)
        .unwrap_or(path)
        .display()
        .to_string();
    let name = name.escape_debug();
    Err(io::Error::other(format!(
        "`{name}` in the folder of compose.yaml {problem}, where a command in the sandbox could write what compose reads. Nothing is started.\n\
         hint: put a copy in its place, in that folder: cp -rL '{name}' '{name}.new' && rm '{name}' && mv '{name}.new' '{name}'"
    )))
}

fn cannot_look(path: &Path, error: &io::Error) -> io::Error {
    let path = path.display().to_string();
    let hint = if error.kind() == io::ErrorKind::PermissionDenied {
        "\nhint: setup is root without root's rights, so others must be able to look into the folder of compose.yaml; there: chmod go+rx . && \
         chmod -R go+rX docker images"
    } else {
        ""
    };
    io::Error::new(
        error.kind(),
        format!("look at {}: {error}{hint}", path.escape_debug()),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Mounts as (device, place in its file system, mount point): the project's first.
    #[track_caller]
    fn check(mounts: &[(&str, &str, &str)], problem: Option<&str>) {
        let line = |(at, (device, root, to)): (usize, &(&str, &str, &str))| {
            format!("{at} 1 {device} {root} {to} ro - ext4 x rw\n")
        };
        let table: String = mounts.iter().enumerate().map(line).collect();
        let found = judge(
            &table,
            Path::new("/setup/project"),
            Path::new("/setup/compose"),
        );
        match problem {
            None => assert_eq!(found, None, "{table}"),
            Some(words) => assert!(
                found.as_ref().is_some_and(|found| found.contains(words)),
                "{words}: {found:?}"
            ),
        }
    }

    fn two(
        project: (&'static str, &'static str),
        compose: (&'static str, &'static str),
    ) -> [(&'static str, &'static str, &'static str); 2] {
        [
            (project.0, project.1, "/setup/project"),
            (compose.0, compose.1, "/setup/compose"),
        ]
    }

    #[test]
    fn a_project_that_overlaps_the_compose_folder_is_refused() {
        let compose = ("8:1", "/home/me/shop-podbay");
        check(&two(("8:1", "/home/me/shop"), compose), None);
        check(&two(("8:1", "/home/me/shop-podba"), compose), None);
        check(&two(("8:1", "/home/me/shop-podbay2"), compose), None);
        check(
            &two(compose, compose),
            Some("(/home/me/shop-podbay) is the folder"),
        );
        check(
            &two(("8:1", "/home/me"), compose),
            Some("(/home/me) contains the folder"),
        );
        check(&two(("8:1", "/"), compose), Some("contains"));
        check(
            &two(("8:1", "/home/me/shop-podbay/docker"), compose),
            Some("lies in"),
        );
        check(
            &two(("8:1", "/home/me/shop-podbay/my\\040app"), compose),
            Some("(/home/me/shop-podbay/my app) lies in"),
        );
        // The same path on another file system is another place.
        check(&two(("8:2", "/home/me"), compose), None);
        check(&two(("8:2", "/"), ("8:1", "/")), None);
        check(&two(("8:1", "/"), ("8:1", "/")), Some("is the folder"));
    }

    #[test]
    fn nested_mounts_count_too() {
        let beside = two(("8:1", "/home/me/shop"), ("8:2", "/disk/compose"));
        check(&beside, None);
        let with = |mount| [&beside[..], &[mount]].concat();
        check(
            &with(("8:2", "/", "/setup/project/disk")),
            Some("the project (/) contains the folder of compose.yaml (/disk/compose)"),
        );
        check(
            &with(("8:2", "/disk/compose/images", "/setup/project/x")),
            Some("shares files with"),
        );
        check(
            &with(("8:1", "/home/me", "/setup/compose/docker")),
            Some("lies in"),
        );
        check(
            &with(("8:1", "/home/me/shop/env", "/setup/compose/.env")),
            Some("shares files with"),
        );
        check(&with(("8:2", "/disk/other", "/setup/project/x")), None);
        check(&with(("8:2", "/disk/compose", "/setup/projects")), None);
    }

    #[test]
    fn a_folder_that_is_not_mounted_is_refused() {
        check(
            &[("8:1", "/a", "/setup/project")],
            Some("the folder of compose.yaml is not mounted at /setup/compose"),
        );
        check(
            &[
                ("8:1", "/a", "/setup/compose"),
                ("8:1", "/b", "/setup/project/sub"),
            ],
            Some("the project is not mounted"),
        );
        check(&[], Some("the project is not mounted"));
    }

    #[test]
    fn links_are_refused_only_among_the_files_that_compose_reads() {
        let folder = tempfile::tempdir().expect("a folder");
        let compose = folder.path();
        fs::create_dir_all(compose.join("docker/more")).expect("made");
        for name in [
            "compose.yaml",
            ".env",
            "docker/seccomp.json",
            "docker/more/file",
            "README.md",
        ] {
            fs::write(compose.join(name), "").expect("written");
        }
        symlink("/elsewhere", compose.join("result")).expect("linked");
        fs::hard_link(compose.join("README.md"), compose.join("READ.ME")).expect("linked");
        look_through(compose).expect("nothing that compose reads");
        let refused = |name: &str, words: &str| {
            let error = look_through(compose).expect_err(name).to_string();
            assert!(
                error.contains(&format!("`{name}`"))
                    && error.contains(words)
                    && error.contains("hint: "),
                "{error}"
            );
            fs::remove_file(compose.join(name)).expect("removed");
            look_through(compose).expect("as before");
        };
        for name in [
            "compose.override.yaml",
            "docker-compose.override.yml",
            ".dockerignore",
            "images",
            "docker/more/link",
        ] {
            symlink("/elsewhere", compose.join(name)).expect("linked");
            refused(name, "is a link");
        }
        for name in [".env", "docker/seccomp.json"] {
            fs::hard_link(compose.join(name), compose.join("another")).expect("linked");
            refused(name, "one of 2 names");
            fs::remove_file(compose.join("another")).expect("removed");
        }
    }
}
