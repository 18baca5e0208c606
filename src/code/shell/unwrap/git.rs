use super::super::Command;
use super::super::Word;
use super::super::WordKind;
use super::Inner;
use super::UNKNOWN_TEXT;
use super::Unwrapped;

/// Settings that start no program, whatever their value.
const HARMLESS: [&str; 26] = [
    "branch.",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "fetch.prune",
    "merge.ff",
    "pull.ff",
    "push.default",
    "rebase.autostash",
    "rerere.",
    "color.",
    "user.name",
    "user.email",
    "advice.",
    "core.quotepath",
    "core.autocrlf",
    "core.longpaths",
    "init.defaultbranch",
    "safe.directory",
    "log.",
    "commit.gpgsign",
    "tag.gpgsign",
    "gc.auto",
    "pull.rebase",
    "merge.conflictstyle",
    "http.sslverify",
];

/// Values that turn something on or off.
const SWITCHES: [&str; 9] = ["always", "auto", "false", "input", "never", "no", "off", "on", "true"];

/// What `git` starts besides itself: programs in settings, in options, and behind some of its verbs.
pub(super) fn git(arguments: &[Word], unwrapped: &mut Unwrapped) {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.known() else { return unwrapped.doubt(&word.text, "it may be a setting that makes git run a program") };
        match text {
            "-c" => {
                setting(arguments.get(at + 1), unwrapped);
                at += 2;
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" => at += 2,
            "--config-env" => {
                unwrapped.doubt(text, "it may make git run a program");
                at += 2;
            }
            _ if text.starts_with("--config-env") || text.starts_with("--exec-path=") => {
                unwrapped.doubt(text, "it may make git run a program");
                at += 1;
            }
            _ if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    if let Some(verb) = arguments.get(at).and_then(Word::known) {
        behind(verb, &arguments[at + 1..], unwrapped);
    }
}

/// Returns the verb of a program in git's own folder: `git-clone` is `git clone`.
pub(super) fn verb_of(name: &str) -> Option<&str> {
    name.strip_prefix("git-").filter(|verb| !verb.is_empty())
}

/// Returns what such a program is given as `git` would be given it.
pub(super) fn with_verb(name: &str, arguments: &[Word]) -> Vec<Word> {
    let verb = verb_of(name).unwrap_or_default();
    let verb = Word { kind: WordKind::Known, ..Word::unknown(verb) };
    [verb].into_iter().chain(arguments.iter().cloned()).collect()
}

fn setting(word: Option<&Word>, unwrapped: &mut Unwrapped) {
    let Some(text) = word.and_then(Word::known) else {
        return unwrapped.doubt("-c", "it may be a setting that makes git run a program");
    };
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let name = name.to_ascii_lowercase();
    alias(&name, value, unwrapped);
    let is_plain_pager = name == "core.pager" && matches!(value, "cat" | "");
    if is_plain_pager || HARMLESS.iter().any(|known| name == *known || (known.ends_with('.') && name.starts_with(known))) {
        return;
    }
    unwrapped.doubt(text, "a setting that may make git run a program");
    // Most settings that git has a shell run say it plainly: `core.editor`, `diff.external`, `filter.NAME.clean`.
    let is_choice = SWITCHES.contains(&value) || value.bytes().all(|byte| byte.is_ascii_digit());
    if !is_choice && !name.starts_with("alias.") && !value.starts_with('!') {
        unwrapped.inner.push(Inner::Text(value.to_owned()));
    }
}

/// Reads what a name of one's own for a command of git stands for.
fn alias(name: &str, value: &str, unwrapped: &mut Unwrapped) {
    let is_alias = name.starts_with("alias.");
    let text = match value.strip_prefix('!') {
        Some(command) => command.to_owned(),
        None if is_alias => format!("git {value}"),
        None => return,
    };
    super::shell::read_by("sh", &text, unwrapped);
    unwrapped.inner.push(Inner::Text(text));
}

/// Looks behind one of git's verbs.
fn behind(verb: &str, arguments: &[Word], unwrapped: &mut Unwrapped) {
    let mut text_of = |options: &[&str], name: &str| given_to(arguments, options, name, unwrapped);
    match verb {
        "rebase" => text_of(&["-x", "--exec"], "rebase --exec"),
        "difftool" => text_of(&["-x", "--extcmd"], "difftool --extcmd"),
        "grep" => pager(arguments, unwrapped),
        "send-email" => text_of(&["--to-cmd", "--cc-cmd", "--header-cmd", "--sendmail-cmd"], "send-email"),
        "push" | "archive" | "send-pack" => text_of(&["--exec", "--receive-pack"], "--exec"),
        "clone" | "fetch" | "pull" | "ls-remote" | "fetch-pack" => {
            if verb == "clone" {
                text_of(&["-u"], "clone -u");
                let pairs = arguments.windows(2).filter(|pair| matches!(pair[0].text.as_str(), "-c" | "--config"));
                let settings: Vec<Word> = pairs.map(|pair| pair[1].clone()).collect();
                let glued = arguments.iter().filter_map(|word| {
                    let text =
                        word.text.strip_prefix("--config=").or_else(|| word.text.strip_prefix("-c").filter(|rest| !rest.is_empty()))?;
                    Some(Word { text: text.to_owned(), ..word.clone() })
                });
                settings.into_iter().chain(glued).for_each(|word| setting(Some(&word), unwrapped));
            }
            let mut text_of = |option: &str| given_to(arguments, &[option], option, unwrapped);
            text_of("--upload-pack");
            text_of("--exec");
            if arguments.iter().any(|word| word.text.starts_with("ext::")) {
                unwrapped.doubt("ext::", "an address that makes git run a program");
            }
        }
        "bisect" if arguments.first().is_some_and(|word| word.text == "run") => {
            unwrapped.inner.push(Inner::Command(Command { words: arguments[1..].to_vec(), ..Command::default() }));
        }
        "submodule" => {
            let Some(at) = arguments.iter().position(|word| word.text == "foreach") else { return };
            let rest = arguments[at + 1..].iter().skip_while(|word| word.text.starts_with("--"));
            match rest.map(Word::known).collect::<Option<Vec<_>>>() {
                Some(words) => {
                    let text = words.join(" ");
                    super::shell::read_by("sh", &text, unwrapped);
                    unwrapped.inner.push(Inner::Text(text));
                }
                None => unwrapped.doubt("submodule foreach", UNKNOWN_TEXT),
            }
        }
        "filter-branch" => {
            for (at, word) in arguments.iter().enumerate().filter(|(_, word)| word.text.ends_with("-filter")) {
                unwrapped.text(arguments.get(at + 1), &word.text);
            }
        }
        "config" => {
            // What is set so, git obeys from then on.
            let asks = |word: &Word| {
                word.text.starts_with("--get") || word.text.starts_with("--unset") || matches!(word.text.as_str(), "get" | "unset")
            };
            let is_name = |word: &Word| word.text.contains('.') && !word.text.starts_with('-');
            let sets = arguments.windows(2).filter(|pair| is_name(&pair[0]) && !arguments.iter().any(asks));
            for pair in sets {
                if pair[0].text.to_ascii_lowercase().starts_with("alias.") {
                    alias(&pair[0].text.to_ascii_lowercase(), &pair[1].text, unwrapped);
                    continue;
                }
                let text = format!("{}={}", pair[0].text, pair[1].text);
                let is_known = pair[0].known().and(pair[1].known()).is_some();
                let kind = if is_known { WordKind::Known } else { WordKind::Unknown };
                setting(Some(&Word { text, kind, ..pair[1].clone() }), unwrapped);
            }
        }
        _ => {}
    }
}

/// Reads the texts that options are given, which a shell takes.
fn given_to(arguments: &[Word], options: &[&str], name: &str, unwrapped: &mut Unwrapped) {
    for (at, word) in arguments.iter().enumerate() {
        match word.text.split_once('=') {
            Some((option, value)) if options.contains(&option) => {
                let value = Word { text: value.to_owned(), ..word.clone() };
                unwrapped.text(Some(&value), name);
            }
            None if options.contains(&word.text.as_str()) => unwrapped.text(arguments.get(at + 1), name),
            _ => {}
        }
    }
}

/// The program that `git grep` opens what it found with: behind the letter or the `=`, or that of the settings.
fn pager(arguments: &[Word], unwrapped: &mut Unwrapped) {
    for word in arguments.iter().take_while(|word| word.text != "--") {
        let text = word.text.as_str();
        let (option, value) = text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
        let is_long = option.len() > 3 && "--open-files-in-pager".starts_with(option);
        let short = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.split_once('O'));
        let Some(program) = short.map(|(_, program)| program).or_else(|| is_long.then(|| value.unwrap_or_default())) else { continue };
        if program.is_empty() {
            unwrapped.doubt(text, "it starts the program that git's settings name");
        } else {
            unwrapped.text(Some(&Word { text: program.to_owned(), ..word.clone() }), text);
        }
    }
}
