use std::collections::HashMap;
use std::fmt;
use std::fs;

use super::machine_id::machine;
use podbay_event::InstanceId;
use podbay_event::SessionId;

/// Prefix of all our labels.
pub(super) const PREFIX: &str = "dev.podbay.";

/// The purpose of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A sandbox that runs commands of the model or the user.
    Workspace,
    /// The keeper of such a sandbox: it serves the project's files and runs no command.
    Keeper,
    /// The sandbox of `podbay up`, which outlives its controller.
    Environment,
    /// The model server; it stays up between runs.
    ModelServer,
    /// The gateway that lets a session's sandboxes reach chosen hosts, and the volume that its
    /// socket is in.
    Gateway,
    /// The volume with a project's snapshots.
    Keep,
    /// A volume with what a project's package manager got.
    Cache,
    /// A volume with the changes of a session that are pending review.
    Review,
    /// The volume with a session's git folder.
    Git,
    /// Never started: it exists only to fill a volume.
    Filler,
    /// The volume with the guest.
    Guest,
    /// An image of ours.
    Image,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Keeper => "keeper",
            Self::Gateway => "gateway",
            Self::Keep => "keep",
            Self::Cache => "cache",
            Self::Review => "review",
            Self::Git => "git",
            Self::Environment => "environment",
            Self::ModelServer => "model-server",
            Self::Filler => "filler",
            Self::Guest => "guest",
            Self::Image => "image",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::Workspace,
            Self::Keeper,
            Self::Gateway,
            Self::Keep,
            Self::Cache,
            Self::Review,
            Self::Git,
            Self::Environment,
            Self::ModelServer,
            Self::Filler,
            Self::Guest,
            Self::Image,
        ];
        all.into_iter().find(|role| role.as_str() == text)
    }
}

/// The process that created an object, precisely enough to know later whether it still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    place: PidScope,
    pid: u32,
    /// Its start time in clock ticks after boot: pids are reused, the pair is not.
    started: u64,
}

/// Where a process runs: a pid is meaningful only within one boot and one pid namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PidScope {
    /// The kernel's boot id; empty if unknown.
    boot: String,
    /// The pid namespace.
    namespace: String,
    /// Survives a reboot. Labels of an older form lack it, and so do some machines.
    machine: Option<String>,
}

impl Owner {
    /// Returns this process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self {
            place: PidScope::here(),
            pid,
            started: started(pid).unwrap_or(0),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(3, ':');
        let started = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok()?;
        Some(Self {
            place: PidScope::parse(parts.next()?)?,
            pid,
            started,
        })
    }

    /// Returns whether the process has certainly ended: it does not run in its own boot and pid
    /// namespace, or this machine was rebooted since. Processes of other machines and other pid
    /// namespaces are not visible.
    pub fn is_gone(&self) -> bool {
        self.is_gone_as_seen_from(&PidScope::here(), started)
    }

    /// `started` returns when a process with that pid started here, if there is one.
    fn is_gone_as_seen_from(
        &self,
        here: &PidScope,
        started: impl FnOnce(u32) -> Option<u64>,
    ) -> bool {
        let place = &self.place;
        if place.boot.is_empty() || here.boot.is_empty() {
            return false;
        }
        if place.boot != here.boot {
            return place.machine.is_some() && place.machine == here.machine;
        }
        place.namespace == here.namespace && started(self.pid) != Some(self.started)
    }

    /// Returns whether it ran on this machine, in this boot or an earlier one.
    pub fn is_of_this_machine(&self) -> bool {
        let here = PidScope::here();
        (!here.boot.is_empty() && self.place.boot == here.boot)
            || (here.machine.is_some() && self.place.machine == here.machine)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns a process that has ended, for tests.
    #[doc(hidden)]
    pub fn ended() -> Self {
        let own = Self::current();
        Self {
            started: own.started + 1,
            ..own
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.place, self.pid, self.started)
    }
}

impl PidScope {
    fn here() -> Self {
        let link = fs::read_link("/proc/self/ns/pid")
            .map(|link| link.to_string_lossy().into_owned())
            .unwrap_or_default();
        Self {
            boot: boot(),
            namespace: link.chars().filter(char::is_ascii_digit).collect(),
            machine: machine(),
        }
    }

    /// Parses `BOOT/NAMESPACE/MACHINE`; the last may be missing.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/').map(str::to_owned);
        let (boot, namespace, machine) = (parts.next()?, parts.next()?, parts.next());
        parts.next().is_none().then_some(Self {
            boot,
            namespace,
            machine: machine.filter(|name| !name.is_empty()),
        })
    }
}

impl fmt::Display for PidScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.boot, self.namespace)?;
        match &self.machine {
            Some(machine) => write!(f, "/{machine}"),
            None => Ok(()),
        }
    }
}

/// Returns the id of this boot of the machine; empty if the kernel does not say it.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns when a process began, in clock ticks since the machine started.
pub(super) fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name may contain a parenthesis, so fields are counted after the last one. A
    // zombie has ended.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The labels of one object; the only place that writes and parses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    pub role: Role,
    pub instance: Option<InstanceId>,
    pub owner: Option<Owner>,
    /// Device and inode of the project's folder.
    pub project: Option<String>,
    /// The folder's path, for objects that outlive their creator.
    pub path: Option<String>,
    pub session: Option<SessionId>,
    /// Hash of what the object was made from, for objects that are reused if it is equal.
    pub spec: Option<String>,
    /// The package manager whose cache it is.
    pub cache: Option<String>,
}

impl Labels {
    pub fn new(role: Role) -> Self {
        Self {
            role,
            instance: None,
            owner: None,
            project: None,
            path: None,
            session: None,
            spec: None,
            cache: None,
        }
    }

    pub(super) fn to_map(&self) -> HashMap<String, String> {
        let fields = [
            ("role", Some(self.role.as_str().to_owned())),
            ("instance", self.instance.as_ref().map(ToString::to_string)),
            ("owner", self.owner.as_ref().map(ToString::to_string)),
            ("project", self.project.clone()),
            ("path", self.path.clone()),
            ("session", self.session.as_ref().map(ToString::to_string)),
            ("spec", self.spec.clone()),
            ("cache", self.cache.clone()),
        ];
        fields
            .into_iter()
            .filter_map(|(key, value)| Some((format!("{PREFIX}{key}"), value?)))
            .collect()
    }

    /// Parses the labels of an object; `None` if it is not ours.
    pub(super) fn from_map(map: &HashMap<String, String>) -> Option<Self> {
        let get = |key: &str| map.get(&format!("{PREFIX}{key}"));
        Some(Self {
            role: Role::parse(get("role")?)?,
            instance: get("instance")
                .and_then(|text| serde_json::from_value(text.clone().into()).ok()),
            owner: get("owner").and_then(|text| Owner::parse(text)),
            project: get("project").cloned(),
            path: get("path").cloned(),
            session: get("session").and_then(|text| text.parse().ok()),
            spec: get("spec").cloned(),
            cache: get("cache").cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_round_trip() {
        let labels = Labels {
            role: Role::Workspace,
            instance: Some(InstanceId::random()),
            owner: Some(Owner::current()),
            project: Some("8:1:42".to_owned()),
            path: Some("/home/me/a project".to_owned()),
            session: Some(SessionId::random()),
            spec: None,
            cache: Some("pip".to_owned()),
        };
        assert_eq!(Labels::from_map(&labels.to_map()), Some(labels));
        assert_eq!(Labels::from_map(&HashMap::new()), None);
    }

    #[test]
    fn this_process_is_alive_and_an_ended_one_is_gone() {
        assert!(!Owner::current().is_gone() && Owner::current().is_of_this_machine());
        let mut past = Owner::ended();
        assert!(past.is_gone(), "same pid, another start");
        past.place = PidScope {
            boot: "another-boot".to_owned(),
            namespace: "1".to_owned(),
            machine: None,
        };
        assert!(!past.is_of_this_machine());
        assert!(!past.is_gone(), "what cannot be seen is not judged");
    }

    /// Judges process 7, started at 70, by its label, seen from a place where that pid started at
    /// `there`.
    #[track_caller]
    fn check(label: &str, here: &str, there: Option<u64>, is_gone: bool) {
        let owner = Owner::parse(label).expect("a label of ours");
        let here = PidScope::parse(here).expect("a place");
        assert_eq!(
            owner.is_gone_as_seen_from(&here, |_| there),
            is_gone,
            "{label} from {here}"
        );
    }

    #[test]
    fn owners_of_earlier_boots_are_gone_and_other_machines_unknown() {
        let label = "boot-1/4026/m1:7:70";
        check(label, "boot-1/4026/m1", Some(70), false);
        check(label, "boot-1/4026/m1", Some(71), true);
        check(label, "boot-1/4026/m1", None, true);
        check(label, "boot-1/5000/m1", None, false);
        // By chance the same pid may be in use again.
        check(label, "boot-2/4026/m1", Some(70), true);
        check(label, "boot-2/5000/m1", None, true);
        check(label, "boot-2/4026/m2", None, false);
        check(label, "boot-2/4026", None, false);
        // A host's name can change while it runs.
        check(label, "boot-1/4026/m2", None, true);
    }

    #[test]
    fn a_label_of_the_older_form_is_judged_only_in_its_own_boot() {
        let label = "boot-1/4026:7:70";
        check(label, "boot-1/4026/m1", Some(70), false);
        check(label, "boot-1/4026/m1", None, true);
        check(label, "boot-2/4026/m1", None, false);
        check(label, "boot-2/4026", None, false);
        check("boot-1/4026/:7:70", "boot-2/4026/", None, false);
        check("/4026/m1:7:70", "boot-2/4026/m1", None, false);
        check("/4026/m1:7:70", "/4026/m1", None, false);
    }

    #[test]
    fn a_malformed_label_has_no_owner() {
        for text in [
            "",
            "7:70",
            "boot:7:70",
            "a/b/c/d:7:70",
            "boot/1:x:70",
            "boot/1:7:-1",
            "boot/1/m:99999999999:1",
        ] {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
        let old = "b/1:7:70";
        assert_eq!(Owner::parse(old).expect("the older form").to_string(), old);
    }
}
