//! The file tools: what a model can do to the project's files without a shell.
//!
//! One file per tool; [`run`] dispatches a call to its tool. Every tool is plain blocking code
//! called on worker threads, several at once, and reports everything that a model should read as a
//! [`Fault`]. [`super::root`] alone resolves paths; `walk` is the only code that lists folders in
//! depth; `save` is the only code that writes.
//!
//! Start with `read_file`, the simplest.

mod apply_patch;
mod archive;
pub(super) mod bash;
mod contents;
mod copy_file;
mod cursor;
mod delete_file;
mod detected_encoding;
mod edit_file;
mod edit_indent;
mod edit_line_ends;
mod edit_lines;
mod edit_lookalike;
mod edit_match;
mod edit_report;
mod encoded_text;
pub(super) mod env;
pub(super) mod exec;
pub(super) mod git;
mod glob;
mod glob_lookalike;
mod grep;
mod grep_collect;
mod grep_lookalike;
mod grep_pattern;
mod grep_sink;
mod grep_text;
pub(super) mod hook;
pub(super) mod ignore_rules;
mod kept_format;
mod line_search;
mod list_directory;
pub(super) mod lookalike_names;
mod made_folders;
mod mark;
mod mkdir;
mod move_file;
mod multi_edit;
mod page;
mod patch_fuzz;
mod patch_lines;
mod patch_match;
mod pattern;
mod patterns;
pub(super) mod place_skill;
mod read_file;
pub(super) mod save;
mod seen;
pub(super) mod similar_names;
mod skipped;
mod smallest;
pub(super) mod stop;
mod target_entry;
mod tracked;
mod transaction;
mod update_config;
pub(super) mod walk;
pub(super) mod web;
mod write_file;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;

use self::cursor::Cursors;
use self::seen::SeenFiles;
use super::root::Root;
use podbay_wire::Call;
use podbay_wire::Fault;
use podbay_wire::Output;

/// Most bytes of names and text in one output. One byte takes at most six in JSON, so every output
/// fits its frame.
const MAX_OUTPUT: usize = 1024 * 1024;

/// The project, and what the tools keep from call to call. What the model has seen of files is not
/// part of it: the host remembers that.
#[derive(Debug)]
pub struct Workspace {
    root: Root,
    cursors: Arc<Cursors>,
    /// Held while a file is changed: two concurrent edits of one file would each undo the other.
    changing: Arc<Mutex<()>>,
}

impl Workspace {
    /// Opens the project's folder; in a sandbox that is `/workspace`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            root: Root::open(path)?,
            cursors: Arc::default(),
            changing: Arc::default(),
        })
    }

    /// Returns the same project with links not followed.
    fn by_name(&self) -> Result<Self, Fault> {
        self.with(self.root.by_name())
    }

    /// Returns the same project, in which changes are only checked.
    fn checking(&self) -> Result<Self, Fault> {
        self.with(self.root.checking())
    }

    fn with(&self, root: io::Result<Root>) -> Result<Self, Fault> {
        let failed = |error: io::Error| Fault::Io {
            doing: "open the project".into(),
            problem: error.to_string(),
        };
        Ok(Self {
            root: root.map_err(failed)?,
            cursors: Arc::clone(&self.cursors),
            changing: Arc::clone(&self.changing),
        })
    }

    pub fn root(&self) -> &Root {
        &self.root
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        // A change that panicked left no partial state: files are replaced atomically.
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs one of the file calls.
///
/// `stop` ends long walks and searches within milliseconds with [`Fault::Cancelled`].
pub fn run(workspace: &Workspace, call: &Call, stop: &AtomicBool) -> Output {
    if let Call::ByName { call } = call {
        return workspace
            .by_name()
            .map_or_else(Output::Fault, |workspace| run(&workspace, call, stop));
    }
    if let Call::Check { call } = call {
        if !call.can_be_checked() {
            return Output::Fault(invalid("call", "cannot be checked before it is executed"));
        }
        return workspace
            .checking()
            .map_or_else(Output::Fault, |workspace| run(&workspace, call, stop));
    }
    match lookalike_names::find_names(&workspace.root, call) {
        None => dispatch(workspace, call, stop),
        Some((call, names)) => lookalike_names::with_note(dispatch(workspace, &call, stop), names),
    }
}

fn dispatch(workspace: &Workspace, call: &Call, stop: &AtomicBool) -> Output {
    let seen = SeenFiles::of(call);
    let done = match call {
        Call::ReadFile(call) => match read_file::image(workspace, call) {
            Ok(Some(image)) => Ok(Output::Image(image)),
            Ok(None) => read_file::run(workspace, &seen, call, stop).map(Output::Read),
            Err(fault) => Err(fault),
        },
        Call::WriteFile(call) => write_file::run(workspace, &seen, call).map(Output::Written),
        Call::EditFile(call) => edit_file::run(workspace, &seen, call, stop).map(Output::Edited),
        Call::MultiEdit(call) => multi_edit::run(workspace, &seen, call, stop).map(Output::Changed),
        Call::ApplyPatch(call) => {
            apply_patch::run(workspace, &seen, call, stop).map(Output::Changed)
        }
        Call::EditLines(call) => edit_lines::run(workspace, &seen, call).map(Output::Edited),
        Call::DeleteFile(call) => {
            delete_file::run(workspace, &seen, call, stop).map(Output::Changed)
        }
        Call::CopyFile(call) => copy_file::run(workspace, &seen, call, stop).map(Output::Changed),
        Call::MoveFile(call) => move_file::run(workspace, &seen, call, stop).map(Output::Changed),
        Call::Mkdir(call) => mkdir::run(workspace, call).map(Output::Changed),
        Call::Tree(call) => list_directory::tree(workspace, call, stop).map(Output::Tree),
        Call::ListDirectory(call) => {
            list_directory::run(workspace, call, stop).map(Output::Listing)
        }
        Call::Glob(call) => glob::run(workspace, call, stop).map(Output::Files),
        Call::Grep(call) => grep::run(workspace, call, stop).map(Output::Matches),
        Call::Archive(call) => archive::run(workspace, call, stop),
        // No question is asked about it, so it must be the file of that name.
        Call::UpdateConfig(call) => workspace
            .by_name()
            .and_then(|workspace| update_config::run(&workspace, &seen, call))
            .map(Output::Edited),
        Call::ByName { .. }
        | Call::Check { .. }
        | Call::Bash(_)
        | Call::Exec(_)
        | Call::Hook(_)
        | Call::PlaceSkill(_)
        | Call::Git(_)
        | Call::Env(_)
        | Call::Cd(_)
        | Call::Processes(_)
        | Call::Web(_) => Err(Fault::Io {
            doing: "run a file tool".into(),
            problem: "this call is not a file tool".into(),
        }),
    };
    seen.end(done.unwrap_or_else(Output::Fault))
}

/// Returns the fault for an invalid field of the call.
fn invalid(field: &str, problem: impl Into<String>) -> Fault {
    Fault::Invalid {
        field: field.into(),
        problem: problem.into(),
    }
}
