//! Files that a text writes itself, and then has run: a script, rules for `make`, a program in another language.
//!
//! They are known by the last part of their names, wherever they lie: what a folder is called may differ, and a script of another folder that
//! has the same name is taken for this one. Nothing that was written once is forgotten, as nobody knows which branch is taken. What cannot be
//! read of such a file is in doubt where it is run.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::HashSet;

use super::Command;
use super::Redirection;
use super::Word;
use super::WrittenText;
use super::changed;
use super::linked::Link;
use super::linked::Linked;
use super::mentioned;
use super::runs;
use super::runs::Taken;
use super::written;
use super::written::Said;
use super::written::Written;
use super::written::key;

/// The longest file that is read.
const HELD_MAX: usize = 8 << 10;
/// Most files whose text is kept.
const FILES_MAX: usize = 64;
/// Most files whose names are kept.
const NAMES_MAX: usize = 128;
/// Most texts that are kept of one file.
const PIECES_MAX: usize = 16;
/// Most bytes of what is written that are kept: a text is no longer than that by itself.
const SAID_MAX: usize = 256 << 10;
/// Most names that are remembered of what was run, and of what was given to programs.
const RAN_MAX: usize = 1024;

fn target(redirection: &Redirection) -> &str {
    redirection.target.as_ref().map_or("", |word| word.text.as_str())
}

/// What a file may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// One after the other as they stand in the text, where each is carried out.
    whole: String,
    /// Each by itself, where others are not.
    pieces: Vec<String>,
    /// Not all that is written can be read.
    is_unread: bool,
    /// Something else was there, and is changed in a way that is not read.
    is_changed: bool,
}

impl Held {
    fn unread() -> Self {
        Self { is_unread: true, ..Self::default() }
    }

    fn said(Said { text, expands }: Said) -> Self {
        Self { whole: text, is_unread: expands, ..Self::default() }
    }

    /// Returns every text that it may be.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let pieces = self.pieces.iter().filter(|_| self.pieces.len() > 1).map(String::as_str);
        [self.whole.as_str()].into_iter().chain(pieces).filter(|text| !text.is_empty())
    }

    /// Returns whether it may hold something that is not among its texts.
    pub(super) fn may_be_more(&self) -> bool {
        self.is_unread || self.is_changed
    }

    /// Returns the same with what each text says of who reads it, and nothing else where that is a shell.
    pub(super) fn first_lines(&self) -> Self {
        let said = |text: &str| {
            let line = text.lines().next().filter(|line| line.starts_with("#!"));
            if runs::is_for_shell(text) { line.unwrap_or_default() } else { text }.to_owned()
        };
        Self { whole: said(&self.whole), pieces: self.pieces.iter().map(|text| said(text)).collect(), ..Self::default() }
    }

    /// Returns the same as far as it can be read.
    fn read(&self) -> Self {
        Self { is_unread: false, is_changed: false, ..self.clone() }
    }

    /// Returns the same as a source that a program runs: work on it is everyday, one that the text makes of what cannot be read is not.
    fn as_source(&self) -> Self {
        Self { is_changed: false, ..self.clone() }
    }

    /// Takes what another file may hold for what this one may.
    fn add(&mut self, other: &Self) {
        self.is_unread |= other.is_unread;
        self.is_changed |= other.is_changed;
        other.texts().for_each(|text| self.take(Some(text.to_owned()), false));
    }

    fn take(&mut self, text: Option<String>, adds: bool) {
        let Some(text) = text.filter(|text| text.len() <= HELD_MAX && self.pieces.len() < PIECES_MAX) else {
            self.is_unread = true;
            return;
        };
        if adds {
            // Which lines these make with what is there depends on what was carried out.
            self.is_unread |= !self.whole.is_empty() && !self.whole.ends_with('\n');
            self.whole.push_str(&text);
        } else {
            self.whole.clone_from(&text);
        }
        self.is_unread |= self.whole.len() > HELD_MAX;
        self.pieces.push(text);
    }
}

/// A file of its own that a text runs.
pub(super) struct Ran {
    pub(super) file: String,
    pub(super) held: Held,
    /// The words that it is given, from its name on.
    pub(super) words: Vec<Word>,
    pub(super) how: How,
}

/// What runs a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Whatever its first line says.
    ByItsName,
    ByShell,
    /// The shell that reads the text.
    Sourced,
}

/// What the text wrote so far, and what it ran.
#[derive(Default)]
pub(super) struct Files {
    held: BTreeMap<String, Held>,
    ran: HashSet<String>,
    /// Those that a shell read.
    scripts: HashSet<String>,
    links: Linked,
    /// Files that it gave to programs which may write them, each with whether one of those takes it for no program of its own.
    mentioned: HashMap<String, bool>,
    /// There are more than are kept: whatever is run may be one of them.
    is_full: bool,
    /// It says itself where programs are looked for.
    sets_path: bool,
    /// All that it wrote, whatever becomes of the files.
    pub(super) said: Vec<WrittenText>,
    n_said: usize,
    /// What it prints goes into a file from here on.
    is_led: bool,
}

impl Files {
    /// Remembers what a command writes, whose place in the list is `at`; `before` is what pipes into it.
    pub(super) fn note(&mut self, command: &Command, before: Option<&Command>, at: usize) {
        let (writes, changes) = (written::files(command, before), changed::files(command));
        let is_unread = !changes.is_empty() || writes.iter().any(|written| written.text.is_none());
        self.note_unread(command, before, is_unread, at);
        for Written { file, text, expands, adds } in writes {
            if let Some(text) = &text {
                self.note_said(&file, text, at);
            }
            for file in self.links.with(file) {
                self.put(file, |held| {
                    held.take(text.clone(), adds);
                    held.is_unread |= expands;
                });
            }
        }
        match self.links.note(command) {
            Some(Link::Of(one, other)) => self.join(&one, &other),
            Some(Link::TooMany) => self.is_full = true,
            None => {}
        }
        // What is there already may hold anything then.
        for file in changes {
            for file in self.links.with(key(&Word::unknown(file))) {
                self.put(file, |held| held.is_changed = true);
            }
        }
        let mut given = mentioned::files(command).peekable();
        let taken = given.peek().map(|_| runs::programs(command, before)).unwrap_or_default();
        for file in given {
            let is_other = !taken.contains(&file);
            self.mention(file, is_other);
        }
        self.note_path(command);
        self.note_made(command);
        if let Some((from, to)) = written::copied(command)
            && let Some(is_other) = from.iter().filter_map(|word| self.mentioned.get(&key(word)).copied()).max()
        {
            self.mention(key(to), is_other);
        }
        if self.held.is_empty() {
            return;
        }
        if let Some((from, to)) = written::copied(command).filter(|_| command.name() != Some("ln"))
            && let Some(held) = from.iter().find_map(|word| self.held.get(&key(word))).cloned()
        {
            for file in self.links.with(key(to)) {
                self.put(file, |target| target.add(&held));
            }
        }
        if written::may_change(command) {
            for word in command.arguments() {
                if let Some(held) = self.held.get_mut(&key(word)) {
                    held.is_changed = true;
                }
            }
        }
    }

    /// Keeps the words of what writes in a way that is not read: what comes of them may well say the same.
    fn note_unread(&mut self, command: &Command, before: Option<&Command>, is_unread: bool, at: usize) {
        let leads = |redirection: &Redirection| redirection.operator.contains(">&") && !matches!(target(redirection), "1" | "2" | "-");
        let is_led = self.is_led && written::prints(command) || command.redirections.iter().any(leads);
        // What goes through a pipe may be written further on.
        let hands = written::filters(command) && command.redirections.iter().all(|redirection| !redirection.writes());
        if is_led || is_unread || !changed::patched(command).is_empty() {
            let all = [Some(command), before.filter(|_| command.piped)].into_iter().flatten().map(written::words);
            self.note_said("", &all.collect::<Vec<_>>().join("\n"), at);
        } else if hands && let Some(text) = written::handed(command) {
            self.note_said("", &text, at);
        }
        self.is_led |= command.name() == Some("exec") && command.redirections.iter().any(Redirection::writes);
    }

    fn note_said(&mut self, file: &str, text: &str, at: usize) {
        self.n_said += text.len();
        if self.n_said > SAID_MAX {
            self.is_full = true;
        } else {
            self.said.push(WrittenText { file: file.to_owned(), text: text.to_owned(), at });
        }
    }

    /// Remembers what `make` makes of a source that the text wrote, by rules of its own: `make a` of `a.sh` or `a.c`.
    fn note_made(&mut self, command: &Command) {
        if !runs::is_make(command) {
            return;
        }
        for made in command.arguments().iter().map(key) {
            if self.held.keys().any(|file| file.rsplit_once('.').is_some_and(|(stem, _)| stem == made)) {
                self.put(made, |held| held.is_changed = true);
            }
        }
    }

    /// Remembers whether a command says where programs are looked for.
    pub(super) fn note_path(&mut self, command: &Command) {
        let names = |word: &Word| matches!(word.text.split('=').next(), Some("PATH" | "PATH+"));
        self.sets_path |= command.assignments.iter().any(|set| set.name == "PATH") || command.arguments().iter().any(names);
        // By a name that stands for another one.
        let stands_for = command.assignments.iter().filter_map(|set| set.value.as_ref()).any(|value| value.text == "PATH");
        self.sets_path |= stands_for || command.arguments().iter().any(|word| word.text.ends_with("=PATH"));
    }

    /// Remembers what a command writes which another one starts: that is not read.
    pub(super) fn note_started(&mut self, command: &Command, at: usize) {
        self.note(&Command { words: command.words.clone(), ..Command::default() }, None, at);
    }

    /// Takes what one of two files may hold for what both may, as a link makes them one.
    fn join(&mut self, one: &str, other: &str) {
        for (from, to) in [(one, other), (other, one)] {
            if let Some(is_other) = self.mentioned.get(from).copied() {
                self.mention(to.to_owned(), is_other);
            }
            let Some(held) = self.held.get(from).cloned() else { continue };
            for file in self.links.with(to.to_owned()).into_iter().filter(|file| file != from) {
                self.put(file, |target| target.add(&held));
            }
        }
    }

    fn mention(&mut self, file: String, is_other: bool) {
        if self.mentioned.get(&file).is_some_and(|was_other| *was_other >= is_other) {
            return;
        }
        self.is_full |= self.mentioned.len() >= RAN_MAX;
        if !self.is_full {
            self.mentioned.extend(self.links.with(file).into_iter().map(|file| (file, is_other)));
        }
    }

    /// Returns whether a file that is taken for a program, or for rules, was given to one that may write it.
    fn may_be_rewritten(&self, file: &str) -> bool {
        self.mentioned.get(file).is_some_and(|is_other| *is_other)
    }

    fn put(&mut self, file: String, change: impl FnOnce(&mut Held)) {
        let has_room = self.held.len() < FILES_MAX || self.held.contains_key(&file);
        if has_room {
            change(self.held.entry(file).or_default());
        } else if self.held.len() < NAMES_MAX {
            self.held.insert(file, Held::unread());
        } else {
            self.is_full = true;
        }
    }

    /// Returns the file of its own that a command has a shell run; `before` is what pipes into it.
    pub(super) fn script(&mut self, command: &Command, before: Option<&Command>) -> Option<Ran> {
        let by_path = || {
            // `uv run a.py`
            let program = command.program().filter(|_| self.sets_path || command.is_started)?;
            (self.is_full || self.held.contains_key(program.known()?)).then(|| (program, command.words.clone()))
        };
        let (file, words) = runs::script(command, before).or_else(by_path)?;
        let held = written::substituted(file).map(Held::said);
        let file = key(file);
        let held = held.or_else(|| self.find(&file));
        let is_given = self.ran_as_script(&file);
        let mut held = if is_given { held.unwrap_or_default() } else { held? };
        held.is_changed |= is_given;
        let how = match command.name() {
            Some("source" | ".") => How::Sourced,
            Some(name) if runs::RUNNING.contains(&name) => How::ByShell,
            _ => How::ByItsName,
        };
        Some(Ran { file, held, words, how })
    }

    /// Returns the files of its own that another program than a shell may take for a program, or for rules; `before` is what pipes into it.
    pub(super) fn programs(&mut self, command: &Command, before: Option<&Command>) -> Vec<(String, Held)> {
        let run = runs::programs(command, before);
        let find = |file: String| {
            let is_given = self.may_be_rewritten(&file);
            let held = self.find(&file).or_else(|| is_given.then(Held::default))?;
            Some((file, Held { is_changed: held.is_changed || is_given, ..held }))
        };
        let mut programs: Vec<(String, Held)> = run.into_iter().filter_map(find).collect();
        if self.held.is_empty() {
            return programs;
        }
        if runs::is_make(command) {
            self.read_in(&mut programs);
        }
        // What only may be a program says no more than its words.
        let named = runs::named(command).into_iter().filter_map(|file| Some((self.held.get(&file)?.read(), file)));
        programs.extend(named.map(|(held, file)| (file, held)));
        let looks = runs::looks_for_sources(command);
        let any = "a file that the text wrote".to_owned();
        programs.extend((self.is_full && (looks || runs::is_module(command, "a.py"))).then(|| (any, Held::unread())));
        let by_itself = self.held.iter().filter(|_| looks).filter_map(|(file, held)| {
            let held = match runs::taken_by_itself(command, file)? {
                Taken::Run => held.as_source(),
                Taken::Read => held.read(),
            };
            Some((file.clone(), held))
        });
        programs.extend(by_itself);
        let modules = self.held.iter().filter(|(file, _)| runs::is_module(command, file));
        programs.extend(modules.map(|(file, held)| (file.clone(), held.as_source())));
        programs
    }

    /// Adds what rules for `make` read in; by a name that is not known that may be whatever else the text wrote.
    fn read_in(&self, programs: &mut Vec<(String, Held)>) {
        let mut at = 0;
        while let Some((_, rules)) = programs.get(at).filter(|_| at < FILES_MAX) {
            at += 1;
            let names: Vec<String> = rules.texts().flat_map(runs::included).collect();
            let is_meant = |file: &String| names.iter().any(|name| name == file || name.contains('$'));
            let is_new = |file: &String| programs.iter().all(|(known, _)| known != file);
            let more = self.held.iter().filter(|(file, _)| is_meant(file) && is_new(file));
            let more: Vec<(String, Held)> = more.map(|(file, held)| (file.clone(), held.clone())).collect();
            programs.extend(more);
        }
    }

    /// Returns whether a command may run a file of its own, without looking at what that holds.
    pub(super) fn may_be_run(&mut self, command: &Command, before: Option<&Command>) -> bool {
        let script = runs::script(command, before).map(|(file, _)| key(file));
        let is_given = script.as_ref().is_some_and(|file| self.ran_as_script(file));
        let run: Vec<String> = runs::programs(command, before).into_iter().chain(script).collect();
        let may_be = is_given
            || run.iter().any(|file| self.may_be_rewritten(file) || self.written_as(file).is_some())
            || runs::named(command).iter().any(|file| self.held.contains_key(file))
            || command.name().is_some_and(|name| self.sets_path && self.held.contains_key(name))
            || (self.is_full && (!run.is_empty() || self.sets_path))
            || runs::looks_for_sources(command) && self.held.keys().any(|file| runs::taken_by_itself(command, file).is_some());
        for file in run {
            self.remember(file);
        }
        may_be
    }

    /// Remembers that a shell reads a file; returns whether a program that may write it was given it before.
    fn ran_as_script(&mut self, file: &str) -> bool {
        if self.scripts.len() < RAN_MAX {
            self.scripts.insert(file.to_owned());
        }
        self.mentioned.contains_key(file)
    }

    fn remember(&mut self, file: String) {
        if self.ran.len() < RAN_MAX && !self.held.contains_key(&file) {
            self.ran.insert(file);
        }
    }

    /// Returns what was written under a name, or under names that begin as it does.
    fn written_as(&self, file: &str) -> Option<&Held> {
        let begins = |known: &str| known.strip_suffix('*').is_some_and(|begin| !begin.is_empty() && file.starts_with(begin));
        self.held.get(file).or_else(|| self.held.iter().find(|(known, _)| begins(known)).map(|(_, held)| held))
    }

    fn find(&mut self, file: &str) -> Option<Held> {
        if let Some(held) = self.written_as(file) {
            return Some(held.clone());
        }
        if self.is_full {
            return Some(Held::unread());
        }
        self.remember(file.to_owned());
        // What was written under a name that is not known may be it; what else was, is not.
        let is_unknown = |file: &str| file.contains(['$', '`', '*', '?']);
        let held = self.held.iter().find(|(file, held)| is_unknown(file) && !held.may_be_more());
        held.map(|(_, held)| held.clone())
    }

    /// Returns a file that was run by what stands in front of what writes it: a loop or a trap may come by it again.
    pub(super) fn written_behind(&self) -> Option<&str> {
        let written = self.ran.iter().filter(|file| self.is_full || self.held.contains_key(*file));
        let given = self.scripts.iter().filter(|file| self.mentioned.contains_key(*file));
        let rewritten = self.ran.iter().filter(|file| self.may_be_rewritten(file));
        written.chain(given).chain(rewritten).min().map(String::as_str)
    }
}
