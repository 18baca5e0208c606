//! Tests of paths in a project that git obeys because links in a repository, or in a folder of
//! hooks, lead there.

use std::fs;
use std::os::unix::fs::symlink;

use super::hooks::obeyed_paths;
use super::sample::LinkedSample;
use super::sample::Sample;
use super::untrusted_folder::UntrustedFolder;
use podbay_wire::BytesPath;
use podbay_wire::keep::ObeyedPaths;

fn link(sample: &Sample, target: &str, link: &str) {
    let link = sample.path(link);
    let _ = fs::remove_file(&link).or_else(|_| fs::remove_dir_all(&link));
    fs::create_dir_all(link.parent().expect("a folder")).expect("made");
    symlink(target, link).expect("linked");
}

/// The paths that are to be read-only, and all that are named.
fn found(sample: &Sample) -> (Vec<String>, Vec<String>) {
    let place = sample.path("").display().to_string();
    let project = UntrustedFolder::open(&sample.path("")).expect("opens");
    texts(obeyed_paths(
        &project,
        [BytesPath::from("sub/.git")].iter(),
        place.trim_end_matches('/').as_bytes(),
    ))
}

fn texts(obeyed: ObeyedPaths) -> (Vec<String>, Vec<String>) {
    let texts = |paths: Vec<BytesPath>| paths.iter().map(BytesPath::to_text).collect();
    (texts(obeyed.paths), texts(obeyed.said))
}

#[test]
fn the_target_of_a_hook_link_is_obeyed() {
    let sample = Sample::with_submodules();
    sample.write("scripts/pc", "x");
    sample.write("own/scripts/pc", "x");
    assert_eq!(found(&sample).0, [""; 0]);
    let whole = sample.path("scripts/pc").display().to_string();
    for git in [
        ".git",
        ".git/modules/sub",
        ".git/modules/sub/modules/deeper",
    ] {
        let hook = format!("{git}/hooks/pre-commit");
        let up = "../".repeat(git.split('/').count() + 1);
        for target in [
            &whole,
            &format!("{up}scripts/pc"),
            &format!("{up}../project/scripts/./pc"),
            "/link/to/project/scripts/pc",
        ] {
            link(&sample, target, &hook);
            assert_eq!(
                found(&sample),
                (vec!["scripts/pc".to_owned()], vec!["scripts/pc".to_owned()]),
                "{hook} -> {target}"
            );
        }
        // It may be made later, and links on the way count as well.
        link(&sample, "own/scripts", "way");
        link(&sample, &format!("{up}way/later"), &hook);
        assert_eq!(
            found(&sample),
            (
                vec![],
                vec!["own/scripts/later".to_owned(), "way/later".to_owned()]
            ),
            "{hook}"
        );
        for elsewhere in ["/usr/share/hooks/x", "pre-push", "pre-commit"] {
            link(&sample, elsewhere, &hook);
            assert_eq!(found(&sample), (vec![], vec![]), "{hook} -> {elsewhere}");
        }
    }
}

#[test]
fn the_target_of_a_hooks_folder_link_is_obeyed_with_links_in_it() {
    let sample = Sample::with_submodules();
    sample.write("scripts/lib/pc", "x");
    sample.write("gh/deep/x", "x");
    link(&sample, "../../scripts/lib", "gh/deep/lib");
    link(&sample, "../..", "gh/deep/round");
    for (git, target) in [(".git", "../gh"), (".git/modules/sub", "../../../gh")] {
        link(&sample, target, &format!("{git}/hooks"));
        let (paths, said) = found(&sample);
        assert_eq!(paths, ["gh", "scripts/lib"], "{git}");
        assert!(
            said.contains(&"gh".to_owned())
                && said.contains(&"scripts/lib".to_owned())
                && !said.contains(&String::new())
        );
        link(&sample, "/nowhere", &format!("{git}/hooks"));
    }
    // If the folder is the whole working tree, only the hooks count.
    sample.write("pre-commit", "x");
    link(&sample, "..", ".git/hooks");
    let (paths, said) = found(&sample);
    assert_eq!(paths, ["pre-commit"]);
    assert!(
        said.contains(&"post-commit".to_owned()) && !said.contains(&"gh".to_owned()),
        "{said:?}"
    );
}

#[test]
fn hooks_elsewhere_that_link_into_the_worktree_are_obeyed() {
    let linked = LinkedSample::new();
    linked.sample.write("scripts/pc", "x");
    let place = linked.sample.path("").display().to_string();
    let place = place.trim_end_matches('/');
    let hook = linked.main.join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
    for target in [
        &format!("{place}/scripts/pc"),
        "../../../project/scripts/pc",
    ] {
        let _ = fs::remove_file(&hook);
        symlink(target, &hook).expect("linked");
        let real = UntrustedFolder::open(&linked.main.join(".git")).expect("opens");
        let project = UntrustedFolder::open(&linked.sample.path("")).expect("opens");
        let obeyed =
            super::hooks::obeyed_paths_in_worktree(&project, &real, b"project", place.as_bytes());
        assert_eq!(
            texts(obeyed),
            (vec!["scripts/pc".to_owned()], vec!["scripts/pc".to_owned()]),
            "{target}"
        );
    }
}

#[test]
fn links_in_a_configured_hooks_folder_are_followed() {
    let sample = Sample::with_submodules();
    for path in ["scripts/pc", "sub/scripts/pc", "scripts/other"] {
        sample.write(path, "x");
    }
    for (folder, target) in [("", "../scripts/pc"), ("sub", "../scripts/pc")] {
        link(&sample, target, &format!("{folder}/hooks/pre-commit"));
        sample.git_in(folder, &["config", "core.hooksPath", "hooks"]);
    }
    assert_eq!(
        found(&sample).0,
        ["hooks", "scripts/pc", "sub/hooks", "sub/scripts/pc"]
    );
    sample.git_in("sub", &["config", "core.hooksPath", "/nowhere"]);
    // So is the folder, where it is a link.
    sample.write("real/x", "x");
    link(&sample, "../scripts/other", "real/post-commit");
    link(&sample, "real", "led");
    sample.git(&["config", "core.hooksPath", "led"]);
    assert_eq!(found(&sample).0, ["real", "scripts/other"]);
    // Of the whole working tree only the hooks count.
    link(&sample, "scripts/pc", "pre-push");
    link(&sample, "scripts/other", "any");
    sample.git(&["config", "core.hooksPath", "."]);
    assert_eq!(found(&sample).0, ["scripts/pc"]);
}

#[test]
fn the_target_of_a_config_link_is_obeyed() {
    let sample = Sample::with_submodules();
    sample.write("hooks/x", "x");
    sample.write("sub/own/x", "x");
    for (git, file, up) in [
        (".git", "gitcfg", "../"),
        (".git/modules/sub", "conf/sub", "../../../"),
    ] {
        fs::create_dir_all(sample.path("conf")).expect("made");
        fs::rename(sample.path(&format!("{git}/config")), sample.path(file)).expect("moved");
        link(&sample, &format!("{up}{file}"), &format!("{git}/config"));
    }
    sample.git(&["config", "core.hooksPath", "hooks"]);
    sample.git_in("sub", &["config", "core.hooksPath", "own"]);
    let all = ["conf/sub", "gitcfg", "hooks", "sub/own"];
    assert_eq!(
        found(&sample),
        (
            all.map(str::to_owned).to_vec(),
            all.map(str::to_owned).to_vec()
        )
    );
    sample.write(
        "x.inc",
        "[core]\nhooksPath = from\n[include]\npath = next\n",
    );
    sample.write("from/x", "x");
    sample.write("next", "");
    link(&sample, "../x.inc", ".git/inc");
    link(&sample, "../later.inc", ".git/next");
    sample.git(&["config", "include.path", "inc"]);
    let (paths, said) = found(&sample);
    // Includes are relative to the folder of the link.
    assert_eq!(
        paths,
        ["conf/sub", "from", "gitcfg", "hooks", "sub/own", "x.inc"]
    );
    assert!(
        said.contains(&"later.inc".to_owned()) && !said.contains(&"next".to_owned()),
        "{said:?}"
    );
}
