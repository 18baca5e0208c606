use super::*;

/// Signature and first chunk of a PNG of two by three pixels.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x03\x08\x06\0\0\0\xb9\xea\xde\x81";

#[test]
fn an_image_is_one_only_if_its_whole_header_makes_sense() {
    let kind = |bytes: &[u8]| {
        let project = Project::new(&[]);
        project.put("f", bytes);
        match project.read("f") {
            Ok(page) => format!("text: {}", page.text),
            Err(Fault::Binary { kind, .. }) => kind,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(kind(PNG), "PNG image");
    assert_eq!(kind(&PNG[..32]), "PNG image with a broken header");
    assert_eq!(
        kind(&[&PNG[..16], &[0; 17][..]].concat()),
        "PNG image with a broken header"
    );
    assert_eq!(kind(b"GIF89a\x01\0\x01\0\0\0\0;"), "GIF image");
    assert_eq!(
        kind(b"GIF89a\0\0\x01\0\0\0\0;"),
        "GIF image with a broken header"
    );
    assert_eq!(kind(b"GIF89a is a format\n"), "text: GIF89a is a format\n");
    assert_eq!(kind(b"\xff\xd8\xff\xe0"), "JPEG image");
    assert_eq!(kind(b"RIFF\x04\0\0\0WEBP"), "WebP image");
    assert_eq!(kind(b"RIFF\x04\0\0\0WAVE"), "binary file");
}

#[test]
fn a_page_says_where_it_stands_in_the_file() {
    let project = Project::new(&[("f", "one\ntwo\r\nthree")]);
    let page = project.read_page("/workspace/f", 2, 1).expect("reads");
    assert_eq!(
        (
            page.text.as_str(),
            page.first_line,
            page.n_lines,
            page.total_lines,
            page.more
        ),
        ("two\r\n", 2, 1, Some(3), true)
    );
    assert_eq!(
        (page.path.to_text().as_str(), page.bytes, page.encoding),
        ("f", 14, Encoding::Utf8)
    );
    let fault = project.read_page("f", 9, 1).expect_err("behind the end");
    assert!(fault.to_string().contains("has 3 lines"), "{fault}");
}

#[track_caller]
fn check_text(bytes: &[u8], text: &str, encoding: Encoding) {
    let project = Project::new(&[]);
    project.put("f", bytes);
    let page = project.read("f").expect("reads");
    assert_eq!((page.text.as_str(), page.encoding), (text, encoding));
}

#[test]
fn encodings_are_told_apart() {
    check_text(b"", "", Encoding::Utf8);
    check_text("\u{feff}é\n".as_bytes(), "é\n", Encoding::Utf8);
    check_text(
        b"caf\xe9\n",
        "caf\u{e9}\n",
        Encoding::Guessed("windows-1252 (Latin-1)".into()),
    );
    check_text(
        &["\u{e9}t\u{e9} ".as_bytes(), b"\xff\n"].concat(),
        "\u{e9}t\u{e9} \\xff\n",
        Encoding::Lossy,
    );
    check_text(b"\xff\xfea\0\n\0\x3d\xd8\x00\xde", "a\n😀", Encoding::Utf16);
    check_text(b"\xfe\xff\0a\0\n", "a\n", Encoding::Utf16);
}

#[test]
fn binary_files_are_named_and_not_shown() {
    let project = Project::new(&[]);
    project.put("image", PNG);
    project.put("data", b"abc\0def");
    let image = project.read("image").expect_err("binary").to_string();
    assert!(
        image.contains("PNG image") && image.contains("images cannot be shown to you"),
        "{image}"
    );
    assert!(matches!(
        project.read("data"),
        Err(Fault::Binary { bytes: 7, .. })
    ));
}

#[test]
fn a_path_that_leads_nowhere_is_named() {
    let project = Project::new(&[]);
    symlink("loop", project.path.join("loop")).expect("linked");
    let says = |path: &str| project.read(path).expect_err("cannot be read").to_string();
    assert!(
        says("loop").starts_with("`loop`: leads through a cycle of symbolic links"),
        "{}",
        says("loop")
    );
    assert!(
        says("a\0b").starts_with("`a\\x00b`: contains a NUL byte"),
        "{}",
        says("a\0b")
    );
    let long = says(&"n".repeat(300));
    assert!(
        long.starts_with("`nnn") && long.contains("n…`: is too long"),
        "{long}"
    );
}

#[test]
fn one_huge_line_is_cut_and_what_follows_is_still_found() {
    let project = Project::new(&[]);
    let mut bytes = vec![b'x'; 50 * 1024 * 1024];
    bytes.extend_from_slice(b"\nnext\n");
    project.put("f", &bytes);
    let page = project.read("f").expect("reads");
    assert_eq!(
        (page.n_lines, page.cut_lines, page.total_lines),
        (2, 1, Some(2))
    );
    assert!(
        page.text.len() < 5000 && page.text.ends_with("it has 52428801 bytes]\nnext\n"),
        "{}",
        page.text.len()
    );
}

#[test]
fn a_file_of_five_gigabytes_is_paged_and_a_read_of_it_can_be_stopped() {
    let project = Project::new(&[]);
    let file = fs::File::create(project.path.join("f")).expect("made");
    file.write_all_at("line\n".repeat(10_000).as_bytes(), 0)
        .expect("written");
    file.set_len(5 << 30).expect("sparse");
    let page = project.read_page("f", 9_000, 10).expect("reads");
    assert_eq!(
        (page.n_lines, page.total_lines, page.more),
        (10, None, true)
    );
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
        });
        let call = Call::ReadFile(ReadFile {
            offset: 1_000_000,
            ..read("f")
        });
        assert_eq!(
            run(&project.workspace, &call, &stop),
            Output::Fault(Fault::Cancelled)
        );
    });
}

#[test]
fn a_cursor_reads_on_through_the_files_of_a_search() {
    let project = Project::new(&[
        ("a", "needle 1\n"),
        ("b", "needle 2\n"),
        ("c", "needle 3\n"),
        ("d", "other\n"),
    ]);
    let cursor = project.matches(grep("needle")).cursor;
    fs::remove_file(project.path.join("b")).expect("removed");
    let next = |max_files| match project.call(Call::ReadFile(ReadFile {
        path: None,
        cursor: cursor.clone(),
        max_files,
        ..read("")
    })) {
        Output::Read(read) => read,
        other => panic!("{other:?}"),
    };
    let first = next(2);
    assert_eq!(
        (first.files[0].text.as_str(), first.remaining),
        ("needle 1\n", 1)
    );
    assert!(
        matches!(first.files[1].fault, Some(Fault::NotFound { .. })),
        "{:?}",
        first.files[1]
    );
    assert_eq!(next(5).files[0].text, "needle 3\n");
    assert_eq!(
        next(5),
        Read {
            files: vec![],
            remaining: 0,
            memos: Vec::new()
        }
    );
}

#[test]
fn the_largest_output_fits_its_frame() {
    let project = Project::new(&[]);
    project.put(
        "f",
        "\x01"
            .repeat(4000)
            .as_bytes()
            .repeat(300)
            .chunks(4000)
            .collect::<Vec<_>>()
            .join(&b'\n'),
    );
    let output = project.call(Call::ReadFile(ReadFile {
        limit: u64::MAX,
        max_bytes: u64::MAX,
        ..read("f")
    }));
    assert!(matches!(output, Output::Read(_)));
    let output = project.call(Call::Grep(Grep {
        max_results: u32::MAX,
        context: 1000,
        ..grep(".")
    }));
    assert!(matches!(output, Output::Matches(_)));
}
