use std::os::unix::fs::symlink;

use super::*;
use crate::keep::git::sample::Sample;

/// Which of the paths may run as files.
fn running(sample: &Sample, paths: &[&str]) -> Vec<String> {
    let place = sample.path("").display().to_string();
    let known = Known { place: place.trim_end_matches('/').as_bytes(), ..Known::default() };
    let auto_run = AutoRun::of(&git::Folder::open(&sample.path("")).expect("opens"), known).expect("looked");
    paths.iter().filter(|path| auto_run.of_file(&BytesPath::from(**path)).is_some()).map(ToString::to_string).collect()
}

#[test]
fn what_links_of_such_names_lead_to_may_run() {
    let sample = Sample::without_git();
    for folder in ["mk/", "conf/", "deep/er/", "plain/"] {
        sample.write(folder, "");
    }
    let absolute = sample.path("deep/er/rc").display().to_string();
    let links = [("mk/inc", "Makefile"), ("b", "a"), ("../a", "deep/Makefile"), ("conf", ".vscode"), (&absolute, ".envrc"), ("plain", "p")];
    for (target, link) in
        links.into_iter().chain([("er/../../mk", "deep/mk"), ("mk/build", "deep/build.rs"), ("..", "loop"), ("/etc", ".husky")])
    {
        symlink(target, sample.path(link)).expect("linked");
    }
    let paths = ["mk/inc", "MK/Inc", "b", "conf/tasks.json", "deep/er/rc", "mk/build"];
    assert_eq!(running(&sample, &paths), paths);
    assert_eq!(running(&sample, &["mk/other", "plain/x", "deep/er/other", "src/main.rs", "inc"]), [""; 0]);
    let place = sample.path("").display().to_string();
    let known = Known { place: place.as_bytes(), ..Known::default() };
    let auto_run = AutoRun::of(&git::Folder::open(&sample.path("")).expect("opens"), known).expect("looked");
    assert!(auto_run.of_file(&"mk/inc".into()).expect("may run").starts_with("the link Makefile leads to it: "));
    // In its place a link would lead there.
    assert!(auto_run.of_path(&"mk".into()).is_some() && auto_run.of_path(&"plain".into()).is_none());
}

#[test]
fn what_git_obeys_may_run_wherever_it_lies_and_whether_it_is_there_or_not() {
    let sample = Sample::with_submodules();
    sample.git(&["init", "-q", "deep/nested"]);
    sample.git(&["init", "-q", "--bare", "fixture.git"]);
    sample.write("real/x", "x");
    symlink("real", sample.path("led")).expect("linked");
    sample.git(&["config", "core.hooksPath", "led/hooks"]);
    sample.git_in("sub", &["config", "core.hooksPath", "../hooks"]);
    sample.git_in("deep/nested", &["config", "include.path", "../own.gitconfig"]);
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
    let others = ["real/x", "sub/hooks/x", "deep/own.gitconfig", "fixture.git/objects/x", "fixture.git/refs/heads/x", "config"];
    assert_eq!(running(&sample, &others), [""; 0]);
}

#[test]
fn what_hooks_name_may_run_and_so_do_modules_where_python_is_started() {
    let sample = Sample::with_submodules();
    sample.write(".git/hooks/pre-commit", "#!/bin/sh\nexec ./scripts/check.sh \"$@\"\n");
    sample.write(".git/hooks/post-commit", "#!/bin/sh\n. \"$(git rev-parse --show-toplevel)/scripts/lib.sh\"\n");
    let paths = ["scripts/check.sh", "scripts/lib.sh", "Scripts/Lib.sh"];
    assert_eq!(running(&sample, &paths), paths);
    let modules =
        ["json.py", "argparse.py", "json/__init__.py", "json/__main__.py", "fast.abi3.so", "json/__init__.cpython-311-x86_64-linux-gnu.so"];
    assert_eq!(running(&sample, &modules), [""; 0]);
    sample.git(&["config", "filter.a.clean", "\"/usr/bin/python3\" -m nbstripout"]);
    assert_eq!(running(&sample, &modules), modules);
    sample.git_in("sub", &["config", "diff.a.textconv", "python3 tools/show.py"]);
    let paths = ["sub/tools/json.py", "sub/tools/json/__init__.py"];
    assert_eq!(running(&sample, &paths), paths);
    let others = ["json/deep.py", "json/deep/__init__.py", "sub/json.py", "a.txt", "__init__.txt", "scripts/other.sh", "src/json.py"];
    assert_eq!(running(&sample, &others), [""; 0]);
}
