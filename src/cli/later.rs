//! Words of the command line that scripts may count on and that this build cannot do yet.
//!
//! All of them are taken, so that what is wrong is said in terms of what was meant: none is an
//! unknown flag or a misspelt command. They are not in the help, which promises nothing;
//! `docs/cli.md` lists them.

use std::ffi::OsString;

use clap::Args;

use super::args::BackendFlag;
use super::args::SessionFlags;
use podbay_app as app;
use podbay_ui::text;

/// Flags of `run` and `chat` whose features are still to come.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct LaterFlags {
    /// Not yet: keep what the model said
    #[arg(long, value_name = "FILE", hide = true)]
    record: Option<String>,
    /// Not yet: take what the model said from a file
    #[arg(long, value_name = "FILE", hide = true)]
    replay: Option<String>,
}

/// The flags by which `run` can do without a task.
pub(super) const WITHOUT_TASK: [&str; 5] = ["prompt", "resume", "go_on", "replay", "demo"];

/// Commands that are still to come: the word, what it will do, and what to do instead.
const COMMANDS: [(&str, &str, &str); 5] = [
    (
        "plan",
        "make and follow plans of steps with checks",
        "`podbay run --plan` makes a plan, and --resume ID --implement implements it",
    ),
    (
        "exec",
        "run commands as jobs",
        "podbay sh -- CMD runs one command in the sandbox",
    ),
    (
        "test",
        "run a project's tests",
        "podbay sh -- CMD runs the test command in the sandbox",
    ),
    (
        "batch",
        "work on many tasks",
        "call `podbay run` once for each of them",
    ),
    ("acp", "serve editors", "podbay chat works in any terminal"),
];

fn not_yet(what: &str, instead: &str) -> app::Error {
    app::Error::usage(format!("this build does not have {what} yet"), instead)
}

/// Returns what to say of a command that is still to come.
pub(super) fn command(word: &str) -> Option<app::Error> {
    let (_, does, instead) = COMMANDS.iter().find(|(name, ..)| *name == word)?;
    Some(not_yet(
        &format!("`podbay {word}`, which will {does},"),
        instead,
    ))
}

/// Returns what to say of a word below a command that is none of those it has.
pub(super) fn below(command: &str, known: &[&str], words: &[OsString]) -> app::Error {
    let word = words
        .first()
        .map(|word| word.to_string_lossy())
        .unwrap_or_default();
    let known: Vec<String> = known
        .iter()
        .map(|name| format!("podbay {command} {name}"))
        .collect();
    app::Error::usage(
        format!("`podbay {command} {}` is no command", text::line(&word)),
        format!("there are: {}", known.join(", ")),
    )
}

/// Refuses the flags of a session whose features are still to come.
pub(super) fn session(flags: &SessionFlags) -> Result<(), app::Error> {
    let later = &flags.later;
    let asked = [
        (
            flags.place.backend == Some(BackendFlag::Native),
            "--backend native",
            "use a Docker engine, here or by DOCKER_HOST",
        ),
        (
            later.record.is_some(),
            "--record",
            "--output jsonl prints all that happens, and `podbay sessions show --json` what is kept of it",
        ),
        (
            later.replay.is_some(),
            "--replay",
            "any program that answers like an OpenAI-compatible server can stand in for a model: --endpoint URL",
        ),
    ];
    match asked.into_iter().find(|(is_asked, ..)| *is_asked) {
        Some((_, flag, instead)) => Err(not_yet(flag, instead)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn no_command_that_exists_is_said_to_be_missing() {
        let commands = Arguments::command();
        for (name, ..) in COMMANDS {
            assert!(
                commands.find_subcommand(name).is_none(),
                "{name} exists by now"
            );
        }
    }
}
