//! The help of `-h`, which fits one screen of 24 lines: the first clause of each text, and only the
//! flags that most calls need.

use clap::Command;
use clap::builder::Resettable;
use clap::builder::StyledStr;

/// The commands of the first page, by what they are for.
pub(super) const GROUPS: [(&str, &[&str]); 4] = [
    (
        "work",
        &[
            "quickstart",
            "run",
            "chat",
            "review",
            "undo",
            "sessions",
            "stats",
        ],
    ),
    ("model", &["models", "memory", "agents", "skills", "mcp"]),
    (
        "sandbox",
        &[
            "sh", "jobs", "call", "up", "down", "status", "logs", "install", "cache", "network",
            "why",
        ],
    ),
    (
        "set-up",
        &[
            "init",
            "config",
            "images",
            "gc",
            "doctor",
            "completions",
            "debug",
        ],
    ),
];

/// Flags of a conversation that are shown; the rest stands in `--help`.
const OF_A_SESSION: [&str; 9] = [
    "demo", "path", "endpoint", "model", "mode", "changes", "apply", "resume", "go_on",
];
/// The same on the first page, most of which the commands take.
const OF_THE_FIRST_PAGE: [&str; 5] = ["path", "endpoint", "model", "mode", "resume"];
/// Headings of flags that every command about a project takes, and flags of every command.
const SHARED_HEADINGS: [&str; 2] = ["Sandbox", "Model"];
const SHARED: [&str; 2] = ["config", "verbose"];

/// Returns the whole command line with the texts of `-h`.
pub(super) fn command(whole: Command) -> Command {
    let width = GROUPS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let groups: String = GROUPS
        .iter()
        .map(|(name, commands)| format!("  {name:<width$}  {}\n", commands.join(", ")))
        .collect();
    shortened(whole, true).help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\nCommands:\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn shortened(mut command: Command, is_first_page: bool) -> Command {
    let is_session = command
        .get_arguments()
        .any(|argument| argument.get_id() == "max_turns");
    command = command.mut_args(|argument| {
        let id = argument.get_id().as_str();
        let is_shared = SHARED.contains(&id)
            || argument
                .get_help_heading()
                .is_some_and(|heading| SHARED_HEADINGS.contains(&heading));
        let is_shown = argument.is_positional()
            || if is_first_page {
                OF_THE_FIRST_PAGE.contains(&id)
            } else if is_session {
                OF_A_SESSION.contains(&id)
            } else {
                !is_shared
            };
        let clause = argument
            .get_help()
            .map(|help| first_clause(help, &["; ", ": ", ". ", ", "]));
        argument
            .hide_short_help(!is_shown)
            .help_heading(Resettable::Reset)
            .help(Resettable::from(clause))
    });
    if let Some(about) = command
        .get_about()
        .map(|about| first_clause(about, &["; ", ": ", ". "]))
    {
        command = command.about(about);
    }
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(name, |below| shortened(below, false));
    }
    command
}

/// Returns a text up to the first of these marks.
fn first_clause(text: &StyledStr, marks: &[&str]) -> StyledStr {
    let text = text.to_string();
    let end = marks
        .iter()
        .filter_map(|mark| text.find(mark))
        .min()
        .unwrap_or(text.len());
    StyledStr::from(text[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    #[test]
    fn every_command_that_is_shown_belongs_to_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, commands)| commands.iter().copied())
            .collect();
        grouped.sort_unstable();
        let whole = help::command();
        let mut all: Vec<&str> = whole
            .get_subcommands()
            .filter(|below| !below.is_hide_set() && below.get_name() != "help")
            .map(Command::get_name)
            .collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn a_text_ends_with_its_first_clause() {
        let clause = |text: &str, marks: &[&str]| {
            first_clause(&StyledStr::from(text.to_owned()), marks).to_string()
        };
        assert_eq!(
            clause("Where changes go: of a run; of a chat", &["; ", ": "]),
            "Where changes go"
        );
        assert_eq!(
            clause("List, show or copy", &["; ", ": "]),
            "List, show or copy"
        );
        assert_eq!(clause("Memory, such as 2GiB", &[", "]), "Memory");
    }
}
