//! What can be done in a sandbox: one file per call, with its fields and its [`CallFacts`].
//!
//! A new call is a file here and its lines below; the compiler asks for the rest.

mod apply_patch;
mod archive;
mod bash;
mod cd;
mod copy_file;
mod delete_file;
mod edit_file;
mod edit_lines;
mod env;
mod exec;
mod facts;
mod git;
mod glob;
mod grep;
mod hook;
mod list_directory;
mod mkdir;
mod move_file;
mod multi_edit;
mod place_skill;
mod processes;
mod read_file;
mod tree;
mod update_config;
mod web;
mod write_file;

pub use apply_patch::ApplyPatch;
pub use apply_patch::FilePatch;
pub use apply_patch::Hunk;
pub use apply_patch::PatchAction;
pub use apply_patch::PatchForm;
pub use apply_patch::PatchLine;
pub use archive::Archive;
pub use archive::ArchiveAction;
pub use bash::Bash;
pub use cd::Cd;
pub use copy_file::CopyFile;
pub use delete_file::DeleteFile;
pub use edit_file::EditFile;
pub use edit_file::Replacement;
pub use edit_lines::EditLines;
pub use edit_lines::LineOperation;
pub use env::Env;
pub use exec::Exec;
pub use exec::Terminal;
pub use facts::CallEffect;
pub use facts::CallFacts;
pub use facts::CallFields;
pub use facts::CallKind;
pub use facts::CallNeed;
pub use facts::CallVerb;
pub use facts::FileMemory;
pub use facts::FileScope;
pub use facts::FileUse;
pub use facts::PathAccess;
pub use facts::PathFact;
pub use facts::PathUse;
pub use facts::RuleSubject;
pub use facts::TimeLimit;
pub use facts::ToolFacts;
pub use git::Git;
pub use git::GitBranch;
pub use git::GitQuery;
pub use git::GitStash;
pub use glob::Glob;
pub use grep::Grep;
pub use grep::GrepOutput;
pub use hook::Hook;
pub use list_directory::ListDirectory;
pub use mkdir::Mkdir;
pub use move_file::MoveFile;
pub use multi_edit::FileEdit;
pub use multi_edit::MultiEdit;
pub use place_skill::PlaceSkill;
pub use place_skill::PlacedFile;
pub use processes::Processes;
pub use read_file::ReadFile;
pub use tree::Tree;
pub use update_config::INSTRUCTIONS;
pub use update_config::OTHER_INSTRUCTIONS;
pub use update_config::UpdateConfig;
pub use web::Web;
pub use web::WebAction;
pub use web::WebRequest;
pub use write_file::WriteFile;

use std::borrow::Cow;

use serde::Deserialize;
use serde::Serialize;

use crate::BytesPath;
use crate::Known;
use facts::flags;

/// What each kind of call says of itself.
trait ToolCall {
    /// The tools that make it; none where no model can make it.
    const TOOLS: &'static [ToolFacts];

    fn facts(&self) -> CallFacts<'_>;

    /// Returns the fields that the host fills in. The paths are those of the facts, in their order.
    fn fields_mut(&mut self) -> CallFields<'_>;
}

/// Makes [`Call`] with a variant for each kind, and leads to what each says of itself.
macro_rules! calls {
    ($($(#[$docs:meta])* $name:ident,)*) => {
        /// A call: one thing to do in the sandbox.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum Call {
            $($(#[$docs])* $name($name),)*
            /// A call in which no symbolic link is followed: its approval covers only the paths
            /// that it names.
            ByName {
                call: Box<Call>,
            },
            /// An edit that is only tried: all of it but the writing. It ends with a fault, which is
            /// [`Fault::OnlyChecked`](crate::Fault::OnlyChecked) where the edit fits.
            Check {
                call: Box<Call>,
            },
        }

        impl Call {
            /// Returns what is known of it.
            pub fn facts(&self) -> CallFacts<'_> {
                match self {
                    $(Self::$name(call) => call.facts(),)*
                    Self::ByName { call } => call.facts(),
                    Self::Check { call } => call.facts().of_check(),
                }
            }

            /// Returns the fields that the host fills in or corrects before it sends the call.
            pub fn fields_mut(&mut self) -> CallFields<'_> {
                match self {
                    $(Self::$name(call) => call.fields_mut(),)*
                    Self::ByName { call } | Self::Check { call } => call.fields_mut(),
                }
            }
        }

        /// Returns all tools that make calls.
        pub fn tools() -> impl Iterator<Item = &'static ToolFacts> {
            [$($name::TOOLS,)*].into_iter().flatten()
        }
    };
}

calls! {
    ReadFile,
    WriteFile,
    EditFile,
    MultiEdit,
    ApplyPatch,
    EditLines,
    DeleteFile,
    CopyFile,
    MoveFile,
    Mkdir,
    Tree,
    ListDirectory,
    Glob,
    Grep,
    Archive,
    UpdateConfig,
    Git,
    Env,
    Cd,
    Processes,
    Web,
    Bash,
    /// A command of the user's own (`podbay sh`), with its input and, where requested, a terminal.
    Exec,
    /// A command that the user's settings attach to a moment of a session.
    Hook,
    /// The files of a skill, which the host sends.
    PlaceSkill,
}

/// Returns the tool of this name, not of an alias.
pub fn tool(name: &str) -> Option<&'static ToolFacts> {
    tools().find(|tool| tool.name == name)
}

impl Call {
    /// Returns the call itself, without [`Call::ByName`].
    pub fn plain(&self) -> &Self {
        match self {
            Self::ByName { call } => call.plain(),
            call => call,
        }
    }

    /// Returns whether it is an edit that a guest can check before it is made.
    pub fn can_be_checked(&self) -> bool {
        matches!(
            self,
            Self::WriteFile(_)
                | Self::EditFile(_)
                | Self::MultiEdit(_)
                | Self::ApplyPatch(_)
                | Self::EditLines(_)
        )
    }
}

impl CallFacts<'_> {
    /// Returns those of its check: it changes nothing, and what it says reveals what is in the files,
    /// as reading them would.
    fn of_check(mut self) -> Self {
        for named in &mut self.paths {
            if named.access == PathAccess::Writes {
                named.access = PathAccess::Tries;
            }
        }
        Self {
            effect: CallEffect::Nothing,
            needs: &[CallNeed::ReadFiles],
            ..self
        }
    }

    /// Returns the paths that the call changes, as it names them.
    pub fn changes(&self) -> Vec<Cow<'_, BytesPath>> {
        match self.memory {
            FileMemory::Nothing | FileMemory::Shown => Vec::new(),
            FileMemory::Changed(_) => self
                .paths
                .iter()
                .filter(|named| matches!(named.access, PathAccess::Writes | PathAccess::Tries))
                .map(|named| Cow::Borrowed(named.path))
                .collect(),
            FileMemory::Instructions(_) => vec![Cow::Owned(BytesPath::from_text(INSTRUCTIONS))],
        }
    }

    /// Returns what the guest knows of files as it executes the call; `None`: the host keeps no
    /// memory.
    pub fn known(&self) -> Option<Cow<'_, Known>> {
        match self.memory {
            FileMemory::Nothing => None,
            FileMemory::Shown => Some(Cow::Owned(Known::default())),
            FileMemory::Changed(known) | FileMemory::Instructions(known) => {
                known.map(Cow::Borrowed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At least one call of each tool, and those whose paths differ with their arguments.
    const SAMPLES: &[&str] = &[
        r#"{"type":"read_file","path":"a","offset":1,"limit":1,"max_bytes":1,"cursor":null,"max_files":1,"protected":false}"#,
        r#"{"type":"write_file","path":"a","content":"","append":false,"protected":false}"#,
        r#"{"type":"edit_file","path":"a","edits":[],"create_if_missing":true,"protected":false}"#,
        r#"{"type":"multi_edit","edits":[{"path":"a","edit":{"old_string":"","new_string":"","replace_all":false}}],"protected":false}"#,
        r#"{"type":"apply_patch","files":[{"path":"a","action":{"action":"update","hunks":[],"to":"b"},"notes":[]}],"dry_run":false,"protected":false}"#,
        r#"{"type":"edit_lines","path":"a","operation":"insert","start_line":1,"end_line":1,"new_content":"","protected":false}"#,
        r#"{"type":"delete_file","path":"a","recursive":false,"protected":false}"#,
        r#"{"type":"copy_file","source":"a","destination":"b","recursive":true,"overwrite":false,"protected":false}"#,
        r#"{"type":"move_file","source":"a","destination":"b","overwrite":false,"protected":false}"#,
        r#"{"type":"mkdir","path":"a","protected":false}"#,
        r#"{"type":"tree","path":"a","depth":1,"max_entries":1}"#,
        r#"{"type":"list_directory","path":"a","recursive":false,"show_hidden":false,"show_size":false,"max_entries":1}"#,
        r#"{"type":"glob","pattern":"*","path":"a","exclude":null,"max_results":1}"#,
        r#"{"type":"grep","pattern":"x","path":"a","glob":null,"context":0,"case_insensitive":false,"output":"count","max_results":1,"timeout_ms":1,"protected":false}"#,
        r#"{"type":"archive","action":{"action":"list"},"archive":"a","max_entries":1,"protected":false}"#,
        r#"{"type":"archive","action":{"action":"create","source":"b"},"archive":"a","max_entries":1,"protected":false}"#,
        r#"{"type":"archive","action":{"action":"extract","into":"b"},"archive":"a","max_entries":1,"protected":false}"#,
        r#"{"type":"update_config","section":"a","content":""}"#,
        r#"{"type":"env","name":null,"prefix":null}"#,
        r#"{"type":"cd","path":"a"}"#,
        r#"{"type":"processes","about":"list"}"#,
        r#"{"type":"processes","about":"output","id":1,"tail_lines":1}"#,
        r#"{"type":"processes","about":"stop","id":1,"grace_ms":1}"#,
        r#"{"type":"web","request":{"request":"fetch","url":"http://a.example/","host":"a.example","max_length":1,"raw":false},"timeout_ms":1,"grace_ms":1,"stream_bytes":1,"tail_bytes":1}"#,
        r#"{"type":"web","request":{"request":"diagnose","action":"ping","target":"a.example"},"timeout_ms":1,"grace_ms":1,"stream_bytes":1,"tail_bytes":1}"#,
        r#"{"type":"bash","command":"x","working_directory":"a","timeout_ms":1,"grace_ms":1,"stream_bytes":1,"tail_bytes":1,"background":false}"#,
        r#"{"type":"exec","argv":["x"],"working_directory":"a","terminal":null,"timeout_ms":null,"grace_ms":1}"#,
        r#"{"type":"place_skill","name":"x","files":[{"path":"y","data":"","executable":true}]}"#,
        r#"{"type":"hook","command":"x","input":"","environment":[],"timeout_ms":1,"grace_ms":1,"output_bytes":1}"#,
    ];
    const GIT: &[&str] = &[
        r#"{"query":"status"}"#,
        r#"{"query":"diff","staged":false,"file":"b","base":null}"#,
        r#"{"query":"diff","staged":false,"file":null,"base":null}"#,
        r#"{"query":"log","count":1,"oneline":true,"file":"b","author":null}"#,
        r#"{"query":"commit","message":"x","files":["b","c"]}"#,
        r#"{"query":"commit","message":"x","files":[]}"#,
        r#"{"query":"branch","branch":"list"}"#,
        r#"{"query":"checkout","target":"x","create":false}"#,
        r#"{"query":"stash","stash":"pop","index":0}"#,
    ];

    fn samples() -> Vec<Call> {
        let git = GIT.iter().map(|query| {
            format!(
                r#"{{"type":"git","query":{query},"path":"a","protected":false,"timeout_ms":1,"grace_ms":1,"stream_bytes":1,"tail_bytes":1}}"#
            )
        });
        let all = SAMPLES.iter().map(|sample| (*sample).to_owned()).chain(git);
        all.map(|sample| serde_json::from_str(&sample).expect(&sample))
            .collect()
    }

    #[test]
    fn each_tool_has_a_sample_and_each_sample_a_tool() {
        let calls = samples();
        let made: Vec<&str> = calls.iter().map(|call| call.facts().tool).collect();
        for tool in tools().filter(|tool| tool.name != "start_background_process") {
            assert!(made.contains(&tool.name), "{} has no sample", tool.name);
        }
        let of_host = ["hook", "place_skill"];
        for name in made.iter().filter(|name| !of_host.contains(name)) {
            assert!(tool(name).is_some(), "{name} is no tool");
        }
    }

    #[test]
    fn the_paths_of_the_facts_are_those_that_can_be_corrected() {
        for mut call in samples() {
            let named: Vec<BytesPath> = call
                .facts()
                .paths
                .iter()
                .map(|named| named.path.clone())
                .collect();
            let fields: Vec<BytesPath> = call
                .fields_mut()
                .paths
                .into_iter()
                .map(|path| path.clone())
                .collect();
            assert_eq!(named, fields, "{call:?}");
            // Each name that the samples use is a path in it.
            let text = serde_json::to_string(&call).expect("plain data");
            for name in ["a", "b", "c"] {
                let is_in = text.contains(&format!(":\"{name}\""))
                    || text.contains(&format!("[\"{name}\""))
                    || text.contains(&format!(",\"{name}\""));
                assert!(
                    !is_in || named.contains(&name.into()) || text.contains("\"section\""),
                    "{name} in {text}"
                );
            }
        }
    }

    #[test]
    fn a_check_is_known_as_a_read_of_what_the_edit_would_change() {
        let checked: Vec<Call> = samples().into_iter().filter(Call::can_be_checked).collect();
        assert_eq!(checked.len(), 5);
        for call in checked {
            let written = call.facts().changes().len();
            let mut check = Call::Check {
                call: Box::new(call),
            };
            let facts = check.facts();
            assert!(facts.effect.is_read_only(), "{facts:?}");
            assert_eq!(facts.needs, [CallNeed::ReadFiles]);
            assert_eq!(
                facts.changes().len(),
                written,
                "what is known of them is sent"
            );
            assert!(
                facts
                    .paths
                    .iter()
                    .all(|named| named.access == PathAccess::Tries),
                "{facts:?}"
            );
            assert!(check.fields_mut().known.is_some());
        }
    }

    #[test]
    fn no_two_tools_share_a_name() {
        let mut names: Vec<&str> = tools()
            .flat_map(|tool| tool.aliases.iter().chain([&tool.name]))
            .copied()
            .collect();
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }
}
