//! What holds for every tool there is.

use super::*;

/// One good call of every tool of the full set, in an order in which all succeed, and the same for `podbay run`.
pub(crate) fn one_of_each() -> Vec<(&'static str, Value)> {
    vec![
        ("write_file", json!({"path": "a.txt", "content": "one\ntwo\n"})),
        ("read_file", json!({"path": "a.txt"})),
        ("edit_file", json!({"path": "a.txt", "old_string": "one", "new_string": "1"})),
        ("multi_edit", json!({"edits": [{"path": "a.txt", "old_string": "two", "new_string": "2"}]})),
        ("edit_lines", json!({"path": "a.txt", "operation": "insert", "start_line": 1, "new_content": "0"})),
        ("apply_patch", json!({"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 0\n-1\n+one\n"})),
        ("mkdir", json!({"path": "made/deep"})),
        ("copy_file", json!({"source": "a.txt", "destination": "made/b.txt"})),
        ("move_file", json!({"source": "made/b.txt", "destination": "made/c.txt"})),
        ("delete_file", json!({"path": "made/c.txt"})),
        ("list_directory", none()),
        ("tree", none()),
        ("glob", json!({"pattern": "*.txt"})),
        ("grep", json!({"pattern": "one"})),
        ("bash", json!({"command": "echo hello"})),
        ("git_status", none()),
        ("git_diff", none()),
        ("git_log", none()),
        ("think", json!({"thought": "So far so good."})),
        ("task_list", json!({"action": "add", "task": "go on"})),
        ("ask_user", json!({"question": "Shall I?"})),
        ("env", none()),
        ("start_background_process", json!({"command": "sleep 30"})),
        ("get_process_output", json!({"process_id": "last"})),
        ("list_processes", none()),
        ("stop_process", json!({"process_id": "last"})),
        ("archive", json!({"action": "create", "archive_path": "a.zip", "source_path": "a.txt"})),
        ("update_config", json!({"section": "Notes", "content": "None."})),
        ("more_tools", none()),
        ("cd", json!({"path": "made"})),
    ]
}

async fn project(rules: policy::Options, mode: Mode) -> Hand {
    let hand = Hand::with(Set::Full, mode, rules, None).await;
    hand.run("git", &["init", "-q"]);
    hand.put("start.txt", "s\n");
    hand.run("git", &["add", "."]);
    hand.run("git", &["commit", "-q", "-m", "Begin it"]);
    hand
}

#[tokio::test]
async fn every_tool_of_the_full_set_succeeds_once() {
    let hand = project(policy::Options::default(), Mode::Auto).await;
    let calls = one_of_each();
    let mut names: Vec<&str> = calls.iter().map(|(tool, _)| *tool).collect();
    for (tool, arguments) in calls {
        hand.ok(tool, arguments).await;
    }
    let mut all: Vec<&str> = hand.pipeline.catalogue.tools().iter().map(|tool| tool.name).collect();
    names.sort_unstable();
    all.sort_unstable();
    assert_eq!(names, all, "a tool is missing here");
}

#[tokio::test]
async fn every_tool_is_denied_by_its_name_and_none_reaches_the_box() {
    for (tool, arguments) in one_of_each() {
        let deny = policy::Options { deny: vec![tool.to_owned()], ..policy::Options::default() };
        let hand = project(deny, Mode::Auto).await;
        let before = tree(hand.guest.workspace.path());
        for (tool, arguments) in [(tool, arguments.clone()), ("more_tools", json!({ "tool": tool, "arguments": arguments }))] {
            if tool == "more_tools" && arguments["tool"] == "more_tools" {
                continue;
            }
            let finished = hand.call(tool, arguments).await;
            assert_eq!(finished.status, CallStatus::Denied, "{tool}: {}", finished.text);
        }
        assert!(hand.reached().is_empty() && tree(hand.guest.workspace.path()) == before, "{tool}");
        assert!(!hand.kinds().iter().any(|kind| matches!(kind, Kind::CallStarted { .. })), "{tool}");
    }
}

#[tokio::test]
async fn tools_that_only_read_leave_every_byte_and_mode_as_it_is() {
    let hand = project(policy::Options::default(), Mode::Deny).await;
    hand.put("a.txt", "one\n");
    hand.put(".gitignore", "ignored\n");
    hand.run("tar", &["-cf", "a.tar", "a.txt"]);
    // Only what reads is allowed in this mode, so that whatever succeeds claims to be a reader.
    let mut calls = one_of_each();
    calls.push(("archive", json!({"action": "list", "archive_path": "a.tar"})));
    let before = tree(hand.guest.workspace.path());
    let mut readers = Vec::new();
    for (tool, arguments) in calls {
        let finished = hand.call(tool, arguments).await;
        if finished.status != CallStatus::Denied {
            readers.push(tool);
            assert!(finished.read_only, "{tool}");
        }
        assert_eq!(tree(hand.guest.workspace.path()), before, "{tool}");
    }
    let expected = [
        "read_file",
        "list_directory",
        "tree",
        "glob",
        "grep",
        "git_status",
        "git_diff",
        "git_log",
        "think",
        "task_list",
        "ask_user",
        "env",
        "get_process_output",
        "list_processes",
        "more_tools",
        "cd",
        "archive",
    ];
    assert_eq!(readers, expected);
}

#[tokio::test]
async fn every_schema_is_valid_and_every_description_short() {
    let catalogue = Catalogue::new(&tools::Options { set: Set::Full, ..tools::Options::default() });
    let mut known = std::collections::BTreeSet::new();
    for tool in catalogue.tools() {
        let schema = &tool.parameters;
        jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{}: {error}", tool.name));
        let properties = schema["properties"].as_object().expect("properties");
        for name in schema["required"].as_array().expect("a list") {
            assert!(properties.contains_key(name.as_str().expect("a name")), "{}: {name}", tool.name);
        }
        assert!(properties.values().all(|property| property["type"].is_string()), "{}", tool.name);
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)), "{}", tool.name);
        assert!((10..=130).contains(&tool.description.len()), "{}: {}", tool.name, tool.description);
        for name in std::iter::once(&tool.name).chain(tool.aliases()) {
            assert!(known.insert(*name), "`{name}` means two tools");
        }
    }
}

/// Wrong in ways that hold for all: what is missing, what is too much, what is of another type, what is no object.
#[tokio::test]
async fn bad_arguments_are_refused_by_every_tool_before_anything_happens() {
    let hand = Hand::new().await;
    let catalogue = Catalogue::new(&tools::Options { set: Set::Full, ..tools::Options::default() });
    let before = tree(hand.guest.workspace.path());
    for (tool, good) in one_of_each() {
        let schema = &catalogue.find(tool).expect("is there").parameters;
        let mut bad = vec![json!([1]), json!("x"), json!(7)];
        let mut extra = good.clone();
        extra["surprise"] = json!(1);
        bad.push(extra);
        for name in schema["required"].as_array().expect("a list") {
            let mut without = good.clone();
            without.as_object_mut().expect("an object").remove(name.as_str().expect("a name"));
            bad.push(without);
        }
        for (name, property) in schema["properties"].as_object().expect("properties") {
            let mut other = good.clone();
            other[name] = if property["type"] == "object" { json!([[]]) } else { json!({"a": {"b": []}}) };
            bad.push(other);
        }
        for arguments in bad {
            let finished = hand.call(tool, arguments.clone()).await;
            // An array of one object, or a file whose text is JSON, can be meant.
            let is_meant = arguments["content"].is_object() || finished.text.contains("was taken as [");
            assert!(finished.status == CallStatus::Invalid || is_meant, "{tool} {arguments}: {:?} {}", finished.status, finished.text);
            assert!(finished.text.len() < 2000 && (is_meant || finished.text.contains(tool)), "{tool} {arguments}: {}", finished.text);
        }
    }
    // Besides those two whose text was meant nothing was made.
    let made = tree(hand.guest.workspace.path()).into_iter().map(|(name, ..)| name).filter(|name| name != "a.txt" && name != "PODBAY.md");
    assert_eq!(made.count(), before.len());
}

/// Paths that lead elsewhere, are no files, or are odd names: of every tool that takes one.
#[tokio::test]
async fn odd_paths_are_refused_or_taken_for_what_they_are() {
    let hand = Hand::new().await;
    hand.put("file", "x\n");
    std::os::unix::fs::symlink("/etc", hand.guest.path("out")).expect("linked");
    std::os::unix::fs::symlink("loop", hand.guest.path("loop")).expect("linked");
    nix::unistd::mkfifo(&hand.guest.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    let _socket = std::os::unix::net::UnixListener::bind(hand.guest.path("socket")).expect("bound");
    let catalogue = Catalogue::new(&tools::Options { set: Set::Full, ..tools::Options::default() });
    for (tool, good) in one_of_each() {
        for field in ["path", "source", "archive_path", "source_path", "file", "working_directory"] {
            if catalogue.find(tool).expect("is there").parameters["properties"].get(field).is_none() {
                continue;
            }
            for path in [
                "../podbay-odd-path",
                "/etc/passwd",
                "out/passwd",
                "loop/x",
                "pipe/x",
                "socket/x",
                "a\0b",
                "a/\n/../../../b",
                "/proc/self/environ",
            ] {
                let mut odd = good.clone();
                odd[field] = json!(path);
                let begun = std::time::Instant::now();
                let finished = hand.call(tool, odd).await;
                let says_nothing_of_it = tool.starts_with("git_") && field == "file";
                assert!(finished.status != CallStatus::Ok || says_nothing_of_it, "{tool} {field} {path:?}: {}", finished.text);
                assert!(!finished.text.contains("root:x:") && begun.elapsed() < Duration::from_secs(20), "{tool} {path:?}");
            }
        }
    }
    assert!(!hand.guest.workspace.path().parent().expect("has one").join("podbay-odd-path").exists());
}
