//! Files in older encodings: what a model is shown of them is what its edits match, and new text
//! takes their form or is refused.

use podbay::event::CallStatus;
use serde_json::Value;
use serde_json::json;

use super::*;

/// The bytes of each file, what it is shown as, and what its encoding is called.
const FILES: [(&str, &[u8], &str, &str); 4] = [
    (
        "menu.gbk",
        b"\xb2\xcb\xb5\xa5\n\xbc\xdb\xb8\xf1: 5\n\xbd\xe1\xca\xf8\n",
        "菜单\n价格: 5\n结束\n",
        "GBK",
    ),
    (
        "menu.latin1",
        b"# Carte du caf\xe9\r\nprice: 5\r\nend\r\n",
        "# Carte du café\r\nprice: 5\r\nend\r\n",
        "windows-1252",
    ),
    (
        "menu.sjis",
        b"\x83\x81\x83\x6a\x83\x85\x81\x5b\nprice: 5\n",
        "メニュー\nprice: 5\n",
        "Shift_JIS",
    ),
    (
        "menu.koi8",
        b"\xed\xc5\xce\xc0 \xce\xc1 \xd3\xc5\xc7\xcf\xc4\xce\xd1\n\xc3\xc5\xce\xc1: 5\n",
        "Меню на сегодня\nцена: 5\n",
        "KOI8-U",
    ),
];

fn project() -> Project {
    let project = Project::new(&[]);
    for (name, bytes, ..) in FILES {
        project.put(name, bytes);
    }
    project
}

#[test]
fn a_file_is_shown_as_the_text_that_edits_match() {
    let project = project();
    for (name, _, text, encoding) in FILES {
        let shown = project.read(name).expect("reads");
        assert_eq!(shown.text, text, "{name}");
        assert!(
            matches!(&shown.encoding, Encoding::Guessed(guess) if guess.starts_with(encoding)),
            "{:?}",
            shown.encoding
        );
        let page = project.read_page(name, 2, 1).expect("reads");
        assert_eq!(Some(page.text.trim_end()), text.lines().nth(1), "{name}");
        let said = project
            .model("read_file", &json!({"path": name}).to_string())
            .text;
        assert!(
            said.contains(&format!("the file is not UTF-8 and is shown as {encoding}")),
            "{said}"
        );
        // A line as it was shown, with a part of it that changes.
        let line = text
            .lines()
            .find(|line| line.contains('5'))
            .expect("has a price");
        let edited = project
            .edit(name, line, &line.replace('5', "16"))
            .expect("edits");
        assert!(
            edited
                .diff
                .contains(&format!("+{}", line.replace('5', "16"))),
            "{}",
            edited.diff
        );
    }
    for (name, bytes, ..) in FILES {
        let price = bytes
            .iter()
            .position(|byte| *byte == b'5')
            .expect("has a price");
        assert_eq!(
            project.bytes(name),
            [&bytes[..price], b"16", &bytes[price + 1..]].concat(),
            "{name}"
        );
    }
}

#[test]
fn a_search_finds_what_is_shown_in_whatever_encoding() {
    let project = project();
    for (pattern, expected) in [
        ("菜单|结束", "menu.gbk:1:菜单 menu.gbk:3:结束"),
        ("caf[^ ]$", "menu.latin1:1:# Carte du café"),
        ("^メニュー$", "menu.sjis:1:メニュー"),
        (
            "price: ?5|цена",
            "menu.koi8:2:цена: 5 menu.latin1:2:price: 5 menu.sjis:2:price: 5",
        ),
        (
            "^.. ?:|Меню",
            "menu.gbk:2:价格: 5 menu.koi8:1:Меню на сегодня",
        ),
    ] {
        assert_eq!(project.grep(grep(pattern)).join(" "), expected, "{pattern}");
    }
    // ASCII on both sides of what is shown.
    assert_eq!(
        project.grep(grep("Carte du")),
        ["menu.latin1:1:# Carte du café"]
    );
}

/// Every tool that puts text into a file, with the arguments that put it there.
fn puts(name: &str, line: &str, text: &str) -> Vec<(&'static str, Value)> {
    let patch =
        format!("*** Begin Patch\n*** Update File: {name}\n@@\n {line}\n+{text}\n*** End Patch");
    let diff = format!("--- a/{name}\n+++ b/{name}\n@@ -2 +2,2 @@\n {line}\n+{text}\n");
    vec![
        (
            "edit_file",
            json!({"path": name, "old_string": line, "new_string": format!("{line}\n{text}")}),
        ),
        (
            "multi_edit",
            json!({"edits": [{"path": name, "old_string": line, "new_string": format!("{line}\n{text}")}]}),
        ),
        (
            "edit_lines",
            json!({"path": name, "operation": "insert", "start_line": 3, "new_content": format!("{text}\n")}),
        ),
        ("apply_patch", json!({"patch": patch})),
        ("apply_patch", json!({"patch": diff})),
        (
            "write_file",
            json!({"path": name, "content": format!("{text}\n"), "append": true}),
        ),
    ]
}

#[test]
fn a_letter_that_the_file_has_not_is_refused_by_every_tool() {
    for (name, bytes, shown, encoding) in FILES {
        let line = shown.lines().nth(1).expect("has two");
        for (tool, arguments) in puts(name, line, "crème ☕") {
            let project = project();
            let finished = project.model(tool, &arguments.to_string());
            assert_eq!(
                finished.status,
                CallStatus::Failed,
                "{tool}: {}",
                finished.text
            );
            let words = [
                "is not UTF-8 text but looks like",
                encoding,
                "it was left as it is",
                &format!("`iconv -f {encoding} -t UTF-8`"),
            ];
            assert!(
                words.iter().all(|words| finished.text.contains(words)),
                "{tool}: {}",
                finished.text
            );
            assert_eq!(project.bytes(name), bytes, "{tool}");
        }
    }
}

#[test]
fn ascii_and_letters_of_the_file_are_written_as_they_stand_there() {
    for (name, bytes, shown, encoding) in FILES {
        let line = shown.lines().nth(1).expect("has two");
        let first = shown.lines().next().expect("has one");
        let raw = bytes
            .split(|byte| *byte == b'\n')
            .next()
            .expect("has one")
            .trim_ascii_end();
        for (text, written) in [
            ("new [5] \\ text", b"new [5] \\ text".as_slice()),
            (first, raw),
        ] {
            for (tool, arguments) in puts(name, line, text) {
                let project = project();
                let finished = project.model(tool, &arguments.to_string());
                assert_eq!(finished.status, CallStatus::Ok, "{tool}: {}", finished.text);
                let is_said = finished.text.contains(&format!(
                    "in the encoding that it has, which looks like {encoding}"
                ));
                assert!(
                    is_said || text.is_ascii() && tool == "write_file",
                    "{tool}: {}",
                    finished.text
                );
                let after = project.bytes(name);
                let mut lines: Vec<&[u8]> = after
                    .split(|byte| *byte == b'\n')
                    .map(<[u8]>::trim_ascii_end)
                    .collect();
                let at = lines
                    .iter()
                    .rposition(|line| *line == written)
                    .unwrap_or_else(|| panic!("{tool}: {}", after.escape_ascii()));
                lines.remove(at);
                let before: Vec<&[u8]> = bytes
                    .split(|byte| *byte == b'\n')
                    .map(<[u8]>::trim_ascii_end)
                    .collect();
                assert_eq!(lines, before, "{tool}");
            }
        }
    }
}

#[test]
fn the_instructions_of_a_project_keep_their_encoding_too() {
    let project = Project::new(&[]);
    let before = b"# Caf\xe9\r\n\r\n## Style\r\n\r\nShort.\r\n";
    project.put("PODBAY.md", before);
    let refused = project.model(
        "update_config",
        &json!({"section": "Style", "content": "Cr\u{e8}me."}).to_string(),
    );
    assert!(
        refused.status == CallStatus::Failed && refused.text.contains("windows-1252"),
        "{}",
        refused.text
    );
    assert_eq!(project.bytes("PODBAY.md"), before);
    let done = project.model(
        "update_config",
        &json!({"section": "Style", "content": "Caf\u{e9}."}).to_string(),
    );
    assert_eq!(done.status, CallStatus::Ok, "{}", done.text);
    assert_eq!(
        project.bytes("PODBAY.md"),
        b"# Caf\xe9\r\n\r\n## Style\r\n\r\nCaf\xe9.\r\n"
    );
}

/// The trail byte of a letter is no bracket, whatever it is alone.
#[test]
fn a_sign_within_a_letter_is_none() {
    let project = project();
    assert!(matches!(
        project.edit("menu.sjis", "[", "("),
        Err(Fault::NoMatch { .. })
    ));
    assert!(matches!(
        project.edit("menu.sjis", "j", "k"),
        Err(Fault::NoMatch { .. })
    ));
    project
        .edit("menu.sjis", "p", "P")
        .expect("it stands there once");
}

#[test]
fn broken_bytes_are_shown_as_such_and_stay() {
    let project = Project::new(&[]);
    project.put("f", b"caf\xc3\xa9, th\xc3\xa9\nbroken \xff\nend\n");
    let shown = project.read("f").expect("reads");
    assert_eq!(
        (shown.text.as_str(), &shown.encoding),
        ("café, thé\nbroken \\xff\nend\n", &Encoding::Lossy)
    );
    project
        .edit("f", "broken \\xff\nend", "brôken \\xff\nover")
        .expect("edits");
    assert_eq!(
        project.bytes("f"),
        b"caf\xc3\xa9, th\xc3\xa9\nbr\xc3\xb4ken \xff\nover\n"
    );
    project.append("f", "été\n").expect("appends");
    assert!(project.bytes("f").ends_with("over\nété\n".as_bytes()));
}

#[test]
fn a_file_that_is_written_anew_keeps_its_encoding_or_it_is_said() {
    let project = project();
    let said = |path: &str, content: &str| {
        project
            .model(
                "write_file",
                &json!({"path": path, "content": content}).to_string(),
            )
            .text
    };
    let text = said("menu.latin1", "café: 6\n");
    assert!(
        text.contains("it is not UTF-8 but windows-1252 (Latin-1)")
            && text.contains("CRLF as before"),
        "{text}"
    );
    assert_eq!(project.bytes("menu.latin1"), b"caf\xe9: 6\r\n");
    let text = said("menu.gbk", "价格: 6\n");
    assert!(text.contains("GBK"), "{text}");
    assert_eq!(project.bytes("menu.gbk"), b"\xbc\xdb\xb8\xf1: 6\n");
    let text = said("menu.sjis", "Menü\n");
    assert!(
        text.contains("looked like Shift_JIS") && text.contains("the file is UTF-8 now"),
        "{text}"
    );
    assert_eq!(project.text("menu.sjis"), "Menü\n");
    project.put("wide", b"\xff\xfea\0\n\0");
    assert!(said("wide", "é\n").contains("it is UTF-16LE as before"));
    assert_eq!(project.bytes("wide"), b"\xff\xfe\xe9\0\n\0");
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn four(text: &str, is_little: bool) -> Vec<u8> {
    let bytes = |letter: char| {
        if is_little {
            u32::from(letter).to_le_bytes()
        } else {
            u32::from(letter).to_be_bytes()
        }
    };
    text.chars().flat_map(bytes).collect()
}

/// The encoding of a file, its bytes, the text that is shown, and a text and its bytes that may be
/// put behind the second line.
type Encoded = (&'static str, Vec<u8>, &'static str, &'static str, Vec<u8>);

/// Files in encodings that they tell for certain.
fn certain() -> Vec<Encoded> {
    let english = "menu\nprice: 5\n";
    let marked = |text: &str| format!("\u{feff}{text}");
    let big = |text: &str| {
        text.encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect::<Vec<u8>>()
    };
    vec![
        (
            "UTF-16LE",
            wide(&marked(english)),
            english,
            "tea ☕",
            wide("tea ☕"),
        ),
        (
            "UTF-16BE",
            big(&marked(english)),
            english,
            "tea ☕",
            big("tea ☕"),
        ),
        ("UTF-16LE", wide(english), english, "tea ☕", wide("tea ☕")),
        (
            "UTF-16BE",
            big("菜单\n价格: 5\n"),
            "菜单\n价格: 5\n",
            "é",
            big("é"),
        ),
        (
            "UTF-32LE",
            four(&marked(english), true),
            english,
            "tea ☕",
            four("tea ☕", true),
        ),
        (
            "UTF-32BE",
            four(english, false),
            english,
            "tea ☕",
            four("tea ☕", false),
        ),
        (
            "ISO-2022-JP",
            b"\x1b$B%a%K%e!<\x1b(B\nprice: 5\n".to_vec(),
            "メニュー\nprice: 5\n",
            "茶",
            b"\x1b$BCc\x1b(B".to_vec(),
        ),
        (
            "HZ",
            b"~{2K5%~}\n~{<[8q~}: 5 ~~\n".to_vec(),
            "菜单\n价格: 5 ~\n",
            "单 ~",
            b"~{5%~} ~~".to_vec(),
        ),
    ]
}

#[test]
fn a_file_that_tells_its_encoding_is_shown_found_and_changed_in_it() {
    for (encoding, before, shown, text, bytes) in certain() {
        let line = shown.lines().nth(1).expect("has two");
        for (tool, arguments) in puts("file", line, text) {
            let project = Project::new(&[]);
            project.put("file", &before);
            assert_eq!(
                project.read("file").expect("reads").text,
                shown,
                "{encoding}"
            );
            let word = shown.lines().next().expect("has one");
            assert_eq!(
                project.grep(grep(&format!("^{word}$"))),
                [format!("file:1:{word}")],
                "{encoding}"
            );
            let finished = project.model(tool, &arguments.to_string());
            assert_eq!(
                finished.status,
                CallStatus::Ok,
                "{encoding} {tool}: {}",
                finished.text
            );
            let is_said = finished
                .text
                .contains(&format!("in the encoding that it has, which is {encoding}"));
            assert!(is_said, "{encoding} {tool}: {}", finished.text);
            let after = project.bytes("file");
            let newline = &before[before.len()
                - if encoding.starts_with("UTF-32") {
                    4
                } else if encoding.starts_with("UTF-16") {
                    2
                } else {
                    1
                }..];
            assert_eq!(
                after,
                [before.as_slice(), &bytes, newline].concat(),
                "{encoding} {tool}: {}",
                after.escape_ascii()
            );
        }
        let project = Project::new(&[]);
        project.put("file", &before);
        let written = project.model(
            "write_file",
            &json!({"path": "file", "content": shown}).to_string(),
        );
        assert!(
            written
                .text
                .contains(&format!("it is {encoding} as before")),
            "{}",
            written.text
        );
        assert_eq!(project.bytes("file"), before, "{encoding}");
    }
}

#[test]
fn a_letter_that_such_an_encoding_has_not_and_what_is_broken_in_it_are_refused() {
    let broken = [wide("\u{feff}menu\n"), vec![0, 0xd8], wide("price: 5\n")].concat();
    let cases = [
        ("ISO-2022-JP", b"\x1b$B%a%K\x1b(B\nprice: 5\n".to_vec()),
        ("HZ", b"~{2K5%~}\nprice: 5\n".to_vec()),
        ("ISO-2022-KR", b"\x1b$)C\x0e8^4:\x0f\nprice: 5\n".to_vec()),
        ("UTF-16LE", broken),
    ];
    for (encoding, before) in cases {
        for (tool, arguments) in puts("file", "price: 5", "☃") {
            if encoding == "UTF-16LE" && tool == "write_file" {
                // What stands there stays as it is.
                continue;
            }
            let project = Project::new(&[]);
            project.put("file", &before);
            let line = project
                .read("file")
                .expect("reads")
                .text
                .lines()
                .nth(1)
                .expect("has two")
                .to_owned();
            let arguments = arguments.to_string().replace("price: 5", &line);
            let finished = project.model(tool, &arguments);
            assert_eq!(
                finished.status,
                CallStatus::Failed,
                "{encoding} {tool}: {}",
                finished.text
            );
            assert!(
                finished
                    .text
                    .contains(&format!("`iconv -f {encoding} -t UTF-8`")),
                "{encoding} {tool}: {}",
                finished.text
            );
            assert_eq!(project.bytes("file"), before, "{encoding} {tool}");
        }
    }
}

#[test]
fn lines_that_end_in_a_carriage_return_alone_are_lines_and_stay_so() {
    for (before, line, text, after) in [
        ("one\rtwo\r", "two", "three", "one\rtwo\rthree\r"),
        ("é\rtwo five\r", "two five", "ü", "é\rtwo five\rü\r"),
        (
            "#!/bin/sh\recho ~\r",
            "echo ~",
            "exit",
            "#!/bin/sh\recho ~\rexit\r",
        ),
    ] {
        for (tool, arguments) in puts("file", line, text) {
            let project = Project::new(&[("file", before)]);
            assert_eq!(
                project.read("file").expect("reads").text,
                before.replace('\r', "\n")
            );
            assert_eq!(
                project
                    .read_page("file", 2, 1)
                    .expect("reads")
                    .text
                    .trim_end(),
                line
            );
            assert_eq!(
                project.grep(grep(&format!("^{line}$"))),
                [format!("file:2:{line}")]
            );
            let finished = project.model(tool, &arguments.to_string());
            assert_eq!(finished.status, CallStatus::Ok, "{tool}: {}", finished.text);
            assert!(
                finished.text.contains("its lines end in a lone CR"),
                "{tool}: {}",
                finished.text
            );
            assert_eq!(project.text("file"), after, "{tool}");
        }
        let project = Project::new(&[("file", before)]);
        project.write("file", "new\nlines\n").expect("writes");
        assert_eq!(project.text("file"), "new\rlines\r");
    }
}

#[test]
fn line_ends_of_both_kinds_are_told_as_such() {
    let project = Project::new(&[
        ("mixed", "a\nb\r\nc\n"),
        ("returns", "a\r\nb\r\n"),
        ("one", "a\r\nb"),
        ("plain", "a\nb\n"),
    ]);
    for (name, expected) in [
        (
            "mixed",
            Some("line ends are mixed: 1 of these 3 are CRLF, the others LF"),
        ),
        ("returns", Some("lines end in CRLF")),
        ("one", Some("lines end in CRLF")),
        ("plain", None),
    ] {
        let text = project
            .model("read_file", &json!({"path": name}).to_string())
            .text;
        match expected {
            Some(words) => assert!(text.contains(words), "{name}: {text}"),
            None => assert!(!text.contains("CRLF"), "{name}: {text}"),
        }
    }
}
