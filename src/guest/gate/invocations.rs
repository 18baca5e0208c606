//! All that a program counts as for the rules: itself by each of its names, the program that it
//! loads, and the interpreter of a script.

use super::ancestry::is_loader;
use super::identity::Identities;
use super::identity::open;
use super::matching::Invocation;
use super::matching::base;
use super::process::HeldFile;
use super::process::Program;

/// Options of the dynamic loader that take the next argument as their value.
const LOADER_VALUED: [&[u8]; 7] = [
    b"--argv0",
    b"--audit",
    b"--glibc-hwcaps-mask",
    b"--glibc-hwcaps-prepend",
    b"--inhibit-rpath",
    b"--library-path",
    b"--preload",
];

/// Multi-call programs: their first argument may name the applet.
const OF_MANY_NAMES: [&[u8]; 3] = [b"busybox", b"toybox", b"coreutils"];

/// A program in every way that rules may name it.
#[derive(Debug, Default)]
pub(super) struct Invocations {
    /// The first is the program itself.
    pub(super) all: Vec<Invocation>,
    /// The program that is executed or loaded is a file without a name.
    pub(super) is_unnamed: bool,
}

impl Invocations {
    /// Returns all invocations of a program that a process executes or is about to execute.
    pub(super) fn of(process: i32, program: &Program, identities: &mut Identities) -> Self {
        let mut invocations = Self::default();
        let (first, words) = program
            .argv
            .words
            .split_first()
            .map_or((&[][..], &[][..]), |(first, words)| {
                (first.as_slice(), words)
            });
        let mut own = Invocation {
            names: Vec::new(),
            words: words.to_vec(),
            truncated: program.argv.truncated,
        };
        let mut script = None;
        if let Some(file) = &program.file {
            own = invocations.with_file(own, file, identities);
            script = identities.script_of(&file.metadata, || open(&file.openable));
        }
        let own = own.named(&program.called).named(first);
        let is_loader = own.names.iter().any(|name| is_loader(base(name)));
        let has_many_names = OF_MANY_NAMES.contains(&base(first));
        let (words, truncated) = (own.words.clone(), own.truncated);
        invocations.all.push(own);
        if is_loader {
            invocations.add_loaded(process, &words, truncated, identities);
        }
        if has_many_names && let [name, words @ ..] = words.as_slice() {
            invocations.all.push(
                Invocation {
                    words: words.to_vec(),
                    truncated,
                    ..Invocation::default()
                }
                .named(name),
            );
        }
        if let Some(line) = script {
            let mut parts = line.splitn(2, |byte| matches!(byte, b' ' | b'\t'));
            let reader = parts.next().unwrap_or_default();
            let option = parts
                .next()
                .map(|option| option.trim_ascii().to_vec())
                .filter(|option| !option.is_empty());
            let words = option
                .into_iter()
                .chain([program.called.clone()])
                .chain(words)
                .collect();
            invocations.add_file(process, reader, words, truncated, identities);
        }
        invocations
    }

    fn with_file(
        &mut self,
        form: Invocation,
        file: &HeldFile,
        identities: &mut Identities,
    ) -> Invocation {
        self.is_unnamed |= file.is_unnamed();
        let form = form.named(&file.name);
        match identities.name_of(&file.metadata, || open(&file.openable)) {
            Some(name) => form.named(name),
            None => form,
        }
    }

    fn add_file(
        &mut self,
        process: i32,
        path: &[u8],
        words: Vec<Vec<u8>>,
        truncated: bool,
        identities: &mut Identities,
    ) {
        let mut form = Invocation {
            names: Vec::new(),
            words,
            truncated,
        }
        .named(path);
        if let Some(file) = HeldFile::of(process, path) {
            form = self.with_file(form, &file, identities);
        }
        self.all.push(form);
    }

    /// Adds the program that the dynamic loader is asked to load.
    fn add_loaded(
        &mut self,
        process: i32,
        mut words: &[Vec<u8>],
        truncated: bool,
        identities: &mut Identities,
    ) {
        while let Some((first, rest)) = words.split_first()
            && first.starts_with(b"--")
        {
            let n_values = usize::from(LOADER_VALUED.contains(&first.as_slice()));
            words = rest.get(n_values..).unwrap_or_default();
        }
        if let Some((path, words)) = words.split_first() {
            self.add_file(process, path, words.to_vec(), truncated, identities);
        }
    }

    /// Returns the program itself.
    pub(super) fn own(&self) -> &Invocation {
        &self.all[0]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    use super::super::process::Arguments;
    use super::*;

    fn invocations(called: &str, words: &[&str]) -> Vec<(Vec<String>, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let process = std::process::id() as i32;
        let file = HeldFile::of(process, called.as_bytes());
        let program = Program {
            called: called.into(),
            file,
            argv: Arguments {
                words,
                truncated: false,
            },
        };
        let invocations = Invocations::of(process, &program, &mut Identities::default());
        let form = |form: &Invocation| {
            (
                form.names.iter().map(|name| text(name)).collect(),
                form.words
                    .iter()
                    .map(|word| text(word))
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        };
        invocations.all.iter().map(form).collect()
    }

    fn has(invocations: &[(Vec<String>, String)], name: &str, words: &str) -> bool {
        invocations
            .iter()
            .any(|(names, own)| names.iter().any(|own| own == name) && own == words)
    }

    #[test]
    fn a_program_has_the_names_of_its_file_its_path_and_its_argv0() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("tool"), "x").expect("written");
        std::os::unix::fs::symlink("tool", at("link")).expect("linked");
        let found = invocations(&at("link"), &["ls", "push"]);
        for name in ["tool", "link", "ls"] {
            assert!(has(&found, name, "push"), "{name} {found:?}");
        }
        assert_eq!(found.len(), 1);
        assert!(has(&invocations("/nowhere/x", &[]), "x", ""));
    }

    #[test]
    fn a_loaded_program_and_a_scripts_interpreter_are_invocations_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("script"), "#!/usr/bin/git  push\nx").expect("written");
        let found = invocations(&at("script"), &["./script", "a"]);
        assert!(
            has(&found, "git", &format!("push {} a", at("script"))) && has(&found, "script", "a"),
            "{found:?}"
        );
        fs::write(at("plain"), "#!/bin/sh\n").expect("written");
        assert!(has(
            &invocations(&at("plain"), &["plain"]),
            "sh",
            &at("plain")
        ));
        fs::write(at("ld-linux-x86-64.so.2"), "x").expect("written");
        let found = invocations(
            &at("ld-linux-x86-64.so.2"),
            &[
                "ld.so",
                "--argv0",
                "ls",
                "--list",
                &at("script"),
                "push",
                "--x",
            ],
        );
        assert!(has(&found, "script", "push --x"), "{found:?}");
        assert_eq!(folder.path().as_os_str().as_bytes().first(), Some(&b'/'));
    }

    #[test]
    fn a_multi_call_program_counts_as_the_applet_that_it_runs() {
        let found = invocations("/bin/busybox", &["busybox", "wget", "x"]);
        assert!(
            has(&found, "busybox", "wget x") && has(&found, "wget", "x"),
            "{found:?}"
        );
        let found = invocations("/bin/busybox", &["wget", "x"]);
        assert!(
            has(&found, "wget", "x") && !has(&found, "x", ""),
            "{found:?}"
        );
        assert_eq!(invocations("/bin/ls", &["ls", "wget", "x"]).len(), 1);
    }
}
