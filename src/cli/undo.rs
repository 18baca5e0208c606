use std::fmt::Write as _;
use std::io;
use std::io::IsTerminal;
use std::sync::Arc;

use clap::Args;
use clap::Subcommand;
use serde::Serialize;

use super::args::FormatFlags;
use super::args::OutputFormat;
use super::args::PlaceFlags;
use super::delivery::deliver;
use super::delivery::deliver_json;
use super::flags;
use super::front::Nobody;
use super::other_session::is_meant;
use super::run::listen;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Interrupt;
use podbay_app::Undo;
use podbay_app::exit_code;
use podbay_ui::text;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct UndoArgs {
    #[command(subcommand)]
    command: Option<UndoCommand>,
    #[command(flatten)]
    back: Steps,
}

#[derive(Debug, Subcommand)]
enum UndoCommand {
    /// List the turns that changed something, the newest first
    List(ListArgs),
    /// Show what the last turns changed
    Diff(Count),
    /// Bring back the turn that was undone last, or so many
    Redo(Steps),
    /// Try again what was left as it was, by all turns that were undone or brought back
    Retry(Again),
    /// Finish what was interrupted
    Resume(PlaceFlags),
    /// Give up what was interrupted: what is done stays done
    Abandon(PlaceFlags),
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    format: FormatFlags,
    #[command(flatten)]
    place: PlaceFlags,
}

#[derive(Debug, Args)]
struct Steps {
    /// How many turns
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    n: u32,
    /// Put lines of both sides together where a file was changed since, rather than leave it
    #[arg(long)]
    merge: bool,
    /// Do not ask, also where a turn is not of the last session of the project
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    place: PlaceFlags,
}

#[derive(Debug, Args)]
struct Again {
    /// Put lines of both sides together where a file was changed since, rather than leave it
    #[arg(long)]
    merge: bool,
    #[command(flatten)]
    place: PlaceFlags,
}

#[derive(Debug, Args)]
struct Count {
    /// How many turns
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    n: u32,
    #[command(flatten)]
    place: PlaceFlags,
}

/// Undoes what turns changed, or shows it.
pub(super) async fn undo(args: UndoArgs) -> Result<u8, app::Error> {
    let (mut is_json, mut yes) = (false, true);
    let (order, flags) = match args.command {
        None => {
            yes = args.back.yes;
            let order = Undo::Back {
                n: args.back.n,
                merge: args.back.merge,
                is_beside: false,
            };
            (order, args.back.place)
        }
        Some(UndoCommand::List(args)) => {
            is_json = args.format.is_json();
            (Undo::List, args.place)
        }
        Some(UndoCommand::Diff(count)) => (Undo::Diff { n: count.n }, count.place),
        Some(UndoCommand::Redo(steps)) => {
            yes = steps.yes;
            let order = Undo::Forward {
                n: steps.n,
                merge: steps.merge,
                is_beside: false,
            };
            (order, steps.place)
        }
        Some(UndoCommand::Retry(again)) => (
            Undo::Retry {
                merge: again.merge,
                is_beside: false,
            },
            again.place,
        ),
        Some(UndoCommand::Resume(place)) => (Undo::Resume, place),
        Some(UndoCommand::Abandon(place)) => (Undo::Abandon, place),
    };
    let mut overrides = Vec::new();
    flags::place(&flags, &mut overrides)?;
    let setup = Setup::in_project(&flags.config, flags.path.as_deref(), overrides)?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let shown = if is_json {
        OutputFormat::Json
    } else {
        OutputFormat::Text
    };
    let terminal = setup.terminal(shown);
    setup.show_warnings(&terminal);
    let place = setup.place_without_key(flags.path.as_deref(), app::Mode::Auto)?;
    let front = terminal.front(&interrupt, Arc::new(Nobody));
    if !yes
        && io::stderr().is_terminal()
        && let app::UndoAnswer::Turns(turns) = app::undo(&place, Undo::List, &front).await?
    {
        let (doing, sessions) = concerned(&order, &turns);
        let others = app::other_sessions(&place, sessions);
        if !is_meant(doing, &others, yes, interrupt.run()).await {
            terminal.finish();
            return Ok(signals.exit_code(exit_code::FAILED));
        }
    }
    let answer = app::undo(&place, order, &front).await?;
    terminal.finish();
    if let (true, app::UndoAnswer::Turns(turns)) = (is_json, &answer) {
        deliver_json(&TurnList {
            turns: &turns.turns.first,
            n: turns.turns.n,
            is_unfinished: turns.is_unfinished,
        })?;
        return Ok(signals.exit_code(exit_code::DONE));
    }
    let (words, is_whole) = told(&answer);
    deliver(&words)?;
    Ok(signals.exit_code(if is_whole {
        exit_code::DONE
    } else {
        exit_code::FAILED
    }))
}

/// The turns that changed something, as a script reads them.
#[derive(Serialize)]
struct TurnList<'a> {
    turns: &'a [app::TurnSummary],
    /// How many there are; the list names the first of them.
    n: u64,
    is_unfinished: bool,
}

/// Returns the sessions whose turns an order undoes or brings back, and what it does to them in
/// words.
fn concerned(order: &Undo, turns: &app::TurnList) -> (&'static str, Vec<String>) {
    let (doing, state, n) = match order {
        Undo::Back { n, .. } => ("Undo turns of", app::TurnState::Done, *n),
        Undo::Forward { n, .. } => ("Redo turns of", app::TurnState::TakenBack, *n),
        _ => return ("", Vec::new()),
    };
    let mut all: Vec<&app::TurnSummary> = turns
        .turns
        .first
        .iter()
        .filter(|turn| turn.state == state)
        .collect();
    if state == app::TurnState::TakenBack {
        // The one that was undone last comes back first: the oldest.
        all.reverse();
    }
    let sessions = all
        .iter()
        .take(usize::try_from(n).unwrap_or(usize::MAX))
        .map(|turn| turn.session.clone());
    (doing, sessions.collect())
}

/// Says what came of it in lines for a terminal, and whether all that was wanted was done.
pub(super) fn told(answer: &app::UndoAnswer) -> (String, bool) {
    match answer {
        app::UndoAnswer::Turns(turns) => (list(turns), true),
        app::UndoAnswer::Differences { turns } => (differences(turns), true),
        app::UndoAnswer::Undone(undone) => {
            let mut words = String::new();
            let mut is_whole = true;
            for turn in &undone.turns {
                let _ = writeln!(words, "{}", heading(&turn.turn));
                is_whole &= applied(&mut words, &turn.applied, RESUME);
            }
            if undone.turns.is_empty() {
                words.push_str("nothing to undo or redo\n");
            }
            if undone.turns.iter().any(|turn| turn.turn.n_left > 0) {
                words.push_str("what was left stays within reach: `podbay undo retry` tries it again, with --merge lines of both sides are put together\n");
            }
            let _ = writeln!(
                words,
                "{} can be undone, {} redone",
                turns(undone.n_back),
                turns(undone.n_forward)
            );
            (words, is_whole)
        }
        app::UndoAnswer::Applied {
            name,
            applied: done,
        } => {
            let mut words = format!("{}\n", text::line(name));
            let is_whole = applied(&mut words, done, RESUME);
            (words, is_whole)
        }
        app::UndoAnswer::Abandoned => (ABANDONED.to_owned(), true),
        app::UndoAnswer::Nothing => ("nothing was interrupted\n".to_owned(), true),
        app::UndoAnswer::Unfinished => (
            "nothing was done: an undo was interrupted\n".to_owned(),
            false,
        ),
    }
}

fn turns(n: u64) -> String {
    format!("{n} {}", if n == 1 { "turn" } else { "turns" })
}

fn heading(turn: &app::TurnSummary) -> String {
    format!(
        "turn {} (session {}): {}",
        turn.turn,
        text::line(&turn.session),
        text::line(&turn.words)
    )
}

fn list(all: &app::TurnList) -> String {
    let mut words = String::new();
    for turn in &all.turns.first {
        let state = match turn.state {
            app::TurnState::Open => "under way, or cut off".to_owned(),
            app::TurnState::Done => files(turn.n_changed),
            app::TurnState::TakenBack => format!("undone, {}", files(turn.n_changed)),
        };
        let cut_off = if turn.is_interrupted {
            " (cut off: what you changed after it may be among them)"
        } else {
            ""
        };
        let left = if turn.n_left > 0 {
            format!(
                "; {} left as it was: `podbay undo retry`",
                paths(turn.n_left)
            )
        } else {
            String::new()
        };
        let _ = writeln!(words, "{}; {state}{cut_off}{left}", heading(turn));
    }
    if all.turns.is_empty() {
        words.push_str("no turn has changed anything yet\n");
    }
    if all.turns.n > all.turns.first.len() as u64 {
        let _ = writeln!(
            words,
            "and {} older ones",
            all.turns.n - all.turns.first.len() as u64
        );
    }
    if all.is_unfinished {
        words.push_str("an undo was interrupted: `podbay undo resume` finishes it, `podbay undo abandon` gives it up\n");
    }
    words
}

fn paths(n: u64) -> String {
    format!("{n} {}", if n == 1 { "path" } else { "paths" })
}

fn files(n: Option<u64>) -> String {
    match n {
        Some(n) => format!("{} changed", paths(n)),
        None => "changes not known".to_owned(),
    }
}

fn differences(turns: &[app::TurnDifference]) -> String {
    let mut words = String::new();
    for turn in turns {
        let _ = writeln!(
            words,
            "{}; {}",
            heading(&turn.turn),
            files(Some(turn.changes.n))
        );
        words.push_str(&text::escape(&turn.text));
        if turn.n_left_out > 0 {
            let _ = writeln!(words, "({} more files are not shown)", turn.n_left_out);
        }
    }
    if turns.is_empty() {
        words.push_str("no turn to undo\n");
    }
    words
}

/// What is said where something is given up.
const ABANDONED: &str = "given up: what is done stays done, the rest is not; what was to turn from a file into a folder, or back, may be gone just now: \
                         `podbay undo` or `redo` then names it as changed since, and `podbay undo retry` brings it\n";

/// What continues something that stopped before its end.
const RESUME: &str = "podbay undo resume";

/// Adds what became of each path; returns whether nothing was left as it is.
///
/// `again`: the command that continues where it stopped.
pub(super) fn applied(words: &mut String, applied: &app::ApplyOutcome, again: &str) -> bool {
    for path in &applied.changed.first {
        let merged = if applied.merged.first.contains(path) {
            " (lines of both sides put together)"
        } else {
            ""
        };
        let removed = if applied.removed.first.contains(path) {
            " (removed)"
        } else {
            ""
        };
        let _ = writeln!(words, "  {path}{merged}{removed}");
    }
    if applied.changed.n > applied.changed.first.len() as u64 {
        let _ = writeln!(
            words,
            "  and {} more",
            applied.changed.n - applied.changed.first.len() as u64
        );
    }
    for left in applied.conflicts.first.iter().chain(&applied.refused.first) {
        let _ = writeln!(
            words,
            "  left as it is: {} {}",
            left.path,
            text::line(&left.reason.to_string())
        );
    }
    let n_left = applied.conflicts.n + applied.refused.n;
    let n_named = applied.conflicts.first.len() as u64 + applied.refused.first.len() as u64;
    if n_left > n_named {
        let _ = writeln!(words, "  left as they are: {} more", n_left - n_named);
    }
    if let Some(why) = &applied.stopped {
        let _ = writeln!(
            words,
            "  stopped before its end: {}; `{again}` finishes it",
            text::line(why)
        );
    }
    for path in &applied.without_set_id.first {
        let _ = writeln!(
            words,
            "  without its set-user-id and set-group-id bits: {path}; set them by hand if they are wanted"
        );
    }
    n_left == 0 && applied.without_set_id.is_empty() && applied.stopped.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_is_told_from_what_comes() {
        let (changed, removed) = (
            ["a", "b"].map(Into::into).into_iter().collect(),
            ["b".into()].into_iter().collect(),
        );
        let mut words = String::new();
        assert!(applied(
            &mut words,
            &app::ApplyOutcome {
                changed,
                removed,
                ..app::ApplyOutcome::default()
            },
            RESUME
        ));
        assert_eq!(words, "  a\n  b (removed)\n");
    }

    #[test]
    fn the_sessions_of_the_turns_that_an_undo_reaches_are_found() {
        let turn = |turn: u64, session: &str, state| app::TurnSummary {
            turn,
            session: session.to_owned(),
            n_turn: 1,
            words: String::new(),
            at: 0,
            state,
            n_changed: Some(1),
            is_interrupted: false,
            n_left: 0,
        };
        let (done, taken) = (app::TurnState::Done, app::TurnState::TakenBack);
        let all = [
            turn(4, "d", taken),
            turn(3, "c", taken),
            turn(2, "b", done),
            turn(1, "a", done),
        ];
        let turns = app::TurnList {
            turns: all.into_iter().collect(),
            n_bytes: 0,
            most_bytes: 0,
            is_unfinished: false,
        };
        let back = |n| Undo::Back {
            n,
            merge: false,
            is_beside: false,
        };
        let forward = Undo::Forward {
            n: 1,
            merge: false,
            is_beside: false,
        };
        assert_eq!(concerned(&back(1), &turns).1, ["b"]);
        assert_eq!(concerned(&back(9), &turns).1, ["b", "a"]);
        assert_eq!(concerned(&forward, &turns).1, ["c"]);
        assert!(concerned(&Undo::Abandon, &turns).1.is_empty());
    }

    #[test]
    fn a_difference_shows_what_a_terminal_would_obey() {
        let turn = app::TurnSummary {
            turn: 1,
            session: "s".to_owned(),
            n_turn: 1,
            words: "do it".to_owned(),
            at: 0,
            state: app::TurnState::Done,
            n_changed: Some(1),
            is_interrupted: false,
            n_left: 0,
        };
        let text = "+\x1b[8mhidden\x1b[0m\n+over\rwritten\n".to_owned();
        let shown = differences(&[app::TurnDifference {
            turn,
            changes: std::iter::empty().collect(),
            text,
            n_left_out: 0,
        }]);
        assert!(
            shown.ends_with("+\\x1b[8mhidden\\x1b[0m\n+over\\x0dwritten\n"),
            "{shown}"
        );
    }
}
