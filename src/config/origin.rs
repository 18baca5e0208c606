use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    Environment {
        variable: String,
    },
    Flag {
        name: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment { variable } => f.write_str(variable),
            Self::Flag { name } => f.write_str(name),
        }
    }
}

/// Where each value came from, by its dotted key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    by_key: BTreeMap<String, Vec<Origin>>,
}

impl Origins {
    /// Returns where the value of a key came from; for a list that several layers add to, the last
    /// one.
    pub fn of(&self, key: &str) -> &Origin {
        self.all(key).last().unwrap_or(&Origin::Default)
    }

    /// Returns all layers that a value came from: several for a list that they add to.
    pub fn all(&self, key: &str) -> &[Origin] {
        self.by_key.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn set(&mut self, key: &str, origin: Origin) {
        self.by_key.insert(key.to_owned(), vec![origin]);
    }

    pub(super) fn add(&mut self, key: &str, origin: Origin) {
        self.by_key.entry(key.to_owned()).or_default().push(origin);
    }

    /// Removes a key and all below it.
    pub(super) fn forget(&mut self, key: &str) {
        self.by_key.retain(|known, _| {
            known != key
                && !known
                    .strip_prefix(key)
                    .is_some_and(|rest| rest.starts_with('.'))
        });
    }
}
