//! A guest that does not see which programs run: that is said, and with `--strict` nothing is
//! begun.

use podbay::wire::ExecGate;
use podbay::wire::Fault;
use podbay::wire::Output;
use podbay::wire::message::Facts;

use crate::hostile::attached;
use crate::hostile::facts;
use crate::hostile::listen;
use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::test_env::Done;
use crate::support::test_env::run;

/// Runs the program with such a guest, which carries nothing out.
fn with(gate: ExecGate, arguments: &[&str]) -> Done {
    let env = TestEnv::new();
    listen(
        &env.beside("guest.sock"),
        Some(Facts {
            exec_gate: gate,
            ..facts()
        }),
        |guest| {
            loop {
                let id = guest.call()?;
                guest.done(
                    id,
                    Output::Fault(Fault::NotStarted {
                        problem: "not here".to_owned(),
                    }),
                )?;
            }
        },
    );
    let mut command = env.podbay(arguments);
    attached(&env, &mut command);
    run(&mut command)
}

const UNSEEN: &str = "the sandbox does not see which programs run (";
const MEANS: &str = "rules about commands are judged by the text of the command alone, and mode ask asks about every command";

#[test]
fn a_run_says_once_what_it_means_that_programs_are_not_seen() {
    for (gate, cause) in [
        (ExecGate::Absent, Some("gVisor")),
        (ExecGate::Taken, Some("WSL2")),
        (ExecGate::Works, None),
    ] {
        let model = ScriptedModel::new().says("Done.").start_blocking();
        let endpoint = model.endpoint();
        let done = with(
            gate,
            &[
                "run",
                "--output",
                "json",
                "--endpoint",
                &endpoint,
                "--model",
                "scripted",
                "work",
            ],
        )
        .expect(0);
        let warnings = done.json()["warnings"].to_string();
        assert_eq!(
            warnings.matches(UNSEEN).count(),
            usize::from(cause.is_some()),
            "{warnings}"
        );
        assert!(
            cause.is_none_or(|cause| warnings.contains(cause) && warnings.contains(MEANS)),
            "{warnings}"
        );
    }
}

#[test]
fn strict_begins_nothing_where_programs_are_not_seen() {
    for gate in [ExecGate::Absent, ExecGate::Taken] {
        let model = ScriptedModel::new().says("Done.").start_blocking();
        let endpoint = model.endpoint();
        let done = with(
            gate,
            &[
                "run",
                "--strict",
                "--output",
                "json",
                "--endpoint",
                &endpoint,
                "--model",
                "scripted",
                "work",
            ],
        )
        .expect(5);
        let error = done.json()["error"].to_string();
        assert!(
            error.contains("`--strict` refuses")
                && error.contains(UNSEEN)
                && error.contains("podbay doctor"),
            "{error}"
        );
        assert!(model.requests().is_empty());
        with(
            gate,
            &["call", "--strict", "bash", r#"{"command": "true"}"#],
        )
        .expect(5)
        .says(&["`--strict` refuses", UNSEEN]);
    }
    let model = ScriptedModel::new().says("Done.").start_blocking();
    let endpoint = model.endpoint();
    with(
        ExecGate::Works,
        &[
            "run",
            "--strict",
            "--endpoint",
            &endpoint,
            "--model",
            "scripted",
            "work",
        ],
    )
    .expect(0);
}

#[test]
fn a_single_command_says_it_too_and_a_file_tool_has_no_reason_to() {
    with(
        ExecGate::Absent,
        &["call", "bash", r#"{"command": "true"}"#],
    )
    .expect(1)
    .says(&[UNSEEN, MEANS]);
    let done = with(
        ExecGate::Absent,
        &["call", "--strict", "read_file", r#"{"path": "a"}"#],
    )
    .expect(1);
    assert!(!done.stderr.contains(UNSEEN), "{}", done.stderr);
}
