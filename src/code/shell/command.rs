use std::fmt;
use std::ops::Range;

use super::runs;

/// All that a text may start, as far as it can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Every simple command, in the order in which they begin; one that starts another program is followed by what it starts.
    pub commands: Vec<Command>,
    pub functions: Vec<Function>,
    /// What loops go through, and what lists hold.
    pub values: Vec<Value>,
    /// Shells that begin within it, each with the number of the one around it; the first of them is number 1, and 0 is the outermost.
    pub shells: Vec<usize>,
    /// What it writes into files, as far as that can be read, in the order of the commands.
    pub written: Vec<WrittenText>,
    /// Something in it may be carried out again, or later than what stands behind it: a loop, a function, a trap, a job.
    pub repeats: bool,
    /// Why there may be more than that.
    pub doubts: Vec<Doubt>,
}

/// What a text writes into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenText {
    /// The last part of the file's name.
    pub file: String,
    pub text: String,
    /// The command that writes it, by its place in the list.
    pub at: usize,
}

impl Script {
    /// Returns whether it starts nothing but its commands.
    pub fn is_known(&self) -> bool {
        self.doubts.is_empty()
    }
}

/// One of several values that a variable may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub variable: String,
    pub word: Word,
}

/// A place of a script that cannot be read for certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The text there, shortened.
    pub what: String,
    pub why: &'static str,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.what, self.why)
    }
}

/// A simple command: a program with its words, or assignments and redirections alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; empty where there are assignments or redirections alone.
    pub words: Vec<Word>,
    pub assignments: Vec<Assignment>,
    pub redirections: Vec<Redirection>,
    /// Its input is what the command in front of it in the text writes.
    pub piped: bool,
    /// What its input holds besides, as far as that stands in the text.
    pub given: Option<String>,
    /// What stands in files that the text itself wrote, and which it takes for programs or rules.
    pub runs: Vec<String>,
    /// Its input is paths that begin with a place which is named: none of them can be taken for an option.
    pub takes_paths: bool,
    /// Its input is names of git's branches, one a line: none has a blank in it or can be taken for an option.
    pub takes_branches: bool,
    /// Another program starts it: no function of the shell takes its place.
    pub is_started: bool,
    /// It is the one before once more, with the values of variables in their places.
    pub again: bool,
    /// It does nothing itself but start the command that follows it in the list, or the text it was given.
    pub starts_another: bool,
    /// The number of the shell that it runs in: what it does to that one, such as going to another folder, those around it do not see.
    pub shell: usize,
    /// What is not carried out where it fails.
    pub guard: Guard,
    /// How many words the text has been given that it stands in: `$1` and so on.
    pub given_words: usize,
    /// How many of those that follow it write where it leads them: it is a group, or a loop, with redirections.
    pub n_within: usize,
    /// It is carried out wherever the text is that it stands in, known of `set` alone.
    pub is_certain: bool,
}

/// What a command keeps from being carried out by failing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// The place in the list from which nothing follows then; 0 right behind it.
    pub from: usize,
    /// The place in the list up to which nothing follows then; 0 where all of it does.
    pub until: usize,
    /// The same where `set -e` ends the shell.
    pub until_on_error: usize,
    /// It is by working that it does, and not by failing.
    pub by_working: bool,
    /// The place in the list from which it may be that it was not carried out, or in a shell of its own: behind `||`, `|` or `&`, or behind what it is
    /// a branch of. 0 where it was, as far as it is known.
    pub passed: usize,
}

impl Guard {
    /// Returns a guard with other places in the list.
    pub(super) fn placed(self, place: impl Fn(usize) -> usize) -> Self {
        let placed = |at| if matches!(at, 0 | usize::MAX) { at } else { place(at) };
        let [from, until, until_on_error, passed] = [self.from, self.until, self.until_on_error, self.passed].map(placed);
        Self { from, until, until_on_error, passed, ..self }
    }

    /// Returns a guard that ends where its text does.
    pub(super) fn within(self, end: usize) -> Self {
        Self { until: self.until.min(end), until_on_error: self.until_on_error.min(end), ..self }
    }
}

impl Command {
    pub fn program(&self) -> Option<&Word> {
        self.words.first()
    }

    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns the texts that stand there for it to read: here-documents and here-strings.
    pub fn documents(&self) -> impl DoubleEndedIterator<Item = &Word> {
        let given = self.redirections.iter().filter(|redirection| redirection.operator.starts_with("<<"));
        given.filter_map(|redirection| redirection.target.as_ref())
    }

    /// Returns what it takes for programs of the files that the text wrote, each with the program that reads it.
    pub fn run_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.runs.iter().map(|text| (runs::interpreter(text).or_else(|| self.name()).unwrap_or_default(), text.as_str()))
    }

    /// Returns all texts among which may be a program in a language of its own: what is given to read, then the words behind its name.
    pub fn told(&self) -> impl Iterator<Item = &str> {
        self.documents().chain(self.arguments()).map(|word| word.text.as_str()).chain(self.given.as_deref())
    }

    /// Returns the program's name without its folders, where it is known.
    pub fn name(&self) -> Option<&str> {
        let program = self.program()?.known()?;
        Some(program.rsplit('/').next().unwrap_or(program))
    }
}

/// A word after quotes and escapes were taken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What the program gets; of a word that is not known, the expansions stay as they are written.
    pub text: String,
    pub kind: WordKind,
    /// It is written as it is read: without quotes, escapes or anything else.
    pub plain: bool,
    /// All that expands in it stands in double quotes, so that it is one word, whatever that becomes.
    pub quoted: bool,
}

/// How much is known of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// The text is what the program gets. A leading `~` is the home folder.
    Known,
    /// File names take its place.
    Pattern,
    /// Only running it would tell; it may also become several words, or none.
    Unknown,
}

impl Word {
    /// Returns its text where that is certain.
    pub fn known(&self) -> Option<&str> {
        (self.kind == WordKind::Known).then_some(self.text.as_str())
    }

    pub(super) fn unknown(text: &str) -> Self {
        Self { text: text.to_owned(), kind: WordKind::Unknown, plain: false, quoted: false }
    }
}

/// `NAME=VALUE`, for one command or for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    /// `None` for a list.
    pub value: Option<Word>,
}

/// Where a descriptor leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// `<`, `>`, `>>`, `&>`, `>&`, `<<`, `<<<` and so on.
    pub operator: String,
    /// The file or descriptor, or the text that follows; `None` for closing.
    pub target: Option<Word>,
}

impl Redirection {
    /// Returns whether it may write into what it names: not where one descriptor follows another.
    pub fn writes(&self) -> bool {
        let Some(target) = &self.target else { return false };
        match self.operator.as_str() {
            ">" | ">>" | "&>" | "&>>" | ">|" | "<>" => true,
            ">&" | "<&" => !is_descriptor(target),
            _ => false,
        }
    }

    /// Returns whether it reads from the file that it names.
    pub fn reads(&self) -> bool {
        self.operator == "<" && self.target.is_some()
    }
}

fn is_descriptor(word: &Word) -> bool {
    word.known().is_some_and(|text| {
        let digits = text.strip_suffix('-').unwrap_or(text);
        text == "-" || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// A function that the script defines; its body's commands are in the script's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Where in that list they are.
    pub body: Range<usize>,
    /// The number of the shell that it is defined in.
    pub shell: usize,
    /// Whatever else the script does, it is defined once it was come by.
    pub is_certain: bool,
}
