use super::super::Command;
use super::super::Word;
use super::Inner;
use super::UNKNOWN_TEXT;
use super::Unwrapped;

/// Settings that start no program, whatever their value.
const HARMLESS: [&str; 16] = [
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

fn setting(word: Option<&Word>, unwrapped: &mut Unwrapped) {
    let Some(text) = word.and_then(Word::known) else {
        return unwrapped.doubt("-c", "it may be a setting that makes git run a program");
    };
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let name = name.to_ascii_lowercase();
    alias(&name, value, unwrapped);
    let is_plain_pager = name == "core.pager" && matches!(value, "cat" | "");
    if !is_plain_pager && !HARMLESS.iter().any(|known| name == *known || (known.ends_with('.') && name.starts_with(known))) {
        unwrapped.doubt(text, "a setting that may make git run a program");
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
    let mut text_of = |options: &[&str], name: &str| {
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
    };
    match verb {
        "rebase" => text_of(&["-x", "--exec"], "rebase --exec"),
        "difftool" => text_of(&["-x", "--extcmd"], "difftool --extcmd"),
        "clone" | "fetch" | "pull" | "ls-remote" => {
            if verb == "clone" {
                text_of(&["-u"], "clone -u");
            }
            text_of(&["--upload-pack"], "--upload-pack");
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
            for pair in arguments.windows(2) {
                alias(&pair[0].text.to_ascii_lowercase(), &pair[1].text, unwrapped);
            }
        }
        _ => {}
    }
}
