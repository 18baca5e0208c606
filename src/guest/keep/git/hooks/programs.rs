//! Which settings of git name programs that it runs, or files that lead it to some, and which paths may be meant by what they say.

use std::collections::BTreeSet;

use super::All;
use super::config::Entry;
use super::is_in_git;
use super::python;
use crate::guest::keep::git::Kind;
use crate::guest::root::join;
use crate::guest::root::split;

/// Longest value that is looked through, and how many paths one may name.
const MAX_VALUE: usize = 20_000;
const MAX_PATHS: usize = 300;
/// How many short options stand together before the value of the last.
const MAX_OPTIONS: usize = 6;

/// What the names of settings end in, of whatever section, whose values git gives to a shell or starts: `gpg.ssh.defaultKeyCommand`,
/// `filter.x.process`, `merge.x.driver`, `credential.helper`, those of later versions and of programs beside git among them.
const PROGRAM_ENDS: [&str; 16] = [
    "askpass",
    "clean",
    "cmd",
    "command",
    "difffilter",
    "driver",
    "editor",
    "external",
    "helper",
    "hook",
    "pager",
    "process",
    "program",
    "smudge",
    "textconv",
    "tunnel",
];

/// Others that do, with their sections; `*`: all keys.
const PROGRAMS: [(&str, &str); 19] = [
    ("browser", "path"),
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "virtualfilesystem"),
    ("difftool", "path"),
    ("instaweb", "httpd"),
    ("instaweb", "modulepath"),
    ("lfs", "args"),
    ("lfs", "path"),
    ("man", "path"),
    ("mergetool", "path"),
    ("pager", "*"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("sendemail", "smtpserver"),
    ("submodule", "update"),
    ("svn", "authorsprog"),
    ("web", "browser"),
    ("alias", "*"),
];

/// Settings whose values are one path: attributes lead to programs, and hooks are copied from the folder.
const FILES: [(&str, &str); 2] = [("core", "attributesfile"), ("init", "templatedir")];

/// Words of a git command that have it run others; the value of an option may be a part of its word.
const RUNNING: [&[u8]; 6] = [b"run", b"foreach", b"filter-branch", b"send-email", b"ext", b"-u"];
const RUNNING_STARTS: [&[u8]; 14] = [
    b"-c",
    b"-x",
    b"-O",
    b"--exec",
    b"--extcmd",
    b"--config",
    b"--open-files-in-pager",
    b"--upload-pack",
    b"--receive-pack",
    b"--template",
    b"--smtp-server",
    b"--module-path",
    b"--httpd",
    b"--authors-prog",
];
const RUNNING_ENDS: [&[u8]; 2] = [b"-filter", b"-cmd"];

/// What begins an address that is a command.
const COMMAND: &[u8] = b"ext::";

/// Programs that take a file's name without its end, and the ends that they try.
const COMPLETING: [&[u8]; 8] = [b"node", b"nodejs", b"bun", b"deno", b"electron", b"ruby", b"ts-node", b"tsx"];
const COMPLETED: [&str; 7] = [".js", ".cjs", ".mjs", ".json", ".node", ".rb", ".ts"];

/// What of a folder interpreters start that are given it.
const STARTED: [&[u8]; 2] = [b"__main__.py", b"index.js"];

/// How many folders of what a working tree's settings name are looked into for what else they name.
const MAX_FOLDERS: usize = 20;

/// Where programs of the machine are: a path in there is not one to the project in disguise.
const SYSTEM: [&[u8]; 9] = [b"/bin/", b"/dev/", b"/etc/", b"/lib/", b"/nix/", b"/proc/", b"/sbin/", b"/snap/", b"/usr/"];

impl All<'_> {
    /// Counts the files of a working tree that settings have git run. They are named where they are new or changed, and not read-only: what the
    /// person has git run is as often as not what they work on.
    pub(super) fn programs(&mut self, tree: &[u8], entries: &[Entry]) {
        let said = entries.iter().flat_map(said).collect();
        self.commands(tree, tree, &said);
    }

    /// Counts what commands name that start in a working tree, where it `counts`, and returns the files among it. `own` is the folder of the
    /// script that they stand in.
    pub(super) fn named(&mut self, tree: &[u8], own: &[u8], said: &BTreeSet<Said>, counts: impl Fn(&Self, &[u8]) -> bool) -> Vec<Vec<u8>> {
        let mut folders = vec![tree.to_vec()];
        if own != tree {
            folders.push(own.to_vec());
        }
        // Where they start, or their script lies, what is not there yet counts as well; and a command may go somewhere first.
        let n_sure = folders.len();
        for one in said {
            if let Said::Path(said) | Said::Word(said) = one
                && let Some(path) = self.place_of(tree, said)
                && self.project.kind(&path) == Some(Kind::Folder)
                && path != tree
                && folders.len() < MAX_FOLDERS
            {
                folders.push(path);
            }
        }
        let mut found = Vec::new();
        for one in said {
            match one {
                Said::Modules(folder) => folders[..n_sure].iter().for_each(|from| self.module_folder(from, folder)),
                Said::Path(said) => {
                    let places = folders.iter().enumerate().filter_map(|(at, from)| Some((self.place_of(from, said)?, at < n_sure)));
                    found.extend(places);
                }
                Said::Word(word) => found.extend(folders.iter().filter_map(|from| Some((self.place_of(from, word)?, false)))),
            }
        }
        found.retain(|(path, _)| counts(self, path));
        for (path, is_path) in &found {
            self.program(path, *is_path);
        }
        let is_file = |path: &Vec<u8>| matches!(self.project.kind(path), Some(Kind::File | Kind::Link));
        found.into_iter().map(|(path, _)| path).filter(is_file).collect()
    }

    fn place_of(&self, from: &[u8], said: &[u8]) -> Option<Vec<u8>> {
        self.place(from, said).filter(|path| !path.is_empty())
    }

    fn place(&self, from: &[u8], said: &[u8]) -> Option<Vec<u8>> {
        self.meant(from, said).or_else(|| self.by_another_way(said).filter(|_| !is_system(said)))
    }

    /// Counts a folder that python looks for modules in; the working tree's own is where a command starts.
    fn module_folder(&mut self, from: &[u8], folder: &[u8]) {
        let path = self.place(from, folder).filter(|path| !is_in_git(path));
        self.modules.extend(path);
    }

    /// `is_path`: whether it counts also where nothing is yet. Of a folder what programs start in it does, and not all else.
    fn program(&mut self, path: &[u8], is_path: bool) {
        match self.project.kind(path) {
            Some(Kind::Folder) => STARTED.iter().for_each(|name| self.say_program(join(path, name))),
            Some(Kind::File | Kind::Link) => self.say_program(path.to_vec()),
            None if is_path => self.say_program(path.to_vec()),
            Some(Kind::Special) | None => {}
        }
    }

    fn say_program(&mut self, path: Vec<u8>) {
        if !is_in_git(&path) {
            if self.is_deeper {
                self.deeper.insert(path)
            } else {
                self.programs.insert(path)
            };
        }
    }
}

/// What may be a path in what a setting says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    /// Is a folder that python looks for modules in; empty: the one that it starts in.
    Modules(Vec<u8>),
    /// Is one, whether something is there or not.
    Path(Vec<u8>),
    /// Is none unless a file has this name.
    Word(Vec<u8>),
}

/// Returns what a setting says of files that git runs, or obeys so that it runs some.
fn said(entry: &Entry) -> Vec<Said> {
    let Some(value) = entry.value.as_deref().filter(|value| !value.is_empty() && value.len() <= MAX_VALUE) else { return Vec::new() };
    let fits = |(section, key): &(&str, &str)| entry.section == *section && (*key == "*" || entry.key == *key);
    if FILES.iter().any(fits) {
        return vec![Said::Path(value.to_vec())];
    }
    // `url.BASE.insteadOf` has what is put in the other's place in its name.
    let base = entry.subsection.as_deref().filter(|base| entry.section == "url" && base.starts_with(COMMAND));
    if let Some(command) = base.or_else(|| value.trim_ascii_start().starts_with(COMMAND).then_some(value)) {
        return words(command).into_iter().take(MAX_PATHS).collect();
    }
    let is_program = PROGRAMS.iter().any(fits) || PROGRAM_ENDS.iter().any(|end| entry.key.ends_with(end));
    let starts = match entry.section.as_str() {
        "alias" => value.trim_ascii_start().starts_with(b"!") || pieces(value).any(|(_, piece)| is_running(piece)),
        "submodule" if entry.key == "update" => value.starts_with(b"!"),
        _ => true,
    };
    if is_program && starts { words(value).into_iter().take(MAX_PATHS).collect() } else { Vec::new() }
}

/// Returns whether a word of a git command has it run another one.
fn is_running(word: &[u8]) -> bool {
    RUNNING.contains(&word)
        || RUNNING_STARTS.iter().any(|start| word.starts_with(start))
        || word.starts_with(b"--") && RUNNING_ENDS.iter().any(|end| word.ends_with(end))
}

/// Returns whether a path is one of the machine's own.
fn is_system(path: &[u8]) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// Returns what in a command may be a path. It is not read as a shell does, which may come to run other commands of its own in turn: what is in
/// quotes counts as a whole and in its parts, and what follows a variable counts from the top of the working tree, where git runs it, and from
/// any folder above the project, as from the person's own.
pub(super) fn words(value: &[u8]) -> BTreeSet<Said> {
    let mut words: BTreeSet<Said> = python::folders(value).into_iter().map(Said::Modules).collect();
    words.extend(quoted(value).into_iter().map(Said::Word));
    let mut last: &[u8] = b"";
    for (number, (before, piece)) in pieces(value).enumerate() {
        match piece {
            [b'-', rest @ ..] => words.extend(attached(rest)),
            _ if last == b"-m" => words.extend(module(piece)),
            _ if piece.contains(&b'/') => words.extend(spelled(before, piece).into_iter().map(Said::Path)),
            // What stands first is looked for on the person's own path.
            _ if number == 0 => {}
            _ if piece.iter().skip(1).rev().skip(1).any(|byte| *byte == b'.') => drop(words.insert(Said::Path(piece.to_vec()))),
            _ => drop(words.insert(Said::Word(piece.to_vec()))),
        }
        last = piece;
    }
    if pieces(value).any(|(_, piece)| COMPLETING.contains(&split(piece).1)) {
        let whole = |one: &Said| match one {
            Said::Path(path) => COMPLETED.map(|end| Said::Path([path, end.as_bytes()].concat())),
            Said::Word(word) => COMPLETED.map(|end| Said::Word([word, end.as_bytes()].concat())),
            Said::Modules(folder) => COMPLETED.map(|_| Said::Modules(folder.clone())),
        };
        words.extend(words.iter().flat_map(whole).collect::<Vec<_>>());
    }
    words
}

/// Returns which paths a part of a command with a slash in it may be, by what stands before it: what a variable is nobody knows.
pub(super) fn spelled(before: Option<u8>, piece: &[u8]) -> Vec<Vec<u8>> {
    let (first, rest) = piece.split_at(memchr::memchr(b'/', piece).unwrap_or_default());
    let is_variable = before == Some(b'$') && !first.is_empty();
    let mut paths = Vec::new();
    if is_variable || first.is_empty() && before.is_some_and(|byte| b")}\"'`".contains(&byte)) {
        paths.push(rest[1..].to_vec());
        paths.push([b"~", rest].concat());
    }
    if !is_variable {
        paths.push(piece.to_vec());
    }
    paths
}

/// Returns what may be a path in a word of short options, behind its dash: the value of one may follow it without a blank.
fn attached(options: &[u8]) -> Vec<Said> {
    // What a long one has behind `=` is a word of its own.
    if options.len() < 2 || options.starts_with(b"-") {
        return Vec::new();
    }
    let ends = (1..options.len().min(MAX_OPTIONS)).map(|at| &options[at..]);
    let mut said: Vec<Said> = ends.map(|end| Said::Word(end.to_vec())).collect();
    if let Some(at) = options.iter().take(MAX_OPTIONS).position(|byte| *byte == b'm') {
        said.extend(module(&options[at + 1..]).into_iter().map(|one| match one {
            Said::Path(path) if at > 0 => Said::Word(path),
            one => one,
        }));
    }
    if options.contains(&b'/') {
        said.push(Said::Path(options[1..].to_vec()));
    }
    said
}

/// Returns the parts of a command between what no plain word has in it, each with what stands before it.
pub(super) fn pieces(value: &[u8]) -> impl Iterator<Item = (Option<u8>, &[u8])> {
    let is_border = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`;|&()<>{}=:,!$\\".contains(byte);
    let mut at = 0;
    value.split(is_border).filter_map(move |piece| {
        let start = at;
        at += piece.len() + 1;
        (!piece.is_empty()).then(|| (start.checked_sub(1).map(|before| value[before]), piece))
    })
}

/// Returns what stands in quotes in a value, or as a whole, where it has blanks: names may have some.
fn quoted(value: &[u8]) -> Vec<Vec<u8>> {
    let whole = Some(value.trim_ascii()).filter(|whole| whole.contains(&b' '));
    let mut found: Vec<Vec<u8>> = whole.into_iter().map(<[u8]>::to_vec).collect();
    for quote in *b"\"'" {
        let parts = value.split(|byte| *byte == quote);
        found.extend(parts.skip(1).step_by(2).filter(|part| part.contains(&b' ')).map(<[u8]>::to_vec));
    }
    let unescaped: Vec<u8> = value.iter().copied().filter(|byte| *byte != b'\\').collect();
    if value.windows(2).any(|pair| pair == b"\\ ") {
        found.push(unescaped);
    }
    found
}

/// Returns the files that `python -m` runs.
fn module(name: &[u8]) -> Vec<Said> {
    let path: Vec<u8> = name.iter().map(|byte| if *byte == b'.' { b'/' } else { *byte }).collect();
    [&b".py"[..], b"/__main__.py", b"/__init__.py"].iter().map(|end| Said::Path([&path, *end].concat())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths; one with a blank is one where there is such a file.
    #[track_caller]
    fn check(name: &str, value: &str, paths: &[&str]) {
        let (section, rest) = name.split_once('.').expect("a section");
        let (subsection, key) = rest.rsplit_once('.').map_or((None, rest), |(subsection, key)| (Some(subsection.as_bytes()), key));
        let entry = Entry::new(section, subsection, &key.to_lowercase(), value.as_bytes());
        let said = said(&entry);
        for path in paths {
            let expected = path.as_bytes().to_vec();
            let expected = if path.contains(' ') { Said::Word(expected) } else { Said::Path(expected) };
            assert!(said.contains(&expected), "{name} = {value}: {path} is not in {said:?}");
        }
        let n_paths = said.iter().filter(|one| matches!(one, Said::Path(_))).count();
        assert_eq!(n_paths, paths.iter().filter(|path| !path.contains(' ')).count(), "{name} = {value}: {said:?}");
    }

    #[test]
    fn settings_that_name_programs_are_known() {
        for name in [
            "core.fsmonitor",
            "core.sshCommand",
            "core.pager",
            "core.editor",
            "sequence.editor",
            "pager.log",
            "gpg.program",
            "gpg.ssh.program",
            "gpg.ssh.defaultKeyCommand",
            "filter.a.clean",
            "filter.a.b.smudge",
            "filter.a.process",
            "diff.external",
            "diff.a.command",
            "diff.a.textconv",
            "merge.a.driver",
            "mergetool.a.cmd",
            "difftool.a.path",
            "credential.helper",
            "credential.https://example.org.helper",
            "interactive.diffFilter",
            "trailer.sign.cmd",
            "uploadpack.packObjectsHook",
            "gc.recentObjectsHook",
            "remote.origin.uploadpack",
            "tar.xz.command",
            "sendemail.toCmd",
            "hook.lint.command",
            "core.attributesFile",
            "init.templateDir",
        ] {
            check(name, "tools/run", &["tools/run"]);
        }
        check("alias.x", "!tools/run", &["tools/run"]);
        check("alias.x", "-c core.pager=tools/run log", &["core.pager", "tools/run"]);
        for running in [
            "grep -O",
            "grep --open-files-in-pager=",
            "fetch --upload-pack ",
            "filter-branch --tree-filter ",
            "send-email --to-cmd=",
            "rebase -x",
            "clone --template ",
            "fetch ext::",
        ] {
            check("alias.x", &format!("{running}tools/run"), &["tools/run"]);
        }
        for name in ["svn.authorsProg", "instaweb.modulePath"] {
            check(name, "tools/run", &["tools/run"]);
        }
        for name in ["branch.z.remote", "remote.a.pushurl", "submodule.a.url", "url.ext::tools/run .insteadOf"] {
            check(name, "ext::tools/run x", &["tools/run"]);
        }
        check("url.ext::tools/run .insteadOf", "https://example.org/", &["tools/run"]);
        check("submodule.a.update", "!tools/run", &["tools/run"]);
        check("remote.a.url", "ext::tools/run %S", &["tools/run"]);
        for name in
            ["alias.x", "remote.origin.url", "submodule.a.update", "submodule.a.url", "branch.main.merge", "core.worktree", "user.name"]
        {
            check(name, "tools/run", &[]);
        }
    }

    #[test]
    fn paths_are_found_in_whatever_a_command_looks_like() {
        let check = |value: &str, paths: &[&str]| check("filter.a.clean", value, paths);
        check("./tools/clean.sh %f", &["./tools/clean.sh"]);
        check("python3 clean.py --rules=rules/a", &["clean.py", "rules/a"]);
        check("sh -c 'tools/x \"$1\"' -", &["tools/x"]);
        check("\"$(git rev-parse --show-toplevel)/tools/x\"", &["/tools/x", "tools/x", "~/tools/x"]);
        check("$PWD/tools/x && ${TOP}/y/z", &["tools/x", "~/tools/x", "/y/z", "y/z", "~/y/z"]);
        check("awk -ft/show.awk -nft/other.awk", &["t/show.awk", "ft/other.awk"]);
        check("ssh -F./t/config", &["./t/config"]);
        check("python3 -mt.p.x", &["t/p/x.py", "t/p/x/__main__.py", "t/p/x/__init__.py"]);
        let completed = ["t/x", "t/x.js", "t/x.cjs", "t/x.mjs", "t/x.json", "t/x.node", "t/x.rb", "t/x.ts"];
        for command in ["node t/x", "node -rt/x", "/usr/bin/ruby t/x"] {
            let paths: Vec<_> = said(&Entry::new("filter", Some(b"a"), "clean", command.as_bytes()));
            for path in completed {
                assert!(paths.contains(&Said::Path(path.as_bytes().to_vec())), "{command}: {path} is not in {paths:?}");
            }
        }
        check("\"my tools/run it\" %f", &["my tools/run it", "tools/run"]);
        check("my\\ tools/run", &["my tools/run", "tools/run"]);
        check("python -m tools.clean", &["tools/clean.py", "tools/clean/__main__.py", "tools/clean/__init__.py"]);
        check("PATH=bin/x:$PATH less -R", &["bin/x"]);
        check("less", &[]);
        check("true", &[]);
        check("", &[]);
    }
}
