//! A model that has to be asked otherwise than its server says: found out by what comes back, kept,
//! and said.

use std::time::Duration;

use podbay::agent::Failure;
use podbay::event::Kind;
use podbay::event::LimitKind;
use podbay::event::RunStatus;
use podbay::event::ToolMode;
use podbay::llm;
use podbay::llm::ToolModeChoice;
use podbay::session::ResumeState;
use serde_json::Value;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

const MINUTE: Duration = Duration::from_mins(1);

async fn desk(model: ScriptedModel) -> Desk {
    Desk::new(model.start().await, Wishes::default()).await
}

fn set_to(choice: ToolModeChoice) -> Wishes {
    Wishes {
        llm: llm::Options {
            tool_mode: choice,
            retries: 0,
            ..llm::Options::default()
        },
        ..Wishes::default()
    }
}

/// Returns the changes that were said, in order.
fn changes(desk: &Desk) -> Vec<(ToolMode, ToolMode)> {
    let change = |kind| {
        if let Kind::ToolModeChanged { from, to, .. } = kind {
            Some((from, to))
        } else {
            None
        }
    };
    desk.kinds().into_iter().filter_map(change).collect()
}

/// Returns how tools are told in a request: natively, by a schema.
fn told(request: &Value) -> (bool, bool) {
    (
        request.get("tools").is_some(),
        request.get("response_format").is_some(),
    )
}

fn echo(text: &str) -> String {
    json!({"tool": "bash", "arguments": {"command": format!("echo {text}")}}).to_string()
}

fn error(code: u16, message: &str) -> String {
    json!({"error": {"code": code, "message": message, "type": "server_error"}}).to_string()
}

const ONE_STEP: [(ToolMode, ToolMode); 1] = [(ToolMode::Native, ToolMode::Constrained)];

#[tokio::test]
async fn a_tagged_call_of_a_tool_that_does_not_exist_has_a_result_that_says_so() {
    let fly =
        "I fly.\n<tool_call>\n{\"name\": \"fly\", \"arguments\": {\"to\": \"Rome\"}}\n</tool_call>";
    let desk = desk(ScriptedModel::new().says(fly).says("I cannot fly.")).await;
    let outcome = desk.work("fly").await;
    assert_eq!(
        (
            outcome.status,
            outcome.response.as_str(),
            outcome.tool_calls
        ),
        (RunStatus::Completed, "I cannot fly.", 1)
    );
    assert!(
        desk.results(1)[0].contains("there is no tool `fly`. The tools are: read_file"),
        "{:?}",
        desk.results(1)
    );
    assert_eq!(desk.model.requests()[1]["messages"][2]["content"], "I fly.");
    desk.model.assert_append_only();
}

#[tokio::test]
async fn a_marked_call_of_a_tool_that_does_not_exist_has_a_result_in_other_formats_too() {
    for choice in [ToolModeChoice::Native, ToolModeChoice::Text] {
        for fly in [
            "[TOOL_CALLS]fly[ARGS]{\"command\": \"ls\"}",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.fly:0<|tool_call_argument_begin|>{\"to\": \"Rome\"}<|tool_call_end|><|tool_calls_section_end|>",
            "<|channel|>commentary to=functions.fly <|constrain|>json<|message|>{\"to\": \"Rome\"}<|call|>",
            "<tool_call>\n<function=fly>\n<parameter=to>\nRome\n</parameter>\n</function>\n</tool_call>",
            "<tool_call>{\"name\": \"fly\", \"arguments\": {\"command\": \"ls\"}}</tool_call>",
        ] {
            let desk = Desk::new(
                ScriptedModel::new()
                    .says(fly)
                    .says("I cannot fly.")
                    .start()
                    .await,
                set_to(choice),
            )
            .await;
            let outcome = desk.work("fly").await;
            assert_eq!(
                (
                    outcome.status,
                    outcome.response.as_str(),
                    outcome.tool_calls
                ),
                (RunStatus::Completed, "I cannot fly.", 1),
                "{fly}"
            );
            let told = desk.model.requests()[1]["messages"].to_string();
            assert!(
                told.contains("there is no tool `fly`. The tools are: read_file"),
                "{told}"
            );
        }
    }
}

#[tokio::test]
async fn a_call_of_a_tool_that_does_not_exist_has_its_result_beside_others() {
    let call = |name: &str| {
        format!(
            "<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {{\"command\": \"echo seen\"}}}}\n</tool_call>"
        )
    };
    for (written, n_fly) in [
        (format!("I go.\n{}\n{}", call("fly"), call("bash")), 0),
        (format!("I go.\n{}\n{}", call("bash"), call("fly")), 1),
    ] {
        let desk = desk(ScriptedModel::new().says(&written).says("I cannot fly.")).await;
        assert_eq!(desk.work("fly").await.tool_calls, 2);
        let results = desk.results(1);
        assert!(
            results[n_fly].contains("there is no tool `fly`")
                && results[1 - n_fly].contains("seen"),
            "{results:?}"
        );
        assert_eq!(desk.model.requests()[1]["messages"][2]["content"], "I go.");
    }
}

#[tokio::test]
async fn a_call_that_nobody_can_read_is_asked_for_again() {
    let broken = "I look.\n<tool_call>{{\"name\": \"bash\", \"arguments\": {{\"command\": \"echo seen\"}}}}</tool_call>";
    for choice in [ToolModeChoice::Native, ToolModeChoice::Text] {
        let call = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"echo seen\"}}</tool_call>";
        let desk = Desk::new(
            ScriptedModel::new()
                .says(broken)
                .says(call)
                .says("Done.")
                .start()
                .await,
            set_to(choice),
        )
        .await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (
                outcome.status,
                outcome.response.as_str(),
                outcome.tool_calls
            ),
            (RunStatus::Completed, "Done.", 1),
            "{choice:?}"
        );
        let asked = desk.model.requests()[1]["messages"]
            .as_array()
            .and_then(|all| all.last())
            .expect("a message")
            .to_string();
        assert!(
            asked.contains("Your call of bash could not be read and was not executed."),
            "{asked}"
        );
        desk.model.assert_append_only();
    }
}

#[tokio::test]
async fn an_answer_that_talks_of_an_unreadable_call_is_asked_about_once_and_then_counts() {
    let talk = "I fixed the template. Before, it wrote:\n\n<tool_call>{{\"name\": \"bash\", \"arguments\": {{\"command\": \"ls\"}}}}</tool_call>\n\n\
                Now the braces are single.";
    for choice in [ToolModeChoice::Native, ToolModeChoice::Text] {
        let desk = Desk::new(
            ScriptedModel::new().says(talk).says(talk).start().await,
            set_to(choice),
        )
        .await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (
                outcome.status,
                outcome.response.as_str(),
                outcome.tool_calls
            ),
            (RunStatus::Completed, talk, 0),
            "{choice:?}"
        );
        let asked = desk.model.requests()[1]["messages"]
            .as_array()
            .and_then(|all| all.last())
            .expect("a message")
            .to_string();
        assert!(
            asked.contains("shows what looks like a tool call"),
            "{asked}"
        );
        desk.model.assert_append_only();
    }
    // One who never writes it so that it can be read has failed, and what was said is kept.
    let broken = "I look.\n<tool_call>{{\"name\": \"bash\"}}</tool_call>";
    let desk = desk(ScriptedModel::new().says(broken).says(broken).says(broken)).await;
    let outcome = desk.work("look").await;
    assert_eq!(outcome.status, RunStatus::Failed);
    assert!(
        outcome.response.starts_with("I look."),
        "{}",
        outcome.response
    );
}

#[tokio::test]
async fn a_server_that_holds_no_answer_to_its_schema_is_told_by_text() {
    let tagged = |n: u32| {
        format!(
            "I look.\n<tool_call>\n{{\"name\": \"bash\", \"arguments\": {{\"command\": \"echo {n}\"}}}}\n</tool_call>"
        )
    };
    // As it is, where the scripted server would make an object of ours of it.
    let stream = |text: &str| {
        let chunk = |delta: Value, reason: Value| {
            format!(
                "data: {}\n\n",
                json!({"choices": [{"delta": delta, "finish_reason": reason}]})
            )
        };
        chunk(json!({ "content": text }), Value::Null)
            + &chunk(json!({}), json!("stop"))
            + "data: [DONE]\n\n"
    };
    let to_text = [(ToolMode::Constrained, ToolMode::Text)];
    let begun = || {
        ScriptedModel::new()
            .without_tools()
            .raw_sse(&stream(&tagged(1)))
    };
    let desk = self::desk(
        begun()
            .raw_sse(&stream(&tagged(2)))
            .says(&tagged(3))
            .says("Done."),
    )
    .await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (
            outcome.status,
            outcome.tool_calls,
            outcome.response.as_str()
        ),
        (RunStatus::Completed, 3, "Done."),
        "{outcome:?}"
    );
    assert_eq!(changes(&desk), to_text);
    let requests = desk.model.requests();
    assert_eq!(
        requests.iter().map(told).collect::<Vec<_>>(),
        [(false, true), (false, true), (false, false), (false, false)]
    );
    // What it continues by habit is read as it was: nobody gets an object of ours to read.
    let answers = || {
        ScriptedModel::new()
            .says("{\"answer\": \"Done.\"}")
            .says("{\"answer\": \"Still done.\"}")
    };
    let desk = self::desk(
        begun()
            .raw_sse(&stream(&tagged(2)))
            .says(&echo("3"))
            .says("{\"answer\": \"Done.\"}"),
    )
    .await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (
            outcome.tool_calls,
            outcome.response.as_str(),
            changes(&desk)
        ),
        (3, "Done.", to_text.to_vec()),
        "{outcome:?}"
    );
    let shown = |desk: &Desk| {
        desk.kinds().into_iter().filter_map(|kind| {
            if let Kind::TextDelta { text } = kind {
                Some(text)
            } else {
                None
            }
        })
    };
    assert!(
        shown(&desk).all(|text| !text.contains("answer")),
        "{:?}",
        shown(&desk).collect::<Vec<_>>()
    );
    let again = Desk::new(
        answers().start().await,
        Wishes {
            past: ResumeState::of(&desk.events()),
            ..set_to(ToolModeChoice::Text)
        },
    )
    .await;
    assert_eq!(again.work("still?").await.response, "Done.");
    // Where it never was asked for one, an object is what the user wanted.
    let desk = Desk::new(answers().start().await, set_to(ToolModeChoice::Text)).await;
    assert_eq!(
        desk.work("as JSON").await.response,
        "{\"answer\": \"Done.\"}"
    );
    // One that was held in between begins the count anew, and what the settings say stays.
    let desk = self::desk(
        begun()
            .raw_sse(&stream(&echo("2")))
            .raw_sse(&stream(&tagged(3)))
            .says("Done."),
    )
    .await;
    assert_eq!(
        (
            desk.work("look").await.response.as_str(),
            changes(&desk).len()
        ),
        ("Done.", 0)
    );
    let model = ScriptedModel::new()
        .says(&tagged(1))
        .says(&tagged(2))
        .says(&tagged(3))
        .says("Done.");
    let desk = Desk::new(model.start().await, set_to(ToolModeChoice::Constrained)).await;
    assert_eq!(
        (desk.work("look").await.tool_calls, changes(&desk).len()),
        (3, 0)
    );
}

#[tokio::test]
async fn a_call_in_a_thought_that_led_to_nothing_else_is_carried_out() {
    let thought = "I should look.\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"echo found\"}}\n</tool_call>";
    let desk = desk(ScriptedModel::new().thinks(thought).says("").says("Done.")).await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls, outcome.turns),
        (RunStatus::Completed, 1, 2)
    );
    assert!(desk.results(1)[0].contains("found"));
    assert!(changes(&desk).is_empty());

    // However tools are told.
    for choice in [ToolModeChoice::Constrained, ToolModeChoice::Text] {
        let model = ScriptedModel::new().thinks(thought).says("").says("Done.");
        let desk = Desk::new(model.start().await, set_to(choice)).await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (outcome.status, outcome.tool_calls, outcome.turns),
            (RunStatus::Completed, 1, 2),
            "{choice:?} {outcome:?}"
        );
        desk.model.assert_append_only();
    }

    // One that was only thought about is none.
    let desk = self::desk(
        ScriptedModel::new()
            .thinks(&format!("{thought}\nNo, better not."))
            .says("")
            .says("No."),
    )
    .await;
    assert_eq!(desk.work("look").await.tool_calls, 0);
    let desk = self::desk(ScriptedModel::new().thinks(thought).says("I will not.")).await;
    assert_eq!(desk.work("look").await.tool_calls, 0);
}

#[tokio::test]
async fn a_model_that_says_nothing_when_it_is_told_of_tools_is_told_otherwise_and_it_stays_so() {
    let model = ScriptedModel::new()
        .says("")
        .says(&echo("one"))
        .says("{\"answer\": \"Done.\"}")
        .says("{\"answer\": \"Again.\"}");
    let desk = desk(model).await;
    let outcome = desk.work("echo").await;
    assert_eq!(
        (
            outcome.status,
            outcome.response.as_str(),
            outcome.tool_calls
        ),
        (RunStatus::Completed, "Done.", 1)
    );
    assert_eq!(desk.work("and now?").await.response, "Again.");
    assert_eq!(
        desk.model.requests().iter().map(told).collect::<Vec<_>>(),
        [(true, false), (false, true), (false, true), (false, true)]
    );
    assert_eq!(changes(&desk), ONE_STEP);
    // The log tells a later run how to continue, to the byte.
    let past = ResumeState::of(&desk.events());
    assert_eq!(
        past.beginning.as_ref().map(|beginning| beginning.mode),
        Some(ToolMode::Constrained)
    );
    let wishes = Wishes {
        past,
        ..set_to(ToolModeChoice::Constrained)
    };
    let again = Desk::new(
        ScriptedModel::new()
            .says("{\"answer\": \"Still here.\"}")
            .start()
            .await,
        wishes,
    )
    .await;
    assert_eq!(again.work("still there?").await.response, "Still here.");
    assert!(again.model.heads()[0].starts_with(desk.model.heads().last().expect("requests")));
}

#[tokio::test]
async fn a_person_who_has_set_the_way_is_obeyed() {
    let desk = Desk::new(
        ScriptedModel::new().says("").says("Here.").start().await,
        set_to(ToolModeChoice::Native),
    )
    .await;
    assert_eq!(desk.work("speak").await.response, "Here.");
    let refused = ScriptedModel::new()
        .status(400, error(400, "this model does not support tools"))
        .start()
        .await;
    let desk2 = Desk::new(refused, set_to(ToolModeChoice::Native)).await;
    assert!(matches!(
        desk2.work("speak").await.failure,
        Some(Failure::Model(llm::Error::Status { code: 400, .. }))
    ));
    assert!(changes(&desk).is_empty() && changes(&desk2).is_empty());
}

#[tokio::test]
async fn a_model_that_has_called_natively_may_be_silent() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "true"}))
        .says("")
        .says("Done.");
    let desk = desk(model).await;
    assert_eq!(desk.work("work").await.response, "Done.");
    assert!(changes(&desk).is_empty());
    let wishes = Wishes {
        past: ResumeState::of(&desk.events()),
        ..Wishes::default()
    };
    let again = Desk::new(
        ScriptedModel::new().says("").says("Here.").start().await,
        wishes,
    )
    .await;
    assert_eq!(again.work("still there?").await.response, "Here.");
    assert!(
        changes(&again).is_empty(),
        "also when the session continues"
    );
}

#[tokio::test]
async fn calls_without_what_they_must_have_are_asked_for_by_schema() {
    // All arguments lost: once is enough. One of them forgotten: twice in a row.
    let lost = ScriptedModel::new().raw_call("bash", "{}");
    let forgotten =
        |model: ScriptedModel, path: &str| model.calls("write_file", json!({ "path": path }));
    let forgot = forgotten(forgotten(ScriptedModel::new(), "a"), "b");
    for (model, n) in [(lost, 1), (forgot, 2)] {
        let desk = desk(model.says(&echo("right")).says("{\"answer\": \"Done.\"}")).await;
        let outcome = desk.work("work").await;
        assert_eq!(
            (outcome.status, outcome.tool_calls),
            (RunStatus::Completed, n + 1),
            "{outcome:?}"
        );
        assert_eq!(changes(&desk), ONE_STEP);
        let requests = desk.model.requests();
        assert_eq!(
            (told(&requests[n as usize - 1]), told(&requests[n as usize])),
            ((true, false), (false, true))
        );
        assert!(
            requests[n as usize]["messages"]
                .to_string()
                .contains("is missing"),
            "the model reads what was wrong"
        );
    }
    let desk = desk(
        forgotten(ScriptedModel::new(), "a")
            .calls("bash", json!({"command": "true"}))
            .pipe(|model| forgotten(model, "b"))
            .says("x"),
    )
    .await;
    desk.work("work").await;
    assert!(
        changes(&desk).is_empty(),
        "one mistake now and then is a mistake"
    );
}

#[tokio::test]
async fn what_the_server_could_not_read_is_read_from_its_own_words() {
    let call = "I look.\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"echo found\"}}\n</tool_call>";
    let message = error(500, &format!("Failed to parse input at pos 0: {call}"));
    let sse = format!("data: {message}\n\n");
    // Groq's way to say so.
    let groq = |generation: &str| {
        let message = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.";
        let error = json!({"message": message, "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": generation});
        ScriptedModel::new().status(400, json!({ "error": error }).to_string())
    };
    for model in [
        ScriptedModel::new().status(500, message.as_str()),
        ScriptedModel::new().raw_sse(&sse),
        groq("<function=bash>{\"command\": \"echo found\"}</function>"),
        groq("[{\"name\": \"bash\", \"parameters\": {\"command\": \"echo found\"}}]"),
    ] {
        let desk = desk(model.says("Done.")).await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (outcome.status, outcome.tool_calls, outcome.turns),
            (RunStatus::Completed, 1, 2),
            "{outcome:?}"
        );
        assert!(desk.results(1)[0].contains("found"));
        assert!(changes(&desk).is_empty());
        desk.model.assert_append_only();
    }
}

#[tokio::test]
async fn what_nobody_could_read_is_asked_for_by_schema_over_the_same_conversation() {
    let message = error(
        500,
        "Failed to parse input at pos 31: {\"name\": \"bash\", \"argu",
    );
    let begun = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I look.\"}}]}\n\n";
    for shown in [false, true] {
        let model = if shown {
            ScriptedModel::new().raw_sse(&format!("{begun}data: {message}\n\n"))
        } else {
            ScriptedModel::new().status(500, message.as_str())
        };
        let desk = desk(model.says(&echo("found")).says("{\"answer\": \"Done.\"}")).await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (
                outcome.status,
                outcome.response.as_str(),
                outcome.tool_calls
            ),
            (RunStatus::Completed, "Done.", 1),
            "{outcome:?}"
        );
        let requests = desk.model.requests();
        assert_eq!(
            requests.iter().map(told).collect::<Vec<_>>(),
            [(true, false), (true, true), (true, true)]
        );
        assert!(
            requests[1..]
                .iter()
                .all(|request| request["tool_choice"] == "none")
        );
        assert_eq!(
            requests[2]["messages"]
                .as_array()
                .and_then(|messages| messages.last())
                .map(|last| &last["role"]),
            Some(&json!("tool"))
        );
        assert_eq!(changes(&desk), ONE_STEP);
        desk.model.assert_append_only();
        // Nor is it asked for again in vain by whoever continues the session, unless that person
        // has set the way.
        for (choice, is_held) in [
            (ToolModeChoice::Auto, true),
            (ToolModeChoice::Native, false),
        ] {
            let wishes = Wishes {
                past: ResumeState::of(&desk.events()),
                ..set_to(choice)
            };
            let again = Desk::new(
                ScriptedModel::new()
                    .says("{\"answer\": \"Still here.\"}")
                    .start()
                    .await,
                wishes,
            )
            .await;
            again.work("still there?").await;
            assert_eq!(told(&again.model.requests()[0]), (true, is_held));
            assert!(
                again.model.heads()[0].starts_with(desk.model.heads().last().expect("requests"))
            );
        }
    }
}

#[tokio::test]
async fn what_the_server_could_not_read_is_read_or_asked_for_again_however_tools_were_told() {
    let refused = |raw: &str| error(500, &format!("Failed to parse input at pos 0: {raw}"));
    let call = "{\"tool\": \"bash\", \"arguments\": {\"command\": \"echo found\"}}";
    let told = |choice| Wishes {
        llm: llm::Options {
            tool_mode: choice,
            retries: 2,
            ..llm::Options::default()
        },
        ..Wishes::default()
    };
    for choice in [ToolModeChoice::Constrained, ToolModeChoice::Text] {
        for raw in [call.to_owned(), format!("<tool>{call}</tool>")] {
            let desk = Desk::new(
                ScriptedModel::new()
                    .status(500, refused(&raw))
                    .says("Done.")
                    .start()
                    .await,
                told(choice),
            )
            .await;
            let outcome = desk.work("look").await;
            assert_eq!(
                (outcome.status, outcome.tool_calls, outcome.turns),
                (RunStatus::Completed, 1, 2),
                "{raw} {outcome:?}"
            );
        }
        // The next answer may be another one, but not for ever.
        let failing = |n: u32| {
            (0..n).fold(ScriptedModel::new(), |model, _| {
                model.status(500, refused("Let me think."))
            })
        };
        let desk = Desk::new(failing(2).says("Done.").start().await, told(choice)).await;
        assert_eq!(desk.work("look").await.status, RunStatus::Completed);
        assert!(changes(&desk).is_empty());
        let desk = Desk::new(failing(9).start().await, told(choice)).await;
        assert_eq!(
            (desk.work("look").await.status, desk.model.requests().len()),
            (RunStatus::Failed, 3)
        );
    }
    // Where the way may change, a schema that does not help is given up.
    let model = (0..2).fold(ScriptedModel::new(), |model, _| {
        model.status(500, refused("Let me think."))
    });
    let desk = Desk::new(
        model.without_tools().says("Done.").start().await,
        told(ToolModeChoice::Auto),
    )
    .await;
    assert_eq!(desk.work("look").await.status, RunStatus::Completed);
    assert_eq!(changes(&desk), [(ToolMode::Constrained, ToolMode::Text)]);
}

#[tokio::test]
async fn a_call_that_the_server_reports_is_one_however_tools_were_told() {
    for (choice, beside, words) in [
        (ToolModeChoice::Constrained, "", ""),
        (
            ToolModeChoice::Constrained,
            "{\"answer\": \"I look.\"}",
            "I look.",
        ),
        (
            ToolModeChoice::Text,
            "I look.\n<tool>{\"tool\": \"bash\", \"arguments\": {\"command\": \"touch b\"}}</tool>",
            "I look.",
        ),
    ] {
        let function = json!({"name": "bash", "arguments": "{\"command\": \"touch a\"}"});
        let said = json!({"choices": [{"index": 0, "delta": {"content": beside}}]});
        let called = json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1", "function": function}]}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
        let events: String = [said, called, end]
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        let model = ScriptedModel::new()
            .raw_sse(&events)
            .says("Done.")
            .start()
            .await;
        let desk = Desk::new(model, set_to(choice)).await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (
                outcome.status,
                outcome.tool_calls,
                outcome.response.as_str()
            ),
            (RunStatus::Completed, 1, "Done."),
            "{beside}"
        );
        assert!(
            desk.guest.path("a").exists() && !desk.guest.path("b").exists(),
            "{beside}"
        );
        let said = desk.kinds().into_iter().find_map(|kind| {
            if let Kind::AssistantMessage { text, .. } = kind {
                Some(text)
            } else {
                None
            }
        });
        assert_eq!(said.as_deref(), Some(words));
    }
}

#[tokio::test]
async fn templates_that_want_roles_otherwise_get_them_so() {
    let roles = || {
        error(
            500,
            "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...",
        )
    };
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo found"}))
        .status(500, roles());
    let desk = desk(model.says(&echo("more")).says("{\"answer\": \"Done.\"}")).await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls),
        (RunStatus::Completed, 2),
        "{outcome:?}"
    );
    assert_eq!(changes(&desk), ONE_STEP);
    assert!(
        desk.told(2).contains("Tool bash returned:\nfound"),
        "{}",
        desk.told(2)
    );

    let system = || error(400, "System role not supported");
    let desk = self::desk(
        ScriptedModel::new()
            .status(400, system())
            .calls("bash", json!({"command": "true"}))
            .says("Done."),
    )
    .await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls),
        (RunStatus::Completed, 1),
        "{outcome:?}"
    );
    let requests = desk.model.requests();
    assert_eq!(
        (
            &requests[0]["messages"][0]["role"],
            &requests[1]["messages"][0]["role"]
        ),
        (&json!("system"), &json!("user"))
    );
    let first = requests[1]["messages"][0]["content"]
        .as_str()
        .expect("a text");
    assert!(
        requests[0]["messages"][0]["content"]
            .as_str()
            .is_some_and(|system| first.starts_with(system))
            && first.ends_with("look")
    );
    assert!(changes(&desk).is_empty() && requests.len() == 3);
    let past = ResumeState::of(&desk.events());
    let again = Desk::new(
        ScriptedModel::new().says("Still here.").start().await,
        Wishes {
            past,
            ..Wishes::default()
        },
    )
    .await;
    again.work("still there?").await;
    assert!(
        again.model.heads()[0].starts_with(desk.model.heads().last().expect("requests")),
        "whoever continues tells it so too"
    );

    // A template that is never content is an error, soon.
    let desk =
        self::desk((0..9).fold(ScriptedModel::new(), |model, _| model.status(500, roles()))).await;
    let outcome = desk.work("look").await;
    assert!(
        matches!(outcome.failure, Some(Failure::Model(_))) && desk.model.requests().len() == 3,
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_server_that_knows_neither_tools_nor_schemas_is_told_by_text() {
    let model = ScriptedModel::new()
        .without_props()
        .status(400, error(400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"))
        .status(400, error(400, "response_format of type json_schema is not supported"))
        .says("<tool>{\"tool\": \"bash\", \"arguments\": {\"command\": \"echo found\"}}</tool>")
        .says("Done.");
    let desk = desk(model).await;
    let outcome = desk.work("look").await;
    assert_eq!(
        (
            outcome.status,
            outcome.response.as_str(),
            outcome.tool_calls
        ),
        (RunStatus::Completed, "Done.", 1),
        "{outcome:?}"
    );
    assert_eq!(
        changes(&desk),
        [
            (ToolMode::Native, ToolMode::Constrained),
            (ToolMode::Constrained, ToolMode::Text)
        ]
    );
    assert_eq!(
        outcome.turns, 2,
        "what is asked otherwise is the same turn: each way is tried once"
    );
    assert_ne!(outcome.limit, Some(LimitKind::Turns));
}

trait Pipe: Sized {
    fn pipe(self, with: impl FnOnce(Self) -> Self) -> Self {
        with(self)
    }
}

impl Pipe for ScriptedModel {}

#[tokio::test]
async fn a_failure_that_says_nothing_of_the_tools_leaves_the_way_they_are_told_alone() {
    let new = ScriptedModel::new;
    for (what, model) in [
        (
            "a status 500",
            new().status(500, error(500, "out of memory")),
        ),
        ("a stall", new().stall(MINUTE)),
        (
            "a stall after some words",
            new().drips("{\"answer\": \"Half an ans", 100, MINUTE),
        ),
        (
            "a key that is refused",
            new().status(401, error(401, "Invalid API Key")),
        ),
        (
            "too many requests",
            new().status_with(
                429,
                "Retry-After: 0\r\n",
                error(429, "tools are not supported while we are busy"),
            ),
        ),
        ("a connection that breaks", new().raw_http(Vec::new())),
        (
            "an answer that breaks off",
            new().dies_mid_answer("Half an ans"),
        ),
        (
            "an error in the stream",
            new().sse_error(json!({"code": 500, "message": "out of memory"})),
        ),
        ("a page", new().html()),
        (
            "a bad request",
            new().status(400, error(400, "bad request")),
        ),
    ] {
        for (tools, retries) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
            let model = model.clone().says("Done.");
            let model = if tools { model } else { model.without_tools() };
            let llm = llm::Options {
                retries,
                idle_timeout_s: 0.3,
                ..llm::Options::default()
            };
            let desk = Desk::new(
                model.start().await,
                Wishes {
                    llm,
                    ..Wishes::default()
                },
            )
            .await;
            let mut outcome = desk.work("do it").await;
            if outcome.status != RunStatus::Completed {
                outcome = desk.work("once more").await;
            }
            assert_eq!(
                (outcome.status, outcome.response.as_str()),
                (RunStatus::Completed, "Done."),
                "{what}: {outcome:?}"
            );
            assert_eq!(changes(&desk), [], "{what}");
            let requests = desk.model.requests();
            let streamed: Vec<&Value> = requests
                .iter()
                .filter(|request| request["stream"] == true)
                .collect();
            assert_eq!(streamed.len(), 2, "{what}");
            assert!(
                streamed
                    .iter()
                    .all(|request| told(request) == (tools, !tools)),
                "{what}: {requests:?}"
            );
        }
    }
}
