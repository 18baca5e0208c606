//! What a session's commits hold that may run on the person's machine, though the files that it left may not show it: it may stand on a
//! branch that is not checked out, or in an older commit.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Instant;

use super::import::Import;
use super::import::One;
use super::index::Entry;
use super::index::Index;
use super::left::Left;
use super::record::Start;
use super::refs::Head;
use super::run::Git;
use super::run::MAX_SAID;
use super::stage;
use crate::guest::keep::review::AutoRun;
use crate::wire::BytesPath;
use crate::wire::Fault;
use crate::wire::keep::MayRun;
use crate::wire::keep::Named;

/// Names each such file that is new or changed in a commit, a stash or the index of a session; `auto_run` are patterns beside what is known.
pub(super) fn touched(import: &Import<'_>, auto_run: &[String]) -> Result<Named<MayRun>, Fault> {
    let auto_run =
        AutoRun::new(auto_run).map_err(|error| Fault::Invalid { field: "sandbox.auto_run".to_owned(), problem: error.to_string() })?;
    let mut found = Named::default();
    let Some(start) = Start::read(import.state, import.id)? else { return Ok(found) };
    let end = Instant::now() + import.budget;
    for (at, started) in start.repositories.iter().enumerate() {
        let git = BytesPath::from_bytes(started.git());
        // Of one that is not to be taken over nothing comes.
        let Some(Ok(place)) = import.places.get(&git) else { continue };
        let index = start.index(import.state, import.id, at)?;
        let one = One::open(import, place, (at, index), end, started)?;
        found.extend(one.changed()?.into_iter().filter_map(|path| Some(MayRun { why: auto_run.of_path(&path)?, path })));
    }
    Ok(found)
}

impl One<'_> {
    /// Returns every path that the session's own commits change, or its index does.
    fn changed(&self) -> Result<BTreeSet<BytesPath>, Fault> {
        let left = Left::read(&self.session, &self.private, self.started, self.start_index.as_deref())?;
        let mut changed = BTreeSet::new();
        if let Some(index) = &left.index {
            let start = self.start_index.as_deref().and_then(|bytes| Index::parse(bytes).ok()).unwrap_or_default();
            let start: BTreeMap<&[u8], &Entry> = start.entries.iter().map(|entry| (entry.name.as_slice(), entry)).collect();
            let is_new = |entry: &&Entry| !start.get(entry.name.as_slice()).is_some_and(|before| before.is_same(entry));
            changed.extend(index.entries.iter().filter(is_new).map(|entry| BytesPath::from_bytes(entry.name.as_slice())));
        }
        let mut tips: Vec<&String> = left.names.values().chain(left.stashes.iter().map(|stash| &stash.object)).collect();
        if let Some(Head::Commit { object }) = &left.head {
            tips.push(object);
        }
        if tips.is_empty() {
            return Ok(changed);
        }
        let stage = stage::make(
            self.scratch,
            &stage::Objects { real: &self.real_path, session: &self.session_path, session_folder: &self.session, real_folder: &self.real },
        )?;
        let git = Git::new(&stage, &self.scratch.join("empty"), self.end);
        let mut asked: String = tips.iter().map(|tip| format!("{tip}\n")).collect();
        let head = if let Head::Commit { object } = &self.started.head { Some(object) } else { None };
        let before = self.started.refs.values().chain(self.started.stashes.iter().map(|stash| &stash.object)).chain(head);
        asked.extend(before.map(|object| format!("^{object}\n")));
        let commits = self.said(&git, &["rev-list", "--ignore-missing", "--stdin"], asked.as_bytes())?;
        // Of a merge only what is in none of those that it joins.
        let words =
            ["diff-tree", "--stdin", "--root", "-r", "-c", "-z", "--name-only", "--no-commit-id", "--no-renames", "--diff-filter=d"];
        let paths = self.said(&git, &words, &commits)?;
        changed.extend(paths.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(BytesPath::from_bytes));
        Ok(changed)
    }

    fn said(&self, git: &Git, words: &[&str], asked: &[u8]) -> Result<Vec<u8>, Fault> {
        let answer = git.run(words, asked)?;
        let wrong = |problem: String| Fault::Io { doing: format!("look through the commits of {}", self.started.path), problem };
        if !answer.is_good {
            return Err(wrong(answer.problem()));
        }
        if answer.stdout.len() as u64 >= MAX_SAID {
            return Err(wrong("there are too many of them".to_owned()));
        }
        Ok(answer.stdout)
    }
}
