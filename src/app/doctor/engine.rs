//! The engine itself: whether it answers, what it consists of, where it keeps its things.

use std::path::Path;

use super::check::Check;
use super::check::Group;
use super::check::Status;
use crate::holes;
use crate::holes::Component;
use podbay_engine as engine;
use podbay_engine::Facts;
use podbay_event::ByteSize;

/// Below this an image can hardly be built; the two of ours take about 1.5 GiB with their bases.
const FULL: u64 = 1 << 30;
/// Below this it will be soon.
const NEARLY_FULL: u64 = 5 << 30;

/// Judges an engine that could not be reached.
pub(super) fn unreachable(error: &engine::Error) -> Check {
    Check::error(
        Group::Engine,
        "connection",
        error,
        error.hint(),
        "try `docker info`",
    )
}

/// Judges an engine by what it says of itself.
pub(super) fn judge(facts: &Facts) -> Vec<Check> {
    let is_desktop = facts.desktop || facts.platform.contains("Docker Desktop");
    let kind = if is_desktop {
        ", in a virtual machine (Docker Desktop)"
    } else {
        ""
    };
    let mut checks = vec![Check::ok(
        Group::Engine,
        "connection",
        format!(
            "version {}, API {}, at {}{kind}, chosen by {}{}",
            or_unknown(&facts.version),
            facts.api,
            facts.address,
            facts.named_by,
            others(&facts.others)
        ),
    )];
    let parts = holes::parts(facts);
    let titles = [
        (Component::Engine, "engine"),
        (Component::Containerd, "containerd"),
        (Component::Runc, "runc"),
        (Component::Desktop, "desktop"),
    ];
    for (kind, title) in titles {
        match parts.iter().find(|(found, _)| *found == kind) {
            Some((_, found)) => checks.push(component(kind, title, found)),
            None if kind == Component::Desktop => {}
            // Others (crun, a virtual machine's runtime) are not in the table.
            None => checks.push(Check::ok(
                Group::Engine,
                title,
                "the engine names none, so nothing is known of its holes",
            )),
        }
    }
    checks.push(storage(&facts.storage));
    checks
}

/// Names engines that were not chosen.
fn others(sockets: &[String]) -> String {
    if sockets.is_empty() {
        String::new()
    } else {
        let all = sockets.join(", ");
        format!("; also there: {all} (`engine.host` chooses)")
    }
}

fn component(kind: Component, name: &str, found: &engine::Component) -> Check {
    let table = holes::table();
    let version = or_unknown(&found.version);
    let Some(known) = table.of(kind, &found.version) else {
        return Check::ok(
            Group::Engine,
            name,
            format!("{version}: not a version that known holes can be looked up for"),
        );
    };
    let Some(worst) = known.first() else {
        return Check::ok(
            Group::Engine,
            name,
            format!("{version}, no hole known on {}", table.date),
        );
    };
    let others: Vec<&str> = known.iter().skip(1).map(|hole| hole.id.as_str()).collect();
    let also = if others.is_empty() {
        String::new()
    } else {
        format!("; also {}", others.join(", "))
    };
    let detail = format!(
        "{version} has known holes (table of {}): {}, {}{also}",
        table.date, worst.id, worst.about
    );
    Check::warn(
        Group::Engine,
        name,
        detail,
        holes::remedy(kind, found, &known),
    )
}

fn storage(driver: &str) -> Check {
    match driver {
        "vfs" => Check::warn(
            Group::Engine,
            "storage",
            "vfs: every container is a whole copy of its image, which is slow and fills the disk",
            "let the engine use overlay2 (or fuse-overlayfs, where it is rootless): `storage-driver` in /etc/docker/daemon.json",
        ),
        "devicemapper" | "aufs" | "overlay" => Check::warn(
            Group::Engine,
            "storage",
            format!("{driver}, which current engines have no more"),
            "let the engine use overlay2: `storage-driver` in /etc/docker/daemon.json",
        ),
        driver => Check::ok(Group::Engine, "storage", or_unknown(driver)),
    }
}

/// What is free on a disk: bytes and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) bytes: u64,
    /// `None` where the file system counts no files.
    pub(super) files: Option<u64>,
}

impl Room {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let disk = nix::sys::statvfs::statvfs(path)?;
        // Some file systems (btrfs) have no fixed number of files and say 0 of 0.
        let files = (disk.files() > 0).then(|| disk.files_available());
        Ok(Self {
            bytes: disk.blocks_available().saturating_mul(disk.fragment_size()),
            files,
        })
    }

    /// Judges what is free at a place: `full` and `low` are bytes.
    pub(super) fn judge(
        self,
        group: Group,
        place: &str,
        full: u64,
        low: u64,
        remedy: &str,
    ) -> Check {
        let status = match self {
            Self { bytes, .. } if bytes < full => Status::Fail,
            Self {
                files: Some(files), ..
            } if files < 1000 => Status::Fail,
            Self { bytes, .. } if bytes < low => Status::Warn,
            _ => Status::Ok,
        };
        let files = match self.files {
            Some(files) if files < 1000 => format!(", and only {files} more files"),
            _ => String::new(),
        };
        let detail = format!(
            "{} free{files} at {place}",
            ByteSize::new(self.bytes).rounded()
        );
        let remedy = (status != Status::Ok).then(|| remedy.to_owned());
        Check {
            group,
            name: "disk".to_owned(),
            status,
            detail,
            remedy,
        }
    }
}

/// Looks at the disk that images and volumes lie on.
pub(super) fn disk(facts: &Facts) -> Check {
    if !facts.local || facts.desktop {
        return Check::ok(
            Group::Engine,
            "disk",
            "the engine's disk is on another machine and cannot be seen from here",
        );
    }
    let place = facts.root.display().to_string();
    match Room::of(&facts.root) {
        Ok(room) => room.judge(
            Group::Engine,
            &place,
            FULL,
            NEARLY_FULL,
            "make room: `docker system df` shows what takes it, `podbay gc` removes what is ours",
        ),
        Err(error) => Check::ok(
            Group::Engine,
            "disk",
            format!("{place} cannot be looked at from here ({error})"),
        ),
    }
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, version: &str, build: &str) -> engine::Component {
        engine::Component {
            name: name.to_owned(),
            version: version.to_owned(),
            build: build.to_owned(),
        }
    }

    #[track_caller]
    fn check(checks: &[Check], name: &str, status: Status, words: &[&str]) {
        let found = checks
            .iter()
            .find(|check| check.name == name)
            .expect("a check of that name");
        assert_eq!(found.status, status, "{found:?}");
        let all = format!(
            "{} {}",
            found.detail,
            found.remedy.clone().unwrap_or_default()
        );
        for word in words {
            assert!(all.contains(word), "`{word}` is missing: {all}");
        }
        assert_eq!(found.remedy.is_some(), status != Status::Ok, "{found:?}");
    }

    #[test]
    fn a_current_engine_is_fine() {
        let components = vec![
            part("Engine", "29.5.1", ""),
            part("containerd", "v2.3.2", ""),
            part("runc", "1.4.3", ""),
        ];
        let checks = judge(&Facts {
            components,
            ..Facts::plain()
        });
        assert_eq!(checks.len(), 5);
        assert!(
            checks.iter().all(|check| check.status == Status::Ok),
            "{checks:?}"
        );
    }

    #[test]
    fn an_old_engine_is_warned_about_by_the_names_of_its_holes() {
        let components = vec![
            part("containerd", "1.7.20", ""),
            part("runc", "1.1.5+ds1", "1.1.5+ds1-1+deb12u1"),
        ];
        let platform = "Docker Desktop 4.40.0 (187762)".to_owned();
        let checks = judge(&Facts {
            version: "20.10.24".to_owned(),
            components,
            platform,
            ..Facts::plain()
        });
        check(
            &checks,
            "engine",
            Status::Warn,
            &[
                "CVE-2024-29018",
                "CVE-2024-41110",
                "table of 20",
                "update the engine to 29.5.1",
            ],
        );
        check(
            &checks,
            "runc",
            Status::Warn,
            &[
                "CVE-2024-21626",
                "CVE-2025-31133",
                "update runc to 1.3.6",
                "changelog",
            ],
        );
        check(
            &checks,
            "containerd",
            Status::Warn,
            &["CVE-2024-40635", "update containerd to 1.7.33"],
        );
        check(
            &checks,
            "desktop",
            Status::Warn,
            &["CVE-2025-9074", "update Docker Desktop to 4.44.3"],
        );
        check(&checks, "connection", Status::Ok, &["virtual machine"]);
    }

    #[test]
    fn engines_of_other_makes_are_not_judged_by_docker_s_table() {
        let components = vec![
            part("Other Engine", "5.4.0", ""),
            part("OCI Runtime (crun)", "1.20", ""),
        ];
        let checks = judge(&Facts {
            version: "unreadable".to_owned(),
            components,
            ..Facts::plain()
        });
        check(&checks, "engine", Status::Ok, &["not a version"]);
        check(&checks, "runc", Status::Ok, &["names none"]);
    }

    #[test]
    fn storage_that_copies_whole_images_is_warned_about() {
        check(&[storage("vfs")], "storage", Status::Warn, &["overlay2"]);
        check(&[storage("aufs")], "storage", Status::Warn, &["aufs"]);
        check(
            &[storage("fuse-overlayfs")],
            "storage",
            Status::Ok,
            &["fuse-overlayfs"],
        );
    }

    #[test]
    fn a_full_disk_fails_by_bytes_or_by_files() {
        let judge = |bytes, files| {
            Room { bytes, files }
                .judge(Group::Engine, "/x", FULL, NEARLY_FULL, "make room")
                .status
        };
        assert_eq!(judge(10 << 30, Some(1 << 20)), Status::Ok);
        assert_eq!(judge(2 << 30, None), Status::Warn);
        assert_eq!(judge(1 << 20, None), Status::Fail);
        assert_eq!(judge(10 << 30, Some(3)), Status::Fail);
        assert!(Room::of(Path::new("/")).is_ok());
    }
}
