//! A model that goes round in circles, or shows what it should do: it is told so, and then the run
//! ends with its reason.

use podbay::agent;
use podbay::event::Kind;
use podbay::event::LimitKind;
use podbay::event::RunStatus;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

async fn desk(model: ScriptedModel) -> Desk {
    Desk::new(model.start().await, Wishes::default()).await
}

fn warnings(desk: &Desk) -> Vec<String> {
    desk.kinds()
        .into_iter()
        .filter_map(|kind| {
            if let Kind::Warning { message } = kind {
                Some(message)
            } else {
                None
            }
        })
        .collect()
}

/// Returns which requests of the run brought a note of Podbay's, from 0.
fn told(desk: &Desk) -> Vec<usize> {
    (0..desk.model.requests().len())
        .filter(|n| desk.told(*n).starts_with("Note from Podbay: "))
        .collect()
}

#[tokio::test]
async fn a_call_that_fails_again_and_again_is_redirected_and_then_ends_the_run() {
    let spellings = [
        r#"{"path": "no.txt", "limit": 5}"#,
        r#"{"limit":5,"path":"no.txt"}"#,
        r#"{"file_path": "no.txt", "limit": "5"}"#,
        r#"{"path": "././/no.txt", "limit": 5}"#,
    ];
    let model = (0..9).fold(ScriptedModel::new(), |model, n| {
        model.raw_call("read_file", spellings[n % 4])
    });
    let model = model.says("never");
    let desk = desk(model).await;
    let outcome = desk.work("read").await;
    assert_eq!(
        (outcome.status, outcome.limit, outcome.tool_calls),
        (RunStatus::Limit, Some(LimitKind::Stuck), 4),
        "{outcome:?}"
    );
    assert_eq!(told(&desk), [3], "told once, after the third");
    assert!(
        desk.told(3).contains("3 times in a row"),
        "{}",
        desk.told(3)
    );
    let all = warnings(&desk);
    assert!(
        all.iter()
            .any(|warning| warning.contains("is stuck in a loop") && warning.contains("no.txt")),
        "{all:?}"
    );
    // The last word is asked for without tools.
    assert_eq!(desk.model.requests()[4]["tool_choice"], "none");
    desk.model.assert_append_only();
}

#[tokio::test]
async fn circles_of_several_calls_that_bring_nothing_new_are_found() {
    for period in 2..=4 {
        let calls = |model: ScriptedModel, n: u32| {
            model.calls("bash", json!({"command": format!("echo {}", n % period)}))
        };
        let desk = desk((0..40).fold(ScriptedModel::new(), calls)).await;
        let outcome = desk.work("echo").await;
        assert_eq!(
            (outcome.limit, outcome.tool_calls),
            (Some(LimitKind::Stuck), 3 * period),
            "{period}: {outcome:?}"
        );
        assert_eq!(told(&desk), [2 * period as usize], "{period}");
    }
}

#[tokio::test]
async fn work_that_looks_alike_is_no_circle() {
    let edit =
        |from: &str, to: &str| json!({"path": "a.txt", "old_string": from, "new_string": to});
    let test = || json!({"command": "cat a.txt; false"});
    let model = ScriptedModel::new()
        .calls("write_file", json!({"path": "a.txt", "content": "one"}))
        .calls("bash", test())
        .calls("edit_file", edit("one", "two"))
        .calls("bash", test())
        .calls("edit_file", edit("two", "three"))
        .calls("bash", test())
        .calls("edit_file", edit("three", "four"))
        .calls("bash", test())
        .says("Done.");
    let desk = desk(model).await;
    let outcome = desk.work("edit").await;
    assert_eq!(
        (outcome.status, outcome.tool_calls),
        (RunStatus::Completed, 8),
        "{outcome:?}"
    );
    assert!(told(&desk).is_empty());
}

#[tokio::test]
async fn a_result_that_changes_may_be_looked_at_more_often() {
    let poll = || json!({"command": "date +%N >> log; wc -l < log"});
    let desk =
        desk((0..14).fold(ScriptedModel::new(), |model, _| model.calls("bash", poll()))).await;
    let outcome = desk.work("wait").await;
    assert_eq!(
        (outcome.limit, outcome.tool_calls),
        (Some(LimitKind::Stuck), 12),
        "{outcome:?}"
    );
    assert_eq!(told(&desk), [5]);
    assert!(
        desk.told(5)
            .contains("with results that differed. Is waiting what you want?"),
        "{}",
        desk.told(5)
    );
}

#[tokio::test]
async fn the_same_mistake_with_other_arguments_ends_the_run_too() {
    let model = (0..9).fold(ScriptedModel::new(), |model, n| {
        model.calls("fly", json!({"to": format!("place {n}")}))
    });
    let desk = desk(model).await;
    let outcome = desk.work("fly").await;
    assert_eq!(
        (outcome.limit, outcome.tool_calls),
        (Some(LimitKind::Stuck), 4),
        "{outcome:?}"
    );
    assert_eq!(told(&desk), [3]);
    assert!(
        warnings(&desk)
            .iter()
            .any(|warning| warning.contains("the same mistake"))
    );
}

#[tokio::test]
async fn tools_that_are_made_up_anew_each_time_end_the_run() {
    let model = (0..9).fold(ScriptedModel::new(), |model, n| {
        model.calls(&format!("fly_{n}"), json!({}))
    });
    let desk = desk(model).await;
    let outcome = desk.work("fly").await;
    assert_eq!(
        (outcome.limit, outcome.tool_calls),
        (Some(LimitKind::Stuck), 4),
        "{outcome:?}"
    );
    assert_eq!(told(&desk), [3]);
}

#[tokio::test]
async fn each_task_has_its_own_patience_and_settings_say_how_much() {
    let again = |model: ScriptedModel| model.calls("bash", json!({"command": "echo same"}));
    let desk = desk(
        again(again(ScriptedModel::new()))
            .says("one")
            .pipe(&again)
            .pipe(&again)
            .says("two"),
    )
    .await;
    assert_eq!(desk.work("a").await.status, RunStatus::Completed);
    assert_eq!(desk.work("b").await.status, RunStatus::Completed);

    let options = agent::Options {
        abort_at: 0,
        max_turns: 12,
        ..agent::Options::default()
    };
    let model = (0..20)
        .fold(ScriptedModel::new(), |model, _| again(model))
        .start()
        .await;
    let desk = Desk::new(
        model,
        Wishes {
            agent: options,
            ..Wishes::default()
        },
    )
    .await;
    assert_eq!(desk.work("a").await.limit, Some(LimitKind::Turns));
}

#[tokio::test]
async fn code_that_was_only_shown_is_asked_about_once() {
    let shown = "I create `hello.py`:\n```python\nprint('hello')\n```";
    let write = json!({"path": "hello.py", "content": "print('hello')\n"});
    let desk = desk(
        ScriptedModel::new()
            .says(shown)
            .calls("write_file", write)
            .says("Written."),
    )
    .await;
    let outcome = desk.work("write hello.py").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str(), outcome.turns),
        (RunStatus::Completed, "Written.", 3)
    );
    assert!(
        desk.told(1)
            .starts_with("Your answer shows code for a file"),
        "{}",
        desk.told(1)
    );
    assert!(desk.guest.path("hello.py").exists());

    // A look around is no work; a report after work is one.
    let look = || ScriptedModel::new().calls("bash", json!({"command": "ls"}));
    let desk = self::desk(look().says(shown).says("Nothing to do.")).await;
    assert_eq!(desk.work("write hello.py").await.turns, 3);
    let wrote = ScriptedModel::new()
        .calls("bash", json!({"command": "echo 'print(1)' > hello.py"}))
        .says(shown);
    assert_eq!(
        self::desk(wrote).await.work("write hello.py").await.turns,
        2
    );

    // Nobody is asked twice, and what was said last is the answer: it may be a correction.
    let corrected = format!("That was wrong. {shown}");
    let desk = self::desk(ScriptedModel::new().says(shown).says(&corrected)).await;
    let outcome = desk.work("how would hello.py look?").await;
    assert_eq!(
        (outcome.response.as_str(), outcome.turns),
        (corrected.as_str(), 2)
    );

    // Where no more words come, the first ones stand.
    let desk = self::desk(ScriptedModel::new().says(shown).says("").says("").says("")).await;
    let outcome = desk.work("how would hello.py look?").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str(), outcome.turns),
        (RunStatus::Completed, shown, 4),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_call_that_is_only_shown_in_a_block_is_asked_about() {
    let shown = "```json\n{\"name\": \"fly\", \"arguments\": {\"to\": \"Rome\"}}\n```";
    let desk = desk(ScriptedModel::new().says(shown).says("I cannot fly.")).await;
    let outcome = desk.work("fly").await;
    assert_eq!((outcome.status, outcome.turns), (RunStatus::Completed, 2));
    assert!(
        desk.told(1)
            .starts_with("Your answer shows what looks like a tool call"),
        "{}",
        desk.told(1)
    );
}

#[tokio::test]
async fn a_call_that_is_cut_off_is_asked_for_twice_at_most() {
    let cut = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"comm";
    let desk = desk(ScriptedModel::new().says(cut).says(cut).says(cut).says(cut)).await;
    let outcome = desk.work("run").await;
    assert_eq!(
        (outcome.status, outcome.turns),
        (RunStatus::Failed, 3),
        "{outcome:?}"
    );
    assert!(desk.told(1).contains("was cut off") && desk.told(2).contains("was cut off"));
}

/// Its server takes what it cannot read for words, and the end of the answer for its end.
#[tokio::test]
async fn the_bare_beginning_of_a_call_is_no_answer() {
    for cut in [
        "<tool_call>",
        "Let me look at the file.\n<tool_call>\n",
        "<tool_call>\n<function=",
        "I look.\n<tool_call></tool_call>",
    ] {
        let desk = desk(ScriptedModel::new().says(cut).says("All is well.")).await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (outcome.status, outcome.turns, outcome.response.as_str()),
            (RunStatus::Completed, 2, "All is well."),
            "{cut}"
        );
        assert!(
            desk.told(1).contains("was cut off"),
            "{cut}: {}",
            desk.told(1)
        );
    }
    let talk = "It begins with <tool_call>";
    let desk = desk(ScriptedModel::new().says(talk)).await;
    assert_eq!(desk.work("how does a call begin?").await.response, talk);
}

trait Pipe: Sized {
    fn pipe(self, with: &dyn Fn(Self) -> Self) -> Self {
        with(self)
    }
}

impl Pipe for ScriptedModel {}
