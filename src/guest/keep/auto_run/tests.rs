use std::os::unix::fs::symlink;

use super::*;
use crate::keep::git::sample::Sample;

/// Returns those of the paths that may run as files.
fn running(sample: &Sample, paths: &[&str]) -> Vec<String> {
    let place = sample.path("").display().to_string();
    let known = AutoRunSources {
        place: place.trim_end_matches('/').as_bytes(),
        ..AutoRunSources::default()
    };
    let auto_run = AutoRun::of(
        &git::UntrustedFolder::open(&sample.path("")).expect("opens"),
        known,
    )
    .expect("looked");
    paths
        .iter()
        .filter(|path| auto_run.runs_as_file(&BytesPath::from(**path)).is_some())
        .map(ToString::to_string)
        .collect()
}

#[test]
fn targets_of_links_with_auto_run_names_may_run() {
    let sample = Sample::without_git();
    for folder in ["mk/", "conf/", "deep/er/", "plain/"] {
        sample.write(folder, "");
    }
    let absolute = sample.path("deep/er/rc").display().to_string();
    let links = [
        ("mk/inc", "Makefile"),
        ("b", "a"),
        ("../a", "deep/Makefile"),
        ("conf", ".vscode"),
        (&absolute, ".envrc"),
        ("plain", "p"),
    ];
    for (target, link) in links.into_iter().chain([
        ("er/../../mk", "deep/mk"),
        ("mk/build", "deep/build.rs"),
        ("..", "loop"),
        ("/etc", ".husky"),
    ]) {
        symlink(target, sample.path(link)).expect("linked");
    }
    let paths = [
        "mk/inc",
        "MK/Inc",
        "b",
        "conf/tasks.json",
        "deep/er/rc",
        "mk/build",
    ];
    assert_eq!(running(&sample, &paths), paths);
    assert_eq!(
        running(
            &sample,
            &["mk/other", "plain/x", "deep/er/other", "src/main.rs", "inc"]
        ),
        [""; 0]
    );
    let place = sample.path("").display().to_string();
    let known = AutoRunSources {
        place: place.as_bytes(),
        ..AutoRunSources::default()
    };
    let auto_run = AutoRun::of(
        &git::UntrustedFolder::open(&sample.path("")).expect("opens"),
        known,
    )
    .expect("looked");
    let runs = auto_run.runs_as_file(&"mk/inc".into()).expect("may run");
    assert!(
        runs.why.starts_with("the link Makefile leads to it: ")
            && runs.when == RunTrigger::WhenYouRunIt,
        "{runs:?}"
    );
    assert_eq!(
        auto_run
            .runs_as_file(&"deep/er/rc".into())
            .expect("may run")
            .when,
        RunTrigger::ByItself
    );
    // In its place a link would lead there.
    assert!(
        auto_run.runs_at(&"mk".into()).is_some() && auto_run.runs_at(&"plain".into()).is_none()
    );
}

#[test]
fn paths_that_git_obeys_may_run_whether_they_exist_or_not() {
    let sample = Sample::with_submodules();
    sample.git(&["init", "-q", "deep/nested"]);
    sample.git(&["init", "-q", "--bare", "fixture.git"]);
    sample.write("real/x", "x");
    symlink("real", sample.path("led")).expect("linked");
    sample.git(&["config", "core.hooksPath", "led/hooks"]);
    sample.git_in("sub", &["config", "core.hooksPath", "../hooks"]);
    sample.git_in(
        "deep/nested",
        &["config", "include.path", "../own.gitconfig"],
    );
    sample.git(&["config", "filter.a.clean", "sh tools/clean.sh %f"]);
    sample.git_in("sub", &["config", "diff.a.textconv", "./show"]);
    let paths = [
        "tools/clean.sh",
        "sub/show",
        "led/hooks/pre-commit",
        "real/hooks/pre-commit",
        "Real/Hooks/sub/x",
        "hooks/post-checkout",
        "deep/nested/own.gitconfig",
        "fixture.git/config",
        "fixture.git/hooks/update",
    ];
    assert_eq!(running(&sample, &paths), paths);
    let others = [
        "real/x",
        "sub/hooks/x",
        "deep/own.gitconfig",
        "fixture.git/objects/x",
        "fixture.git/refs/heads/x",
        "config",
    ];
    assert_eq!(running(&sample, &others), [""; 0]);
}

/// Returns why a path runs without being asked for.
fn why(sample: &Sample, path: &str) -> Option<String> {
    let place = sample.path("").display().to_string();
    let known = AutoRunSources {
        place: place.trim_end_matches('/').as_bytes(),
        ..AutoRunSources::default()
    };
    let auto_run = AutoRun::of(
        &git::UntrustedFolder::open(&sample.path("")).expect("opens"),
        known,
    )
    .expect("looked");
    auto_run
        .runs_as_file(&path.into())
        .filter(|runs| runs.when == RunTrigger::ByItself)
        .map(|runs| runs.why)
}

#[test]
fn files_named_by_hooks_run_by_themselves() {
    let sample = Sample::new();
    sample.write(
        ".git/hooks/pre-commit",
        "#!/bin/sh\nexec ./scripts/check.sh \"$@\"\n",
    );
    sample.write(
        ".git/hooks/post-commit",
        "#!/bin/sh\n. \"$(git rev-parse --show-toplevel)/scripts/lib.sh\"\n",
    );
    for path in ["scripts/check.sh", "scripts/lib.sh", "Scripts/Lib.sh"] {
        assert!(
            why(&sample, path).is_some_and(|why| why.contains("hooks or links")),
            "{path}"
        );
    }
    for path in ["scripts/other.sh", "check.sh", "src/main.rs", "Makefile"] {
        assert_eq!(why(&sample, path), None, "{path}");
    }
}

#[test]
fn only_files_named_by_an_auto_run_file_run_with_it() {
    for (file, text, named, others) in [
        (
            ".envrc",
            "source_env tools/env.sh\nexport A=1\nPATH_add bin\n",
            &["tools/env.sh"][..],
            &["tools/other.sh", "bin/x"][..],
        ),
        (
            ".vscode/tasks.json",
            r#"{"tasks":[{"command":"${workspaceFolder}/scripts/dev.sh","args":["-c"]}]}"#,
            &["scripts/dev.sh"],
            &["dev.sh"],
        ),
        (
            ".claude/settings.json",
            r#"{"hooks":{"Stop":[{"command":"python3 $CLAUDE_PROJECT_DIR/tools/stop.py"}]}}"#,
            &["tools/stop.py"],
            &["stop.py"],
        ),
        (
            ".devcontainer/devcontainer.json",
            r#"{"postCreateCommand":"bash .devcontainer/../setup/all.sh"}"#,
            &["setup/all.sh"],
            &["all.sh"],
        ),
        (
            ".pre-commit-config.yaml",
            "repos:\n- repo: local\n  hooks:\n  - entry: ./ci/lint\n    exclude: docs/x.md\n",
            &["ci/lint"],
            &["docs/x.md"],
        ),
        (
            ".husky/pre-commit",
            "node web/check.js\n",
            &["web/check.js"],
            &["check.js", "web/other.js"],
        ),
        (
            "sub/.envrc",
            "./on-enter\n",
            &["sub/on-enter"],
            &["sub/deep/on-enter"],
        ),
    ] {
        let sample = Sample::new();
        sample.write(file, text);
        sample.write("web/check.js", "x");
        for path in named {
            let found = why(&sample, path);
            assert!(
                found
                    .as_ref()
                    .is_some_and(|why| why.starts_with(&format!("{file} names it, and "))),
                "{file}: {path}: {found:?}"
            );
        }
        for path in others {
            assert_eq!(why(&sample, path), None, "{file}: {path}");
        }
    }
    // Only one level, and nothing that packages name.
    let sample = Sample::new();
    sample.write(".envrc", "./tools/a\n");
    sample.write("tools/a", "./tools/b\n");
    sample.write("node_modules/x/.husky/pre-commit", "./tools/c\n");
    assert!(why(&sample, "tools/a").is_some());
    assert_eq!(
        (why(&sample, "tools/b"), why(&sample, "tools/c")),
        (None, None)
    );
}

#[test]
fn user_patterns_run_by_themselves_and_built_in_ones_as_the_table_says() {
    let sample = Sample::new();
    let runs = |patterns: &[&str], path: &str| {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let auto_run = AutoRun::of(
            &git::UntrustedFolder::open(&sample.path("")).expect("opens"),
            AutoRunSources {
                patterns: &patterns,
                ..AutoRunSources::default()
            },
        );
        auto_run
            .expect("looked")
            .runs_as_file(&path.into())
            .map(|runs| runs.when)
    };
    assert_eq!(
        runs(&READ_ONLY, ".github/workflows/ci.yml"),
        Some(RunTrigger::WhenYouRunIt)
    );
    assert_eq!(
        runs(&["/.github"], ".github/workflows/ci.yml"),
        Some(RunTrigger::ByItself)
    );
    assert_eq!(
        runs(&["tools/*.run"], "tools/a.run"),
        Some(RunTrigger::ByItself)
    );
    assert_eq!(runs(&[], "tools/a.run"), None);
}

/// Folders and files of a session; a slash at the end makes it a folder.
fn wholes(sample: &Sample, paths: &[&str]) -> Vec<(String, RunTrigger)> {
    let place = sample.path("").display().to_string();
    let known = AutoRunSources {
        place: place.trim_end_matches('/').as_bytes(),
        ..AutoRunSources::default()
    };
    let auto_run = AutoRun::of(
        &git::UntrustedFolder::open(&sample.path("")).expect("opens"),
        known,
    )
    .expect("looked");
    let made: Vec<(BytesPath, EntryType)> = paths
        .iter()
        .map(|path| match path.strip_suffix('/') {
            Some(folder) => (folder.into(), EntryType::Folder),
            None => ((*path).into(), EntryType::File),
        })
        .collect();
    let changes = made.iter().map(|(path, entry)| ChangedPath {
        path,
        entry: Some(*entry),
        is_new: true,
    });
    auto_run
        .named(changes)
        .first
        .into_iter()
        .map(|file| (file.path.to_text(), file.when))
        .collect()
}

#[test]
fn a_new_dependency_folder_is_named_once_and_judged_as_a_whole() {
    let modules = [
        "web/",
        "web/node_modules/",
        "web/node_modules/.bin/",
        "web/node_modules/.bin/x",
        "web/node_modules/x/.envrc",
    ];
    let sample = Sample::new();
    assert_eq!(
        wholes(&sample, &modules),
        [("web/node_modules".to_owned(), RunTrigger::WhenYouRunIt)]
    );
    // An existing folder is judged file by file.
    assert_eq!(
        wholes(&sample, &modules[3..4]),
        [(
            "web/node_modules/.bin/x".to_owned(),
            RunTrigger::WhenYouRunIt
        )]
    );
    sample.git(&["config", "core.hooksPath", "web/node_modules/.bin"]);
    assert_eq!(
        wholes(&sample, &modules),
        [("web/node_modules".to_owned(), RunTrigger::ByItself)]
    );
    let sample = Sample::new();
    let environment = [
        "any/",
        "any/pyvenv.cfg",
        "any/bin/",
        "any/bin/python",
        "any/lib/",
        "any/lib/a.pth",
    ];
    assert_eq!(
        wholes(&sample, &environment),
        [("any".to_owned(), RunTrigger::ByItself)]
    );
    assert_eq!(
        wholes(&sample, &["any/lib/a.pth", "any/lib/a.py"]),
        [("any/lib/a.pth".to_owned(), RunTrigger::ByItself)]
    );
}
