//! Auto-run files: which files of a project are executed or obeyed by programs on the user's
//! machine, by name; by which program, and whether by itself or when the user runs it.
//!
//! The table is `auto_run_names.txt`. It helps to see what matters among many changes, and is no
//! boundary: what a user runs, runs. The project's own settings (git configuration, links, hooks)
//! are not considered here; `keep::auto_run` adds them.

use std::collections::HashMap;
use std::sync::LazyLock;

use podbay_wire::BytesPath;
use podbay_wire::keep::RunTrigger;

/// A group of the table: names that one program obeys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub program: &'static str,
    pub when: RunTrigger,
    /// Such a file names other files that run with it.
    pub names_others: bool,
    /// A new folder of such a name is applied as a whole, or not at all.
    pub is_whole: bool,
}

impl Group {
    /// Describes the group for the user.
    pub fn why(&self) -> String {
        format!("{} obeys it {}", self.program, self.when)
    }
}

/// Returns the first group that a path belongs to; `None`: no known program obeys it by its name.
pub fn auto_run_group(path: &BytesPath) -> Option<&'static Group> {
    TABLE.group(path, Lookup::File)
}

/// Returns the group only for files that name others that run with them.
pub fn naming_group(path: &BytesPath) -> Option<&'static Group> {
    NAMING.group(path, Lookup::File)
}

/// Returns the first group by which a new folder is applied as a whole: by its own name, or by that
/// of a file directly in it.
pub fn whole_folder_group(path: &BytesPath, is_folder: bool) -> Option<&'static Group> {
    TABLE.group(
        path,
        if is_folder {
            Lookup::WholeFolder
        } else {
            Lookup::FileOfWhole
        },
    )
}

/// Read-only in a live session unless the settings say otherwise (`sandbox.auto_run`). The table
/// says when each runs.
pub const READ_ONLY: [&str; 15] = [
    ".vscode",
    ".idea",
    ".fleet",
    ".zed",
    ".envrc",
    ".husky",
    ".githooks",
    ".hg",
    ".devcontainer",
    ".cargo",
    ".mcp.json",
    ".claude",
    ".github",
    ".gitlab-ci.yml",
    ".circleci",
];

static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::parse(include_str!("auto_run_names.txt"), |_| true));
static NAMING: LazyLock<Table> = LazyLock::new(|| {
    Table::parse(include_str!("auto_run_names.txt"), |group| {
        group.names_others
    })
});

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lookup {
    File,
    WholeFolder,
    FileOfWhole,
}

/// One name of the table, in lower case.
#[derive(Debug)]
struct Name {
    group: usize,
    /// The parent folders that it must have, the outermost first.
    folders: Vec<String>,
    /// Prefix and suffix of the last component; without a `*` the prefix is all of it.
    last: (String, Option<String>),
    /// Everything below it counts too.
    is_folder: bool,
}

impl Name {
    fn parse(text: &str, group: usize) -> Self {
        let folded = text.to_lowercase();
        let (plain, is_folder) = folded
            .strip_suffix('/')
            .map_or((folded.as_str(), false), |plain| (plain, true));
        let mut folders: Vec<String> = plain.split('/').map(ToOwned::to_owned).collect();
        let last = folders.pop().unwrap_or_default();
        let last = match last.split_once('*') {
            Some((start, end)) => (start.to_owned(), Some(end.to_owned())),
            None => (last, None),
        };
        Self {
            group,
            folders,
            last,
            is_folder,
        }
    }

    /// Returns whether the component at this position matches, with the folders before it.
    fn is_at(&self, parts: &[&str], at: usize) -> bool {
        let (start, end) = &self.last;
        let is_last = match end {
            None => parts[at] == start,
            Some(end) => parts[at]
                .strip_prefix(start.as_str())
                .is_some_and(|rest| rest.ends_with(end.as_str())),
        };
        let above = &parts[..at];
        is_last
            && above.len() >= self.folders.len()
            && self
                .folders
                .iter()
                .eq(&above[above.len() - self.folders.len()..])
    }
}

#[derive(Debug, Default)]
struct Table {
    groups: Vec<Group>,
    /// Names without a `*`, by their last component, and those with one.
    plain: HashMap<String, Vec<Name>>,
    globs: Vec<Name>,
}

impl Table {
    /// Parses the table. A malformed line is a bug, which a test finds.
    fn parse(text: &'static str, is_wanted: impl Fn(&Group) -> bool) -> Self {
        let mut table = Self::default();
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            if line.starts_with(' ') {
                let group = table
                    .groups
                    .len()
                    .checked_sub(1)
                    .expect("a name of the table stands in a group");
                let names = line
                    .split_whitespace()
                    .filter(|_| is_wanted(&table.groups[group]));
                names
                    .map(|name| Name::parse(name, group))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|name| table.add(name));
            } else {
                table.groups.push(group(line));
            }
        }
        table
    }

    fn add(&mut self, name: Name) {
        if name.last.1.is_some() {
            self.globs.push(name);
        } else {
            self.plain
                .entry(name.last.0.clone())
                .or_default()
                .push(name);
        }
    }

    fn group(&self, path: &BytesPath, asked: Lookup) -> Option<&Group> {
        let text = path.to_text().to_lowercase();
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        let end = parts.len().checked_sub(1)?;
        let fits = |name: &&Name, at: usize| {
            let is_whole = self.groups[name.group].is_whole;
            let counts = match asked {
                Lookup::WholeFolder => is_whole && name.is_folder && at == end,
                Lookup::FileOfWhole => is_whole && !name.is_folder && at == end,
                // The group of a whole folder says nothing about a single file in it.
                Lookup::File => at == end || name.is_folder && !is_whole,
            };
            counts && name.is_at(&parts, at)
        };
        let plain = parts.iter().enumerate().flat_map(|(at, part)| {
            let names = self.plain.get(*part).into_iter().flatten();
            names
                .filter(move |name| fits(name, at))
                .map(|name| name.group)
        });
        let globs = self
            .globs
            .iter()
            .filter(|name| fits(name, end))
            .map(|name| name.group);
        plain.chain(globs).min().map(|group| &self.groups[group])
    }
}

fn group(line: &'static str) -> Group {
    let mut parts = line.split(" | ");
    let program = parts.next().unwrap_or_default();
    let when = match parts.next() {
        Some("by itself") => RunTrigger::ByItself,
        Some("when you run it") => RunTrigger::WhenYouRunIt,
        other => panic!("{line}: `by itself` or `when you run it`, and not {other:?}"),
    };
    let mut group = Group {
        program,
        when,
        names_others: false,
        is_whole: false,
    };
    for mark in parts {
        match mark {
            "and what it names" => group.names_others = true,
            "whole" => group.is_whole = true,
            other => panic!("{line}: no group is marked `{other}`"),
        }
    }
    group
}

#[cfg(test)]
mod tests;
