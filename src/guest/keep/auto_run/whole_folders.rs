//! New folders that are applied with all of their contents or not at all: half a virtual
//! environment, or half of what a package manager installed, is of no use.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::AutoRun;
use super::ChangedPath;
use super::RunReason;
use crate::auto_run_names::whole_folder_group;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::RunTrigger;

#[derive(Debug, Default)]
pub(in crate::keep) struct WholeFolders(BTreeMap<BytesPath, RunReason>);

impl WholeFolders {
    /// Finds which of the new folders are whole folders. One runs without being asked for if its
    /// own name says so, or if settings, links or hooks of the project lead to something in it;
    /// names inside it do not matter.
    pub(in crate::keep) fn of<'a>(
        auto_run: &AutoRun,
        changes: impl Iterator<Item = ChangedPath<'a>> + Clone,
    ) -> Self {
        let is_folder = |change: &ChangedPath<'_>| change.entry == Some(EntryType::Folder);
        let new: BTreeSet<&[u8]> = changes
            .clone()
            .filter(|change| change.is_new && is_folder(change))
            .map(|change| change.path.as_bytes())
            .collect();
        let mut wholes = Self::default();
        for change in changes.clone().filter(|change| change.entry.is_some()) {
            let path = change.path.as_bytes();
            let folder = if is_folder(&change) {
                path
            } else {
                split(path).0
            };
            if new.contains(folder)
                && let Some(group) = whole_folder_group(change.path, is_folder(&change))
            {
                let why = format!("{}, with all of its contents", group.why());
                wholes
                    .0
                    .entry(BytesPath::from_bytes(folder))
                    .or_insert(RunReason {
                        why,
                        when: group.when,
                    });
            }
        }
        let all = std::mem::take(&mut wholes.0);
        for (folder, runs) in all {
            // Sorted by path, so the outermost comes first.
            if wholes.with(&folder).is_none() {
                wholes.0.insert(folder, runs);
            }
        }
        if wholes.0.is_empty() {
            return wholes;
        }
        for change in changes {
            let Some((folder, runs)) = wholes.with(change.path) else {
                continue;
            };
            let led = auto_run.leads.to(change.path.as_bytes()).filter(|led| {
                led.when == RunTrigger::ByItself && runs.when != RunTrigger::ByItself
            });
            if let Some(RunReason { why, when }) = led {
                let (folder, why) = (folder.clone(), format!("with {}: {why}", change.path));
                wholes.0.insert(folder, RunReason { why, when });
            }
        }
        wholes
    }

    /// Returns the whole folder that a path is part of, if any, and what runs it.
    pub(in crate::keep) fn with(&self, path: &BytesPath) -> Option<(&BytesPath, &RunReason)> {
        if self.0.is_empty() {
            return None;
        }
        let mut above = path.as_bytes();
        while !above.is_empty() {
            if let Some(found) = self.0.get_key_value(&BytesPath::from_bytes(above)) {
                return Some(found);
            }
            above = split(above).0;
        }
        None
    }
}
