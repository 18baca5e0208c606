use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::*;
use podbay_wire::keep::KnownProtected;

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, content).expect("written");
    }
    folder
}

fn looked(folder: &Path, reveal: &[&str], auto_run: &[&str]) -> FindResult {
    let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
    find(
        folder,
        &FindOrder {
            reveal: owned(reveal),
            auto_run: owned(auto_run),
            budget_ms: 10_000,
            ..FindOrder::default()
        },
        &BTreeSet::new(),
    )
    .expect("looked through")
}

fn secrets(found: &FindResult) -> Vec<String> {
    found
        .secrets
        .iter()
        .map(|secret| secret.path.to_text())
        .collect()
}

const PEM: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcC\n";

#[test]
fn secrets_are_found_by_name_and_private_keys_by_content() {
    let folder = project(&[
        (".env", "A=1"),
        (".env.example", "A="),
        ("deploy/.env.production", "A=1"),
        ("certs/ca.pem", "-----BEGIN CERTIFICATE-----"),
        ("certs/server.key", PEM),
        ("home/.ssh/config", "Host x"),
        ("src/credentials.rs", ""),
        ("gcp-credentials.json", "{}"),
        ("keys/id_github", PEM),
        ("keys/id_github.pub", "ssh-ed25519 AAAA"),
        ("src/id_card.py", "import re\n"),
    ]);
    let found = looked(folder.path(), &[], &[]);
    assert_eq!(
        secrets(&found),
        [
            ".env",
            "certs/server.key",
            "deploy/.env.production",
            "gcp-credentials.json",
            "home/.ssh",
            "keys/id_github"
        ]
    );
    assert!(found.secrets[4].is_folder && !found.secrets[0].is_folder && found.is_whole);
}

#[test]
fn ignored_folders_are_searched_at_their_top_only() {
    let folder = project(&[
        (".gitignore", ".env\nbuild/\nnode_modules/\n"),
        (".env", "A=1"),
        ("build/.env", "A=1"),
        ("node_modules/.npmrc", "token"),
        ("node_modules/tool/test/server.pem", PEM),
        ("node_modules/tool/.vscode/tasks.json", "{}"),
    ]);
    let found = looked(folder.path(), &[], &[".vscode"]);
    assert_eq!(
        secrets(&found),
        [".env", "build/.env", "node_modules/.npmrc"]
    );
    assert_eq!(found.auto_run, Vec::<BytesPath>::new());
}

#[test]
fn revealed_paths_are_not_hidden() {
    let folder = project(&[
        (".env", "A=1"),
        (".env.test", "A=1"),
        ("fixtures/a/server.key", PEM),
        ("home/.aws/config", ""),
    ]);
    assert_eq!(
        secrets(&looked(
            folder.path(),
            &[".env.test", "fixtures/**", "/home/.aws"],
            &[]
        )),
        [".env"]
    );
    assert_eq!(
        secrets(&looked(folder.path(), &[".env"], &[])),
        [".env.test", "fixtures/a/server.key", "home/.aws"]
    );
}

#[test]
fn auto_run_folders_are_found_as_a_whole_at_any_depth() {
    let folder = project(&[
        (".vscode/tasks.json", "{}"),
        ("sub/.vscode/settings.json", "{}"),
        (".envrc", "echo"),
        (".github/workflows/ci.yml", ""),
        ("sub/.github/x", ""),
        ("sub/.mcp.json", "{}"),
        (".cargo/credentials.toml", "token"),
    ]);
    let found = looked(
        folder.path(),
        &[],
        &[".vscode", ".envrc", "/.github", ".mcp.json", ".cargo"],
    );
    let paths: Vec<String> = found.auto_run.iter().map(BytesPath::to_text).collect();
    assert_eq!(
        paths,
        [
            ".cargo",
            ".envrc",
            ".github",
            ".vscode",
            "sub/.mcp.json",
            "sub/.vscode"
        ]
    );
    assert_eq!(
        secrets(&found),
        [".cargo/credentials.toml"],
        "what is read-only may be a secret as well"
    );
}

#[test]
fn targets_of_links_with_auto_run_names_are_found() {
    let folder = project(&[("hooks/pre-commit", "x")]);
    symlink("hooks", folder.path().join(".husky")).expect("linked");
    symlink("/etc", folder.path().join(".vscode")).expect("linked");
    let found = looked(folder.path(), &[], &[".husky", ".vscode"]);
    assert_eq!(
        found
            .auto_run
            .iter()
            .map(BytesPath::to_text)
            .collect::<Vec<_>>(),
        ["hooks"]
    );
}

#[test]
fn nested_git_folders_and_files_are_named() {
    let folder = project(&[
        (".gitignore", "vendor/\n"),
        (".git/config", ""),
        ("sub/.git", "gitdir: ../.git/modules/sub"),
        ("tools/deep/.git/config", ""),
        ("vendor/.git/config", ""),
    ]);
    let found = looked(folder.path(), &[], &[]);
    let paths: Vec<String> = found.repositories.iter().map(BytesPath::to_text).collect();
    assert_eq!(paths, ["sub/.git", "tools/deep/.git", "vendor/.git"]);
    assert_eq!(
        secrets(&found),
        ["tools/deep/.git/config", "vendor/.git/config"],
        "a token may stand in it"
    );
    assert_eq!(
        secrets(&looked(folder.path(), &["vendor/.git/config"], &[])),
        ["tools/deep/.git/config"]
    );
}

#[test]
fn repositories_deep_in_ignored_folders_are_found_in_time() {
    let folder = project(&[
        (".gitignore", "vendor/\n__pycache__\n"),
        ("vendor/a/b/.git/config", ""),
        ("vendor/c/d/e/.git", "gitdir: ../x"),
        ("vendor/c/d/.env", "A=1"),
        ("__pycache__/x.pyc", ""),
    ]);
    let looked = |ignored_ms: u64| {
        find(
            folder.path(),
            &FindOrder {
                budget_ms: 10_000,
                ignored_ms,
                ..FindOrder::default()
            },
            &BTreeSet::new(),
        )
        .expect("looked through")
    };
    let found = looked(10_000);
    let paths: Vec<String> = found.repositories.iter().map(BytesPath::to_text).collect();
    assert_eq!(paths, ["vendor/a/b/.git", "vendor/c/d/e/.git"]);
    assert_eq!(secrets(&found), ["vendor/a/b/.git/config"]);
    assert!(found.is_whole);
    let found = looked(0);
    assert!(found.repositories.is_empty() && !found.is_whole);
    fs::remove_dir_all(folder.path().join("vendor")).expect("removed");
    assert!(
        looked(0).is_whole,
        "there is nothing in it that could be looked through"
    );
}

#[test]
fn a_secret_link_hides_its_target_within_the_project() {
    let folder = project(&[("shared/settings", "A=1")]);
    symlink("shared/settings", folder.path().join(".env")).expect("linked");
    symlink("/etc/passwd", folder.path().join(".env.out")).expect("linked");
    symlink("nothing", folder.path().join(".env.dangling")).expect("linked");
    symlink(".", folder.path().join(".ssh")).expect("linked");
    assert_eq!(
        secrets(&looked(folder.path(), &[], &[])),
        ["shared/settings"]
    );
}

#[test]
fn invalid_names_and_special_files_do_no_harm() {
    let folder = project(&[(".env.a\nb", "A=1")]);
    let bad = std::ffi::OsStr::from_bytes(b".env.\xff");
    fs::write(folder.path().join(bad), "A=1").expect("written");
    nix::unistd::mkfifo(
        &folder.path().join("server.key"),
        Mode::from_bits_truncate(0o600),
    )
    .expect("made");
    nix::unistd::mkfifo(&folder.path().join(".env"), Mode::from_bits_truncate(0o600))
        .expect("made");
    assert_eq!(
        secrets(&looked(folder.path(), &[], &[])),
        [".env.a\\x0ab", ".env.\\xff"]
    );
}

#[test]
fn a_long_list_keeps_entries_near_the_top_and_counts_the_rest() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("deep")).expect("made");
    for number in 0..MOST_HIDDEN {
        fs::write(folder.path().join(format!("deep/.env.{number}")), "A=1").expect("written");
    }
    fs::write(folder.path().join("zz-credentials.json"), "{}").expect("written");
    let found = looked(folder.path(), &[], &[]);
    assert_eq!((found.secrets.len(), found.n_left_out), (MOST_HIDDEN, 1));
    assert!(secrets(&found).contains(&"zz-credentials.json".to_owned()));
}

/// Searches without the ignored paths, given what was protected before.
fn knowing(
    folder: &Path,
    hidden: &[&str],
    read_only: &[&str],
    reveal: &[&str],
    budget_ms: u64,
) -> FindResult {
    let paths = |list: &[&str]| {
        list.iter()
            .map(|path| BytesPath::from_bytes(*path))
            .collect()
    };
    let known = KnownProtected {
        hidden: paths(hidden),
        read_only: paths(read_only),
    };
    let reveal = reveal.iter().map(|&line| line.to_owned()).collect();
    find(
        folder,
        &FindOrder {
            reveal,
            budget_ms,
            known,
            ..FindOrder::default()
        },
        &BTreeSet::new(),
    )
    .expect("looked through")
}

#[test]
fn protected_paths_stay_protected_whatever_commands_did() {
    let folder = project(&[
        (".gitignore", "/deploy/\n/pkgs/\n"),
        ("deploy/prod/.env", "A=1"),
        ("deploy/prod/server.key", PEM),
        ("pkgs/app/.git/config", ""),
        ("pkgs/app/.envrc", ""),
        ("shared/settings", "A=1"),
        ("old/server.key", "-----BEGIN CERTIFICATE-----"),
        ("shown/.env", "A=1"),
    ]);
    assert_eq!(
        secrets(&looked(folder.path(), &["shown/.env"], &[])),
        Vec::<String>::new()
    );
    let hidden = [
        "deploy/prod/.env",
        "deploy/prod/server.key",
        "shared/settings",
        "old/server.key",
        "gone/.env",
        "shown/.env",
        "../out/.env",
    ];
    for budget_ms in [10_000, 0] {
        let found = knowing(
            folder.path(),
            &hidden,
            &["pkgs/app/.git", "pkgs/app/.envrc", "pkgs/gone"],
            &["shown/.env"],
            budget_ms,
        );
        assert_eq!(
            secrets(&found),
            [
                "deploy/prod/.env",
                "deploy/prod/server.key",
                "shared/settings"
            ]
        );
        let texts = |paths: &[BytesPath]| paths.iter().map(BytesPath::to_text).collect::<Vec<_>>();
        assert_eq!(
            (texts(&found.repositories), texts(&found.auto_run)),
            (
                vec!["pkgs/app/.git".to_owned()],
                vec!["pkgs/app/.envrc".to_owned()]
            )
        );
    }
    // A link that the user reveals.
    symlink("shared/settings", folder.path().join(".env")).expect("linked");
    assert_eq!(
        secrets(&knowing(
            folder.path(),
            &["shared/settings"],
            &[],
            &[".env", "shown/.env"],
            10_000
        )),
        Vec::<String>::new()
    );
}

#[test]
fn a_flood_of_names_displaces_no_known_path() {
    let folder = project(&[("deep/er/still/.env", "A=1")]);
    for number in 0..MOST_HIDDEN + 10 {
        fs::write(folder.path().join(format!(".env.{number}")), "").expect("written");
    }
    let found = knowing(folder.path(), &["deep/er/still/.env"], &[], &[], 10_000);
    assert_eq!((found.secrets.len(), found.n_left_out), (MOST_HIDDEN, 11));
    assert!(secrets(&found).contains(&"deep/er/still/.env".to_owned()));
}

#[test]
fn a_link_named_like_a_key_hides_its_target() {
    let folder = project(&[
        ("certs/current", PEM),
        ("certs/public", "-----BEGIN CERTIFICATE-----"),
    ]);
    symlink("certs/current", folder.path().join("server.pem")).expect("linked");
    symlink("certs/public", folder.path().join("ca.pem")).expect("linked");
    assert_eq!(secrets(&looked(folder.path(), &[], &[])), ["certs/current"]);
}

#[test]
fn a_search_without_time_reports_that_it_is_incomplete() {
    let folder = project(&[("a/b/c/.env", "A=1")]);
    let found =
        find(folder.path(), &FindOrder::default(), &BTreeSet::new()).expect("looked through");
    assert!(!found.is_whole, "{found:?}");
}
