//! How much the agent decides by itself: what nobody is asked, and how long it may continue.

use podbay_soak as soak;
use serde_json::json;

use super::chat::Talk;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

/// PERM-10: whoever is not there is asked nothing, and what would need them is not done.
#[test]
fn in_a_chat_that_is_unattended_nobody_is_asked_and_nothing_more_is_allowed() {
    let Some(env) = TestBox::new() else { return };
    let calls = [
        ("write_file", json!({"path": ".env", "content": "KEY=1"})),
        ("ask_user", json!({"question": "Which one?"})),
        ("bash", json!({"command": "touch made"})),
    ];
    for (flags, is_asked) in [
        (&["--preset", "unattended"], false),
        (&["--autonomy", "unattended"], false),
        (&["--autonomy", "auto"], true),
    ] {
        let model = ScriptedModel::new()
            .calls_many(calls.clone())
            .says("Done.")
            .start_blocking();
        let mut talk = Talk::begin(&env, &env.project(), &model, flags);
        talk.sees("> ");
        talk.types("work\n");
        if is_asked {
            talk.sees("Your answer? ");
            std::thread::sleep(std::time::Duration::from_millis(600));
            talk.types("the first\n");
        }
        talk.sees("Done.");
        let screen = talk.leaves();
        assert_eq!(
            (
                screen.contains("Your answer?"),
                screen.contains("Allow it?")
            ),
            (is_asked, false),
            "{flags:?}: {screen}"
        );
        let told = model.requests().last().expect("requests")["messages"].to_string();
        assert_eq!(
            told.contains("No user can answer."),
            !is_asked,
            "{flags:?}: {told}"
        );
        assert!(
            told.contains("Denied: ") && told.contains("protected file .env"),
            "{told}"
        );
        assert_eq!(
            (env.path(".env").exists(), env.path("made").exists()),
            (false, true),
            "{flags:?}"
        );
        std::fs::remove_file(env.path("made")).expect("removed");
    }
    env.assert_no_container();
}

#[test]
fn a_preset_says_how_many_turns_there_are_and_a_flag_says_it_better() {
    let Some(env) = TestBox::new() else { return };
    let all = [
        (&["--preset", "unattended"][..], 50),
        (&["--preset", "standard"], 25),
        (&["--autonomy", "unattended"], 50),
        (&["--preset", "unattended", "--max-turns", "3"], 3),
    ];
    for (flags, n_turns) in soak::sample(all, 2) {
        let model = ScriptedModel::new();
        let model = (0..n_turns + 5).fold(model, |model, n| {
            model.calls("bash", json!({"command": format!("echo turn {n}")}))
        });
        let model = model.start_blocking();
        let result = run(env.task(&model, &["work"]).args(flags))
            .expect(3)
            .json();
        assert_eq!(
            (&result["limit"], &result["turns"]),
            (&json!("turns"), &json!(n_turns)),
            "{flags:?}"
        );
    }
    // `standard` leaves it to the command and the settings how much is asked, and a mode beside a
    // preset could mean either.
    let code = |flags: &[&str], autonomy: &str| {
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": "touch made"}))
            .says("Done.")
            .start_blocking();
        run(env
            .task(&model, &["work"])
            .args(flags)
            .env("PODBAY_POLICY_AUTONOMY", autonomy))
        .code
    };
    for (flags, autonomy, expected) in [
        (&["--preset", "standard"][..], "auto", 0),
        (&["--preset", "standard"], "ask", 4),
        (&["--preset", "unattended"], "ask", 0),
        (&["--preset", "standard", "--mode", "ask"], "auto", 2),
    ] {
        assert_eq!(code(flags, autonomy), expected, "{flags:?} {autonomy}");
    }
    env.assert_no_container();
}
