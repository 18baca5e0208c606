use std::collections::HashMap;
use std::fmt;
use std::fs;

use crate::event::InstanceId;
use crate::event::SessionId;

/// Every label of ours starts with this.
pub(super) const PREFIX: &str = "dev.podbay.";

/// What an object is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A box that runs commands of the model or of the person.
    Workspace,
    /// The box of `podbay up`, which outlives its controller.
    Environment,
    /// The model server; it stays up between runs.
    ModelServer,
    /// Never started: only there to fill a volume.
    Filler,
    /// The volume that holds the guest.
    Guest,
    /// An image of ours.
    Image,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Environment => "environment",
            Self::ModelServer => "model-server",
            Self::Filler => "filler",
            Self::Guest => "guest",
            Self::Image => "image",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Workspace, Self::Environment, Self::ModelServer, Self::Filler, Self::Guest, Self::Image]
            .into_iter()
            .find(|role| role.as_str() == text)
    }
}

/// Which process made an object, precisely enough to know later whether it is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The kernel's boot and the pid namespace: only in the same one can we judge.
    place: String,
    pid: u32,
    /// Clock ticks after boot at which it started: pids come again, this pair does not.
    started: u64,
}

impl Owner {
    /// Returns this process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self { place: place(), pid, started: started(pid).unwrap_or(0) }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(3, ':');
        let started = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok()?;
        Some(Self { place: parts.next()?.to_owned(), pid, started })
    }

    /// Returns whether it has surely ended. On another machine or in another pid namespace that cannot be seen.
    pub fn is_gone(&self) -> bool {
        self.place == place() && started(self.pid) != Some(self.started)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.place, self.pid, self.started)
    }
}

fn place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
    let number: String = namespace.chars().filter(char::is_ascii_digit).collect();
    format!("{}/{number}", boot.trim())
}

fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name may hold anything, even a parenthesis: fields are counted after the last one. A zombie has ended.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The labels of one object; the only place where they are made and read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    pub role: Role,
    pub instance: Option<InstanceId>,
    pub owner: Option<Owner>,
    /// Device and inode of the project's folder.
    pub project: Option<String>,
    pub session: Option<SessionId>,
    /// Hash of what the object was made from, for those that are used again when it is the same.
    pub spec: Option<String>,
}

impl Labels {
    pub fn new(role: Role) -> Self {
        Self { role, instance: None, owner: None, project: None, session: None, spec: None }
    }

    pub(super) fn to_map(&self) -> HashMap<String, String> {
        let fields = [
            ("role", Some(self.role.as_str().to_owned())),
            ("instance", self.instance.as_ref().map(ToString::to_string)),
            ("owner", self.owner.as_ref().map(ToString::to_string)),
            ("project", self.project.clone()),
            ("session", self.session.as_ref().map(ToString::to_string)),
            ("spec", self.spec.clone()),
        ];
        fields.into_iter().filter_map(|(key, value)| Some((format!("{PREFIX}{key}"), value?))).collect()
    }

    /// Reads the labels of an object; `None` if it is none of ours.
    pub(super) fn from_map(map: &HashMap<String, String>) -> Option<Self> {
        let get = |key: &str| map.get(&format!("{PREFIX}{key}"));
        Some(Self {
            role: Role::parse(get("role")?)?,
            instance: get("instance").and_then(|text| serde_json::from_value(text.clone().into()).ok()),
            owner: get("owner").and_then(|text| Owner::parse(text)),
            project: get("project").cloned(),
            session: get("session").and_then(|text| text.parse().ok()),
            spec: get("spec").cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_read_back_as_they_were_written() {
        let labels = Labels {
            role: Role::Workspace,
            instance: Some(InstanceId::random()),
            owner: Some(Owner::current()),
            project: Some("8:1:42".to_owned()),
            session: Some(SessionId::random()),
            spec: None,
        };
        assert_eq!(Labels::from_map(&labels.to_map()), Some(labels));
        assert_eq!(Labels::from_map(&HashMap::new()), None);
    }

    #[test]
    fn this_process_is_there_and_an_ended_one_is_gone() {
        assert!(!Owner::current().is_gone());
        let mut past = Owner::current();
        past.started += 1;
        assert!(past.is_gone(), "same pid, another start");
        let mut elsewhere = past;
        elsewhere.place = "another-boot/1".to_owned();
        assert!(!elsewhere.is_gone(), "what cannot be seen is not judged");
    }
}
