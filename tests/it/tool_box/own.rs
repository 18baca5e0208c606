//! What the host serves itself, and the session's surroundings.

use super::all::OF_THE_NETWORK;
use super::*;

#[tokio::test]
async fn a_thought_is_noted_and_an_empty_one_is_none() {
    let hand = Hand::new().await;
    assert_eq!(
        hand.ok("think", json!({"thought": "It may be the path."}))
            .await,
        "noted"
    );
    assert!(
        hand.fails("think", json!({"thought": " "}), CallStatus::Invalid)
            .await
            .contains("`thought` is empty")
    );
    assert!(
        hand.fails("think", none(), CallStatus::Invalid)
            .await
            .contains("`thought` is missing")
    );
    assert!(
        hand.reached().is_empty(),
        "the sandbox has nothing to do with it"
    );
}

#[tokio::test]
async fn a_list_of_tasks_is_kept_over_calls_in_both_forms() {
    let hand = Hand::new().await;
    assert_eq!(hand.ok("task_list", none()).await, "the list is empty");
    hand.ok(
        "task_list",
        json!({"action": "add", "task": "look  at\nit"}),
    )
    .await;
    hand.ok("task_list", json!({"task": "change it"})).await;
    hand.ok("task_list", json!({"action": "start", "id": 2}))
        .await;
    assert_eq!(
        hand.ok("task_list", json!({"action": "complete", "id": "1"}))
            .await
            .lines()
            .next(),
        Some("1. [x] look at it")
    );
    assert!(
        hand.ok("task_list", json!({"action": "list"}))
            .await
            .ends_with("2. [>] change it\n(1 of 2 done)")
    );
    let todos = json!({"todos": [{"content": "one", "status": "in_progress", "active_form": "doing one"}, {"content": "two"}]});
    assert_eq!(
        hand.ok("TodoWrite", todos).await,
        "1. [>] one\n2. [ ] two\n(0 of 2 done)\n[TodoWrite was taken as task_list]"
    );
    for (arguments, words) in [
        (json!({"action": "add"}), "`task` is missing"),
        (json!({"action": "complete"}), "`id` is missing"),
        (json!({"action": "remove", "id": 0}), "counted from 1"),
        (
            json!({"action": "add", "task": "x", "id": 1}),
            "not for add",
        ),
        (json!({"action": "list", "todos": []}), "either `todos`"),
        (
            json!({"todos": [{"status": "pending"}]}),
            "`content` is missing",
        ),
        (json!({"action": "burn"}), "`action`"),
        (json!({"task": "x".repeat(501)}), "at most 500"),
        (
            json!({"todos": vec![json!({"content": "x"}); 51]}),
            "at most 50",
        ),
    ] {
        let text = hand
            .fails("task_list", arguments.clone(), CallStatus::Invalid)
            .await;
        assert!(text.contains(words), "{arguments}: {text}");
    }
    assert!(
        hand.fails(
            "task_list",
            json!({"action": "remove", "id": 9}),
            CallStatus::Failed
        )
        .await
        .contains("numbered 1 to 2")
    );
    assert!(
        hand.ok("task_list", none()).await.contains("(0 of 2 done)"),
        "what was refused changed nothing"
    );
}

#[tokio::test]
async fn where_nobody_is_there_a_question_is_not_waited_for() {
    let hand = Hand::new().await;
    let text = hand
        .ok(
            "ask_user",
            json!({"question": "Which one?", "options": ["this", "that"]}),
        )
        .await;
    assert!(text.starts_with("No user can answer."), "{text}");
    assert!(
        !hand
            .kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::QuestionAsked { .. }))
    );
    let many: Vec<String> = (0..11).map(|n| n.to_string()).collect();
    for (arguments, words) in [
        (none(), "`question` is missing"),
        (json!({"question": "  "}), "`question` is empty"),
        (json!({"question": "x", "options": many}), "at most 10"),
        (json!({"question": "x", "options": [7, 8]}), "must be texts"),
        (
            json!({"question": "x", "options": ["yes"]}),
            "two or more, or none",
        ),
        (json!({"question": "x", "options": "yes"}), "`options`"),
        (json!({"question": "x".repeat(4001)}), "longer than 4000"),
    ] {
        let text = hand
            .fails("ask_user", arguments.clone(), CallStatus::Invalid)
            .await;
        assert!(text.contains(words), "{arguments}: {text}");
    }
}

#[tokio::test]
async fn a_person_answers_and_a_cancelled_question_is_withdrawn() {
    let hand = Hand::with(
        ToolSet::Full,
        Mode::Deny,
        policy::Options::default(),
        Some("the blue one"),
    )
    .await;
    let labelled = json!({"question": "Which one?", "options": [{"label": "red", "description": "like fire"}, "blue"]});
    assert_eq!(
        hand.ok("ask_user", labelled).await,
        "The user answers: the blue one"
    );
    assert!(
        hand.kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::QuestionAsked { .. }))
    );
    let hand = Hand::with(
        ToolSet::Full,
        Mode::Auto,
        policy::Options::default(),
        Some("wait"),
    )
    .await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let finished = hand
        .call_with("ask_user", json!({"question": "Which one?"}), &cancel)
        .await;
    assert_eq!(finished.status, CallStatus::Cancelled, "{}", finished.text);
}

#[tokio::test]
async fn the_environment_is_shown_as_commands_have_it() {
    let hand = Hand::new().await;
    assert_eq!(
        hand.ok("env", json!({"action": "get", "name": "HOME"}))
            .await,
        "HOME=/tmp"
    );
    assert!(
        hand.ok("env", none())
            .await
            .contains("PATH=/usr/local/bin:/usr/bin:/bin")
    );
    assert_eq!(
        hand.ok("env", json!({"prefix": "LAN"})).await,
        "LANG=C.UTF-8"
    );
    assert_eq!(
        hand.ok("env", json!({"name": "NONE"})).await,
        "no such variable is set"
    );
    for (arguments, words) in [
        (json!({"action": "get"}), "`name` is missing"),
        (json!({"action": "list", "name": "A"}), "`name` is for get"),
        (json!({"name": "A", "prefix": "B"}), "either"),
        (json!({"name": ""}), "`name` is empty"),
    ] {
        let text = hand
            .fails("env", arguments.clone(), CallStatus::Invalid)
            .await;
        assert!(text.contains(words), "{arguments}: {text}");
    }
    assert!(
        hand.fails("env", json!({"name": "A=B"}), CallStatus::Failed)
            .await
            .contains("which no variable name may have")
    );
}

#[tokio::test]
async fn commands_run_where_cd_has_gone_and_paths_of_tools_stay_the_projects() {
    let hand = Hand::new().await;
    hand.put("src/deep/a.txt", "inner\n");
    hand.put("a.txt", "outer\n");
    std::os::unix::fs::symlink("/etc", hand.guest.path("out")).expect("linked");
    let text = hand.ok("cd", json!({"path": "src/deep"})).await;
    assert!(text.contains("src/deep from now on"), "{text}");
    assert!(
        hand.ok("bash", json!({"command": "cat a.txt"}))
            .await
            .starts_with("inner")
    );
    assert_eq!(
        hand.ok("read_file", json!({"path": "a.txt"})).await,
        "1\touter\n"
    );
    for path in ["..", "/etc", "out", "none", "a.txt", "a\nb", "a\u{0}b"] {
        let text = hand
            .fails("cd", json!({ "path": path }), CallStatus::Failed)
            .await;
        assert!(
            !text.is_empty()
                && hand
                    .ok("bash", json!({"command": "cat a.txt"}))
                    .await
                    .starts_with("inner"),
            "{path}: {text}"
        );
    }
    hand.ok("cd", json!({"path": "."})).await;
    assert!(
        hand.ok("bash", json!({"command": "cat a.txt"}))
            .await
            .starts_with("outer")
    );
    assert!(
        hand.fails("cd", none(), CallStatus::Invalid)
            .await
            .contains("`path` is missing")
    );
}

#[tokio::test]
async fn a_file_of_instructions_that_is_in_use_gets_none_beside_it_unless_a_person_says_so() {
    let (plain, beside) = (
        json!({"section": "A", "content": "b"}),
        json!({"section": "A", "content": "b", "beside": true}),
    );
    for name in podbay::wire::OTHER_INSTRUCTIONS {
        let hand = Hand::with(
            ToolSet::Full,
            Mode::Ask,
            policy::Options::default(),
            Some("no"),
        )
        .await;
        hand.put(name, "Be brief.\n");
        let text = hand
            .fails("update_config", plain.clone(), CallStatus::Failed)
            .await;
        assert!(
            text.contains(&format!(
                "beside {name}, which this project uses: change that one"
            )),
            "{text}"
        );
        assert!(
            hand.asked
                .lock()
                .expect("no test panics while it holds this")
                .is_empty()
        );
        hand.fails("update_config", beside.clone(), CallStatus::Denied)
            .await;
        assert_eq!(
            hand.asked
                .lock()
                .expect("no test panics while it holds this")
                .len(),
            1,
            "it is asked about"
        );
        assert!(!hand.has("PODBAY.md"), "{name}");
    }
    // In a run nobody is asked. What is a link leads to what is in use.
    let hand = Hand::new().await;
    hand.put("docs/agents.md", "Be brief.\n");
    std::os::unix::fs::symlink("docs/agents.md", hand.guest.path("AGENTS.md")).expect("linked");
    hand.fails("update_config", plain.clone(), CallStatus::Failed)
        .await;
    hand.fails("update_config", beside.clone(), CallStatus::Denied)
        .await;
    assert!(!hand.has("PODBAY.md"));
    // Somebody's word, an empty file that says nothing, and the file itself once it is there.
    let allow = policy::Options {
        allow: vec!["update_config".to_owned()],
        ..policy::Options::default()
    };
    let hand = Hand::with(ToolSet::Full, Mode::Auto, allow, None).await;
    hand.put("AGENTS.md", "Be brief.\n");
    hand.ok("update_config", beside).await;
    hand.ok("update_config", json!({"section": "B", "content": "c"}))
        .await;
    assert_eq!(
        (
            hand.text("PODBAY.md").as_str(),
            hand.text("AGENTS.md").as_str()
        ),
        ("## A\n\nb\n\n## B\n\nc\n", "Be brief.\n")
    );
    let hand = Hand::new().await;
    hand.put("AGENTS.md", " \n");
    hand.ok("update_config", plain).await;
}

/// A section for this user's sessions alone is a note: judged and asked about like one.
#[tokio::test]
async fn a_section_of_the_document_is_a_note_and_no_file_of_the_project() {
    let section = json!({"section": "## Style", "content": "Short.", "place": "memory"});
    let hand = Hand::new().await;
    let text = hand.ok("update_config", section.clone()).await;
    assert!(text.starts_with("wrote Style: Short."), "{text}");
    assert!(!hand.has("PODBAY.md"));
    let ask = policy::Options::default();
    let hand = Hand::with(ToolSet::Full, Mode::Ask, ask, Some("no")).await;
    hand.fails("update_config", section.clone(), CallStatus::Denied)
        .await;
    let n_asked = hand
        .asked
        .lock()
        .expect("no test panics while it holds this")
        .len();
    assert_eq!(n_asked, 1, "it is asked about");
    let ask = policy::Options::default();
    let hand = Hand::with(ToolSet::Full, Mode::Deny, ask, None).await;
    hand.fails("update_config", section, CallStatus::Denied)
        .await;
}

#[tokio::test]
async fn a_section_of_the_instructions_is_written_in_mode_ask_without_a_question() {
    let hand = Hand::with(ToolSet::Full, Mode::Ask, policy::Options::default(), None).await;
    let text = hand
        .ok(
            "update_config",
            json!({"section": "## Tests", "content": "Run `make test`."}),
        )
        .await;
    assert!(text.starts_with("created PODBAY.md"), "{text}");
    assert_eq!(hand.text("PODBAY.md"), "## Tests\n\nRun `make test`.\n");
    hand.ok(
        "update_config",
        json!({"section": "Style", "content": "Short."}),
    )
    .await;
    hand.ok(
        "update_config",
        json!({"section": "tests", "content": "Run `make check`."}),
    )
    .await;
    assert_eq!(
        hand.text("PODBAY.md"),
        "## Tests\n\nRun `make check`.\n\n## Style\n\nShort.\n"
    );
    hand.ok("update_config", json!({"section": "Tests", "content": ""}))
        .await;
    assert_eq!(hand.text("PODBAY.md"), "## Style\n\nShort.\n");
    for (arguments, words) in [
        (json!({"section": "x"}), "`content` is missing"),
        (
            json!({"section": "#", "content": "x"}),
            "`section` is empty",
        ),
        (json!({"section": "a\nb", "content": "x"}), "one line"),
        (
            json!({"section": "Tests <!--", "content": "x"}),
            "holds <!--,",
        ),
        (json!({"section": "``` x", "content": "x"}), "holds ```,"),
        (
            json!({"section": "Te\u{202e}sts", "content": "x"}),
            "cannot be seen",
        ),
        (
            json!({"section": "Te\u{200b}sts", "content": "x"}),
            "cannot be seen",
        ),
        (
            json!({"section": "a", "content": "x".repeat(20_001)}),
            "at most 20000",
        ),
    ] {
        let text = hand
            .fails("update_config", arguments, CallStatus::Invalid)
            .await;
        assert!(text.contains(words), "{text}");
    }
    assert!(
        hand.fails(
            "update_config",
            json!({"section": "No", "content": ""}),
            CallStatus::Failed
        )
        .await
        .contains("no section `No`")
    );
    assert!(
        hand.fails(
            "update_config",
            json!({"section": "Style", "content": "Short."}),
            CallStatus::Failed
        )
        .await
        .contains("already")
    );
    // Through a link it is not written, wherever that leads.
    std::fs::remove_file(hand.guest.path("PODBAY.md")).expect("removed");
    hand.put(".env", "KEY=1\n");
    std::os::unix::fs::symlink(".env", hand.guest.path("PODBAY.md")).expect("linked");
    let text = hand
        .fails(
            "update_config",
            json!({"section": "A", "content": "b"}),
            CallStatus::Failed,
        )
        .await;
    assert!(
        text.contains("is a symbolic link") && hand.text(".env") == "KEY=1\n",
        "{text}"
    );
    let silent = Hand::with(ToolSet::Full, Mode::Deny, policy::Options::default(), None).await;
    silent
        .fails(
            "update_config",
            json!({"section": "A", "content": "b"}),
            CallStatus::Denied,
        )
        .await;
    assert!(!silent.has("PODBAY.md"));
}

#[tokio::test]
async fn rarely_used_tools_are_found_explained_and_called() {
    let hand = Hand::with(ToolSet::Small, Mode::Auto, policy::Options::default(), None).await;
    let all = hand.ok("more_tools", none()).await;
    for tool in [
        "mkdir(path): Make a folder",
        "archive(",
        "git_status(",
        "ask_user(",
    ] {
        assert!(all.contains(tool), "`{tool}` is missing: {all}");
    }
    assert!(
        !all.contains("read_file(") && !all.contains("more_tools("),
        "what the model knows of is not listed: {all}"
    );
    let found = hand
        .ok(
            "tool_search",
            json!({"query": "rename unzip", "max_results": 5}),
        )
        .await;
    assert!(
        found.contains("move_file(") && found.contains("archive(") && !found.contains("mkdir("),
        "{found}"
    );
    let explained = hand
        .ok("more_tools", json!({"tools": ["mkdir", "TodoWrite"]}))
        .await;
    assert!(
        explained.contains("mkdir: Make a folder")
            && explained.contains("task_list: ")
            && explained.contains("\"path\""),
        "{explained}"
    );
    // What is left out is said: ten are shown where something is looked for, as many as are asked
    // for, and all where nothing is.
    for (arguments, n_shown) in [
        (json!({"query": "file folder process command"}), 10),
        (
            json!({"query": "file folder process command", "max_results": 2}),
            2,
        ),
        (json!({"max_results": 3, "list_deferred": true}), 3),
    ] {
        let found = hand.ok("more_tools", arguments).await;
        let n_lines = found.lines().filter(|line| line.contains("): ")).count();
        assert!(
            n_lines == n_shown
                && found.contains(" more; ask with other words, or with a larger max_results)"),
            "{n_shown}: {found}"
        );
    }
    assert!(!all.contains("larger max_results"), "{all}");
    assert!(
        hand.ok("more_tools", json!({"query": "zeppelin"}))
            .await
            .contains("no tool is about that")
    );

    assert_eq!(
        hand.ok(
            "more_tools",
            json!({"tool": "mkdir", "arguments": {"path": "src/new"}})
        )
        .await,
        "created src/new/"
    );
    assert!(hand.has("src/new"));
    // As text, by another name, without any arguments, or straight by its own name: what can only
    // be meant one way is done.
    hand.ok(
        "more_tools",
        json!({"name": "create_directory", "args": "{\"path\": \"two\"}"}),
    )
    .await;
    hand.ok(
        "more_tools",
        json!({"tool": "list_processes", "arguments": {}}),
    )
    .await;
    hand.ok("mkdir", json!({"path": "three"})).await;
    assert!(hand.has("two") && hand.has("three"));
    for (arguments, words) in [
        (json!({"arguments": {"path": "x"}}), "`tool` is missing"),
        (
            json!({"tool": "mkdir", "arguments": {"path": 1, "mode": 7}}),
            "wrong arguments for mkdir",
        ),
        (
            json!({"tool": "mkdir", "arguments": {}}),
            "`path` is missing",
        ),
        (
            json!({"tool": "fly", "arguments": {}}),
            "there is no tool `fly`",
        ),
        (
            json!({"tool": "more_tools", "arguments": {"tool": "mkdir"}}),
            "cannot call itself",
        ),
        (
            json!({"tool": "mkdir", "arguments": {"path": "x"}, "query": "y"}),
            "for one `tool`",
        ),
        (json!({"tool": "mkdir", "arguments": [1]}), "`arguments`"),
        (json!({"max_results": -1}), "cannot be negative"),
    ] {
        let text = hand
            .fails("more_tools", arguments.clone(), CallStatus::Invalid)
            .await;
        assert!(text.contains(words), "{arguments}: {text}");
    }
    assert!(
        hand.fails("more_tools", json!({"tool": "fly"}), CallStatus::Failed)
            .await
            .contains("there is no tool `fly`")
    );
}

#[tokio::test]
async fn a_call_through_more_tools_is_judged_recorded_and_refused_as_the_call_it_is() {
    let deny = |rule: &str| policy::Options {
        deny: vec![rule.to_owned()],
        ..policy::Options::default()
    };
    let wrapped = |tool: &str, arguments: Value| json!({"tool": tool, "arguments": arguments});
    for (rule, call) in [
        ("mkdir", wrapped("mkdir", json!({"path": "a"}))),
        (
            "delete_file(src/**)",
            wrapped("rm", json!({"path": "src/a"})),
        ),
        (
            "bash(git push *)",
            wrapped("bash", json!({"command": "true && git push origin"})),
        ),
        (
            "start_background_process",
            wrapped("start_background_process", json!({"command": "sleep 9"})),
        ),
        (
            "bash",
            wrapped("start_background_process", json!({"command": "sleep 9"})),
        ),
        (
            "start_background_process",
            wrapped("bash", json!({"command": "sleep 9", "background": true})),
        ),
    ] {
        let hand = Hand::with(ToolSet::Standard, Mode::Auto, deny(rule), None).await;
        let text = hand.fails("more_tools", call, CallStatus::Denied).await;
        assert!(
            text.contains(&format!("the rule `{rule}` denies it")) && hand.reached().is_empty(),
            "{text}"
        );
    }
    let hand = Hand::with(ToolSet::Small, Mode::Auto, policy::Options::default(), None).await;
    hand.fails(
        "more_tools",
        wrapped("write_file", json!({"path": ".env", "content": "x"})),
        CallStatus::Denied,
    )
    .await;
    hand.ok("more_tools", wrapped("mkdir", json!({"path": "a"})))
        .await;
    let started = hand.kinds().into_iter().find_map(|kind| match kind {
        Kind::CallStarted {
            name, arguments, ..
        } => Some((name, arguments)),
        _ => None,
    });
    assert_eq!(
        started,
        Some(("mkdir".to_owned(), r#"{"path":"a"}"#.to_owned()))
    );
    // A rule for the tool itself speaks of looking for tools, and of no call.
    let hand = Hand::with(ToolSet::Small, Mode::Auto, deny("more_tools"), None).await;
    hand.fails("more_tools", none(), CallStatus::Denied).await;
    // What one rule allows in the background it does not allow before it.
    let (allow, ask) = (
        vec!["start_background_process(touch *)".to_owned()],
        vec!["bash(touch a)".to_owned()],
    );
    let allow = policy::Options {
        allow,
        ask,
        ..policy::Options::default()
    };
    let hand = Hand::with(ToolSet::Full, Mode::Ask, allow, None).await;
    hand.fails("bash", json!({"command": "touch a"}), CallStatus::Denied)
        .await;
    hand.call("start_background_process", json!({"command": "touch b"}))
        .await;
    assert!(!hand.has("a") && hand.has("b"));
}

/// Names and descriptions alone: what a server makes of them is counted by `benches/compare`.
#[test]
fn the_sets_hold_the_tools_they_promise_and_stay_small() {
    let names = |set| {
        let catalogue = Catalogue::new(&tools::Options {
            set,
            ..tools::Options::default()
        });
        catalogue
            .tools()
            .iter()
            .map(|tool| tool.name)
            .collect::<Vec<_>>()
    };
    let small = [
        "read_file",
        "edit_file",
        "write_file",
        "list_directory",
        "grep",
        "bash",
        "more_tools",
    ];
    let standard = [
        &small[..],
        &[
            "glob",
            "multi_edit",
            "apply_patch",
            "git_status",
            "git_diff",
            "ask_user",
            "task_list",
            "memory_save",
            "spawn_agent",
            "use_skill",
        ],
    ]
    .concat();
    let sorted = |mut names: Vec<&'static str>| {
        names.sort_unstable();
        names
    };
    assert_eq!(sorted(names(ToolSet::Small)), sorted(small.to_vec()));
    assert_eq!(sorted(names(ToolSet::Standard)), sorted(standard));
    assert!(
        names(ToolSet::Full).len() == 45,
        "{:?}",
        names(ToolSet::Full)
    );
    // Four characters are about a token.
    let size = |set| {
        let catalogue = Catalogue::new(&tools::Options {
            set,
            ..tools::Options::default()
        });
        // What skills take depends on which there are.
        let catalogue = catalogue.with_skills(&[]);
        let told = |tool: &podbay::tools::Tool| {
            format!("{}{}{}", tool.name, tool.description, tool.parameters).len()
        };
        catalogue.tools().iter().map(told).sum::<usize>() / 4
    };
    assert!(
        size(ToolSet::Small) < 700 && size(ToolSet::Standard) < 1800,
        "{} {}",
        size(ToolSet::Small),
        size(ToolSet::Standard)
    );
}

fn note() -> Value {
    json!({"name": "build", "kind": "project", "description": "How to build", "content": "Run make."})
}

#[tokio::test]
async fn a_note_for_later_sessions_is_judged_by_the_mode() {
    let free = |mode| {
        Hand::with(
            ToolSet::Standard,
            mode,
            policy::Options::default(),
            Some("no"),
        )
    };
    let hand = free(Mode::Auto).await;
    assert_eq!(hand.ok("memory_save", note()).await, "saved as build");
    // A plan may be worth a note, which is no change of the project.
    hand.pipeline.recall_plan(true, None);
    assert_eq!(hand.ok("memory_save", note()).await, "saved as build");
    let hand = free(Mode::Ask).await;
    hand.fails("memory_save", note(), CallStatus::Denied).await;
    let asked = hand
        .asked
        .lock()
        .expect("no test panics while it holds this")
        .clone();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(
        asked[0].capabilities,
        [podbay::event::Capability::SaveMemory]
    );
    let said = free(Mode::Deny).await;
    let said = said.fails("memory_save", note(), CallStatus::Denied).await;
    assert!(said.contains("not to save a note"), "{said}");
    assert!(
        hand.reached().is_empty(),
        "the sandbox has nothing to do with it"
    );
}

#[tokio::test]
async fn a_note_of_an_unknown_kind_or_without_a_text_is_none() {
    let hand = Hand::new().await;
    for (field, value, reason) in [
        ("kind", json!("system"), "kind"),
        ("content", json!(" "), "`content` is empty"),
        ("description", json!(""), "`description` is empty"),
        ("name", json!(null), "name"),
    ] {
        let mut note = note();
        note[field] = value;
        let said = hand.fails("memory_save", note, CallStatus::Invalid).await;
        assert!(said.contains(reason), "{said}");
    }
}

/// Where it is switched off, a model is neither told of the tool nor can it call it.
#[test]
fn without_memory_there_is_no_tool_for_it() {
    for set in [ToolSet::Small, ToolSet::Standard, ToolSet::Full] {
        let options = tools::Options {
            set,
            ..tools::Options::default()
        };
        let with = Catalogue::new(&options);
        assert!(with.find("memory_save").is_some());
        let without = with.without_memory();
        assert!(without.find("memory_save").is_none() && without.find("MemorySave").is_none());
    }
}

/// Without skills there is nothing to read; with some, the model is told which.
#[test]
fn without_skills_there_is_no_tool_for_them() {
    for set in [ToolSet::Small, ToolSet::Standard, ToolSet::Full] {
        let options = tools::Options {
            set,
            ..tools::Options::default()
        };
        let without = Catalogue::new(&options).with_skills(&[]);
        assert!(without.find("use_skill").is_none() && without.find("Skill").is_none());
        let greet = tools::SkillOffer {
            name: "greet".to_owned(),
            description: "Says hello".to_owned(),
            of_project: true,
        };
        let with = Catalogue::new(&options).with_skills(&[greet]);
        let tool = with.find("use_skill").expect("the tool");
        assert_eq!(
            tool.parameters["properties"]["name"]["description"],
            "One of: greet (the project's: Says hello)"
        );
    }
}

/// What needs a network, or a setting, is told to no model without.
#[test]
fn offline_or_without_an_engine_the_tools_for_that_are_not_there() {
    for set in [ToolSet::Small, ToolSet::Standard, ToolSet::Full] {
        let options = tools::Options {
            set,
            ..tools::Options::default()
        };
        let has = |catalogue: &Catalogue, name: &str| catalogue.find(name).is_some();
        let all = Catalogue::new(&options);
        assert!(OF_THE_NETWORK.iter().all(|name| has(&all, name)));
        let without = all.without_search();
        assert!(!has(&without, "web_search") && has(&without, "web_fetch"));
        let offline = Catalogue::new(&options).offline();
        assert!(!OF_THE_NETWORK.iter().any(|name| has(&offline, name)));
        assert!(has(&offline, "bash"));
    }
}

fn code() -> Value {
    json!({"language": "Python", "code": "print(1)", "timeout_seconds": 7, "memory_mb": 1})
}

/// Code in a sandbox of its own can change nothing here, so that only who wants to decide
/// everything is asked.
#[tokio::test]
async fn code_in_a_sandbox_of_its_own_is_judged_by_the_mode() {
    let with = |mode, rules: policy::Options| Hand::with(ToolSet::Full, mode, rules, Some("yes"));
    let asked = |hand: &Hand| {
        let asked = hand.asked.lock();
        asked.expect("no test panics while it holds this").len()
    };
    for mode in [Mode::Auto, Mode::Ask] {
        let hand = with(mode, policy::Options::default()).await;
        let said = hand.ok("sandbox_run", code()).await;
        assert!(
            said.starts_with("ran print(1)\n[stderr]\na warning"),
            "{said}"
        );
        assert!(asked(&hand) == 0 && hand.reached().is_empty());
    }
    let hand = with(Mode::Deny, policy::Options::default()).await;
    let said = hand.fails("sandbox_run", code(), CallStatus::Denied).await;
    assert!(said.contains("mode deny only allows reading"), "{said}");
    let architect = policy::Options {
        autonomy: Some(policy::Autonomy::Architect),
        ..policy::Options::default()
    };
    for rules in [
        architect,
        policy::Options {
            ask: vec!["sandbox_run".to_owned()],
            ..policy::Options::default()
        },
    ] {
        let hand = with(Mode::Ask, rules).await;
        hand.fails("sandbox_run", code(), CallStatus::Denied).await;
        assert_eq!(asked(&hand), 1);
    }
}

#[tokio::test]
async fn code_is_bounded_and_its_limits_are_those_of_the_settings_at_most() {
    let hand = Hand::new().await;
    for (field, value) in [
        ("code", json!(" ")),
        ("code", json!("x".repeat((256 << 10) + 1))),
        ("stdin", json!("x".repeat((1 << 20) + 1))),
        (
            "files",
            json!([{"path": "a", "content": "x".repeat((1 << 20) + 1)}]),
        ),
        ("files", json!([{"path": " ", "content": "x"}])),
        ("cpus", json!(-1)),
        ("memory_mb", json!(-1)),
        ("language", json!("perl")),
    ] {
        let mut call = code();
        call[field] = value;
        hand.fails("sandbox_run", call, CallStatus::Invalid).await;
    }
    let mut greedy = code();
    greedy["timeout_seconds"] = json!(100_000);
    greedy["memory_mb"] = json!(1_000_000);
    let said = hand.ok("sandbox_run", greedy).await;
    for words in [
        "timeout_seconds 100000 was taken as 600",
        "memory_mb 1000000 was taken as 1024",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// A language without an image is not told to a model, and without any there is no tool.
#[test]
fn only_languages_that_are_here_are_told() {
    let options = tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    };
    let words = |languages: &[&str]| {
        let catalogue = Catalogue::new(&options).with_languages(languages);
        let tool = catalogue.find("execute_code")?;
        Some(tool.parameters["properties"]["language"]["enum"].clone())
    };
    assert_eq!(words(&["python", "bash"]), Some(json!(["python", "bash"])));
    assert_eq!(words(&[]), None);
}
