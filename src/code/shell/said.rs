//! What one command writes for another, as far as its words say it.
//!
//! `PLACE/**` stands for all that lies in a place, also what begins with a dot and what lies deeper.

use super::Command;
use super::LENGTH_MAX;
use super::Redirection;
use super::Word;
use super::WordKind;
use super::fits;
use super::runs::RUNNING;

/// Programs that take what they are given for names, or pass it on.
const TAKING: [&str; 10] = ["xargs", "read", "mapfile", "readarray", "sort", "uniq", "head", "tail", "tee", "shuf"];

/// Programs that write what they read, as it is.
const PASSING: [&str; 2] = ["cat", "tee"];

/// What git keeps all in, which is looked for by that name.
const GIT: &str = ".git";

/// All that git keeps: it lies in any folder, and hidden files are seldom among it.
const TRACKED: &str = "**/*";

/// Returns what a command's input holds: a text that it is given, what the one in front of it writes, or what those around it are given.
pub(super) fn given(command: &Command, before: Option<&Command>, around: Option<&str>) -> Option<String> {
    let takes_names = command.words.is_empty() || command.name().is_some_and(|name| TAKING.contains(&name));
    let reads_commands = command.name().is_some_and(|name| RUNNING.contains(&name));
    // A descriptor of another number is none of its input, so that what is in front of it counts besides.
    let own = command.redirections.iter().rev().find_map(|Redirection { operator, target }| {
        let target = target.as_ref()?;
        let names = |text: Option<&str>| text.filter(|_| takes_names).and_then(written_by);
        match operator.as_str() {
            "<" => names(target.text.strip_prefix("<(").and_then(|text| text.strip_suffix(')'))),
            "<<" | "<<<" => target.known().map(ToOwned::to_owned).or_else(|| names(substituted(&target.text))),
            _ => None,
        }
    });
    // A file takes the place of what is piped.
    let last = command.redirections.iter().rev().find(|redirection| redirection.operator.starts_with('<'));
    if own.is_none() && last.is_some_and(Redirection::reads) && takes_names && !command.words.is_empty() {
        return None;
    }
    own.or_else(|| before.and_then(|before| said(before, takes_names)))
        .or_else(|| around.filter(|_| (takes_names && !command.words.is_empty()) || reads_commands).map(ToOwned::to_owned))
}

/// Returns the text that goes through a pipe behind a command where something expands in it: to a shell it says most of what it will be. `passing` is
/// what goes into it.
pub(super) fn passed(command: &Command, passing: Option<String>) -> Option<String> {
    if matches!(command.name(), Some("echo" | "printf")) && command.arguments().iter().any(|word| word.kind == WordKind::Unknown) {
        return Some(as_written(command));
    }
    if !passes(command) {
        return None;
    }
    match command.redirections.iter().rev().find(|redirection| redirection.operator.starts_with('<')) {
        Some(given) if given.operator == "<<" => given.target.as_ref().map(|target| target.text.clone()),
        Some(_) => None,
        None => passing.filter(|_| command.piped),
    }
}

/// Returns the words that a command writes, where something expands in them: as they are written.
pub(super) fn as_written(command: &Command) -> String {
    let is_option = |word: &&Word| matches!(word.text.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en" | "--");
    let words: Vec<String> = command.arguments().iter().skip_while(is_option).map(|word| word.text.clone()).collect();
    let text = if command.name() == Some("printf") { formatted(&words) } else { words.join(" ") };
    text.replace("\\n", "\n") + "\n"
}

/// Returns whether a command may take such a text for more than names, and does not only pass it on.
pub(super) fn takes_text(command: &Command) -> bool {
    command.piped && !command.name().is_none_or(|name| TAKING.contains(&name)) && !passes(command)
}

fn passes(command: &Command) -> bool {
    command.name().is_some_and(|name| PASSING.contains(&name))
}

/// Returns whether a command without words gives an input to those within it.
pub(super) fn gives(command: &Command) -> bool {
    command.words.is_empty() && command.given.is_some()
}

/// Programs that give paths, or pass them on.
pub(super) const GIVING: [&str; 11] = ["find", "grep", "gfind", "sort", "uniq", "head", "tail", "shuf", "git", "egrep", "fgrep"];

/// Returns whether a command reads what is piped into it, and nothing else in its place.
pub(super) fn takes_what_is_piped(command: &Command) -> bool {
    command.piped && !command.redirections.iter().any(|redirection| redirection.operator.starts_with('<'))
}

/// Returns whether a command writes paths that begin with a place which is named, and nothing else.
pub(super) fn gives_paths(command: &Command) -> bool {
    let arguments = command.arguments();
    match command.name() {
        Some("find" | "gfind") => {
            let prints = |word: &Word| {
                let text = word.text.as_str();
                let is_action =
                    ["-exec", "-ok", "-printf", "-fprint", "-ls", "-fls", "-files0"].iter().any(|action| text.starts_with(action));
                !is_action
            };
            begins_with_a_name(arguments) && arguments.iter().all(prints)
        }
        Some("grep") => lists_files_of_places(arguments),
        Some("sort" | "uniq" | "head" | "tail" | "shuf") => {
            let is_plain = |text: &str| text.strip_prefix('-').is_some_and(|rest| rest.chars().all(|c| "zurfVn0123456789".contains(c)));
            command.takes_paths && arguments.iter().all(|word| word.known().is_some_and(is_plain))
        }
        _ => false,
    }
}

/// Returns whether a command writes the names of branches, with no more than a mark in front of each.
pub(super) fn gives_branches(command: &Command) -> bool {
    let arguments = command.arguments();
    let is_how = |text: &str| {
        let (option, value) = text.split_once('=').unwrap_or((text, ""));
        matches!(option, "-a" | "-r" | "--all" | "--list" | "--remotes" | "--merged" | "--no-merged" | "--contains")
            || option == "--sort"
            || (option == "--format" && matches!(value, "%(refname:short)" | "%(refname)"))
    };
    match command.name() {
        Some("git") => {
            let lists = matches!(arguments.first().and_then(Word::known), Some("branch" | "for-each-ref"));
            lists && arguments[1..].iter().all(|word| word.known().is_some_and(|text| !text.starts_with('-') || is_how(text)))
        }
        // Whole lines, and those that are piped in.
        Some("grep" | "egrep" | "fgrep") => {
            let (options, rest): (Vec<&Word>, Vec<&Word>) = arguments.iter().partition(|word| word.text.starts_with('-'));
            let are_plain = options.iter().all(|word| word.known().is_some_and(|text| text[1..].chars().all(|c| "vEFPiwx".contains(c))));
            command.takes_branches && are_plain && rest.len() == 1
        }
        Some("sort" | "uniq" | "head" | "tail" | "shuf") => {
            let is_plain = |text: &str| text.strip_prefix('-').is_some_and(|rest| rest.chars().all(|c| "urfVn0123456789".contains(c)));
            command.takes_branches && arguments.iter().all(|word| word.known().is_some_and(is_plain))
        }
        _ => false,
    }
}

/// Returns whether `grep` names files below the places that it is given, each ended by a zero byte: `grep -rlZ TEXT src`.
fn lists_files_of_places(arguments: &[Word]) -> bool {
    let Some(n_options) = arguments.iter().position(|word| !word.text.starts_with('-')) else { return false };
    let (options, rest) = arguments.split_at(n_options);
    let letters: String = options.iter().map(|word| word.text.trim_start_matches('-')).collect();
    let are_plain = options.iter().all(|word| word.known().is_some_and(|text| text[1..].chars().all(|c| "rRlLZiwnEFPI".contains(c))));
    let lists = letters.contains(['l', 'L']) && letters.contains('Z');
    are_plain && lists && rest.len() > 1 && rest.iter().all(|word| word.kind != WordKind::Unknown) && begins_with_a_name(&rest[1..])
}

/// Returns whether whatever `find` finds begins as a path does: each place that it is given is known, and none begins with a dash.
pub(super) fn begins_with_a_name(arguments: &[Word]) -> bool {
    let places = arguments.iter().skip_while(|word| matches!(word.text.as_str(), "-H" | "-L" | "-P"));
    let mut places = places.take_while(|word| !word.text.starts_with(['-', '(', '!']));
    places.all(|word| word.kind != WordKind::Unknown && word.text.starts_with(|c: char| c.is_ascii_alphanumeric() || "./~_".contains(c)))
        && !arguments.iter().any(|word| word.kind == WordKind::Unknown || word.text.starts_with("-files0"))
}

/// Returns the patterns that a word stands for in which `ls` lists all of a folder, or `find` finds all in its places.
pub(super) fn listed(word: &Word) -> Option<Vec<Word>> {
    let text = substituted(&word.text).filter(|_| word.kind == WordKind::Unknown)?;
    let command = plain(text)?;
    // Other names that `ls` says are those within what it is given.
    let is_any = |word: &Word| word.text.starts_with('-') || word.text.chars().all(|c| "./*".contains(c));
    let names = match command.name()? {
        "ls" if command.arguments().iter().all(is_any) => if shows_hidden(&command) { "./**" } else { "*" }.to_owned(),
        "find" => found(&command)?,
        "git" if lists_tracked(&command) => TRACKED.to_owned(),
        "echo" | "printf" => said(&command, true)?,
        _ => return None,
    };
    let pattern = |text: &str| Word { text: text.to_owned(), kind: WordKind::Pattern, plain: false, quoted: false };
    Some(names.split_whitespace().map(pattern).collect())
}

/// Returns all that `find` finds, where it chooses nothing among it; what it starts is not looked at.
pub(super) fn found(command: &Command) -> Option<String> {
    let arguments = command.arguments();
    let is_all = |word: &Word| word.text.chars().all(|c| "./*?".contains(c));
    let n_options = arguments.iter().take_while(|word| matches!(word.text.as_str(), "-H" | "-L" | "-P")).count();
    let arguments = &arguments[n_options..];
    let n_places = arguments.iter().take_while(|word| !word.text.starts_with(['-', '(', '!'])).count();
    let (places, rest) = arguments.split_at(n_places);
    // With a test it names some of them, but for one that all names pass.
    let mut rest = rest.iter();
    let (mut finds_git, mut is_deep) = (false, false);
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "-print" | "-print0" | "-depth" | "-xdev" | "-mount" | "-follow" | "-prune" => {}
            "-maxdepth" | "-type" => {
                rest.next();
            }
            "-mindepth" => is_deep = rest.next().is_some_and(|word| !matches!(word.text.as_str(), "0" | "1")),
            "-name" | "-path" | "-iname" => match rest.next() {
                Some(word) if is_all(word) => {}
                Some(word) if word.text.starts_with(".g") && fits(word.text.as_bytes(), GIT.as_bytes()) => finds_git = true,
                _ => return None,
            },
            "-exec" | "-execdir" | "-ok" | "-okdir" => break,
            _ => return None,
        }
    }
    // Those of repositories below.
    if finds_git && is_deep {
        return None;
    }
    let all = if finds_git { GIT } else { "**" };
    let below = |place: &Word| format!("{}/{all}", place.text.trim_end_matches('/'));
    Some(if places.is_empty() { format!("./{all}") } else { places.iter().map(below).collect::<Vec<_>>().join(" ") })
}

/// Returns what a command writes.
fn said(command: &Command, takes_names: bool) -> Option<String> {
    let arguments = command.arguments();
    match command.name()? {
        "echo" | "printf" => {
            let word = |word: &Word| (word.kind != WordKind::Unknown).then(|| word.text.clone());
            let words: Option<Vec<String>> = arguments.iter().map(word).collect();
            let words = words?;
            let text = if command.name() == Some("printf") { formatted(&words) } else { words.join(" ") };
            Some(text.replace("\\n", "\n").replace("\\0", "\n"))
        }
        "cat" if arguments.iter().all(|word| matches!(word.text.as_str(), "-" | "-u")) => command.given.clone(),
        "sort" | "uniq" | "head" | "tail" | "tee" | "shuf" => command.given.clone(),
        "ls" if takes_names => {
            let options = || arguments.iter().filter(|word| word.text.starts_with('-') && !word.text.starts_with("--"));
            let as_they_are = options().any(|word| word.text.contains('d'));
            let all = if shows_hidden(command) { "**" } else { "*" };
            let inside = |word: &Word| match word.kind {
                WordKind::Unknown => None,
                WordKind::Known if !as_they_are => Some(format!("{}/{all}", word.text.trim_end_matches('/'))),
                WordKind::Known | WordKind::Pattern => Some(word.text.clone()),
            };
            let listed: Option<Vec<String>> = arguments.iter().filter(|word| !word.text.starts_with('-')).map(inside).collect();
            let listed = listed?;
            let here = if as_they_are { ".".to_owned() } else { format!("./{all}") };
            Some(if listed.is_empty() { here } else { listed.join(" ") })
        }
        "git" if takes_names && lists_tracked(command) => Some(TRACKED.to_owned()),
        "find" | "gfind" if takes_names && !arguments.iter().any(|word| word.text.starts_with("-exec")) => found(command),
        _ => None,
    }
}

/// Returns whether git lists every file that it keeps.
fn lists_tracked(command: &Command) -> bool {
    let chooses_nothing = |word: &Word| matches!(word.text.as_str(), "-z" | "-c" | "--cached" | "--full-name" | "." | "--" | "*" | ":/");
    matches!(command.arguments(), [verb, rest @ ..] if verb.text == "ls-files" && rest.iter().all(chooses_nothing))
}

/// Returns what `printf` makes of its words, as far as it puts texts in.
pub(super) fn formatted(words: &[String]) -> String {
    let Some((format, values)) = words.split_first() else { return String::new() };
    let n_places = format.matches("%s").count();
    if n_places == 0 {
        return words.join(" ");
    }
    let mut text = String::new();
    for values in values.chunks(n_places) {
        if text.len() > LENGTH_MAX {
            break;
        }
        let mut values = values.iter();
        for (at, part) in format.split("%s").enumerate() {
            text.push_str(if at > 0 { values.next().map_or("", String::as_str) } else { "" });
            text.push_str(part);
        }
    }
    text
}

fn shows_hidden(command: &Command) -> bool {
    let is_option = |text: &str| text.starts_with("--a") || (!text.starts_with("--") && text.starts_with('-') && text.contains(['a', 'A']));
    command.arguments().iter().any(|word| is_option(&word.text))
}

/// Returns what a command writes that is written with plain words alone.
fn written_by(text: &str) -> Option<String> {
    said(&plain(text)?, true)
}

fn substituted(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("$(").and_then(|text| text.strip_suffix(')'));
    inside.or_else(|| text.strip_prefix('`').and_then(|text| text.strip_suffix('`')))
}

/// Takes a text apart that is one command of plain words; quotes are taken off.
fn plain(text: &str) -> Option<Command> {
    // Its errors concern nobody.
    let text = text.trim().trim_end_matches("2>/dev/null");
    if text.contains(['|', '&', ';', '<', '>', '(', '$', '`', '\n']) {
        return None;
    }
    let word = |text: &str| {
        let bare = text.trim_matches(['\'', '"']);
        let kind = if bare.len() == text.len() && bare.contains(['*', '?', '[']) { WordKind::Pattern } else { WordKind::Known };
        Word { text: bare.to_owned(), kind, plain: false, quoted: false }
    };
    let words: Vec<Word> = text.split_whitespace().map(word).collect();
    (!words.is_empty()).then(|| Command { words, ..Command::default() })
}
