use std::fs;
use std::path::Path;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;
use sha2::Digest;
use sha2::Sha256;

use super::Error;
use super::State;
use super::memory_file;
use super::memory_folder::GLOBAL;
use super::memory_folder::PROPOSED;
use super::memory_folder::label;
use super::memory_folder::no_folder;
use super::memory_folder::read_all;
use super::memory_folder::read_text;
use super::memory_folder::save_in;
use super::project_document::PROJECT_DOCUMENT;
use podbay_event::Memory;

/// The memories that sessions of one project are shown: its own, and the user's global ones.
///
/// Each is a file in the state folder, never one of the project. A project is known by its folder
/// at its path: a folder that takes its place has memories of its own.
#[derive(Clone, Debug)]
pub struct Memories {
    global: PathBuf,
    project: Option<PathBuf>,
    /// What models propose for the project; no session is shown it.
    proposed: Option<PathBuf>,
    pub(super) document: Option<PathBuf>,
}

/// Where a memory counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    Project,
    Global,
    /// No session is shown it until the user keeps it.
    Proposed,
}

/// A memory that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMemory {
    pub scope: MemoryScope,
    pub memory: Memory,
    /// When it was saved last.
    pub saved: Timestamp,
}

impl StoredMemory {
    /// Returns the name by which a user means it: global ones begin with `global/`, proposals with
    /// `proposed/`.
    pub fn label(&self) -> String {
        label(self.scope, &self.memory.name)
    }
}

/// All memories of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryList {
    /// Global ones, then those of the project, the newest first.
    pub memories: Vec<StoredMemory>,
    /// Files that are no memories, each with the reason.
    pub problems: Vec<String>,
}

/// A memory as it was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedMemory {
    pub memory: Memory,
    /// There was one of this name.
    pub replaced: bool,
    /// The oldest ones, which were removed to make room.
    pub pruned: Vec<String>,
}

impl Memories {
    /// Names the folders; `project` is the key of its folder, and its path. There may be none, in a
    /// sandbox that Podbay did not start.
    pub fn new(state: &State, project: Option<(&str, &Path)>) -> Self {
        let name = |(key, path): (&str, &Path)| {
            let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
            let hash: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{key}-{hash}")
        };
        let name = project.map(name);
        let folder = |name: &String| state.memories().join(name);
        Self {
            global: state.memories().join("global"),
            project: name.as_ref().map(folder),
            proposed: name
                .as_ref()
                .map(|name| folder(&format!("{name}.proposed"))),
            document: name.map(|name| state.documents().join(format!("{name}.md"))),
        }
    }

    /// Reads all that sessions are shown; what cannot be read is a problem and hides no other.
    pub fn list(&self) -> MemoryList {
        read_all(self.folders())
    }

    /// Reads what models proposed.
    pub fn proposals(&self) -> MemoryList {
        let folder = self.proposed.iter();
        read_all(folder.map(|folder| (MemoryScope::Proposed, folder)))
    }

    /// Stores a proposal, and removes the oldest beyond the most that there may be.
    pub fn propose(&self, memory: &Memory) -> Result<SavedMemory, Error> {
        save_in(self.proposed.as_ref().ok_or_else(no_folder)?, memory)
    }

    /// Makes a proposal a memory of the project; `None`: there is none of this name.
    pub fn keep(&self, wanted: &str) -> Result<Option<SavedMemory>, Error> {
        let name = wanted.strip_prefix(PROPOSED).unwrap_or(wanted);
        let Some((_, path)) = self.file(&format!("{PROPOSED}{name}")) else {
            return Ok(None);
        };
        let memory = read_text(&path).and_then(|text| memory_file::parse(&text));
        let memory = memory.map_err(|problem| Error::BadMemory { problem })?;
        if let Some((MemoryScope::Project, _)) = self.file(&memory.name) {
            return Err(Error::BadMemory {
                problem: format!(
                    "a note `{0}` is there already: show both (`{0}`, `{PROPOSED}{0}`), and forget the one that is not to stay",
                    memory.name
                ),
            });
        }
        let saved = self.save(&memory)?;
        fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        Ok(Some(saved))
    }

    /// Returns the memory of this name: the project's, else the global one. Names that begin with
    /// `global/` mean global ones alone.
    pub fn find(&self, wanted: &str) -> Option<StoredMemory> {
        let (scope, path) = self.file(wanted)?;
        let all = self.list().memories;
        all.into_iter().find(|stored| {
            stored.scope == scope && memory_file::name_of(&path) == Some(&stored.memory.name)
        })
    }

    /// Saves a memory of the project, and removes the oldest beyond the most that there may be.
    pub fn save(&self, memory: &Memory) -> Result<SavedMemory, Error> {
        save_in(self.project.as_ref().ok_or_else(no_folder)?, memory)
    }

    /// Returns the text of a memory's file, also where it is broken; `None`: there is none.
    pub fn text(&self, wanted: &str) -> Result<Option<String>, Error> {
        let Some((_, path)) = self.file(wanted) else {
            return Ok(None);
        };
        read_text(&path)
            .map(Some)
            .map_err(|problem| Error::BadMemory {
                problem: format!("{problem}; look at `{}`", path.display()),
            })
    }

    /// Returns the text that a new memory of this name begins with.
    pub fn template(wanted: &str) -> String {
        if wanted == PROJECT_DOCUMENT {
            return String::new();
        }
        let name = memory_file::tidy_name(wanted.strip_prefix(GLOBAL).unwrap_or(wanted));
        format!("---\nname: {name}\ndescription: \nkind: user\n---\n\n")
    }

    /// Saves a file's text as the user wrote it, where `wanted` says. Another name in it renames
    /// the memory.
    pub fn save_text(&self, wanted: &str, text: &str) -> Result<SavedMemory, Error> {
        if wanted == PROJECT_DOCUMENT {
            return self.save_document(text);
        }
        let bad = |problem: String| Error::BadMemory { problem };
        let memory = memory_file::parse(text).map_err(bad)?;
        let old = self.file(wanted);
        let scope = match &old {
            Some((scope, _)) => *scope,
            None if wanted.starts_with(GLOBAL) => MemoryScope::Global,
            None => MemoryScope::Project,
        };
        let saved = match scope {
            MemoryScope::Project => self.save(&memory)?,
            MemoryScope::Proposed => self.propose(&memory)?,
            MemoryScope::Global => save_in(&self.global, &memory)?,
        };
        if let Some((_, path)) = old
            && memory_file::name_of(&path) != Some(&saved.memory.name)
        {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
        Ok(saved)
    }

    /// Removes a memory, also a broken one; returns the name of what was removed.
    pub fn forget(&self, wanted: &str) -> Result<Option<String>, Error> {
        let Some((scope, path)) = self.file(wanted) else {
            return Ok(None);
        };
        fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        if wanted == PROJECT_DOCUMENT {
            return Ok(Some(wanted.to_owned()));
        }
        Ok(memory_file::name_of(&path).map(|name| label(scope, name)))
    }

    fn folders(&self) -> impl Iterator<Item = (MemoryScope, &PathBuf)> {
        let project = self.project.iter();
        std::iter::once((MemoryScope::Global, &self.global))
            .chain(project.map(|folder| (MemoryScope::Project, folder)))
    }

    /// Returns the file of that name which exists. Only what can be a name becomes a path.
    fn file(&self, wanted: &str) -> Option<(MemoryScope, PathBuf)> {
        if wanted == PROJECT_DOCUMENT {
            let path = self.document.clone()?;
            let is_there = fs::symlink_metadata(&path).is_ok();
            return is_there.then_some((MemoryScope::Project, path));
        }
        if let Some(name) = wanted.strip_prefix(PROPOSED) {
            let file = format!("{name}.md");
            memory_file::name_of(Path::new(&file)).filter(|known| *known == name)?;
            let path = self.proposed.as_ref()?.join(file);
            let is_there = fs::symlink_metadata(&path).is_ok();
            return is_there.then_some((MemoryScope::Proposed, path));
        }
        let (is_global, name) = match wanted.strip_prefix(GLOBAL) {
            Some(name) => (true, name),
            None => (false, wanted),
        };
        let file = format!("{name}.md");
        memory_file::name_of(Path::new(&file)).filter(|known| *known == name)?;
        let project = self.project.as_ref().filter(|_| !is_global);
        let places = project
            .map(|folder| (MemoryScope::Project, folder.join(&file)))
            .into_iter()
            .chain([(MemoryScope::Global, self.global.join(&file))]);
        places
            .into_iter()
            .find(|(_, path)| fs::symlink_metadata(path).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::memory_folder::MOST;
    use podbay_event::MemoryKind;

    fn memory(name: &str) -> Memory {
        Memory {
            name: name.to_owned(),
            kind: MemoryKind::Project,
            description: format!("about {name}"),
            content: format!("{name} is known"),
        }
    }

    fn labels(memories: &Memories) -> Vec<String> {
        let list = memories.list();
        assert_eq!(list.problems, Vec::<String>::new());
        list.memories.iter().map(StoredMemory::label).collect()
    }

    fn state() -> (tempfile::TempDir, State) {
        let temp = tempfile::tempdir().expect("a folder");
        let state = State::open(&temp.path().join("state")).expect("a state folder");
        (temp, state)
    }

    #[test]
    fn a_project_sees_its_own_memories_and_the_global_ones() {
        let (_temp, state) = state();
        let of = |key: &str, path: &str| Memories::new(&state, Some((key, Path::new(path))));
        let mine = of("1-2", "/a");
        mine.save(&memory("one")).expect("saved");
        mine.save_text(
            "global/me",
            "---\nname: me\ndescription: d\nkind: user\n---\nAnn\n",
        )
        .expect("saved");
        assert_eq!(labels(&mine), ["global/me", "one"]);
        // Another folder, the same one elsewhere, and another one in its place.
        for other in [of("1-3", "/b"), of("1-2", "/b"), of("1-3", "/a")] {
            assert_eq!(labels(&other), ["global/me"]);
            assert_eq!(other.find("one"), None);
            assert_eq!(other.forget("one").expect("nothing to do"), None);
        }
        assert_eq!(mine.find("one").expect("there").memory, memory("one"));
        assert_eq!(mine.forget("one").expect("removed").as_deref(), Some("one"));
        assert_eq!(
            mine.forget("me").expect("removed").as_deref(),
            Some("global/me")
        );
        assert_eq!(labels(&mine), Vec::<String>::new());
    }

    #[test]
    fn a_proposal_counts_once_it_is_kept() {
        let (_temp, state) = state();
        let memories = Memories::new(&state, Some(("1-2", Path::new("/a"))));
        memories.propose(&memory("one")).expect("proposed");
        memories.propose(&memory("two")).expect("proposed");
        assert_eq!(labels(&memories), Vec::<String>::new());
        assert_eq!(memories.find("one"), None);
        let of = |memories: &Memories| {
            let list = memories.proposals();
            assert_eq!(list.problems, Vec::<String>::new());
            let labels = list.memories.iter().map(StoredMemory::label);
            labels.collect::<Vec<_>>()
        };
        assert_eq!(of(&memories), ["proposed/two", "proposed/one"]);
        let text = memories.text("proposed/one").expect("read").expect("there");
        assert!(text.contains("one is known"), "{text}");
        for unknown in ["three", "proposed/../one", "global/one"] {
            assert_eq!(memories.keep(unknown).expect("nothing to do"), None);
        }
        let kept = memories.keep("one").expect("kept").expect("there");
        assert_eq!(kept.memory, memory("one"));
        assert_eq!(labels(&memories), ["one"]);
        // A note that is there is not replaced.
        memories.propose(&memory("one")).expect("proposed");
        let refused = memories.keep("one").expect_err("it is there");
        assert!(
            refused.to_string().contains("is there already"),
            "{refused}"
        );
        memories.forget("proposed/one").expect("removed");
        let forgotten = memories.forget("proposed/two").expect("removed");
        assert_eq!(forgotten.as_deref(), Some("proposed/two"));
        assert_eq!(of(&memories), Vec::<String>::new());
        // They are as many as memories at most, the oldest go.
        for n in 0..=MOST {
            memories
                .propose(&memory(&format!("n{n}")))
                .expect("proposed");
        }
        assert_eq!(of(&memories).len(), MOST);
        assert!(!of(&memories).contains(&"proposed/n0".to_owned()));
        assert_eq!(labels(&memories), ["one"]);
    }

    #[test]
    fn the_oldest_memory_beyond_twenty_is_removed() {
        let (_temp, state) = state();
        let memories = Memories::new(&state, Some(("1-2", Path::new("/a"))));
        for n in 0..MOST {
            let saved = memories.save(&memory(&format!("n{n}"))).expect("saved");
            assert_eq!((saved.replaced, saved.pruned), (false, Vec::new()));
        }
        // It is the newest again.
        let again = memories.save(&memory("n0")).expect("saved");
        assert_eq!((again.replaced, again.pruned), (true, Vec::new()));
        let saved = memories.save(&memory("last")).expect("saved");
        assert_eq!(saved.pruned, ["n1"]);
        let labels = labels(&memories);
        assert_eq!(labels.len(), MOST);
        assert_eq!(labels[..2], ["last", "n0"]);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_take_the_newest_memory() {
        let (_temp, state) = state();
        let memories = Memories::new(&state, Some(("1-2", Path::new("/a"))));
        let folder = memories.project.clone().expect("a folder");
        for n in 0..MOST as u64 {
            let name = format!("n{n}");
            memories.save(&memory(&name)).expect("saved");
            let later = SystemTime::now() + std::time::Duration::from_secs(3600 + n);
            let file = fs::File::options()
                .append(true)
                .open(folder.join(format!("{name}.md")));
            file.expect("there").set_modified(later).expect("dated");
        }
        assert_eq!(memories.save(&memory("new")).expect("saved").pruned, ["n0"]);
        assert!(memories.find("new").is_some());
    }

    #[test]
    fn what_is_no_memory_is_said_and_hides_no_other() {
        let (temp, state) = state();
        let memories = Memories::new(&state, Some(("1-2", Path::new("/a"))));
        memories.save(&memory("good")).expect("saved");
        let folder = memories.project.clone().expect("a folder");
        let secret = temp.path().join("secret.md");
        fs::write(&secret, memory_file::render(&memory("link"))).expect("written");
        std::os::unix::fs::symlink(&secret, folder.join("link.md")).expect("a link");
        fs::create_dir(folder.join("folder.md")).expect("made");
        nix::unistd::mkfifo(&folder.join("fifo.md"), nix::sys::stat::Mode::S_IRWXU).expect("made");
        fs::write(folder.join("large.md"), vec![b'x'; 9000]).expect("written");
        let list = memories.list();
        assert_eq!(list.memories.len(), 1, "{list:?}");
        let problems = list.problems.join("\n");
        for name in [
            "link: it is a symbolic link",
            "folder: ",
            "fifo: it is not",
            "large: it is larger",
        ] {
            assert!(
                problems.contains(&format!("the memory {name}")),
                "{problems}"
            );
        }
        for (name, text, reason) in [
            (
                "other",
                memory_file::render(&memory("good")),
                "it calls itself good",
            ),
            ("bytes", "---\n".to_owned(), "has no end"),
        ] {
            let path = folder.join(format!("{name}.md"));
            fs::write(&path, text).expect("written");
            let problems = memories.list().problems.join("\n");
            assert!(problems.contains(reason), "{problems}");
            fs::remove_file(&path).expect("removed");
        }
        assert_eq!(memories.list().memories.len(), 1);
        // What no memory can be called never becomes a path.
        for wanted in [
            "../good",
            "global/../good",
            "/etc/passwd",
            "",
            "global/",
            "good\0",
            "Good",
        ] {
            assert_eq!(memories.forget(wanted).expect("nothing"), None, "{wanted}");
            assert_eq!(memories.text(wanted).expect("nothing"), None, "{wanted}");
        }
    }

    #[test]
    fn an_edited_memory_may_get_another_name() {
        let (_temp, state) = state();
        let memories = Memories::new(&state, Some(("1-2", Path::new("/a"))));
        memories.save(&memory("old")).expect("saved");
        let text = memories.text("old").expect("read").expect("there");
        let text = text.replace("name: old", "name: new");
        memories.save_text("old", &text).expect("saved");
        assert_eq!(labels(&memories), ["new"]);
        let error = memories.save_text("new", "nonsense").expect_err("broken");
        assert!(error.to_string().contains("frontmatter"), "{error}");
        assert_eq!(labels(&memories), ["new"]);
    }
}
