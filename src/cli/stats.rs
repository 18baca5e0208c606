//! `podbay stats` and `/stats`: what sessions took.

use std::path::PathBuf;

use clap::Args;

use super::args::FormatFlags;
use super::delivery::deliver;
use super::delivery::deliver_json;
use super::setup;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::Chat;
use podbay_app::Stats;
use podbay_app::exit_code;
use podbay_ui::duration;
use podbay_ui::text;

/// Tools that are named, those that were used most.
const MOST_TOOLS: usize = 12;

#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// Add up the sessions of all projects
    #[arg(long, conflicts_with = "path")]
    all: bool,
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
    #[command(flatten)]
    format: FormatFlags,
}

pub(super) fn stats(args: &StatsArgs) -> Result<u8, app::Error> {
    let state = app::State::from_env(|name| std::env::var_os(name)).map_err(app::Error::Session)?;
    let folder = if args.all {
        None
    } else {
        if let Some(named) = &args.path {
            app::check_folder(named, &state)?;
        }
        let folder = setup::folder(args.path.as_deref())?;
        Some(folder.canonicalize().unwrap_or(folder))
    };
    let stats = app::stats(&state, folder.as_deref())?;
    if args.format.is_json() {
        deliver_json(&stats)?;
    } else {
        deliver(&words_of_sessions(&stats))?;
    }
    Ok(exit_code::DONE)
}

/// Returns what `/stats` says.
pub(super) fn in_chat(chat: &Chat, setup: &Setup) -> Result<String, app::Error> {
    app::session_stats(&setup.state, chat.session().as_str()).map(|stats| words(&stats))
}

/// Returns what sessions took, or what one did, a line for each figure.
fn words(stats: &Stats) -> String {
    let usage = &stats.usage;
    let mut lines = vec![
        ("requests", stats.requests.to_string()),
        ("tool calls", calls(stats)),
    ];
    for (name, n) in most_used(stats) {
        lines.push(("", format!("{n:>5} {}", text::line(name))));
    }
    let percent = usage.cached.saturating_mul(100) / usage.prompt.max(1);
    lines.push((
        "prompt",
        format!("{} tokens, {percent} % of them cached", usage.prompt),
    ));
    lines.push(("answers", format!("{} tokens", usage.completion)));
    if let Some(cost) = usage.cost_usd {
        lines.push(("cost", format!("${cost:.4}")));
    }
    lines.push((
        "time",
        format!(
            "{}, the model's answers {} of it",
            duration(stats.duration_ms),
            duration(stats.model_ms)
        ),
    ));
    lines
        .into_iter()
        .map(|(name, value)| format!("{name:<11} {value}\n"))
        .collect()
}

/// Returns the same, with how many sessions it is of.
fn words_of_sessions(of: &Stats) -> String {
    let since = of
        .since
        .map(|since| format!(", the first on {}", since.strftime("%Y-%m-%d")))
        .unwrap_or_default();
    let unread = match of.unread {
        0 => String::new(),
        n => format!("unread      {n} lines\n"),
    };
    format!(
        "sessions    {} ({} runs and chats that have ended{since})\n{}{unread}",
        of.sessions,
        of.runs,
        words(of)
    )
}

fn calls(stats: &Stats) -> String {
    match stats.denied {
        0 => stats.tool_calls.to_string(),
        n => format!("{}, {n} of them denied", stats.tool_calls),
    }
}

fn most_used(stats: &Stats) -> Vec<(&str, u64)> {
    let mut tools: Vec<(&str, u64)> = stats
        .tools
        .iter()
        .map(|(name, n)| (name.as_str(), *n))
        .collect();
    tools.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    tools.truncate(MOST_TOOLS);
    tools
}

#[cfg(test)]
mod tests {
    use podbay_event::Usage;

    use super::*;

    #[test]
    fn what_sessions_took_is_a_line_a_figure() {
        let of = Stats {
            sessions: 2,
            runs: 3,
            since: Some("2026-11-29T10:00:00Z".parse().expect("a time")),
            requests: 8,
            tool_calls: 12,
            denied: 1,
            tools: [("bash".to_owned(), 9), ("a\u{1b}[2J".to_owned(), 12)].into(),
            usage: Usage {
                prompt: 300,
                cached: 120,
                completion: 30,
                cost_usd: Some(1.5),
            },
            model_ms: 61_000,
            duration_ms: 122_000,
            unread: 2,
        };
        let expected = [
            "sessions    2 (3 runs and chats that have ended, the first on 2026-11-29)",
            "requests    8",
            "tool calls  12, 1 of them denied",
            "               12 a\\x1b[2J",
            "                9 bash",
            "prompt      300 tokens, 40 % of them cached",
            "answers     30 tokens",
            "cost        $1.5000",
            "time        2 min 2 s, the model's answers 1 min 1 s of it",
            "unread      2 lines",
        ];
        assert_eq!(words_of_sessions(&of).lines().collect::<Vec<_>>(), expected);
    }
}
