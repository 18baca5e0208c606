use std::ffi::OsString;

use clap::Command;
use clap::CommandFactory;
use clap::FromArgMatches;
use clap::error::ContextKind;
use clap::error::ContextValue;
use clap::error::ErrorKind;

use super::args::Arguments;
use super::brief;
use super::manual::ALL_CODES;
use super::manual::Codes;
use super::manual::PAGES;
use super::manual::Page;

/// Returns the command line with the manual's pages in its help.
pub(super) fn command() -> Command {
    let mut command = explain(Arguments::command(), "");
    command = command.after_help(
        "Start with: podbay quickstart\n`podbay COMMAND -h` shows one command, `podbay --help` all of this.",
    );
    command
}

/// Reads a command line.
pub(super) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    let is_brief = words
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "-h");
    let command = if is_brief {
        brief::command(command())
    } else {
        command()
    };
    let mut matches = command.try_get_matches_from(&words).map_err(|error| {
        match words.get(1).and_then(|word| word.to_str()) {
            Some("call") => without_detour(error),
            Some("run") => with_quotes(error, &words),
            _ => error,
        }
    })?;
    Arguments::from_arg_matches_mut(&mut matches)
        .map_err(|error| error.format(&mut self::command()))
}

/// `call` has words of its own behind its flags, so that the parser advises to pass a flag that it
/// does not have as one of them: what comes of that is an error too. Whoever asks for a form of the
/// output is told which one there is.
fn without_detour(mut error: clap::Error) -> clap::Error {
    let is_flag = |name: &str| matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(flag)) if flag == name);
    if error.kind() == ErrorKind::UnknownArgument && is_flag("--output") {
        error.remove(ContextKind::Suggested);
        let words = "call prints what a model would read of the result; its exit code says whether it was done";
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![words.to_owned().into()]),
        );
    }
    error
}

/// A task of several words that nobody put into quotes is several arguments: says how it is
/// quoted.
fn with_quotes(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(extra)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let Some(at) = words.iter().position(|word| word == extra.as_str()) else {
        return error;
    };
    if error.kind() != ErrorKind::UnknownArgument || extra.starts_with('-') {
        return error;
    }
    let task: Vec<_> = words[at.saturating_sub(1)..]
        .iter()
        .map(|word| word.to_string_lossy())
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let task = task.join(" ").replace(['"', '\\', '$', '`'], "");
    error.remove(ContextKind::Suggested);
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![
            format!("quote the task, which is one argument: podbay run \"{task}\"").into(),
        ]),
    );
    error
}

/// Returns the page of a command.
pub(super) fn page(path: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.command == path)
}

/// Returns the command that the words of a line name, however deep, and how that is written; its
/// flags are passed over.
pub(super) fn named<'a>(command: &'a Command, words: &[OsString]) -> (String, &'a Command) {
    let (mut path, mut found) = (String::from("podbay"), command);
    for word in words
        .iter()
        .filter(|word| !word.to_string_lossy().starts_with('-'))
    {
        let Some(below) = found.find_subcommand(word) else {
            break;
        };
        path = format!("{path} {}", below.get_name());
        found = below;
    }
    (path, found)
}

/// Returns whether a command, or one below it, takes a flag.
pub(super) fn takes(command: &Command, flag: char) -> bool {
    command
        .get_arguments()
        .any(|argument| argument.get_short() == Some(flag))
        || command.get_subcommands().any(|below| takes(below, flag))
}

/// The flags that nearly every command takes; its own stand before them.
/// Behind a command's own flags, before `--help`.
const AFTER_ITS_OWN: usize = 900;
/// The flags that nearly every command takes; its own stand before them.
const SHARED: [&str; 3] = ["path", "config", "verbose"];

/// Puts the pages into a command and those below it.
fn explain(mut command: Command, path: &str) -> Command {
    command = command.mut_args(|argument| {
        if SHARED.contains(&argument.get_id().as_str()) {
            argument.display_order(AFTER_ITS_OWN)
        } else {
            argument
        }
    });
    if let Some(page) = page(path) {
        let summary = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        command = command
            .long_about(format!("{summary}\n\n{}", page.text))
            .after_long_help(after(page));
    }
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    for name in names {
        let below = if path.is_empty() {
            name.clone()
        } else {
            format!("{path} {name}")
        };
        command = command.mut_subcommand(name, |command| explain(command, &below));
    }
    command
}

/// Returns what stands below the flags.
fn after(page: &Page) -> String {
    let mut text = "Examples:".to_owned();
    for (wish, line) in page.examples {
        text.push_str(&format!("\n  {wish}\n    {line}\n"));
    }
    if let Some(codes) = codes(page) {
        text.push_str("\nExit codes:");
        let width = codes.iter().map(|(code, _)| code.len()).max().unwrap_or(0);
        for (code, meaning) in codes {
            text.push_str(&format!("\n  {code:<width$}  {meaning}"));
        }
    }
    text.trim_end().to_owned()
}

/// Returns the codes that the page spells out.
pub(super) fn codes(page: &Page) -> Option<&'static [(&'static str, &'static str)]> {
    match page.codes {
        Codes::Shared => None,
        Codes::All => Some(&ALL_CODES),
        Codes::Own(codes) => Some(codes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_app::exit_code;

    /// Calls `look` with every command that a user sees, and its words.
    fn each(command: &Command, path: &str, look: &mut impl FnMut(&str, &Command)) {
        look(path, command);
        // Of what is hidden, only that is looked at which has a page all the same.
        let is_shown = |below: &&Command| {
            below.get_name() != "help" && (!below.is_hide_set() || page(below.get_name()).is_some())
        };
        for below in command.get_subcommands().filter(is_shown) {
            let name = below.get_name();
            each(
                below,
                &if path.is_empty() {
                    name.to_owned()
                } else {
                    format!("{path} {name}")
                },
                look,
            );
        }
    }

    #[test]
    fn every_command_has_a_page_and_every_page_a_command() {
        let mut without = PAGES.iter().map(|page| page.command).collect::<Vec<_>>();
        each(&command(), "", &mut |path, command| {
            let page = page(path)
                .unwrap_or_else(|| panic!("`podbay {path}` has no page in src/cli/manual.rs"));
            assert!(
                (2..=4).contains(&page.examples.len()),
                "`podbay {path}` has {} examples",
                page.examples.len()
            );
            assert!(
                command.get_about().is_some(),
                "`podbay {path}` has no summary"
            );
            without.retain(|known| *known != path);
        });
        assert_eq!(
            without,
            Vec::<&str>::new(),
            "pages of commands that do not exist"
        );
    }

    #[test]
    fn every_flag_and_every_value_of_one_has_a_help_text() {
        each(&command(), "", &mut |path, command| {
            for argument in command
                .get_arguments()
                .filter(|argument| !argument.is_hide_set())
            {
                let name = argument.get_id();
                assert!(
                    argument.get_help().is_some(),
                    "podbay {path}: `{name}` has no help text"
                );
                for value in argument.get_possible_values() {
                    let is_plain =
                        ["true", "false"].contains(&value.get_name()) || *name == "shell";
                    assert!(
                        is_plain || value.get_help().is_some(),
                        "podbay {path}: `{name}`: `{}` has no help text",
                        value.get_name()
                    );
                }
            }
        });
    }

    #[test]
    fn every_example_is_a_command_line_that_parses() {
        for page in PAGES {
            for (wish, line) in page.examples {
                assert!(wish.ends_with(':') && line.len() <= 96, "{line}");
                let (words, _) = ours(line).unwrap_or_else(|| panic!("no podbay in `{line}`"));
                let parsed = parse(words.iter().map(OsString::from));
                assert!(
                    parsed.is_ok(),
                    "{line}: {}",
                    parsed
                        .err()
                        .map(|error| error.to_string())
                        .unwrap_or_default()
                );
                let words = words.join(" ");
                assert!(
                    words.starts_with(format!("podbay {}", page.command).trim_end()),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn the_codes_that_are_shown_are_those_that_are_used() {
        let used = [
            exit_code::DONE,
            exit_code::FAILED,
            exit_code::USAGE,
            exit_code::LIMIT,
            exit_code::BLOCKED,
            exit_code::NO_BOX,
            exit_code::NO_MODEL,
            exit_code::LEFT_OUT,
            exit_code::BUG,
            exit_code::INTERRUPTED,
            exit_code::TERMINATED,
        ];
        assert_eq!(
            ALL_CODES.map(|(code, _)| code.to_owned()),
            used.map(|code| code.to_string())
        );
    }

    #[test]
    fn words_are_taken_as_a_shell_takes_them() {
        let words = |line: &str| ours(line).map(|(words, rest)| (words.join("|"), rest.to_owned()));
        assert_eq!(
            words("podbay run \"a b\" 'c d'"),
            Some(("podbay|run|a b|c d".to_owned(), String::new()))
        );
        assert_eq!(
            words("git diff | podbay run -"),
            Some(("podbay|run|-".to_owned(), String::new()))
        );
        assert_eq!(
            words("podbay gc >x && y"),
            Some(("podbay|gc".to_owned(), ">x && y".to_owned()))
        );
        assert_eq!(words("ls"), None);
    }

    /// Returns the words of the part of a line that calls Podbay, and what follows it.
    fn ours(line: &str) -> Option<(Vec<String>, &str)> {
        let from = line
            .find("podbay")
            .filter(|&at| at == 0 || line[..at].ends_with("| "))?;
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for (at, letter) in line[from..].char_indices() {
            match (quote, letter) {
                (Some(open), _) if letter == open => quote = None,
                (None, '"' | '\'') => {
                    quote = Some(letter);
                    word.get_or_insert_default();
                }
                (None, ' ') => words.extend(word.take()),
                (None, '|' | '<' | '>' | '&' | ';') => {
                    words.extend(word.take());
                    return Some((words, &line[from + at..]));
                }
                _ => word.get_or_insert_default().push(letter),
            }
        }
        words.extend(word);
        assert_eq!(quote, None, "an open quote in {line}");
        Some((words, ""))
    }
}
