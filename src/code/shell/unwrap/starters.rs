//! Programs that start others by way of an option, or in ways that nobody follows here.
//!
//! What they start is in doubt. What of it stands in their words is read besides, so that a rule speaks of it by its name.

use super::super::Command;
use super::super::Word;
use super::super::WordKind;
use super::Inner;
use super::Unwrapped;
use super::shell::read_by;

/// Programs that are there to start another one, or that their own scripts make start one.
const STARTERS: [&str; 65] = [
    "at",
    "batch",
    "bwrap",
    "capsh",
    "catchsegv",
    "cgexec",
    "chpst",
    "cpulimit",
    "crontab",
    "daemon",
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "dc",
    "dtach",
    "dumb-init",
    "ed",
    "emacs",
    "envdir",
    "envuidgid",
    "ex",
    "expect",
    "fakechroot",
    "fakeroot",
    "faketime",
    "firejail",
    "gdb",
    "hyperfine",
    "lldb",
    "logsave",
    "ltrace",
    "m4",
    "newgrp",
    "nodemon",
    "nsenter",
    "numactl",
    "nvim",
    "perf",
    "pexec",
    "proot",
    "rlwrap",
    "rr",
    "run-parts",
    "runcon",
    "runsv",
    "rush",
    "s6-setuidgid",
    "screen",
    "setlock",
    "setuidgid",
    "sg",
    "socat",
    "softlimit",
    "ssh-agent",
    "sshpass",
    "start-stop-daemon",
    "systemd-run",
    "tini",
    "tmux",
    "vi",
    "view",
    "vim",
    "vimdiff",
    "watchexec",
    "xvfb-run",
];

/// Programs that an option makes start another one: letters, and long ones. A long one may be shortened.
const BY_OPTION: [(&str, &str, &[&str]); 16] = [
    ("cc", "", &["-wrapper"]),
    ("clang", "", &["-wrapper"]),
    ("cpio", "", &["--rsh-command"]),
    ("g++", "", &["-wrapper"]),
    ("gcc", "", &["-wrapper"]),
    ("install", "", &["--strip-program"]),
    ("less", "", &["+"]),
    ("man", "PH", &["--pager", "--html"]),
    ("more", "", &["+"]),
    ("rg", "", &["--pre", "--hostname-bin"]),
    ("rsync", "e", &["--rsh", "--rsync-path"]),
    ("scp", "S", &[]),
    ("sftp", "SD", &[]),
    ("sort", "", &["--compress-program"]),
    ("wget", "", &["--use-askpass"]),
    ("zip", "", &["-TT", "--unzip-command"]),
];

/// Options of `tar` that start programs.
const OF_TAR: [&str; 7] = [
    "--to-command",
    "--use-compress-program",
    "--info-script",
    "--new-volume-script",
    "--rsh-command",
    "--rmt-command",
    "--checkpoint-action",
];

/// Folders of programs.
const PROGRAMS: [&str; 5] = ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/"];

const BY_ITSELF: &str = "it may start programs in ways that cannot be read";
const BY_AN_OPTION: &str = "an option that makes it start a program";

/// Looks behind a program of these.
pub(super) fn started(name: &str, command: &Command, unwrapped: &mut Unwrapped) {
    let arguments = command.arguments();
    if STARTERS.contains(&name) && !(name == "crontab" && only_lists_jobs(arguments)) {
        unwrapped.doubt(name, BY_ITSELF);
        inside(arguments, unwrapped);
        return;
    }
    if let Some((_, letters, long)) = BY_OPTION.iter().find(|(known, ..)| *known == name) {
        by_option(arguments, letters, long, unwrapped);
    }
    match name {
        "tar" | "bsdtar" | "gtar" => tar(arguments, unwrapped),
        "fd" | "fdfind" => fd(arguments, unwrapped),
        "ssh" | "scp" | "sftp" => ssh(arguments, unwrapped),
        "make" | "gmake" => make(command, unwrapped),
        "cmake" => cmake(arguments, unwrapped),
        "sqlite3" | "psql" | "mysql" => database(command, unwrapped),
        "apt" | "apt-get" | "apt-cache" => apt(arguments, unwrapped),
        "npm" | "pnpm" | "yarn" => run_env(arguments, unwrapped),
        "cp" | "ln" | "mv" | "install" if arguments.iter().any(is_program) => {
            unwrapped.doubt(name, "it gives a program another name");
        }
        _ => {}
    }
}

/// Settings of `apt` that start programs: `-o APT::Update::Pre-Invoke::=PROGRAM`.
fn apt(arguments: &[Word], unwrapped: &mut Unwrapped) {
    for word in arguments.iter().filter(|word| word.text.contains("::")) {
        given(&word.text, word.text.split_once('=').map(|(_, value)| value).filter(|_| word.kind == WordKind::Known), unwrapped);
    }
}

/// `npm run env -- PROGRAM`, which hands its words to `env` where the project has no script of that name.
fn run_env(arguments: &[Word], unwrapped: &mut Unwrapped) {
    let runs = |pair: &[Word]| matches!(pair[0].text.as_str(), "run" | "run-script") && pair[1].text == "env";
    if let Some(at) = arguments.windows(2).position(runs) {
        let words: Vec<Word> = arguments[at + 1..].iter().filter(|word| word.text != "--").cloned().collect();
        unwrapped.inner.push(Inner::Command(Command { words, ..Command::default() }));
    }
}

/// `crontab -l`, perhaps with the name of a user.
fn only_lists_jobs(arguments: &[Word]) -> bool {
    let words: Vec<Option<&str>> = arguments.iter().map(Word::known).collect();
    matches!(words.as_slice(), [Some("-l")] | [Some("-l"), Some("-u"), Some(_)] | [Some("-u"), Some(_), Some("-l")])
}

/// Reads what stands in the words, wherever that may be: each of the first that could be a program with those behind it, and each that could
/// be a text.
fn inside(arguments: &[Word], unwrapped: &mut Unwrapped) {
    for word in arguments.iter().filter(|word| word.text.contains([' ', '\n'])) {
        text(word.known().map(|text| text.trim_start_matches([':', '!'])), unwrapped);
    }
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|_| at < 4) {
        at += 1;
        // Behind an option the program may have its own dashes in front of its words.
        if word.text.starts_with('-') {
            continue;
        }
        let words: Vec<Word> =
            arguments[at - 1..].iter().enumerate().filter(|(n, word)| *n == 0 || word.text != "--").map(|(_, word)| word.clone()).collect();
        unwrapped.inner.push(Inner::Command(Command { words, ..Command::default() }));
    }
}

fn text(text: Option<&str>, unwrapped: &mut Unwrapped) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        read_by("sh", text, unwrapped);
        unwrapped.inner.push(Inner::Text(text.to_owned()));
    }
}

/// Reads the program that an option is given; one that is not known is in doubt.
fn given(option: &str, value: Option<&str>, unwrapped: &mut Unwrapped) {
    match value.filter(|value| !value.is_empty()) {
        Some(value) => text(Some(value), unwrapped),
        None => unwrapped.doubt(option, BY_AN_OPTION),
    }
}

/// Finds options that start programs, and reads what they are given.
fn by_option(arguments: &[Word], letters: &str, long: &[&str], unwrapped: &mut Unwrapped) {
    for (at, word) in arguments.iter().enumerate() {
        let whole = word.text.as_str();
        let next = || arguments.get(at + 1).and_then(Word::known);
        let (option, value) = whole.split_once('=').map_or((whole, None), |(option, value)| (option, Some(value)));
        let value = value.filter(|_| word.kind == WordKind::Known);
        let is_long = |known: &&str| *known == option || (option.len() > 3 && option.starts_with("--") && known.starts_with(option));
        let short = whole.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.split_once(|c| letters.contains(c)));
        if long.contains(&"+") && whole.starts_with('+') {
            unwrapped.doubt(whole, BY_AN_OPTION);
            text(Some(whole.trim_start_matches(['+', '!', '|'])), unwrapped);
        } else if long.iter().any(is_long) {
            given(whole, value.or_else(next), unwrapped);
        } else if let Some((_, attached)) = short {
            given(whole, if attached.is_empty() { next() } else { word.known().map(|_| attached) }, unwrapped);
        }
    }
}

fn tar(arguments: &[Word], unwrapped: &mut Unwrapped) {
    for (at, word) in arguments.iter().enumerate() {
        let whole = word.text.as_str();
        let (option, value) = whole.split_once('=').map_or((whole, None), |(option, value)| (option, Some(value)));
        let value = value.filter(|_| word.kind == WordKind::Known);
        let next = || arguments.get(at + 1).and_then(Word::known);
        if whole.starts_with("--") {
            let Some(known) = OF_TAR.iter().find(|known| option.len() > 4 && known.starts_with(option)) else { continue };
            let value = value.or_else(next);
            if *known != "--checkpoint-action" {
                given(option, value, unwrapped);
            } else if value.is_none_or(|value| value.starts_with("exec")) {
                given(option, value.and_then(|value| value.strip_prefix("exec=")), unwrapped);
            }
            continue;
        }
        // The first word is one of letters without a dash, too.
        let Some(bundle) = whole.strip_prefix('-').or((at == 0).then_some(whole)) else { continue };
        let Some((before, attached)) = bundle.split_once(['I', 'F']) else { continue };
        if whole.starts_with('-') && !attached.is_empty() {
            given(whole, word.known().map(|_| attached), unwrapped);
        } else {
            given(whole, next(), unwrapped);
        }
        // Which word is the value of which letter is not certain; nor is which of the letters are a value themselves.
        if !before.is_empty() {
            unwrapped.doubt(whole, BY_AN_OPTION);
        }
    }
}

/// `fd … -x PROGRAM …`, for each file or for all at once.
fn fd(arguments: &[Word], unwrapped: &mut Unwrapped) {
    let mut rest = arguments;
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        let whole = word.text.as_str();
        let (option, value) = whole.split_once('=').map_or((whole, None), |(option, value)| (option, Some(value)));
        let is_long = option.len() > 3 && ["--exec", "--exec-batch"].iter().any(|known| known.starts_with(option));
        let short =
            whole.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.find(['x', 'X']).map(|at| &rest[at + 1..]));
        let attached = match (is_long, short) {
            (true, _) => value,
            (false, Some(attached)) => Some(attached).filter(|attached| !attached.is_empty()),
            (false, None) => continue,
        };
        let known = |text: &str| Word { kind: WordKind::Known, ..Word::unknown(text) };
        let mut words: Vec<Word> = attached.map(known).into_iter().collect();
        words.extend(behind.iter().take_while(|word| word.text != ";").cloned());
        words.iter_mut().filter(|word| word.text.contains('{')).for_each(|word| word.kind = WordKind::Unknown);
        if words.is_empty() {
            unwrapped.doubt(whole, "it names no program");
        } else {
            // Where none of the words is a place for the name, it follows them.
            words.push(Word::unknown("…"));
            unwrapped.inner.push(Inner::Command(Command { words, ..Command::default() }));
        }
        return;
    }
}

/// Settings of `ssh` that start programs on this side.
fn ssh(arguments: &[Word], unwrapped: &mut Unwrapped) {
    for (at, word) in arguments.iter().enumerate() {
        let whole = word.text.as_str();
        let before = at.checked_sub(1).and_then(|at| arguments.get(at)).map_or("", |word| word.text.as_str());
        let setting = whole.strip_prefix("-o").unwrap_or(whole);
        let is_setting = whole.starts_with("-o") || before.ends_with('o') && before.starts_with('-');
        if is_setting && setting.to_ascii_lowercase().contains("command") {
            given(whole, setting.split_once(['=', ' ']).map(|(_, value)| value).filter(|_| word.kind == WordKind::Known), unwrapped);
        } else if whole.starts_with("-F") {
            unwrapped.doubt(whole, "what is in the file that it reads is not known");
        }
    }
}

/// `make` that is given its rules with the command, and not by a file.
fn make(command: &Command, unwrapped: &mut Unwrapped) {
    let arguments = command.arguments();
    for (at, word) in arguments.iter().enumerate() {
        let whole = word.text.as_str();
        let option = whole.split('=').next().unwrap_or(whole);
        let before = at.checked_sub(1).and_then(|at| arguments.get(at)).map_or("", |word| word.text.as_str());
        // Long options may be shortened, and letters may stand together.
        let is_long = |option: &str| option.len() > 3 && ["--file", "--makefile"].iter().any(|known| known.starts_with(option));
        let letters = |text: &str| text.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains('f'));
        let names_file = is_long(before) || (letters(before) && before.ends_with('f')) || letters(whole) || is_long(option);
        let attached = whole.split_once('=').filter(|_| is_long(option)).map(|(_, file)| file);
        let file = attached.or_else(|| whole.split_once('f').filter(|_| letters(whole)).map(|(_, file)| file)).unwrap_or(whole);
        let file = file.trim_start_matches("./");
        let is_given = file.contains("<(")
            || matches!(file, "-" | "/dev/stdin" | "/dev/tty")
            || file.starts_with("/dev/fd/")
            || file.starts_with("/proc/");
        let evaluates = whole.starts_with("-E") || (option.len() > 3 && "--eval".starts_with(option));
        let computes = whole.contains("$(") || whole.contains("${") || whole.starts_with("SHELL") || whole.starts_with(".SHELLFLAGS");
        if (names_file && is_given) || evaluates || (computes && word.kind == WordKind::Known) {
            unwrapped.doubt(whole, "rules that it is given here are not read");
        }
        if names_file
            && is_given
            && let Some(rules) = &command.given
        {
            unwrapped.inner.extend(recipes(rules).into_iter().map(Inner::Text));
        }
    }
}

/// Returns the commands of rules for `make`, as the shell gets them.
pub(in crate::shell) fn recipes(rules: &str) -> Vec<String> {
    let recipe = |line: &str| {
        let behind_colon = || line.split_once(':').and_then(|(_, behind)| behind.split_once(';')).map(|(_, recipe)| recipe.to_owned());
        let recipe = line.strip_prefix('\t').map(ToOwned::to_owned).or_else(behind_colon)?;
        Some(recipe.trim_start_matches(['@', '-', '+', ' ']).replace("$$", "$"))
    };
    // What `printf` would make of it is not made here.
    let rules = rules.replace("\\t", "\t").replace("\\n", "\n");
    rules.lines().take(RECIPES_MAX).filter_map(recipe).collect()
}

/// Most lines of rules that are looked through.
const RECIPES_MAX: usize = 64;

/// `cmake -E`, which starts programs and removes files by itself.
fn cmake(arguments: &[Word], unwrapped: &mut Unwrapped) {
    let [flag, verb, rest @ ..] = arguments else { return };
    if flag.text != "-E" {
        return;
    }
    let known = |text: &str| Word { kind: WordKind::Known, ..Word::unknown(text) };
    let words = match verb.text.as_str() {
        "rm" | "remove" | "remove_directory" => {
            let recursive = (verb.text == "remove_directory").then(|| known("-r"));
            [known("rm")].into_iter().chain(recursive).chain(rest.iter().cloned()).collect()
        }
        "env" => [known("env")].into_iter().chain(rest.iter().cloned()).collect(),
        "time" => rest.to_vec(),
        "chdir" => rest.get(1..).unwrap_or_default().to_vec(),
        _ => return,
    };
    unwrapped.inner.push(Inner::Command(Command { words, ..Command::default() }));
}

/// Programs that ask a database and have commands of their own, some of which a shell reads.
fn database(command: &Command, unwrapped: &mut Unwrapped) {
    let acts = |text: &str| [".sh", ".sy", "\\!", "system ", "|", "edit("].iter().any(|mark| text.contains(mark));
    let texts = command.redirections.iter().filter_map(|redirection| redirection.target.as_ref());
    let words = command.arguments().iter().chain(texts).map(|word| word.text.as_str()).chain(command.given.as_deref());
    if let Some(found) = words.into_iter().find(|text| acts(text)) {
        unwrapped.doubt(found, "a command of its own that may start a program");
    }
}

/// Returns whether a word names a program of the system, as a file.
fn is_program(word: &Word) -> bool {
    const ASKED: [&str; 6] = ["$(which ", "$(command -v ", "$(type -p ", "$(type -P ", "`which ", "`command -v "];
    match word.kind {
        WordKind::Unknown => ASKED.iter().any(|asked| word.text.contains(asked)),
        WordKind::Known | WordKind::Pattern => {
            PROGRAMS.iter().any(|folder| word.text.strip_prefix(folder).is_some_and(|rest| !rest.is_empty()))
        }
    }
}
