//! As what a program counts: by each of its names, as what it loads, and as what reads it where it
//! is a script.

use super::ancestry::is_loader;
use super::identity::Identities;
use super::identity::open;
use super::matching::Form;
use super::matching::base;
use super::process::Opened;
use super::process::Program;

/// Options of the program that loads others that take the next word.
const LOADER_VALUED: [&[u8]; 7] = [
    b"--argv0",
    b"--audit",
    b"--glibc-hwcaps-mask",
    b"--glibc-hwcaps-prepend",
    b"--inhibit-rpath",
    b"--library-path",
    b"--preload",
];

/// Programs of many names that take one of them as their first word.
const OF_MANY_NAMES: [&[u8]; 3] = [b"busybox", b"toybox", b"coreutils"];

/// A program as all that it counts as.
#[derive(Debug, Default)]
pub(super) struct Forms {
    /// The first is the program itself.
    pub(super) all: Vec<Form>,
    /// A file that no name leads to is executed, or loaded.
    pub(super) is_unnamed: bool,
}

impl Forms {
    /// Returns what a program counts as that a process executes, or is about to.
    pub(super) fn of(process: i32, program: &Program, identities: &mut Identities) -> Self {
        let mut forms = Self::default();
        let (first, words) = program
            .argv
            .words
            .split_first()
            .map_or((&[][..], &[][..]), |(first, words)| {
                (first.as_slice(), words)
            });
        let mut own = Form {
            names: Vec::new(),
            words: words.to_vec(),
            truncated: program.argv.truncated,
        };
        let mut script = None;
        if let Some(file) = &program.file {
            own = forms.with_file(own, file, identities);
            script = identities.script_of(&file.metadata, || open(&file.way));
        }
        let own = own.named(&program.called).named(first);
        let is_loader = own.names.iter().any(|name| is_loader(base(name)));
        let has_many_names = OF_MANY_NAMES.contains(&base(first));
        let (words, truncated) = (own.words.clone(), own.truncated);
        forms.all.push(own);
        if is_loader {
            forms.add_loaded(process, &words, truncated, identities);
        }
        if has_many_names && let [name, words @ ..] = words.as_slice() {
            forms.all.push(
                Form {
                    words: words.to_vec(),
                    truncated,
                    ..Form::default()
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
            forms.add_file(process, reader, words, truncated, identities);
        }
        forms
    }

    fn with_file(&mut self, form: Form, file: &Opened, identities: &mut Identities) -> Form {
        self.is_unnamed |= file.is_unnamed();
        let form = form.named(&file.name);
        match identities.name_of(&file.metadata, || open(&file.way)) {
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
        let mut form = Form {
            names: Vec::new(),
            words,
            truncated,
        }
        .named(path);
        if let Some(file) = Opened::of(process, path) {
            form = self.with_file(form, &file, identities);
        }
        self.all.push(form);
    }

    /// Adds the program that another one loads.
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
    pub(super) fn own(&self) -> &Form {
        &self.all[0]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    use super::super::process::Arguments;
    use super::*;

    fn forms(called: &str, words: &[&str]) -> Vec<(Vec<String>, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let process = std::process::id() as i32;
        let file = Opened::of(process, called.as_bytes());
        let program = Program {
            called: called.into(),
            file,
            argv: Arguments {
                words,
                truncated: false,
            },
        };
        let forms = Forms::of(process, &program, &mut Identities::default());
        let form = |form: &Form| {
            (
                form.names.iter().map(|name| text(name)).collect(),
                form.words
                    .iter()
                    .map(|word| text(word))
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        };
        forms.all.iter().map(form).collect()
    }

    fn has(forms: &[(Vec<String>, String)], name: &str, words: &str) -> bool {
        forms
            .iter()
            .any(|(names, own)| names.iter().any(|own| own == name) && own == words)
    }

    #[test]
    fn a_program_counts_by_its_file_and_by_what_it_is_called() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("tool"), "x").expect("written");
        std::os::unix::fs::symlink("tool", at("link")).expect("linked");
        let found = forms(&at("link"), &["ls", "push"]);
        for name in ["tool", "link", "ls"] {
            assert!(has(&found, name, "push"), "{name} {found:?}");
        }
        assert_eq!(found.len(), 1);
        assert!(has(&forms("/nowhere/x", &[]), "x", ""));
    }

    #[test]
    fn what_is_loaded_or_reads_a_script_counts_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("script"), "#!/usr/bin/git  push\nx").expect("written");
        let found = forms(&at("script"), &["./script", "a"]);
        assert!(
            has(&found, "git", &format!("push {} a", at("script"))) && has(&found, "script", "a"),
            "{found:?}"
        );
        fs::write(at("plain"), "#!/bin/sh\n").expect("written");
        assert!(has(&forms(&at("plain"), &["plain"]), "sh", &at("plain")));
        fs::write(at("ld-linux-x86-64.so.2"), "x").expect("written");
        let found = forms(
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
    fn a_program_of_many_names_counts_as_the_one_that_it_is_told() {
        let found = forms("/bin/busybox", &["busybox", "wget", "x"]);
        assert!(
            has(&found, "busybox", "wget x") && has(&found, "wget", "x"),
            "{found:?}"
        );
        let found = forms("/bin/busybox", &["wget", "x"]);
        assert!(
            has(&found, "wget", "x") && !has(&found, "x", ""),
            "{found:?}"
        );
        assert_eq!(forms("/bin/ls", &["ls", "wget", "x"]).len(), 1);
    }
}
