//! Files of a project that are named in what the user's machine runs: in hooks, in git config, in
//! tasks of editors. They run with it.
//!
//! No language is parsed. A script is split into words, and a word counts if it is the path of a
//! file, relative to where the script runs or lies. Only one level: files that such a file names
//! are not examined. This only advises.

use std::collections::BTreeSet;

use super::HOOKS;
use super::HUSKYS;
use super::MAX_SAID;
use super::ObeyedScan;
use super::config::ConfigEntry;
use super::is_in_git;
use crate::keep::git::FileKind;
use crate::keep::git::UntrustedFolder;
use crate::keep::git::project_paths::ProjectPaths;
use crate::root::join;
use crate::root::split;
use podbay_wire::Fault;

/// Longest script that is read, most scripts, and most words of one.
const MAX_TEXT: u64 = 64 << 10;
const MAX_TEXTS: usize = 256;
const MAX_WORDS: usize = 400;

/// Most names that are looked up for all scripts together.
const MAX_LOOKS: usize = 50_000;

/// Suffix of the sample hooks, which git does not run.
const SAMPLE: &[u8] = b".sample";

/// Suffixes of files that are data, not run.
const DATA: [&[u8]; 9] = [
    b".toml", b".json", b".lock", b".txt", b".md", b".yml", b".yaml", b".xml", b".ini",
];

/// Sections with locations, and with descriptions of those.
const PLACES: [&str; 5] = ["branch", "remote", "submodule", "url", "user"];

/// The type of a file that may be a script.
#[derive(Debug)]
enum ScriptText {
    Read(Vec<u8>),
    TooLong,
    /// Missing, or a binary.
    None,
}

/// Returns the files that a file of the project names, which is run or read from these folders.
///
/// `place` is the path of the project's folder on the user's machine.
pub(crate) fn named_in(
    project: &UntrustedFolder,
    place: &[u8],
    file: &[u8],
    from: &[&[u8]],
) -> BTreeSet<Vec<u8>> {
    match text_of(project, file) {
        ScriptText::Read(text) => {
            ObeyedScan::new(&ProjectPaths::new(project, place))
                .named(&text, from)
                .0
        }
        ScriptText::TooLong | ScriptText::None => BTreeSet::new(),
    }
}

impl ObeyedScan<'_> {
    /// Adds files that git config names.
    pub(super) fn programs(&mut self, tree: &[u8], entries: &[ConfigEntry], file: &[u8]) {
        let is_place = |entry: &&ConfigEntry| {
            PLACES.contains(&entry.section.as_str())
                || matches!(entry.section.as_str(), "include" | "includeif")
                || entry.is("core", "worktree")
                || entry.is("core", "hookspath")
        };
        for value in entries
            .iter()
            .filter(|entry| !is_place(entry))
            .filter_map(|entry| entry.value.as_deref())
        {
            self.text(value, &[tree], file);
        }
    }

    /// Adds files that the hooks in a folder name, and those beside them.
    pub(super) fn hook_scripts(&mut self, folder: &[u8], tree: &[u8]) {
        for (name, kind) in self.project.names(folder).unwrap_or_default() {
            if kind == FileKind::File {
                self.hook(&join(folder, &name), tree);
            }
        }
        let (above, name) = split(folder);
        if name == HUSKYS {
            for hook in HOOKS {
                self.hook(&join(above, hook.as_bytes()), tree);
            }
        }
    }

    /// Adds the files that a hook names, if it is a file.
    pub(super) fn hook(&mut self, hook: &[u8], tree: &[u8]) {
        // Every repository has samples, which would use up the limit.
        if hook.ends_with(SAMPLE) || self.project.kind(hook) != Some(FileKind::File) {
            return;
        }
        let text = (hook.to_vec(), tree.to_vec());
        if self.texts.len() >= MAX_TEXTS && !self.texts.contains(&text) {
            self.cut(text.0);
        } else if self.texts.insert(text) {
            self.hook_of(self.project, hook, split(hook).0, tree);
        }
    }

    /// Adds the files that a hook in any folder names.
    pub(super) fn hook_of(
        &mut self,
        folder: &UntrustedFolder,
        hook: &[u8],
        own: &[u8],
        tree: &[u8],
    ) {
        match text_of(folder, hook) {
            _ if hook.ends_with(SAMPLE) => {}
            ScriptText::Read(text) => self.text(&text, &[tree, own], hook),
            ScriptText::TooLong => self.cut(hook.to_vec()),
            ScriptText::None => {}
        }
    }

    fn text(&mut self, text: &[u8], from: &[&[u8]], source: &[u8]) {
        let (named, is_cut) = self.named(text, from);
        self.programs
            .extend(named.into_iter().filter(|path| path != source));
        if is_cut || self.programs.len() > MAX_SAID {
            self.cut(source.to_vec());
        }
    }

    /// Returns the files that a script names, and whether it names more than is examined. A missing
    /// file counts if its path has a slash: it may be added.
    fn named(&mut self, text: &[u8], from: &[&[u8]]) -> (BTreeSet<Vec<u8>>, bool) {
        let mut words = words(text);
        let is_used_up = self.n_words > MAX_LOOKS;
        let is_cut = is_used_up || words.len() > MAX_WORDS;
        words.truncate(if is_used_up { 0 } else { MAX_WORDS });
        let mut found = BTreeSet::new();
        let are_run = words
            .iter()
            .filter(|word| !DATA.iter().any(|end| word.ends_with(end)));
        for (word, folder) in are_run.flat_map(|word| from.iter().map(move |folder| (word, folder)))
        {
            let path = self
                .paths_of
                .resolve(folder, word)
                .filter(|path| !path.is_empty() && !is_in_git(path));
            let Some(path) = path.filter(|path| !found.contains(path)) else {
                continue;
            };
            self.n_words += 1;
            match self.project.kind(&path) {
                Some(FileKind::File | FileKind::Link) => drop(found.insert(path)),
                None if word.contains(&b'/') && !word.ends_with(b"/") => drop(found.insert(path)),
                _ => {}
            }
        }
        (found, is_cut)
    }
}

fn text_of(folder: &UntrustedFolder, path: &[u8]) -> ScriptText {
    match folder.read(path, MAX_TEXT) {
        Ok(Some(text)) if !text.contains(&0) => ScriptText::Read(text),
        Err(Fault::TooLarge { .. }) => ScriptText::TooLong,
        Ok(_) | Err(_) => ScriptText::None,
    }
}

/// Returns the words of a script that may be paths, each once, in their order, without comment
/// lines.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut seen = BTreeSet::new();
    for line in text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii_start().starts_with(b"#"))
    {
        let mut before = b' ';
        let mut rest = line;
        while let Some(byte) = rest.first().copied() {
            let length = rest.iter().take_while(|byte| is_of_path(**byte)).count();
            if length == 0 {
                if !b"\"'\\".contains(&byte) {
                    before = byte;
                }
                rest = &rest[1..];
                continue;
            }
            let (text, behind) = rest.split_at(length);
            let word = spelled(before, text);
            if !word.is_empty() && seen.insert(word) {
                words.push(word.to_vec());
            }
            // The name of a variable may end with a quote.
            let is_variable = before == b'$' && !text.contains(&b'/');
            (before, rest) = (if is_variable { b'}' } else { b' ' }, behind);
        }
    }
    words
}

fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_./-+@~".contains(&byte) || !byte.is_ascii()
}

/// A path behind a variable or a command substitution is most often relative to the top of the
/// working tree, or to the script's own folder.
fn spelled(before: u8, word: &[u8]) -> &[u8] {
    match before {
        b'$' => memchr::memchr(b'/', word).map_or(&word[..0], |at| &word[at + 1..]),
        b')' | b'}' | b'`' => word.strip_prefix(b"/").unwrap_or(word),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::super::sample::LinkedSample;
    use super::super::super::sample::Sample;
    use super::super::obeyed_paths_in_worktree;
    use super::super::tests::look;
    use super::super::tests::place;
    use super::*;
    use podbay_wire::BytesPath;

    fn texts(paths: &[BytesPath]) -> Vec<String> {
        paths.iter().map(BytesPath::to_text).collect()
    }

    #[test]
    fn files_named_by_a_hook_are_found_however_it_is_installed() {
        let sample = Sample::new();
        let check = |line: &str, expected: &[&str]| {
            sample.write(
                ".git/hooks/pre-commit",
                &format!("#!/bin/sh\n# See docs/hooks.md.\n{line}\n"),
            );
            let found = look(&sample, &[]);
            assert_eq!(texts(&found.said), expected, "{line}");
            assert_eq!(found.paths, [], "what a hook names can be worked on");
        };
        sample.write("plain", "x");
        sample.write("tools/there", "x");
        for line in [
            "exec ./scripts/check \"$@\"",
            "scripts/check",
            ". \"$(git rev-parse --show-toplevel)/scripts/check\"",
            "\"$PWD/scripts/check\"",
            "sh ${GIT_WORK_TREE}/scripts/check",
            "cd \"$(git rev-parse --show-toplevel)\" && exec scripts/check",
            "exec \"$(dirname \"$0\")/../../scripts/check\"",
            "CHECK=scripts/check; python3 \"$CHECK\"",
            &format!("{}scripts/check", sample.path("").display()),
        ] {
            sample.write(".git/hooks/pre-commit", &format!("#!/bin/sh\n{line}\n"));
            let said = texts(&look(&sample, &[]).said);
            assert!(
                said.contains(&"scripts/check".to_owned()),
                "{line}: {said:?}"
            );
        }
        check("test -f plain && sh plain", &["plain"]);
        check("cat plain docs/later.md package.json", &["plain"]);
        for line in [
            "exit 0",
            "cargo fmt --check",
            "git lfs post-commit \"$@\"",
            "exec /usr/bin/check",
            "eslint tools",
            "cd tools && sh there",
        ] {
            check(line, &[]);
        }
        // A file that git does not run names nothing.
        fs::rename(
            sample.path(".git/hooks/pre-commit"),
            sample.path(".git/hooks/pre-commit.sample"),
        )
        .expect("moved");
        sample.write(".git/hooks/pre-commit.sample", "./scripts/check\n");
        sample.write(".git/hooks/binary", "./scripts/check\n\0");
        assert_eq!(texts(&look(&sample, &[]).said), [""; 0]);
    }

    #[test]
    fn a_hook_that_names_too_many_files_is_reported() {
        let sample = Sample::new();
        let many = |line: fn(usize) -> String| -> String { (0..500).map(line).collect() };
        for text in [many(|n| format!("echo a{n}\n")), "#".repeat(65 << 10)] {
            sample.write(".git/hooks/pre-commit", &text);
            let found = look(&sample, &[]);
            assert_eq!(
                (texts(&found.unread), found.is_cut),
                (vec![".git/hooks/pre-commit".to_owned()], true),
                "{text:.40}"
            );
        }
        // The first words are examined first.
        sample.write(
            ".git/hooks/pre-commit",
            &format!("./zz/first\n{}", many(|n| format!("./a{n}\n"))),
        );
        assert!(texts(&look(&sample, &[]).said).contains(&"zz/first".to_owned()));
    }

    #[test]
    fn sample_hooks_do_not_use_up_the_limit() {
        let sample = Sample::new();
        for n in 0..300 {
            sample.write(&format!(".git/hooks/{n}.sample"), "exit 0\n");
        }
        for hook in ["commit-msg", "update"] {
            sample.write(&format!(".git/hooks/{hook}"), &format!("./tools/{hook}\n"));
        }
        let found = look(&sample, &[]);
        assert_eq!(
            (texts(&found.said), found.is_cut),
            (
                vec!["tools/commit-msg".to_owned(), "tools/update".to_owned()],
                false
            )
        );
    }

    #[test]
    fn scripts_of_hooks_are_read_wherever_git_finds_them() {
        let sample = Sample::with_submodules();
        sample.git_in("sub", &["worktree", "add", "-q", "../tree", "-b", "tree"]);
        sample.write(".git/modules/sub/hooks/post-checkout", "exec ./tools/run\n");
        sample.write(".husky/_/pre-commit", ". \"$(dirname \"$0\")/h\"\n");
        sample.write(".husky/pre-commit", "node checks/all.js\n");
        sample.git(&["config", "core.hooksPath", ".husky/_"]);
        let said = texts(&look(&sample, &["sub/.git", "tree/.git"]).said);
        for path in ["sub/tools/run", "tree/tools/run", "checks/all.js"] {
            assert!(said.contains(&path.to_owned()), "{path}: {said:?}");
        }
        let linked = LinkedSample::new();
        fs::create_dir_all(linked.main.join(".git/hooks")).expect("made");
        fs::write(
            linked.main.join(".git/hooks/pre-push"),
            "exec ./tools/run\n",
        )
        .expect("written");
        let (project, real) = (
            UntrustedFolder::open(&linked.sample.path("")),
            UntrustedFolder::open(&linked.main.join(".git")),
        );
        let found = obeyed_paths_in_worktree(
            &project.expect("opens"),
            &real.expect("opens"),
            b"project",
            place(&linked.sample).as_bytes(),
        );
        assert_eq!(texts(&found.said), ["tools/run"]);
    }
}
