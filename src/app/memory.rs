//! Notes of sessions for later ones, as the user looks at them.

use std::path::Path;

use serde::Serialize;

use super::Error;
use super::bench::open_project;
use super::is_attached;
use super::record::with_causes;
use podbay_agent::ProjectContext;
use podbay_config::Config;
use podbay_event::Memory;
use podbay_event::MemoryKind;
use podbay_session::Memories;
use podbay_session::MemoryScope;
use podbay_session::State;
use podbay_session::StoredMemory;

/// The notes for a project, and what is wrong with files among them.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryLines {
    /// The settings let sessions use them.
    pub enabled: bool,
    pub memories: Vec<MemoryLine>,
    /// What models proposed, which no session is shown.
    pub proposed: Vec<MemoryLine>,
    pub problems: Vec<String>,
}

/// One note.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryLine {
    /// The name by which a user means it: global ones begin with `global/`,
    /// proposals with `proposed/`.
    pub name: String,
    pub scope: MemoryScope,
    pub kind: MemoryKind,
    pub description: String,
    /// Markdown.
    pub content: String,
    /// In UTC.
    pub saved: String,
}

/// Opens the notes for the project in a folder.
pub fn memories(config: &Config, folder: &Path, state: &State) -> Result<Memories, Error> {
    if is_attached(config) {
        return Ok(Memories::new(state, None));
    }
    let project = open_project(folder, state)?;
    Ok(Memories::new(state, Some((&project.key(), project.path()))))
}

/// Reads the notes.
pub fn list_memories(config: &Config, memories: &Memories) -> MemoryLines {
    let (list, proposed) = (memories.list(), memories.proposals());
    MemoryLines {
        enabled: config.memory.enabled,
        memories: list.memories.into_iter().map(line).collect(),
        proposed: proposed.memories.into_iter().map(line).collect(),
        problems: list.problems.into_iter().chain(proposed.problems).collect(),
    }
}

/// Tells a session what earlier ones wrote down, and keeps what was found of the project.
pub(super) fn tell_memories(
    context: &mut ProjectContext,
    memories: &Memories,
    window: Option<u64>,
) {
    let found = std::mem::take(&mut context.found);
    let document = memories
        .refresh_document(&found)
        .and_then(|()| memories.written_sections());
    let document = document.unwrap_or_else(|error| {
        let why = with_causes(&error);
        context
            .warnings
            .push(format!("what is known of the project is not used: {why}"));
        Vec::new()
    });
    let list = memories.list();
    context.warnings.extend(list.problems);
    let notes = list.memories.into_iter().map(|stored| stored.memory);
    context.add_memories(&document, &notes.collect::<Vec<_>>(), window);
}

fn line(stored: StoredMemory) -> MemoryLine {
    let name = stored.label();
    let Memory {
        kind,
        description,
        content,
        ..
    } = stored.memory;
    MemoryLine {
        name,
        scope: stored.scope,
        kind,
        description,
        content,
        saved: stored.saved.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }
}
