//! What holds for every tool there is.

use super::*;

/// One good call of every tool of the full set, in an order in which all succeed, and the same for
/// `podbay run`.
pub(crate) fn one_of_each() -> Vec<(&'static str, Value)> {
    vec![
        (
            "write_file",
            json!({"path": "a.txt", "content": "one\ntwo\n"}),
        ),
        ("read_file", json!({"path": "a.txt"})),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "one", "new_string": "1"}),
        ),
        (
            "multi_edit",
            json!({"edits": [{"path": "a.txt", "old_string": "two", "new_string": "2"}]}),
        ),
        (
            "edit_lines",
            json!({"path": "a.txt", "operation": "insert", "start_line": 1, "new_content": "0"}),
        ),
        (
            "apply_patch",
            json!({"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 0\n-1\n+one\n"}),
        ),
        ("mkdir", json!({"path": "made/deep"})),
        (
            "copy_file",
            json!({"source": "a.txt", "destination": "made/b.txt"}),
        ),
        (
            "move_file",
            json!({"source": "made/b.txt", "destination": "made/c.txt"}),
        ),
        ("delete_file", json!({"path": "made/c.txt"})),
        ("list_directory", none()),
        ("tree", none()),
        ("glob", json!({"pattern": "*.txt"})),
        ("grep", json!({"pattern": "one"})),
        ("bash", json!({"command": "echo hello"})),
        ("git_status", none()),
        ("git_diff", none()),
        ("git_log", none()),
        ("git_branch", json!({"action": "create", "name": "topic"})),
        ("git_checkout", json!({"target": "topic"})),
        ("git_commit", json!({"message": "Continue"})),
        ("git_stash", json!({"message": "later"})),
        ("think", json!({"thought": "So far so good."})),
        ("task_list", json!({"action": "add", "task": "continue"})),
        ("ask_user", json!({"question": "Shall I?"})),
        ("enter_plan_mode", none()),
        ("create_plan", json!({"plan": "1. Continue."})),
        ("implement_plan", none()),
        ("env", none()),
        ("start_background_process", json!({"command": "sleep 30"})),
        ("get_process_output", json!({"process_id": "last"})),
        ("list_processes", none()),
        ("stop_process", json!({"process_id": "last"})),
        (
            "archive",
            json!({"action": "create", "archive_path": "a.zip", "source_path": "a.txt"}),
        ),
        (
            "update_config",
            json!({"section": "Notes", "content": "None."}),
        ),
        (
            "memory_save",
            json!({"name": "notes", "kind": "project", "description": "Notes", "content": "None."}),
        ),
        ("install_dependencies", json!({"ecosystems": ["npm"]})),
        ("web_fetch", json!({"url": "http://a.example/"})),
        ("web_search", json!({"query": "words"})),
        (
            "network_diagnostics",
            json!({"action": "ping", "target": "a.example"}),
        ),
        (
            "sandbox_run",
            json!({"language": "python", "code": "print(6 * 7)"}),
        ),
        ("more_tools", none()),
        (
            "spawn_agent",
            json!({"task": "Look.", "agent_type": "explore"}),
        ),
        ("use_skill", json!({"name": "greet"})),
        ("cd", json!({"path": "made"})),
    ]
}

/// Tools that need a network, which a sandbox has by its user's rules alone.
pub(crate) const OF_THE_NETWORK: [&str; 4] = [
    "install_dependencies",
    "web_search",
    "web_fetch",
    "network_diagnostics",
];

async fn project(rules: policy::Options, mode: Mode) -> Hand {
    let hand = Hand::with(ToolSet::Full, mode, rules, None).await;
    hand.run("git", &["init", "-q"]);
    hand.run("git", &["config", "user.name", "ann"]);
    hand.run("git", &["config", "user.email", "ann@example.org"]);
    hand.put("start.txt", "s\n");
    hand.run("git", &["add", "."]);
    hand.run("git", &["commit", "-q", "-m", "Begin it"]);
    hand
}

#[tokio::test]
async fn every_tool_of_the_full_set_succeeds_once() {
    let granted = policy::Options {
        allow: vec!["install_dependencies".to_owned()],
        ..policy::Options::default()
    };
    let hand = project(granted, Mode::Auto).await;
    let calls = one_of_each();
    let mut names: Vec<&str> = calls.iter().map(|(tool, _)| *tool).collect();
    for (tool, arguments) in calls {
        if ["web_fetch", "network_diagnostics"].contains(&tool) {
            let said = hand.fails(tool, arguments, CallStatus::Failed).await;
            assert!(said.contains("no gateway to the network"), "{said}");
            continue;
        }
        hand.ok(tool, arguments).await;
    }
    let mut all: Vec<&str> = hand
        .pipeline
        .catalogue
        .tools()
        .iter()
        .map(|tool| tool.name)
        .collect();
    names.sort_unstable();
    all.sort_unstable();
    assert_eq!(names, all, "a tool is missing here");
}

#[tokio::test]
async fn every_tool_is_denied_by_its_name_and_none_reaches_the_box() {
    for (tool, arguments) in one_of_each() {
        let deny = policy::Options {
            deny: vec![tool.to_owned()],
            ..policy::Options::default()
        };
        let hand = project(deny, Mode::Auto).await;
        let before = tree(hand.guest.workspace.path());
        for (tool, arguments) in [
            (tool, arguments.clone()),
            (
                "more_tools",
                json!({ "tool": tool, "arguments": arguments }),
            ),
        ] {
            if tool == "more_tools" && arguments["tool"] == "more_tools" {
                continue;
            }
            let finished = hand.call(tool, arguments).await;
            assert_eq!(
                finished.status,
                CallStatus::Denied,
                "{tool}: {}",
                finished.text
            );
        }
        assert!(
            hand.reached().is_empty() && tree(hand.guest.workspace.path()) == before,
            "{tool}"
        );
        assert!(
            !hand
                .kinds()
                .iter()
                .any(|kind| matches!(kind, Kind::CallStarted { .. })),
            "{tool}"
        );
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
    calls.push((
        "archive",
        json!({"action": "list", "archive_path": "a.tar"}),
    ));
    calls.push(("git_branch", json!({"action": "list"})));
    calls.push(("git_stash", json!({"action": "list"})));
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
        "enter_plan_mode",
        "create_plan",
        "implement_plan",
        "env",
        "get_process_output",
        "list_processes",
        "web_fetch",
        "web_search",
        "network_diagnostics",
        "more_tools",
        "use_skill",
        "cd",
        "archive",
        "git_branch",
        "git_stash",
    ];
    assert_eq!(readers, expected);
}

/// A rule that asks is named where nobody is there: whoever made the call, and whoever wrote the
/// rule, knows what stopped it.
#[tokio::test]
async fn a_rule_that_asks_is_named_where_nobody_is_there() {
    for (rules, rule) in [
        (
            policy::Options {
                ask: vec!["think".into()],
                ..policy::Options::default()
            },
            "think",
        ),
        (
            policy::Options {
                gate: vec!["think".into()],
                ..policy::Options::default()
            },
            "think",
        ),
    ] {
        let hand = project(rules, Mode::Ask).await;
        let finished = hand.call("think", json!({"thought": "x"})).await;
        assert_eq!(finished.status, CallStatus::Denied);
        assert!(
            finished.text.contains(&format!(
                "as the rule `{rule}` says, and no user can give it"
            )),
            "{}",
            finished.text
        );
        let finished = hand
            .call("write_file", json!({"path": "a", "content": "x"}))
            .await;
        assert!(
            finished.text.contains("no user can give it") && !finished.text.contains("rule"),
            "{}",
            finished.text
        );
    }
}

/// Where a user would be asked and nobody is there, what changes something is denied with a way
/// on, and reaches nothing.
#[tokio::test]
async fn where_nobody_is_there_to_ask_only_what_reads_is_done() {
    let hand = project(policy::Options::default(), Mode::Ask).await;
    hand.put("a.txt", "one\n");
    let mut done = Vec::new();
    for (tool, arguments) in one_of_each() {
        let before = (tree(hand.guest.workspace.path()), hand.reached().len());
        let finished = hand.call(tool, arguments).await;
        if finished.status == CallStatus::Denied {
            assert!(
                finished.text.contains("no user can give it"),
                "{tool}: {}",
                finished.text
            );
            assert_eq!(
                (tree(hand.guest.workspace.path()), hand.reached().len()),
                before,
                "{tool}"
            );
        } else {
            done.push(tool);
            // `echo` writes nothing, calls of an agent are judged by themselves, and what the user wants to be written down is written
            // without a question.
            let is_harmless = ["bash", "update_config", "spawn_agent"].contains(&tool);
            assert!(
                finished.read_only || is_harmless,
                "{tool}: {}",
                finished.text
            );
        }
    }
    let readers = [
        "read_file",
        "list_directory",
        "tree",
        "glob",
        "grep",
        "bash",
        "git_status",
        "git_diff",
        "git_log",
        "think",
        "task_list",
        "ask_user",
        "enter_plan_mode",
        "create_plan",
        "implement_plan",
        "env",
        "get_process_output",
        "list_processes",
        "update_config",
        "web_fetch",
        "web_search",
        "network_diagnostics",
        "sandbox_run",
        "more_tools",
        "spawn_agent",
        "use_skill",
        "cd",
    ];
    assert_eq!(done, readers);
    assert!(
        hand.asked
            .lock()
            .expect("no test panics while it holds this")
            .is_empty()
    );
}

/// Calls that only read run at once, but for those that ask a user or change what the session
/// knows.
#[tokio::test]
async fn what_runs_beside_others_only_reads_and_keeps_nothing() {
    let hand = Hand::new().await;
    let call = |tool: &str, arguments: Value| ToolCall {
        id: "a".to_owned(),
        name: tool.to_owned(),
        arguments: arguments.to_string(),
    };
    let mut calls = one_of_each();
    calls.push((
        "archive",
        json!({"action": "list", "archive_path": "a.tar"}),
    ));
    calls.push(("git_branch", none()));
    calls.push(("git_stash", json!({"action": "list"})));
    let beside = calls.into_iter().filter(|(tool, arguments)| {
        hand.pipeline
            .runs_beside_others(&call(tool, arguments.clone()))
    });
    let beside: Vec<&str> = beside.map(|(tool, _)| tool).collect();
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
        "env",
        "get_process_output",
        "list_processes",
        "more_tools",
        "use_skill",
        "archive",
        "git_branch",
        "git_stash",
    ];
    assert_eq!(beside, expected);
}

/// Each class of result has its name, and those that do not say by themselves how to continue are told
/// with it.
#[tokio::test]
async fn each_class_of_result_is_told_from_the_others() {
    let hand = Hand::with(
        ToolSet::Full,
        Mode::Auto,
        policy::Options {
            deny: vec!["mkdir".to_owned()],
            ..policy::Options::default()
        },
        None,
    )
    .await;
    hand.put("a.txt", "one\n");
    hand.ok("read_file", json!({"path": "a.txt"})).await;
    hand.put("a.txt", "two\n");
    for (tool, arguments, status, hint) in [
        ("read_file", none(), CallStatus::Invalid, ""),
        (
            "mkdir",
            json!({"path": "a"}),
            CallStatus::Denied,
            "Do not try to get around this",
        ),
        (
            "write_file",
            json!({"path": "a.txt", "content": "x"}),
            CallStatus::Conflict,
            "read it again, then make the change",
        ),
        (
            "read_file",
            json!({"path": "gone"}),
            CallStatus::Failed,
            "no such file",
        ),
        (
            "bash",
            json!({"command": "sleep 60", "timeout_seconds": 1}),
            CallStatus::TimedOut,
            "ask for more time",
        ),
        ("bash", json!({"command": "true"}), CallStatus::Ok, ""),
    ] {
        let text = hand.fails(tool, arguments, status).await;
        assert!(text.contains(hint), "{tool}: {text}");
    }
    let cancel = CancellationToken::new();
    let call = hand.call_with("bash", json!({"command": "touch begun; sleep 60"}), &cancel);
    let give_up = async {
        while !hand.has("begun") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (finished, ()) = tokio::join!(call, give_up);
    assert_eq!(finished.status, CallStatus::Cancelled);
    assert!(
        finished
            .text
            .ends_with("[it was stopped from outside; what it had done until then is done]"),
        "{}",
        finished.text
    );
}

/// A file tool that has no time left is stopped where it can be; what it did all the same is told
/// and remembered as done.
#[tokio::test]
async fn a_file_tool_over_its_time_is_told_as_done_or_as_stopped() {
    let options = tools::Options {
        set: ToolSet::Full,
        file_timeout: Seconds::new(0),
        ..tools::Options::default()
    };
    let hand = Hand::over(
        TestGuest::start().await,
        options,
        Mode::Auto,
        &policy::Options::default(),
        None,
    );
    hand.put("a.txt", "one\n");
    let finished = hand.call("delete_file", json!({"path": "a.txt"})).await;
    if finished.status == CallStatus::Ok {
        assert_eq!(
            (finished.changed, hand.has("a.txt")),
            (vec![("a.txt".into(), FileChangeKind::Deleted)], false),
            "{}",
            finished.text
        );
    } else {
        assert!(
            finished.status == CallStatus::TimedOut
                && finished.changed.is_empty()
                && hand.has("a.txt"),
            "{}",
            finished.text
        );
    }
    for n in 0..3000 {
        hand.put(&format!("many/{n}"), "");
    }
    let text = hand
        .fails(
            "copy_file",
            json!({"source": "many", "destination": "more", "recursive": true}),
            CallStatus::TimedOut,
        )
        .await;
    let told = "copy many to more: did not end within 0 s and was stopped; a part of it may be done, so check what exists before you continue";
    assert_eq!(
        text,
        format!("{told}\n[to continue, ask for less at once, such as one file or folder]")
    );
    assert!(!hand.has("more"), "it appears whole or not at all");
}

#[tokio::test]
async fn every_schema_is_valid_and_every_description_short() {
    let catalogue = Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    });
    let mut known = std::collections::BTreeSet::new();
    for tool in catalogue.tools() {
        let schema = &tool.parameters;
        jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{}: {error}", tool.name));
        let properties = schema["properties"].as_object().expect("properties");
        for name in schema["required"].as_array().expect("a list") {
            assert!(
                properties.contains_key(name.as_str().expect("a name")),
                "{}: {name}",
                tool.name
            );
        }
        assert!(
            properties
                .values()
                .all(|property| property["type"].is_string()),
            "{}",
            tool.name
        );
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false)),
            "{}",
            tool.name
        );
        assert!(
            (10..=130).contains(&tool.description.len()),
            "{}: {}",
            tool.name,
            tool.description
        );
        for name in std::iter::once(&tool.name).chain(tool.aliases()) {
            assert!(known.insert(*name), "`{name}` means two tools");
        }
    }
}

/// Wrong in ways that hold for all: what is missing, what is too much, what is of another type,
/// what is no object.
#[tokio::test]
async fn bad_arguments_are_refused_by_every_tool_before_anything_happens() {
    let hand = Hand::new().await;
    let catalogue = Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    });
    let before = tree(hand.guest.workspace.path());
    for (tool, good) in one_of_each() {
        let schema = &catalogue.find(tool).expect("is there").parameters;
        let mut bad = vec![json!([1]), json!("x"), json!(7)];
        let mut extra = good.clone();
        extra["surprise"] = json!(1);
        bad.push(extra);
        for name in schema["required"].as_array().expect("a list") {
            let mut without = good.clone();
            without
                .as_object_mut()
                .expect("an object")
                .remove(name.as_str().expect("a name"));
            bad.push(without);
        }
        for (name, property) in schema["properties"].as_object().expect("properties") {
            let mut other = good.clone();
            other[name] = if property["type"] == "object" {
                json!([[]])
            } else {
                json!({"a": {"b": []}})
            };
            bad.push(other);
        }
        for arguments in bad {
            let finished = hand.call(tool, arguments.clone()).await;
            // An array of one object, or a file whose text is JSON, can be meant.
            let is_meant =
                arguments["content"].is_object() || finished.text.contains("was taken as [");
            assert!(
                finished.status == CallStatus::Invalid || is_meant,
                "{tool} {arguments}: {:?} {}",
                finished.status,
                finished.text
            );
            assert!(
                finished.text.len() < 2000 && (is_meant || finished.text.contains(tool)),
                "{tool} {arguments}: {}",
                finished.text
            );
        }
    }
    // Besides those two whose text was meant nothing was made.
    let made = tree(hand.guest.workspace.path())
        .into_iter()
        .map(|(name, ..)| name)
        .filter(|name| name != "a.txt" && name != "PODBAY.md");
    assert_eq!(made.count(), before.len());
}

/// What two of a call's arguments say together cannot be done: it is neither guessed nor passed
/// over.
#[tokio::test]
async fn arguments_that_contradict_each_other_are_refused_by_name() {
    let hand = Hand::new().await;
    hand.put("a.txt", "one\n");
    let before = tree(hand.guest.workspace.path());
    let edit = json!({"old_string": "one", "new_string": "1"});
    for (tool, arguments, words) in [
        (
            "read_file",
            json!({"path": "a.txt", "from_cursor": "x"}),
            "either `path` or `from_cursor`",
        ),
        (
            "read_file",
            json!({"path": "artifact:x", "from_cursor": "x"}),
            "either `path` or `from_cursor`",
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "edits": [edit], "old_string": "one", "new_string": "1"}),
            "either `edits` or `old_string`",
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "edits": []}),
            "not an empty list",
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "edits": [edit], "replace_all": true}),
            "`replace_all` is for one edit",
        ),
        (
            "edit_lines",
            json!({"path": "a.txt", "operation": "delete", "start_line": 1, "new_content": "x"}),
            "not for delete",
        ),
        (
            "edit_lines",
            json!({"path": "a.txt", "operation": "insert", "start_line": 1, "end_line": 2, "new_content": "x"}),
            "not for insert",
        ),
        (
            "edit_lines",
            json!({"path": "a.txt", "operation": "replace", "start_line": 2, "end_line": 1, "new_content": "x"}),
            "comes before",
        ),
        (
            "edit_lines",
            json!({"path": "a.txt", "operation": "replace", "start_line": 1}),
            "use delete",
        ),
        (
            "git_diff",
            json!({"staged": true, "base": "main"}),
            "give one of them",
        ),
        (
            "task_list",
            json!({"action": "add", "task": "x", "todos": []}),
            "either `todos`",
        ),
        (
            "task_list",
            json!({"action": "add", "task": "x", "id": 3}),
            "not for add",
        ),
        (
            "task_list",
            json!({"action": "list", "task": "x"}),
            "`task` is for add alone",
        ),
        (
            "task_list",
            json!({"action": "complete", "id": 1, "task": "x"}),
            "`task` is for add alone",
        ),
        (
            "task_list",
            json!({"action": "remove", "id": 1, "task": "x"}),
            "`task` is for add alone",
        ),
        (
            "task_list",
            json!({"action": "list", "id": 1}),
            "`id` is not for list",
        ),
        (
            "git_branch",
            json!({"name": "topic"}),
            "`name` is not for list",
        ),
        (
            "git_branch",
            json!({"action": "list", "name": "topic"}),
            "`name` is not for list",
        ),
        ("git_stash", json!({"index": 1}), "`index` is not for push"),
        (
            "git_stash",
            json!({"action": "list", "index": 1}),
            "`index` is not for list",
        ),
        (
            "git_stash",
            json!({"action": "pop", "message": "later"}),
            "`message` is for push alone",
        ),
        (
            "git_stash",
            json!({"action": "drop", "index": 1, "message": "later"}),
            "`message` is for push alone",
        ),
        (
            "env",
            json!({"name": "A", "prefix": "B"}),
            "either `name` or `prefix`",
        ),
        (
            "env",
            json!({"action": "list", "name": "A"}),
            "`name` is for get",
        ),
        (
            "archive",
            json!({"action": "list", "archive_path": "a.zip", "source_path": "a.txt"}),
            "list takes only",
        ),
        (
            "archive",
            json!({"action": "create", "archive_path": "a.zip", "source_path": "a.txt", "output_path": "x"}),
            "for extract",
        ),
        (
            "more_tools",
            json!({"tool": "mkdir", "arguments": {"path": "x"}, "query": "y"}),
            "for one `tool`",
        ),
        (
            "more_tools",
            json!({"tool": "mkdir", "query": "folder"}),
            "leave out `query` to read how to use `mkdir`, or `tool` to search",
        ),
        (
            "more_tools",
            json!({"tools": ["mkdir", "cd"], "query": "folder"}),
            "leave out `query`",
        ),
        (
            "ask_user",
            json!({"question": "Which?", "options": ["this"]}),
            "no choice",
        ),
    ] {
        let text = hand
            .fails(tool, arguments.clone(), CallStatus::Invalid)
            .await;
        assert!(text.contains(words), "{tool} {arguments}: {text}");
    }
    for (tool, arguments) in [
        (
            "copy_file",
            json!({"source": "a.txt", "destination": "./a.txt", "overwrite": true}),
        ),
        (
            "move_file",
            json!({"source": "a.txt", "destination": "./a.txt", "overwrite": true}),
        ),
        (
            "multi_edit",
            json!({"edits": [{"path": "a.txt", "old_string": "one", "new_string": "one"}]}),
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "one", "new_string": "one"}),
        ),
    ] {
        hand.fails(tool, arguments, CallStatus::Failed).await;
    }
    assert_eq!(tree(hand.guest.workspace.path()), before);
    // One that has no say is said to have none.
    let text = hand
        .call(
            "bash",
            json!({"command": "true", "background": true, "timeout_seconds": 5}),
        )
        .await
        .text;
    assert!(
        text.contains("timeout_seconds is ignored in the background"),
        "{text}"
    );
}

/// The names that models know from other systems: each tool and each argument of those that exist
/// here.
#[tokio::test]
async fn every_tool_has_the_names_and_arguments_that_others_have_for_it() {
    let hand = Hand::new().await;
    let catalogue = Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    });
    for (tool, aliases, arguments) in [
        (
            "read_file",
            "FileRead view_file",
            "path offset limit from_cursor max_files",
        ),
        ("write_file", "FileWrite", "path content append"),
        (
            "edit_file",
            "FileEdit",
            "path old_string new_string replace_all create_if_missing edits",
        ),
        (
            "edit_lines",
            "replace_lines insert_lines delete_lines",
            "path operation start_line end_line new_content",
        ),
        ("multi_edit", "", "edits"),
        ("apply_patch", "ApplyPatch", "patch dry_run"),
        ("delete_file", "", "path recursive"),
        ("copy_file", "", "source destination recursive overwrite"),
        ("move_file", "rename_file", "source destination overwrite"),
        ("mkdir", "create_directory", "path"),
        ("cd", "", "path"),
        (
            "glob",
            "Glob search_files",
            "pattern path exclude max_results",
        ),
        (
            "grep",
            "Grep search_content search_regex",
            "pattern path glob context case_insensitive output_mode max_results",
        ),
        (
            "list_directory",
            "ListDirectory",
            "path recursive show_hidden show_size max_entries",
        ),
        ("tree", "", "path depth"),
        (
            "bash",
            "Bash run_command",
            "command working_directory cwd timeout_seconds timeout description background",
        ),
        ("start_background_process", "", "command working_directory"),
        ("get_process_output", "", "process_id tail_lines"),
        ("stop_process", "", "process_id"),
        ("list_processes", "", ""),
        ("git_status", "", "path"),
        ("git_diff", "", "path staged file base"),
        ("git_log", "", "path count oneline file author"),
        ("archive", "", "action archive_path source_path output_path"),
        ("ask_user", "AskUser", "question options"),
        ("think", "", "thought"),
        ("task_list", "TodoWrite", "action task id todos"),
        ("env", "", "action name prefix"),
        ("update_config", "", "section content"),
        (
            "memory_save",
            "MemorySave save_memory",
            "name type kind description content",
        ),
        ("install_dependencies", "InstallDependencies", "ecosystems"),
        ("web_fetch", "WebFetch fetch", "url max_length raw"),
        ("web_search", "WebSearch", "query max_results"),
        (
            "network_diagnostics",
            "NetworkDiagnostics",
            "action target timeout_seconds",
        ),
        (
            "sandbox_run",
            "execute_code",
            "language code env files stdin cpus memory timeout network",
        ),
        (
            "spawn_agent",
            "Agent Task subagent",
            "task prompt description agent_type subagent_type tools system_prompt",
        ),
        ("use_skill", "Skill skill load_skill", "name skill command"),
        (
            "more_tools",
            "tool_search ToolSearch",
            "tools query list_deferred max_results",
        ),
    ] {
        for alias in aliases.split_whitespace() {
            assert_eq!(
                catalogue.find(alias).map(|tool| tool.name),
                Some(tool),
                "{alias}"
            );
        }
        for argument in arguments.split_whitespace() {
            // No argument is a list in a list: nothing is done, and what is wrong with it is not
            // that nobody knows it.
            let finished = hand.call(tool, json!({ argument: [[]] })).await;
            assert_eq!(
                finished.status,
                CallStatus::Invalid,
                "{tool} {argument}: {}",
                finished.text
            );
            assert!(
                !finished.text.contains("is not known"),
                "{tool} {argument}: {}",
                finished.text
            );
        }
    }
    // The control: what nobody has.
    assert!(
        hand.fails("read_file", json!({"pathes": [[]]}), CallStatus::Invalid)
            .await
            .contains("`pathes` is not known")
    );
}

/// Somebody who chose a word that is not there reads all that are.
#[tokio::test]
async fn a_word_that_is_none_of_those_there_are_is_refused_with_all_of_them() {
    let hand = Hand::new().await;
    let catalogue = Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    });
    let mut n_tried = 0;
    for (tool, good) in one_of_each() {
        for (name, property) in catalogue.find(tool).expect("is there").parameters["properties"]
            .as_object()
            .expect("properties")
        {
            let Some(words) = property["enum"].as_array() else {
                continue;
            };
            n_tried += 1;
            let mut bad = good.clone();
            bad[name] = json!("sideways");
            let text = hand.fails(tool, bad, CallStatus::Invalid).await;
            assert!(
                text.contains(&format!("`{name}`: \"sideways\" is none of")),
                "{tool}: {text}"
            );
            assert!(
                words.iter().all(|word| text.contains(&word.to_string())),
                "{tool} {words:?}: {text}"
            );
        }
    }
    assert!(n_tried >= 4, "{n_tried}");
    // One that is written in other letters is meant.
    hand.ok("task_list", json!({"action": "List"})).await;
}

/// Paths that lead elsewhere, are no files, or are odd names: of every tool that takes one.
#[tokio::test]
async fn odd_paths_are_refused_or_taken_for_what_they_are() {
    let hand = project(policy::Options::default(), Mode::Auto).await;
    hand.put("file", "x\n");
    std::os::unix::fs::symlink("/etc", hand.guest.path("out")).expect("linked");
    std::os::unix::fs::symlink("loop", hand.guest.path("loop")).expect("linked");
    nix::unistd::mkfifo(&hand.guest.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    let _socket = std::os::unix::net::UnixListener::bind(hand.guest.path("socket")).expect("bound");
    let catalogue = Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    });
    for (tool, good) in one_of_each() {
        for field in [
            "path",
            "source",
            "destination",
            "archive_path",
            "source_path",
            "output_path",
            "file",
            "working_directory",
        ] {
            if catalogue.find(tool).expect("is there").parameters["properties"]
                .get(field)
                .is_none()
            {
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
                let finished = hand.call(tool, odd).await;
                assert!(
                    finished.status != CallStatus::Ok,
                    "{tool} {field} {path:?}: {}",
                    finished.text
                );
                assert!(!finished.text.contains("root:x:"), "{tool} {path:?}");
            }
        }
    }
    assert!(
        !hand
            .guest
            .workspace
            .path()
            .parent()
            .expect("has one")
            .join("podbay-odd-path")
            .exists()
    );
}
