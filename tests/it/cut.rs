//! Answers that something cut: a limit of tokens, or a filter of the server.

use podbay::agent::Failure;
use podbay::app::Error;
use podbay::event::Kind;
use podbay::event::LimitKind;
use podbay::event::RunStatus;
use podbay::llm;
use podbay::llm::ToolModeChoice;
use serde_json::Value;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

async fn desk(model: ScriptedModel) -> Desk {
    desk_of(ToolModeChoice::Auto, model).await
}

async fn desk_of(tool_mode: ToolModeChoice, model: ScriptedModel) -> Desk {
    let llm = llm::Options {
        tool_mode,
        ..Wishes::default().llm
    };
    let desk = Desk::new(
        model.start().await,
        Wishes {
            llm,
            ..Wishes::default()
        },
    )
    .await;
    std::fs::write(desk.guest.path("a"), "this is a\n").expect("written");
    desk
}

/// An answer that ends for this reason.
fn answer(deltas: &[Value], reason: &str) -> String {
    let chunk = |delta: &Value, reason: Value| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": delta, "finish_reason": reason}]})
        )
    };
    let all: String = deltas
        .iter()
        .map(|delta| chunk(delta, Value::Null))
        .collect();
    all + &chunk(&json!({}), json!(reason)) + "data: [DONE]\n\n"
}

fn call(index: u32, name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "function": {"name": name, "arguments": arguments}}]})
}

fn text(text: &str) -> Value {
    json!({ "content": text })
}

fn warnings(desk: &Desk, words: &str) -> usize {
    desk.kinds()
        .iter()
        .filter(|kind| matches!(kind, Kind::Warning { message } if message.contains(words)))
        .count()
}

#[tokio::test]
async fn half_a_call_is_not_carried_out_and_the_model_hears_what_cut_it() {
    let half = r#"{"path": "a", "content": "half a fi"#;
    let told = "Your call of write_file was cut off by the limit of tokens for one answer, before its end, and was not executed.";
    let whole = call(0, "read_file", r#"{"path": "a"}"#);
    let cut = answer(
        &[text("I write."), whole, call(1, "write_file", half)],
        "length",
    );
    let desk = self::desk(ScriptedModel::new().raw_sse(&cut).says("Done.")).await;
    let outcome = desk.work("write").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls, outcome.n_succeeded),
        (RunStatus::Completed, 1, 1),
        "{outcome:?}"
    );
    assert!(
        desk.results(1)[0].contains("this is a") && desk.told(1).contains(told),
        "{}",
        desk.told(1)
    );
    assert_eq!(
        std::fs::read_to_string(desk.guest.path("a")).expect("there"),
        "this is a\n"
    );
    assert_eq!(warnings(&desk, "the answer was truncated"), 1);
    desk.model.assert_append_only();

    // Alone in its answer, as an object of ours, and so short that only its name came.
    let ours = text(r#"{"tool": "write_file", "arguments": {"path": "a", "content": "half"#);
    for (model, delta) in [
        (ScriptedModel::new(), call(0, "write_file", half)),
        (ScriptedModel::new().without_tools(), ours),
        (ScriptedModel::new(), call(0, "write_file", "")),
    ] {
        let cut = answer(&[delta], "length");
        let desk = self::desk(model.raw_sse(&cut).raw_sse(&cut).raw_sse(&cut)).await;
        let outcome = desk.work("write").await;
        assert!(
            matches!(
                &outcome.failure,
                Some(Failure::Misunderstood { count: 3, .. })
            ),
            "{outcome:?}"
        );
        let hint = outcome
            .failure
            .as_ref()
            .and_then(Failure::hint)
            .expect("a hint");
        assert!(hint.contains("llm.max_output_tokens"), "{hint}");
        assert!(
            desk.told(1).contains(told) && desk.told(2).contains(told),
            "{}",
            desk.told(1)
        );
        assert!(desk.reached().is_empty(), "{:?}", desk.reached());
    }

    // What is no JSON although nothing cut it keeps its own words.
    let desk = self::desk(
        ScriptedModel::new()
            .raw_sse(&answer(&[call(0, "write_file", half)], "tool_calls"))
            .says("Done."),
    )
    .await;
    desk.work("write").await;
    assert!(
        desk.results(1)[0].contains("not valid JSON"),
        "{:?}",
        desk.results(1)
    );
}

#[tokio::test]
async fn a_thought_that_takes_all_the_tokens_is_told_so() {
    let cut = answer(
        &[json!({"reasoning_content": "Let me think about that."})],
        "length",
    );
    let desk = self::desk(ScriptedModel::new().raw_sse(&cut).says("Done.")).await;
    assert_eq!(desk.work("think").await.response, "Done.");
    assert!(
        desk.told(1)
            .contains("reached the limit of tokens before it said anything"),
        "{}",
        desk.told(1)
    );
    assert_eq!(warnings(&desk, "the answer was truncated"), 1);
}

#[tokio::test]
async fn an_answer_that_is_cut_off_goes_on_and_is_one_answer() {
    let piece = |words: &str| answer(&[text(words)], "length");
    let desk = self::desk(
        ScriptedModel::new()
            .raw_sse(&piece("One, "))
            .raw_sse(&piece("two, "))
            .says("three."),
    )
    .await;
    let outcome = desk.work("count").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str(), outcome.turns),
        (RunStatus::Completed, "One, two, three.", 3)
    );
    assert!(
        desk.told(1).contains("Continue exactly where it stopped"),
        "{}",
        desk.told(1)
    );
    desk.model.assert_append_only();
    // A call in between makes what came before it no part of the answer.
    let calls = answer(&[call(0, "read_file", r#"{"path": "a"}"#)], "tool_calls");
    let desk = self::desk(
        ScriptedModel::new()
            .raw_sse(&piece("I loo"))
            .raw_sse(&calls)
            .says("Done."),
    )
    .await;
    assert_eq!(desk.work("look").await.response, "Done.");
    // So it is where nothing can continue it.
    let lost = ScriptedModel::new()
        .raw_sse(&piece("One, "))
        .exceeds_context(9001, 8192);
    let outcome = self::desk(lost).await.work("count").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Limit, "One, ")
    );
    // One that never ends is what there is of it.
    let endless = (0..4).fold(ScriptedModel::new(), |model, _| {
        model.raw_sse(&piece("on "))
    });
    let desk = self::desk(endless).await;
    let outcome = desk.work("talk").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str(), outcome.turns),
        (RunStatus::Limit, "on on on on ", 4)
    );
    assert_eq!(
        outcome.limit,
        Some(LimitKind::Tokens),
        "whoever reads it is not to take it for the whole"
    );
    assert_eq!(
        warnings(
            &desk,
            "the answer is incomplete: it reached the token limit of one answer 4 times in a row"
        ),
        1
    );
    // It can be resumed.
    let next = ScriptedModel::new()
        .raw_sse(&piece("on "))
        .raw_sse(&piece("on "))
        .raw_sse(&piece("on "))
        .raw_sse(&piece("on "))
        .says("off.");
    let desk = self::desk(next).await;
    desk.work("talk").await;
    assert_eq!(desk.work("continue").await.response, "off.");
    desk.model.assert_append_only();
}

#[tokio::test]
async fn the_end_of_a_call_that_was_cut_is_no_answer() {
    let half = "I will.\n<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"lt.txt\", \"content\": \"aaa";
    let rest = "bbb\"}}\n</tool_call>";
    let cut = |words: &str| answer(&[text(words)], "length");
    let whole = json!({"path": "lt.txt", "content": "aaabbb"});
    let (bb, b) = ("bb", "b\"}}\n</tool_call>");
    for choice in [ToolModeChoice::Native, ToolModeChoice::Text] {
        // The tail of a tail is one too.
        let model = ScriptedModel::new()
            .raw_sse(&cut(half))
            .raw_sse(&cut(bb))
            .says(b);
        let desk = desk_of(
            choice,
            model.calls("write_file", whole.clone()).says("Done."),
        )
        .await;
        let outcome = desk.work("write").await;
        assert_eq!(
            (
                outcome.status,
                outcome.response.as_str(),
                outcome.n_succeeded
            ),
            (RunStatus::Completed, "Done.", 1),
            "{outcome:?}"
        );
        assert!(
            desk.told(1).contains("was cut off by the limit of tokens"),
            "{}",
            desk.told(1)
        );
        assert!(
            desk.told(3)
                .contains("Your answer is the end of a call whose beginning was cut off"),
            "{}",
            desk.told(3)
        );
        assert_eq!(
            std::fs::read_to_string(desk.guest.path("lt.txt")).expect("there"),
            "aaabbb"
        );
        desk.model.assert_append_only();
    }
    // A server that is asked for an object of ours and does not care.
    let desk = desk_of(
        ToolModeChoice::Constrained,
        ScriptedModel::new()
            .raw_sse(&cut(half))
            .says(rest)
            .says("I cannot."),
    )
    .await;
    assert_eq!(desk.work("write").await.response, "I cannot.");
    assert!(
        desk.told(2).contains("the end of a call") && desk.reached().is_empty(),
        "{}",
        desk.told(2)
    );
    let desk = self::desk(
        ScriptedModel::new()
            .raw_sse(&cut(half))
            .says(rest)
            .says(rest)
            .says("Never."),
    )
    .await;
    let outcome = desk.work("write").await;
    assert!(
        matches!(
            &outcome.failure,
            Some(Failure::Misunderstood { count: 3, .. })
        ),
        "{outcome:?}"
    );
    assert!(
        outcome.response.is_empty() && desk.reached().is_empty(),
        "{outcome:?}"
    );
    // One in a block of code that is all of the answer.
    let (half, rest) = (
        "```json\n{\"name\": \"bash\", \"argu",
        "ments\": {\"command\": \"ls\"}}\n```",
    );
    let desk = self::desk(
        ScriptedModel::new()
            .raw_sse(&cut(half))
            .says(rest)
            .says("I cannot."),
    )
    .await;
    assert_eq!(desk.work("list").await.response, "I cannot.");
    assert!(
        desk.told(1).contains("Continue exactly where it stopped")
            && desk.told(2).contains("the end of a call"),
        "{}",
        desk.told(2)
    );
}

#[tokio::test]
async fn an_example_that_was_cut_is_part_of_the_answer() {
    let pieces = [
        "Example:\n```\n<tool_call>\n{\"name\": \"bash\", ",
        "\"arguments\": {\"command\": \"echo q\"}}\n</tool_call>\n",
        "```\nand that is all.",
    ];
    let split = [
        "Example:\n```\n",
        "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ec",
        "ho q\"}}\n</tool_call>\n```\nand that is all.",
    ];
    for pieces in [pieces, split] {
        for choice in [ToolModeChoice::Native, ToolModeChoice::Text] {
            let cut = |words: &str| answer(&[text(words)], "length");
            let model = ScriptedModel::new()
                .raw_sse(&cut(pieces[0]))
                .raw_sse(&cut(pieces[1]))
                .says(pieces[2])
                .says("Never.");
            let desk = desk_of(choice, model).await;
            let outcome = desk.work("explain").await;
            // Without the closing tag: where it may end the answer it says nothing.
            let dense = |text: &str| {
                text.replace("</tool_call>", "")
                    .split_whitespace()
                    .collect::<String>()
            };
            assert_eq!(
                (outcome.status, dense(&outcome.response)),
                (RunStatus::Completed, dense(&pieces.concat())),
                "{outcome:?}"
            );
            let shown: String = desk
                .kinds()
                .iter()
                .filter_map(|kind| {
                    if let Kind::TextDelta { text } = kind {
                        Some(text.as_str())
                    } else {
                        None
                    }
                })
                .collect();
            assert!(outcome.response == pieces.concat(), "{outcome:?}");
            assert_eq!(dense(&shown), dense(&pieces.concat()));
            assert!(
                desk.told(1).contains("Continue exactly where it stopped")
                    && desk.reached().is_empty(),
                "{}",
                desk.told(1)
            );
            desk.model.assert_append_only();
        }
    }
}

#[tokio::test]
async fn the_end_of_a_reported_call_that_was_cut_is_no_answer_either() {
    let half = call(0, "write_file", r#"{"path": "lt.txt", "content": "aaa"#);
    let whole = json!({"path": "lt.txt", "content": "aaabbb"});
    // At once, and in pieces of its own.
    for ends in [
        vec![("bbb\"}", "stop")],
        vec![("bb", "length"), ("b\"}}\n</tool_call>", "stop")],
    ] {
        let model =
            ScriptedModel::new().raw_sse(&answer(&[text("I write."), half.clone()], "length"));
        let model = ends.iter().fold(model, |model, (words, reason)| {
            model.raw_sse(&answer(&[text(words)], reason))
        });
        let desk = self::desk(model.calls("write_file", whole.clone()).says("Done.")).await;
        let outcome = desk.work("write").await;
        assert_eq!(
            (
                outcome.status,
                outcome.response.as_str(),
                outcome.n_succeeded
            ),
            (RunStatus::Completed, "Done.", 1),
            "{outcome:?}"
        );
        assert!(
            desk.told(1).contains("was cut off by the limit of tokens"),
            "{}",
            desk.told(1)
        );
        assert!(
            desk.told(ends.len() + 1)
                .contains("Your answer is the end of a call whose beginning was cut off"),
            "{outcome:?}"
        );
        assert_eq!(
            std::fs::read_to_string(desk.guest.path("lt.txt")).expect("there"),
            "aaabbb"
        );
        desk.model.assert_append_only();
    }
    // Behind one that is whole, too; other words are an answer, and nothing of the call was ever
    // one.
    let beside = [
        call(0, "read_file", r#"{"path": "a"}"#),
        call(1, "write_file", r#"{"path": "lt.txt", "content": "aaa"#),
    ];
    let model = ScriptedModel::new()
        .raw_sse(&answer(&beside, "length"))
        .says("bbb\"}")
        .says("I cannot \"write\" that.");
    let desk = self::desk(model).await;
    let outcome = desk.work("write").await;
    assert_eq!(
        (outcome.response.as_str(), outcome.tool_calls),
        ("I cannot \"write\" that.", 1),
        "{outcome:?}"
    );
    assert!(
        desk.told(2).contains("the end of a call"),
        "{}",
        desk.told(2)
    );
    let shown = desk
        .kinds()
        .iter()
        .any(|kind| matches!(kind, Kind::TextDelta { text } if text.contains("aaa")));
    assert!(!shown && !desk.guest.path("lt.txt").exists());
}

#[tokio::test]
async fn a_tag_that_is_cut_within_itself_begins_a_call_all_the_same() {
    let rest = "ll>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"touch planted\"}}\n</tool_call>\nDone so.";
    for choice in [ToolModeChoice::Native, ToolModeChoice::Text] {
        let cut = answer(&[text("I look.\n<tool_ca")], "length");
        let desk = desk_of(
            choice,
            ScriptedModel::new()
                .raw_sse(&cut)
                .says(rest)
                .says("I am done."),
        )
        .await;
        let outcome = desk.work("look").await;
        assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
        assert!(outcome.response.ends_with("I am done."), "{outcome:?}");
        assert!(
            !desk.guest.path("planted").exists() && desk.reached().is_empty(),
            "{:?}",
            desk.reached()
        );
    }
}

#[tokio::test]
async fn pieces_of_an_answer_keep_their_blanks_and_lose_the_end_of_the_object_around_them() {
    for (choice, first, second, expected) in [
        (
            ToolModeChoice::Text,
            "Half an",
            " answer.\n",
            "Half an answer.",
        ),
        (
            ToolModeChoice::Native,
            "I think so.\n</think>\nHalf an ",
            "answer.",
            "Half an answer.",
        ),
        (
            ToolModeChoice::Text,
            "I think so.\n</think>\nHalf an ",
            "answer.",
            "Half an answer.",
        ),
        (
            ToolModeChoice::Constrained,
            "{\"answer\": \"Half an",
            " answer.\"}",
            "Half an answer.",
        ),
        (
            ToolModeChoice::Constrained,
            "{\"answer\": \"Half an",
            " \\\"answer\\\".\"}\n```",
            "Half an \"answer\".",
        ),
        (
            ToolModeChoice::Constrained,
            "{\"answer\": \"def f():\\n",
            "    return {\"a\": \"b\"}",
            "def f():\n    return {\"a\": \"b\"}",
        ),
        (
            ToolModeChoice::Constrained,
            "{\"answer\": \"Code:\\n```py\\ndef f():\\n",
            "    return 1\n```\ndone\"}",
            "Code:\n```py\ndef f():\n    return 1\n```\ndone",
        ),
        (
            ToolModeChoice::Constrained,
            "Half an",
            " answer with {\"a\": \"b\"}",
            "Half an answer with {\"a\": \"b\"}",
        ),
    ] {
        let model = ScriptedModel::new()
            .raw_sse(&answer(&[text(first)], "length"))
            .says(second);
        let desk = desk_of(choice, model).await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (outcome.status, outcome.response.as_str()),
            (RunStatus::Completed, expected),
            "{choice:?} {first}|{second}"
        );
    }
    // The next pieces are in it still.
    let model = ScriptedModel::new().raw_sse(&answer(&[text("{\"answer\": \"One")], "length"));
    let model = model
        .raw_sse(&answer(&[text(" two")], "length"))
        .says(" three.\"}");
    assert_eq!(
        desk_of(ToolModeChoice::Constrained, model)
            .await
            .work("count")
            .await
            .response,
        "One two three."
    );
}

/// What people see while an answer comes is what scripts read at its end.
#[tokio::test]
async fn the_pieces_that_were_shown_are_the_answer_with_all_its_blanks() {
    for choice in [
        ToolModeChoice::Native,
        ToolModeChoice::Text,
        ToolModeChoice::Constrained,
    ] {
        for (first, second) in [
            (&["Half", " ", "an"][..], " answer."),
            (&["Half an", " "], "answer."),
            (&["One.", "\n"], "\n- two"),
            (&["One."], "\n\nTwo."),
            (&["a", " ", "\n", " ", "b"], " c"),
        ] {
            let chunks: Vec<_> = first.iter().map(|piece| text(piece)).collect();
            let desk = desk_of(
                choice,
                ScriptedModel::new()
                    .raw_sse(&answer(&chunks, "length"))
                    .says(second),
            )
            .await;
            let outcome = desk.work("look").await;
            let shown: String = desk
                .kinds()
                .into_iter()
                .filter_map(|kind| {
                    if let Kind::TextDelta { text } = kind {
                        Some(text)
                    } else {
                        None
                    }
                })
                .collect();
            let expected = first.concat() + second;
            assert_eq!(
                (outcome.response.as_str(), shown.as_str()),
                (expected.as_str(), expected.as_str()),
                "{choice:?}"
            );
        }
    }
}

/// Returns a desk whose task ends with the answer after one call.
async fn last_answer(tool_mode: ToolModeChoice, model: ScriptedModel) -> Desk {
    let llm = llm::Options {
        tool_mode,
        ..Wishes::default().llm
    };
    let agent = podbay::agent::Options {
        max_turns: 2,
        ..podbay::agent::Options::default()
    };
    Desk::new(
        model.start().await,
        Wishes {
            agent,
            llm,
            ..Wishes::default()
        },
    )
    .await
}

#[tokio::test]
async fn a_last_answer_that_is_cut_is_its_words_and_is_said_to_be_cut() {
    let works = || ScriptedModel::new().calls("bash", json!({"command": "true"}));
    let ours = || {
        ScriptedModel::new().says("{\"tool\": \"bash\", \"arguments\": {\"command\": \"true\"}}")
    };
    let tagged = || {
        ScriptedModel::new()
            .says("<tool>{\"tool\": \"bash\", \"arguments\": {\"command\": \"true\"}}</tool>")
    };
    let example = "Call it so:\n```\n<tool>{\"tool\": \"bash\", \"argum";
    for (choice, model, said, expected) in [
        (
            ToolModeChoice::Native,
            works(),
            "It holds {} and",
            "It holds {} and",
        ),
        (
            ToolModeChoice::Constrained,
            ours(),
            "{\"answer\": \"It holds {} and",
            "It holds {} and",
        ),
        (
            ToolModeChoice::Constrained,
            ours(),
            "{\n  \"answer\": \"It holds {} and",
            "It holds {} and",
        ),
        (
            ToolModeChoice::Constrained,
            ours(),
            "```json\n{\"answer\": \"It holds {} and",
            "It holds {} and",
        ),
        (
            ToolModeChoice::Text,
            tagged(),
            "It holds {} and",
            "It holds {} and",
        ),
        (ToolModeChoice::Text, tagged(), example, example),
    ] {
        let desk = last_answer(choice, model.raw_sse(&answer(&[text(said)], "length"))).await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (outcome.status, outcome.limit, outcome.tool_calls),
            (RunStatus::Limit, Some(LimitKind::Turns), 1),
            "{outcome:?}"
        );
        assert_eq!(outcome.response, expected, "{choice:?} {said}");
        assert_eq!(
            warnings(&desk, "the last answer is incomplete"),
            1,
            "{choice:?} {said}"
        );
    }
    // One that comes to its end says nothing of that.
    let desk = last_answer(
        ToolModeChoice::Constrained,
        ours().says("{\n\"answer\": \"It holds {}.\"}"),
    )
    .await;
    assert_eq!(
        (
            desk.work("look").await.response.as_str(),
            warnings(&desk, "incomplete")
        ),
        ("It holds {}.", 0)
    );
    // Half an object that the server takes for a whole one is words too, and so is one of a model
    // that was held to a schema before.
    let desk = last_answer(
        ToolModeChoice::Constrained,
        ours().says("{\n\"answer\": \"It holds {} and"),
    )
    .await;
    assert_eq!(desk.work("look").await.response, "It holds {} and");
    let failed =
        json!({"error": {"code": 500, "message": "Failed to parse input at pos 0: {\"na"}})
            .to_string();
    let held = ScriptedModel::new()
        .status(500, failed)
        .says("{\"tool\": \"bash\", \"arguments\": {\"command\": \"true\"}}");
    let desk = last_answer(
        ToolModeChoice::Auto,
        held.says("{\"answer\": \"It holds {}.\"}"),
    )
    .await;
    assert_eq!(desk.work("look").await.response, "It holds {}.");
}

#[tokio::test]
async fn half_an_answer_that_stands_for_the_last_one_is_said_to_be_half() {
    let cut = json!({"choices": [{"index": 0, "delta": {"content": "Half an ans"}, "finish_reason": "length"}]});
    let sums = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 29_000}});
    let half = || {
        ScriptedModel::new().raw_sse(&format!("data: {cut}\n\ndata: {sums}\n\ndata: [DONE]\n\n"))
    };
    for (model, response, n) in [
        (half().status(500, "{}"), "Half an ans", 1),
        (half().says(""), "Half an ans", 1),
        (half().says("So far."), "So far.", 0),
    ] {
        let llm = llm::Options {
            max_output_tokens: Some(100_000),
            ..Wishes::default().llm
        };
        let agent = podbay::agent::Options {
            max_tokens: 29_500,
            ..podbay::agent::Options::default()
        };
        let desk = Desk::new(
            model.start().await,
            Wishes {
                agent,
                llm,
                ..Wishes::default()
            },
        )
        .await;
        let outcome = desk.work("work").await;
        assert_eq!(
            (outcome.status, outcome.limit, outcome.response.as_str()),
            (RunStatus::Limit, Some(LimitKind::Tokens), response)
        );
        assert_eq!(
            warnings(&desk, "the last answer is incomplete"),
            n,
            "{:?}",
            desk.kinds()
        );
    }
}

#[tokio::test]
async fn an_answer_that_a_filter_of_the_server_cut_is_none_and_everybody_hears_so() {
    let plants = call(0, "bash", r#"{"command": "touch planted"}"#);
    let cut = answer(&[text("I beg"), plants.clone()], "content_filter");
    let desk = self::desk(ScriptedModel::new().raw_sse(&cut).says("Done.")).await;
    let outcome = desk.work("work").await;
    assert_eq!(
        (
            outcome.status,
            outcome.response.as_str(),
            outcome.tool_calls
        ),
        (RunStatus::Completed, "Done.", 0)
    );
    assert!(
        desk.told(1)
            .starts_with("Your last answer was cut by the content filter"),
        "{}",
        desk.told(1)
    );
    assert!(desk.reached().is_empty() && warnings(&desk, "content filter cut the answer") == 1);
    desk.model.assert_append_only();

    // Work in between begins the count anew.
    let cut = answer(&[text("I beg")], "content_filter");
    let cuts = |model: ScriptedModel| model.raw_sse(&cut).raw_sse(&cut);
    let model = cuts(cuts(ScriptedModel::new()).calls("read_file", json!({"path": "a"})));
    let outcome = self::desk(model.says("Done.")).await.work("work").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str(), outcome.turns),
        (RunStatus::Completed, "Done.", 6)
    );

    // An answer that never comes through is no finished task.
    for (model, deltas, shown) in [
        (ScriptedModel::new(), vec![text("I beg"), plants], "I beg"),
        (ScriptedModel::new(), vec![], ""),
        (
            ScriptedModel::new().without_tools(),
            vec![text("{\"answer\": \"I beg")],
            "I beg",
        ),
    ] {
        let cut = answer(&deltas, "content_filter");
        let desk = self::desk(model.raw_sse(&cut).raw_sse(&cut).raw_sse(&cut)).await;
        let outcome = desk.work("work").await;
        assert_eq!(
            (outcome.status, outcome.response.as_str(), outcome.turns),
            (RunStatus::Failed, shown, 3),
            "{outcome:?}"
        );
        let error = Error::Agent(outcome.failure.expect("a reason"));
        assert_eq!(error.exit_code(), 1);
        let report = error.report();
        assert!(
            report.message.contains("content filter") && !report.hints.is_empty(),
            "{report:?}"
        );
        assert_eq!(warnings(&desk, "content filter cut the answer"), 3);
    }
}
