use serde::Deserialize;
use serde::Serialize;

use super::ApplyPatch;
use super::Archive;
use super::BytesPath;
use super::ExecRule;
use super::Git;
use super::Known;
use super::Processes;
use super::WriteGate;

/// A call: one thing to do in the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Call {
    ReadFile(ReadFile),
    WriteFile(WriteFile),
    EditFile(EditFile),
    MultiEdit(MultiEdit),
    ApplyPatch(ApplyPatch),
    EditLines(EditLines),
    DeleteFile(DeleteFile),
    CopyFile(CopyFile),
    MoveFile(MoveFile),
    Mkdir(Mkdir),
    Tree(Tree),
    ListDirectory(ListDirectory),
    Glob(Glob),
    Grep(Grep),
    Archive(Archive),
    UpdateConfig(UpdateConfig),
    Git(Git),
    Env(Env),
    Cd(Cd),
    Processes(Processes),
    Bash(Bash),
    /// A command of the user's own (`podbay sh`), with its input and, where requested, a terminal.
    Exec(Exec),
    /// A command that the user's settings attach to a moment of a session.
    Hook(Hook),
    /// A call in which no symbolic link is followed: its approval covers only the paths that it
    /// names.
    ByName {
        call: Box<Call>,
    },
}

impl Call {
    /// Returns the call itself, without [`Call::ByName`].
    pub fn plain(&self) -> &Self {
        match self {
            Self::ByName { call } => call.plain(),
            call => call,
        }
    }
}

/// Reads a page of one file, or the first page of each file of a cursor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadFile {
    /// The file; `None` only together with `cursor`.
    pub path: Option<BytesPath>,
    /// First line, counted from 1.
    pub offset: u64,
    /// Most lines.
    pub limit: u64,
    /// Most bytes of text, over all files.
    pub max_bytes: u64,
    /// A cursor that `grep` or `glob` returned: reads its next files.
    pub cursor: Option<String>,
    /// How many files of the cursor to read.
    pub max_files: u32,
    /// Whether an image is returned as it is; otherwise, and through a cursor, an image is a fault.
    #[serde(default)]
    pub images: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
}

/// Writes a whole file, or appends to it. Parent folders are created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteFile {
    pub path: BytesPath,
    pub content: String,
    pub append: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Replaces text in one file, all replacements or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditFile {
    pub path: BytesPath,
    /// Applied in order, each on the result of the one before.
    pub edits: Vec<Replacement>,
    /// Creates the file from the first `new_string` where it does not exist and the first
    /// `old_string` is empty.
    pub create_if_missing: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replacement {
    pub old_string: String,
    pub new_string: String,
    pub replace_all: bool,
}

/// Replaces text in several files, all replacements or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultiEdit {
    /// Applied in order, each on the result of those before.
    pub edits: Vec<FileEdit>,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEdit {
    pub path: BytesPath,
    pub edit: Replacement,
}

/// Changes lines of one file by number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditLines {
    pub path: BytesPath,
    pub operation: LineOperation,
    /// Counted from 1. Inserted lines come before it; the number of lines plus one is the end of
    /// the file.
    pub start_line: u64,
    /// The last line that is replaced or deleted.
    pub end_line: u64,
    /// Empty where lines are deleted.
    pub new_content: String,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineOperation {
    Insert,
    Replace,
    Delete,
}

/// Deletes a file, a link itself or a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeleteFile {
    pub path: BytesPath,
    /// Whether a folder may be deleted with its contents.
    pub recursive: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Copies a file or a folder to a new name. Parent folders are created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyFile {
    pub source: BytesPath,
    pub destination: BytesPath,
    /// Whether a folder may be copied with its contents.
    pub recursive: bool,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Renames a file, a link itself or a folder. Parent folders are created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveFile {
    pub source: BytesPath,
    pub destination: BytesPath,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Creates a folder and its missing parents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mkdir {
    pub path: BytesPath,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
}

/// Lists folders recursively, without hidden and ignored names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    pub path: BytesPath,
    /// Greatest depth; names in the folder itself have depth 1.
    pub depth: u32,
    pub max_entries: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListDirectory {
    pub path: BytesPath,
    pub recursive: bool,
    pub show_hidden: bool,
    /// Whether sizes of files are returned.
    pub show_size: bool,
    pub max_entries: u32,
}

/// Finds files by name, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Glob {
    pub pattern: String,
    pub path: BytesPath,
    pub exclude: Option<String>,
    /// Whether hidden and ignored names are searched as well.
    #[serde(default)]
    pub include_ignored: bool,
    pub max_results: u32,
}

/// Searches file contents with ripgrep's engine and its rules about ignored, hidden and binary
/// files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grep {
    pub pattern: String,
    pub path: BytesPath,
    /// Which files, as in [`Glob::pattern`].
    pub glob: Option<String>,
    /// Whether hidden and ignored names are searched as well.
    #[serde(default)]
    pub include_ignored: bool,
    /// Lines shown before and after each match.
    pub context: u32,
    pub case_insensitive: bool,
    pub output: GrepOutput,
    pub max_results: u32,
    /// When the search stops with what it has, in milliseconds.
    pub timeout_ms: u64,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrepOutput {
    Content,
    FilesOnly,
    Count,
}

/// Runs one shell command. Its output, both streams in the order written, comes as chunks on
/// [`super::message::Stream::Stdout`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bash {
    pub command: String,
    /// Working directory; `None`: where the last command of the session ended.
    pub working_directory: Option<BytesPath>,
    pub timeout_ms: u64,
    /// Time between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
    /// How many bytes of output are streamed; after these the guest keeps only the last
    /// `tail_bytes` and sends them at the end.
    pub stream_bytes: u64,
    pub tail_bytes: u64,
    /// Lets it run on when the call ends; its output goes to a file in the sandbox.
    pub background: bool,
    /// Rules about the programs that it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ExecRule>,
    /// Holds it at its first write; `None`: it writes without a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_gate: Option<WriteGate>,
}

/// Runs one program with the user's own input; an empty `argv` means the sandbox's shell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    pub argv: Vec<BytesPath>,
    pub working_directory: Option<BytesPath>,
    /// With a terminal both streams come as `Stdout`.
    pub terminal: Option<Terminal>,
    pub timeout_ms: Option<u64>,
    pub grace_ms: u64,
}

/// Runs a command of the user's settings in the project's folder, to its end; with separate
/// streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    pub command: String,
    /// Its whole standard input.
    pub input: String,
    /// Name and value, in addition to those of every command.
    pub environment: Vec<(String, String)>,
    pub timeout_ms: u64,
    /// Time between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
    /// How many bytes of output are sent; the rest is read and discarded, so that the command does
    /// not block.
    pub output_bytes: u64,
    /// Rules about the programs that it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ExecRule>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terminal {
    pub rows: u16,
    pub columns: u16,
    /// The user's `TERM`.
    pub kind: String,
}

/// File with the project's instructions for agents.
pub const INSTRUCTIONS: &str = "PODBAY.md";

/// Files with instructions in projects that other agents work on; the first non-empty one is read
/// as well.
pub const OTHER_INSTRUCTIONS: [&str; 6] = [
    "AGENTS.md",
    "CLAUDE.md",
    "ORCA.md",
    ".orca/ORCA.md",
    "OPENMONO.md",
    ".orangutan-config/orangutan.md",
];

/// Replaces a section of the project's instructions for agents, `PODBAY.md`, by its heading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateConfig {
    /// The heading, without its `#`.
    pub section: String,
    /// The text below it; empty removes the section.
    pub content: String,
    /// Whether the file may be created beside another one with instructions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Returns the environment of commands. Values that look like secrets stay in the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Env {
    /// One variable; `None`: all.
    pub name: Option<String>,
    /// Only those with this prefix.
    pub prefix: Option<String>,
}

/// Sets the working directory of later commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cd {
    pub path: BytesPath,
}
