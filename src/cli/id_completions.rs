//! Completions of what no script can hold: the ids of sessions and reviews, the names of models and
//! settings. The scripts ask `podbay complete KIND` for them.

use clap::Arg;
use clap::Command;
use clap::ValueEnum;
use clap::ValueHint;

/// What has ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum IdKind {
    Sessions,
    Reviews,
    Models,
    Settings,
}

impl IdKind {
    const ALL: [Self; 4] = [Self::Sessions, Self::Reviews, Self::Models, Self::Settings];

    /// Returns what an argument of this command takes, if that has ids.
    pub(super) fn of(path: &str, argument: &Arg) -> Option<Self> {
        match (path, argument.get_id().as_str()) {
            ("config get" | "config set" | "config unset", "key") | ("config list", "prefix") => {
                Some(Self::Settings)
            }
            (_, "resume") => Some(Self::Sessions),
            ("models pull" | "models rm" | "models info", "name" | "model") => Some(Self::Models),
            (_, "model") if !argument.is_positional() => Some(Self::Models),
            ("review diff", "words") | ("review" | "review apply" | "review discard", "id") => {
                Some(Self::Reviews)
            }
            (_, "id" | "ids") if path.starts_with("sessions ") => Some(Self::Sessions),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Reviews => "reviews",
            Self::Models => "models",
            Self::Settings => "settings",
        }
    }

    /// Returns a hint that stands for this kind in a script that the library writes, and what the
    /// library writes for it in zsh: nothing here takes a user, a host or an address of that form.
    pub(super) fn mark(self) -> (ValueHint, &'static str) {
        match self {
            Self::Sessions => (ValueHint::Username, "_users"),
            Self::Reviews => (ValueHint::Hostname, "_hosts"),
            Self::Models => (ValueHint::EmailAddress, "_email_addresses"),
            Self::Settings => (ValueHint::Url, "_urls"),
        }
    }
}

/// Returns each command and flag that takes an id: `sessions show`, or `--resume`.
fn places(command: &Command, path: &str, found: &mut Vec<(String, IdKind)>) {
    for argument in command.get_arguments() {
        let Some(kind) = IdKind::of(path, argument) else {
            continue;
        };
        let place = match argument.get_long() {
            Some(long) => (format!("--{long}"), kind),
            None => (path.to_owned(), kind),
        };
        if !found.contains(&place) {
            found.push(place);
        }
    }
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        places(below, path.trim_start(), found);
    }
}

/// Returns the names of the places of one kind: commands, and flags.
fn of_kind(all: &[(String, IdKind)], kind: IdKind) -> (Vec<&str>, Vec<&str>) {
    all.iter()
        .filter(|(_, other)| *other == kind)
        .map(|(place, _)| place.as_str())
        .partition(|place| !place.starts_with("--"))
}

/// Adds ids to what bash completes.
pub(super) fn bash(script: &str, command: &Command) -> String {
    let mut all = Vec::new();
    places(command, "", &mut all);
    let (mut by_flag, mut by_command) = (String::new(), String::new());
    for kind in IdKind::ALL {
        let (commands, flags) = of_kind(&all, kind);
        let name = kind.as_str();
        if !flags.is_empty() {
            by_flag.push_str(&format!("        {}) kind={name} ;;\n", flags.join("|")));
        }
        if !commands.is_empty() {
            let words: Vec<String> = commands
                .iter()
                .map(|place| format!("\"{place}\""))
                .collect();
            by_command.push_str(&format!("        {}) kind={name} ;;\n", words.join("|")));
        }
    }
    let words = script.replacen("_podbay() {", "_podbay_words() {", 1);
    let ids = format!(
        r#"
# Ids are known to this machine alone.
_podbay() {{
    _podbay_words "$@" || true
    local kind="" word="${{COMP_WORDS[COMP_CWORD]}}"
    case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{by_flag}    esac
    if [[ -z $kind && $word != -* && $COMP_CWORD -ge 3 && ${{COMP_WORDS[COMP_CWORD-1]}} != -* ]]; then
        case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{by_command}        esac
    fi
    if [[ -n $kind ]]; then
        local id rest
        while IFS=$'\t' read -r id rest; do
            if [[ $id == "$word"* ]]; then
                COMPREPLY+=("$id")
            fi
        done < <(podbay complete "$kind" 2>/dev/null)
    fi
}}
"#
    );
    // The line that binds the function stands last, and what it binds must be there.
    match words.rfind("\nif [[ \"${BASH_VERSINFO[0]}\"") {
        Some(at) => format!("{}{ids}{}", &words[..at], &words[at..]),
        None => format!("{words}{ids}"),
    }
}

/// Puts ids in the place of their marks in what zsh completes.
pub(super) fn zsh(script: &str) -> String {
    let mut script = script.to_owned();
    let mut functions = String::new();
    for kind in IdKind::ALL {
        let name = kind.as_str();
        script = script.replace(&format!(":{}", kind.mark().1), &format!(":_podbay_{name}"));
        functions.push_str(&format!(
            r#"
(( $+functions[_podbay_{name}] )) ||
_podbay_{name}() {{
    local -a ids
    ids=(${{(f)"$(podbay complete {name} 2>/dev/null)"}})
    ids=(${{ids/$'\t'/:}})
    _describe '{name}' ids
}}
"#
        ));
    }
    // The script ends by calling itself, where it is loaded on first use.
    match script.rfind("\nif [ \"$funcstack[1]\"") {
        Some(at) => format!("{}{functions}{}", &script[..at], &script[at..]),
        None => format!("{script}{functions}"),
    }
}

/// Returns what fish completes with ids.
pub(super) fn fish(command: &Command) -> String {
    let mut all = Vec::new();
    places(command, "", &mut all);
    let mut script = String::new();
    for (place, kind) in &all {
        let ids = format!("(podbay complete {} 2>/dev/null)", kind.as_str());
        let line = if let Some(flag) = place.strip_prefix("--") {
            format!("complete -c podbay -l {flag} -x -a \"{ids}\"\n")
        } else {
            let (first, second) = place.split_once(' ').unwrap_or((place, ""));
            format!(
                "complete -c podbay -n \"__fish_podbay_using_subcommand {first}; and __fish_seen_subcommand_from {second}\" -f -a \"{ids}\"\n"
            )
        };
        script.push_str(&line);
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    #[test]
    fn every_command_that_takes_an_id_is_found() {
        let mut all = Vec::new();
        places(&help::command(), "", &mut all);
        let commands = |kind| of_kind(&all, kind).0.join(", ");
        assert_eq!(
            commands(IdKind::Sessions),
            "sessions show, sessions resume, sessions fork, sessions export, sessions report, sessions rewind, sessions rename, sessions rm"
        );
        assert_eq!(
            commands(IdKind::Reviews),
            "review diff, review apply, review discard"
        );
        assert_eq!(
            commands(IdKind::Models),
            "models pull, models rm, models info"
        );
        assert_eq!(
            commands(IdKind::Settings),
            "config list, config get, config set, config unset"
        );
        let flags = |kind| of_kind(&all, kind).1.join(", ");
        assert_eq!(flags(IdKind::Sessions), "--resume");
        assert_eq!(flags(IdKind::Models), "--model");
    }
}
