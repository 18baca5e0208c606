//! What the model reads of a result.

use super::*;
use podbay_wire::LeftOut;
use podbay_wire::Limit;
use podbay_wire::MatchedFile;

fn ended(end: End, limit: Option<Limit>) -> Output {
    Output::Command(CommandEnded {
        limit,
        duration_ms: 5,
        ..CommandEnded::plain(end)
    })
}

#[track_caller]
fn check(output: &Output, printed: &str, expected: &str, ok: bool) {
    let printed = CommandOutput {
        head: printed.as_bytes().to_vec(),
        tail: Vec::new(),
        meant: Vec::new(),
    };
    let rendered = render(output, &printed, &Options::default(), 2000);
    assert_eq!(fit(&rendered, 2000, None), expected);
    assert_eq!(rendered.ok, ok);
}

#[test]
fn the_end_of_a_command_names_the_limit_it_met() {
    check(&ended(End::Exited { code: 0 }, None), "hi\n", "hi\n", true);
    check(
        &ended(End::Exited { code: 0 }, None),
        "",
        "(no output)\n[exit code 0]",
        true,
    );
    check(
        &ended(End::Exited { code: 0 }, None),
        "\n \n",
        "(no output but white space)\n[exit code 0]",
        true,
    );
    check(
        &ended(End::Exited { code: 2 }, None),
        "no\n",
        "no\n[exit code 2]",
        false,
    );
    let timed_out = ended(
        End::Signaled { signal: 15 },
        Some(Limit::Time { ms: 120_000 }),
    );
    check(
        &timed_out,
        "",
        "(no output)\n[killed: it ran longer than the limit of 120 s]",
        false,
    );
    let large = ended(
        End::Signaled {
            signal: libc::SIGXFSZ,
        },
        Some(Limit::FileSize { bytes: 64 << 10 }),
    );
    check(
        &large,
        "",
        "(no output)\n[killed: a file reached 64.0 KiB, the limit of `sandbox.file_size`]",
        false,
    );
    let hog = ended(
        End::Signaled { signal: 9 },
        Some(Limit::Memory { bytes: 2 << 30 }),
    );
    check(
        &hog,
        "",
        "(no output)\n[killed: out of memory, the limit of `sandbox.memory` is 2.0 GiB]",
        false,
    );
}

/// A redrawn line is shown once, before anything is truncated, and without escape sequences.
#[test]
fn terminal_output_is_rendered_as_text() {
    let ok = || ended(End::Exited { code: 0 }, None);
    check(
        &ok(),
        " 10%\r 50%\r100%\n\x1b[31mred\x1b[0m\n",
        "100%\nred\n",
        true,
    );
    check(
        &ok(),
        &(0..5000)
            .map(|n| format!("\r{n} of 5000"))
            .collect::<String>(),
        "4999 of 5000",
        true,
    );
    check(
        &ok(),
        &"layer 1\nlayer 2\n\x1b[2A".repeat(1000),
        "layer 1\nlayer 2\n",
        true,
    );
    check(
        &ok(),
        "\x1b[2K\r\x1b[0m",
        "(no output)\n[exit code 0]",
        true,
    );
    let printed = CommandOutput {
        head: b"caf\xe9\n".to_vec(),
        tail: Vec::new(),
        meant: Vec::new(),
    };
    let text = fit(
        &render(&ok(), &printed, &Options::default(), 2000),
        2000,
        None,
    );
    assert_eq!(text, format!("caf\\xe9\n[{BYTES}]"));
    let printed = CommandOutput {
        head: b"a\rb".to_vec(),
        tail: b"\x1b[9Ac\rd\n".to_vec(),
        meant: Vec::new(),
    };
    let output = Output::Command(CommandEnded {
        omitted_bytes: 5,
        output_bytes: 20,
        ..CommandEnded::plain(End::Exited { code: 0 })
    });
    let text = fit(
        &render(&output, &printed, &Options::default(), 2000),
        2000,
        None,
    );
    assert_eq!(
        text, "b\n[… 5 bytes not kept …]\nd\n",
        "what was not kept stays between the two"
    );
}

#[test]
fn an_empty_or_truncated_result_says_what_was_skipped() {
    let left_out = || LeftOut {
        hidden_files: 1,
        ignored_folders: 1,
        folders: vec!["target".into()],
        ..LeftOut::default()
    };
    let files = |paths: Vec<podbay_wire::BytesPath>, truncated| {
        Output::Files(FoundFiles {
            paths,
            truncated,
            n_unreadable: 0,
            cursor: None,
            left_out: left_out(),
            notes: Vec::new(),
        })
    };
    let said = "not looked at: 1 hidden file, 1 ignored folder (target/); include_ignored true looks at them, too";
    check(
        &files(Vec::new(), false),
        "",
        &format!("no file matches\n[{said}]"),
        true,
    );
    check(
        &files(vec!["a".into()], true),
        "",
        &format!("a\n[more files match; narrow the pattern; {said}]"),
        true,
    );
    check(&files(vec!["a".into()], false), "", "a\n", true);
    let listing = DirectoryListing {
        path: "".into(),
        entries: Vec::new(),
        omitted: Some(0),
        truncated: false,
        n_unreadable: 0,
        left_out: LeftOut {
            hidden_files: 2,
            ..LeftOut::default()
        },
    };
    let rendered = render(
        &Output::Listing(listing),
        &CommandOutput::default(),
        &Options::default(),
        2000,
    );
    assert!(
        rendered
            .body
            .contains("nothing in this folder that is shown")
            && rendered.footer.contains("2 hidden files"),
        "{}",
        rendered.footer
    );
}

#[test]
fn lines_are_numbered_and_the_page_names_the_next_offset() {
    let file = FileText {
        path: "a".into(),
        text: "x\r\ny".into(),
        first_line: 7,
        n_lines: 2,
        total_lines: Some(20),
        bytes: 99,
        more: true,
        cut_lines: 0,
        encoding: Encoding::Utf8,
        fault: None,
    };
    let output = Output::Read(Read {
        files: vec![file],
        remaining: 0,
        memos: Vec::new(),
    });
    check(
        &output,
        "",
        "7\tx\n8\ty\n[lines 7-8 of 20; continue with offset 9; lines end in CRLF]",
        true,
    );
}

/// Advice must not name arguments that the set does not list.
#[test]
fn hints_name_only_tools_and_arguments_of_the_set() {
    let file = MatchedFile {
        path: "a.rs".into(),
        count: 1,
        lines: Vec::new(),
        binary: false,
    };
    let found = Output::Matches(Matches {
        output: GrepOutput::FilesOnly,
        files: vec![file],
        n_matches: 1,
        truncated: false,
        timed_out: false,
        n_unreadable: 0,
        n_protected: 0,
        n_binary: 0,
        n_too_long: 0,
        left_out: LeftOut::default(),
        hint: None,
        cursor: Some("grep-1".to_owned()),
    });
    let files = FoundFiles {
        paths: vec!["a.rs".into()],
        truncated: false,
        n_unreadable: 0,
        cursor: Some("glob-1".to_owned()),
        left_out: LeftOut::default(),
        notes: Vec::new(),
    };
    let left = Output::Command(CommandEnded {
        n_survivors: 2,
        ..CommandEnded::plain(End::Exited { code: 0 })
    });
    let files = Output::Files(files);
    let footer = |output: &Output, set| {
        render(
            output,
            &CommandOutput::default(),
            &Options {
                set,
                ..Options::default()
            },
            2000,
        )
        .footer
    };
    for set in [ToolSet::Standard, ToolSet::Full] {
        assert_eq!(
            footer(&found, set),
            "[read these files with read_file from_cursor \"grep-1\"]"
        );
        assert_eq!(
            footer(&files, set),
            "[read them with read_file from_cursor \"glob-1\"]"
        );
        assert!(footer(&left, set).contains("use background to keep one"));
    }
    assert_eq!(
        (
            footer(&found, ToolSet::Small),
            footer(&files, ToolSet::Small)
        ),
        (String::new(), String::new())
    );
    let left = footer(&left, ToolSet::Small);
    assert!(
        left.contains("more_tools has start_background_process, which keeps one")
            && !left.contains("use background"),
        "{left}"
    );
}

#[test]
fn match_counts_are_shown_even_if_all_are_one() {
    let file = MatchedFile {
        path: "a.rs".into(),
        count: 1,
        lines: Vec::new(),
        binary: false,
    };
    let matches = |output| {
        Output::Matches(Matches {
            output,
            files: vec![file.clone()],
            n_matches: 1,
            truncated: false,
            timed_out: false,
            n_unreadable: 0,
            n_protected: 0,
            n_binary: 0,
            n_too_long: 0,
            left_out: LeftOut::default(),
            hint: None,
            cursor: None,
        })
    };
    check(&matches(GrepOutput::Count), "", "a.rs: 1\n", true);
    check(&matches(GrepOutput::FilesOnly), "", "a.rs\n", true);
}

/// Files that were not searched may match, so the result must not say that nothing does.
#[test]
fn a_search_that_timed_out_does_not_claim_that_nothing_matches() {
    let matches = |files: Vec<MatchedFile>, truncated: bool, timed_out: bool| {
        let n_matches = files.len() as u64;
        let (n_unreadable, n_protected, n_binary, n_too_long, cursor) = (0, 0, 0, 0, None);
        let (left_out, hint) = (LeftOut::default(), None);
        let output = GrepOutput::FilesOnly;
        Output::Matches(Matches {
            output,
            files,
            n_matches,
            truncated,
            timed_out,
            n_unreadable,
            n_protected,
            n_binary,
            n_too_long,
            cursor,
            left_out,
            hint,
        })
    };
    let file = || {
        vec![MatchedFile {
            path: "a.rs".into(),
            count: 1,
            lines: Vec::new(),
            binary: false,
        }]
    };
    let over = "[the search ran out of time, so there may be more; narrow the pattern or the path]";
    check(
        &matches(Vec::new(), false, false),
        "",
        "nothing matches",
        true,
    );
    check(
        &matches(Vec::new(), true, true),
        "",
        &format!("nothing was found so far\n{over}"),
        true,
    );
    check(
        &matches(file(), true, true),
        "",
        &format!("a.rs\n{over}"),
        true,
    );
    check(
        &matches(file(), true, false),
        "",
        "a.rs\n[more matches; narrow the pattern or the path]",
        true,
    );
}

#[test]
fn a_truncated_result_keeps_its_ends_and_names_the_artifact() {
    let body: String = (0..1000).map(|n| format!("line {n}\n")).collect();
    let rendered = Rendered {
        body,
        footer: "[exit code 0]".to_owned(),
        ok: true,
        keep: true,
        unkept: 0,
    };
    let text = fit(&rendered, 1000, Some("k3"));
    assert!(text.len() < 1200, "{}", text.len());
    assert!(text.starts_with("line 0\n") && text.contains("line 999\n[exit code 0]"));
    assert!(
        text.contains("read_file with path \"artifact:k3\""),
        "{text}"
    );
}

#[test]
fn the_last_state_of_a_line_is_shown_even_if_the_middle_was_dropped() {
    let body = |head: &str, tail: &str, omitted_bytes, omitted_in_line| {
        let printed = CommandOutput {
            head: head.into(),
            tail: tail.into(),
            meant: Vec::new(),
        };
        let ended = CommandEnded {
            omitted_bytes,
            omitted_in_line,
            ..CommandEnded::plain(End::Exited { code: 0 })
        };
        render(&Output::Command(ended), &printed, &Options::default(), 1000).body
    };
    for (head, tail, expected) in [
        (
            "start\n 1%\r 2%\r 3",
            "7%\r 98%\r 99%\r100%\ndone\n",
            "start\n100%\ndone\n",
        ),
        (
            "a 1/9\x1b[2K\x1b[1Ga 2/",
            "8/9\x1b[2K\x1b[1Ga 9/9\n",
            "a 9/9\n",
        ),
        ("a 1/9\x1b[Ga 2/", "8/9\x1b[Ga 9/9", "a 9/9"),
    ] {
        assert_eq!(body(head, tail, 50_000_000, true), expected);
        // Missing lines are marked.
        assert!(body(head, tail, 50_000_000, false).contains("[… 50000000 bytes not kept …]"));
    }
    // All of it is there, in two parts.
    assert_eq!(body("x\n 1%\r 2", "%\r 3%\n", 0, true), "x\n 3%\n");
    // A line that only continues is truncated.
    assert!(body("aaa", "bbb\r\nc\n", 9, true).contains("9 bytes not kept"));
}

#[test]
fn a_truncated_result_says_what_was_not_kept() {
    let half = |name: &str| {
        (0..500)
            .map(|n| format!("{name} {n}\n"))
            .collect::<String>()
            .into_bytes()
    };
    let printed = CommandOutput {
        head: half("head"),
        tail: half("tail"),
        meant: Vec::new(),
    };
    let n_kept = (printed.head.len() + printed.tail.len()) as u64;
    let (omitted_bytes, output_bytes) = (1_200_000_000, 1_200_000_000 + n_kept);
    let output = Output::Command(CommandEnded {
        output_bytes,
        omitted_bytes,
        ..CommandEnded::plain(End::Exited { code: 0 })
    });
    let rendered = render(&output, &printed, &Options::default(), 1000);
    let text = fit(&rendered, 1000, Some("k3"));
    let (shown, said) = text.split_once("[… ").expect("it is cut");
    let (n_cut, said) = said
        .split_once(" bytes cut here; ")
        .expect("it says how much");
    let (said, rest) = said.split_once(" …]\n").expect("it ends");
    assert_eq!(
        said,
        "1200000000 bytes of the output were not kept, the others: read_file with path \"artifact:k3\""
    );
    let n_shown = (shown.len() + rest.len()) as u64;
    assert_eq!(n_cut.parse(), Ok(output_bytes - n_shown), "{text}");
}

#[test]
fn a_long_page_is_truncated_at_a_line_end() {
    let text: String = (1..=500)
        .map(|n| format!("some text of line {n}\n"))
        .collect();
    let file = FileText {
        path: "a".into(),
        bytes: text.len() as u64,
        text,
        first_line: 1,
        n_lines: 500,
        total_lines: Some(500),
        more: false,
        cut_lines: 0,
        encoding: Encoding::Utf8,
        fault: None,
    };
    let rendered = render(
        &Output::Read(Read {
            files: vec![file],
            remaining: 0,
            memos: Vec::new(),
        }),
        &CommandOutput::default(),
        &Options::default(),
        1000,
    );
    assert!(rendered.body.len() <= 1000);
    assert!(
        rendered.footer.contains("of 500; continue with offset"),
        "{}",
        rendered.footer
    );
}

#[test]
fn one_is_singular() {
    let written = |bytes| {
        let output = Output::Written(podbay_wire::Written {
            path: "a".into(),
            bytes,
            created: true,
            appended: false,
            notes: Vec::new(),
            memos: Vec::new(),
        });
        render(
            &output,
            &CommandOutput::default(),
            &Options::default(),
            1000,
        )
        .body
    };
    assert!(
        written(1).ends_with("a (1 byte)") && written(2).ends_with("a (2 bytes)"),
        "{}",
        written(1)
    );
    let cut = |cut_lines| {
        let (path, text) = ("a".into(), "x\n".to_owned());
        let file = FileText {
            path,
            bytes: 2,
            text,
            first_line: 1,
            n_lines: 1,
            total_lines: Some(1),
            more: false,
            cut_lines,
            encoding: Encoding::Utf8,
            fault: None,
        };
        notes(&file, 1, false).concat()
    };
    assert_eq!(
        (cut(1).as_str(), cut(2).as_str()),
        ("1 long line was cut", "2 long lines were cut")
    );
}
