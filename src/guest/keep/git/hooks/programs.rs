//! Which settings of git name programs that it runs, or files that lead it to some, and which paths may be meant by what they say.

use std::collections::BTreeSet;

use super::All;
use super::MAX_SAID;
use super::config::Entry;
use super::is_in_git;
use super::words::Said;
use super::words::Words;
use super::words::pieces;
use super::words::words;
use crate::keep::git::Kind;
use crate::root::join;

/// Longest value that is looked through, and how many paths one may name.
const MAX_VALUE: usize = 20_000;
const MAX_PATHS: usize = 300;

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

/// What of a folder interpreters start that are given it.
const STARTED: [&[u8]; 2] = [b"__main__.py", b"index.js"];

/// How many folders commands go to, or name, are looked into for what else they name.
const MAX_FOLDERS: usize = 80;

/// In how many places a command may be that went from one folder to another.
const MAX_PLACES: usize = 20;

/// Where programs of the machine are: a path in there is not one to the project in disguise.
const SYSTEM: [&[u8]; 9] = [b"/bin/", b"/dev/", b"/etc/", b"/lib/", b"/nix/", b"/proc/", b"/sbin/", b"/snap/", b"/usr/"];

impl All<'_> {
    /// Counts the files of a working tree that settings have git run. They are named where they are new or changed, and not read-only: what the
    /// person has git run is as often as not what they work on. `file` is where the settings stand.
    pub(super) fn programs(&mut self, tree: &[u8], entries: &[Entry], file: &[u8]) {
        for words in entries.iter().map(said).filter(|words| !words.is_nothing()) {
            self.commands(tree, tree, &words, file);
        }
    }

    /// Counts what commands name that start in a working tree, where it `counts`, and returns the files among it. `own` is the folder of the
    /// script that they stand in, and `source` the file.
    pub(super) fn named(
        &mut self,
        tree: &[u8],
        own: &[u8],
        words: &Words,
        source: &[u8],
        counts: impl Fn(&Self, &[u8]) -> bool,
    ) -> Vec<Vec<u8>> {
        let mut folders = vec![tree.to_vec()];
        if own != tree {
            folders.push(own.to_vec());
        }
        let n_starts = folders.len();
        let mut is_cut = words.is_cut | !self.go_on_in(&mut folders, &words.moves);
        // Where they start or go to, or their script lies, what is not there yet counts as well; and what they name may be a folder that they
        // go to in another way.
        let n_sure = folders.len();
        for one in &words.said {
            if let Said::Path(said) | Said::Word(said) = one
                && let Some(path) = self.place_of(tree, said)
                && self.project.kind(&path) == Some(Kind::Folder)
                && path != tree
            {
                is_cut |= !add_folder(&mut folders, path);
            }
        }
        let mut found = Vec::new();
        for one in &words.said {
            match one {
                Said::Modules(folder) => folders[..n_starts].iter().for_each(|from| self.module_folder(from, folder)),
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
        if is_cut || self.programs.len() > MAX_SAID || self.deeper.len() > MAX_SAID {
            self.cut(source.to_vec());
        }
        let is_file = |path: &Vec<u8>| matches!(self.project.kind(path), Some(Kind::File | Kind::Link));
        found.into_iter().map(|(path, _)| path).filter(is_file).collect()
    }

    /// Adds the folders that commands go to: from where they start, whether they are there yet or not, and from where the move before led, unless
    /// that is there and holds no such folder. Returns whether there was room for all.
    fn go_on_in(&self, folders: &mut Vec<Vec<u8>>, moves: &[Vec<Vec<u8>>]) -> bool {
        let starts = folders.clone();
        let places = |from: &[Vec<u8>], spelled: &[Vec<u8>]| -> Vec<(bool, Vec<u8>)> {
            let to = |from: &Vec<u8>| {
                let is_there = self.project.kind(from) == Some(Kind::Folder);
                spelled.iter().filter_map(move |said| Some((is_there, self.place_of(from, said)?))).collect::<Vec<_>>()
            };
            from.iter().flat_map(to).collect()
        };
        let mut has_room = true;
        for spelled in moves {
            for (_, place) in places(&starts, spelled) {
                has_room &= add_folder(folders, place);
            }
        }
        let mut here: Vec<Vec<u8>> = Vec::new();
        for spelled in moves {
            let further = places(&here, spelled).into_iter().filter(|(_, place)| !is_in_git(place));
            let further =
                further.filter(|(is_there, place)| !is_there || self.project.kind(place) == Some(Kind::Folder)).map(|(_, place)| place);
            here = further.chain(places(&starts, spelled).into_iter().map(|(_, place)| place)).collect();
            here.sort_unstable();
            here.dedup();
            here.truncate(MAX_PLACES);
            for place in &here {
                has_room &= add_folder(folders, place.clone());
            }
        }
        has_room
    }

    fn place_of(&self, from: &[u8], said: &[u8]) -> Option<Vec<u8>> {
        self.place(from, said).filter(|path| !path.is_empty())
    }

    pub(super) fn place(&self, from: &[u8], said: &[u8]) -> Option<Vec<u8>> {
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

/// Adds a folder where there is room for it; returns whether it is there then.
fn add_folder(folders: &mut Vec<Vec<u8>>, folder: Vec<u8>) -> bool {
    let is_known = folders.contains(&folder);
    if !is_known && folders.len() < MAX_FOLDERS {
        folders.push(folder);
        return true;
    }
    is_known
}

/// Returns what a setting says of files that git runs, or obeys so that it runs some.
fn said(entry: &Entry) -> Words {
    let Some(value) = entry.value.as_deref().filter(|value| !value.is_empty()) else { return Words::default() };
    let fits = |(section, key): &(&str, &str)| entry.section == *section && (*key == "*" || entry.key == *key);
    if FILES.iter().any(fits) {
        return Words { said: BTreeSet::from([Said::Path(value.to_vec())]), ..Words::default() };
    }
    // `url.BASE.insteadOf` has what is put in the other's place in its name.
    let base = entry.subsection.as_deref().filter(|base| entry.section == "url" && base.starts_with(COMMAND));
    if let Some(command) = base.or_else(|| value.trim_ascii_start().starts_with(COMMAND).then_some(value)) {
        return within(command);
    }
    let is_program = PROGRAMS.iter().any(fits) || PROGRAM_ENDS.iter().any(|end| entry.key.ends_with(end));
    let starts = match entry.section.as_str() {
        "alias" => value.trim_ascii_start().starts_with(b"!") || pieces(value).any(|(_, piece)| is_running(piece)),
        "submodule" if entry.key == "update" => value.starts_with(b"!"),
        _ => true,
    };
    if is_program && starts { within(value) } else { Words::default() }
}

/// Looks through a command in settings, unless it is too long for that.
fn within(value: &[u8]) -> Words {
    if value.len() > MAX_VALUE { Words { is_cut: true, ..Words::default() } } else { words(value, MAX_PATHS) }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths; one with a blank and no slash is one where there is such a file.
    #[track_caller]
    fn check(name: &str, value: &str, paths: &[&str]) {
        let (section, rest) = name.split_once('.').expect("a section");
        let (subsection, key) = rest.rsplit_once('.').map_or((None, rest), |(subsection, key)| (Some(subsection.as_bytes()), key));
        let entry = Entry::new(section, subsection, &key.to_lowercase(), value.as_bytes());
        let said = said(&entry).said;
        for path in paths {
            let expected = path.as_bytes().to_vec();
            let expected = if path.contains(' ') && !path.contains('/') { Said::Word(expected) } else { Said::Path(expected) };
            assert!(said.contains(&expected), "{name} = {value}: {path} is not in {said:?}");
        }
        let n_paths = said.iter().filter(|one| matches!(one, Said::Path(path) if !path.contains(&b' '))).count();
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
            let paths = said(&Entry::new("filter", Some(b"a"), "clean", command.as_bytes())).said;
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
