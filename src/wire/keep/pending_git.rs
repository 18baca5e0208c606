use serde::Deserialize;
use serde::Serialize;

use super::ImportedGit;
use super::NamedList;
use crate::BytesPath;

/// Most new names in a summary, and most characters of each.
const MOST_NEW: usize = 8;
const MOST_CHARS: usize = 200;

/// A session's git work that is pending with its review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingGit {
    /// Only those with pending work.
    pub repositories: Vec<PendingRepository>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRepository {
    /// As in [`FoundRepository`](super::FoundRepository).
    pub path: BytesPath,
    /// Branches and new tags.
    pub names: NamedList<PendingRef>,
    /// The messages of its stashes.
    pub stashes: Vec<String>,
    /// The new checkout, if the session changed it.
    pub head: Option<String>,
    /// Whether the index differs from the start.
    pub is_staged: bool,
    /// What cannot be imported as it is, with the reasons.
    pub odd: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRef {
    /// The full name: `refs/heads/main`.
    pub name: BytesPath,
    /// `None`: it is new.
    pub old: Option<String>,
    pub new: String,
    /// Number of the session's commits that it holds; `None`: they were not counted.
    pub n_commits: Option<u64>,
    /// The subject of the last one.
    pub subject: Option<String>,
    /// Whether these are based on nothing from before, so that the branch lost the history of
    /// `old`.
    #[serde(default)]
    pub is_anew: bool,
    /// The session's name of it, if it is imported under another one.
    #[serde(default)]
    pub called: Option<String>,
}

impl PendingGit {
    pub fn is_empty(&self) -> bool {
        self.repositories.is_empty()
    }

    /// Removes what was imported since.
    pub fn remove_taken(&mut self, taken: &ImportedGit) {
        for one in &mut self.repositories {
            let Some(taken) = taken
                .repositories
                .iter()
                .find(|taken| taken.path == one.path)
            else {
                continue;
            };
            one.remove_taken(
                |name| {
                    taken
                        .moved
                        .iter()
                        .any(|moved| moved.name == name.name && moved.new == name.new)
                },
                taken.stashes.iter(),
                taken.head.as_deref(),
            );
        }
        self.repositories.retain(|one| !one.is_empty());
    }

    /// Describes the pending work, one line for each name and for each other thing.
    pub fn lines(&self) -> Vec<String> {
        self.repositories
            .iter()
            .flat_map(|one| one.lines(usize::MAX, None))
            .collect()
    }

    /// Does the same with only the first of the new names, after those that existed before; `shown`
    /// is the command that lists all.
    pub fn first_lines(&self, shown: &str) -> Vec<String> {
        self.repositories
            .iter()
            .flat_map(|one| one.lines(MOST_NEW, Some(shown)))
            .collect()
    }
}

impl PendingRepository {
    /// Whether nothing is pending in it.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
            && self.stashes.is_empty()
            && self.head.is_none()
            && !self.is_staged
            && self.odd.is_empty()
    }

    /// Removes imported names, stashes by their messages, and the checkout.
    pub fn remove_taken<'a>(
        &mut self,
        is_taken: impl Fn(&PendingRef) -> bool,
        stashes: impl Iterator<Item = &'a String>,
        head: Option<&str>,
    ) {
        let n_before = self.names.first.len();
        self.names.first.retain(|name| !is_taken(name));
        self.names.n -= (n_before - self.names.first.len()) as u64;
        for taken in stashes {
            if let Some(at) = self.stashes.iter().position(|stash| stash == taken) {
                self.stashes.remove(at);
            }
        }
        self.head.take_if(|name| Some(name.as_str()) == head);
    }

    fn lines(&self, most_new: usize, shown: Option<&str>) -> Vec<String> {
        let (moved, new): (Vec<&PendingRef>, Vec<&PendingRef>) =
            self.names.first.iter().partition(|name| name.old.is_some());
        let words = |name: &&PendingRef| {
            if shown.is_some() {
                ellipsize(&name.words(), MOST_CHARS)
            } else {
                name.words()
            }
        };
        let mut lines: Vec<String> = moved
            .iter()
            .chain(new.iter().take(most_new))
            .map(words)
            .collect();
        let n_more = self.names.n.saturating_sub(lines.len() as u64);
        if n_more > 0 {
            lines.push(format!(
                "commits: and {n_more} more{}",
                shown.map_or(" names".to_owned(), |shown| format!(": `{shown}`"))
            ));
        }
        lines.extend(self.stashes.iter().map(|words| format!("stash: {words}")));
        lines.extend(
            self.head
                .iter()
                .map(|name| format!("checked out: {}", short_ref_name(name))),
        );
        // With a commit the index changes anyway.
        if self.is_staged && lines.is_empty() {
            lines.push("staged: differs from the start".to_owned());
        }
        lines.extend(self.odd.iter().map(|words| format!("git: {words}")));
        if self.path.as_bytes() != b".git" {
            return lines
                .into_iter()
                .map(|line| format!("{line}, of {}", self.path))
                .collect();
        }
        lines
    }
}

impl PendingRef {
    /// `commits: main 0123456..89abcde (2)`, with the subject of the last commit.
    fn words(&self) -> String {
        let commit = |object: &str| object.chars().take(7).collect::<String>();
        let name = self.name.to_string();
        let from = self
            .old
            .as_deref()
            .map_or_else(|| "new, ".to_owned(), |old| format!("{}..", commit(old)));
        let count = self
            .n_commits
            .filter(|n| *n > 0)
            .map(|n| format!(" ({n})"))
            .unwrap_or_default();
        let subject = self
            .subject
            .as_deref()
            .map(|subject| format!(" {subject}"))
            .unwrap_or_default();
        let anew = if self.is_anew {
            "; with a new history, without the commits that it had"
        } else {
            ""
        };
        let called = self
            .called
            .as_deref()
            .map(|name| format!("; called {} in the session", short_ref_name(name)))
            .unwrap_or_default();
        format!(
            "commits: {} {from}{}{count}{subject}{anew}{called}",
            short_ref_name(&name),
            commit(&self.new)
        )
    }
}

/// Leaves out the middle of a string with more characters than a summary may have.
pub fn ellipsize(words: &str, most: usize) -> String {
    let n = words.chars().count();
    if n <= most {
        return words.to_owned();
    }
    let (start, end) = (
        words.chars().take(most / 2),
        words.chars().skip(n - most / 2),
    );
    start.chain(['…']).chain(end).collect()
}

/// Returns a reference name without its prefix.
pub fn short_ref_name(name: &str) -> &str {
    ["refs/heads/", "refs/"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_work_is_described_briefly() {
        let name = |name: &str, old: Option<&str>, n_commits, subject: Option<&str>| PendingRef {
            name: name.into(),
            old: old.map(|digit| digit.repeat(40)),
            new: "2".repeat(40),
            n_commits,
            subject: subject.map(str::to_owned),
            is_anew: subject == Some("begin anew"),
            called: None,
        };
        let top = PendingRepository {
            path: ".git".into(),
            names: [
                name("refs/heads/main", Some("1"), Some(2), Some("mend it")),
                name("refs/heads/other", Some("1"), Some(1), Some("begin anew")),
                name("refs/tags/v1", None, None, None),
            ]
            .into_iter()
            .collect(),
            head: Some("refs/heads/main".to_owned()),
            is_staged: true,
            ..PendingRepository::default()
        };
        let module = PendingRepository {
            path: ".git/modules/sub".into(),
            is_staged: true,
            ..PendingRepository::default()
        };
        assert!(!top.is_empty() && !module.is_empty() && PendingRepository::default().is_empty());
        let lines = PendingGit {
            repositories: vec![top, module],
        }
        .lines();
        assert_eq!(
            lines,
            [
                "commits: main 1111111..2222222 (2) mend it",
                "commits: other 1111111..2222222 (1) begin anew; with a new history, without the \
                commits that it had",
                "commits: tags/v1 new, 2222222",
                "checked out: main",
                "staged: differs from the start, of .git/modules/sub"
            ]
        );
    }

    #[test]
    fn many_long_new_names_do_not_hide_a_moved_branch() {
        let name = |name: &str, old: Option<&str>| PendingRef {
            name: name.into(),
            old: old.map(|digit| digit.repeat(40)),
            new: "2".repeat(40),
            n_commits: Some(1),
            subject: None,
            is_anew: false,
            called: name.ends_with("/1").then(|| "refs/heads/`x`".to_owned()),
        };
        let new = (0..40).map(|n| name(&format!("refs/heads/{}{n:02}", "a".repeat(900)), None));
        let names = [name("refs/heads/podbay/s/1", None)]
            .into_iter()
            .chain(new)
            .chain([name("refs/heads/release", Some("1"))])
            .collect();
        let git = PendingGit {
            repositories: vec![PendingRepository {
                path: ".git".into(),
                names,
                ..PendingRepository::default()
            }],
        };
        let lines = git.first_lines("podbay review diff s");
        assert_eq!(
            lines[..2],
            [
                "commits: release 1111111..2222222 (1)",
                "commits: podbay/s/1 new, 2222222 (1); called `x` in the session"
            ]
        );
        assert_eq!(
            (lines.len(), lines[9].as_str()),
            (10, "commits: and 33 more: `podbay review diff s`")
        );
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() <= MOST_CHARS + 1),
            "{lines:?}"
        );
        assert_eq!(git.lines().len(), 42, "there all of them are");
    }
}
