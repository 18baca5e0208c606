//! What hooks name of the project, and scripts that run with them: whoever can write that runs at the person's next git command.

use std::collections::BTreeSet;

use super::All;
use super::HOOKS;
use super::HUSKYS;
use super::folders::folders;
use super::is_in_git;
use super::words::Words;
use super::words::words;
use crate::keep::git::End;
use crate::keep::git::Folder;
use crate::keep::git::Kind;
use crate::keep::git::Way;
use crate::root::join;
use crate::root::split;
use podbay_wire::Fault;

/// Longest hook or script that is read, how many of them, and how many names one may have.
const MAX_TEXT: u64 = 64 << 10;
const MAX_TEXTS: usize = 256;
const MAX_NAMES: usize = 400;

/// What git puts in a folder of hooks and does not run.
const SAMPLE: &[u8] = b".sample";

const SHELLS: [&[u8]; 7] = [b"sh", b"bash", b"dash", b"ash", b"zsh", b"ksh", b"fish"];

/// What the names of scripts end in.
const SCRIPTS: [&[u8]; 17] = [
    b".sh", b".bash", b".zsh", b".ksh", b".fish", b".py", b".js", b".cjs", b".mjs", b".ts", b".rb", b".pl", b".php", b".lua", b".awk",
    b".sed", b".tcl",
];

impl All<'_> {
    /// Counts what commands name of the project that stand in the file `source`, and what the shell scripts among that name in their turn.
    pub(super) fn commands(&mut self, tree: &[u8], own: &[u8], words: &Words, source: &[u8]) {
        for script in self.named(tree, own, words, source, |_, _| true) {
            self.script(tree, &script);
        }
    }

    /// Counts what the hooks in a folder name, with what lies right beside them.
    pub(super) fn hook_texts(&mut self, folder: &[u8], tree: &[u8]) {
        for (name, kind) in self.project.names(folder).unwrap_or_default() {
            if kind == Kind::File {
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

    /// Counts what a hook names, if it is a file.
    pub(super) fn hook(&mut self, hook: &[u8], tree: &[u8]) {
        // Each repository has samples, which would take the room of what is read.
        if !hook.ends_with(SAMPLE) && self.project.kind(hook) == Some(Kind::File) && self.is_new_text(hook, tree) {
            self.hook_of(self.project, hook, split(hook).0, tree);
        }
    }

    /// Counts what a hook names that lies in whichever folder.
    pub(super) fn hook_of(&mut self, folder: &Folder, hook: &[u8], own: &[u8], tree: &[u8]) {
        if hook.ends_with(SAMPLE) {
            return;
        }
        match text_of(folder, hook) {
            Text::Read(text) => {
                let words = named_in(&text);
                self.commands(tree, own, &words, hook);
                self.folders((tree, own), (&text, &words), hook);
            }
            Text::TooLong => self.cut(hook.to_vec()),
            Text::None => {}
        }
    }

    fn script(&mut self, tree: &[u8], path: &[u8]) {
        let End::Inside(end) = Way::of(self.project, self.place, path).end else { return };
        if !self.is_new_text(path, tree) {
            return;
        }
        match text_of(self.project, &end) {
            Text::Read(text) if is_of_shell(path, &text) => {
                // It names what it works on, too.
                self.is_deeper = true;
                let (own, words) = (split(path).0, named_in(&text));
                self.named(tree, own, &words, path, Self::is_script);
                self.folders((tree, own), (&text, &words), path);
                self.is_deeper = false;
            }
            // What commands work on may be as long.
            Text::TooLong if self.is_script(&end) => self.cut(path.to_vec()),
            Text::Read(_) | Text::TooLong | Text::None => {}
        }
    }

    /// Counts the folders that a script starts all of, from where it starts, where it lies, and where it goes. Of one that may be all of the working
    /// tree nothing is known.
    fn folders(&mut self, (tree, own): (&[u8], &[u8]), (text, words): (&[u8], &Words), source: &[u8]) {
        let moved = words.moves.iter().flatten().filter_map(|to| self.meant(tree, to));
        let from: BTreeSet<Vec<u8>> = [tree.to_vec(), own.to_vec()].into_iter().chain(moved).collect();
        for spelled in folders(&without_comments(text)) {
            let places = spelled.iter().flat_map(|said| from.iter().filter_map(|from| self.place(from, said)));
            let meant: BTreeSet<Vec<u8>> = places.filter(|path| !is_in_git(path)).collect();
            if spelled.is_empty() || meant.iter().any(|path| path.is_empty() || path == tree) {
                self.cut(source.to_vec());
            }
            let all = if self.is_deeper { &mut self.deeper } else { &mut self.programs };
            all.extend(meant.into_iter().filter(|path| !path.is_empty() && path != tree));
        }
    }

    fn is_script(&self, path: &[u8]) -> bool {
        let is_program =
            || self.project.stat(path).is_ok_and(|stat| stat.st_mode & 0o111 != 0) && self.project.kind(path) == Some(Kind::File);
        SCRIPTS.iter().any(|end| path.ends_with(end)) || is_program()
    }

    fn is_new_text(&mut self, path: &[u8], tree: &[u8]) -> bool {
        let text = (path.to_vec(), tree.to_vec());
        if self.texts.len() < MAX_TEXTS {
            return self.texts.insert(text);
        }
        if !self.texts.contains(&text) {
            self.cut(text.0);
        }
        false
    }
}

enum Text {
    Read(Vec<u8>),
    TooLong,
    /// It is not there, or is a program.
    None,
}

fn text_of(folder: &Folder, path: &[u8]) -> Text {
    match folder.read(path, MAX_TEXT) {
        Ok(Some(text)) if !text.contains(&0) => Text::Read(text),
        Err(Fault::TooLarge { .. }) => Text::TooLong,
        Ok(_) | Err(_) => Text::None,
    }
}

/// Returns what a script may name. Lines that are comments say nothing that runs.
fn named_in(text: &[u8]) -> Words {
    words(&without_comments(text), MAX_NAMES)
}

fn without_comments(text: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii_start().starts_with(b"#")).collect();
    lines.join(&b'\n')
}

fn is_of_shell(path: &[u8], text: &[u8]) -> bool {
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = first.strip_prefix(b"#!").unwrap_or_default().split(u8::is_ascii_whitespace);
    let has_name = SHELLS.iter().any(|shell| path.strip_suffix(*shell).is_some_and(|name| name.ends_with(b".")));
    has_name || words.any(|word| SHELLS.contains(&split(word).1))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::super::super::sample::Linked;
    use super::super::super::sample::Sample;
    use super::super::obeyed_in_worktree;
    use super::super::tests::look;
    use super::super::tests::place;
    use crate::keep::git::Folder;
    use podbay_wire::BytesPath;

    fn texts(paths: &[BytesPath]) -> Vec<String> {
        paths.iter().map(BytesPath::to_text).collect()
    }

    #[test]
    fn what_a_hook_names_is_known_however_it_gets_there() {
        let sample = Sample::new();
        let check = |line: &str, expected: &[&str]| {
            sample.write(".git/hooks/pre-commit", &format!("#!/bin/sh\n# See docs/hooks.md.\n{line}\n"));
            let found = look(&sample, &[]);
            assert_eq!(texts(&found.said), expected, "{line}");
            assert_eq!(found.paths, [], "what a hook names can be worked on");
        };
        sample.write("plain", "x");
        for line in [
            "exec ./scripts/check \"$@\"",
            "scripts/check",
            ". \"$(git rev-parse --show-toplevel)/scripts/check\"",
            "\"$PWD/scripts/check\"",
            "sh ${GIT_WORK_TREE}/scripts/check",
            "cd \"$(git rev-parse --show-toplevel)\" && exec scripts/check",
            "exec \"$(dirname \"$0\")/../../scripts/check\"",
            &format!("{}scripts/check", sample.path("").display()),
        ] {
            check(line, &["scripts/check"]);
        }
        check("test -f plain && sh plain", &["plain"]);
        for line in ["exit 0", "cargo fmt --check", "git lfs post-commit \"$@\"", "exec /usr/bin/check"] {
            check(line, &[]);
        }
        // What git does not run names nothing.
        fs::rename(sample.path(".git/hooks/pre-commit"), sample.path(".git/hooks/pre-commit.sample")).expect("moved");
        sample.write(".git/hooks/pre-commit.sample", "./scripts/check\n");
        sample.write(".git/hooks/binary", "./scripts/check\n\0");
        assert_eq!(texts(&look(&sample, &[]).said), [""; 0]);
    }

    #[test]
    fn what_is_not_there_yet_is_known_behind_a_move_and_beside_the_folder_of_git_too() {
        let sample = Sample::new();
        let check = |lines: &str, path: &str| {
            sample.write(".git/hooks/pre-commit", &format!("#!/bin/sh\n{lines}\n"));
            let found = look(&sample, &[]);
            assert!(texts(&found.said).contains(&path.to_owned()) && !found.is_cut, "{lines}: {found:?}");
        };
        for lines in [
            "cd tools\n[ -x ./later ] && ./later",
            "cd -P -- ./tools && sh -e later",
            "cd \"$(git rev-parse --show-toplevel)/tools\" && ./later",
            "(cd \"$(git rev-parse --show-cdup)tools\"; ./later)",
            "cd \"$(dirname \"$0\")/../../tools\" && ./later",
            "pushd scripts; cd ../tools; exec ./later",
            "env --chdir=tools ./later",
            "bash -c \"cd tools && exec ./later\"",
            "L=\"$(git rev-parse --git-dir)/../tools/later\"; [ -f \"$L\" ] && . \"$L\"",
            "sh \"$(git rev-parse --git-common-dir)/../tools/later\"",
            "[ -f \"$GIT_DIR/../tools/later\" ] && . \"$GIT_DIR/../tools/later\"",
            "\"${GIT_DIR}/hooks/../../tools/later\"",
            "too\\\nls/later",
        ] {
            check(lines, "tools/later");
        }
        check("cd a && cd b && ./later", "a/b/later");
        let many: String = (0..12).map(|n| format!("(cd packages/p{n} && sh check)\n")).collect();
        for n in 0..12 {
            fs::create_dir_all(sample.path(&format!("packages/p{n}"))).expect("made");
        }
        for n in 0..12 {
            check(&many, &format!("packages/p{n}/check"));
        }
        for lines in [
            "for f in web/late web/fmt; do\n node \"$f\"\ndone",
            "CHECK=web/late\nnode \"$CHECK\" \"$@\"",
            "RUNTIME=node\n$RUNTIME web/late",
            "run() {\n node \"$@\"\n}\nrun web/late",
            "const path = require('node:path');\nrequire(path.join(process.cwd(), 'web/late'));",
        ] {
            check(lines, "web/late.js");
        }
        let fields: String =
            (0..300).map(|n| format!("if isinstance(node.value{n}, ast.Name): out.append(node.value{n}.id)\n")).take(40).collect();
        check(&format!("{fields}./later"), "later");
        check("cd \"my tools\" && ./later", "my tools/later");
        check("cd my\\ tools && ./later", "my tools/later");
        check("bash -c \"cd \\\"my tools\\\" && ./later\"", "my tools/later");
        check("echo \"don't\"; . \"$(git rev-parse --show-toplevel)/my tools/la ter\"", "my tools/la ter");
        check(". \"$TOP\"'/my tools/la ter'", "my tools/la ter");
        check("node web/later", "web/later.js");
        // It is there, so that both ways lead somewhere.
        fs::create_dir(sample.path("tools")).expect("made");
        check("cd tools\n[ -x ./later ] && ./later", "tools/later");
    }

    #[test]
    fn no_word_of_a_hook_takes_the_place_of_another_and_what_is_not_looked_at_is_said() {
        let sample = Sample::new();
        for path in ["web/verify", "web/lint.js", "web/check.rb"] {
            sample.write(path, "x");
        }
        let words: String = (0..100).map(|n| format!("echo a{n}\n")).collect();
        let look_at = |text: &str| {
            sample.write(".git/hooks/pre-commit", text);
            look(&sample, &[])
        };
        let found = look_at(&format!("{words}cd web\n\tsh verify\n\tnode lint || true\n\t\"$RUBY_BIN\" \\\n check\n"));
        let said = texts(&found.said);
        assert!(["web/verify", "web/lint.js", "web/check.rb"].iter().all(|path| said.contains(&(*path).to_owned())), "{said:?}");
        assert!(!found.is_cut && found.unread.is_empty(), "{found:?}");
        let many = |line: fn(usize) -> String| -> String { (0..500).map(line).collect() };
        for text in [
            many(|n| format!("echo a{n}\n")),
            many(|n| format!("node {n}\n")).split_inclusive('\n').take(300).collect(),
            many(|n| format!("cd d{n}\n")).split_inclusive('\n').take(100).collect(),
            "#".repeat(65 << 10),
        ] {
            let found = look_at(&text);
            assert_eq!((texts(&found.unread), found.is_cut), (vec![".git/hooks/pre-commit".to_owned()], true), "{text:.40}");
        }
        // What stands first is looked at first.
        let found = look_at(&format!("./zz/first\n{}", many(|n| format!("./a{n}\n"))));
        assert!(texts(&found.said).contains(&"zz/first".to_owned()), "{found:?}");
        // So it is of a script, and not of what commands work on.
        sample.write("check.sh", &"#".repeat(65 << 10));
        sample.write("notes", &"#".repeat(65 << 10));
        assert_eq!(texts(&look_at("sh check.sh && wc notes\n").unread), ["check.sh"]);
    }

    #[test]
    fn a_folder_that_a_hook_starts_all_of_counts_with_what_is_in_it() {
        let sample = Sample::new();
        sample.write("checks/later.d/a", "x");
        sample.write("src/main.rs", "x");
        let look_at = |lines: &str| {
            sample.write(".git/hooks/pre-commit", &format!("#!/bin/sh\n# for f in src/*; do sh \"$f\"; done\n{lines}\n"));
            let found = look(&sample, &[]);
            (texts(&found.said), texts(&found.unread))
        };
        for lines in [
            "for f in checks/later.d/*; do sh \"$f\"; done",
            "cd checks && run-parts later.d",
            "run-parts \"$(dirname \"$0\")/../../checks/later.d\"",
            "find checks/later.d -name '*.sh' -exec sh {} \\;",
        ] {
            let (said, unread) = look_at(lines);
            assert!(said.contains(&"checks/later.d".to_owned()) && !said.contains(&"src".to_owned()), "{lines}: {said:?}");
            assert_eq!(unread, [""; 0], "{lines}");
        }
        let (said, unread) = look_at("for f in src/*.rs; do rustfmt --check \"$f\"; done\neslint src");
        assert!(!said.contains(&"src".to_owned()) && unread.is_empty(), "{said:?}");
        // Of all of the project nobody could say what runs.
        let (said, unread) = look_at("find . -name '*.check' -exec sh {} \\;");
        assert_eq!((said.contains(&String::new()), unread), (false, vec![".git/hooks/pre-commit".to_owned()]));
        // So it is in a script of the hook's.
        sample.write("check.sh", "run-parts checks/later.d\n");
        assert!(look_at("sh check.sh").0.contains(&"checks/later.d".to_owned()));
    }

    #[test]
    fn samples_take_the_room_of_no_hook() {
        let sample = Sample::new();
        for n in 0..100 {
            sample.write(&format!(".git/hooks/{n}.sample"), "exit 0\n");
        }
        for hook in ["commit-msg", "update"] {
            sample.write(&format!(".git/hooks/{hook}"), &format!("./tools/{hook}\n"));
        }
        let found = look(&sample, &[]);
        assert_eq!((texts(&found.said), found.is_cut), (vec!["tools/commit-msg".to_owned(), "tools/update".to_owned()], false));
    }

    #[test]
    fn hooks_are_read_wherever_git_finds_them() {
        let sample = Sample::with_submodules();
        sample.git_in("sub", &["worktree", "add", "-q", "../tree", "-b", "tree"]);
        sample.write(".git/modules/sub/hooks/post-checkout", "exec ./tools/run\n");
        sample.write(".husky/_/pre-commit", ". \"$(dirname \"$0\")/h\"\n");
        sample.write(".husky/pre-commit", "node checks/all\n");
        sample.write("checks/all.js", "1");
        sample.git(&["config", "core.hooksPath", ".husky/_"]);
        let said = texts(&look(&sample, &["sub/.git", "tree/.git"]).said);
        for path in ["sub/tools/run", "tree/tools/run", "checks/all.js"] {
            assert!(said.contains(&path.to_owned()), "{path}: {said:?}");
        }
        let linked = Linked::new();
        fs::create_dir_all(linked.main.join(".git/hooks")).expect("made");
        fs::write(linked.main.join(".git/hooks/pre-push"), "exec ./tools/run\n").expect("written");
        let (project, real) = (Folder::open(&linked.sample.path("")), Folder::open(&linked.main.join(".git")));
        let found = obeyed_in_worktree(&project.expect("opens"), &real.expect("opens"), b"project", place(&linked.sample).as_bytes());
        assert_eq!(texts(&found.said), ["tools/run"]);
    }

    #[test]
    fn scripts_that_a_script_of_a_hook_calls_are_known_and_what_it_works_on_is_left() {
        let sample = Sample::new();
        sample.write(".git/hooks/pre-commit", "exec ./scripts/check\n");
        sample.write(
            "scripts/check",
            "#!/usr/bin/env bash\n. \"$(dirname \"$0\")/lib.sh\"\ndiff docs/cli.md <(bin/tool --help)\npython tools/lint.py src/main.rs\n",
        );
        for path in ["docs/cli.md", "src/main.rs", "bin/tool", "scripts/later"] {
            sample.write(path, "x");
        }
        fs::set_permissions(sample.path("bin/tool"), fs::Permissions::from_mode(0o755)).expect("set");
        let found = look(&sample, &[]);
        let said = texts(&found.said);
        for path in ["scripts/check", "scripts/lib.sh", "bin/tool", "tools/lint.py"] {
            assert!(said.contains(&path.to_owned()), "{path}: {said:?}");
        }
        for path in ["docs/cli.md", "src/main.rs", "scripts/later"] {
            assert!(!said.contains(&path.to_owned()), "{path}: {said:?}");
        }
        assert!(texts(&found.modules).contains(&"tools".to_owned()), "{found:?}");
        // Names are cheap to write, and hide none of what the hook itself starts.
        let many: String = (0..350).map(|n| format!("./0/{n}.sh\n")).collect();
        sample.write("scripts/check", "#!/bin/sh\n. ./0/a.sh\n. ./0/b.sh\n. ./0/c.sh\n");
        sample.write(".git/hooks/pre-push", "./scripts/push\n./0/a.sh\n./0/b.sh\n./0/c.sh\n./0/d.sh\n");
        for name in ["a", "b", "c", "d"] {
            sample.write(&format!("0/{name}.sh"), &many.replace("./0/", &format!("./0/{name}")));
        }
        let said = texts(&look(&sample, &[]).said);
        assert!(
            said.len() > 1000 && ["scripts/check", "scripts/push"].iter().all(|path| said.contains(&(*path).to_owned())),
            "{}",
            said.len()
        );
        fs::remove_file(sample.path(".git/hooks/pre-push")).expect("removed");
        // Of other languages nobody knows what calls what.
        sample.write("scripts/check", "#!/usr/bin/env node\nrequire('./lib.js')\n");
        assert_eq!(texts(&look(&sample, &[]).said), ["scripts/check"]);
    }
}
