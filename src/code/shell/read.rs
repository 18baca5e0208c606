use super::Command;
use super::Doubt;
use super::Function;
use super::Script;
use super::parse;
use super::unwrap;
use super::unwrap::Inner;
use super::walk;

/// The longest text that is read.
pub const LENGTH_MAX: usize = 128 << 10;
/// How deep a text in a text is looked into: `bash -c "bash -c …"`.
const DEPTH_MAX: usize = 8;
/// Programs in front of a program that are looked behind.
const WRAPPERS_MAX: usize = 16;
/// All that is read together, with the texts in the text.
const TOTAL_MAX: usize = 4 * LENGTH_MAX;
/// Words that are handed on from a program to the one it starts, in all.
const HANDED_MAX: usize = 100_000;
/// What a doubt shows of the text.
const SHOWN: usize = 60;

/// Reads every simple command that a text may start.
///
/// Nothing is run, looked up or guessed: what cannot be read for certain becomes a doubt, and the commands that could be read are listed all
/// the same. The time it takes is bounded by the text's length.
pub fn read(text: &str) -> Script {
    let mut reader = Reader { script: Script::default(), left: TOTAL_MAX, handed: HANDED_MAX };
    reader.text(text, 0);
    reader.names();
    reader.script
}

/// What reading a text adds to.
pub(super) struct Found {
    pub(super) commands: Vec<Command>,
    pub(super) functions: Vec<Function>,
    pub(super) doubts: Vec<Doubt>,
}

impl Found {
    pub(super) fn doubt(&mut self, what: &str, why: &'static str) {
        push(&mut self.doubts, what, why);
    }
}

struct Reader {
    script: Script,
    left: usize,
    handed: usize,
}

impl Reader {
    fn doubt(&mut self, what: &str, why: &'static str) {
        push(&mut self.script.doubts, what, why);
    }

    fn text(&mut self, text: &str, depth: usize) {
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
        let Some(tree) = parse::parse(text) else { return self.doubt(text, "it is too deep, or takes too long to parse") };
        let mut found = Found { commands: Vec::new(), functions: Vec::new(), doubts: Vec::new() };
        walk::walk(text, &tree, &mut found);
        self.script.functions.append(&mut found.functions);
        self.script.doubts.append(&mut found.doubts);
        for command in found.commands {
            self.command(command, depth);
        }
    }

    /// Adds a command, and what it starts in its turn.
    fn command(&mut self, command: Command, depth: usize) {
        let mut next = Some(command);
        for _ in 0..WRAPPERS_MAX {
            let Some(mut command) = next.take() else { return };
            let unwrapped = unwrap::unwrap(&command);
            for (what, why) in unwrapped.doubts {
                self.doubt(&what, why);
            }
            let (mut texts, mut inner_commands) = (Vec::new(), Vec::new());
            for inner in unwrapped.inner {
                match inner {
                    Inner::Command(command) => inner_commands.push(command),
                    Inner::Text(text) => texts.push(text),
                }
            }
            command.starts_another = unwrapped.nothing_else && (!texts.is_empty() || !inner_commands.is_empty());
            self.script.commands.push(command);
            for text in texts {
                self.text(&text, depth + 1);
            }
            let n_handed: usize = inner_commands.iter().map(|inner| inner.words.len()).sum();
            if n_handed > self.handed {
                return self.doubt("…", "too many words are handed on");
            }
            self.handed -= n_handed;
            // Only `find` starts several.
            let last = inner_commands.pop();
            for inner in inner_commands {
                if depth >= DEPTH_MAX {
                    self.doubt("find", "it starts programs that start programs, too deep to be read");
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

    /// Doubts the programs whose names are not known, and those that come as a surprise.
    fn names(&mut self) {
        let mut found = Vec::new();
        for command in &self.script.commands {
            let Some(program) = command.program() else { continue };
            match program.known() {
                None => push(&mut found, &program.text, "which program that is shows only when it runs"),
                Some("") => push(&mut found, "''", "a program without a name"),
                Some(name) if RESERVED.contains(&name) => {
                    push(&mut found, name, "a word of the shell's grammar out of place");
                }
                Some(_) => {}
            }
        }
        self.script.doubts.append(&mut found);
    }
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
