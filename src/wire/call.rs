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

/// One thing to do in the box.
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
    /// A command of the person's own (`podbay sh`), with its input and, where asked for, a
    /// terminal.
    Exec(Exec),
    /// A command that the person's settings tie to a moment of a session.
    Hook(Hook),
    /// The same, through no symbolic link: whoever allowed it saw the paths that it names, and
    /// those alone.
    ByName {
        call: Box<Call>,
    },
}

impl Call {
    /// Returns the call itself, by name or not.
    pub fn plain(&self) -> &Self {
        match self {
            Self::ByName { call } => call.plain(),
            call => call,
        }
    }
}

/// Reads a page of one file, or the first page of each file a cursor stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadFile {
    /// Which file; `None` only together with `cursor`.
    pub path: Option<BytesPath>,
    /// First line wanted, counted from 1.
    pub offset: u64,
    /// How many lines at the most.
    pub limit: u64,
    /// How many bytes of text at the most, over all files.
    pub max_bytes: u64,
    /// A cursor that `grep` or `glob` gave out: reads the next files it stands for.
    pub cursor: Option<String>,
    /// How many files of the cursor to read.
    pub max_files: u32,
    /// Whether an image is wanted as it is; without it, and through a cursor, one is a fault.
    #[serde(default)]
    pub images: bool,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
}

/// Writes a whole file, or appends to it. Parent folders are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteFile {
    pub path: BytesPath,
    pub content: String,
    pub append: bool,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
    /// What is remembered of what this changes; `None`: nobody remembers anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Replaces text in one file, all replacements or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditFile {
    pub path: BytesPath,
    /// Applied in order, each on the result of the one before.
    pub edits: Vec<Replacement>,
    /// Makes the file from the first `new_string` where it does not exist and the first
    /// `old_string` is empty.
    pub create_if_missing: bool,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
    /// What is remembered of what this changes; `None`: nobody remembers anything.
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
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
    /// What is remembered of what this changes; `None`: nobody remembers anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEdit {
    pub path: BytesPath,
    pub edit: Replacement,
}

/// Changes lines of one file by their numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditLines {
    pub path: BytesPath,
    pub operation: LineOperation,
    /// From 1. What is inserted comes before it; one more than there are lines is the end of the
    /// file.
    pub start_line: u64,
    /// The last one replaced or deleted.
    pub end_line: u64,
    /// Empty where lines are deleted.
    pub new_content: String,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
    /// What is remembered of what this changes; `None`: nobody remembers anything.
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
    /// Whether a folder may go with all that is in it.
    pub recursive: bool,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
    /// What is remembered of what this changes; `None`: nobody remembers anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Copies a file or a folder to a name of its own. Parent folders are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyFile {
    pub source: BytesPath,
    pub destination: BytesPath,
    /// Whether a folder may be copied with all that is in it.
    pub recursive: bool,
    /// Whether a file that is there may be replaced.
    pub overwrite: bool,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
    /// What is remembered of what this changes; `None`: nobody remembers anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Gives a file, a link itself or a folder another name. Parent folders are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveFile {
    pub source: BytesPath,
    pub destination: BytesPath,
    /// Whether a file that is there may be replaced.
    pub overwrite: bool,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
    /// What is remembered of what this changes; `None`: nobody remembers anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Makes a folder and those above it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mkdir {
    pub path: BytesPath,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
}

/// Shows folders in folders, without what is hidden or ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    pub path: BytesPath,
    /// How deep, where the names in the folder itself are 1.
    pub depth: u32,
    pub max_entries: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListDirectory {
    pub path: BytesPath,
    pub recursive: bool,
    pub show_hidden: bool,
    /// Whether sizes of files are wanted.
    pub show_size: bool,
    pub max_entries: u32,
}

/// Finds files by name, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Glob {
    pub pattern: String,
    pub path: BytesPath,
    pub exclude: Option<String>,
    /// Whether hidden names and what git ignores are looked at as well.
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
    /// Which files, as with [`Glob::pattern`].
    pub glob: Option<String>,
    /// Whether hidden names and what git ignores are looked at as well.
    #[serde(default)]
    pub include_ignored: bool,
    /// Lines shown before and after each match.
    pub context: u32,
    pub case_insensitive: bool,
    pub output: GrepOutput,
    pub max_results: u32,
    /// When the search gives up with what it has, in milliseconds.
    pub timeout_ms: u64,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
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
    /// Where it runs; `None`: where the last command of the session left off.
    pub working_directory: Option<BytesPath>,
    pub timeout_ms: u64,
    /// Between TERM and KILL when it is stopped, in milliseconds.
    pub grace_ms: u64,
    /// How many bytes of output are sent as they come; after these the guest keeps only the last
    /// `tail_bytes` and sends them at the end.
    pub stream_bytes: u64,
    pub tail_bytes: u64,
    /// Leaves it running when the call ends; its output goes to a file in the box.
    pub background: bool,
    /// What the programs that it starts may be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ExecRule>,
    /// Holds it at its first write; `None`: it writes without a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_gate: Option<WriteGate>,
}

/// Runs one program with the person's own input; an empty `argv` means the box's shell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    pub argv: Vec<BytesPath>,
    pub working_directory: Option<BytesPath>,
    /// With a terminal both streams come as `Stdout`.
    pub terminal: Option<Terminal>,
    pub timeout_ms: Option<u64>,
    pub grace_ms: u64,
}

/// Runs a command of the person's settings in the project's folder, to its end; both streams come
/// apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    pub command: String,
    /// All of its standard input.
    pub input: String,
    /// Name and value, besides what every command has.
    pub environment: Vec<(String, String)>,
    pub timeout_ms: u64,
    /// Between TERM and KILL when it is stopped, in milliseconds.
    pub grace_ms: u64,
    /// How many bytes of output are sent; the rest is read and thrown away, so that a command that
    /// talks much is not held up.
    pub output_bytes: u64,
    /// What the programs that it starts may be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ExecRule>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terminal {
    pub rows: u16,
    pub columns: u16,
    /// The person's `TERM`.
    pub kind: String,
}

/// Where the project's instructions for agents stand.
pub const INSTRUCTIONS: &str = "PODBAY.md";

/// Where they stand in projects that other agents work on; the first of these that says something
/// is read as well.
pub const OTHER_INSTRUCTIONS: [&str; 5] = [
    "AGENTS.md",
    "ORCA.md",
    ".orca/ORCA.md",
    "OPENMONO.md",
    ".orangutan-config/orangutan.md",
];

/// Puts a section of the project's instructions for agents, `PODBAY.md`, in the place of the one of
/// the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateConfig {
    /// The heading, without its `#`.
    pub section: String,
    /// What stands below it; empty takes the section away.
    pub content: String,
    /// Whether the file may be made beside another one that holds instructions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// What is remembered of what this changes; `None`: nobody remembers anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// Shows what a command finds in its environment. Values that look like secrets stay in the box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Env {
    /// One variable; `None`: all of them.
    pub name: Option<String>,
    /// Only those whose names begin so.
    pub prefix: Option<String>,
}

/// Sets where later commands run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cd {
    pub path: BytesPath,
}
