//! Which files of a project programs on a person's machine obey, by their names: which program, and
//! whether by itself or when the person runs it.
//!
//! The table is `names_that_run.txt`. It helps to see what matters among many changes, and is no
//! boundary: what a person runs, runs. What the project itself says (settings of git, links, hooks)
//! is not known here; `keep::auto_run` adds it.

use std::collections::HashMap;
use std::sync::LazyLock;

use podbay_wire::BytesPath;
use podbay_wire::keep::RunTrigger;

/// A group of the table: names that one program obeys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub program: &'static str,
    pub when: RunTrigger,
    /// Files that stand in such a file run with it.
    pub names_others: bool,
    /// A new folder of such a name comes as a whole, or not at all.
    pub is_whole: bool,
}

impl Group {
    /// Says it in words.
    pub fn why(&self) -> String {
        format!("{} obeys it {}", self.program, self.when)
    }
}

/// Returns the first group that a path belongs to; `None`: nobody that is known of obeys it by its
/// name.
pub fn names_that_run(path: &BytesPath) -> Option<&'static Group> {
    TABLE.group(path, Asked::File)
}

/// The same of those alone whose files name others that run with them.
pub fn names_that_name(path: &BytesPath) -> Option<&'static Group> {
    NAMING.group(path, Asked::File)
}

/// Returns the first group by which a new folder comes as a whole: by its own name, or by that of a
/// file right in it.
pub fn names_of_wholes(path: &BytesPath, is_folder: bool) -> Option<&'static Group> {
    TABLE.group(
        path,
        if is_folder {
            Asked::WholeFolder
        } else {
            Asked::FileOfWhole
        },
    )
}

/// What is read-only in a live session unless the settings say otherwise (`sandbox.auto_run`). When
/// it runs, the table says.
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
    LazyLock::new(|| Table::parse(include_str!("names_that_run.txt"), |_| true));
static NAMING: LazyLock<Table> = LazyLock::new(|| {
    Table::parse(include_str!("names_that_run.txt"), |group| {
        group.names_others
    })
});

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    File,
    WholeFolder,
    FileOfWhole,
}

/// One name of the table, in lower case.
#[derive(Debug)]
struct Name {
    group: usize,
    /// The folders that it must lie in, from the outermost.
    folders: Vec<String>,
    /// What the last part begins and ends with; without a `*` that is all of it.
    last: (String, Option<String>),
    /// All that lies in there counts.
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

    /// Whether the part at this place of a path is what is meant, with the folders before it.
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
    /// Names without a `*`, by their last part, and those with one.
    plain: HashMap<String, Vec<Name>>,
    globs: Vec<Name>,
}

impl Table {
    /// Reads the table, which is checked by a test: a line that makes no sense is a mistake of
    /// ours.
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

    fn group(&self, path: &BytesPath, asked: Asked) -> Option<&Group> {
        let text = path.to_text().to_lowercase();
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        let end = parts.len().checked_sub(1)?;
        let fits = |name: &&Name, at: usize| {
            let is_whole = self.groups[name.group].is_whole;
            let counts = match asked {
                Asked::WholeFolder => is_whole && name.is_folder && at == end,
                Asked::FileOfWhole => is_whole && !name.is_folder && at == end,
                // What a folder is that comes as a whole says nothing of a single file in it.
                Asked::File => at == end || name.is_folder && !is_whole,
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
