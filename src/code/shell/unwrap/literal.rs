//! Commands that stand, as they are, in a program of another language: `system("…")`, `subprocess.run(["rm", "x"])`.

use super::super::Command;
use super::super::Word;
use super::super::WordKind;
use super::Inner;
use super::Unwrapped;

/// Languages whose programs are looked at.
const LANGUAGES: [&str; 10] = ["awk", "gawk", "lua", "mawk", "nawk", "node", "perl", "php", "python", "ruby"];
/// Those in which a text between backticks, or behind these words, is one for a shell.
const SHELL_LIKE: [&str; 3] = ["perl", "php", "ruby"];
const QUOTED: [&str; 2] = ["qx", "%x"];
/// What hands a text to a shell, or words to a program.
const HANDING: [&str; 7] = ["system", "popen", "execSync", "getoutput", "getstatusoutput", "shell_exec", "passthru"];
/// What does so in Python: a text where it is told to (`shell=True`), or a list of words. In another folder, `cwd=`, a text is about what is there.
const STARTING: [&str; 4] = ["run", "call", "check_output", "Popen"];
/// Most commands that are read.
const COMMANDS_MAX: usize = 8;

/// Adds the commands that such a program starts, where they are written out.
pub(super) fn handed(command: &Command, name: &str, unwrapped: &mut Unwrapped) {
    unwrapped.inner.extend(commands(name, command.told()));
}

/// Returns the commands that programs in the language of this interpreter start.
pub(in crate::code::shell) fn commands<'a>(name: &str, programs: impl Iterator<Item = &'a str>) -> Vec<Inner> {
    let language = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !LANGUAGES.contains(&language) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for program in programs.filter(|program| program.contains(['"', '\'', '`', 'q', '%'])) {
        look(language, program, &mut found);
    }
    found.truncate(COMMANDS_MAX);
    found
}

fn look(language: &str, program: &str, found: &mut Vec<Inner>) {
    let is_shell_like = SHELL_LIKE.contains(&language);
    let mut names = HANDING.to_vec();
    // Of Python it runs a text of its own language.
    names.extend(Some("exec").filter(|_| language != "python"));
    let behind = |name: &'static str| {
        let is_it = |at: usize| !program[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '%');
        program.match_indices(name).filter(move |(at, _)| is_it(*at)).map(move |(at, _)| &program[at + name.len()..])
    };
    for rest in names.into_iter().flat_map(behind).take(COMMANDS_MAX) {
        let rest = rest.trim_start();
        match rest.strip_prefix('(') {
            Some(rest) => found.extend(started(rest, true)),
            None if is_shell_like => found.extend(started(rest, true)),
            None => {}
        }
    }
    if is_shell_like {
        found.extend(program.split('`').skip(1).step_by(2).take(COMMANDS_MAX).map(|text| Inner::Text(text.to_owned())));
        for rest in QUOTED.into_iter().flat_map(|name| program.match_indices(name)).map(|(at, name)| &program[at + name.len()..]) {
            found.extend(bracketed(rest).map(|text| Inner::Text(text.to_owned())));
        }
    }
    if language == "python" {
        let is_told = (program.contains("shell=True") || program.contains("shell=1")) && !program.contains("cwd=");
        let calls = STARTING.iter().flat_map(|call| program.match_indices(call).filter(|(at, _)| is_python(program, *at)));
        let behind = calls.filter_map(|(at, call)| program[at + call.len()..].strip_prefix('('));
        found.extend(behind.take(COMMANDS_MAX).filter_map(|rest| started(rest, is_told)));
    }
}

/// Returns what the arguments of a call start: one text for a shell, or several that are the words of a command.
fn started(rest: &str, is_text: bool) -> Option<Inner> {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("shell=True").map_or(rest, |rest| rest.trim_start_matches([',', ' ']));
    let rest = rest.strip_prefix("args=").unwrap_or(rest).trim_start();
    let list = rest.strip_prefix('[');
    let mut rest = list.unwrap_or(rest);
    let mut words = Vec::new();
    if let Some(text) = rest.strip_prefix("qw").and_then(bracketed) {
        words.extend(text.split_whitespace());
    }
    while let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) {
        let Some((text, behind)) = rest[1..].split_once(quote) else { break };
        words.push(text);
        let Some(behind) = behind.trim_start().strip_prefix(',') else { break };
        rest = behind.trim_start();
    }
    match words.as_slice() {
        [] => None,
        [text] if list.is_none() => (is_text && !text.trim().is_empty()).then(|| Inner::Text((*text).to_owned())),
        words => {
            let words = words.iter().map(|text| Word { text: (*text).to_owned(), kind: WordKind::Known, plain: false, quoted: true });
            Some(Inner::Command(Command { words: words.collect(), ..Command::default() }))
        }
    }
}

/// Returns what stands between two marks of which the first is right here: `(…)`, `{…}`, `/…/`.
fn bracketed(rest: &str) -> Option<&str> {
    let open = rest.chars().next().filter(|c| "([{</!|".contains(*c))?;
    let close = match open {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '<' => '>',
        mark => mark,
    };
    rest[open.len_utf8()..].split_once(close).map(|(text, _)| text)
}

/// Returns whether the function whose name begins here is one of Python's `subprocess`, by whatever name that was brought in.
fn is_python(text: &str, at: usize) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let before = text[..at].strip_suffix("check_").unwrap_or(&text[..at]);
    match before.strip_suffix('.') {
        Some(before) => {
            let module = &before[before.trim_end_matches(is_letter).len()..];
            module == "subprocess" || (!module.is_empty() && text.contains(&format!("subprocess as {module}")))
        }
        None => !before.ends_with(is_letter) && text.contains("subprocess"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, program: &str, expected: &[&str]) {
        let found = commands(name, std::iter::once(program)).into_iter().map(|inner| match inner {
            Inner::Command(command) => command.words.iter().map(|word| word.text.clone()).collect::<Vec<_>>().join("|"),
            Inner::Text(text) | Inner::Called(text, _) => text,
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{program}");
    }

    #[test]
    fn what_is_written_out_is_read_in_the_ways_of_each_language() {
        check("python3", "import os; os.system('rm x')", &["rm x"]);
        check("python3", "import subprocess as s\ns.check_call(\"rm x\", shell=1)", &["rm x"]);
        check("python3", "import subprocess; subprocess.run(['rm', '-r', 'x'])", &["rm|-r|x"]);
        check("perl", "system \"rm x\"; exec('rm', 'y')", &["rm x", "rm|y"]);
        check("perl", "exec qw(rm z); my $a = `rm x`; qx{rm y}", &["rm|z", "rm x", "rm y"]);
        check("ruby", "%x(rm x); system 'rm y'", &["rm y", "rm x"]);
        check("node", "require('child_process').execSync(`rm x`)", &["rm x"]);
        check("awk", "BEGIN { system(\"rm x\") }", &["rm x"]);
    }

    #[test]
    fn what_only_looks_so_is_not() {
        check("python3", "print('system')", &[]);
        check("python3", "exec(\"x = 1\")", &[]);
        check("python3", "import subprocess; dry_run('rm x')", &[]);
        check("python3", "app.run('0.0.0.0')", &[]);
        check("python3", "import subprocess; subprocess.run('rm x', shell=True, cwd='a')", &[]);
        check("node", "const a = `rm x`; filesystem('rm')", &[]);
        check("bash", "system 'rm x'", &[]);
    }
}
