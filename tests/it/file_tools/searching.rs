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
    assert_eq!(project.grep(grep("needle")), ["a.md:1:x needle", "a.md:2:needle x", "b.txt:2:needle two"]);
    let all = project.grep(Grep { case_insensitive: true, path: ".".into(), ..grep("^needle$") });
    assert_eq!(all, ["a/c.rs:1:Needle"]);
    let context = project.grep(Grep { context: 1, ..grep("two") });
    assert_eq!(context, ["b.txt-1-one", "b.txt:2:needle two", "b.txt-3-three"]);
    assert_eq!(project.grep(Grep { glob: Some("*.{rs,txt}".into()), ..grep("(?i)needle") }), ["a/c.rs:1:Needle", "b.txt:2:needle two"]);
    assert_eq!(project.grep(Grep { glob: Some("!*.md".into()), ..grep("needle") }), ["b.txt:2:needle two"]);
    for glob in ["[", "{a,b"] {
        let fault = project.call(Call::Grep(Grep { glob: Some(glob.into()), ..grep("needle") }));
        assert!(matches!(&fault, Output::Fault(Fault::Invalid { problem, .. }) if problem.contains("a backslash before")), "{fault:?}");
    }
    assert_eq!(project.grep(Grep { glob: Some("*.log".into()), ..grep("needle") }), ["out.log:1:needle"]);
    assert_eq!(project.grep(Grep { glob: Some("a/*.rs".into()), path: "a".into(), ..grep("Needle") }), ["a/c.rs:1:Needle"]);
    assert_eq!(project.grep(Grep { path: "/workspace/out.log".into(), ..grep("needle") }), ["out.log:1:needle"]);
}

#[test]
fn files_and_counts_can_be_asked_for_alone() {
    let project = project();
    let files = project.matches(Grep { output: GrepOutput::FilesOnly, ..grep("needle") });
    let names: Vec<String> = files.files.iter().map(|file| file.path.to_text()).collect();
    assert_eq!((names, files.n_matches), (vec!["a.md".to_string(), "b.txt".to_string()], 2));
    let counts = project.matches(Grep { output: GrepOutput::Count, ..grep("needle") });
    assert_eq!((counts.files[0].count, counts.files[1].count, counts.n_matches), (2, 1, 3));
    assert!(counts.files[0].lines.is_empty());
}

#[test]
fn binary_files_are_passed_over_unless_they_are_named() {
    let project = project();
    let named = project.matches(Grep { path: "bin".into(), ..grep("needle") });
    assert!(named.files[0].binary && named.files[0].lines.is_empty(), "{named:?}");
    let late = format!("needle\n{}\0", "x\n".repeat(100_000));
    project.put("late", late);
    let found = project.matches(Grep { path: ".".into(), ..grep("^needle$") });
    let file = found.files.iter().find(|file| file.path == "late".into()).expect("found");
    assert!(file.binary && file.lines.is_empty() && file.count == 1, "{file:?}");
}

#[test]
fn the_bound_over_all_files_gives_the_same_answer_each_time() {
    let project = Project::new(&[]);
    for number in 0..300 {
        project.put(&format!("d{}/f{number}", number % 17), "needle\nneedle\n");
    }
    let all = project.matches(grep("needle"));
    let few = || project.matches(Grep { max_results: 7, ..grep("needle") });
    let first = few();
    assert!(first.truncated);
    assert_eq!(first.files.iter().map(|file| file.lines.len()).sum::<usize>(), 7);
    let expected: Vec<_> = all.files.iter().take(4).map(|file| file.path.clone()).collect();
    for _ in 0..20 {
        let paths: Vec<_> = few().files.iter().map(|file| file.path.clone()).collect();
        assert_eq!(paths, expected);
    }
}

#[test]
fn an_expression_that_is_none_says_why_and_what_to_do() {
    let project = project();
    let output = project.call(Call::Grep(grep("fn main(")));
    let Output::Fault(fault) = output else { panic!("{output:?}") };
    let text = fault.to_string();
    assert!(text.contains("unclosed group") && text.contains(r"fn main\("), "{text}");
    let bomb = project.call(Call::Grep(grep("((a{1000}){1000}){1000}")));
    assert!(matches!(bomb, Output::Fault(Fault::Invalid { .. })), "{bomb:?}");
}

#[test]
fn an_expression_over_several_lines_works() {
    let project = Project::new(&[("f", "fn a() {\n    b();\n}\n")]);
    assert_eq!(project.grep(grep(r"\{\n\s+b")), ["f:1:fn a() {", "f:2:    b();"]);
}

#[test]
fn a_search_gives_up_when_its_time_is_over_and_stops_when_told() {
    let project = Project::new(&[("f", "needle\n")]);
    let late = project.matches(Grep { timeout_ms: 0, ..grep("needle") });
    assert!(late.timed_out && late.truncated);
    let file = fs::File::create(project.path.join("huge")).expect("made");
    file.set_len(200 << 30).expect("sparse");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
        });
        let call = Call::Grep(Grep { path: "huge".into(), ..grep("needle") });
        assert_eq!(run(&project.workspace, &call, &stop), Output::Fault(Fault::Cancelled));
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
    assert_eq!(project.grep(grep("needle")), ["inner/a.gen:1:needle", "plain/b.gen:1:needle"]);
    assert_eq!(project.grep(Grep { path: "plain".into(), ..grep("needle") }), ["plain/b.gen:1:needle"]);
}
