//! Completions in fish. The library writes them for commands of two words and knows none of three,
//! such as `images bundle save`: those are added here, each under the condition that all its words
//! stand in the line.

use clap::Command;
use clap_complete::Shell;

const LINE: &str = "complete -c podbay";

/// Returns the script that fish reads.
pub(super) fn script(command: &mut Command) -> String {
    let mut script = generated(command);
    for first in command
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        for group in first
            .get_subcommands()
            .filter(|group| group.has_subcommands() && group.get_name() != "help")
        {
            let condition = format!(
                "__fish_podbay_using_subcommand {}; and __fish_seen_subcommand_from {}",
                first.get_name(),
                group.get_name()
            );
            let names: Vec<&str> = group.get_subcommands().map(Command::get_name).collect();
            // What the group offers is over once one of its commands is named: its lines forbid
            // files, and a command may take one.
            let over = format!(
                "{condition}; and not __fish_seen_subcommand_from {}",
                names.join(" ")
            );
            script = script.replace(
                &format!("{LINE} -n \"{condition}\""),
                &format!("{LINE} -n \"{over}\""),
            );
            for third in group.get_subcommands() {
                script.push_str(&lines(
                    third,
                    &format!(
                        "{condition}; and __fish_seen_subcommand_from {}",
                        third.get_name()
                    ),
                ));
            }
        }
    }
    script
}

/// Returns what is offered for a command of three words.
fn lines(command: &Command, condition: &str) -> String {
    if command.has_subcommands() {
        let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        return format!("{LINE} -n \"{condition}\" -f -a \"{}\"\n", names.join(" "));
    }
    // By itself its lines have no condition; a line that continues the values of a flag begins
    // otherwise.
    let conditional = format!("{LINE} -n \"{condition}\"");
    let alone = generated(&mut command.clone());
    let lines = alone.lines().map(|line| {
        line.strip_prefix(LINE)
            .map_or_else(|| line.to_owned(), |rest| format!("{conditional}{rest}"))
    });
    lines.map(|line| line + "\n").collect()
}

fn generated(command: &mut Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(Shell::Fish, command, "podbay", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
