//! What `{{tool_name}}` and `{{tool_input}}` in a hook's command stand for, and where they may stand.
//!
//! A model wrote what is put in. Quotes keep it one word only where a shell reads them as quotes: not in a string, a here-document or a
//! substitution, nor where a program reads its argument as a text to run. So each must be certain to stand as a plain word of a plain
//! command; everywhere else the hook is refused, when the settings are read and again before it runs. Which shell runs it is known only then:
//! where it is not bash, what that may read otherwise is refused besides.

use std::fmt::Write as _;

use podbay_code::shell;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_wire::Shell;

/// What is replaced, and the variable that holds the same.
const FIELDS: [(&str, &str); 2] = [("{{tool_name}}", "PODBAY_TOOL_NAME"), ("{{tool_input}}", "PODBAY_TOOL_ARGS")];

/// What makes a text hang together in ways on which shells, or readings of them, differ.
const OPENERS: [&str; 8] = ["`", "$(", "<<", "<(", ">(", "((", "$'", "$\""];

/// Programs that take an argument for a text to run, for the name of a variable, or for something to compute, which may run it too.
const INTERPRETERS: &[&str] = &[
    ".",
    "[",
    "[[",
    "ash",
    "at",
    "awk",
    "bash",
    "batch",
    "bind",
    "chroot",
    "compgen",
    "complete",
    "csh",
    "dash",
    "declare",
    "docker",
    "ed",
    "emacs",
    "env",
    "eval",
    "ex",
    "exec",
    "expect",
    "export",
    "fc",
    "find",
    "fish",
    "flock",
    "gawk",
    "gdb",
    "ksh",
    "kubectl",
    "let",
    "local",
    "make",
    "mapfile",
    "mawk",
    "mysql",
    "nawk",
    "nsenter",
    "parallel",
    "podman",
    "psql",
    "pwsh",
    "rbash",
    "read",
    "readarray",
    "readonly",
    "rsync",
    "runuser",
    "screen",
    "script",
    "sed",
    "set",
    "sh",
    "source",
    "sqlite3",
    "ssh",
    "su",
    "sudo",
    "systemd-run",
    "tclsh",
    "test",
    "tmux",
    "trap",
    "typeset",
    "unset",
    "vi",
    "vim",
    "wait",
    "watch",
    "xargs",
    "zsh",
];

/// Programs that run a text behind an option; behind the name of a file, arguments are only arguments. Also with a version: `python3.12`.
const SCRIPTED: [&str; 8] = ["python", "pypy", "perl", "ruby", "node", "bun", "php", "lua"];

/// Returns a command with the values put in, each as one word of the shell whatever it holds; the error says why that is not certain.
pub(super) fn fill(run: &str, tool_name: &str, tool_input: &str, runs_it: Shell) -> Result<String, String> {
    check(run)?;
    let places = places(run);
    if runs_it != Shell::Bash
        && let Some(first) = places.first()
        && let Some(what) = shell::only_in_bash(&replaced(run, &places, |n, _| mark(run, n)))
    {
        return Err(refused(run, first, &format!("no bash runs it, and a plain sh may read `{what}` otherwise")));
    }
    let value = |field: &str| if field == FIELDS[0].0 { tool_name } else { tool_input };
    // In one pass, so that what was put in is not searched again.
    Ok(replaced(run, &places, |_, field| quoted(value(field))))
}

/// Refuses a command in which what is put in might be more than a word; the error says why, and what to write.
pub(super) fn check(run: &str) -> Result<(), String> {
    let places = places(run);
    if let Some(unknown) = misspelt(run) {
        return Err(format!(
            "the hook `{run}` has `{unknown}`, which stands for nothing; write `{{{{tool_name}}}}` for the tool's name or `{{{{tool_input}}}}` for \
             its arguments, as it is here in full"
        ));
    }
    let Some(first) = places.first() else { return Ok(()) };
    if let Some(opener) = OPENERS.iter().find(|opener| run.contains(**opener)) {
        return Err(refused(run, first, &format!("`{opener}` is in the command")));
    }
    let script = shell::read(&replaced(run, &places, |n, _| mark(run, n)));
    if let Some(doubt) = script.doubts.first() {
        return Err(refused(run, first, &format!("the command cannot be read for certain ({doubt})")));
    }
    if let Some(function) = script.functions.first() {
        return Err(refused(run, first, &format!("the function `{}` may use it in any way", function.name)));
    }
    for (n, place) in places.iter().enumerate() {
        let why = if is_open(&run[..place.0]) { why_not(&script, &mark(run, n)) } else { Some("it is in quotes".to_owned()) };
        if let Some(why) = why {
            return Err(refused(run, place, &why));
        }
    }
    Ok(())
}

fn refused(run: &str, (_, field, variable): &Place, why: &str) -> String {
    format!(
        "the hook `{run}` would put what the model wrote where a shell may run it: `{field}` is not certain to stay one word there, because \
         {why}; write \"${variable}\" instead, in double quotes, or in a script of your own"
    )
}

/// Returns what is written like a field of a call and is none: a shell would take it as it stands, and the hook would look at nothing.
///
/// Other double braces are left alone: programs have templates of their own, such as `{{.Names}}`.
fn misspelt(run: &str) -> Option<&str> {
    let mut rest = run;
    while let Some(at) = rest.find("{{") {
        rest = &rest[at..];
        let end = rest.find("}}")? + 2;
        let (whole, name) = (&rest[..end], rest[2..end - 2].trim());
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-. ".contains(letter)) && !name.starts_with('.');
        let is_of_call = plain.starts_with("tool") || plain.starts_with("podbaytool");
        if is_name && is_of_call && !FIELDS.iter().any(|(field, _)| *field == whole) {
            return Some(whole);
        }
        rest = &rest[2..];
    }
    None
}

/// Where a field stands, which, and the variable for it.
type Place = (usize, &'static str, &'static str);

fn places(run: &str) -> Vec<Place> {
    let of = |(field, variable): (&'static str, &'static str)| run.match_indices(field).map(move |(at, _)| (at, field, variable));
    let mut places: Vec<Place> = FIELDS.into_iter().flat_map(of).collect();
    places.sort_unstable();
    places
}

fn replaced(run: &str, places: &[Place], by: impl Fn(usize, &str) -> String) -> String {
    let mut text = String::with_capacity(run.len());
    let mut from = 0;
    for (n, (at, field, _)) in places.iter().enumerate() {
        text.push_str(&run[from..*at]);
        text.push_str(&by(n, field));
        from = at + field.len();
    }
    text.push_str(&run[from..]);
    text
}

/// Returns a word that stands nowhere else in the command, another for each place.
fn mark(run: &str, n: usize) -> String {
    let mut mark = "podbayword".to_owned();
    while run.contains(&mark) {
        mark.push('x');
    }
    let _infallible = write!(mark, "{n}z");
    mark
}

/// Returns whether what comes after this text is outside of quotes: a reading of our own beside the grammar's.
fn is_open(before: &str) -> bool {
    let mut letters = before.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next().is_none() => return false,
            '\'' if !letters.any(|letter| letter == '\'') => return false,
            '"' => loop {
                match letters.next() {
                    None => return false,
                    Some('"') => break,
                    Some('\\') => drop(letters.next()),
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    true
}

/// Returns why a mark is no plain word behind a program that takes it as it is.
fn why_not(script: &Script, mark: &str) -> Option<String> {
    let mut holders = script.commands.iter().filter(|command| command.words.iter().any(|word| word.text.contains(mark)));
    let Some(command) = holders.next() else { return Some("it is no word of a command".to_owned()) };
    if holders.next().is_some() {
        return Some(format!("`{}` starts another program with it", command.name().unwrap_or_default()));
    }
    let name = command.name().unwrap_or_default();
    if command.program().is_none_or(|program| program.text.contains(mark)) {
        return Some("it would be the name of a program".to_owned());
    }
    if !command.arguments().iter().any(|word| word.plain && word.text.contains(mark)) {
        return Some("it is in quotes, or something else is in its word".to_owned());
    }
    interprets(command, name, mark).then(|| format!("`{name}` may run what it is given"))
}

fn interprets(command: &Command, name: &str, mark: &str) -> bool {
    // What comes first decides: an option may bring a text or the name of a variable.
    let first_is_data = || {
        command.arguments().first().is_some_and(|first| first.known().is_some_and(|text| !text.starts_with('-') && !text.contains(mark)))
    };
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    INTERPRETERS.contains(&name) || ((name == "printf" || SCRIPTED.contains(&stem)) && !first_is_data())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_one_word_and_not_searched_again() {
        let input = r#"{"command":"'; touch x; echo '{{tool_name}}"}"#;
        let expected = r#"log 'bash' '{"command":"'\''; touch x; echo '\''{{tool_name}}"}' {{other}}"#;
        assert_eq!(fill("log {{tool_name}} {{tool_input}} {{other}}", "bash", input, Shell::Plain).as_deref(), Ok(expected));
    }

    #[test]
    fn a_plain_word_of_a_plain_command_takes_a_value() {
        for run in [
            "echo none \"$(date)\" <<< x",
            "scripts/log {{tool_name}} {{tool_input}}",
            "log --input={{tool_input}} > log.txt 2>&1",
            "cat > before.json; echo $PODBAY_TOOL_NAME > name; echo {{tool_input}} > input",
            "if grep -q \"it's\" list; then\n  log {{tool_input}}\nfi",
            "printf '%s\\n' {{tool_input}} | jq .path",
            "python3.12 hooks/log.py {{tool_input}}",
        ] {
            assert_eq!(check(run), Ok(()), "{run}");
        }
    }

    #[test]
    fn everywhere_else_the_hook_is_refused_and_the_variable_named() {
        for run in [
            "echo \"agent: {{tool_name}} {{tool_input}}\"",
            "echo '{{tool_input}}'",
            "echo \"it's\" \"{{tool_input}}\"",
            "echo x\\{{tool_input}}",
            "echo x\\\n{{tool_input}}",
            "cat <<END\n{{tool_input}}\nEND",
            "cat <<< {{tool_input}}",
            "echo $(log {{tool_input}})",
            "echo `log {{tool_input}}`",
            "diff <(log {{tool_input}}) x",
            "echo $'\\'' {{tool_input}} $'\\''",
            "(( {{tool_input}} ))",
            "[[ {{tool_input}} -eq 1 ]]",
            "test {{tool_input}} -eq 1",
            "x={{tool_input}}; log",
            "for x in {{tool_input}}; do log; done",
            "case {{tool_input}} in *) log ;; esac",
            "log > {{tool_input}}",
            "# {{tool_input}}",
            "{{tool_name}} x",
            "./{{tool_name}} x",
            "f() { eval \"$1\"; }; f {{tool_input}}",
            "f() { log \"$1\"; }; f {{tool_input}}",
            "set -- {{tool_input}}; log",
            "echo {{tool_input}} | sh",
            "log \"{{tool_input}}",
            "printf {{tool_input}}",
            "printf -v {{tool_input}} x",
            "echo ${x:-{{tool_input}}}",
            "log {a,b}{{tool_input}}",
        ] {
            let said = check(run).expect_err(run);
            assert!(said.contains("double quotes") && (said.contains("$PODBAY_TOOL_ARGS") || said.contains("$PODBAY_TOOL_NAME")), "{said}");
            assert_eq!(fill(run, "bash", "x", Shell::Bash), Err(said));
        }
    }

    #[test]
    fn where_no_bash_runs_it_what_only_bash_reads_so_is_refused() {
        for run in ["[[ -n x ]] && log {{tool_input}}", "log &> out; log {{tool_input}}", "log |& tee out; log {{tool_name}}"] {
            assert_eq!(check(run), Ok(()), "{run}");
            assert!(fill(run, "bash", "x", Shell::Bash).is_ok(), "{run}");
            let said = fill(run, "bash", "x", Shell::Plain).expect_err(run);
            assert!(said.contains("a plain sh may read") && said.contains("in double quotes"), "{said}");
        }
        // Where nothing is put in nothing is at stake.
        assert!(fill("[[ -n x ]] && log", "bash", "x", Shell::Plain).is_ok());
        assert!(fill("[ -n x ] && log {{tool_input}} 2>&1", "bash", "x", Shell::Plain).is_ok());
    }

    #[test]
    fn a_field_that_is_misspelt_is_told_when_the_settings_are_read() {
        for run in [
            "log {{toolname}}",
            "log {{ tool_input }}",
            "log {{tool_args}}",
            "log {{toolInput.path}}",
            "log '{{tool}}'",
            "log {{TOOL_NAME}}",
        ] {
            let said = check(run).expect_err(run);
            assert!(said.contains("stands for nothing") && said.contains("`{{tool_input}}`"), "{said}");
        }
        for run in ["docker ps --format '{{.Names}}'", "log {{other}}", "log '{{range .Tools}}'", "log {{", "log }}{{tool_name"] {
            assert_eq!(check(run), Ok(()), "{run}");
        }
    }

    #[test]
    fn what_reads_its_argument_as_a_text_gets_none() {
        for program in [
            "eval",
            "bash",
            "bash -c",
            "sh -c",
            "sh -c 'log \"$1\"' x",
            "/bin/sh -c",
            "ssh host",
            "su -c",
            "su nobody -c",
            "env -S",
            "env",
            "xargs",
            "xargs log",
            "watch",
            "trap",
            "source",
            ".",
            "sudo sh -c",
            "nice log",
            "timeout 3 log",
            "python3 -c",
            "perl -e",
            "awk",
            "find . -exec",
            "git -c",
            "git rebase -x",
            "docker exec x sh -c",
            "command log",
            "exec log",
        ] {
            for word in ["{{tool_input}}", "x{{tool_name}}"] {
                assert!(check(&format!("{program} {word}")).is_err(), "{program} {word}");
            }
        }
        assert!(check("sh -c 'log {{tool_input}}'").is_err());
    }
}
