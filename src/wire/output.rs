use serde::Deserialize;
use serde::Serialize;

use super::Background;
use super::BytesPath;
use super::Denied;
use super::Fault;
use super::GrepOutput;
use super::LeftOut;
use super::MAX_DENIED;
use super::Memo;
use super::Programs;
use super::message::Data;
use super::programs::MAX_ARGUMENTS;

/// What came of a call.
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
    Background(Background),
    Fault(Fault),
    /// What came of a call that gave names in letters which only look like those of the files.
    Meant {
        names: Vec<MeantName>,
        output: Box<Output>,
    },
}

impl Output {
    /// Returns what came of the call itself, and the names that were meant by those that it gave.
    pub fn apart(self) -> (Self, Vec<MeantName>) {
        match self {
            Self::Meant { names, output } => (output.apart().0, names),
            output => (output, Vec::new()),
        }
    }
}

/// A name that a call gave, and the one that it was taken for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeantName {
    pub given: BytesPath,
    pub found: BytesPath,
}

/// What a command finds in its environment.
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

/// Where later commands run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    pub path: BytesPath,
}

/// One page, or one page of each of several files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read {
    pub files: Vec<FileText>,
    /// Files the cursor still stands for.
    pub remaining: u32,
    /// What is to be remembered of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memos: Vec<Memo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileText {
    pub path: BytesPath,
    /// The lines asked for, with their own line ends; without line numbers.
    pub text: String,
    /// Number of the first line of `text`, from 1.
    pub first_line: u64,
    /// Lines in `text`.
    pub n_lines: u64,
    /// Lines in the file; `None` where it was not read to its end.
    pub total_lines: Option<u64>,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Whether something of the file follows after `text`.
    pub more: bool,
    /// Lines of the page that were longer than the guest's bound and were cut.
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
    /// Read as UTF-16 by its byte order mark.
    Utf16,
    /// Not UTF-8, and read in the encoding that its bytes look like.
    Guessed(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    pub path: BytesPath,
    /// Size of the file afterwards.
    pub bytes: u64,
    pub created: bool,
    pub appended: bool,
    /// What of the old file's form the new text has, or has not.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What is to be remembered of it.
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
    /// Edits that matched only after one level of backslashes was taken off, counted from 1.
    pub unescaped: Vec<u32>,
    /// Edits that matched only letters which look alike, counted from 1.
    #[serde(default)]
    pub alike: Vec<u32>,
    /// What else is to be said, such as in which encoding the text was written.
    #[serde(default)]
    pub notes: Vec<String>,
    /// A unified diff, bounded.
    pub diff: String,
    /// What is to be remembered of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memos: Vec<Memo>,
}

/// What a call did that can touch several files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    pub files: Vec<FileChange>,
    /// Nothing was written: this is what would be.
    pub dry_run: bool,
    /// What is to be remembered of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memos: Vec<Memo>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileChange {
    pub path: BytesPath,
    pub change: Change,
    /// What it was moved or copied from.
    pub from: Option<BytesPath>,
    /// Whether something stood there that is gone.
    pub replaced: bool,
    /// What is in it, for a folder.
    pub entries: Option<u64>,
    /// Lines that are new, and lines that are gone.
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
    /// It was there already.
    Kept,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectoryListing {
    pub path: BytesPath,
    pub entries: Vec<DirectoryEntry>,
    /// Entries left out by the bound; `None` where they were not counted.
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
    /// Where a symbolic link points.
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
    /// Hands the files to `read_file`.
    pub cursor: Option<String>,
    /// Of files, those that match.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// How the pattern was understood, where that is to be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matches {
    /// What was asked for.
    pub output: GrepOutput,
    pub files: Vec<MatchedFile>,
    /// Matching lines in `files`; with `FilesOnly` the number of files.
    pub n_matches: u64,
    pub truncated: bool,
    pub timed_out: bool,
    /// Files and folders that could not be read.
    pub n_unreadable: u32,
    /// Files that were not searched because their names say that they hold secrets.
    pub n_protected: u32,
    /// Binary files that were left at their first NUL byte, where nothing had matched yet.
    #[serde(default)]
    pub n_binary: u32,
    /// Files with a line that is too long to be searched.
    #[serde(default)]
    pub n_too_long: u32,
    pub cursor: Option<String>,
    /// Of files, those that `glob` names.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// What may be wrong with an expression that found nothing, and how it or `glob` was
    /// understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchedFile {
    pub path: BytesPath,
    /// Matching lines in this file; `lines` may hold fewer.
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
    /// Whether `text` is only the part around the match; `…` stands where something is missing.
    pub cut: bool,
    /// Whether it matched, or stands there as context.
    pub matched: bool,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandEnded {
    pub end: End,
    /// The limit that ended it or that it ran into.
    pub limit: Option<Limit>,
    /// Who took the most of it, where somebody was seen.
    pub culprit: Option<Culprit>,
    /// Where the next command of the session starts.
    pub working_directory: Option<BytesPath>,
    /// Bytes it printed.
    pub output_bytes: u64,
    /// Bytes between what was streamed and the tail that nobody kept.
    pub omitted_bytes: u64,
    /// Whether all of these are of one line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted_in_line: bool,
    /// Processes it had left behind, which were ended with it.
    pub n_survivors: u32,
    pub duration_ms: u64,
    /// Something the reader should know, such as a directory that is gone.
    pub note: Option<String>,
    /// What it started, where that was seen.
    #[serde(default, skip_serializing_if = "Programs::is_empty")]
    pub programs: Programs,
    /// What of it was not let run.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub denied: Box<[Denied]>,
}

impl CommandEnded {
    /// Returns whether this is more than a guest may tell of programs.
    pub fn tells_too_much(&self) -> bool {
        let is_long = |denied: &Denied| {
            denied
                .argv
                .iter()
                .map(|word| word.as_bytes().len() + 1)
                .sum::<usize>()
                > 2 * MAX_ARGUMENTS
        };
        self.programs.is_too_much()
            || self.denied.len() > MAX_DENIED
            || self.denied.iter().any(is_long)
    }

    /// Returns what is known where only its end is.
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
    /// By how much the project may grow in a session.
    Disk {
        bytes: u64,
    },
    /// How many files it may gain.
    Files {
        count: u64,
    },
    /// What must stay free of the disk that the project lies on.
    FreeSpace {
        bytes: u64,
    },
    FreeFiles {
        count: u64,
    },
}

impl Limit {
    /// Returns whether it is one of the disk that the project lies on, which others use, too.
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

/// The processes of one name that took the most when a limit was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Culprit {
    /// As the kernel has it: 15 bytes at most, and whatever the process calls itself.
    pub name: String,
    pub count: u64,
    /// What they took together: memory, or bytes written where a limit of the disk was met.
    pub bytes: u64,
    /// Whether the look was cut short, so that there may be more of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}
