//! Reading a text: each command in it, what that starts, and what it is given.

mod aliased;
mod called;
mod doubtful;
mod shifted;
mod told;

use std::collections::HashMap;
use std::ops::Range;

use super::Command;
use super::Doubt;
use super::Function;
use super::Guard;
use super::Redirection;
use super::Script;
use super::Value;
use super::Word;
use super::WordKind;
use super::continued;
use super::files::Files;
use super::numbers::Computed;
use super::parse;
use super::parted;
use super::pieces;
use super::runs;
use super::said;
use super::texts::Texts;
use super::unwrap;
use super::unwrap::Inner;
use super::unwrap::starters;
use super::values;
use super::values::Values;
use super::walk;
use super::written;

/// The longest text that is read.
pub const LENGTH_MAX: usize = 128 << 10;
/// How deep a text in a text is looked into: `bash -c "bash -c …"`.
const DEPTH_MAX: usize = 8;
/// Programs in front of a program that are looked behind.
pub(super) const WRAPPERS_MAX: usize = 16;
/// All that is read together, with the texts in the text.
const TOTAL_MAX: usize = 4 * LENGTH_MAX;
/// Words that are handed on from a program to the one it starts, in all.
const HANDED_MAX: usize = 100_000;
/// Calls of functions, and files of the text's own, that are read where they stand, in all.
const CALLS_MAX: usize = 32;
/// As many words as there may be: what a function is given, those say who call it.
const ANY_WORDS: usize = usize::MAX;
/// The longest function that is read once more where it is called.
const CALLED_MAX: usize = 8 << 10;
/// All of functions and files that is read once more, together.
const CALLED_TOTAL: usize = 32 << 10;
/// Why a file of its own is in doubt.
const TOO_MUCH: &str = "too much is run that the text writes itself";
/// What a doubt shows of the text.
pub(super) const SHOWN: usize = 60;

/// Reads every simple command that a text may start.
///
/// Nothing is run, looked up or guessed: what cannot be read for certain becomes a doubt, and the commands that could be read are listed all
/// the same. The time it takes is bounded by the text's length.
pub fn read(text: &str) -> Script {
    let mut script = read_with_marks(text);
    script.without_marks();
    script
}

/// Returns whether a text may carry something out again, or later than it stands.
fn may_repeat(text: &str) -> bool {
    let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_job = || text.replace("&&", "").replace(">&", "").replace("&>", "").contains('&');
    text.contains("()") || words.any(|word| matches!(word, "for" | "function" | "select" | "trap" | "until" | "while")) || is_job()
}

/// The same, where what variables hold of folders is marked by the command that gave it to them.
pub fn read_with_marks(text: &str) -> Script {
    let mut reader = Reader {
        left: TOTAL_MAX,
        given_left: TOTAL_MAX,
        aliased_left: aliased::TOTAL_MAX,
        handed: HANDED_MAX,
        calls: CALLS_MAX,
        called_left: CALLED_TOTAL,
        named_left: shifted::NAMED_MAX,
        moved_left: shifted::MOVED_MAX,
        shifts_left: shifted::READINGS_MAX,
        ..Reader::default()
    };
    reader.text(text, 0, 0);
    if let Some(file) = reader.files.written_behind().map(ToOwned::to_owned) {
        reader.doubt(&file, "it may be run once more when the text has written it");
    }
    let referred = reader.values.referred(&reader.script.values);
    reader.script.values.extend(referred);
    reader.script.repeats = may_repeat(text);
    reader.script.written = std::mem::take(&mut reader.files.said);
    reader.names();
    reader.computing();
    reader.numbers();
    reader.script
}

/// What reading a text adds to.
#[derive(Default)]
pub(super) struct Found {
    pub(super) commands: Vec<Command>,
    pub(super) functions: Vec<Function>,
    pub(super) values: Vec<Value>,
    pub(super) shells: Vec<usize>,
    pub(super) doubts: Vec<Doubt>,
    /// What is computed from variables.
    pub(super) computed: Vec<Computed>,
    /// Where in the text the functions stand, by their names.
    pub(super) bodies: Vec<(String, Range<usize>)>,
}

impl Found {
    pub(super) fn doubt(&mut self, what: &str, why: &'static str) {
        push(&mut self.doubts, what, why);
    }
}

#[derive(Default)]
struct Reader {
    script: Script,
    left: usize,
    /// How much commands may still be given of what others say.
    given_left: usize,
    handed: usize,
    values: Values,
    texts: Texts,
    computed: Vec<Computed>,
    /// What functions do, by their names.
    bodies: HashMap<String, String>,
    /// Names that it gives to other programs, and the last command that each stands for.
    aliases: HashMap<String, String>,
    /// How many words may still be put in the place of such names.
    aliased_left: usize,
    /// Files that the text writes, and what it writes into them.
    files: Files,
    /// How many calls, and files that are run, may still be read; and those that are just being read.
    calls: usize,
    called_left: usize,
    calling: Vec<String>,
    /// What stands in front of the command that is read.
    piping: Option<Command>,
    /// What is read is made of the pieces of another text.
    is_in_pieces: bool,
    /// Where what is read is written that says nothing else itself: a group, or a call of a function, around it does.
    into: Vec<Redirection>,
    /// How many substitutions were looked at for what they say.
    n_told: usize,
    /// How many words the text that is read was given; that of a call of a tool, none.
    given_words: usize,
    /// How many programs may still be put where one of several values names them.
    named_left: usize,
    /// How many values may still be noted of words that are moved along.
    moved_left: usize,
    /// How many times what is called may still be read with fewer words.
    shifts_left: usize,
}

/// A text for a shell, with the words that it is given where those are said.
type Text = (String, Option<Vec<Word>>);

/// Tells texts for a shell from commands.
fn apart(inner: Vec<Inner>) -> (Vec<Text>, Vec<Command>) {
    let (mut texts, mut commands) = (Vec::new(), Vec::new());
    for inner in inner {
        match inner {
            Inner::Command(command) => commands.push(command),
            Inner::Text(text) => texts.push((text, None)),
            Inner::Called(text, words) => texts.push((text, Some(words))),
        }
    }
    (texts, commands)
}

/// Returns how many words a text is given, behind the name that comes first.
fn n_given(words: &[Word]) -> usize {
    let may_be_many = |word: &Word| word.kind != WordKind::Known && (!word.quoted || word.text.contains('@'));
    if words.iter().any(may_be_many) { ANY_WORDS } else { words.len().saturating_sub(1) }
}

/// Returns whether the program of a command, or the word of the grammar in its place, may be made of what stands beside it: of a list in braces, of
/// one that a variable holds, or of a group that the grammar took for a word.
fn has_hidden_program(command: &Command, has_list: bool) -> bool {
    let program = command.program();
    let behind_time = command.words.iter().skip(1).find(|word| !word.text.starts_with('-')).filter(|_| command.name() == Some("time"));
    program.into_iter().chain(behind_time).any(|word| match word.known() {
        Some(name) => RESERVED.contains(&name),
        None => word.text.starts_with('{') || has_list,
    })
}

impl Reader {
    fn doubt(&mut self, what: &str, why: &'static str) {
        push(&mut self.script.doubts, what, why);
    }

    /// Reads a text that the shell of this number is given.
    fn text(&mut self, text: &str, depth: usize, shell: usize) {
        if text.len() > LENGTH_MAX || text.len() > self.left {
            return self.doubt(text, "it is too long to be read");
        }
        if depth > DEPTH_MAX {
            return self.doubt(text, "it is a text in a text in a text, too deep to be read");
        }
        self.left -= text.len();
        if text.contains('\0') {
            self.doubt(text, "it has a zero byte");
        }
        let Some(tree) = parse::parse(text) else {
            self.doubt(text, "it is too deep, or takes too long to parse");
            return self.pieces(text, depth, shell);
        };
        let apart = if tree.root_node().has_error() { parted::parted(text) } else { None };
        let apart = apart.and_then(|apart| parse::parse(&apart).filter(|tree| !tree.root_node().has_error()).map(|tree| (apart, tree)));
        let (whole, (text, tree)) = (text, apart.as_ref().map_or((text, &tree), |(text, tree)| (text.as_str(), tree)));
        let moved = shifted::moved(text);
        let shells = std::mem::take(&mut self.script.shells);
        let mut found = Found { shells, ..Found::default() };
        walk::walk(text, tree, shell, &mut found);
        self.script.shells = found.shells;
        let n_values = self.script.values.len();
        self.script.values.append(&mut found.values);
        let bodies = found.bodies.into_iter().filter(|(_, body)| body.len() <= CALLED_MAX);
        self.bodies.extend(bodies.map(|(name, body)| (name, text[body].to_owned())));
        let mut is_doubtful = found.doubts.iter().any(pieces::is_of_text);
        self.script.doubts.append(&mut found.doubts);
        self.computed.append(&mut found.computed);
        let mut starts = Vec::with_capacity(found.commands.len() + 1);
        let mut guarding = Vec::new();
        let has_list = text.contains("=(");
        let (mut before, mut around): (Option<Command>, Option<String>) = (None, None);
        // The one before with the values of variables in their places.
        let mut piping: Option<Command> = None;
        // What goes through the pipe where something expands in it.
        let mut passing: Option<String> = None;
        // What is behind the last command of a pipe belongs to all of it in the tree.
        let redirects =
            found.commands.iter().any(|command| command.words.is_empty() && command.redirections.iter().any(Redirection::reads));
        // A function by such a name writes whatever it likes.
        let renames = found.functions.iter().chain(&self.script.functions).any(|function| said::GIVING.contains(&function.name.as_str()));
        // Groups and loops that are written into a file: where each ends, and what led elsewhere in front of it.
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for mut command in found.commands {
            is_doubtful |= has_hidden_program(&command, has_list);
            while let Some((_, n_before)) = groups.pop_if(|(end, _)| *end <= starts.len()) {
                self.into.truncate(n_before);
            }
            starts.push(self.script.commands.len());
            command.takes_paths =
                !renames && !redirects && said::takes_what_is_piped(&command) && before.as_ref().is_some_and(said::gives_paths);
            command.takes_branches =
                !renames && !redirects && said::takes_what_is_piped(&command) && before.as_ref().is_some_and(said::gives_branches);
            command.given = said::given(&command, before.as_ref().filter(|_| command.piped), around.as_deref());
            passing = self.give_what_passes(&mut command, passing);
            if said::gives(&command) {
                around.clone_from(&command.given);
            }
            self.script.values.extend(values::read_lines(&command));
            let held = self.texts.read_by(&command);
            self.texts.note(&command);
            let is_in_function = found.functions.iter().any(|function| function.body.contains(&(starts.len() - 1)));
            let again = self.values.put_in(&command, &mut self.left);
            let told = self.with_told_words(&command);
            let again = told.map(|told| self.values.put_in(&told, &mut self.left).unwrap_or(told)).or(again);
            let told = self.with_told_values(&command);
            let given_words = if is_in_function { ANY_WORDS } else { self.given_words };
            self.values.note(told.as_ref().unwrap_or(&command), given_words, self.script.commands.len());
            let known = again.as_ref().unwrap_or(&command);
            let behind = unwrap::behind_starters(known);
            let writing = behind.as_ref().unwrap_or(known);
            self.files.note(writing, piping.as_ref(), self.script.commands.len());
            self.files.note_path(known);
            self.note_into(writing, piping.as_ref());
            if known.n_within > 0 {
                groups.push((starts.len() + known.n_within, self.into.len()));
                self.into.extend(known.redirections.iter().filter(|redirection| redirection.writes()).cloned());
            }
            let passing_on = Some(writing).filter(|command| written::passes_on(command)).cloned();
            self.piping = std::mem::replace(&mut piping, passing_on);
            before = unwrap::behind_starters(&command).or_else(|| Some(command.clone()));
            let called = (!is_in_function).then(|| again.as_ref().unwrap_or(&command).clone());
            if let Some(words) = values::set_words(&command) {
                self.note_moved(&moved, words);
            }
            let by_value = self.with_programs_by_value(&command);
            let given_words = if values::set_words(&command).is_some() { ANY_WORDS } else { self.given_words };
            self.given_words = if is_in_function { ANY_WORDS } else { given_words };
            for command in [Some(command), again].into_iter().flatten().chain(by_value) {
                guarding.extend((command.guard != Guard::default()).then_some(self.script.commands.len()));
                self.command(command, depth);
            }
            self.given_words = given_words;
            if let Some(called) = called {
                self.call(&called, depth);
            }
            if let Some(text) = held {
                self.text(&text, depth + 1, shell);
            }
        }
        self.into.truncate(groups.first().map_or(self.into.len(), |(_, n_before)| *n_before));
        let held = self.values.held(&self.script.values, n_values);
        self.script.values.extend(held);
        starts.push(self.script.commands.len());
        for at in guarding {
            let guard = self.script.commands[at].guard.placed(|place| starts[place]);
            self.script.commands[at].guard = guard;
            // `command cd x` fails as `cd x` does.
            self.script.commands[at + 1..].iter_mut().take_while(|inner| inner.is_started).for_each(|inner| inner.guard = guard);
        }
        if is_doubtful {
            self.pieces(whole, depth, shell);
        }
        let placed = |function: Function| Function { body: starts[function.body.start]..starts[function.body.end], ..function };
        self.script.functions.extend(found.functions.into_iter().map(placed));
    }

    /// Reads what stands plainly in a text that could not be read, once.
    fn pieces(&mut self, text: &str, depth: usize, shell: usize) {
        if !std::mem::replace(&mut self.is_in_pieces, true) {
            let joined = continued::joined(text);
            if let Some(joined) = &joined {
                self.text(joined, depth, shell);
            }
            let text = joined.as_deref().unwrap_or(text);
            if let Some(plain) = pieces::without_words_before_groups(text) {
                self.text(&plain, depth, shell);
            }
            self.text(&pieces::of(text), depth, shell);
            self.is_in_pieces = false;
        }
    }

    /// Reads a text whose end nothing in it outlasts; one that a shell of its own reads says for certain what that is set to.
    fn text_within(&mut self, text: &str, depth: usize, shell: usize, is_own: bool) {
        let start = self.script.commands.len();
        self.text(text, depth, shell);
        let end = self.script.commands.len();
        for command in &mut self.script.commands[start..] {
            command.guard = command.guard.within(end);
            command.is_certain &= is_own;
        }
    }

    fn shell_within(&mut self, shell: usize) -> usize {
        self.script.shells.push(shell);
        self.script.shells.len()
    }

    /// Adds a command, and what it starts in its turn.
    fn command(&mut self, command: Command, depth: usize) {
        let mut next = Some(command);
        for _ in 0..WRAPPERS_MAX {
            let Some(mut command) = next.take() else { return };
            command.given_words = self.given_words;
            let unwrapped = unwrap::unwrap(&command);
            for (what, why) in unwrapped.doubts {
                self.doubt(&what, why);
            }
            let (mut texts, mut inner_commands) = apart(unwrapped.inner);
            command.starts_another = unwrapped.nothing_else && (!texts.is_empty() || !inner_commands.is_empty());
            self.note_aliases(&command);
            inner_commands.extend(self.aliased(&command));
            let ran = if self.calls > 0 { self.files.script(&command, self.piping.as_ref()) } else { None };
            if self.calls > 0 {
                command.runs = self.given(&command, ran.as_ref());
            } else if self.files.may_be_run(&command, self.piping.as_ref()) {
                let name = command.name().unwrap_or_default().to_owned();
                self.doubt(&name, TOO_MUCH);
            }
            let (more_texts, more_commands) = apart(unwrap::in_files(&command));
            texts.extend(more_texts);
            inner_commands.extend(more_commands);
            let recipes = rules_of(&command);
            if command.is_started {
                self.files.note_started(&command, self.script.commands.len());
            }
            // What `eval` reads is read by the same shell.
            let (shell, is_same) = (command.shell, matches!(command.name(), Some("eval" | "trap" | "alias" | "source" | ".")));
            let set = if texts.is_empty() { Vec::new() } else { self.values.set_for(&command, self.script.commands.len()) };
            self.script.commands.push(command);
            if let Some(ran) = ran {
                self.run(ran, shell, depth);
            }
            let given_words = self.given_words;
            for recipe in recipes {
                // `make` puts names in there.
                self.given_words = ANY_WORDS;
                self.text(&recipe, depth + 1, shell);
                self.given_words = given_words;
            }
            for (text, words) in texts {
                let reader = if is_same { shell } else { self.shell_within(shell) };
                self.given_words = words.as_deref().map_or(given_words, n_given);
                let n_given_words = self.given_words;
                let lists = words.map_or_else(|| vec![None], |words| shifted::given(&text, &words).into_iter().map(Some).collect());
                for words in lists {
                    self.given_words = n_given_words;
                    let kept = words.map(|words| self.values.call(&words, self.script.commands.len().saturating_sub(1)));
                    self.text_within(&text, depth + 1, reader, !is_same);
                    self.values.come_back(kept.unwrap_or_default());
                }
                // What `eval` sets is set behind it.
                self.given_words = if is_same { self.given_words } else { given_words };
            }
            self.values.come_back(set);
            for inner in &mut inner_commands {
                inner.is_started = true;
                inner.shell = shell;
            }
            let n_handed: usize = inner_commands.iter().map(|inner| inner.words.len()).sum();
            if n_handed > self.handed {
                return self.doubt("…", "too many words are handed on");
            }
            self.handed -= n_handed;
            // Few start several.
            let last = inner_commands.pop();
            for inner in inner_commands {
                if depth >= DEPTH_MAX {
                    let name = inner.name().unwrap_or("find").to_owned();
                    self.doubt(&name, "it starts programs that start programs, too deep to be read");
                } else {
                    self.command(inner, depth + 1);
                }
            }
            next = last;
        }
        if let Some(command) = next {
            let shown = command.program().map_or("", |program| &program.text).to_owned();
            self.doubt(&shown, "too many programs start one another");
        }
    }
}

/// Returns what the rules of `make` that a command is given have a shell run.
fn rules_of(command: &Command) -> Vec<String> {
    command.runs.iter().filter(|_| runs::is_make(command)).flat_map(|rules| starters::recipes(rules)).collect()
}

/// Words that begin or end a construct: as a program's name they mean that grammar and shell disagree.
const RESERVED: [&str; 20] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select", "function", "{", "}", "!",
    "]]", "((",
];

fn push(doubts: &mut Vec<Doubt>, what: &str, why: &'static str) {
    // One of a kind is as good as a thousand.
    if doubts.len() < 100 {
        let shown: String = what.chars().take(SHOWN).collect();
        let more = if shown.len() < what.len() { "…" } else { "" };
        doubts.push(Doubt { what: format!("{shown}{more}"), why });
    }
}
