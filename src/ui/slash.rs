use podbay_event::QueuedMessage;

use super::text;

/// Returns a message as it waits while the model is at work. One that asks the chat itself for
/// something waits for the end of the task, as one that names files does: they are read first.
pub fn queued(message: String) -> QueuedMessage {
    let is_for_model = read(&message) == Line::Say(message.clone());
    QueuedMessage {
        joins_task: is_for_model && !names_a_file(&message),
        text: message,
    }
}

fn names_a_file(message: &str) -> bool {
    message
        .split_whitespace()
        .any(|word| word.trim_start_matches('(').starts_with('@'))
}

/// Says that a message waits, in one line.
pub fn queued_words(message: &QueuedMessage) -> String {
    let first = text::line(message.text.lines().next().unwrap_or_default());
    let when = if message.joins_task {
        "queued"
    } else {
        "queued until the task ends"
    };
    format!("{when}: {first}")
}

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
    /// Undo so many turns.
    Undo(u32),
    /// Try again what was left.
    Retry,
    /// Bring back so many.
    Redo(u32),
    /// A command for the sandbox.
    Run(String),
    /// Words for the model.
    Say(String),
    /// Another command, and what stands behind it.
    Other(&'static str, String),
    /// None of these, and why: it goes nowhere.
    Wrong(String),
}

/// A command of the chat.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// What stands behind it.
    pub takes: &'static str,
    pub help: &'static str,
}

const fn command(
    name: &'static str,
    aliases: &'static [&'static str],
    takes: &'static str,
    help: &'static str,
) -> Command {
    Command {
        name,
        aliases,
        takes,
        help,
    }
}

/// All commands, in the order of their help.
pub const COMMANDS: &[Command] = &[
    command("help", &["h", "?"], "", "list keys and commands"),
    command("new", &[], "", "begin a new session here"),
    command(
        "clear",
        &["c"],
        "",
        "begin a new session with an empty screen",
    ),
    command(
        "resume",
        &["sessions"],
        "[ID]",
        "continue an earlier session",
    ),
    command(
        "session",
        &["s"],
        "[save NAME|load ID|delete ID]",
        "list sessions, name or remove one",
    ),
    command("rename", &[], "NAME", "give this session a name"),
    command("fork", &[], "", "continue in a copy of this session"),
    command(
        "rewind",
        &[],
        "[N]",
        "take the last N messages back; files stay",
    ),
    command("retry", &[], "", "send the last message again"),
    command(
        "undo",
        &[],
        "[N|retry]",
        "undo what the last N turns changed",
    ),
    command("redo", &[], "[N]", "bring back what was undone"),
    command("diff", &[], "", "show what this session changed"),
    command("review", &[], "", "look at changes that are pending"),
    command(
        "mode",
        &[],
        "[auto|ask|deny]",
        "what is allowed without asking",
    ),
    command(
        "plan",
        &["p"],
        "[on|off|show|edit|implement|discard]",
        "plan mode, and the session's plan",
    ),
    command(
        "answers",
        &[],
        "[forget N]",
        "what you allowed for more than once",
    ),
    command(
        "model",
        &["m"],
        "[NAME]",
        "which model answers, or another one",
    ),
    command("tools", &[], "", "list the tools of the model"),
    command("mcp", &[], "", "list MCP servers and their tools"),
    command("think", &[], "", "show or hide what the model thinks"),
    command("context", &["ctx"], "", "how full the model's window is"),
    command(
        "compact",
        &[],
        "[WORDS]",
        "replace older messages by a summary",
    ),
    command("checkpoint", &[], "", "note where the session stands"),
    command("stats", &["cost"], "", "requests, tokens and cost so far"),
    command("status", &[], "", "model, sandbox, session and limits"),
    command("tree", &[], "[PATH]", "show the folders below one"),
    command("add", &[], "PATH", "name a file in the next message"),
    command(
        "btw",
        &[],
        "WORDS",
        "tell the model something with the next message",
    ),
    command("prompt", &[], "", "list commands of your own"),
    command("copy", &["cp"], "", "copy the last answer"),
    command(
        "export",
        &[],
        "[md|html|json] [PATH]",
        "write the session to a file",
    ),
    command(
        "report",
        &[],
        "[md|html|json] [PATH]",
        "show what this session did, or write it to a file",
    ),
    command("config", &[], "", "show the settings that hold"),
    command("init", &[], "", "prepare the project for Podbay"),
    command("doctor", &["diag"], "", "check everything that a run needs"),
    command("debug", &[], "", "where logs and state are"),
    command(
        "memory",
        &[],
        "[list|show|edit|keep|forget NAME]",
        "notes of sessions for later ones",
    ),
    command("agents", &[], "", "agents that the model may start"),
    command(
        "skills",
        &[],
        "[list|show NAME]",
        "skills that the model may read",
    ),
    command("quit", &["q", "exit"], "", "leave"),
];

/// Returns the command of that name or alias.
fn find(name: &str) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|command| command.name == name || command.aliases.contains(&name))
}

/// Returns whether a command has that name or alias.
pub fn is_command(name: &str) -> bool {
    find(name).is_some()
}

/// Returns the help of all commands, a line each.
pub fn help() -> String {
    let mut out = String::new();
    for command in COMMANDS {
        let mut call = format!("/{} {}", command.name, command.takes);
        call.truncate(call.trim_end().len());
        let aliases: String = command
            .aliases
            .iter()
            .map(|alias| format!(", /{alias}"))
            .collect();
        out.push_str(&format!("{call:<28} {}", command.help));
        if !aliases.is_empty() {
            out.push_str(&format!(" (also {})", &aliases[2..]));
        }
        out.push('\n');
    }
    out
}

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
    let Some(command) = find(&name[1..]) else {
        return Line::Wrong(format!(
            "{name} is not known: /help lists the commands. To begin a message with a slash, double it: /{}",
            trimmed.lines().next().unwrap_or_default()
        ));
    };
    match command.name {
        "quit" => bare(Line::Quit),
        "help" => bare(Line::Help),
        "context" => bare(Line::Context),
        "tree" => Line::Tree(rest.to_owned()),
        "compact" => Line::Compact(rest.to_owned()),
        "mode" => mode(rest),
        "undo" if rest == "retry" => Line::Retry,
        "undo" => steps(name, rest, Line::Undo),
        "redo" => steps(name, rest, Line::Redo),
        "answers" => answers(rest),
        other if command.takes.is_empty() => bare(Line::Other(other, String::new())),
        other => Line::Other(other, rest.to_owned()),
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
            ("/m qwen", Line::Other("model", "qwen".to_owned())),
            ("/cost", Line::Other("stats", String::new())),
            ("/ctx", Line::Context),
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
            ("/modell x", "/modell is not known: /help lists"),
            ("/etc/hosts is odd", "double it: //etc/hosts is odd"),
            ("/", "/ is not known"),
            ("/answers all", "/answers forget N"),
            ("/answers forget", "by its number"),
            ("/answers forget 1 2", "by its number"),
            ("/answers forget -1", "by its number"),
            ("/answers forgetful 2", "/answers forget N"),
            ("/trees", "/trees is not known"),
            ("/stats now", "/stats takes no words"),
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
