use serde::Deserialize;
use serde::Serialize;

use super::Background;
use super::BytesPath;
use super::Denied;
use super::Fault;
use super::GrepOutput;
use super::LeftOut;
use super::Memo;
use super::Programs;
use super::message::Data;
use super::programs::tells_too_much;

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    Read(Read),
    Image(Image),
    Written(Written),
    Edited(Edited),
    Changed(Changed),
    Tree(DirectoryListing),
    Listing(DirectoryListing),
    Files(FoundFiles),
    Matches(Matches),
    Command(CommandEnded),
    Environment(Environment),
    Moved(Moved),
    Placed(Placed),
    Background(Background),
    Fault(Fault),
    /// The result of a call some of whose names were replaced by existing look-alikes.
    Meant {
        names: Vec<MeantName>,
        output: Box<Output>,
    },
}

impl Output {
    /// Returns whether this exceeds what a guest may report about programs.
    pub fn tells_too_much(&self) -> bool {
        match self {
            Self::Command(ended) => ended.tells_too_much(),
            Self::Background(background) => background.tells_too_much(),
            _ => false,
        }
    }

    /// Returns the call's own result, and the replaced names.
    pub fn apart(self) -> (Self, Vec<MeantName>) {
        match self {
            Self::Meant { names, output } => (output.apart().0, names),
            output => (output, Vec::new()),
        }
    }
}

/// A name that a call gave, and the existing look-alike that was used for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeantName {
    pub given: BytesPath,
    pub found: BytesPath,
}

/// The environment of commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    pub variables: Vec<Variable>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    /// `None`: it looks like a secret.
    pub value: Option<String>,
}

/// The working directory of later commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    pub path: BytesPath,
}

/// The files of a skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// The folder in which they are.
    pub path: BytesPath,
    pub n_files: u32,
    /// Size of all of them together.
    pub bytes: u64,
}

/// One page, or one page of each of several files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read {
    pub files: Vec<FileText>,
    /// Files that the cursor still has.
    pub remaining: u32,
    /// For the host to remember.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memos: Vec<Memo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileText {
    pub path: BytesPath,
    /// The requested lines, with their own line ends; without line numbers.
    pub text: String,
    /// Number of the first line of `text`, from 1.
    pub first_line: u64,
    /// Lines in `text`.
    pub n_lines: u64,
    /// Lines in the file; `None` where it was not read to its end.
    pub total_lines: Option<u64>,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Whether more of the file follows after `text`.
    pub more: bool,
    /// Lines of the page that were truncated at the guest's bound.
    pub cut_lines: u32,
    pub encoding: Encoding,
    /// Why this file could not be read, where it was one of several.
    pub fault: Option<Fault>,
}

/// An image file, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    pub path: BytesPath,
    pub kind: ImageKind,
    pub data: Data,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl ImageKind {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// Returns the kind that has this media type.
    pub fn of(media_type: &str) -> Option<Self> {
        [Self::Png, Self::Jpeg, Self::Gif, Self::Webp]
            .into_iter()
            .find(|kind| kind.media_type() == media_type)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    Utf8,
    /// Bytes that are not UTF-8 are shown as `\x80`.
    Lossy,
    /// Decoded as UTF-16 by its byte order mark.
    Utf16,
    /// Not UTF-8, and decoded in the encoding that its bytes look like.
    Guessed(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    pub path: BytesPath,
    /// Size of the file afterwards.
    pub bytes: u64,
    pub created: bool,
    pub appended: bool,
    /// How the new text keeps the old file's format, or does not.
    #[serde(default)]
    pub notes: Vec<String>,
    /// For the host to remember.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memos: Vec<Memo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edited {
    pub path: BytesPath,
    /// Places changed, over all edits.
    pub replaced: u64,
    pub created: bool,
    /// Edits that matched only when white space was ignored, counted from 1.
    pub tolerant: Vec<u32>,
    /// Edits that matched only after one level of backslashes was removed, counted from 1.
    pub unescaped: Vec<u32>,
    /// Edits that matched only by look-alike characters, counted from 1.
    #[serde(default)]
    pub alike: Vec<u32>,
    /// Further notes, such as on the encoding of the written text.
    #[serde(default)]
    pub notes: Vec<String>,
    /// A unified diff, bounded.
    pub diff: String,
    /// For the host to remember.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memos: Vec<Memo>,
}

/// The result of a call that can change several files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    pub files: Vec<FileChange>,
    /// Nothing was written: this is what would be.
    pub dry_run: bool,
    /// For the host to remember.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memos: Vec<Memo>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileChange {
    pub path: BytesPath,
    pub change: Change,
    /// The source of a move or copy.
    pub from: Option<BytesPath>,
    /// Whether an existing entry was replaced.
    pub replaced: bool,
    /// Number of entries in a folder.
    pub entries: Option<u64>,
    /// Lines added, and lines removed.
    pub added: u64,
    pub removed: u64,
    /// What the reader should check, such as a place that was found only by ignoring white space.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Created,
    #[default]
    Modified,
    Deleted,
    Moved,
    Copied,
    /// It existed already.
    Kept,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectoryListing {
    pub path: BytesPath,
    pub entries: Vec<DirectoryEntry>,
    /// Entries omitted by the bound; `None` where they were not counted.
    pub omitted: Option<u64>,
    pub truncated: bool,
    /// Folders that could not be read.
    pub n_unreadable: u32,
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// Relative to the listed folder.
    pub path: BytesPath,
    pub kind: EntryKind,
    /// Size of a regular file.
    pub bytes: Option<u64>,
    /// Target of a symbolic link.
    pub target: Option<BytesPath>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    File,
    Directory,
    Link,
    Other,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundFiles {
    /// Relative to `/workspace`, newest first.
    pub paths: Vec<BytesPath>,
    pub truncated: bool,
    /// Folders that could not be read.
    pub n_unreadable: u32,
    /// For reading the files with `read_file`.
    pub cursor: Option<String>,
    /// Of the files that match.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// How the pattern was interpreted, where that is not obvious.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matches {
    /// The output form that was requested.
    pub output: GrepOutput,
    pub files: Vec<MatchedFile>,
    /// Matching lines in `files`; with `FilesOnly` the number of files.
    pub n_matches: u64,
    pub truncated: bool,
    pub timed_out: bool,
    /// Files and folders that could not be read.
    pub n_unreadable: u32,
    /// Files that were not searched because their names are protected.
    pub n_protected: u32,
    /// Binary files that were abandoned at their first NUL byte, before any match.
    #[serde(default)]
    pub n_binary: u32,
    /// Files with a line that is too long to search.
    #[serde(default)]
    pub n_too_long: u32,
    pub cursor: Option<String>,
    /// Of the files that `glob` selects.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// What may be wrong with an expression that found nothing, and how it or `glob` was
    /// interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchedFile {
    pub path: BytesPath,
    /// Matching lines in this file; `lines` may have fewer.
    pub count: u64,
    pub lines: Vec<MatchedLine>,
    /// A NUL byte was met; ripgrep then stops and shows no lines.
    pub binary: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchedLine {
    pub number: u64,
    /// Without its line end.
    pub text: String,
    /// Whether `text` is only the part around the match; `…` marks what is missing.
    pub cut: bool,
    /// Whether it matched, or is context.
    pub matched: bool,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandEnded {
    pub end: End,
    /// The limit that ended it or that it met.
    pub limit: Option<Limit>,
    /// The process that used most of it, if one was seen.
    pub culprit: Option<Culprit>,
    /// Working directory of the session's next command.
    pub working_directory: Option<BytesPath>,
    /// Bytes of its output.
    pub output_bytes: u64,
    /// Bytes between the streamed ones and the tail, which were dropped.
    pub omitted_bytes: u64,
    /// Whether all of these belong to one line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted_in_line: bool,
    /// Processes that it had left behind, which were ended with it.
    pub n_survivors: u32,
    pub duration_ms: u64,
    /// Something that the reader should know, such as that its directory is gone.
    pub note: Option<String>,
    /// The programs it started, where they were seen.
    #[serde(default, skip_serializing_if = "Programs::is_empty")]
    pub programs: Programs,
    /// The programs that were denied.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub denied: Box<[Denied]>,
}

impl CommandEnded {
    /// Returns whether this exceeds what a guest may report about programs.
    pub fn tells_too_much(&self) -> bool {
        tells_too_much(&self.programs, &self.denied)
    }

    /// Returns a value where only the end is known.
    pub fn plain(end: End) -> Self {
        Self {
            end,
            limit: None,
            culprit: None,
            working_directory: None,
            output_bytes: 0,
            omitted_bytes: 0,
            omitted_in_line: false,
            n_survivors: 0,
            duration_ms: 0,
            note: None,
            programs: Programs::default(),
            denied: Box::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    /// Left running in the background under this process id.
    Running {
        pid: i32,
    },
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    Time {
        ms: u64,
    },
    Memory {
        bytes: u64,
    },
    Processes {
        count: u64,
    },
    /// The largest file that a command may write.
    FileSize {
        bytes: u64,
    },
    /// By how many bytes the project may grow in a session.
    Disk {
        bytes: u64,
    },
    /// How many files it may gain.
    Files {
        count: u64,
    },
    /// What must stay free of the project's disk.
    FreeSpace {
        bytes: u64,
    },
    FreeFiles {
        count: u64,
    },
}

impl Limit {
    /// Returns whether it is a limit of the project's disk, which others use too.
    pub fn is_of_disk(self) -> bool {
        matches!(
            self,
            Self::Disk { .. }
                | Self::Files { .. }
                | Self::FreeSpace { .. }
                | Self::FreeFiles { .. }
        )
    }
}

/// The processes of one name that used the most when a limit was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Culprit {
    /// The kernel's name: at most 15 bytes, chosen by the process.
    pub name: String,
    pub count: u64,
    /// Their total use: memory, or bytes written where a disk limit was met.
    pub bytes: u64,
    /// Whether the count was cut short, so that there may be more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}
