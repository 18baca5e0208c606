//! Programs that start programs: what they start, as far as their words say it.

mod environment;
mod find;
mod git;
mod literal;
mod options;
mod sed;
mod shell;
pub(super) mod starters;
mod table;
pub(super) mod unnamed;

use self::options::Scan;
use self::table::Called;
use super::Assignment;
use super::Command;
use super::Word;
use super::WordKind;
use super::runs::RUNNING;

/// What a command starts in its turn.
#[derive(Default)]
pub(super) struct Unwrapped {
    pub(super) inner: Vec<Inner>,
    /// What may be started besides, and why that is not certain.
    pub(super) doubts: Vec<(String, &'static str)>,
    /// The command itself does nothing but start these.
    pub(super) nothing_else: bool,
}

/// A command, or a text that a shell reads.
pub(super) enum Inner {
    Command(Command),
    Text(String),
    /// The same with the words that it is given, from `$0` on.
    Called(String, Vec<Word>),
}

impl Unwrapped {
    fn doubt(&mut self, what: &str, why: &'static str) {
        self.doubts.push((what.to_owned(), why));
    }

    /// Adds a text for a shell, if it is known.
    fn text(&mut self, word: Option<&Word>, name: &str) {
        if let Some(text) = word.and_then(Word::known) {
            shell::read_by("sh", text, self);
            self.inner.push(Inner::Text(text.to_owned()));
        } else {
            self.doubt(word.map_or(name, |word| &word.text), UNKNOWN_TEXT);
            // Where something expands, most of it is what it says.
            self.inner.extend(word.map(|word| Inner::Text(word.text.clone())));
        }
    }
}

/// Most lines that a shell is given one by one.
const LINES_MAX: usize = 16;

const UNKNOWN_TEXT: &str = "a text for a shell that is not known";

/// Looks behind a program that starts others.
pub(super) fn unwrap(command: &Command) -> Unwrapped {
    let mut unwrapped = Unwrapped::default();
    shell::prompts(command, &mut unwrapped);
    environment::set(command, &mut unwrapped);
    let Some(name) = command.name() else {
        unnamed::started(command, &mut unwrapped);
        return unwrapped;
    };
    let arguments = command.arguments();
    environment::named(name, arguments, &mut unwrapped);
    shell::evaluated(name, command, &mut unwrapped);
    starters::started(name, command, &mut unwrapped);
    literal::handed(command, name, &mut unwrapped);
    match name {
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" | "rbash" | "fish" => shell::shell(command, name, &mut unwrapped),
        "eval" => shell::eval(arguments, &mut unwrapped),
        "trap" => shell::trap(arguments, &mut unwrapped),
        "alias" => shell::alias(arguments, &mut unwrapped),
        "history" => shell::history(arguments, &mut unwrapped),
        "fc" if !shell::only_lists(arguments) => unwrapped.doubt(name, "what it runs again is not known"),
        "source" | "." => shell::source(command, name, &mut unwrapped),
        "enable" | "hash" | "shopt" | "bind" | "complete" if !arguments.is_empty() => {
            unwrapped.doubt(name, "it changes what other words mean");
        }
        // The words of a list are expanded, a command or a function is run.
        "compgen"
            if arguments.iter().any(|word| word.known().is_none_or(|text| text.starts_with('-') && text.contains(['C', 'F', 'W']))) =>
        {
            unwrapped.doubt(name, "it may run what it is given");
        }
        "find" | "gfind" => find::find(command, &mut unwrapped),
        "sed" | "gsed" => sed::sed(command, &mut unwrapped),
        "git" => git::git(arguments, &mut unwrapped),
        _ if git::verb_of(name).is_some() => git::git(&git::with_verb(name, arguments), &mut unwrapped),
        "su" | "script" | "flock" | "runuser" if arguments.iter().any(is_text_option) => {
            let at = arguments.iter().position(is_text_option);
            unwrapped.text(at.and_then(|at| arguments.get(at + 1)), name);
        }
        "su" | "script" | "runuser" if arguments.iter().any(|word| word.text.starts_with('-') && word.text.contains('c')) => {
            unwrapped.doubt(name, UNKNOWN_TEXT);
            let texts = arguments.iter().filter_map(Word::known).filter(|text| text.contains(' '));
            unwrapped.inner.extend(texts.map(|text| Inner::Text(text.trim_start_matches("--command=").to_owned())));
        }
        "split" if arguments.iter().any(|word| word.text.starts_with("--f")) => unwrapped.doubt(name, UNKNOWN_TEXT),
        "jobs" | "mapfile" | "readarray" if arguments.iter().any(|word| word.text.starts_with('-') && word.text.contains(['x', 'C'])) => {
            unwrapped.doubt(name, "it may run what it is given");
        }
        _ if name.starts_with("ld-") || name.starts_with("ld.so") => unwrapped.doubt(name, "the program that it loads is not looked at"),
        _ => {
            if let Some(called) = table::find(name, arguments) {
                wrapped(command, &called, &mut unwrapped);
            }
        }
    }
    unwrapped
}

/// Returns what the programs start that a command takes from files.
pub(super) fn in_files(command: &Command) -> Vec<Inner> {
    let started = |(name, program): (&str, &str)| match name {
        "sed" | "gsed" => sed::started_by(program).collect(),
        name => literal::commands(name, std::iter::once(program)),
    };
    command.run_files().flat_map(started).collect()
}

fn is_text_option(word: &Word) -> bool {
    matches!(word.text.as_str(), "-c" | "--command")
}

/// Returns the program that one starts which leaves alone what goes in and out: `nice tee FILE` writes what `tee FILE` does. `None` where it is none.
pub(super) fn behind_starters(command: &Command) -> Option<Command> {
    const REPEATING: [&str; 5] = ["chroot", "entr", "parallel", "watch", "xargs"];
    let mut behind: Option<Command> = None;
    for _ in 0..super::read::WRAPPERS_MAX {
        let command = behind.as_ref().unwrap_or(command);
        let called = command.name().and_then(|name| table::find(name, command.arguments()));
        let Some(called) = called.filter(|called| !REPEATING.contains(&called.wrapper.name)) else { break };
        let scan = Scan::new(command.arguments().get(called.n_before..).unwrap_or_default(), called.wrapper);
        if scan.has_doubt || scan.writes || scan.rest.is_empty() {
            break;
        }
        behind = Some(Command { words: scan.rest.to_vec(), ..command.clone() });
    }
    behind
}

/// Finds the program behind the options of one that starts it.
fn wrapped(command: &Command, called: &Called, unwrapped: &mut Unwrapped) {
    let wrapper = called.wrapper;
    let scan = Scan::new(command.arguments().get(called.n_before..).unwrap_or_default(), wrapper);
    if called.is_far {
        unwrapped.doubt(wrapper.name, "what stands in front of its verb is not looked at");
    }
    if scan.has_doubt {
        unwrapped.doubt(wrapper.name, "its options cannot be told from the program that it starts");
        // A text may be split into a command, and what was taken for the program may be of an option.
        let texts = command.arguments().iter().filter_map(Word::known).filter(|text| text.contains(' '));
        let values = texts.map(|text| text.split_once('=').filter(|_| text.starts_with("--")).map_or(text, |(_, value)| value));
        unwrapped.inner.extend(values.map(|text| Inner::Text(text.to_owned())));
        if let Some(behind) = scan.rest.get(1..).filter(|behind| !behind.is_empty()) {
            unwrapped.inner.push(Inner::Command(Command { words: behind.to_vec(), ..Command::default() }));
        }
    }
    // Behind an option it need not be told for which machine.
    if wrapper.name == "setarch" && !scan.flags.is_empty() {
        let n_before = command.arguments().len() - scan.rest.len();
        let words = command.arguments().get(n_before.saturating_sub(1)..).unwrap_or_default().to_vec();
        unwrapped.inner.push(Inner::Command(Command { words, ..Command::default() }));
    }
    if wrapper.name == "command" && scan.flags.contains(['v', 'V']) {
        return;
    }
    unwrapped.nothing_else = wrapper.does_nothing_else && !scan.writes;
    let assignments = scan.assignments.iter().filter_map(|word| {
        let (name, value) = word.text.split_once('=')?;
        Some(Assignment { name: name.to_owned(), value: Some(Word { text: value.to_owned(), ..(*word).clone() }) })
    });
    let mut inner = Command { words: scan.rest.to_vec(), assignments: assignments.collect(), ..Command::default() };
    // A shell behind it reads the text that was meant for it.
    let texts = command.redirections.iter().filter(|redirection| matches!(redirection.operator.as_str(), "<<" | "<<<"));
    inner.redirections.extend(texts.cloned());
    // So does one behind a pipe; these read that themselves.
    inner.given = command.given.clone().filter(|_| !matches!(wrapper.name, "parallel" | "xargs"));
    if wrapper.name == "parallel" {
        unwrapped.doubt("parallel", "what it makes of its words, or of lines that it reads, is not known");
    }
    let Some(program) = inner.words.first() else { return };
    if program.text.starts_with('-') || program.text.contains('=') {
        unwrapped.doubt(&program.text, "it is no program's name");
    }
    match wrapper.name {
        "xargs" => {
            place(&mut inner, scan.placeholder.as_deref(), unwrapped);
            // A path that no blank takes apart begins with its place, and is no option.
            let options = &command.arguments()[..command.arguments().len() - scan.rest.len()];
            let is_name = command.takes_branches || (command.takes_paths && scan.flags.contains('0'));
            let is_path = is_name && options.iter().all(leaves_input);
            let taken = if is_path { "./…" } else { "…" };
            if let Some(placeholder) = scan.placeholder.as_deref().filter(|_| is_path) {
                inner.words.iter_mut().filter(|word| word.text == placeholder).for_each(|word| word.text.insert_str(0, "./"));
            }
            if let Some(text) = &command.given {
                let word = |text: &str| Word { kind: WordKind::Known, ..Word::unknown(text) };
                let given = text.split_whitespace().map(|text| text.trim_matches(['\'', '"']));
                let mut told = inner.clone();
                match scan.placeholder.as_deref() {
                    Some(placeholder) => {
                        let put = |known: &Word| given.clone().map(|text| word(&known.text.replace(placeholder, text))).collect();
                        let all = |known: &Word| if known.text.contains(placeholder) { put(known) } else { vec![known.clone()] };
                        told.words = inner.words.iter().flat_map(all).collect();
                    }
                    None => told.words.extend(given.map(word)),
                }
                unwrapped.inner.push(Inner::Command(told));
                shells_of_lines(&inner, text, scan.placeholder.as_deref(), unwrapped);
            }
            inner.words.push(Word::unknown(taken));
        }
        // It hands its words to a shell.
        "watch" if !scan.flags.contains('x') => {
            if inner.words.iter().any(|word| word.kind != WordKind::Known) {
                unwrapped.doubt("watch", UNKNOWN_TEXT);
            }
            // Of a pattern it finds the names, and of most of what expands the text says what it will be.
            let text = inner.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            shell::read_by("sh", &text, unwrapped);
            unwrapped.inner.push(Inner::Text(text));
            return;
        }
        _ => {}
    }
    unwrapped.inner.push(Inner::Command(inner));
}

/// Adds a shell once for each line of what `xargs` reads: with `-I` or `-d` all of a line is one word, and may be its text.
fn shells_of_lines(shell: &Command, text: &str, placeholder: Option<&str>, unwrapped: &mut Unwrapped) {
    if !starts_shell(shell) {
        return;
    }
    let known = |text: String| Word { kind: WordKind::Known, ..Word::unknown(&text) };
    for line in text.lines().filter(|line| line.contains(' ')).take(LINES_MAX) {
        let line = line.replace(['\'', '"'], "");
        let put = |word: &Word| match placeholder.filter(|placeholder| word.text.contains(placeholder)) {
            Some(placeholder) => known(word.text.replace(placeholder, &line)),
            None => word.clone(),
        };
        let mut words: Vec<Word> = shell.words.iter().map(put).collect();
        if placeholder.is_none() {
            words.push(known(line.clone()));
        }
        unwrapped.inner.push(Inner::Command(Command { words, ..Command::default() }));
    }
}

/// Returns whether a command is a shell, or starts one behind a program such as `env`.
fn starts_shell(command: &Command) -> bool {
    let is_shell = |word: &Word| word.known().is_some_and(|text| RUNNING.contains(&text.rsplit('/').next().unwrap_or(text)) && text != ".");
    let Some(name) = command.name() else { return false };
    RUNNING.contains(&name) || (table::find(name, &[]).is_some() && command.arguments().iter().any(is_shell))
}

/// Returns whether a word in front of the program that `xargs` starts leaves it what it reads, and where that ends.
fn leaves_input(word: &Word) -> bool {
    const LONG: [&str; 5] = ["--null", "--no-run-if-empty", "--max-args", "--max-procs", "--verbose"];
    let option = word.text.split('=').next().unwrap_or_default();
    match word.text.strip_prefix('-') {
        Some(rest) if rest.starts_with('-') => LONG.contains(&option),
        Some(rest) => !rest.contains(['a', 'd', 'e', 'E', 'i', 'l']),
        None => true,
    }
}

/// Makes words unknown in which something else is put; in a text for a shell, that could be anything.
fn place(inner: &mut Command, placeholder: Option<&str>, unwrapped: &mut Unwrapped) {
    let Some(placeholder) = placeholder else { return };
    let is_shell = inner.name().is_some_and(|name| name.ends_with("sh") || name == "eval" || name == "env");
    for word in inner.words.iter_mut().filter(|word| word.text.contains(placeholder)) {
        if is_shell && word.text != placeholder {
            unwrapped.doubt(&word.text, "a text for a shell into which names are put");
        }
        word.kind = WordKind::Unknown;
        word.plain = false;
    }
}
