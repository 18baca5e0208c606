/// What a line of a chat asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Nothing,
    Quit,
    Help,
    /// Which mode holds, or another one from now on.
    Mode(Option<String>),
    Answers,
    /// Take the answer of this number back.
    Forget(usize),
    Context,
    /// Show the folders below this one; nothing is the project.
    Tree(String),
    /// With what the summary is to keep above all.
    Compact(String),
    /// Take back so many turns.
    Undo(u32),
    /// Try again what was left.
    Retry,
    /// Bring back so many.
    Redo(u32),
    /// A command for the sandbox.
    Run(String),
    /// Words for the model.
    Say(String),
    /// None of these, and why: it goes nowhere.
    Wrong(String),
}

/// All commands, as they are listed where one is not known.
const COMMANDS: &str = "/help, /mode, /answers, /undo, /redo, /tree, /context, /compact and /quit";

/// Reads a line. What begins with a slash is a command or a mistake, and never goes to the model; a
/// doubled slash stands for itself.
pub fn read(line: &str) -> Line {
    let trimmed = line.trim();
    if let Some(command) = trimmed.strip_prefix('!') {
        let command = command.trim_start_matches('!').trim();
        return if command.is_empty() {
            Line::Wrong("Put a command behind the `!`, such as `!git status`.".to_owned())
        } else {
            Line::Run(command.to_owned())
        };
    }
    if trimmed.starts_with("//") {
        return Line::Say(trimmed[1..].to_owned());
    }
    if !trimmed.starts_with('/') {
        return if trimmed.is_empty() {
            Line::Nothing
        } else {
            Line::Say(line.to_owned())
        };
    }
    let (name, rest) = trimmed
        .split_once(char::is_whitespace)
        .unwrap_or((trimmed, ""));
    let rest = rest.trim();
    let bare = |command: Line| {
        if rest.is_empty() {
            command
        } else {
            Line::Wrong(format!(
                "{name} takes no words behind it. To begin a message with a slash, double it: /{trimmed}"
            ))
        }
    };
    match name {
        "/quit" | "/exit" | "/q" => bare(Line::Quit),
        "/help" | "/h" | "/?" => bare(Line::Help),
        "/context" => bare(Line::Context),
        "/tree" => Line::Tree(rest.to_owned()),
        "/compact" => Line::Compact(rest.to_owned()),
        "/mode" => mode(rest),
        "/undo" if rest == "retry" => Line::Retry,
        "/undo" => steps(name, rest, Line::Undo),
        "/redo" => steps(name, rest, Line::Redo),
        "/answers" => answers(rest),
        _ => Line::Wrong(format!(
            "{name} is not known: there are {COMMANDS}. To begin a message with a slash, double it: /{}",
            trimmed.lines().next().unwrap_or_default()
        )),
    }
}

fn steps(name: &str, word: &str, line: fn(u32) -> Line) -> Line {
    match word {
        "" => line(1),
        number => match number.parse() {
            Ok(n @ 1..) => line(n),
            _ => Line::Wrong(format!(
                "{name} takes how many turns, a number from 1; without one it is one turn."
            )),
        },
    }
}

fn mode(word: &str) -> Line {
    match word {
        "" => Line::Mode(None),
        "auto" | "ask" | "deny" => Line::Mode(Some(word.to_owned())),
        _ => Line::Wrong(format!("There is no mode {word}: auto, ask and deny are.")),
    }
}

fn answers(words: &str) -> Line {
    let mut words = words.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (None, ..) => Line::Answers,
        (Some("forget"), Some(number), None) if number.parse::<usize>().is_ok() => {
            Line::Forget(number.parse().unwrap_or_default())
        }
        (Some("forget"), ..) => {
            Line::Wrong("Say which one, by its number alone: /answers forget 2.".to_owned())
        }
        _ => Line::Wrong("/answers lists them, and /answers forget N takes one back.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_words_for_the_model_or_a_command_and_never_both() {
        for (line, expected) in [
            ("", Line::Nothing),
            (" \n", Line::Nothing),
            (" look at a/b ", Line::Say(" look at a/b ".to_owned())),
            (
                "//etc/hosts is odd",
                Line::Say("/etc/hosts is odd".to_owned()),
            ),
            ("//context", Line::Say("/context".to_owned())),
            (" /context ", Line::Context),
            ("/quit", Line::Quit),
            ("/?", Line::Help),
            ("/undo 2", Line::Undo(2)),
            ("/undo retry", Line::Retry),
            ("/mode", Line::Mode(None)),
            ("/mode  ask", Line::Mode(Some("ask".to_owned()))),
            ("/answers", Line::Answers),
            ("/answers  forget  2", Line::Forget(2)),
            ("/tree", Line::Tree(String::new())),
            (
                "/tree  src/my folder ",
                Line::Tree("src/my folder".to_owned()),
            ),
            ("/compact", Line::Compact(String::new())),
            ("/compact the tests", Line::Compact("the tests".to_owned())),
            ("! git status", Line::Run("git status".to_owned())),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_no_command_is_said_and_goes_nowhere() {
        for (line, words) in [
            ("/context x", "/context takes no words"),
            ("/quit now", "/quit takes no words"),
            ("/help me", "/help takes no words"),
            (
                "/mode ask please",
                "no mode ask please: auto, ask and deny are.",
            ),
            ("/mode loud", "auto, ask and deny"),
            ("/model x", "/model is not known: there are /help, /mode"),
            ("/etc/hosts is odd", "double it: //etc/hosts is odd"),
            ("/", "/ is not known"),
            ("/answers all", "/answers forget N"),
            ("/answers forget", "by its number"),
            ("/answers forget 1 2", "by its number"),
            ("/answers forget -1", "by its number"),
            ("/answers forgetful 2", "/answers forget N"),
            ("/trees", "/redo, /tree, /context"),
            ("/contextual", "/contextual is not known"),
            ("!", "!git status"),
        ] {
            let Line::Wrong(said) = read(line) else {
                panic!("{line} goes somewhere")
            };
            assert!(said.contains(words), "{line}: {said}");
        }
    }
}
