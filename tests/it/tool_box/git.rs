//! The git tools that read, and what a repository may try to have them run.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A project with a commit, a change and a file that git does not know.
async fn repository() -> Hand {
    repository_of(Hand::new().await)
}

fn repository_of(hand: Hand) -> Hand {
    hand.run("git", &["init", "-q", "-b", "main"]);
    hand.put("a.txt", "one\ntwo\n");
    hand.put("b name.txt", "b\n");
    hand.run("git", &["add", "."]);
    hand.run("git", &["commit", "-q", "-m", "Begin it"]);
    hand.put("a.txt", "one\nthree\n");
    hand.put("new.txt", "n\n");
    hand
}

#[tokio::test]
async fn status_difference_and_log_are_shown() {
    let hand = repository().await;
    assert_eq!(
        hand.ok("git_status", none()).await,
        "## main\n M a.txt\n?? new.txt\n"
    );
    let diff = hand.ok("git_diff", none()).await;
    assert!(
        diff.contains("-two\n+three\n") && !diff.contains('\u{1b}'),
        "{diff}"
    );
    assert!(
        hand.ok("git_diff", json!({"staged": true}))
            .await
            .contains("(no output)")
    );
    hand.run("git", &["add", "a.txt"]);
    assert!(
        hand.ok("git_diff", json!({"cached": true, "file": "a.txt"}))
            .await
            .contains("+three")
    );
    assert!(
        hand.ok("git_diff", json!({"file": "b name.txt", "staged": true}))
            .await
            .contains("(no output)")
    );
    hand.run("git", &["commit", "-q", "-m", "Continue"]);
    let log = hand.ok("git_log", none()).await;
    assert!(
        log.lines().count() == 2
            && log
                .lines()
                .next()
                .is_some_and(|line| line.ends_with("(HEAD -> main) Continue")),
        "{log}"
    );
    let log = hand
        .ok(
            "git_log",
            json!({"n": 1, "oneline": false, "author": "ann"}),
        )
        .await;
    assert!(
        log.starts_with("commit ")
            && log.contains("Author: ann")
            && log.contains("    Continue")
            && !log.contains("Begin"),
        "{log}"
    );
    assert!(
        hand.ok("git_log", json!({"file": "b name.txt"}))
            .await
            .ends_with("Begin it\n")
    );
    hand.run("git", &["checkout", "-q", "-b", "side"]);
    hand.put("side.txt", "s\n");
    hand.run("git", &["add", "."]);
    hand.run("git", &["commit", "-q", "-m", "Aside"]);
    let diff = hand.ok("git_diff", json!({"base": "main"})).await;
    assert!(
        diff.contains("side.txt") && !diff.contains("three"),
        "{diff}"
    );
    let diff = hand.ok("git_diff", json!({"base": "side..main"})).await;
    assert!(
        diff.contains("deleted file") && diff.contains("side.txt"),
        "{diff}"
    );
}

/// What a branch did is told from what happened beside it.
#[tokio::test]
async fn a_base_that_has_moved_on_and_an_author_choose_what_is_shown() {
    let hand = repository().await;
    hand.run("git", &["checkout", "-q", "--", "."]);
    let commit = |branch: &str, file: &str, author: &str| {
        hand.put(file, "x\n");
        hand.run("git", &["add", file]);
        hand.run(
            "git",
            &[
                "commit",
                "-q",
                "-m",
                &format!("Add {file} on {branch}"),
                "--author",
                author,
            ],
        );
    };
    hand.run("git", &["checkout", "-q", "-b", "side"]);
    commit("side", "side.txt", "Bob <bob@example.org>");
    hand.run("git", &["checkout", "-q", "main"]);
    commit("main", "moved-on.txt", "ann <ann@example.org>");
    hand.run("git", &["checkout", "-q", "side"]);
    for (base, side, main) in [
        ("main", true, false),
        ("main...side", true, false),
        ("main...HEAD", true, false),
        ("main..side", true, true),
        ("side...main", false, true),
    ] {
        let diff = hand.ok("git_diff", json!({ "base": base })).await;
        assert_eq!(
            (diff.contains("b/side.txt"), diff.contains("moved-on.txt")),
            (side, main),
            "{base}: {diff}"
        );
    }
    for (author, bob, ann) in [
        ("Bob", true, false),
        ("bob@example.org", true, false),
        ("ann", false, true),
        ("nobody", false, false),
    ] {
        let log = hand.ok("git_log", json!({ "author": author })).await;
        assert_eq!(
            (log.contains("Add side.txt"), log.contains("Begin it")),
            (bob, ann),
            "{author}: {log}"
        );
    }
}

#[tokio::test]
async fn words_for_git_are_never_options_and_paths_never_patterns() {
    let hand = repository().await;
    let file = hand.guest.path("PWNED");
    let output = format!("--output={}", file.display());
    for (tool, arguments) in [
        ("git_diff", json!({ "base": output })),
        ("git_diff", json!({ "base": "-p" })),
        ("git_log", json!({ "author": output })),
        ("git_diff", json!({"base": "a\nb"})),
        ("git_diff", json!({"base": "main", "staged": true})),
        ("git_log", json!({"count": -1})),
        ("git_status", json!({"path": 5, "options": "--x"})),
    ] {
        hand.fails(tool, arguments, CallStatus::Invalid).await;
    }
    for path in [":(glob)**", "*.txt", ":/", ":!a.txt", &output, "--cached"] {
        let finished = hand.call("git_diff", json!({ "file": path })).await;
        assert!(
            !finished.text.contains("three"),
            "{path}: {}",
            finished.text
        );
    }
    for path in ["..", "/etc", "none", "a.txt"] {
        hand.fails("git_status", json!({ "path": path }), CallStatus::Failed)
            .await;
    }
    let text = hand
        .fails(
            "git_diff",
            json!({"file": "/etc/passwd"}),
            CallStatus::Failed,
        )
        .await;
    assert!(text.contains("outside"), "{text}");
    assert!(!file.exists());
    // Without a repository it says so, and does not look above the project or compare two paths of
    // the machine.
    let bare = Hand::new().await;
    for tool in ["git_status", "git_diff", "git_log"] {
        let text = bare.fails(tool, none(), CallStatus::Failed).await;
        assert!(
            text.contains("not a git repository") && !text.contains("usage:"),
            "{tool}: {text}"
        );
    }
}

#[tokio::test]
async fn a_base_that_is_the_last_commit_shows_what_is_not_committed() {
    let hand = repository().await;
    hand.run("git", &["add", "a.txt"]);
    for base in ["HEAD", "@"] {
        let diff = hand.ok("git_diff", json!({ "base": base })).await;
        assert!(diff.contains("-two\n+three\n"), "{diff}");
    }
    let diff = hand.ok("git_diff", json!({"base": "main"})).await;
    assert!(
        diff.contains("(no output)") && diff.contains("leave it out to see uncommitted changes"),
        "{diff}"
    );
}

/// The names of a folder or a file of a commit do not say whether they hold secrets, or are denied.
#[tokio::test]
async fn a_base_is_a_commit_and_no_file_or_folder_of_one() {
    let hand = repository().await;
    hand.put("conf/.env", "KEY=sesame\n");
    hand.put(".ssh/config", "sesame\n");
    hand.run("git", &["add", "-f", "."]);
    hand.run("git", &["commit", "-q", "-m", "Keep them"]);
    hand.run("git", &["tag", "folder", "HEAD:.ssh"]);
    hand.run("git", &["tag", "file", "HEAD:conf/.env"]);
    let empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    for base in ["HEAD:./src/../conf/.env", "HEAD:.ssh..HEAD~1:", ":/Keep"] {
        let text = hand
            .fails(
                "git_diff",
                json!({"base": base, "file": "a.txt"}),
                CallStatus::Invalid,
            )
            .await;
        assert!(text.contains("name a file in `file`"), "{text}");
    }
    for base in [
        "folder",
        "file",
        "folder^{tree}",
        &format!("folder..{empty}"),
        &format!("{empty}..file"),
        &format!("HEAD...{empty}"),
    ] {
        let finished = hand.call("git_diff", json!({ "base": base })).await;
        assert!(
            finished.status != CallStatus::Ok && !finished.text.contains("sesame"),
            "{base}: {}",
            finished.text
        );
    }
    for base in [
        "HEAD~1",
        "HEAD~1..",
        "..HEAD~1",
        "HEAD~1...HEAD",
        "main^..main",
    ] {
        let text = hand.ok("git_diff", json!({ "base": base })).await;
        assert!(
            text.contains("three") && text.contains("not shown") && !text.contains("sesame"),
            "{base}: {text}"
        );
    }
}

/// A command can make a repository whose files are said to be anywhere; what only reads would read
/// there.
#[tokio::test]
async fn a_repository_whose_files_lie_outside_is_not_asked() {
    let hand = repository().await;
    let outside = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(outside.path().join("a.txt"), "of the machine\n").expect("written");
    let elsewhere = outside.path().display().to_string();
    hand.run("git", &["init", "-q", "nested"]);
    hand.put("nested/a.txt", "one\n");
    hand.run("git", &["-C", "nested", "add", "."]);
    hand.run(
        "git",
        &["-C", "nested", "config", "core.worktree", &elsewhere],
    );
    std::os::unix::fs::symlink(outside.path(), hand.guest.path("link")).expect("linked");
    for worktree in [elsewhere.as_str(), "../../link"] {
        hand.run(
            "git",
            &["-C", "nested", "config", "core.worktree", worktree],
        );
        for tool in ["git_status", "git_diff", "git_log"] {
            let text = hand
                .fails(tool, json!({ "path": "nested" }), CallStatus::Failed)
                .await;
            assert!(
                text.contains("core.worktree")
                    && text.contains(&elsewhere)
                    && !text.contains("of the machine"),
                "{tool}: {text}"
            );
        }
    }
    hand.run(
        "git",
        &["-C", "nested", "config", "core.worktree", "../../nested"],
    );
    assert!(
        hand.ok("git_status", json!({"path": "nested"}))
            .await
            .contains("A  a.txt")
    );
}

/// The sandbox has the project's folder alone: of a linked worktree it has the files, and not the
/// repository.
#[tokio::test]
async fn a_worktree_whose_repository_is_elsewhere_is_told_with_a_way_on() {
    let hand = repository().await;
    let outside = tempfile::tempdir().expect("a temporary folder");
    let elsewhere = outside
        .path()
        .join("main/.git/worktrees/x")
        .display()
        .to_string();
    hand.put("linked/.git", format!("gitdir: {elsewhere}\n"));
    hand.put("linked/sub/a.txt", "one\n");
    for (path, tool) in [
        ("linked", "git_status"),
        ("linked/sub", "git_log"),
        ("linked", "git_diff"),
    ] {
        let text = hand
            .fails(tool, json!({ "path": path }), CallStatus::Failed)
            .await;
        assert!(
            text.starts_with(&format!("{path}: is a linked worktree or a submodule"))
                && text.contains(&elsewhere),
            "{text}"
        );
        assert!(
            text.contains("must be started in the folder that holds the repository")
                && !text.contains("fatal"),
            "{text}"
        );
    }
    // A submodule whose repository is here is one like any other.
    hand.run(
        "git",
        &["init", "-q", "--separate-git-dir", "kept.git", "module"],
    );
    hand.put("module/a.txt", "one\n");
    assert!(
        hand.ok("git_status", json!({"path": "module"}))
            .await
            .contains("?? a.txt")
    );
}

/// Each trap is sprung by plain git first: else this would show nothing.
#[tokio::test]
async fn nothing_that_a_repository_names_is_run() {
    let hand = repository().await;
    let trap = hand.guest.path("trap.sh");
    let pwned = hand.guest.path("PWNED");
    hand.put(
        "trap.sh",
        format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", pwned.display()),
    );
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).expect("changed");
    let trap = trap.display().to_string();
    hand.put(
        ".gitattributes",
        "*.txt filter=trap diff=trap\n*.md filter=other\n",
    );
    hand.put("c.md", "c\n");
    for (key, sprung_by) in [
        ("core.fsmonitor", "status"),
        ("filter.trap.clean", "diff"),
        ("filter.trap.process", "diff"),
        ("diff.trap.textconv", "diff"),
        ("diff.trap.command", "diff"),
        ("diff.external", "diff"),
        ("gpg.program", "log"),
    ] {
        hand.run("git", &["config", key, &trap]);
        let index = std::fs::read(hand.guest.path(".git/index")).expect("an index");
        // A file is compared anew only where it looks as if it had changed.
        hand.put("a.txt", format!("one\n{key}\n"));
        for (tool, arguments) in [
            ("git_status", none()),
            ("git_diff", none()),
            ("git_diff", json!({"staged": true})),
            ("git_diff", json!({"base": "HEAD"})),
            ("git_log", json!({"oneline": false})),
        ] {
            let finished = hand.call(tool, arguments).await;
            assert!(
                !pwned.exists(),
                "{key} was run by {tool}: {}",
                finished.text
            );
            assert_eq!(
                finished.status,
                CallStatus::Ok,
                "{key} {tool}: {}",
                finished.text
            );
        }
        assert_eq!(
            std::fs::read(hand.guest.path(".git/index")).expect("an index"),
            index,
            "reading writes nothing"
        );
        if key != "gpg.program" {
            let mut plain = std::process::Command::new("git");
            plain
                .arg(sprung_by)
                .current_dir(hand.guest.workspace.path())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_PAGER", "cat");
            let _ = plain
                .stdin(std::process::Stdio::null())
                .output()
                .expect("git");
            assert!(
                pwned.exists(),
                "{key} is no trap for plain git, so nothing was shown"
            );
            std::fs::remove_file(&pwned).expect("removed");
        }
        hand.run("git", &["config", "--unset", key]);
    }
    // One that cannot be switched off is refused.
    hand.run("git", &["config", "filter.a=b.clean", &trap]);
    assert!(
        hand.fails("git_status", none(), CallStatus::Failed)
            .await
            .contains("cannot be switched off")
    );
}

#[tokio::test]
async fn a_difference_leaves_out_what_is_protected_by_its_name_until_it_is_asked_for() {
    let hand = Hand::with(
        ToolSet::Full,
        Mode::Auto,
        policy::Options {
            allow: vec!["git_diff(.env)".to_owned()],
            ..policy::Options::default()
        },
        None,
    )
    .await;
    hand.run("git", &["init", "-q", "-b", "main"]);
    hand.put(".env", "KEY=old\n");
    hand.put("sub/.env.local", "KEY=old\n");
    hand.put(".env.example", "KEY=\n");
    hand.run("git", &["add", "-f", "."]);
    hand.run("git", &["commit", "-q", "-m", "Begin it"]);
    hand.put(".env", "KEY=hidden\n");
    hand.put("sub/.env.local", "KEY=hidden\n");
    hand.put(".env.example", "KEY=shown\n");
    for arguments in [none(), json!({"base": "HEAD"}), json!({"path": "sub"})] {
        let text = hand.ok("git_diff", arguments).await;
        assert!(
            !text.contains("hidden") && !text.contains("KEY=old"),
            "{text}"
        );
    }
    let text = hand.ok("git_diff", none()).await;
    assert!(
        text.contains("+KEY=shown") && text.contains("names are protected: 2 file(s)"),
        "{text}"
    );
    assert!(
        !hand
            .ok("git_diff", json!({"file": "sub"}))
            .await
            .contains("hidden")
    );
    assert!(
        hand.ok("git_diff", json!({"file": ".env"}))
            .await
            .contains("+KEY=hidden")
    );
    hand.fails(
        "git_diff",
        json!({"file": "sub/.env.local"}),
        CallStatus::Denied,
    )
    .await;
    // A rule about a folder speaks of whatever would show it.
    let hand = Hand::with(
        ToolSet::Full,
        Mode::Auto,
        policy::Options {
            deny: vec!["git_diff(sub/**)".to_owned()],
            ..policy::Options::default()
        },
        None,
    )
    .await;
    hand.run("git", &["init", "-q"]);
    for arguments in [
        none(),
        json!({"file": "sub"}),
        json!({"file": "sub/x"}),
        json!({"path": "sub"}),
    ] {
        hand.fails("git_diff", arguments, CallStatus::Denied).await;
    }
    hand.put("other", "o");
    hand.ok("git_diff", json!({"file": "other"})).await;
}

#[tokio::test]
async fn a_file_that_git_has_never_heard_of_is_named_and_one_that_is_gone_has_its_past() {
    let hand = repository().await;
    for tool in ["git_diff", "git_log"] {
        for (file, words) in [
            ("b nam.txt", "did you mean b name.txt?"),
            ("none/at/all", "no such file"),
            ("a.txt/x", "is not a directory"),
        ] {
            let text = hand
                .fails(tool, json!({ "file": file }), CallStatus::Failed)
                .await;
            assert!(
                text.starts_with(file) && text.contains(words),
                "{tool} {file}: {text}"
            );
        }
    }
    // A name is missing in what was committed, in what is staged, or only on the disk.
    hand.run("git", &["rm", "-q", "b name.txt"]);
    assert!(
        hand.ok("git_diff", json!({"file": "b name.txt", "staged": true}))
            .await
            .contains("deleted file")
    );
    hand.run("git", &["commit", "-q", "-m", "Take it away"]);
    assert!(
        hand.ok("git_diff", json!({"file": "b name.txt"}))
            .await
            .contains("(no output)")
    );
    assert!(
        hand.ok("git_log", json!({"file": "b name.txt"}))
            .await
            .contains("Take it away")
    );
    hand.put("staged", "s");
    hand.run("git", &["add", "staged"]);
    std::fs::remove_file(hand.guest.path("staged")).expect("removed");
    assert!(
        hand.ok("git_log", json!({"file": "staged"}))
            .await
            .contains("(no output)")
    );
    assert!(
        hand.ok("git_diff", json!({"file": "new.txt"}))
            .await
            .contains("(no output)"),
        "git does not know it, but it is there"
    );
}

#[tokio::test]
async fn more_protected_names_than_a_program_can_be_given_are_too_many() {
    let hand = repository().await;
    let folder = "d".repeat(200);
    for n in 0..490 {
        hand.put(&format!("{folder}/{folder}/.env.{n}"), "KEY=old\n");
    }
    hand.run("git", &["add", "-f", "."]);
    hand.run("git", &["commit", "-q", "-m", "Keep too much"]);
    for n in 0..490 {
        hand.put(&format!("{folder}/{folder}/.env.{n}"), "KEY=hidden\n");
    }
    let text = hand.fails("git_diff", none(), CallStatus::Failed).await;
    assert!(
        text.contains("name a file or a folder") && !text.contains("hidden"),
        "{text}"
    );
    hand.ok("git_diff", json!({"file": "a.txt"})).await;
}

#[tokio::test]
async fn branches_commits_and_stashes_are_made_by_tools() {
    let hand = repository().await;
    hand.run("git", &["config", "user.name", "ann"]);
    hand.run("git", &["config", "user.email", "ann@example.org"]);
    // No hook of the repository runs.
    hand.put(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    std::fs::set_permissions(
        hand.guest.path(".git/hooks/pre-commit"),
        PermissionsExt::from_mode(0o755),
    )
    .expect("set");
    hand.run("git", &["config", "core.hooksPath", ".git/hooks"]);
    hand.ok("git_checkout", json!({"branch": "side", "create": true}))
        .await;
    let done = hand
        .ok(
            "git_commit",
            json!({"message": "-q is no option", "files": ["a.txt"]}),
        )
        .await;
    assert!(
        done.contains("[side ") && done.contains("-q is no option"),
        "{done}"
    );
    assert_eq!(hand.ok("git_status", none()).await, "## side\n?? new.txt\n");
    hand.put("a.txt", "four\n");
    hand.ok("git_stash", json!({"message": "later"})).await;
    assert!(
        hand.ok("git_stash", json!({"action": "list"}))
            .await
            .contains("later")
    );
    hand.ok("git_stash", json!({"action": "pop"})).await;
    hand.ok("git_commit", json!({"message": "All of it"})).await;
    assert_eq!(hand.ok("git_status", none()).await, "## side\n");
    hand.ok("git_branch", json!({"action": "create", "name": "third"}))
        .await;
    let listed = hand.ok("git_branch", none()).await;
    assert!(
        listed.contains("main") && listed.contains("* side") && listed.contains("third"),
        "{listed}"
    );
    hand.ok("git_branch", json!({"action": "delete", "name": "third"}))
        .await;
    hand.ok("git_checkout", json!({"target": "main"})).await;
    for (tool, arguments) in [
        ("git_branch", json!({"action": "create"})),
        ("git_branch", json!({"action": "create", "name": "-D"})),
        ("git_checkout", json!({"target": "--orphan=x"})),
        ("git_stash", json!({"index": -1})),
        ("git_commit", json!({"message": " "})),
    ] {
        hand.fails(tool, arguments, CallStatus::Invalid).await;
    }
    hand.fails(
        "git_checkout",
        json!({"target": "nowhere"}),
        CallStatus::Failed,
    )
    .await;
}

/// Git's own words would name what it was asked inside, or a way on that no tool has.
#[tokio::test]
async fn what_git_would_refuse_is_told_with_what_can_be_done() {
    let hand = repository().await;
    hand.put(".gitignore", "build\n");
    hand.put("build/out", "o\n");
    hand.run("git", &["checkout", "-q", "-b", "side"]);
    hand.run("git", &["commit", "-q", "-m", "Aside", "a.txt"]);
    hand.run("git", &["checkout", "-q", "main"]);
    let commit = |files: &[&str]| json!({"message": "x", "files": files});
    for (tool, arguments, words) in [
        (
            "git_diff",
            json!({"base": "nope"}),
            &[
                "`base`: `nope` is not a branch, tag or commit",
                "git_branch lists",
            ][..],
        ),
        (
            "git_diff",
            json!({"base": "main..nope"}),
            &["`nope` is not a branch"],
        ),
        (
            "git_diff",
            json!({"base": "main...--all"}),
            &["`--all` is not a branch"],
        ),
        (
            "git_checkout",
            json!({"target": "nope"}),
            &["`target`: `nope` is not a branch", "create set to true"],
        ),
        (
            "git_commit",
            commit(&["a.txt", "b nam.txt"]),
            &["b nam.txt: no such file", "did you mean b name.txt?"],
        ),
        (
            "git_commit",
            commit(&["build/out"]),
            &["ignored by one of your .gitignore files"],
        ),
        (
            "git_stash",
            json!({"action": "apply", "index": 5}),
            &["`index`: there is no stash"],
        ),
        (
            "git_stash",
            json!({"action": "pop"}),
            &["`index`: there is no stash"],
        ),
        (
            "git_branch",
            json!({"action": "create", "name": "side"}),
            &["there is a branch `side` already", "git_checkout"],
        ),
        (
            "git_branch",
            json!({"action": "delete", "name": "nope"}),
            &["there is no branch `nope`", "git_branch lists"],
        ),
        (
            "git_branch",
            json!({"action": "delete", "name": "main"}),
            &["`main` is checked out", "git_checkout"],
        ),
        (
            "git_branch",
            json!({"action": "delete", "name": "side"}),
            &[
                "`side` has commits that `HEAD` has not",
                "`git merge side`",
                "the user",
            ],
        ),
    ] {
        let text = hand
            .fails(tool, arguments.clone(), CallStatus::Failed)
            .await;
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{tool} {arguments}: {text}"
        );
        assert!(
            !["^{", "literal", "fatal", "-D"]
                .iter()
                .any(|inside| text.contains(inside)),
            "{tool} {arguments}: {text}"
        );
    }
    hand.put("a.txt", "away\n");
    hand.run("git", &["stash", "-q"]);
    let text = hand
        .fails(
            "git_stash",
            json!({"action": "apply", "index": 5}),
            CallStatus::Failed,
        )
        .await;
    assert!(text.contains("there is one, and its index is 0"), "{text}");
    hand.put("a.txt", "away too\n");
    hand.run("git", &["stash", "-q"]);
    let text = hand
        .fails(
            "git_stash",
            json!({"action": "apply", "index": 2}),
            CallStatus::Failed,
        )
        .await;
    assert!(text.contains("have the indexes 0 to 1"), "{text}");
    // A file that git is not to know any more is no file that is gone.
    hand.run("git", &["rm", "-q", "--cached", "a.txt"]);
    hand.put(".gitignore", "a.txt\nbuild\n");
    hand.put("a.txt", "private\n");
    hand.fails("git_commit", commit(&["a.txt"]), CallStatus::Failed)
        .await;
    hand.run("sh", &["-c", "! git log -p --all | grep -q private"]);
    hand.run("git", &["reset", "-q", "--hard"]);
    // What is merged goes, and so does a file that is staged as removed.
    hand.run("git", &["merge", "-q", "side"]);
    hand.ok("git_branch", json!({"action": "delete", "name": "side"}))
        .await;
    hand.run("git", &["config", "user.name", "ann"]);
    hand.run("git", &["config", "user.email", "ann@example.org"]);
    hand.run("git", &["rm", "-q", "b name.txt"]);
    hand.ok("git_commit", commit(&["b name.txt", "new.txt"]))
        .await;
    hand.run("git", &["rm", "-q", "new.txt"]);
    hand.ok("git_commit", commit(&["new.txt"])).await;
    assert_eq!(
        hand.ok("git_status", none()).await,
        "## main\n?? .gitignore\n"
    );
    // A branch of a remote is made one here, as git does.
    hand.run("git", &["update-ref", "refs/remotes/origin/far", "HEAD"]);
    hand.run("git", &["config", "remote.origin.url", "/nonexistent"]);
    hand.run(
        "git",
        &[
            "config",
            "remote.origin.fetch",
            "+refs/heads/*:refs/remotes/origin/*",
        ],
    );
    hand.ok("git_checkout", json!({"target": "far"})).await;
    // Where nothing was committed yet there is nothing to compare with.
    let bare = Hand::new().await;
    bare.run("git", &["init", "-q"]);
    let text = bare
        .fails("git_diff", json!({"base": "HEAD"}), CallStatus::Failed)
        .await;
    assert!(text.contains("no commit yet"), "{text}");
}

#[tokio::test]
async fn a_stash_is_applied_popped_and_dropped_by_its_number() {
    // What is dropped is lost, so it takes a rule.
    let allow = policy::Options {
        allow: vec!["git_stash".to_owned()],
        ..policy::Options::default()
    };
    let hand = repository_of(Hand::with(ToolSet::Full, Mode::Auto, allow, None).await);
    hand.run("git", &["config", "user.name", "ann"]);
    hand.run("git", &["config", "user.email", "ann@example.org"]);
    std::fs::remove_file(hand.guest.path("new.txt")).expect("removed");
    for words in ["first", "second", "third"] {
        hand.put("a.txt", format!("{words}\n"));
        hand.ok("git_stash", json!({"message": words})).await;
    }
    let listed = || async {
        hand.ok("git_stash", json!({"action": "list"}))
            .await
            .lines()
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let is_of = |line: &str, at: usize, words: &str| {
        line.starts_with(&format!("stash@{{{at}}}")) && line.ends_with(words)
    };
    let all = listed().await;
    assert!(
        all.len() == 3 && is_of(&all[0], 0, "third") && is_of(&all[2], 2, "first"),
        "{all:?}"
    );
    // It stays where it is only applied.
    hand.ok("git_stash", json!({"action": "apply", "index": 2}))
        .await;
    assert_eq!(
        (hand.text("a.txt"), listed().await),
        ("first\n".to_owned(), all)
    );
    hand.run("git", &["checkout", "-q", "--", "a.txt"]);
    hand.ok("git_stash", json!({"action": "apply"})).await;
    assert_eq!(
        hand.text("a.txt"),
        "third\n",
        "without a number it is the last one"
    );
    hand.run("git", &["checkout", "-q", "--", "a.txt"]);
    hand.ok("git_stash", json!({"action": "drop", "index": 1}))
        .await;
    let rest = listed().await;
    assert!(
        rest.len() == 2 && is_of(&rest[0], 0, "third") && is_of(&rest[1], 1, "first"),
        "{rest:?}"
    );
    hand.ok("git_stash", json!({"action": "pop", "index": 1}))
        .await;
    assert_eq!(hand.text("a.txt"), "first\n");
    let rest = listed().await;
    assert!(rest.len() == 1 && is_of(&rest[0], 0, "third"), "{rest:?}");
    for action in ["apply", "pop", "drop"] {
        hand.fails(
            "git_stash",
            json!({"action": action, "index": 9}),
            CallStatus::Failed,
        )
        .await;
    }
    hand.ok("git_stash", json!({"action": "drop"})).await;
    assert!(
        !hand
            .ok("git_stash", json!({"action": "list"}))
            .await
            .contains("stash@")
    );
}
