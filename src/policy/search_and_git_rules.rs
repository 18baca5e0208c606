//! Tests of rules and answers for searches, listings and git queries.

use super::Action;
use super::ExactCall;
use super::Rule;
use podbay_wire::Call;
use podbay_wire::Cd;
use podbay_wire::EditLines;
use podbay_wire::Git;
use podbay_wire::GitBranch;
use podbay_wire::GitQuery;
use podbay_wire::GitStash;
use podbay_wire::LineOperation;
use podbay_wire::ListDirectory;
use podbay_wire::WriteFile;

fn git(query: GitQuery, path: &str) -> Action {
    let (timeout_ms, grace_ms, stream_bytes, tail_bytes) = (1, 1, 1, 1);
    Action::Box(Call::Git(Git {
        query,
        path: path.into(),
        protected: false,
        timeout_ms,
        grace_ms,
        stream_bytes,
        tail_bytes,
    }))
}

fn list(path: &str) -> Action {
    let list = ListDirectory {
        path: path.into(),
        recursive: false,
        show_hidden: false,
        show_size: false,
        max_entries: 1,
    };
    Action::Box(Call::ListDirectory(list))
}

#[test]
fn answers_about_git_cover_exactly_the_query() {
    let commit = |message: &str, files: &[&str]| GitQuery::Commit {
        message: message.to_owned(),
        files: files.iter().map(|&file| file.into()).collect(),
    };
    let diff = |file: Option<&str>, staged: bool, base: Option<&str>| GitQuery::Diff {
        staged,
        file: file.map(Into::into),
        base: base.map(ToOwned::to_owned),
    };
    let branch = |name: &str| {
        GitQuery::Branch(GitBranch::Create {
            name: name.to_owned(),
        })
    };
    let all = [
        branch("a"),
        branch("b"),
        GitQuery::Branch(GitBranch::Delete {
            name: "a".to_owned(),
        }),
        GitQuery::Branch(GitBranch::List),
        GitQuery::Checkout {
            target: "a".to_owned(),
            create: false,
        },
        GitQuery::Checkout {
            target: "a".to_owned(),
            create: true,
        },
        GitQuery::Checkout {
            target: "b".to_owned(),
            create: false,
        },
        GitQuery::Stash(GitStash::List),
        GitQuery::Stash(GitStash::Push { message: None }),
        GitQuery::Stash(GitStash::Push {
            message: Some("x".to_owned()),
        }),
        GitQuery::Stash(GitStash::Pop { index: 0 }),
        GitQuery::Stash(GitStash::Pop { index: 1 }),
        GitQuery::Stash(GitStash::Apply { index: 0 }),
        commit("x", &["a"]),
        commit("y", &["a"]),
        commit("x", &["b"]),
        diff(Some("a"), false, None),
        diff(None, false, Some("staged")),
        diff(None, true, None),
        GitQuery::Log {
            count: 1,
            oneline: true,
            file: Some("a".into()),
            author: None,
        },
        GitQuery::Log {
            count: 1,
            oneline: true,
            file: None,
            author: Some("a".to_owned()),
        },
    ];
    let exact: Vec<ExactCall> = all
        .iter()
        .map(|query| ExactCall::of(&git(query.clone(), "."), "").expect("it can be told apart"))
        .collect();
    for (at, one) in exact.iter().enumerate() {
        assert!(
            exact[..at].iter().all(|other| other != one),
            "{}",
            one.words()
        );
        assert_eq!(
            ExactCall::of(&git(all[at].clone(), "/workspace/"), ""),
            Some(one.clone()),
            "it is the same"
        );
    }
    assert_eq!(exact[0].words(), "git_branch (create, a)");
    assert_eq!(
        ExactCall::of(&git(commit("x", &[]), "."), ""),
        None,
        "whatever has changed by then"
    );
    assert_ne!(
        ExactCall::of(&git(branch("a"), "sub"), ""),
        Some(exact[0].clone()),
        "in another repository"
    );
    let of = |query: GitQuery, path: &str| {
        ExactCall::of(&git(query, path), "").expect("it can be told apart")
    };
    assert_ne!(
        of(diff(Some("a"), false, None), "."),
        of(diff(None, false, None), "a")
    );
    assert_ne!(
        of(diff(Some("a"), false, None), "."),
        of(diff(Some("a"), false, None), "b")
    );
    assert_ne!(of(commit("x", &["a"]), "."), of(commit("x", &["a"]), "b"));
}

#[test]
fn branch_rules_match_branch_names() {
    let rule = |text: &str| Rule::parse(text).expect("a good rule");
    let create = |name: &str| {
        GitQuery::Branch(GitBranch::Create {
            name: name.to_owned(),
        })
    };
    let delete = |name: &str| {
        GitQuery::Branch(GitBranch::Delete {
            name: name.to_owned(),
        })
    };
    for (text, query, denies, allows) in [
        ("git_branch(main)", delete("main"), true, true),
        ("git_branch(main)", create("main"), true, true),
        ("git_branch(main)", delete("maintenance"), false, false),
        ("git_branch(release/*)", delete("release/1.0"), true, true),
        ("git_branch(release/**)", create("release/1/2"), true, true),
        (
            "git_branch(/^(main|release[/].*)$/)",
            delete("release/1.0"),
            true,
            true,
        ),
        ("git_branch(main)", delete("@{-1}"), true, false),
        (
            "git_branch(main)",
            GitQuery::Branch(GitBranch::List),
            false,
            false,
        ),
        ("git_branch", delete("x"), true, true),
    ] {
        // In whichever repository it is.
        for path in [".", "sub"] {
            let action = git(query.clone(), path);
            assert_eq!(
                rule(text).may_match(&action, None, false),
                denies,
                "{text} {query:?} {path}"
            );
            assert_eq!(
                rule(text).matches(&action, None),
                allows,
                "{text} {query:?} {path}"
            );
        }
    }
    assert!(
        !rule("git_branch(sub)").may_match(&git(create("x"), "sub"), None, false),
        "a repository is no branch"
    );
}

#[test]
fn answers_about_lines_cover_what_happens_to_them() {
    let write = |append: bool| {
        Action::Box(Call::WriteFile(WriteFile {
            path: "a".into(),
            content: String::new(),
            append,
            protected: false,
            known: None,
        }))
    };
    let edit = |operation: LineOperation| {
        let (path, new_content) = ("a".into(), String::new());
        Action::Box(Call::EditLines(EditLines {
            path,
            operation,
            start_line: 1,
            end_line: 1,
            new_content,
            protected: false,
            known: None,
        }))
    };
    let of = |action: &Action| ExactCall::of(action, "").expect("it can be told apart");
    assert_eq!(of(&write(true)), of(&write(true)));
    assert_ne!(
        of(&write(true)),
        of(&write(false)),
        "one adds, the other takes the place of all"
    );
    assert_ne!(
        of(&edit(LineOperation::Insert)),
        of(&edit(LineOperation::Delete))
    );
    assert_eq!(
        of(&edit(LineOperation::Insert)).words(),
        "edit_lines a (insert)"
    );
}

#[test]
fn denying_a_folders_contents_denies_listing_it() {
    let rule = |text: &str| Rule::parse(text).expect("a good rule");
    for (text, path, is_of) in [
        ("list_directory(secret/**)", "secret", true),
        ("list_directory(secret/**)", "src/../secret/", true),
        ("list_directory(secret/*.pem)", "secret", true),
        ("list_directory(/^secret[/]/)", "secret", true),
        ("list_directory({secret/**,private/**})", "secret", true),
        ("list_directory({secret/*,x/y})", "secret", true),
        ("list_directory({secret/*,x/y})", "x", false),
        ("list_directory(secret/**/*)", "secret", true),
        ("list_directory(secret/**/*.txt)", "secret/a", true),
        ("list_directory(secret/**/**)", "secret", true),
        ("list_directory(/^secret[/].+/)", "secret", true),
        ("list_directory(/^secret[/].+/)", "src", false),
        ("list_directory(/^src?/x/)", "sr", true),
        ("list_directory(/[.]txt$/)", "secret", true),
        ("list_directory(**/*.rs)", ".", true),
        ("list_directory(*.rs)", ".", true),
        ("list_directory(*.rs)", "src", false),
        ("list_directory(a/**/b)", "a", false),
        ("list_directory(secret/**)", ".", false),
        ("list_directory(secret/**)", "other", false),
        ("list_directory(src/gen)", "src", false),
        ("list_directory(src/gen)", "src/gen", true),
    ] {
        assert_eq!(
            rule(text).may_match(&list(path), None, false),
            is_of,
            "{text} {path}"
        );
    }
    let cd = |path: &str| Action::Box(Call::Cd(Cd { path: path.into() }));
    assert!(
        rule("cd(secret/**)").may_match(&cd("secret"), None, false)
            && !rule("cd(secret/**)").may_match(&cd("src"), None, false)
    );
    let log = |file: Option<&str>| GitQuery::Log {
        count: 1,
        oneline: true,
        file: file.map(Into::into),
        author: None,
    };
    assert!(rule("git_log(secret/**)").may_match(&git(log(Some("secret")), "."), None, false));
    assert!(!rule("git_log(secret/**)").may_match(&git(log(Some("src")), "."), None, false));
    assert!(
        !rule("git_log(secret/**)").may_match(&git(log(None), "."), None, false),
        "what commits are called is of no file"
    );
    let diff = |file: Option<&str>| GitQuery::Diff {
        staged: false,
        file: file.map(Into::into),
        base: None,
    };
    // They show the whole repository that contains the folder.
    for path in [".", "src"] {
        assert!(
            rule("git_status(secret/**)").may_match(&git(GitQuery::Status, path), None, false),
            "{path}"
        );
        assert!(
            rule("git_diff(secret/**)").may_match(&git(diff(None), path), None, false),
            "{path}"
        );
    }
    assert!(rule("git_diff(secret/**)").may_match(&git(diff(Some("secret")), "."), None, false));
    assert!(!rule("git_diff(secret/**)").may_match(&git(diff(Some("src")), "."), None, false));
    let checkout = |create| GitQuery::Checkout {
        target: "a".to_owned(),
        create,
    };
    let index = 0;
    for (text, query) in [
        ("git_checkout", checkout(false)),
        ("git_checkout", checkout(true)),
        (
            "git_stash",
            GitQuery::Stash(GitStash::Push { message: None }),
        ),
        ("git_stash", GitQuery::Stash(GitStash::Pop { index })),
        ("git_stash", GitQuery::Stash(GitStash::Apply { index })),
        ("git_stash", GitQuery::Stash(GitStash::Drop { index })),
    ] {
        for pattern in ["secret/**", "secret/a", "/^secret/"] {
            assert!(
                rule(&format!("{text}({pattern})")).may_match(
                    &git(query.clone(), "."),
                    None,
                    false
                ),
                "{text}({pattern}) {query:?}"
            );
        }
        assert!(
            !rule(&format!("{text}(secret/**)")).matches(&git(query.clone(), "."), None),
            "{query:?}"
        );
    }
    assert!(
        !rule("git_stash(secret/**)").may_match(
            &git(GitQuery::Stash(GitStash::List), "."),
            None,
            false
        ),
        "a list names no file"
    );
    assert!(
        !rule("list_directory(secret/**)").matches(&list("secret"), None),
        "one that allows speaks of no more than it says"
    );
}
