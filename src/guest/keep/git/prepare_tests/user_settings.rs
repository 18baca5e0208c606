//! Tests of filters, ignore rules and line endings.

use super::*;

/// Tracks `n` missing attributes files, before one in `z`.
fn many_attributes(sample: &Sample, n: usize) {
    let blob = sample.git(&["rev-parse", "HEAD:b"]);
    let line = |n: usize| format!("100644 {}\td/{n}/.gitattributes\n", blob.trim());
    fs::write(sample.beside("lines"), (0..n).map(line).collect::<String>()).expect("written");
    let script = format!(
        "!git update-index --add --index-info < {}",
        sample.beside("lines").display()
    );
    sample.git(&["-c", &format!("alias.make={script}"), "make"]);
}

#[test]
fn lfs_is_searched_in_all_attributes_and_gaps_are_reported() {
    let last = |text: &'static str, n: usize| {
        move |sample: &Sample| {
            sample.write("z/.gitattributes", text);
            sample.git(&["add", "z"]);
            many_attributes(sample, n);
        }
    };
    check_refused(last("*.bin filter=lfs\n", 300), &GitRefusal::LargeFiles);
    check_refused(
        last("*.bin filter=lfs\n", MAX_ATTRIBUTES - 1),
        &GitRefusal::LargeFiles,
    );
    let problem = format!("there are more than {MAX_ATTRIBUTES} attributes files");
    check_refused(
        last("*.bin text\n", MAX_ATTRIBUTES),
        &GitRefusal::LargeFilesUnknown {
            path: "z/.gitattributes".into(),
            problem,
        },
    );
    let fill = |n: usize, end: &str| "#".repeat(n - end.len()) + end;
    let most = MAX_CONFIG as usize;
    check_refused(
        |sample| sample.write(".gitattributes", &fill(most, "\n*.bin filter=lfs\n")),
        &GitRefusal::LargeFiles,
    );
    for text in [fill(most + 1, "\n"), fill(most, "\n")] {
        let sample = sample();
        sample.write(".gitattributes", &text);
        let session = SampleSession::of(sample);
        let is_unknown = matches!(&session.refused()[0].1, Some(GitRefusal::LargeFilesUnknown { path, .. }) if path.to_text() == ".gitattributes");
        assert_eq!(
            (is_unknown, session.refused()[0].1.is_none()),
            (text.len() > most, text.len() <= most),
            "{:?}",
            session.refused()
        );
    }
    // Git ignores links here.
    let sample = sample();
    symlink("b", sample.path(".gitattributes")).expect("linked");
    assert_eq!(SampleSession::of(sample).refused()[0].1, None);
}

#[test]
fn the_users_global_ignore_rules_apply_in_the_session() {
    let files = ["a.log", "b.tmp", "c.own"];
    let check = |settings: Option<&str>, shown: &[&str], n_notes: usize| {
        let sample = sample();
        sample.write(".git/info/exclude", "!keep.log\n*.own\n");
        sample.write("rules", "*.tmp");
        sample.git(&["add", "rules"]);
        if let Some(path) = settings {
            sample.git(&["config", "core.excludesFile", path]);
        }
        for file in files.iter().chain(&["keep.log"]) {
            sample.write(file, "x");
        }
        let session = SampleSession::of_person(
            sample,
            UserGitSettings {
                ignored: "*.log".into(),
                ..UserGitSettings::default()
            },
        );
        let status = session.git(&["status", "--porcelain"]);
        let found: Vec<&str> = status
            .lines()
            .filter_map(|line| line.strip_prefix("?? "))
            .collect();
        assert_eq!(found, shown, "{settings:?}");
        assert_eq!(
            session.prepared.repositories[0].notes.len(),
            n_notes,
            "{:?}",
            session.prepared.repositories[0].notes
        );
    };
    check(None, &["b.tmp", "keep.log"], 0);
    check(Some("rules"), &["a.log", "keep.log"], 0);
    check(Some("/the/project/rules"), &["a.log", "keep.log"], 0);
    check(Some("~/elsewhere"), &["a.log", "b.tmp", "keep.log"], 1);
}

#[test]
fn one_changed_line_is_one_line_under_the_users_line_ending_settings() {
    let check = |own: Option<&str>, expected: &str| {
        let sample = sample();
        sample.write("text", "1\n2\n3\n");
        sample.git(&["add", "text"]);
        sample.git(&["commit", "-q", "-m", "text"]);
        if let Some(own) = own {
            sample.git(&["config", "core.autocrlf", own]);
        }
        // As checked out by a user with `core.autocrlf`.
        sample.write("text", "1\r\n2\r\n3\r\n");
        let line_ends = [("autocrlf".to_owned(), "true".to_owned())].into();
        let session = SampleSession::of_person(
            sample,
            UserGitSettings {
                line_ends,
                ..UserGitSettings::default()
            },
        );
        session.sample.write("text", "1\r\nx\r\n3\r\n");
        session.git(&["commit", "-q", "-m", "change", "text"]);
        assert_eq!(
            session
                .git(&["show", "--numstat", "--format=", "HEAD"])
                .trim(),
            expected,
            "{own:?}"
        );
    };
    check(None, "1\t1\ttext");
    check(Some("false"), "3\t3\ttext");
}

/// The config of a repository may have come with it: it could make any file of the user's readable
/// in the session.
#[test]
fn ignore_files_named_by_a_repository_are_not_read_outside_or_if_hidden() {
    let outside = tempfile::NamedTempFile::new().expect("a file");
    fs::write(outside.path(), "token").expect("written");
    let outside = outside.path().display().to_string();
    for said in [
        ".env",
        "./deep/../.env",
        "/the/project/.env",
        "/the/project//./.env",
        "keys/one",
        "link",
        "../beside",
        &outside,
    ] {
        let sample = sample();
        sample.write(".env", "token");
        sample.write("keys/one", "token");
        fs::write(sample.beside("beside"), "token").expect("written");
        symlink(".env", sample.path("link")).expect("linked");
        fs::create_dir(sample.path("deep")).expect("made");
        sample.git(&["config", "core.excludesFile", said]);
        let session = SampleSession::hiding(sample, &[".env", "keys"]);
        let excluded = fs::read_to_string(session.sample.path(".git/info/exclude")).expect("read");
        assert!(!excluded.contains("token"), "{said}: {excluded}");
        let notes = &session.prepared.repositories[0].notes;
        assert!(
            notes.len() == 1 && notes[0].contains("core.excludesFile"),
            "{said}: {notes:?}"
        );
    }
}

#[test]
fn a_filter_of_the_users_git_makes_the_session_read_only() {
    let filtered = |path: &str| {
        Some(GitRefusal::Filtered {
            name: "crypt".into(),
            path: path.into(),
        })
    };
    let set = |sample: &Sample| drop(sample.git(&["config", "filter.crypt.clean", "enc"]));
    check_refused(
        |sample| {
            drop(sample.commit("conf/.gitattributes", "# one\n*.yml diff=x filter=crypt\n"));
            set(sample);
        },
        &filtered("conf/.gitattributes").expect("one"),
    );
    check_refused(
        |sample| {
            sample.write(
                ".git/info/attributes",
                "[attr]secret filter=crypt -diff\n*.yml secret\n",
            );
            set(sample);
        },
        &filtered("info/attributes").expect("one"),
    );
    // Only the user's own settings have it, or files that they include may.
    for (person, refused) in [
        (
            UserGitSettings {
                filters: vec!["books".into(), "crypt".into()],
                ..UserGitSettings::default()
            },
            true,
        ),
        (
            UserGitSettings {
                has_more: true,
                ..UserGitSettings::default()
            },
            true,
        ),
        (
            UserGitSettings {
                filters: vec!["books".into()],
                ..UserGitSettings::default()
            },
            false,
        ),
        (UserGitSettings::default(), false),
    ] {
        let sample = sample();
        sample.write(
            ".gitattributes",
            "*.yml filter=crypt\n#* filter=books\n* filter=\n* -filter\n",
        );
        sample.git(&["config", "filter.crypt.required", "true"]);
        let session = SampleSession::of_person(sample, person);
        assert_eq!(
            session.refused()[0].1,
            filtered(".gitattributes").filter(|_| refused)
        );
    }
    check_refused(
        |sample| {
            sample.write(".gitattributes", "*.yml filter=crypt\n");
            sample.git(&["config", "include.path", "more"]);
        },
        &filtered(".gitattributes").expect("one"),
    );
    // Attributes may lie in no repository, or be named for all of them.
    let theirs = |path: &str, is_of_machine| {
        let named = if path.starts_with('/') {
            vec!["crypt".into()]
        } else {
            Vec::new()
        };
        UserGitSettings {
            attributes: vec![AttributesFile {
                path: path.into(),
                filters: named,
                is_of_machine,
            }],
            ..UserGitSettings::default()
        }
    };
    for (person, said, refused) in [
        (
            theirs("/home/ann/.config/git/attributes", false),
            None,
            filtered("/home/ann/.config/git/attributes"),
        ),
        (
            theirs("/home/ann/.config/git/attributes", false),
            Some("b"),
            None,
        ),
        (
            theirs("/etc/gitattributes", true),
            Some("b"),
            filtered("/etc/gitattributes"),
        ),
        (theirs("in/each", false), None, filtered("in/each")),
        (theirs("not/there", false), None, None),
        (
            UserGitSettings::default(),
            Some("in/each"),
            filtered("in/each"),
        ),
        (
            UserGitSettings::default(),
            Some("/the/project/in/each"),
            filtered("/the/project/in/each"),
        ),
        (
            UserGitSettings::default(),
            Some("~/attributes"),
            Some(GitRefusal::LargeFilesUnknown {
                path: "~/attributes".into(),
                problem: "it is not in the project".to_owned(),
            }),
        ),
        (UserGitSettings::default(), Some(""), None),
    ] {
        let sample = sample();
        set(&sample);
        sample.write("in/each", "*.yml filter=crypt\n");
        if let Some(said) = said {
            sample.git(&["config", "core.attributesFile", said]);
        }
        let session = SampleSession::of_person(sample, person.clone());
        assert_eq!(session.refused()[0].1, refused, "{person:?} {said:?}");
    }
    // A filter that no file passes does not count, and without any filter nothing is examined.
    {
        let sample = sample();
        sample.git(&["config", "core.attributesFile", "~/attributes"]);
        assert_eq!(SampleSession::of(sample).refused()[0].1, None);
    }
    let sample = sample();
    set(&sample);
    let session = SampleSession::of(sample);
    assert_eq!(session.refused()[0].1, None);
    day(&session, "");
}
