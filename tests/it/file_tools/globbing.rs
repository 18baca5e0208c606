use super::*;

fn project() -> Project {
    Project::new(&[
        (".gitignore", "target\nnode_modules/\n"),
        ("main.rs", ""),
        ("src/lib.rs", ""),
        ("src/deep/mod.rs", ""),
        ("src/style.css", ""),
        ("target/debug/out.rs", ""),
        (".github/workflows/ci.yml", ""),
        (".env", ""),
        ("src/.hidden.rs", ""),
    ])
}

#[test]
fn patterns_mean_what_ripgrep_means() {
    let project = project();
    assert_eq!(
        project.glob("*.rs"),
        ["main.rs", "src/deep/mod.rs", "src/lib.rs"]
    );
    assert_eq!(
        project.glob("**/*.rs"),
        ["main.rs", "src/deep/mod.rs", "src/lib.rs"]
    );
    assert_eq!(project.glob("src/*.rs"), ["src/lib.rs"]);
    assert_eq!(project.glob("/*.rs"), ["main.rs"]);
    assert_eq!(
        project.glob("/workspace/src/**/*.{rs,css}"),
        ["src/deep/mod.rs", "src/lib.rs", "src/style.css"]
    );
    assert_eq!(project.glob("nowhere/**/*.rs"), [""; 0]);
    let below = project
        .found(Glob {
            path: "/workspace/src".into(),
            ..glob("*.rs")
        })
        .paths;
    assert_eq!(below.len(), 2);
    let excluded = project
        .found(Glob {
            exclude: Some("deep, *.css".into()),
            ..glob("src/**")
        })
        .paths;
    assert_eq!(excluded, ["src/lib.rs".into()]);
}

#[test]
fn ignored_and_hidden_files_are_found_only_when_they_are_named() {
    let project = project();
    assert_eq!(project.glob("target/**/*.rs"), ["target/debug/out.rs"]);
    assert_eq!(project.glob("target/debug/out.rs"), ["target/debug/out.rs"]);
    assert_eq!(project.glob("**/out.rs"), [""; 0]);
    assert_eq!(
        project.glob(".github/**/*.yml"),
        [".github/workflows/ci.yml"]
    );
    assert_eq!(project.glob(".env"), [".env"]);
    assert_eq!(project.glob("**/.*.rs"), ["src/.hidden.rs"]);
    assert_eq!(project.glob("**/*.yml"), [""; 0]);
}

#[test]
fn the_newest_come_first_and_the_bound_keeps_them() {
    let project = Project::new(&[]);
    for number in 0..20 {
        project.put(&format!("f{number:02}"), "");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 + (number * 7) % 20);
        fs::File::options()
            .write(true)
            .open(project.path.join(format!("f{number:02}")))
            .and_then(|file| file.set_modified(time))
            .expect("set");
    }
    let found = project.found(Glob {
        max_results: 3,
        ..glob("*")
    });
    assert_eq!(found.paths, ["f17".into(), "f14".into(), "f11".into()]);
    assert!(found.truncated && found.cursor.is_some());
}

#[test]
fn links_to_files_are_found_and_links_to_folders_are_not_entered() {
    let project = Project::new(&[("real/file.md", "")]);
    symlink("real/file.md", project.path.join("CLAUDE.md")).expect("linked");
    symlink("real", project.path.join("folder")).expect("linked");
    symlink("../outside/secret", project.path.join("out.md")).expect("linked");
    symlink(".", project.path.join("self")).expect("linked");
    assert_eq!(project.glob("*.md"), ["CLAUDE.md", "real/file.md"]);
}
