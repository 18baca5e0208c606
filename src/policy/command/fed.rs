//! Lists of names that are handed to what takes files away, and that nobody can read or nothing chose: they may name every file there is.

use std::collections::BTreeSet;
use std::collections::HashMap;

use super::finding;
use super::ground::Ground;
use super::place;
use super::taking::in_a_shell;
use super::taking::takes;
use super::taking::written_over;
use super::words;
use podbay_code::shell;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// What `grep` finds in every line.
const IN_EVERY_LINE: [&str; 7] = ["", ".", ".*", "^", "$", "^.*$", "*"];
/// Programs that say something else than the names of files in the project, or one name that they are asked for.
const SAYING: [&str; 20] = [
    "basename",
    "brew",
    "cargo",
    "command",
    "date",
    "gcc",
    "go",
    "hostname",
    "id",
    "mktemp",
    "nproc",
    "pgrep",
    "pidof",
    "pkg-config",
    "rustc",
    "seq",
    "type",
    "uname",
    "which",
    "whoami",
];
/// Programs that say the names they are given, or what those lead to.
const NAMING: [&str; 8] = ["dir", "dirname", "echo", "ls", "printf", "readlink", "realpath", "stat"];

/// Options by which git names the files of a commit.
const LISTING: [&str; 2] = ["--name-only", "--name-status"];

/// The longest substitution that is read once more.
const INSIDE_MAX: usize = 1024;

/// Returns the commands that take away what such a list names, each with its place and why it is blocked.
pub(super) fn blocked(script: &Script, grounds: &[Ground]) -> Vec<(usize, String)> {
    let mut blocked = Vec::new();
    let placed = || script.commands.iter().zip(grounds);
    let may_take =
        |(command, ground): (&Command, &Ground)| takes(command, ground) || writes_to_unknown(command) || in_a_shell(command, ground);
    if !placed().any(may_take) {
        return blocked;
    }
    let mut feeding = Feeding::default();
    for value in &script.values {
        if grounds.first().is_some_and(|ground| is_unchosen(&value.word, ground)) {
            feeding.variables.insert(&value.variable);
        }
    }
    for (at, (command, ground)) in placed().enumerate() {
        let is_chosen = feeding.take(command, script.commands.get(at + 1), ground);
        // What is given is put in its place, and judged there.
        if is_feeder(command) && command.given.is_none() && !is_chosen {
            let behind = script.commands[at + 1..].iter().take_while(|behind| behind.is_started);
            let placeholder = placeholder(command);
            let is_part = |inner: &Command| placeholder.is_some_and(|placeholder| names_parts(inner, placeholder, ground));
            let inner = behind.enumerate().find(|(_, inner)| takes(inner, ground) && !is_part(inner));
            let shell = || script.commands.get(at + 1).filter(|inner| in_a_shell(inner, ground));
            blocked.extend(inner.and_then(|(n, inner)| Some((at + 1 + n, reason(inner.name()?)))));
            blocked.extend(shell().map(|_| (at + 1, reason("what the shell runs"))));
        }
        if matches!(command.name(), Some("fd" | "fdfind"))
            && !fd_chooses(command.arguments())
            && let Some(inner) = script.commands.get(at + 1).filter(|inner| inner.is_started && takes(inner, ground))
        {
            blocked.extend(inner.name().map(|name| (at + 1, reason(name))));
        }
        if takes(command, ground)
            && let Some(name) = command.name()
            && command.arguments().iter().any(|word| feeding.feeds(word, ground) || (!word.quoted && is_unchosen(word, ground)))
        {
            blocked.push((at, reason(name)));
        }
        if written_over(command).any(|target| feeding.feeds(target, ground)) {
            blocked.push((at, reason("what writes over files")));
        }
        feeding.pass(command, is_chosen, ground);
    }
    blocked
}

fn reason(name: &str) -> String {
    format!("{name} is given a list that cannot be read, which may name the whole project; name the files, or choose them with `find`")
}

fn writes_to_unknown(command: &Command) -> bool {
    written_over(command).any(|target| target.kind == WordKind::Unknown)
}

fn is_feeder(command: &Command) -> bool {
    matches!(command.name(), Some("xargs" | "gxargs" | "parallel"))
}

/// Returns what `xargs -I{}` puts each name in the place of, where no other option of it says otherwise.
fn placeholder(command: &Command) -> Option<&str> {
    let mut words = command.arguments().iter().filter(|_| command.name() == Some("xargs"));
    let mut placeholder = None;
    while let Some(option) = words.next()?.known().filter(|text| text.starts_with('-')) {
        match option {
            "-0" | "-r" | "-t" | "--null" | "--no-run-if-empty" | "--verbose" => {}
            "-P" | "-a" => {
                words.next()?.known()?;
            }
            _ if option.strip_prefix("-P").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit())) => {}
            "-I" if placeholder.is_none() => placeholder = Some(words.next()?.known()?),
            _ => placeholder = Some(option.strip_prefix("-I").filter(|rest| placeholder.is_none() && !rest.is_empty())?),
        }
    }
    placeholder
}

/// Returns whether each name is put into a longer one: behind a folder of the project, or in front of an ending.
fn names_parts(command: &Command, placeholder: &str, ground: &Ground) -> bool {
    let mut put = command.arguments().iter().filter(|word| word.text.contains(placeholder)).peekable();
    put.peek().is_some()
        && put.all(|word| {
            let (before, behind) = word.text.split_once(placeholder).unwrap_or_default();
            is_part(before, &behind.replace(placeholder, ""), ground)
        })
}

/// Returns whether a name between these two certainly is no more than a part of what lies in the project: `out/NAME`, `NAME.bak`.
fn is_part(before: &str, behind: &str, ground: &Ground) -> bool {
    let has_ending = !behind.contains(['$', '`']) && behind.chars().any(|c| !"/.*?".contains(c));
    let is_plain = !before.starts_with('-') && before.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c));
    has_ending || (is_plain && !before.is_empty() && place::precious(&format!("{before}*"), ground).is_none())
}

/// What goes from one command to another.
#[derive(Default)]
struct Feeding<'a> {
    /// Whether what goes through a pipe was chosen by something that can be read; by the number of the shell.
    pipes: HashMap<usize, bool>,
    /// The same of what a loop, or another group of commands, is given.
    around: Option<bool>,
    /// A file is what goes into all of a pipe, and so into its last command: behind the pipe it counts no more.
    into_pipe: bool,
    /// Variables that hold what was not.
    variables: BTreeSet<&'a str>,
}

impl<'a> Feeding<'a> {
    /// Returns whether what goes into a command was chosen, and notes the variables that it puts that into.
    fn take(&mut self, command: &'a Command, next: Option<&Command>, ground: &Ground) -> bool {
        let piped = command.piped.then(|| self.pipes.remove(&command.shell).unwrap_or_default());
        let redirected = command.redirections.iter().rev().find(|redirection| redirection.reads());
        let file = redirected.and_then(|redirection| redirection.target.as_ref()).map(|target| {
            let inside = target.text.strip_prefix("<(").and_then(|text| text.strip_suffix(')'));
            inside.is_some_and(|text| text_chooses(text, ground))
        });
        // A file takes the place of the pipe.
        let given = file.or(piped).map(|is_chosen| is_chosen && !(self.into_pipe && is_feeder(command)));
        self.into_pipe &= command.piped || command.is_started || next.is_some_and(|next| next.piped || next.is_started);
        if command.words.is_empty() && file == Some(false) {
            self.into_pipe = next.is_some_and(|next| next.name() != Some("read"));
        }
        if command.words.is_empty() && given.is_some() && command.given.is_none() {
            self.around = given;
        }
        if matches!(command.name(), Some("read" | "mapfile" | "readarray")) {
            // Of a longer one not every line was put where the variable stands.
            let is_read = command.given.as_ref().is_some_and(|given| given.lines().count() <= shell::LINES_MAX);
            let is_unread = !is_read && given.or(self.around) == Some(false);
            let names = command.arguments().iter().filter_map(Word::known).filter(|text| !text.starts_with('-'));
            for name in names {
                if is_unread {
                    self.variables.insert(name);
                } else {
                    self.variables.remove(name);
                }
            }
        }
        given.unwrap_or_default()
    }

    fn pass(&mut self, command: &Command, is_chosen: bool, ground: &Ground) {
        self.pipes.insert(command.shell, chooses(command, is_chosen, ground));
    }

    /// Returns whether a word is what such a variable holds: not where it only ends, or begins, a name of the script's own.
    fn feeds(&self, word: &Word, ground: &Ground) -> bool {
        let text = word.text.strip_prefix("./").unwrap_or(&word.text);
        let text = text.strip_prefix("of=").unwrap_or(text);
        let in_here = shell::HERE.iter().find_map(|here| text.strip_prefix(here)?.strip_prefix('/'));
        let text = in_here.map_or(text, |rest| rest.trim_start_matches('/'));
        let Some((before, rest)) = text.split_once('$') else { return false };
        // All that lies in the project may be written with its folder in front.
        let is_whole = before.ends_with('/') && place::precious(&format!("{before}*"), ground).is_some();
        if !before.is_empty() && !is_whole {
            return false;
        }
        let (name, behind) = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}').unwrap_or((rest, "")),
            None => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        };
        let name = name.split('[').next().unwrap_or(name);
        // What has a name of its own in there is not all of it.
        let is_all = behind.is_empty() || (behind.starts_with('/') && behind.chars().all(|c| "/.*?".contains(c)));
        is_all && word.kind == WordKind::Unknown && self.variables.contains(name)
    }
}

/// Returns whether a word is put together from a list of names that nothing which can be read chose: `$(cat list)`.
fn is_unchosen(word: &Word, ground: &Ground) -> bool {
    if word.kind != WordKind::Unknown {
        return false;
    }
    let text = word.text.as_str();
    let inside =
        text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')).or(text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')));
    inside.is_some_and(|inside| !inside.starts_with('(') && !text_chooses(inside, ground))
}

/// Returns whether what a text writes was chosen.
fn text_chooses(text: &str, ground: &Ground) -> bool {
    text.len() <= INSIDE_MAX
        && shell::read(text).commands.iter().fold(false, |is_chosen, command| chooses(command, command.piped && is_chosen, ground))
}

/// Returns whether a command writes names that were chosen, from whether those were that go into it.
fn chooses(command: &Command, is_chosen: bool, ground: &Ground) -> bool {
    let arguments = command.arguments();
    let has = |options: &[&str]| arguments.iter().any(|word| options.iter().any(|option| word.text.starts_with(option)));
    let is_whole = |word: &Word| place::precious(&word.text, ground).is_some();
    match command.name().unwrap_or_default() {
        "find" | "gfind" => finding::chooses(arguments, ground),
        name if NAMING.contains(&name) => {
            let lists_here = matches!(name, "ls" | "dir") && words::operands(arguments).next().is_none();
            let says_itself = lists_here && place::precious("*", ground).is_some();
            let is_here = |word: &Word| name == "dirname" && word.known().is_some_and(|path| !path.contains('/'));
            let named = || words::operands(arguments).any(|word| is_whole(word) || is_here(word));
            !says_itself && !named()
        }
        name if SAYING.contains(&name) => true,
        "fd" | "fdfind" => fd_chooses(arguments),
        "git" => git_chooses(arguments, ground),
        "rg" if has(&["--files"]) && !command.piped => has(&["-g", "--glob", "--iglob", "-t", "--type"]),
        "grep" | "egrep" | "fgrep" | "rg" => {
            let is_inverse =
                arguments.iter().any(|word| is_flag(&word.text, 'v') || word.text == "--invert-match" || is_flag(&word.text, 'L'));
            let looked_for = arguments.iter().find(|word| !word.text.starts_with('-'));
            let is_letter = |text: &str| text.len() == 1 && text.starts_with(char::is_alphanumeric);
            // Whole kinds of work, as `git status --short` marks them.
            let is_mark = |text: &str| text.starts_with('^') && text[1..].chars().all(|c| "?MADRCU!\\[] .*".contains(c));
            let is_in_all = |text: &str| {
                is_letter(text)
                    || is_mark(text)
                    || (text.contains("??") && is_mark(&format!("^{text}")))
                    || IN_EVERY_LINE.contains(&text)
                    || finding::is_found_in_all(text)
            };
            is_chosen || lists_among_named(arguments, ground) || (!is_inverse && looked_for.is_some_and(|word| !is_in_all(&word.text)))
        }
        // A pattern between slashes lets some pass.
        "awk" | "gawk" | "mawk" | "sed" | "perl" => is_chosen || arguments.iter().any(|word| has_pattern(&word.text)),
        _ => is_chosen,
    }
}

/// Returns whether `grep` says which of the files it has whose names its words choose: `grep -L x *.txt`.
fn lists_among_named(arguments: &[Word], ground: &Ground) -> bool {
    const LONG: [&str; 4] = ["--files-with-matches", "--files-without-match", "--null", "--recursive"];
    let is_known = |text: &str| match text.strip_prefix('-') {
        Some(long) if long.starts_with('-') => LONG.contains(&text),
        Some(letters) => !letters.is_empty() && letters.chars().all(|c| "EFHLPRZhilqrsvwxz".contains(c)),
        None => true,
    };
    let lists = |word: &Word| ['l', 'L'].iter().any(|letter| is_flag(&word.text, *letter)) || LONG[..2].contains(&word.text.as_str());
    let mut files = words::operands(arguments).skip(1).peekable();
    let is_choice = |word: &Word| word.kind != WordKind::Unknown && place::precious(&word.text, ground).is_none();
    arguments.iter().all(|word| is_known(&word.text)) && arguments.iter().any(lists) && files.peek().is_some() && files.all(is_choice)
}

/// Returns whether a script has a pattern in it that is no replacement: `/\.o$/`, `$1 ~ /x/`.
fn has_pattern(text: &str) -> bool {
    let script = text.trim_start();
    let is_pattern = |part: &str| part.split_once('/').is_some_and(|(pattern, _)| pattern.len() > 1 && !finding::is_found_in_all(pattern));
    script.strip_prefix('/').is_some_and(is_pattern) || script.split_once("~ /").is_some_and(|(_, behind)| is_pattern(behind))
}

fn fd_chooses(arguments: &[Word]) -> bool {
    const VALUED: [&str; 12] =
        ["-t", "--type", "-d", "--max-depth", "--min-depth", "-E", "--exclude", "-S", "--size", "-c", "--color", "-j"];
    let mut before = "";
    arguments.iter().take_while(|word| !matches!(word.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch")).any(|word| {
        let last = std::mem::replace(&mut before, &word.text);
        let by_ending = matches!(last, "-e" | "--extension");
        let is_pattern = !word.text.starts_with('-') && !VALUED.contains(&last) && !IN_EVERY_LINE.contains(&word.text.as_str());
        by_ending || is_pattern
    })
}

/// Git that lists some of the files: all but `ls-files` and `ls-tree` without a path, and what asks for the project's own folder.
fn git_chooses(arguments: &[Word], ground: &Ground) -> bool {
    let Some((verb, rest)) = arguments.split_first() else { return false };
    let has_path = || words::operands(rest).any(|word| place::precious(&word.text, ground).is_none() && word.text != ":/");
    match verb.text.as_str() {
        "ls-files" => {
            let lists_some = rest.iter().any(|word| {
                let text = word.text.as_str();
                ['d', 'i', 'u', 'k'].iter().any(|letter| is_flag(text, *letter))
                    || ["--deleted", "--ignored", "--unmerged", "--killed"].contains(&text)
            });
            // What git does not keep, or not in that state, is all that is lost for good.
            let is_ignored = rest.iter().any(|word| is_flag(&word.text, 'i') || word.text == "--ignored");
            let lists_kept = rest.iter().any(|word| is_flag(&word.text, 'c') || word.text == "--cached");
            let lists_work = rest.iter().any(|word| {
                ['o', 'm'].iter().any(|letter| is_flag(&word.text, *letter)) || ["--others", "--modified"].contains(&word.text.as_str())
            });
            (lists_some && !lists_kept && (is_ignored || !lists_work)) || has_path()
        }
        "grep" => {
            let names_some = |word: &Word| word.text.len() > 1 && !IN_EVERY_LINE.contains(&word.text.as_str());
            let is_plain = |word: &Word| word.text.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
            let is_inverse = ['v', 'L', 'e', 'f'].iter().any(|letter| rest.iter().any(|word| is_flag(&word.text, *letter)));
            !is_inverse && words::operands(rest).next().is_some_and(|word| names_some(word) && is_plain(word))
        }
        "status" => has_path(),
        "diff" => has_path() || rest.iter().any(|word| word.text.starts_with("--diff-filter=")),
        // Of a commit that says which files it changed, that is all of them.
        "log" | "show" | "whatchanged" | "diff-tree" if rest.iter().any(|word| LISTING.contains(&word.text.as_str())) => {
            let mut paths = rest.iter().skip_while(|word| word.text != "--").skip(1).peekable();
            paths.peek().is_some() && paths.all(|word| word.kind != WordKind::Unknown && place::precious(&word.text, ground).is_none())
        }
        "log" | "show" | "branch" | "tag" | "stash" | "remote" => rest.iter().all(|word| word.kind != WordKind::Unknown),
        _ => false,
    }
}

fn is_flag(text: &str, letter: char) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
}
