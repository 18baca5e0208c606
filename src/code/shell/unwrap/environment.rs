//! Variables that name a program, which whoever obeys them starts.

use super::super::Command;
use super::super::Word;
use super::Inner;
use super::Unwrapped;
use super::shell::read_by;

/// Their value is a command.
const COMMANDS: [&str; 26] = [
    "BAT_PAGER",
    "BROWSER",
    "CVS_RSH",
    "DELTA_PAGER",
    "EDITOR",
    "FCEDIT",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "RSYNC_RSH",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SVN_EDITOR",
    "SYSTEMD_PAGER",
    "VISUAL",
];

/// Looks at the variables that a command sets for itself, or for those behind it.
pub(super) fn set(command: &Command, unwrapped: &mut Unwrapped) {
    for assignment in &command.assignments {
        let name = assignment.name.as_str();
        let value = assignment.value.as_ref();
        let known = value.and_then(Word::known);
        if COMMANDS.contains(&name) {
            match known.map(|text| text.trim_start_matches(['|', '-', ' '])) {
                Some("") => {}
                Some(text) => {
                    read_by("sh", text, unwrapped);
                    unwrapped.inner.push(Inner::Text(text.to_owned()));
                }
                None => unwrapped.doubt(name, "which program it names is not known"),
            }
        } else if may_start(name, known) {
            unwrapped.doubt(name, "what obeys it may start a program");
        }
    }
}

/// Looks at variables that a command of the shell sets otherwise than by an assignment: `read NAME`, `printf -v NAME`, `declare 'NAME=VALUE'`.
pub(super) fn named(name: &str, arguments: &[Word], unwrapped: &mut Unwrapped) {
    let names: &[Word] = match (name, arguments) {
        ("printf", [option, behind @ ..]) if option.text.starts_with("-v") => &arguments[..=behind.len().min(1)],
        ("read" | "mapfile" | "readarray" | "getopts" | "declare" | "typeset" | "local" | "export" | "readonly", all) => all,
        ("wait", all) if all.iter().any(|word| word.text.starts_with("-p")) => all,
        _ => return,
    };
    for word in names {
        let text = word.text.trim_start_matches("-v").trim_start_matches("-p");
        let variable = text.split(['[', '=']).next().unwrap_or(text);
        let declares = !matches!(name, "read" | "mapfile" | "readarray" | "getopts" | "printf" | "wait");
        let is_set = !declares || text.contains(['[', '=']);
        let refers = declares && text.split_once('=').is_some_and(|(_, named)| is_of_bash(named));
        if is_set && (COMMANDS.contains(&variable) || may_start(variable, None)) || refers {
            unwrapped.doubt(&word.text, "what obeys it may start a program");
        }
    }
}

/// Returns whether a variable holds a file of commands, settings or options, with which a program may start others.
fn may_start(name: &str, value: Option<&str>) -> bool {
    let is = |names: &[&str]| value.is_some_and(|value| names.contains(&value));
    match name {
        "BASH_ENV" | "ENV" => !is(&[""]),
        "TAR_OPTIONS" | "LESSKEY" | "LESSKEYIN" | "LESSKEY_CONTENT" | "LESSKEYIN_SYSTEM" => true,
        "LESS" | "MORE" | "MANOPT" => value.is_none_or(|value| value.contains(['+', 'k', '='])),
        "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" => !is(&["/dev/null", ""]),
        "GIT_CONFIG_NOSYSTEM" => false,
        "MAKEFLAGS" | "GNUMAKEFLAGS" | "MFLAGS" | "MAKEFILES" => value.is_none_or(|value| {
            !value.chars().all(|c| c.is_ascii_alphanumeric() || "- ".contains(c))
                || ["eval", "file", "f"].iter().any(|part| value.contains(part))
        }),
        // A function of bash, an alias, or where a program is, each of which takes the place of that.
        _ if is_of_bash(name) => true,
        _ => name.starts_with("GIT_CONFIG"),
    }
}

/// Returns whether bash itself looks for programs in what this name begins.
fn is_of_bash(name: &str) -> bool {
    ["BASH_FUNC_", "BASH_CMDS", "BASH_ALIASES"].iter().any(|begin| name.starts_with(begin))
}
