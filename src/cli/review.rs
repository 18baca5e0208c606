use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::io::IsTerminal;
use std::sync::Arc;

use clap::Args;
use clap::Subcommand;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::args::FormatFlags;
use super::args::OutputFormat;
use super::args::PlaceFlags;
use super::delivery::deliver;
use super::delivery::deliver_json;
use super::flags;
use super::front::Nobody;
use super::other_session::is_meant;
use super::review_screen;
use super::run::listen;
use super::setup::Setup;
use super::undo::applied;
use podbay_app as app;
use podbay_app::ChangeKind;
use podbay_app::Commits;
use podbay_app::GitEnded;
use podbay_app::Interrupt;
use podbay_app::PendingChanges;
use podbay_app::PendingGit;
use podbay_app::ReviewAnswer;
use podbay_app::ReviewApplied;
use podbay_app::ReviewDifference;
use podbay_app::ReviewWish;
use podbay_app::Reviewed;
use podbay_app::exit_code;
use podbay_ui as ui;
use podbay_ui::Keyboard;
use podbay_ui::Paint;
use podbay_ui::text;
use podbay_ui::tui::Facts;
use podbay_ui::tui::ReviewChoice;
use podbay_ui::tui::Theme;
use podbay_ui::tui::Tui;

/// Paths that the end of a run names.
const MOST_SHOWN: usize = 50;

#[derive(Debug, Subcommand)]
pub(super) enum ReviewCommand {
    /// List what waits, the newest first
    List(ListArgs),
    /// Show what is not in the project yet
    Diff(DiffArgs),
    /// Bring changes into the project
    Apply(ApplyArgs),
    /// Drop changes for good
    Discard(DiscardArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    format: FormatFlags,
    #[command(flatten)]
    place: PlaceFlags,
}

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// Id of a review, or the beginning of one, where several wait; then paths, or patterns such as
    /// `src/*.rs`
    #[arg(value_name = "ID|PATHSPEC")]
    words: Vec<OsString>,
    #[command(flatten)]
    place: PlaceFlags,
}

#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// Id of a review, or the beginning of one, where several wait
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Apply only this file or folder, or what this pattern says (repeatable); the rest still
    /// waits
    #[arg(long, value_name = "PATHSPEC")]
    only: Vec<OsString>,
    /// Put lines of both sides together where a file was changed since, rather than leave it
    #[arg(long)]
    merge: bool,
    /// Also apply files that programs on your machine run by themselves
    #[arg(long, visible_alias = "yes")]
    accept_auto_run: bool,
    /// Take commits over now, even while paths wait or what they hold runs by itself on your
    /// machine
    #[arg(long, conflicts_with = "no_commits")]
    commits: bool,
    /// Leave commits waiting
    #[arg(long)]
    no_commits: bool,
    #[command(flatten)]
    place: PlaceFlags,
}

impl ApplyArgs {
    fn wish(self) -> (ReviewWish, PlaceFlags) {
        let commits = match (self.commits, self.no_commits) {
            (true, _) => Commits::Now,
            (false, true) => Commits::Later,
            (false, false) => Commits::WithTheRest,
        };
        let Self {
            id,
            only,
            merge,
            accept_auto_run,
            place,
            ..
        } = self;
        (
            ReviewWish::Apply {
                id,
                only,
                merge,
                with_auto_run: accept_auto_run,
                commits,
            },
            place,
        )
    }
}

#[derive(Debug, Args)]
pub(super) struct DiscardArgs {
    /// Id of a review, or the beginning of one, where several wait
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Do not ask, also where it is not of the last session of the project
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    place: PlaceFlags,
}

/// `podbay review` alone: the screen.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ReviewArgs {
    #[command(subcommand)]
    command: Option<ReviewCommand>,
    /// Id of a review, or the beginning of one, where several are pending
    #[arg(long = "id", value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    place: PlaceFlags,
}

/// Opens the screen, or executes the command.
pub(super) async fn review_args(args: ReviewArgs) -> Result<u8, app::Error> {
    match args.command {
        Some(command) => review(command).await,
        None => Box::pin(screen(args.id, args.place)).await,
    }
}

/// Has the user decide on a review on a screen.
async fn screen(id: Option<String>, flags: PlaceFlags) -> Result<u8, app::Error> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !is_terminal {
        return Err(app::Error::usage(
            "there is no terminal for the review",
            "`podbay review diff`, `apply` and `discard` need none",
        ));
    }
    let mut overrides = Vec::new();
    flags::place(&flags, &mut overrides)?;
    let setup = Setup::in_project(&flags.config, flags.path.as_deref(), overrides)?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let terminal = setup.terminal(OutputFormat::Text);
    setup.show_warnings(&terminal);
    let place = setup.place_without_key(flags.path.as_deref(), app::Mode::Auto)?;
    let front = terminal.front(&interrupt, Arc::new(Nobody));
    let words = id.iter().map(OsString::from).collect();
    let shown = Box::pin(app::review(&place, ReviewWish::Diff { words }, &front)).await?;
    let ReviewAnswer::Difference(difference) = &shown.answer else {
        return Ok(signals.exit_code(exit_code::DONE));
    };
    let pending = &difference.pending;
    if !review_screen::has_paths(pending) {
        let paint = Paint::new(setup.config.ui.color, true, |name| std::env::var_os(name));
        terminal.finish();
        deliver(&told(&shown, paint, true).0)?;
        return Ok(signals.exit_code(exit_code::DONE));
    }
    let title = format!("review {} · {}", shown.name, difference.review.words);
    let view = review_screen::view(
        title,
        pending,
        &difference.text,
        Some("Discard all of these changes for good"),
    );
    terminal.finish();
    let choice = {
        let tui = open(&setup, &interrupt)?;
        let choice = tokio::select! {
            choice = tui.review(view.clone()) => choice,
            () = interrupt.run().cancelled() => ReviewChoice::Quit,
        };
        tui.close();
        choice
    };
    terminal.begin(&setup.config.ui);
    let id = shown.name.clone();
    let wish = match choice {
        ReviewChoice::Quit => {
            terminal.finish();
            super::say(&format!("still pending: podbay review --id {id}\n"));
            return Ok(signals.exit_code(exit_code::DONE));
        }
        ReviewChoice::Discard => ReviewWish::Discard { id: Some(id) },
        ReviewChoice::Apply(chosen) => ReviewWish::Take {
            id,
            selection: review_screen::selection(pending, &view, &chosen),
        },
    };
    let reviewed = Box::pin(app::review(&place, wish, &front)).await?;
    terminal.finish();
    let (words, code) = told(&reviewed, terminal.paint, true);
    deliver(&words)?;
    Ok(signals.exit_code(code))
}

/// Takes the terminal for a page.
pub(super) fn open(setup: &Setup, interrupt: &Interrupt) -> Result<Tui, app::Error> {
    let paint = Paint::new(setup.config.ui.color, true, |name| std::env::var_os(name));
    let interrupt = interrupt.clone();
    Tui::open(
        Theme::new(paint != Paint::NONE),
        Facts::default(),
        podbay_ui::Keys::default(),
        podbay_event::MessageQueue::default(),
        Box::new(move |command| {
            // A terminal that is gone decides nothing.
            if command == podbay_event::Command::Quit {
                interrupt.press();
            }
        }),
    )
    .map_err(|source| app::Error::Io {
        doing: "take the terminal".to_owned(),
        source,
    })
}

/// Shows, applies or discards what was pending.
pub(super) async fn review(command: ReviewCommand) -> Result<u8, app::Error> {
    let (mut is_json, mut asks) = (false, false);
    let (mut wish, flags) = match command {
        ReviewCommand::List(args) => {
            is_json = args.format.is_json();
            (ReviewWish::List, args.place)
        }
        ReviewCommand::Diff(args) => (ReviewWish::Diff { words: args.words }, args.place),
        ReviewCommand::Apply(args) => args.wish(),
        ReviewCommand::Discard(args) => {
            asks = !args.yes && io::stderr().is_terminal();
            (ReviewWish::Discard { id: args.id }, args.place)
        }
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
    let is_terminal = io::stdout().is_terminal();
    let paint = Paint::new(setup.config.ui.color, is_terminal, |name| {
        std::env::var_os(name)
    });
    if let ReviewWish::Discard { id } = &mut wish
        && asks
    {
        let name = app::chosen_review(&place, id.as_deref(), &front).await?;
        let others = app::other_sessions(&place, [name.clone()]);
        *id = Some(name);
        if !is_meant("Discard the changes of", &others, false, interrupt.run()).await {
            terminal.finish();
            return Ok(signals.exit_code(exit_code::FAILED));
        }
    }
    let mut reviewed = Box::pin(app::review(&place, wish.clone(), &front)).await?;
    if let (true, ReviewAnswer::Reviews { reviews }) = (is_json, &reviewed.answer) {
        terminal.finish();
        deliver_json(&ReviewList {
            reviews: &reviews.first,
            n: reviews.n,
        })?;
        return Ok(signals.exit_code(exit_code::DONE));
    }
    if let Some(more) = with_auto_run(wish, &reviewed) {
        deliver(&told(&reviewed, paint, is_terminal).0)?;
        if wants_auto_run(interrupt.run()).await {
            reviewed = Box::pin(app::review(&place, more, &front)).await?;
        } else {
            terminal.finish();
            return Ok(signals.exit_code(told(&reviewed, paint, is_terminal).1));
        }
    }
    terminal.finish();
    let (words, code) = told(&reviewed, paint, is_terminal);
    deliver(&words)?;
    Ok(signals.exit_code(code))
}

/// What waits, as a script reads it.
#[derive(Serialize)]
struct ReviewList<'a> {
    reviews: &'a [app::PendingReview],
    /// How many there are; the list names the first of them.
    n: u64,
}

/// Returns the wish that applies what was left because it runs by itself, if something was.
fn with_auto_run(wish: ReviewWish, reviewed: &Reviewed) -> Option<ReviewWish> {
    match (wish, &reviewed.answer) {
        (
            ReviewWish::Apply {
                only,
                merge,
                commits,
                ..
            },
            ReviewAnswer::Applied(done),
        ) if app::runs_by_itself(done, reviewed.git.as_ref()) && io::stderr().is_terminal() => {
            Some(ReviewWish::Apply {
                id: Some(reviewed.name.clone()),
                only,
                merge,
                with_auto_run: true,
                commits,
            })
        }
        _ => None,
    }
}

/// Asks the user whether what runs by itself comes, too. No terminal is no.
pub(super) async fn wants_auto_run(cancel: &CancellationToken) -> bool {
    let Ok(keyboard) = Keyboard::stdin() else {
        return false;
    };
    // What was typed meanwhile is no answer.
    keyboard.discard();
    ui::confirm(
        "Apply what runs by itself on your machine, too?",
        &keyboard,
        &mut io::stderr(),
        cancel,
    )
    .await
}

/// Says what came of it in lines, and the exit code.
fn told(reviewed: &Reviewed, paint: Paint, is_terminal: bool) -> (String, u8) {
    let name = &reviewed.name;
    match &reviewed.answer {
        ReviewAnswer::Reviews { reviews } => (list(reviews), exit_code::DONE),
        ReviewAnswer::Difference(difference) => {
            let mut words = commits(&difference.review.git);
            words.push_str(&shown(&difference.text, paint, is_terminal));
            words.push_str(&not_shown(name, difference));
            if difference.pending.changes.is_empty() {
                let all = if difference.review.git.is_empty() {
                    "all of it is in the project\n"
                } else {
                    "no pending files\n"
                };
                words.push_str(all);
            }
            (words, exit_code::DONE)
        }
        ReviewAnswer::Applied(done) => brought_in(name, done, reviewed.git.as_ref()),
        ReviewAnswer::InAlready {
            is_taken_back,
            has_redo,
        } => (
            in_already(name, *is_taken_back, *has_redo),
            if *is_taken_back {
                exit_code::FAILED
            } else {
                exit_code::DONE
            },
        ),
        ReviewAnswer::Discarded => (format!("review {name} is discarded\n"), exit_code::DONE),
        ReviewAnswer::Copied(_)
        | ReviewAnswer::Began(_)
        | ReviewAnswer::Ended(_)
        | ReviewAnswer::Turn(_)
        | ReviewAnswer::GitTaken => (String::new(), exit_code::DONE),
    }
}

/// Says what of a diff is not shown, and what shows it.
fn not_shown(name: &str, difference: &ReviewDifference) -> String {
    let files = |n: u64, what: &str| {
        (n > 0).then(|| {
            format!(
                "{n} {} {what}",
                if n == 1 { "file is" } else { "files are" }
            )
        })
    };
    let parts = [
        files(difference.n_cut, "cut"),
        files(difference.n_left_out, "not shown"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return String::new();
    }
    format!(
        "({}: `podbay review diff {name} PATH` shows one alone, and all of it)\n",
        parts.join(", ")
    )
}

/// What became of it since nobody can tell where no turn of it is kept.
fn in_already(name: &str, is_taken_back: bool, has_redo: bool) -> String {
    let since = match (is_taken_back, has_redo) {
        (false, _) => "already",
        (true, true) => "before, and undone since: `podbay undo redo` applies it again",
        (true, false) => "before, and undone since",
    };
    format!("all of review {name} was applied {since}; its data is removed\n")
}

fn list(reviews: &app::NamedList<app::PendingReview>) -> String {
    let mut words = String::new();
    for review in &reviews.first {
        let state = match review.n_changes {
            Some(0) if !review.git.is_empty() => "no path".to_owned(),
            Some(n) => paths(n),
            None if let Some(path) = &review.elsewhere => {
                format!(
                    "of the project as it was at {}: it can be looked at there alone",
                    text::line(path)
                )
            }
            None if review.at == 0 => {
                format!(
                    "nothing is kept of it: `podbay review discard {}` removes the rest",
                    text::line(&review.name)
                )
            }
            None => "at work, or cut off".to_owned(),
        };
        let _ = writeln!(
            words,
            "{}  {state}  {}",
            text::line(&review.name),
            text::line(&review.words)
        );
        words.push_str(&first_commits(&review.git, &review.name));
    }
    if reviews.is_empty() {
        words.push_str("no pending review\n");
    }
    if reviews.n > reviews.first.len() as u64 {
        let _ = writeln!(
            words,
            "and {} older ones",
            reviews.n - reviews.first.len() as u64
        );
    }
    words
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("  {line}\n")).collect()
}

/// Says what of a session's git waits with a review.
fn commits(git: &PendingGit) -> String {
    git.lines()
        .iter()
        .map(|line| format!("{}\n", text::line(line)))
        .collect()
}

/// The same for a summary of the review of this name.
fn first_commits(git: &PendingGit, name: &str) -> String {
    let lines = git.first_lines(&format!("podbay review diff {name}"));
    lines
        .iter()
        .map(|line| format!("  {}\n", text::line(line)))
        .collect()
}

fn brought_in(name: &str, done: &ReviewApplied, git: Option<&GitEnded>) -> (String, u8) {
    let mut words = String::new();
    let again = format!("podbay review apply {name}");
    if let Some(resumed) = &done.resumed {
        words.push_str("finished an interrupted apply:\n");
        applied(&mut words, resumed, &again);
    }
    if done.applied.changed.is_empty()
        && done.resumed.is_none()
        && git.is_none_or(|git| git.taken().next().is_none())
    {
        words.push_str("nothing was applied\n");
    }
    applied(&mut words, &done.applied, &again);
    if app::waits_to_be_run(&done.applied) {
        words.push_str(&app::how_auto_run_comes(name));
        words.push('\n');
    }
    if done.n_left > 0 {
        let _ = writeln!(
            words,
            "{} still waiting: `podbay review diff {name}` shows it",
            paths(done.n_left)
        );
    }
    if !done.git.is_empty() {
        words.push_str("pending commits:\n");
        words.push_str(&indented(&commits(&done.git)));
        words.push_str(&how_commits_come(name, done, git));
    }
    if !done.may_run.is_empty() {
        words.push_str("may run on your machine:\n");
        let files = app::may_run_words(&done.may_run, app::UNDO_DIFF);
        words.extend(files.iter().map(|file| format!("  {}\n", text::line(file))));
    }
    let code = match &done.applied.stopped {
        Some(_) => exit_code::FAILED,
        None if app::is_whole(done, git) => exit_code::DONE,
        None => exit_code::LEFT_OUT,
    };
    (words, code)
}

/// Says why they wait, and what is to be done about it.
fn how_commits_come(name: &str, done: &ReviewApplied, git: Option<&GitEnded>) -> String {
    let held = git
        .map(|git| &git.held().first)
        .filter(|held| !held.is_empty());
    if let Some(held) = held {
        let files: String = held
            .iter()
            .map(|file| format!("  {} may run on your machine: {}\n", file.path, file.why))
            .collect();
        return format!(
            "commits of it hold\n{files}`podbay review apply {name} --accept-auto-run` takes them over all the same, with --no-commits they wait and \
             files come alone\n"
        );
    }
    if git.is_some() {
        // Why, was said where it was tried.
        return String::new();
    }
    let with = if done.n_left > 0 {
        "comes with the last path"
    } else {
        "comes with all of it"
    };
    format!(
        "it {with} (`podbay review apply {name}`), or now: `podbay review apply {name} --commits`\n"
    )
}

fn files(n: u64) -> String {
    format!("{n} {}", if n == 1 { "file" } else { "files" })
}

pub(super) fn paths(n: u64) -> String {
    format!("{n} {}", if n == 1 { "path" } else { "paths" })
}

/// Colours a unified diff line by line, and has every byte of it in sight: what a user does not
/// see here they apply unread.
fn shown(diff: &str, paint: Paint, is_terminal: bool) -> String {
    let diff = if is_terminal {
        text::escape(diff)
    } else {
        text::patch(diff)
    };
    let mut words = String::with_capacity(diff.len());
    let mut is_in_hunk = false;
    // A carriage return before its end belongs to a line.
    for line in diff.split_terminator('\n') {
        let painted = match line.as_bytes().first() {
            _ if line.starts_with("diff --git ") => {
                is_in_hunk = false;
                paint.bold(line)
            }
            _ if line.starts_with("@@ ") => {
                is_in_hunk = true;
                paint.dim(line)
            }
            Some(b'+') if is_in_hunk => paint.good(line),
            Some(b'-') if is_in_hunk => paint.bad(line),
            _ if !is_in_hunk => paint.bold(line),
            _ => line.to_owned(),
        };
        words.push_str(&painted);
        words.push('\n');
    }
    words
}

/// Sums up what a run left to be accepted.
pub(super) fn summary(id: &str, pending: &PendingChanges) -> String {
    let shown = &pending.changes.first;
    let mut words = if pending.changes.is_empty() {
        "no files changed; pending commits:\n".to_owned()
    } else {
        let without = match pending.n_uncounted {
            0 => String::new(),
            1 => ", without one file whose lines are not counted".to_owned(),
            n => format!(", without {n} files whose lines are not counted"),
        };
        format!(
            "{} changed, pending review (+{} -{}{without}):\n",
            files(pending.changes.n),
            pending.n_added,
            pending.n_removed
        )
    };
    for path in shown.iter().take(MOST_SHOWN) {
        let sign = match &path.change.what {
            ChangeKind::Created => "new     ",
            ChangeKind::Modified => "changed ",
            ChangeKind::Deleted => "deleted ",
            ChangeKind::Mode => "mode    ",
            ChangeKind::Type { .. } => "type    ",
            ChangeKind::Renamed { .. } => "renamed ",
        };
        let lines = path
            .lines
            .map(|lines| format!("  +{} -{}", lines.n_added, lines.n_removed))
            .unwrap_or_default();
        let from = match &path.change.what {
            ChangeKind::Renamed { from } => format!("{from} -> "),
            _ => String::new(),
        };
        let slash = if path.change.entry == app::EntryType::Folder {
            "/"
        } else {
            ""
        };
        let _ = writeln!(words, "  {sign}{from}{}{slash}{lines}", path.change.path);
    }
    let n_more = pending
        .changes
        .n
        .saturating_sub(shown.len().min(MOST_SHOWN) as u64);
    if n_more > 0 {
        let _ = writeln!(words, "  and {n_more} more");
    }
    words.push_str(&first_commits(&pending.git, id));
    let _ = writeln!(
        words,
        "show:      podbay review diff {id}\napply:     podbay review apply {id}\ndiscard:   podbay review discard {id}"
    );
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_app::CountedPath;
    use podbay_ui::Color;

    #[test]
    fn nothing_that_will_be_brought_in_is_out_of_sight() {
        #[track_caller]
        fn check(diff: &str, terminal: &str, file: &str) {
            assert_eq!(
                (
                    &*shown(diff, Paint::NONE, true),
                    &*shown(diff, Paint::NONE, false)
                ),
                (terminal, file)
            );
        }
        check("+\techo é\n", "+\techo é\n", "+\techo é\n");
        for (hidden, seen) in [
            (
                "+a\x1b]0;'; touch X; '\x07b\n",
                "+a\\x1b]0;'; touch X; '\\x07b\n",
            ),
            (
                "+a\x1bP'; touch X; '\x1b\\b\n",
                "+a\\x1bP'; touch X; '\\x1b\\b\n",
            ),
            ("+\x1b[$(touch X)m\n", "+\\x1b[$(touch X)m\n"),
            ("+touch X\recho\n", "+touch X\\x0decho\n"),
            ("+a\u{202e}b\u{200b}\n", "+a\\u{202e}b\\u{200b}\n"),
        ] {
            check(hidden, seen, seen);
        }
        check("-a\n+a\r\n", "-a\n+a\\x0d\n", "-a\n+a\r\n");
    }

    #[test]
    fn a_review_that_was_taken_back_is_not_said_to_be_in() {
        let words = |is_taken_back, has_redo| {
            let (name, answer) = (
                "id".to_owned(),
                ReviewAnswer::InAlready {
                    is_taken_back,
                    has_redo,
                },
            );
            told(
                &Reviewed {
                    name,
                    answer,
                    git: None,
                },
                Paint::NONE,
                false,
            )
        };
        let line =
            |since: &str| format!("all of review id was applied {since}; its data is removed\n");
        assert_eq!(words(false, false), (line("already"), exit_code::DONE));
        assert_eq!(
            words(true, true),
            (
                line("before, and undone since: `podbay undo redo` applies it again"),
                exit_code::FAILED
            )
        );
        assert_eq!(
            words(true, false),
            (line("before, and undone since"), exit_code::FAILED)
        );
    }

    #[test]
    fn what_is_not_shown_is_said_with_what_shows_it() {
        let review = serde_json::json!({ "name": "id", "words": "", "at": 0, "n_changes": 9, "git": { "repositories": [] } });
        let review: app::PendingReview = serde_json::from_value(review).expect("a review");
        let words = |n_cut, n_left_out| {
            let (text, pending) = (String::new(), PendingChanges::default());
            not_shown(
                "id",
                &ReviewDifference {
                    review: review.clone(),
                    pending,
                    text,
                    n_left_out,
                    n_cut,
                },
            )
        };
        assert_eq!(words(0, 0), "");
        assert_eq!(
            words(1, 0),
            "(1 file is cut: `podbay review diff id PATH` shows one alone, and all of it)\n"
        );
        assert_eq!(
            words(2, 5),
            "(2 files are cut, 5 files are not shown: `podbay review diff id PATH` shows one alone, and all of it)\n"
        );
    }

    #[test]
    fn a_folder_that_is_counted_has_a_line() {
        let path = |path: &str, what: serde_json::Value, entry: &str| {
            let change = serde_json::json!({ "path": path, "what": what, "entry": entry, "mode": null, "n_bytes": null, "unkept": null });
            serde_json::from_value::<CountedPath>(
                serde_json::json!({ "change": change, "lines": null }),
            )
            .expect("a path")
        };
        let turned = serde_json::json!({ "type": { "before": "file" } });
        let first = vec![
            path("e", turned, "folder"),
            path("new", "created".into(), "folder"),
            path("e/in", "created".into(), "file"),
        ];
        let mut pending = PendingChanges::default();
        (pending.changes.n, pending.changes.first) = (3, first);
        let words = summary("id", &pending);
        assert!(
            words.contains("\n  type    e/\n  new     new/\n  new     e/in\n"),
            "{words}"
        );
        assert!(
            words.starts_with("3 files changed, pending review (+0 -0):\n"),
            "{words}"
        );
        (pending.n_added, pending.n_uncounted) = (7, 2);
        assert!(
            summary("id", &pending)
                .contains(" (+7 -0, without 2 files whose lines are not counted):\n")
        );
    }

    #[test]
    fn only_lines_of_hunks_are_coloured_as_added_or_removed() {
        let diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n c\n";
        assert_eq!(shown(diff, Paint::NONE, true), diff);
        let paint = Paint::new(Color::Always, true, |_| None);
        let painted = shown(diff, paint, true);
        let expected = [
            paint.bold("diff --git a/x b/x"),
            paint.bold("--- a/x"),
            paint.bold("+++ b/x"),
            paint.dim("@@ -1 +1 @@"),
            paint.bad("-a"),
            paint.good("+b"),
            " c".to_owned(),
        ];
        assert_eq!(painted, expected.map(|line| format!("{line}\n")).concat());
    }
}
