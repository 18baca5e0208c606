use std::fs;

use super::super::sample::LinkedSample;
use super::super::sample::Sample;
use super::*;

fn open(sample: &Sample) -> UntrustedFolder {
    UntrustedFolder::open(&sample.path("")).expect("opens")
}

fn found(sample: &Sample, gits: &[&str]) -> (Vec<String>, Vec<String>) {
    texts(look(sample, gits))
}

fn texts(obeyed: ObeyedPaths) -> (Vec<String>, Vec<String>) {
    let texts = |paths: Vec<BytesPath>| paths.iter().map(BytesPath::to_text).collect();
    (texts(obeyed.paths), texts(obeyed.unread))
}

fn none() -> Vec<String> {
    Vec::new()
}

/// Searches a sample that has these `.git`.
pub(in crate::keep::git) fn look(sample: &Sample, gits: &[&str]) -> ObeyedPaths {
    let gits: Vec<BytesPath> = gits.iter().copied().map(BytesPath::from).collect();
    obeyed_paths(&open(sample), gits.iter(), place(sample).as_bytes())
}

/// Path of a sample on the machine.
pub(in crate::keep::git) fn place(sample: &Sample) -> String {
    sample
        .path("")
        .display()
        .to_string()
        .trim_end_matches('/')
        .to_owned()
}

#[test]
fn hooks_are_found_where_they_lie_in_the_project() {
    let sample = Sample::new();
    sample.write("tools/hooks/pre-commit", "x");
    let found = |said: &str| {
        sample.git(&["config", "core.hooksPath", said]);
        found(&sample, &[]).0
    };
    assert_eq!(found(""), none());
    for said in [
        "tools/hooks",
        "./tools//hooks/",
        "tools/x/../hooks",
        &sample.path("tools/hooks").display().to_string(),
    ] {
        assert_eq!(found(said), ["tools/hooks"], "{said}");
    }
    // Paths in a repository are protected with it.
    for said in [
        "absent",
        "../project",
        "/dev/null",
        "~/hooks",
        ".",
        ".git/hooks",
    ] {
        assert_eq!(found(said), none(), "{said}");
    }
}

#[test]
fn missing_paths_are_named_however_they_are_spelled() {
    let sample = Sample::new();
    let project = &place(&sample);
    let said = |said: &str| -> Vec<String> {
        sample.git(&["config", "core.hooksPath", said]);
        let obeyed = obeyed_paths(&open(&sample), std::iter::empty(), project.as_bytes());
        obeyed.said.iter().map(BytesPath::to_text).collect()
    };
    let (absolute, odd) = (
        format!("{project}/tools/hooks"),
        format!("//{project}/./tools/../tools//hooks/"),
    );
    let home = format!(
        "~/{}/tools/hooks",
        project.rsplit('/').next().expect("a name")
    );
    for spelled in [
        "tools/hooks",
        "./tools//hooks/",
        "src/../tools/hooks",
        "../project/tools/hooks",
        &absolute,
        &odd,
        &home,
    ] {
        assert_eq!(said(spelled), ["tools/hooks"], "{spelled}");
    }
    for spelled in [
        "../tools/hooks",
        "/tools/hooks",
        "~/tools/hooks",
        "~tools/hooks",
        ".git/hooks",
        "",
    ] {
        assert_eq!(said(spelled), none(), "{spelled}");
    }
    assert!(
        said(".").contains(&"pre-commit".to_owned()) && !said(project).contains(&String::new())
    );
    sample.git(&["config", "core.hooksPath", "tools/hooks"]);
    sample.git(&[
        "config",
        "includeIf.onbranch:x.path",
        "../tools/own.gitconfig",
    ]);
    assert_eq!(said("tools/hooks"), ["tools/hooks", "tools/own.gitconfig"]);
}

/// `/home` may be a link to `/var/home`, or the project's folder have another name.
#[test]
fn a_path_over_another_name_of_the_project_is_found_by_its_suffix() {
    let sample = Sample::new();
    sample.write("tools/hooks/pre-commit", "x");
    sample.write("own.gitconfig", "[core]\nhooksPath = tools/hooks\n");
    let obeyed = |key: &str, said: &str| -> (Vec<String>, Vec<String>) {
        let (section, key) = key.split_once('.').expect("a section");
        // Git itself refuses some of them.
        let before = fs::read(sample.path(".git/config")).expect("read");
        let text = [
            &before[..],
            format!("[{section}]\n{key} = {said}\n").as_bytes(),
        ]
        .concat();
        fs::write(sample.path(".git/config"), text).expect("written");
        let place = BytesPath::from(sample.path("").as_path());
        let place = place
            .as_bytes()
            .strip_suffix(b"/")
            .unwrap_or(place.as_bytes())
            .to_vec();
        let obeyed = obeyed_paths(&open(&sample), std::iter::empty(), &place);
        fs::write(sample.path(".git/config"), before).expect("written");
        (
            obeyed.paths.iter().map(BytesPath::to_text).collect(),
            obeyed.said.iter().map(BytesPath::to_text).collect(),
        )
    };
    for way in [
        "/link/project/",
        "/link/../other/./project/",
        "~/work/project/",
        "../../link/project/",
        "/another-name/",
        "~me/project/",
    ] {
        let (paths, said) = obeyed("core.hooksPath", &format!("{way}tools/hooks"));
        assert_eq!(
            (paths, said),
            (
                vec!["tools/hooks".to_owned()],
                vec!["tools/hooks".to_owned()]
            ),
            "{way}"
        );
        let (paths, said) = obeyed("include.path", &format!("{way}own.gitconfig"));
        assert_eq!(paths, ["own.gitconfig", "tools/hooks"], "{way}");
        assert!(
            said.contains(&"own.gitconfig".to_owned()) && said.contains(&"tools/hooks".to_owned()),
            "{way}: {said:?}"
        );
    }
    // A missing path is only found by the name of the project's folder.
    assert_eq!(
        obeyed("core.hooksPath", "/link/project/made/later"),
        (none(), vec!["made/later".to_owned()])
    );
    for elsewhere in [
        "/another-name/made/later",
        "/usr/share/hooks",
        "~/made/later",
        "made/../other",
    ] {
        assert_eq!(obeyed("core.hooksPath", elsewhere).0, none(), "{elsewhere}");
    }
    assert!(
        obeyed("core.hooksPath", "/link/project")
            .1
            .contains(&"pre-commit".to_owned())
    );
}

#[test]
fn hooks_of_submodules_and_nested_repositories_are_in_their_own_trees() {
    let sample = Sample::with_submodules();
    sample.git(&["init", "-q", "deep/nested"]);
    for folder in ["sub", "sub/deeper", "deep/nested"] {
        sample.write(&format!("{folder}/hooks/pre-commit"), "x");
        sample.git_in(folder, &["config", "core.hooksPath", "hooks"]);
    }
    let gits = ["sub/.git", "sub/deeper/.git", "deep/nested/.git"];
    assert_eq!(
        found(&sample, &gits),
        (
            vec![
                "deep/nested/hooks".into(),
                "sub/deeper/hooks".into(),
                "sub/hooks".into()
            ],
            none()
        )
    );
}

#[test]
fn hooks_of_linked_worktrees_are_in_their_own_trees() {
    let sample = Sample::new();
    sample.commit("file", "1");
    sample.git(&["worktree", "add", "-q", "--detach", "tree"]);
    sample.git(&["config", "extensions.worktreeConfig", "true"]);
    sample.git(&["config", "core.hooksPath", "all"]);
    sample.git_in("tree", &["config", "--worktree", "core.hooksPath", "own"]);
    for path in ["all/x", "tree/all/x", "tree/own/x", "own/x"] {
        sample.write(path, "x");
    }
    assert_eq!(
        found(&sample, &["tree/.git"]).0,
        ["all", "tree/all", "tree/own"]
    );
    let linked = LinkedSample::new();
    for path in ["own/x", "all/x", "other/x"] {
        linked.sample.write(path, "x");
    }
    for words in [
        &["config", "extensions.worktreeConfig", "true"][..],
        &["config", "core.hooksPath", "all"],
        &["config", "--worktree", "core.hooksPath", "own"],
    ] {
        linked.sample.git(words);
    }
    let real = UntrustedFolder::open(&linked.main.join(".git")).expect("opens");
    assert_eq!(
        texts(obeyed_paths_in_worktree(
            &open(&linked.sample),
            &real,
            b"project",
            b""
        ))
        .0,
        ["all", "own"]
    );
}

#[test]
fn included_config_is_read_in_the_project_and_named_elsewhere() {
    let sample = Sample::new();
    sample.write("hooks/pre-commit", "x");
    sample.write("more/hooks/pre-commit", "x");
    sample.write(
        "shared.gitconfig",
        "[core]\nhooksPath = hooks\n[includeIf \"onbranch:x\"]\npath = more/own.gitconfig\n",
    );
    sample.write(
        "more/own.gitconfig",
        "[core]\nhooksPath = more/hooks\n[include]\npath = own.gitconfig\n",
    );
    sample.git(&["config", "include.path", "../shared.gitconfig"]);
    sample.git(&["config", "--add", "include.path", "own"]);
    sample.write(".git/own", "[include]\npath = ../absent\n");
    for said in ["~/all", "/etc/gitconfig", "../../beside"] {
        sample.git(&["config", "--add", "include.path", said]);
    }
    let (paths, unread) = found(&sample, &[]);
    assert_eq!(
        paths,
        [
            "hooks",
            "more/hooks",
            "more/own.gitconfig",
            "shared.gitconfig"
        ]
    );
    assert_eq!(
        unread,
        ["../../beside", "/etc/gitconfig", "absent", "~/all"]
    );
    // Git itself uses the included value.
    assert_eq!(sample.git(&["config", "core.hooksPath"]), "hooks\n");
}

#[test]
fn endless_includes_stop_at_a_limit() {
    let sample = Sample::new();
    for number in 0..200 {
        sample.write(
            &format!("c/{number}"),
            &format!(
                "[include]\npath = {}\n[include]\npath = {}\n",
                number + 1,
                number / 2
            ),
        );
    }
    sample.git(&["config", "include.path", "../c/0"]);
    let (paths, unread) = found(&sample, &[]);
    assert_eq!((paths.len(), unread), (MAX_DEPTH, vec!["c/10".to_owned()]));
    fs::write(sample.path("c/0"), "[core\n").expect("written");
    assert_eq!(found(&sample, &[]), (none(), vec!["c/0".into()]));
}

#[test]
fn programs_named_by_config_are_reported_in_any_working_tree() {
    let sample = Sample::with_submodules();
    for path in ["tools/x", "sub/tools/x", "plain", "web/start", "web/other"] {
        sample.write(path, "x");
    }
    let said = || -> Vec<String> {
        let obeyed = look(&sample, &["sub/.git"]);
        assert_eq!(obeyed.paths, [], "what git runs can be worked on");
        obeyed.said.iter().map(BytesPath::to_text).collect()
    };
    let project = sample.path("").display().to_string();
    let check = |value: &str, expected: &[&str]| {
        sample.git(&["config", "filter.a.clean", value]);
        assert_eq!(said(), expected, "{value}");
    };
    for value in [
        "tools/x %f",
        "../project/tools/x",
        &format!("{project}tools/x"),
        "sh -c '\"$PWD\"/tools/x'",
    ] {
        check(value, &["tools/x"]);
    }
    check("tools/later", &["tools/later"]);
    check("sh plain", &["plain"]);
    check("sh web/start", &["web/start"]);
    for value in [
        "less -R",
        "/usr/tools/x",
        "/usr/bin/plain",
        ".git/x",
        "../beside/x",
        "/link/project/tools/x",
        "cat absent",
        "cat tools/x.md",
    ] {
        check(value, &[]);
    }
    sample.git(&["config", "filter.a.clean", ""]);
    sample.git(&["config", "alias.lint", "!web/start"]);
    assert!(said().contains(&"web/start".to_owned()));
    // A location is no program.
    sample.git(&["config", "alias.lint", ""]);
    sample.git(&["config", "remote.other.url", "tools/x"]);
    assert_eq!(said(), none());
    let many: String = (0..600).map(|n| format!("x{n} ")).collect();
    sample.git(&["config", "alias.lint", &format!("!{many}")]);
    assert_eq!(found(&sample, &[]).1, [".git/config"]);
    sample.git(&["config", "--unset", "alias.lint"]);
    sample.git_in("sub", &["config", "core.fsmonitor", "tools/x"]);
    sample.write("own.gitconfig", "[alias]\nt = !tools/x\n");
    sample.git(&["config", "include.path", "../own.gitconfig"]);
    fs::remove_file(sample.path("own.gitconfig")).expect("removed");
    assert_eq!(said(), ["own.gitconfig", "sub/tools/x"]);
}
