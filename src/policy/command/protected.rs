//! Protected names among a command's words, as far as they can be read.

use std::collections::BTreeSet;

use super::words;
use crate::code::shell::Command;
use crate::code::shell::Word;
use crate::code::shell::WordKind;
use crate::wire::BytesPath;
use crate::wire::protected_name;

/// Programs whose words are no files that they open.
const SAYS: [&str; 8] = ["echo", "printf", "test", "[", "[[", "export", ":", "cd"];
/// Programs that write or remove what they name. Of others only names that hold secrets count: the word `credentials` given to `cargo test`
/// is no file.
const WRITES: [&str; 24] = [
    "rm", "mv", "cp", "ln", "tee", "touch", "install", "truncate", "dd", "chmod", "chown", "chgrp", "shred", "unlink", "rmdir", "mkdir",
    "sed", "rsync", "scp", "unzip", "vim", "vi", "nano", "patch",
];
/// Names that patterns are tried on: `cat .e*` is about `.env`.
const TRIED: [&str; 7] = [".env", ".netrc", ".npmrc", ".ssh", ".aws", "id_rsa", "id_ed25519"];

/// Returns the protected names that a command reads or writes.
pub(super) fn names(command: &Command, only_reads: bool) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for redirection in &command.redirections {
        let Some(target) = &redirection.target else { continue };
        if redirection.writes() {
            look(&target.text, Kept::All, &mut names);
        } else if redirection.reads() {
            look(&target.text, Kept::Secrets, &mut names);
        }
    }
    let name = command.name().unwrap_or_default();
    if SAYS.contains(&name) || command.starts_another {
        return names;
    }
    let kept = match name {
        _ if only_reads => Kept::Secrets,
        _ if WRITES.contains(&name) => Kept::All,
        _ => Kept::Secrets,
    };
    let mut skip = false;
    for word in command.arguments() {
        let text = word.text.as_str();
        if std::mem::take(&mut skip) {
            continue;
        }
        // What is left out, or only a pattern for names.
        let option = text.split('=').next().unwrap_or(text);
        let leaves_out = ["--exclude", "--ignore", "--glob", "--iglob", "--include"].iter().any(|known| option.starts_with(known))
            || matches!(option, "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-g" | "-m" | "--message");
        if leaves_out {
            skip = !text.contains('=');
            continue;
        }
        let value = if text.starts_with('-') || name == "dd" { text.split_once('=').map_or("", |(_, value)| value) } else { text };
        // `curl -d @.env`, `-F file=@.env`, `host:.env`.
        for part in value.split(['@', ':', '=']) {
            look(part, kept, &mut names);
        }
        if word.kind == WordKind::Pattern {
            tried(word, &mut names);
        }
    }
    names
}

/// Which protected names count.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    All,
    Secrets,
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
        if part.contains(['*', '?', '[']) && !is_any && !words::may_be_option(word) || part.starts_with(".?") || part.starts_with("?env") {
            names.extend(TRIED.iter().filter(|name| matches(part, name)).map(|name| (*name).to_owned()));
        }
    }
}

/// A file pattern, with any list of letters taken for any letter, and no `*` that matches a leading dot.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with(['.', '[']) {
        return false;
    }
    let mut simple = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let end = if c == '[' { rest.find(']').map_or(1, |at| at + 1) } else { c.len_utf8() };
        simple.push(if c == '[' && end > 1 { '?' } else { c });
        rest = &rest[end..];
    }
    crate::policy::glob::matches(&simple, name, true)
}
