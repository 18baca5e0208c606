//! Protected names among a command's words, as far as they can be read.

use std::collections::BTreeSet;
use std::ops::Range;

use super::blocked::takes_all;
use super::git;
use super::ground::Ground;
use super::in_texts;
use super::place::precious;
use super::words;
use podbay_code::shell;
use podbay_code::shell::Command;
use podbay_code::shell::Redirection;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;
use podbay_code::shell::files_of_sed;
use podbay_wire::BytesPath;
use podbay_wire::protected_name;

/// Programs whose words are no files that they open.
const SAYS: [&str; 9] = ["echo", "printf", "test", "[", "[[", "export", ":", "set", "shopt"];
/// Programs that tell of a file no more than its name, size and date.
const LISTS: [&str; 8] = ["ls", "stat", "basename", "dirname", "realpath", "readlink", "which", "type"];
const SECRET_FOLDERS: [&str; 4] = [".aws", ".ssh", ".gnupg", ".kube"];
/// Verbs of git that do no more either.
const GIT_LISTS: [&str; 4] = ["check-ignore", "check-attr", "ls-files", "status"];
/// Programs that write or remove what they name. Of others only names that hold secrets count: the word `credentials` given to `cargo test`
/// is no file.
const WRITES: [&str; 24] = [
    "rm", "mv", "cp", "ln", "tee", "touch", "install", "truncate", "dd", "chmod", "chown", "chgrp", "shred", "unlink", "rmdir", "mkdir",
    "sed", "rsync", "scp", "unzip", "vim", "vi", "nano", "patch",
];
/// Options by which many programs are told the file that they write.
const OUTPUTS: [&str; 7] = ["-keyout", "-o", "-out", "--keyout", "--out", "--output", "--output-document"];
/// Programs that show all of what they read.
const SHOWS: [&str; 19] = [
    "cat", "tac", "head", "tail", "less", "more", "nl", "od", "xxd", "hexdump", "hd", "strings", "base64", "base32", "paste", "rev",
    "fold", "expand", "pr",
];
/// Names that patterns are tried on: `cat .e*` is about `.env`.
const TRIED: [&str; 7] = [".env", ".netrc", ".npmrc", ".ssh", ".aws", "id_rsa", "id_ed25519"];

/// Names that have nothing to hide.
const ORDINARY: [&str; 5] = ["a.txt", "src/main.rs", "lib/index.js", "README.md", "Makefile"];

/// Returns the protected names that a command reads or writes, by name or by standing in a protected folder.
pub(super) fn names(command: &Command, ground: &Ground, only_reads: bool) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for redirection in &command.redirections {
        let Some(target) = &redirection.target else { continue };
        // A pattern that fits one name alone stands for that.
        if target.kind == WordKind::Pattern && (redirection.writes() || redirection.reads()) {
            tried(target, &mut names);
        }
        if redirection.writes() {
            look(&target.text, Kept::All, &mut names);
        } else if redirection.reads() {
            look(&target.text, Kept::Secrets, &mut names);
        }
    }
    // Where git writes what it does, and what it keeps in mind.
    let is_written = |name: &str| name.starts_with("GIT_TRACE") || name == "GIT_INDEX_FILE";
    let set = command.assignments.iter().filter(|set| is_written(&set.name)).filter_map(|set| Some(set.value.as_ref()?.text.as_str()));
    let words = command.arguments().iter().filter_map(|word| word.text.split_once('=')).filter(|(name, _)| is_written(name));
    set.chain(words.map(|(_, value)| value)).for_each(|path| look(path, Kept::All, &mut names));
    // What `find` removes itself.
    let removes =
        || command.arguments().iter().any(|word| word.text == "-delete") && !command.arguments().iter().any(|word| word.text.contains('['));
    if matches!(command.name(), Some("find" | "gfind")) && removes() {
        names.extend(looked_for(command));
    }
    // What a patch says that it changes.
    for path in shell::patched(command) {
        look(path, Kept::All, &mut names);
    }
    let name = command.name().unwrap_or_default();
    // Of a folder full of secrets the names alone say something.
    if LISTS.contains(&name) {
        let mut listed = BTreeSet::new();
        command.arguments().iter().for_each(|word| look(&word.text, Kept::Secrets, &mut listed));
        names.extend(listed.into_iter().filter(|name| SECRET_FOLDERS.contains(&name.to_lowercase().as_str())));
    }
    // What a program of `awk` opens, or gives to a shell.
    for (text, is_written) in shell::named_by_awk(command) {
        let kept = if is_written { Kept::All } else { Kept::Secrets };
        text.split_whitespace().for_each(|part| look(part, kept, &mut names));
    }
    let is_sed = |name: &str| matches!(name, "sed" | "gsed");
    let scripts = command.run_files().filter(|(name, _)| is_sed(name)).map(|(_, script)| script);
    let scripts = scripts.chain(shell::given_to_sed(command).filter(|_| is_sed(name)));
    scripts.flat_map(files_of_sed).for_each(|file| look(file, Kept::All, &mut names));
    names.extend(in_texts::names(command));
    // What `xargs` is given it may read itself.
    if !opens_words(command) || (command.starts_another && name != "xargs") {
        return names;
    }
    names.extend(ground.secret());
    names.extend(shown(command, ground));
    let is_moved = || name == "git" && command.arguments().iter().any(|word| word.text == "mv");
    let kept = if !only_reads && (WRITES.contains(&name) || is_moved()) { Kept::All } else { Kept::Secrets };
    let mut skip = false;
    let looked_for = searched(command);
    let left_out = left_out(command);
    for (at, word) in command.arguments().iter().enumerate() {
        let text = word.text.as_str();
        // What is made: `openssl req -keyout server.key`, `-out=server.key`, `sort -oserver.key`.
        let before = at.checked_sub(1).map_or("", |at| command.arguments()[at].text.as_str());
        let own = text.split_once('=').map_or("", |(option, _)| option);
        let glued = if text.contains('=') { kept } else { kept_of(text.get(..2).unwrap_or_default(), kept, only_reads) };
        let kept = kept_of(before, kept_of(own, kept, only_reads), only_reads);
        if std::mem::take(&mut skip) || looked_for == Some(at) || left_out.contains(&at) {
            continue;
        }
        // What is left out, or only a pattern for names.
        let option = text.split('=').next().unwrap_or(text);
        let leaves_out = ["--exclude", "--ignore", "--glob", "--iglob", "--include"].iter().any(|known| option.starts_with(known))
            || matches!(option, "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-g" | "-m" | "--message");
        // Of these the program reads.
        let takes_in = ["--include", "--glob", "--iglob", "-g"].contains(&option) && matches!(name, "grep" | "egrep" | "fgrep" | "rg");
        if takes_in {
            let next = command.arguments().get(at + 1).map(|word| word.text.as_str());
            let value = text.split_once('=').map(|(_, value)| value).or(next).unwrap_or_default();
            pattern(value, &mut names);
        }
        if leaves_out {
            skip = !text.contains('=');
            continue;
        }
        let value = if text.starts_with('-') || name == "dd" { text.split_once('=').map_or("", |(_, value)| value) } else { text };
        // `xargs -a.env`.
        if text.starts_with('-') && !text.starts_with("--") {
            look(text.get(2..).unwrap_or_default(), glued, &mut names);
        }
        // A script of sed names files, too; what is none names nothing that is protected, or is looked at anyway.
        if matches!(name, "sed" | "gsed") {
            let script = if text.starts_with("--") { value } else { text.strip_prefix("-e").unwrap_or(text) };
            for file in files_of_sed(script) {
                look(file, kept, &mut names);
            }
        }
        // `curl -d @.env`, `-F file=@.env`, `host:.env`.
        for part in value.split(['@', ':', '=']) {
            look(part, kept, &mut names);
        }
        if word.kind == WordKind::Pattern {
            tried(word, &mut names);
        }
        // `${x:-.env}`, `$(echo .env)`.
        if word.kind == WordKind::Unknown && (text.contains("${") || text.contains("$(echo ") || text.contains("$(printf ")) {
            let parts = text.split(['{', '}', ':', '-', '=', '+', ' ', '"', '\'', '(', ')']);
            parts.for_each(|part| look(part, Kept::Secrets, &mut names));
        }
        // What git takes for a pattern itself.
        if name == "git"
            && let Some((magic, rest)) = text.strip_prefix(":(").and_then(|rest| rest.split_once(')'))
            && !magic.contains("exclude")
        {
            pattern(rest, &mut names);
        }
    }
    names
}

/// Returns a protected name where a command shows whatever lies in a place that may have one.
pub(super) fn shown(command: &Command, ground: &Ground) -> Option<String> {
    let shows = command.name().is_some_and(|name| SHOWS.contains(&name));
    let is_all = |word: &Word| takes_all(word) && precious(&word.text, ground).is_some();
    (shows && command.arguments().iter().any(is_all)).then(|| TRIED[0].to_owned())
}

/// Returns the protected names that loops of a script go through, and that its lists hold.
pub(super) fn values(script: &Script) -> BTreeSet<String> {
    script.values.iter().flat_map(|value| named(&value.word)).collect()
}

/// Returns the protected names that a word may stand for.
pub(super) fn named(word: &Word) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    look(&word.text, Kept::Secrets, &mut names);
    tried(word, &mut names);
    names
}

/// Returns the protected names that patterns stand for where a script has them stand for hidden names, too; each with the place of its command.
pub(super) fn among_hidden(script: &Script) -> Vec<(usize, String)> {
    let says_so = |command: &Command| {
        command.words.iter().any(|word| word.text == "dotglob")
            || command
                .assignments
                .iter()
                .any(|set| set.name == "GLOBIGNORE" && set.value.as_ref().is_none_or(|value| !value.text.is_empty()))
    };
    if !script.commands.iter().any(says_so) {
        return Vec::new();
    }
    let stands_for = |word: &Word, name: &str| {
        let last = word.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        word.kind == WordKind::Pattern && last.starts_with(['*', '?', '[']) && crate::glob::matches(last, name, true)
    };
    let opening = script.commands.iter().enumerate().filter(|(_, command)| may_open(command));
    opening
        .filter_map(|(at, command)| {
            let name = TRIED.iter().find(|name| command.arguments().iter().any(|word| stands_for(word, name)))?;
            Some((at, (*name).to_owned()))
        })
        .collect()
}

/// Returns those of the names that patterns are tried on which a regular expression finds; all of them where it is none.
pub(super) fn found_by(text: &str, is_whole: bool) -> BTreeSet<String> {
    // `find` writes brackets and bars with a backslash in front, and `grep` does so where it is not told otherwise.
    let plain = text.replace("\\(", "(").replace("\\)", ")").replace("\\|", "|");
    let plain = if is_whole { format!("^(?:{plain})$") } else { plain };
    let Ok(regex) = regex::RegexBuilder::new(&plain).case_insensitive(true).size_limit(1 << 18).build() else {
        return TRIED.iter().map(|name| (*name).to_owned()).collect();
    };
    let is_found = |name: &str| regex.is_match(&format!("./{name}")) || regex.is_match(name);
    // It is about other names, or about any at all.
    if ORDINARY.into_iter().any(is_found) {
        return BTreeSet::new();
    }
    TRIED.iter().filter(|name| is_found(name)).map(|name| (*name).to_owned()).collect()
}

/// Returns whether a command's words may be files that it opens.
pub(super) fn may_open(command: &Command) -> bool {
    opens_words(command) || command.redirections.iter().any(Redirection::reads)
}

/// Returns whether a program may open the files among its words.
fn opens_words(command: &Command) -> bool {
    let name = command.name().unwrap_or_default();
    let lists = || match (name, command.arguments()) {
        ("git", [verb, rest @ ..]) => {
            // Names from a file are shown where there is no such file.
            let from_file =
                |word: &Word| word.known().is_none_or(|text| text.starts_with("-X") || (text.starts_with("--") && text.len() > 2));
            let lists = verb.known().is_some_and(|verb| GIT_LISTS.contains(&verb)) && !rest.iter().any(from_file);
            // The file stays, and git no longer keeps what is in it.
            lists || (verb.known() == Some("rm") && git::only_from_index(rest))
        }
        _ => LISTS.contains(&name),
    };
    !SAYS.contains(&name) && !lists()
}

/// Returns the place of the word that `grep` looks for, where that is certain: it is no file.
pub(super) fn searched(command: &Command) -> Option<usize> {
    const LONG: [&str; 12] = [
        "--color",
        "--count",
        "--files-with-matches",
        "--fixed-strings",
        "--hidden",
        "--ignore-case",
        "--invert-match",
        "--line-number",
        "--no-ignore",
        "--quiet",
        "--recursive",
        "--word-regexp",
    ];
    let name = command.name()?;
    let arguments = command.arguments();
    let (skipped, flags) = match (name, arguments.first().map(|word| word.text.as_str())) {
        ("grep" | "egrep" | "fgrep", _) => (0, "abcEFGHhiIlLnoPqrRsTUvwxyzZ"),
        ("rg", _) => (0, "abcFHIilLnNopPqsSuUvwx0"),
        ("git", Some("grep")) => (1, "acEFGHhiIlLnopPqvwWz"),
        _ => return None,
    };
    if words::may_have(arguments.get(skipped..)?, "ef", &["--regexp", "--file"]) {
        return None;
    }
    let mut at = skipped;
    loop {
        let text = arguments.get(at)?.known()?;
        if text == "--" {
            return Some(at + 1);
        }
        let Some(option) = text.strip_prefix('-').filter(|option| !option.is_empty()) else { return Some(at) };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let has_value = ["--include=", "--exclude=", "--exclude-dir=", "--color=", "--colour="].iter().any(|known| text.starts_with(known));
        at += match option.strip_prefix(['A', 'B', 'C', 'm']) {
            Some("") if arguments.get(at + 1)?.known().is_some_and(is_number) => 2,
            Some(number) if is_number(number) => 1,
            _ if option.chars().all(|c| flags.contains(c)) || LONG.contains(&text) || has_value => 1,
            _ => return None,
        };
    }
}

/// Returns the places of the words that `zip` and `unzip` leave out: those behind `-x`, up to the next option or a lone `@`.
fn left_out(command: &Command) -> Range<usize> {
    let arguments = command.arguments();
    let begin = arguments.iter().position(|word| word.known() == Some("-x"));
    let Some(begin) = begin.filter(|_| matches!(command.name(), Some("zip" | "unzip"))) else { return 0..0 };
    let is_name = |word: &&Word| word.kind != WordKind::Unknown && !word.text.starts_with(['-', '@']);
    begin + 1..begin + 1 + arguments[begin + 1..].iter().take_while(is_name).count()
}

/// Returns whether a program that something is piped into takes that for names or for commands.
pub(super) fn takes_names(command: &Command) -> bool {
    const TAKING: [&str; 14] =
        ["xargs", "gxargs", "parallel", "cpio", "tar", "bsdtar", "read", "mapfile", "readarray", "sh", "bash", "dash", "zsh", "busybox"];
    command.name().is_none_or(|name| TAKING.contains(&name))
}

/// Returns the protected names that `find` looks for, but for those that it passes by.
pub(super) fn looked_for(command: &Command) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let arguments = command.arguments();
    let text = |at: usize| arguments[at].text.as_str();
    for (at, word) in arguments.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |at| arguments[at].text.as_str());
        let behind = arguments.get(at + 2).map_or("", |word| word.text.as_str());
        let names_some = matches!(word.text.as_str(), "-name" | "-iname" | "-path" | "-ipath" | "-wholename");
        let is_taken = names_some && !matches!(before, "!" | "-not") && behind != "-prune" && !is_in_pruned_group(arguments, at);
        if let Some(word) = arguments.get(at + 1).filter(|_| is_taken) {
            pattern(&word.text, &mut names);
            if word.text.contains(['*', '?', '[']) && matches!(text(at), "-iname" | "-ipath") {
                pattern(&word.text.to_lowercase(), &mut names);
            }
        }
        if matches!(word.text.as_str(), "-regex" | "-iregex") && !matches!(before, "!" | "-not") && behind != "-prune" {
            names.extend(arguments.get(at + 1).into_iter().flat_map(|word| found_by(&word.text, true)));
        }
    }
    names
}

/// Returns whether a word stands in brackets of `find` that `-prune` follows.
fn is_in_pruned_group(arguments: &[Word], at: usize) -> bool {
    let mut depth = 0_i32;
    for (n, word) in arguments.iter().enumerate().skip(at) {
        match word.text.as_str() {
            "(" => depth += 1,
            ")" if depth > 0 => depth -= 1,
            ")" => return arguments.get(n + 1).is_some_and(|next| next.text == "-prune"),
            _ => {}
        }
    }
    false
}

/// Returns which names count behind an option.
fn kept_of(option: &str, kept: Kept, only_reads: bool) -> Kept {
    if !only_reads && is_output(option) { Kept::All } else { kept }
}

/// Returns whether an option names a file that is written; `-sSo` is one, too.
fn is_output(option: &str) -> bool {
    let is_letters = |letters: &str| letters.bytes().all(|byte| byte.is_ascii_alphabetic()) && letters.ends_with(['o', 'O']);
    OUTPUTS.contains(&option) || option.strip_prefix('-').is_some_and(|letters| letters.len() < 5 && is_letters(letters))
}

/// Looks at a pattern of names that a program is given.
fn pattern(text: &str, names: &mut BTreeSet<String>) {
    look(text, Kept::Secrets, names);
    tried(&Word { text: text.to_owned(), kind: WordKind::Known, plain: false, quoted: false }, names);
}

/// Which protected names count.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    All,
    Secrets,
}

/// Adds the protected name in a path, where it holds a secret.
pub(super) fn secret(path: &str, names: &mut BTreeSet<String>) {
    look(path, Kept::Secrets, names);
}

fn look(text: &str, kept: Kept, names: &mut BTreeSet<String>) {
    // Without one of these no name is protected, and most words have none.
    if !text.contains(['.', '_', 'c', 'C']) {
        return;
    }
    let Some(protected) = protected_name(&BytesPath::from_text(text)) else { return };
    // The box itself keeps these two read-only, and what is made in their place is set aside.
    let is_kept_by_the_box = protected.name.len() < 12 && protected.name.starts_with('.') && !protected.is_secret;
    if protected.is_secret || (kept == Kept::All && !is_kept_by_the_box) {
        names.insert(protected.name);
    }
}

/// Tries a pattern on names that hold secrets, unless it is about any name at all.
fn tried(word: &Word, names: &mut BTreeSet<String>) {
    for part in word.text.split('/') {
        let is_any = part.chars().all(|c| matches!(c, '*' | '?' | '[' | ']'));
        if part.contains(['*', '?', '[']) && !is_any && !words::may_begin_option(word) || part.starts_with(".?") || part.starts_with("?env")
        {
            names.extend(TRIED.iter().filter(|name| matches(part, name)).map(|name| (*name).to_owned()));
        }
    }
}

/// A file pattern, with any list of letters taken for any letter, and no `*` that matches a leading dot.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with(['.', '[']) {
        return false;
    }
    // What begins with a number, such as the folder of a process, is none of them.
    let list = pattern.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or("", |(list, _)| list);
    if !list.is_empty() && list.chars().all(|c| c.is_ascii_digit() || c == '-') && !name.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let mut simple = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let end = if c == '[' { rest.find(']').map_or(1, |at| at + 1) } else { c.len_utf8() };
        simple.push(if c == '[' && end > 1 { '?' } else { c });
        rest = &rest[end..];
    }
    crate::glob::matches(&simple, name, true)
}
