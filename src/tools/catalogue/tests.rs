//! Which calls are parsed, repaired and refused.

use serde_json::json;

use super::*;
use podbay_event::is_same_name;
use podbay_wire::Call;

fn catalogue() -> Catalogue {
    Catalogue::new(&Options::default())
}

#[track_caller]
fn wrong(name: &str, arguments: &str, says: &[&str]) {
    let InvalidCall(text) = catalogue()
        .parse(name, arguments)
        .expect_err("must be refused");
    for part in says {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn an_invalid_call_is_refused_with_a_remedy() {
    wrong("fly", "{}", &["no tool `fly`", "read_file, edit_file"]);
    wrong(
        "read_file",
        "{",
        &["not valid JSON", r#"{"path": "README.md"}"#],
    );
    wrong(
        "write_file",
        r#"{"path": "a", "content": "\ud83d"}"#,
        &["half a sign", "write the sign itself"],
    );
    let long = format!(r#"{{"path": "a", "content": "{}"#, "x".repeat(1 << 20));
    wrong(
        "write_file",
        &long[..1 << 20],
        &["longer than the 1 MiB", "in parts"],
    );
    wrong("read_file", "[1]", &["must be a JSON object"]);
    wrong(
        "write_file",
        r#"{"path": "a", "content": "x", "path": "b"}"#,
        &["`path` twice", "different values", "Send it once"],
    );
    wrong(
        "multi_edit",
        r#"{"edits": [{"path": "a", "old_string": "x", "new_string": "y", "path": "b"}]}"#,
        &["`path` twice"],
    );
    wrong(
        "multi_edit",
        r#"{"edits": []}"#,
        &["`edits` is empty", "`old_string`"],
    );
    let second = r#"{"edits": [{"path": "a", "old_string": "x", "new_string": "y"}, {"path": "a", "old_string": "x", "flags": "g"}]}"#;
    wrong(
        "multi_edit",
        second,
        &[
            "`new_string` is missing in `edits.1`",
            "`flags` is not known in `edits.1`",
        ],
    );
    assert!(
        catalogue()
            .parse("read_file", r#"{"path": "a", "path": "a"}"#)
            .is_ok(),
        "both say the same"
    );
    wrong("read_file", "{}", &["`path`"]);
    wrong("bash", "{}", &["`command` is missing"]);
    wrong("bash", r#"{"command": {"a": 5}}"#, &["`command`", "string"]);
    wrong(
        "bash",
        r#"{"command": "x", "sandbox": false}"#,
        &["`sandbox`", "not known"],
    );
    wrong(
        "grep",
        r#"{"pattern": "x", "output_mode": "loud"}"#,
        &["`output_mode`", "content"],
    );
}

#[test]
fn a_tool_name_between_control_tokens_is_extracted() {
    for name in [
        "bash<|channel|>commentary",
        "bash<|channel|>json",
        "assistant<|channel|>bash",
        "functions.bash<|channel|>commentary <|constrain|>json",
        "<|start|>assistant<|channel|>commentary<|message|>bash",
    ] {
        let understood = catalogue().parse(name, r#"{"command": "ls"}"#).expect(name);
        assert_eq!(
            (&*understood.name, understood.notes),
            ("bash", vec![format!("{name} was taken as bash")])
        );
    }
    for name in [
        "fly<|channel|>commentary",
        "bash<|channel|>read_file",
        "<|channel|>",
        "bash|>x",
        "bash<|channel",
        "a<|bash|>b",
    ] {
        wrong(name, r#"{"command": "ls"}"#, &["there is no tool"]);
    }
}

#[test]
fn a_number_that_is_too_large_is_bounded_and_noted() {
    let largest = [
        (
            "read_file",
            r#"{"path": "a", "limit": 5000}"#,
            "limit 5000 was taken as 2000",
        ),
        (
            "read_file",
            r#"{"from_cursor": "c", "max_files": 99}"#,
            "max_files 99 was taken as 20",
        ),
        (
            "list_directory",
            r#"{"max_entries": 99999}"#,
            "max_entries 99999 was taken as 1000",
        ),
        (
            "glob",
            r#"{"pattern": "*", "max_results": 10000000000}"#,
            "max_results 10000000000 was taken as 500",
        ),
        (
            "grep",
            r#"{"pattern": "x", "context": 51}"#,
            "context 51 was taken as 50",
        ),
        (
            "bash",
            r#"{"command": "x", "timeout_seconds": 601}"#,
            "timeout_seconds 601 was taken as 600",
        ),
    ];
    for (name, arguments, says) in largest {
        let notes = catalogue()
            .parse(name, arguments)
            .expect("understood")
            .notes;
        assert!(notes.len() == 1 && notes[0].starts_with(says), "{notes:?}");
        let fits = arguments
            .replace("5000", "2000")
            .replace("99999", "1000")
            .replace("10000000000", "500");
        let fits = fits
            .replace("99}", "20}")
            .replace("51", "50")
            .replace("601", "600");
        assert_eq!(
            catalogue().parse(name, &fits).expect("understood").notes,
            [""; 0]
        );
    }
    let notes = catalogue()
        .parse(
            "read_file",
            r#"{"path": "a", "limit": 99999999999999999999999}"#,
        )
        .expect("understood")
        .notes;
    assert!(
        notes.len() == 1 && notes[0].contains("was taken as 2000"),
        "{notes:?}"
    );
    wrong(
        "grep",
        r#"{"pattern": "x", "context": -1}"#,
        &["`context` cannot be negative"],
    );
}

#[test]
fn aliases_and_lenient_values_are_accepted() {
    let ParsedCall { name, action, .. } = catalogue()
        .parse("FileRead", r#"{"file_path": "a", "limit": "20"}"#)
        .expect("understood");
    assert_eq!(name, "read_file");
    let Action::Box(Call::ReadFile(read)) = action else {
        panic!("{action:?}")
    };
    assert_eq!((read.path, read.limit), (Some("a".into()), 20));
}

#[track_caller]
fn mended(name: &str, arguments: &str, plain: (&str, &str), notes: &[&str]) {
    let right = catalogue().parse(plain.0, plain.1).expect("right");
    assert_eq!(right.notes, [""; 0], "what is right needs no note");
    let understood = catalogue().parse(name, arguments).expect("understood");
    assert_eq!(
        (understood.action, understood.notes.as_slice()),
        (
            right.action,
            notes
                .iter()
                .map(|note| (*note).to_owned())
                .collect::<Vec<_>>()
                .as_slice()
        )
    );
}

/// The aliases of `OpenOrca`'s table, on every tool that has the argument they stand for.
#[test]
fn arguments_have_the_aliases_of_other_agents() {
    for (right, tools, wrong) in [
        (
            "path",
            &[
                "read_file",
                "write_file",
                "edit_file",
                "edit_lines",
                "delete_file",
                "list_directory",
            ][..],
            &["file", "file_path", "filepath"][..],
        ),
        (
            "path",
            &["list_directory", "grep", "glob", "tree", "mkdir"],
            &["dir", "directory", "folder"],
        ),
        ("command", &["bash", "start_background_process"], &["cmd"]),
        ("pattern", &["grep", "glob"], &["query", "search"]),
        ("pattern", &["grep"], &["regex"]),
        ("content", &["write_file"], &["text", "contents", "data"]),
        ("old_string", &["edit_file"], &["old", "old_text", "find"]),
        (
            "new_string",
            &["edit_file"],
            &["new", "new_text", "replace"],
        ),
    ] {
        for name in tools {
            let catalogue = catalogue();
            let names: Vec<&str> = catalogue
                .find(name)
                .expect("a tool")
                .other_names(right)
                .collect();
            for wrong in wrong {
                assert!(
                    names.contains(wrong),
                    "{name}: {wrong} for {right}; it knows {names:?}"
                );
            }
        }
    }
}

#[test]
fn mistakes_of_weak_models_are_repaired_and_noted() {
    let read = ("read_file", r#"{"path": "a", "limit": 5}"#);
    mended(
        "Read",
        r#"{"filepath": "a", "limit": 5}"#,
        read,
        &["Read was taken as read_file", "filepath was taken as path"],
    );
    for written in [
        "functions.read_file",
        " Functions.Read ",
        "default_api.read_file",
        "READ_FILE",
    ] {
        mended(
            written,
            read.1,
            read,
            &[&format!("{} was taken as read_file", written.trim())],
        );
    }
    mended(" read_file\n", read.1, read, &[]);
    mended(
        "execute_bash",
        r#"{"command": "ls"}"#,
        ("bash", r#"{"command": "ls"}"#),
        &["execute_bash was taken as bash"],
    );
    for unknown in [
        "functions.",
        "functions.functions.bash",
        "my.bash",
        "functionsbash",
        "\u{e9}functions.bash",
    ] {
        assert!(catalogue().find(unknown).is_none(), "{unknown}");
    }
    mended(
        "read_file",
        r#"{"path": "a", "limit": "5"}"#,
        read,
        &["limit \"5\" was taken as 5"],
    );
    mended(
        "read_file",
        r"{'path': 'a', 'limit': 5,}",
        read,
        &["the arguments were no valid JSON and were mended"],
    );
    let string = serde_json::to_string(read.1).expect("a string");
    mended(
        "read_file",
        &string,
        read,
        &["the arguments were written into a string; send them as an object"],
    );
    let quoted = |text: &str| serde_json::to_string(text).expect("a string");
    let inner = |text: &str| text[1..text.len() - 1].to_owned();
    let escaped = inner(&string);
    for once_more in [
        quoted(&string),
        quoted(&quoted(&string)),
        quoted(&escaped),
        quoted(&inner(&quoted(&escaped))),
    ] {
        mended(
            "read_file",
            &once_more,
            read,
            &["the arguments were written into a string; send them as an object"],
        );
    }
    for once_more in [escaped.clone(), inner(&quoted(&escaped))] {
        mended(
            "read_file",
            &once_more,
            read,
            &["the arguments were no valid JSON and were mended"],
        );
    }
    // A backslash in a text is part of the text.
    let meant = r#"{"content":"a\\nb {\\\"x\\\": 1}","path":"a"}"#;
    mended("write_file", meant, ("write_file", meant), &[]);
    mended(
        "write_file",
        &quoted(meant),
        ("write_file", meant),
        &["the arguments were written into a string; send them as an object"],
    );
    mended(
        "read_file",
        r#"{"arguments": {"path": "a", "limit": 5}}"#,
        read,
        &["the arguments were taken out of arguments"],
    );
    let bash = ("bash", r#"{"command": "5", "background": true}"#);
    mended(
        "bash",
        r#"{"cmd": 5, "background": "yes"}"#,
        bash,
        &[
            "cmd was taken as command",
            "command 5 was taken as \"5\"",
            "background \"yes\" was taken as true",
        ],
    );
    mended(
        "bash",
        r#"{"command": ["bash", "-lc", "ls -l"]}"#,
        ("bash", r#"{"command": "ls -l"}"#),
        &["command [\"bash\",\"-lc\",\"ls -l\"] was taken as \"ls -l\""],
    );
    let write = (
        "write_file",
        r#"{"path": "a.json", "content": "{\n  \"a\": 1\n}"}"#,
    );
    mended(
        "write_file",
        r#"{"path": "a.json", "content": {"a": 1}}"#,
        write,
        &["content was an object and is written as JSON"],
    );
    let edit = (
        "edit_file",
        r#"{"path": "a", "edits": [{"old_string": "b", "new_string": "c"}]}"#,
    );
    let one = r#"{"path": "a", "edits": {"old_string": "b", "new_string": "c"}}"#;
    mended(
        "edit_file",
        one,
        edit,
        &[
            "edits {\"old_string\":\"b\",\"new_string\":\"c\"} was taken as [{\"old_string\":\"b\",\"new_string\":\"c\"}]",
        ],
    );
    mended(
        "edit_file",
        r#"{"file": "a", "find": "b", "replace": "c"}"#,
        (
            "edit_file",
            r#"{"path": "a", "old_string": "b", "new_string": "c"}"#,
        ),
        &[
            "file was taken as path",
            "find was taken as old_string",
            "replace was taken as new_string",
        ],
    );
    let grep = ("grep", r#"{"pattern": "x", "output_mode": "count"}"#);
    mended(
        "grep",
        r#"{"search": "x", "output_mode": "Count"}"#,
        grep,
        &[
            "search was taken as pattern",
            "output_mode \"Count\" was taken as \"count\"",
        ],
    );
}

/// Rewrites argument names in another spelling, at every depth.
fn spelled(value: &serde_json::Value, spell: fn(&str) -> String) -> serde_json::Value {
    match value {
        serde_json::Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (spell(name), spelled(value, spell)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        serde_json::Value::Array(items) => items.iter().map(|item| spelled(item, spell)).collect(),
        other => other.clone(),
    }
}

fn in_humps(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| {
        all + &word[..1].to_uppercase() + &word[1..]
    })
}

#[test]
fn every_argument_name_is_recognized_in_any_spelling() {
    let full = Catalogue::new(&Options {
        set: ToolSet::Full,
        ..Options::default()
    });
    let spellings: [fn(&str) -> String; 4] = [
        in_humps,
        |name| name.replace('_', "-"),
        str::to_uppercase,
        |name| name.replace('_', ""),
    ];
    let more = [
        (
            "multi_edit",
            r#"{"edits": [{"path": "a", "old_string": "b", "new_string": "c", "replace_all": true}]}"#,
        ),
        (
            "edit_file",
            r#"{"path": "a", "edits": [{"old_string": "b", "new_string": "c", "replace_all": true}]}"#,
        ),
        (
            "edit_file",
            r#"{"file_path": "a", "old_str": "b", "new_str": "c"}"#,
        ),
        ("read_file", r#"{"from_cursor": "grep-1"}"#),
        (
            "grep",
            r#"{"pattern": "x", "case_insensitive": true, "max_results": 3, "output_mode": "count"}"#,
        ),
        (
            "bash",
            r#"{"command": "x", "timeout_seconds": 5, "working_directory": "src"}"#,
        ),
        (
            "task_list",
            r#"{"todos": [{"content": "a", "active_form": "b"}]}"#,
        ),
    ];
    let examples = full
        .tools()
        .iter()
        .map(|tool| (tool.name, tool.example()))
        .collect::<Vec<_>>();
    for (name, arguments) in examples.into_iter().chain(more) {
        let given = serde_json::from_str(arguments).expect("JSON");
        let right = full.parse(name, arguments).expect("right");
        for spell in spellings {
            let other = spelled(&given, spell).to_string();
            assert_eq!(
                full.parse(name, &other).map(|understood| understood.action),
                Ok(right.action.clone()),
                "{name} {other}"
            );
        }
    }
}

/// Names that normalize to the same letters would be ambiguous.
#[test]
fn no_two_names_of_one_object_differ_only_in_spelling() {
    fn look(tool: &Tool, schema: &serde_json::Value) {
        let names: Vec<&String> = schema["properties"]
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .collect();
        for (at, name) in names.iter().enumerate() {
            assert!(
                names[at + 1..]
                    .iter()
                    .all(|other| !is_same_name(name, other)),
                "{}: {name}",
                tool.name
            );
            let takes = |(wrong, right): &&(&str, &str)| {
                is_same_name(wrong, name) && right != name && names.iter().any(|own| own == right)
            };
            assert_eq!(
                tool.renamed.iter().find(takes),
                None,
                "{}: {name}",
                tool.name
            );
            look(tool, &schema["properties"][name.as_str()]);
            look(tool, &schema["properties"][name.as_str()]["items"]);
        }
    }
    let full = Catalogue::new(&Options {
        set: ToolSet::Full,
        ..Options::default()
    });
    full.tools()
        .iter()
        .for_each(|tool| look(tool, tool.schema.source()));
}

#[test]
fn call_formats_of_other_agents_are_converted() {
    let multi = (
        "multi_edit",
        r#"{"edits": [{"path": "a", "old_string": "b", "new_string": "c"}]}"#,
    );
    let whole = "path was taken as that of each edit which has none";
    let one_file = r#"{"file_path": "a", "edits": [{"old_string": "b", "new_string": "c"}]}"#;
    mended(
        "MultiEdit",
        one_file,
        multi,
        &[
            "MultiEdit was taken as multi_edit",
            "file_path was taken as path",
            whole,
        ],
    );
    mended(
        "multi_edit",
        one_file,
        multi,
        &["file_path was taken as path", whole],
    );
    mended(
        "multi_edit",
        r#"{"edits": [{"file_path": "a", "old_str": "b", "new_str": "c"}]}"#,
        multi,
        &[
            "file_path was taken as path",
            "old_str was taken as old_string",
            "new_str was taken as new_string",
        ],
    );
    let list = (
        "task_list",
        r#"{"todos": [{"content": "a", "status": "in_progress"}, {"content": "b"}]}"#,
    );
    mended(
        "TodoWrite",
        r#"{"todos": [{"content": "a", "status": "in_progress", "activeForm": "Doing a"}, {"content": "b", "activeForm": "Doing b"}]}"#,
        list,
        &[
            "TodoWrite was taken as task_list",
            "activeForm was taken as active_form",
        ],
    );
    mended(
        "update_plan",
        r#"{"explanation": "why", "plan": [{"step": "a", "status": "in_progress"}, {"step": "b"}]}"#,
        list,
        &[
            "update_plan was taken as task_list",
            "plan was taken as todos",
            "explanation says nothing here and was left out",
            "step was taken as content",
        ],
    );
    let run = "run_in_background was taken as background";
    mended(
        "bash",
        r#"{"command": "x", "run_in_background": "true"}"#,
        ("bash", r#"{"command": "x", "background": true}"#),
        &[run, "background \"true\" was taken as true"],
    );
    let foreground = "run_in_background says nothing here and was left out";
    mended(
        "bash",
        r#"{"command": "x", "run_in_background": false}"#,
        ("bash", r#"{"command": "x"}"#),
        &[foreground],
    );
    let time = ("bash", r#"{"command": "x", "timeout_seconds": 120}"#);
    for ms in ["120000", r#""120000""#, "119001"] {
        let said = format!(
            "timeout {} was taken as milliseconds, which is timeout_seconds 120",
            ms.trim_matches('"')
        );
        mended(
            "Bash",
            &format!(r#"{{"command": "x", "timeout": {ms}}}"#),
            time,
            &["Bash was taken as bash", &said],
        );
    }
    mended(
        "bash",
        r#"{"command": "x", "timeout": 120}"#,
        time,
        &["timeout was taken as timeout_seconds"],
    );
    mended(
        "LS",
        r#"{"path": "a", "ignore": ["*.o"]}"#,
        ("list_directory", r#"{"path": "a"}"#),
        &[
            "LS was taken as list_directory",
            "ignore was left out: what it names is listed too; glob takes exclude",
        ],
    );
    let one = ("grep", r#"{"pattern": "x"}"#);
    mended(
        "grep",
        r#"{"pattern": "x", "multiline": false}"#,
        one,
        &["multiline says nothing here and was left out"],
    );
    let lines = "multiline was left out: a match goes over several lines where the pattern has \\n, and `.` matches none";
    mended(
        "Grep",
        r#"{"pattern": "x", "multiline": true}"#,
        one,
        &["Grep was taken as grep", lines],
    );
    let grep = (
        "grep",
        r#"{"pattern": "x", "case_insensitive": true, "max_results": 5, "output_mode": "files_only", "glob": "*.rs"}"#,
    );
    mended(
        "grep",
        r#"{"pattern": "x", "-n": true, "-i": true, "head_limit": "5", "output_mode": "files_with_matches", "type": "rust"}"#,
        grep,
        &[
            "-n says nothing here and was left out",
            "-i was taken as case_insensitive",
            "head_limit was taken as max_results",
            "output_mode files_with_matches was taken as files_only",
            "type rust was taken as glob *.rs",
            "max_results \"5\" was taken as 5",
        ],
    );
    let around = (
        "grep",
        r#"{"pattern": "x", "context": 3, "output_mode": "content"}"#,
    );
    mended(
        "grep",
        r#"{"pattern": "x", "-A": 3, "-B": 1, "output_mode": "content"}"#,
        around,
        &["-A and -B were taken as context 3, on both sides"],
    );
    let ask = (
        "ask_user",
        r#"{"question": "Which?", "options": ["a", "b"]}"#,
    );
    mended(
        "ask_user",
        r#"{"questions": [{"question": "Which?", "header": "H", "options": [{"label": "a", "description": "A"}, {"label": "b"}]}]}"#,
        ask,
        &[
            "header says nothing here and was left out",
            "questions was taken as the one question in it",
        ],
    );
    let look = ("more_tools", r#"{"tools": ["mkdir", "cd"]}"#);
    mended(
        "ToolSearch",
        r#"{"query": "select:mkdir, cd"}"#,
        look,
        &[
            "ToolSearch was taken as more_tools",
            "query select: was taken as the names of the tools",
        ],
    );
    mended(
        "Read_File",
        r#"{"path": "a"}"#,
        ("read_file", r#"{"path": "a"}"#),
        &["Read_File was taken as read_file"],
    );
    mended(
        "LS",
        r#"{"path": "a"}"#,
        ("list_directory", r#"{"path": "a"}"#),
        &["LS was taken as list_directory"],
    );
    wrong(
        "ask_user",
        r#"{"questions": [{"question": "A?"}, {"question": "B?"}]}"#,
        &["`questions` has 2", "one at a time"],
    );
    wrong(
        "grep",
        r#"{"pattern": "x", "type": "weird"}"#,
        &["`type` is not known"],
    );
}

#[test]
fn the_small_set_accepts_arguments_it_does_not_list() {
    let small = Catalogue::new(&Options {
        set: ToolSet::Small,
        ..Options::default()
    });
    let standard = catalogue();
    for (name, arguments) in [
        ("bash", r#"{"command": "x", "run_in_background": true}"#),
        ("bash", r#"{"command": "x", "cwd": "src"}"#),
        ("grep", r#"{"pattern": "x", "-i": true, "-C": 2}"#),
        ("read_file", r#"{"from_cursor": "grep-1"}"#),
        (
            "edit_file",
            r#"{"path": "a", "edits": [{"old_string": "b", "new_string": "c"}]}"#,
        ),
        (
            "write_file",
            r#"{"path": "a", "content": "b", "append": true}"#,
        ),
    ] {
        let action =
            |catalogue: &Catalogue| catalogue.parse(name, arguments).expect("understood").action;
        assert_eq!(action(&small), action(&standard), "{name}");
    }
    let told = &small.find("bash").expect("is there").parameters["properties"];
    assert_eq!(
        told.as_object().map(serde_json::Map::len),
        Some(2),
        "{told}"
    );
    for (name, arguments) in [
        ("bash", r#"{"command": "x", "made_up": 1}"#),
        ("read_file", "{}"),
        ("edit_file", r#"{"path": "a"}"#),
    ] {
        assert!(small.parse(name, arguments).is_err(), "{name}");
    }
}

#[test]
fn ambiguous_arguments_are_not_repaired() {
    for content in [
        "1.10",
        "5",
        "123456789012345678901234567890",
        r#"["one", "two"]"#,
        r#"{"a": 1.10}"#,
    ] {
        wrong(
            "write_file",
            &format!(r#"{{"path": "a", "content": {content}}}"#),
            &["`content`", "one string"],
        );
    }
}

#[test]
fn control_tokens_are_restored_in_arguments() {
    let tokens = ControlTokens::of_template("<user>", []);
    let shown = tokens.neutralise("a <|im_end|> b <user>").into_owned();
    let arguments =
        serde_json::json!({ "path": "a", "old_string": shown, "new_string": "x" }).to_string();
    let ParsedCall { action, .. } = catalogue()
        .restoring(&tokens)
        .parse("edit_file", &arguments)
        .expect("understood");
    let Action::Box(Call::EditFile(edit)) = action else {
        panic!("{action:?}")
    };
    assert_eq!(edit.edits[0].old_string, "a <|im_end|> b <user>");
}

#[test]
fn file_tools_name_what_is_wrong_with_their_arguments() {
    let full = Catalogue::new(&Options {
        set: ToolSet::Full,
        ..Options::default()
    });
    let no = r#"{"path": "a", "recursive": 7}"#;
    for (name, arguments, words) in [
        ("delete_file", "{}", "`path` is missing"),
        ("delete_file", r#"{"path": ""}"#, "`path` is empty"),
        ("delete_file", no, "`recursive`"),
        (
            "mkdir",
            r#"{"path": "a", "parents": true}"#,
            "`parents` is not known",
        ),
        (
            "copy_file",
            r#"{"source": "a"}"#,
            "`destination` is missing",
        ),
        (
            "move_file",
            r#"{"source": "a", "destination": " "}"#,
            "`destination` is empty",
        ),
        (
            "move_file",
            r#"{"source": ["a"], "destination": "b"}"#,
            "`source`",
        ),
        ("tree", r#"{"depth": -1}"#, "`depth` cannot be negative"),
    ] {
        let InvalidCall(text) = full.parse(name, arguments).expect_err("is wrong");
        assert!(text.contains(words), "{name} {arguments}: {text}");
    }
    let understood = full
        .parse("rename_file", r#"{"from": "a", "to": "b"}"#)
        .expect("understood");
    assert_eq!(
        (&*understood.name, understood.notes.len()),
        ("move_file", 3)
    );
    assert!(
        full.parse("create_directory", r#"{"path": "a/b"}"#)
            .is_ok_and(|understood| understood.name == "mkdir")
    );
    let standard = Catalogue::new(&Options::default());
    assert!(
        standard
            .tools()
            .iter()
            .all(|tool| tool.name != "delete_file"),
        "rarely used tools cost every request"
    );
}

/// The defaults of a call with only the required arguments are those in the schema.
#[test]
fn defaults_are_those_in_the_schema() {
    let options = Options {
        set: ToolSet::Full,
        ..Options::default()
    };
    let full = Catalogue::new(&options);
    let call =
        |name: &str, arguments: &str| match full.parse(name, arguments).expect("understood").action
        {
            Action::Box(call) => serde_json::to_value(call).expect("plain data"),
            Action::Host(call) => panic!("{call:?}"),
        };
    for (name, arguments, field, expected) in [
        ("tree", "{}", "/depth", json!(4)),
        ("git_log", "{}", "/query/count", json!(20)),
        ("git_log", "{}", "/query/oneline", json!(true)),
        (
            "get_process_output",
            r#"{"process_id": "last"}"#,
            "/tail_lines",
            json!(50),
        ),
        ("read_file", r#"{"path": "a"}"#, "/max_files", json!(5)),
        ("read_file", r#"{"path": "a"}"#, "/offset", json!(1)),
        (
            "read_file",
            r#"{"path": "a"}"#,
            "/limit",
            json!(options.read_lines),
        ),
        ("list_directory", "{}", "/show_size", json!(true)),
        ("list_directory", "{}", "/show_hidden", json!(false)),
        ("list_directory", "{}", "/recursive", json!(false)),
        ("list_directory", "{}", "/path", json!(".")),
        ("grep", r#"{"pattern": "x"}"#, "/output", json!("content")),
        (
            "git_stash",
            r#"{"action": "pop"}"#,
            "/query/index",
            json!(0),
        ),
        (
            "write_file",
            r#"{"path": "a", "content": ""}"#,
            "/append",
            json!(false),
        ),
        (
            "delete_file",
            r#"{"path": "a"}"#,
            "/recursive",
            json!(false),
        ),
        (
            "copy_file",
            r#"{"source": "a", "destination": "b"}"#,
            "/overwrite",
            json!(false),
        ),
        (
            "bash",
            r#"{"command": "ls"}"#,
            "/timeout_ms",
            json!(options.bash_timeout.get() * 1000),
        ),
        ("bash", r#"{"command": "ls"}"#, "/background", json!(false)),
    ] {
        let call = call(name, arguments);
        assert_eq!(
            call.pointer(field),
            Some(&expected),
            "{name} {field}: {call}"
        );
    }
}

#[test]
fn more_tools_is_mentioned_only_if_there_are_more() {
    let describe = |set: ToolSet, wanted: &FindTools| {
        Catalogue::new(&Options {
            set,
            ..Options::default()
        })
        .describe(wanted)
    };
    let query = |words: &str| FindTools {
        query: Some(words.to_owned()),
        max_results: 5,
        ..FindTools::default()
    };
    let named = |name: &str| FindTools {
        names: vec![name.to_owned()],
        max_results: 5,
        ..FindTools::default()
    };
    let says = |set: ToolSet, wanted: &FindTools, words: &str| {
        let text = describe(set, wanted).unwrap_or_else(|text| text);
        assert!(text.contains(words), "{text}");
    };
    says(
        ToolSet::Full,
        &FindTools::default(),
        "there are no other tools than those you have",
    );
    says(
        ToolSet::Full,
        &query("zeppelin"),
        "there are no others than those",
    );
    says(
        ToolSet::Full,
        &named("zeppelin"),
        "there is no tool `zeppelin`. The tools are: read_file",
    );
    says(
        ToolSet::Standard,
        &query("zeppelin"),
        "without a query for all of them",
    );
    says(
        ToolSet::Standard,
        &named("zeppelin"),
        "there is no tool `zeppelin`. ",
    );
    says(ToolSet::Standard, &named("zeppelin"), "delete_file(");
}

/// The model is not told of a tool all of whose calls are denied, and still reads why where it
/// knows its name.
#[test]
fn a_denied_tool_is_known_but_not_listed() {
    let denied = std::collections::BTreeSet::from(["bash", "mkdir"]);
    let catalogue = Catalogue::new(&Options::default()).without(&denied);
    let is_told = |name: &str| catalogue.tools().iter().any(|tool| tool.name == name);
    assert!(!is_told("bash") && is_told("read_file"));
    let listed = catalogue
        .describe(&FindTools {
            max_results: 99,
            ..FindTools::default()
        })
        .expect("a list");
    assert!(
        listed.contains("delete_file(") && !listed.contains("mkdir("),
        "{listed}"
    );
    for name in ["mkdir", "bash"] {
        assert_eq!(catalogue.find(name).map(|tool| tool.name), Some(name));
        let named = FindTools {
            names: vec![name.to_owned()],
            max_results: 9,
            ..FindTools::default()
        };
        assert!(
            catalogue
                .describe(&named)
                .is_err_and(|text| text.contains(&format!("there is no tool `{name}`")))
        );
    }
    assert!(
        catalogue
            .unlisted_tools()
            .iter()
            .any(|tool| tool.name == "bash")
            && catalogue
                .unlisted_tools()
                .iter()
                .any(|tool| tool.name == "mkdir")
    );
}

#[test]
fn the_small_set_leaves_glob_out() {
    let small = Catalogue::new(&Options {
        set: ToolSet::Small,
        ..Options::default()
    });
    let names: Vec<&str> = small.tools().iter().map(|tool| tool.name).collect();
    assert_eq!(
        names,
        [
            "read_file",
            "edit_file",
            "write_file",
            "list_directory",
            "grep",
            "bash",
            "more_tools"
        ]
    );
}
