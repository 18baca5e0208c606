use super::*;

fn project() -> Project {
    Project::new(&[
        (".gitignore", "*.log\n"),
        ("b.txt", "one\nneedle two\nthree\n"),
        ("a/c.rs", "Needle\n"),
        ("a.md", "x needle\nneedle x\n"),
        ("out.log", "needle\n"),
        (".hidden", "needle\n"),
        ("bin", "a\0needle\n"),
    ])
}

#[test]
fn matches_come_by_path_with_their_lines() {
    let project = project();
    assert_eq!(
        project.grep(grep("needle")),
        ["a.md:1:x needle", "a.md:2:needle x", "b.txt:2:needle two"]
    );
    let all = project.grep(Grep {
        case_insensitive: true,
        path: ".".into(),
        ..grep("^needle$")
    });
    assert_eq!(all, ["a/c.rs:1:Needle"]);
    let context = project.grep(Grep {
        context: 1,
        ..grep("two")
    });
    assert_eq!(
        context,
        ["b.txt-1-one", "b.txt:2:needle two", "b.txt-3-three"]
    );
    assert_eq!(
        project.grep(Grep {
            glob: Some("*.{rs,txt}".into()),
            ..grep("(?i)needle")
        }),
        ["a/c.rs:1:Needle", "b.txt:2:needle two"]
    );
    assert_eq!(
        project.grep(Grep {
            glob: Some("!*.md".into()),
            ..grep("needle")
        }),
        ["b.txt:2:needle two"]
    );
    for glob in ["[", "{a,b"] {
        let fault = project.call(Call::Grep(Grep {
            glob: Some(glob.into()),
            ..grep("needle")
        }));
        assert!(
            matches!(&fault, Output::Fault(Fault::Invalid { problem, .. }) if problem.contains("a backslash before")),
            "{fault:?}"
        );
    }
    assert_eq!(
        project.grep(Grep {
            glob: Some("*.log".into()),
            ..grep("needle")
        }),
        ["out.log:1:needle"]
    );
    assert_eq!(
        project.grep(Grep {
            glob: Some("a/*.rs".into()),
            path: "a".into(),
            ..grep("Needle")
        }),
        ["a/c.rs:1:Needle"]
    );
    assert_eq!(
        project.grep(Grep {
            path: "/workspace/out.log".into(),
            ..grep("needle")
        }),
        ["out.log:1:needle"]
    );
}

#[test]
fn files_and_counts_can_be_asked_for_alone() {
    let project = project();
    let files = project.matches(Grep {
        output: GrepOutput::FilesOnly,
        ..grep("needle")
    });
    let names: Vec<String> = files.files.iter().map(|file| file.path.to_text()).collect();
    assert_eq!(
        (names, files.n_matches),
        (vec!["a.md".to_string(), "b.txt".to_string()], 2)
    );
    let counts = project.matches(Grep {
        output: GrepOutput::Count,
        ..grep("needle")
    });
    assert_eq!(
        (
            counts.files[0].count,
            counts.files[1].count,
            counts.n_matches
        ),
        (2, 1, 3)
    );
    assert!(counts.files[0].lines.is_empty());
}

#[test]
fn binary_files_are_passed_over_unless_they_are_named() {
    let project = project();
    let named = project.matches(Grep {
        path: "bin".into(),
        ..grep("needle")
    });
    assert!(
        named.files[0].binary && named.files[0].lines.is_empty(),
        "{named:?}"
    );
    let late = format!("needle\n{}\0", "x\n".repeat(100_000));
    project.put("late", late);
    let found = project.matches(Grep {
        path: ".".into(),
        ..grep("^needle$")
    });
    let file = found
        .files
        .iter()
        .find(|file| file.path == "late".into())
        .expect("found");
    assert!(
        file.binary && file.lines.is_empty() && file.count == 1,
        "{file:?}"
    );
}

#[test]
fn the_bound_over_all_files_gives_the_same_answer_each_time() {
    let project = Project::new(&[]);
    for number in 0..300 {
        project.put(&format!("d{}/f{number}", number % 17), "needle\nneedle\n");
    }
    let all = project.matches(grep("needle"));
    let few = || {
        project.matches(Grep {
            max_results: 7,
            ..grep("needle")
        })
    };
    let first = few();
    assert!(first.truncated);
    assert_eq!(
        first
            .files
            .iter()
            .map(|file| file.lines.len())
            .sum::<usize>(),
        7
    );
    let expected: Vec<_> = all
        .files
        .iter()
        .take(4)
        .map(|file| file.path.clone())
        .collect();
    for _ in 0..20 {
        let paths: Vec<_> = few().files.iter().map(|file| file.path.clone()).collect();
        assert_eq!(paths, expected);
    }
}

#[test]
fn an_expression_that_is_none_says_why_and_what_to_do() {
    let project = project();
    let output = project.call(Call::Grep(grep("fn main(")));
    let Output::Fault(fault) = output else {
        panic!("{output:?}")
    };
    let text = fault.to_string();
    assert!(
        text.contains("unclosed group") && text.contains(r"fn main\("),
        "{text}"
    );
    let bomb = project.call(Call::Grep(grep("((a{1000}){1000}){1000}")));
    assert!(
        matches!(bomb, Output::Fault(Fault::Invalid { .. })),
        "{bomb:?}"
    );
}

#[test]
fn an_expression_over_several_lines_works() {
    let project = Project::new(&[("f", "fn a() {\n    b();\n}\n")]);
    assert_eq!(
        project.grep(grep(r"\{\n\s+b")),
        ["f:1:fn a() {", "f:2:    b();"]
    );
}

#[test]
fn a_search_gives_up_when_its_time_is_over_and_stops_when_told() {
    let project = Project::new(&[("f", "needle\n")]);
    let late = project.matches(Grep {
        timeout_ms: 0,
        ..grep("needle")
    });
    assert!(late.timed_out && late.truncated);
    let file = fs::File::create(project.path.join("huge")).expect("made");
    file.set_len(200 << 30).expect("sparse");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
        });
        let call = Call::Grep(Grep {
            path: "huge".into(),
            ..grep("needle")
        });
        assert_eq!(
            run(&project.workspace, &call, &stop),
            Output::Fault(Fault::Cancelled)
        );
    });
}

#[test]
fn repositories_within_the_project_have_rules_of_their_own() {
    let project = Project::new(&[
        (".gitignore", "*.gen\n"),
        ("a.gen", "needle\n"),
        ("inner/.git/info/exclude", "private\n"),
        ("inner/a.gen", "needle\n"),
        ("inner/private", "needle\n"),
        ("plain/.ignore", "!b.gen\nskipped\n"),
        ("plain/b.gen", "needle\n"),
        ("plain/skipped", "needle\n"),
    ]);
    assert_eq!(
        project.grep(grep("needle")),
        ["inner/a.gen:1:needle", "plain/b.gen:1:needle"]
    );
    assert_eq!(
        project.grep(Grep {
            path: "plain".into(),
            ..grep("needle")
        }),
        ["plain/b.gen:1:needle"]
    );
}

/// Lines are shown without the carriage return that they may end in, and are searched so.
#[test]
fn files_are_searched_as_they_are_shown_whatever_their_lines_end_in() {
    let text = "one {\n  two\n}\n\nlast  \n";
    let windows = text.replace('\n', "\r\n");
    let wide: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(windows.encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    for (name, bytes) in [
        ("unix", text.as_bytes().to_vec()),
        ("windows", windows.clone().into_bytes()),
        ("wide", wide),
    ] {
        let project = Project::new(&[]);
        project.put("f", bytes);
        for (pattern, expected) in [
            ("two$", &["f:2:  two"][..]),
            ("^$", &["f:4:"]),
            (r"two\n\}", &["f:2:  two", "f:3:}"]),
            (r"\{$", &["f:1:one {"]),
            (r"[ \t]+$", &["f:5:last  "]),
            (r"^.{4,}\s$", &["f:5:last  "]),
            (r"\}\n\nlast", &["f:3:}", "f:4:", "f:5:last  "]),
            (r"[^\r\n]+two$", &["f:2:  two"]),
            (r"\bone\b.*$", &["f:1:one {"]),
        ] {
            assert_eq!(project.grep(grep(pattern)), expected, "{pattern} in {name}");
        }
    }
    let project = Project::new(&[("f", &text.replace('\n', "\r\n")), ("g", "x\r\ny")]);
    assert_eq!(
        project.grep(grep(r"two\r$")),
        ["f:2:  two"],
        "who asks for a carriage return finds it"
    );
    assert_eq!(project.grep(grep(r"x\r\ny")).len(), 2);
}

#[test]
fn a_search_that_finds_nothing_says_what_it_did_not_look_at() {
    let project = Project::new(&[
        (".gitignore", "dist/\n*.log\n"),
        ("dist/a.js", "needle\n"),
        ("out.log", "needle\n"),
        (".hidden", "needle\n"),
        (".github/ci.yml", "needle\n"),
        ("bin", "a\0needle\n"),
    ]);
    let found = project.matches(grep("needle"));
    let left_out = &found.left_out;
    assert_eq!(
        (
            left_out.hidden_files,
            left_out.ignored_files,
            left_out.hidden_folders,
            left_out.ignored_folders
        ),
        (2, 1, 1, 1),
        "{found:?}"
    );
    assert_eq!(
        (left_out.folders.as_slice(), found.n_binary),
        (&[".github".into(), "dist".into()][..], 1)
    );
    let all = project.grep(Grep {
        include_ignored: true,
        ..grep("needle")
    });
    assert_eq!(
        all,
        [
            ".github/ci.yml:1:needle",
            ".hidden:1:needle",
            "dist/a.js:1:needle",
            "out.log:1:needle"
        ]
    );
    assert!(
        project
            .matches(Grep {
                path: "dist".into(),
                ..grep("nowhere")
            })
            .left_out
            .is_empty()
    );
    for (pattern, meant) in [
        (r"foo\|bar", "foo|bar"),
        (r"\(a\)", "(a)"),
        (r"x\{2\}", "x{2}"),
        (r"a\+b", "a+b"),
    ] {
        let hint = project.matches(grep(pattern)).hint;
        assert!(
            hint.as_ref()
                .is_some_and(|hint| hint.ends_with(&format!("use: {meant}"))),
            "{pattern}: {hint:?}"
        );
    }
    for pattern in ["nowhere", r"no\.where", "x|y"] {
        assert_eq!(project.matches(grep(pattern)).hint, None);
    }
    assert_eq!(
        Project::new(&[("f", "a word here\n")]).grep(grep(r"\<word\>")),
        ["f:1:a word here"]
    );
}

/// The argument `glob` says the same files as the tool of that name.
#[test]
fn a_glob_means_the_same_to_both_tools() {
    let project = Project::new(&[
        (".gitignore", "target/\n*.log\n"),
        ("main.rs", "x\n"),
        ("src/lib.rs", "x\n"),
        ("src/a,b.rs", "x\n"),
        ("src/.hidden.rs", "x\n"),
        (".github/workflows/ci.yml", "x\n"),
        ("target/debug/out.rs", "x\n"),
        ("out.log", "x\n"),
        ("app/[id]/page.tsx", "x\n"),
        ("app/i/page.tsx", "x\n"),
        ("web/[[...slug]]/{x}.ts", "x\n"),
        ("[", "x\n"),
    ]);
    for (path, pattern, expected) in [
        ("", ".github/**", &[".github/workflows/ci.yml"][..]),
        ("", "*.yml", &[]),
        (
            "",
            "app/[id]/page.tsx",
            &["app/[id]/page.tsx", "app/i/page.tsx"],
        ),
        ("", "web/[[...slug]]/*.ts", &["web/[[...slug]]/{x}.ts"]),
        ("", "**/{x}.ts", &["web/[[...slug]]/{x}.ts"]),
        ("", "[", &["["]),
        ("", "target/**/*.rs", &["target/debug/out.rs"]),
        ("", "**/out.rs", &[]),
        ("", "*.log", &["out.log"]),
        ("", "*.yml, *.rs", &["main.rs", "src/a,b.rs", "src/lib.rs"]),
        ("", "*.rs,!src/lib.rs", &["main.rs", "src/a,b.rs"]),
        ("", "src/a,b.rs", &["src/a,b.rs"]),
        ("src", "*.rs", &["src/a,b.rs", "src/lib.rs"]),
        ("src", "src/*.rs", &["src/a,b.rs", "src/lib.rs"]),
        ("src", ".*.rs", &["src/.hidden.rs"]),
        ("target", "debug/*", &["target/debug/out.rs"]),
    ] {
        let mut files: Vec<String> = project
            .found(Glob {
                path: path.into(),
                ..glob(pattern)
            })
            .paths
            .iter()
            .map(BytesPath::to_text)
            .collect();
        files.sort();
        let call = Grep {
            path: path.into(),
            glob: Some(pattern.into()),
            output: GrepOutput::FilesOnly,
            ..grep("x")
        };
        let mut searched: Vec<String> = project
            .matches(call)
            .files
            .iter()
            .map(|file| file.path.to_text())
            .collect();
        searched.sort();
        assert_eq!(
            (files, searched),
            (
                expected.iter().map(ToString::to_string).collect(),
                expected.iter().map(ToString::to_string).collect()
            ),
            "{pattern} in {path}"
        );
    }
    let out = project.call(Call::Grep(Grep {
        path: "src".into(),
        glob: Some("*.rs, ../app/**".into()),
        ..grep("x")
    }));
    assert!(
        matches!(&out, Output::Fault(Fault::Invalid { problem, .. }) if problem.contains("leads out of the folder")),
        "{out:?}"
    );
}

#[test]
fn what_git_tracks_is_searched_though_it_is_ignored() {
    let project = Project::new(&[
        (".gitignore", "build/\n*.gen\nvendor\n"),
        ("build/kept.txt", "needle\n"),
        ("build/made.txt", "needle\n"),
        ("build/deep/made.txt", "needle\n"),
        ("a.gen", "needle\n"),
        ("b.gen", "needle\n"),
        ("vendor/lib/code.c", "needle\n"),
        ("other/vendor/x.c", "needle\n"),
    ]);
    project.git(&["init", "--quiet"]);
    project.git(&[
        "add",
        "--force",
        "build/kept.txt",
        "a.gen",
        "vendor/lib/code.c",
        ".gitignore",
    ]);
    let expected = [
        "a.gen:1:needle",
        "build/kept.txt:1:needle",
        "vendor/lib/code.c:1:needle",
    ];
    assert_eq!(project.grep(grep("needle")), expected);
    assert_eq!(project.glob("**/*.c"), ["vendor/lib/code.c"]);
    assert_eq!(project.glob("**/kept.txt"), ["build/kept.txt"]);
    let found = project.matches(grep("nowhere")).left_out;
    assert_eq!(
        (found.ignored_files, found.ignored_folders),
        (2, 2),
        "{found:?}"
    );
    // A folder that is named is looked through as a whole.
    assert_eq!(
        project
            .grep(Grep {
                path: "build".into(),
                ..grep("needle")
            })
            .len(),
        3
    );
}
