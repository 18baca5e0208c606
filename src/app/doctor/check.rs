use serde::Serialize;

/// How one check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// It works, but less well or less safely than it could.
    Warn,
    /// Something that a run needs does not work.
    Fail,
}

/// What a check is about; groups are shown in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    Engine,
    Sandbox,
    Isolation,
    Images,
    Model,
    Settings,
    State,
    Host,
    Trial,
}

impl Group {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Sandbox => "sandbox",
            Self::Isolation => "isolation",
            Self::Images => "images",
            Self::Model => "model",
            Self::Settings => "settings",
            Self::State => "state",
            Self::Host => "host",
            Self::Trial => "trial",
        }
    }
}

/// One line of the diagnosis. Its texts may hold words from outside: they are made safe where they
/// are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub group: Group,
    pub name: String,
    pub status: Status,
    pub detail: String,
    /// What to do about it, in one sentence; always there where the status is not ok.
    pub remedy: Option<String>,
}

impl Check {
    pub(super) fn ok(group: Group, name: &str, detail: impl Into<String>) -> Self {
        Self {
            group,
            name: name.to_owned(),
            status: Status::Ok,
            detail: detail.into(),
            remedy: None,
        }
    }

    pub(super) fn warn(
        group: Group,
        name: &str,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            group,
            name: name.to_owned(),
            status: Status::Warn,
            detail: detail.into(),
            remedy: Some(remedy.into()),
        }
    }

    pub(super) fn fail(
        group: Group,
        name: &str,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            group,
            name: name.to_owned(),
            status: Status::Fail,
            detail: detail.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// Returns a failure by its error: the whole chain of causes, and its hint or the remedy given
    /// here.
    pub(super) fn error(
        group: Group,
        name: &str,
        error: &(dyn std::error::Error + 'static),
        hint: Option<String>,
        remedy: &str,
    ) -> Self {
        Self::fail(
            group,
            name,
            chain(error),
            hint.unwrap_or_else(|| remedy.to_owned()),
        )
    }
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// The worst of all.
    pub status: Status,
    pub checks: Vec<Check>,
}

impl Diagnosis {
    pub(super) fn new(mut checks: Vec<Check>) -> Self {
        // Stable: within a group they stay as they came.
        checks.sort_by_key(|check| check.group);
        Self {
            status: checks
                .iter()
                .map(|check| check.status)
                .max()
                .unwrap_or(Status::Ok),
            checks,
        }
    }

    pub fn count(&self, status: Status) -> usize {
        self.checks
            .iter()
            .filter(|check| check.status == status)
            .count()
    }
}

/// Returns an error with its causes, each said once.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_check_decides_and_groups_stand_together() {
        let checks = vec![
            Check::ok(Group::Host, "terminal", ""),
            Check::warn(Group::Engine, "a", "", "do this"),
            Check::ok(Group::Host, "clock", ""),
            Check::ok(Group::Engine, "b", ""),
        ];
        let diagnosis = Diagnosis::new(checks);
        assert_eq!(
            (diagnosis.status, diagnosis.count(Status::Ok)),
            (Status::Warn, 3)
        );
        let names: Vec<&str> = diagnosis
            .checks
            .iter()
            .map(|check| check.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b", "terminal", "clock"]);
        assert_eq!(Diagnosis::new(Vec::new()).status, Status::Ok);
    }
}
