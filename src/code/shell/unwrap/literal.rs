//! Commands that stand, as they are, in a program of another language: `system("…")`, `subprocess.run(["rm", "x"])`.

use super::super::Command;
use super::super::Word;
use super::super::WordKind;
use super::super::changed::named_in_awk;
use super::Inner;
use super::Unwrapped;

/// Languages whose programs are looked at.
const LANGUAGES: [&str; 10] = ["awk", "gawk", "lua", "mawk", "nawk", "node", "perl", "php", "python", "ruby"];
/// Those in which a text between backticks, or behind these words, is one for a shell, and brackets may be left out.
const SHELL_LIKE: [&str; 3] = ["perl", "php", "ruby"];
const QUOTED: [&str; 2] = ["qx", "%x"];
/// Words behind which a value stands.
const BEFORE_VALUE: [&str; 7] = ["chomp", "p", "print", "puts", "return", "say", "echo"];
/// What hands a text to a shell where it is given one, and else words to a program.
const HANDING: [&str; 6] = ["system", "execFile", "execFileSync", "spawn", "spawnSync", "execvp"];
/// What hands a text to a shell, whatever it is given besides.
const HANDING_TEXT: [&str; 7] = ["popen", "execSync", "getoutput", "getstatusoutput", "shell_exec", "passthru", "os.execute"];
/// What does so in Python: a text where it is told to (`shell=True`), or a list of words. In another folder, `cwd=`, a text is about what is there.
const STARTING: [&str; 4] = ["run", "call", "check_output", "Popen"];
/// Most commands that are read.
const COMMANDS_MAX: usize = 8;

/// Adds the commands that such a program starts, where they are written out.
pub(super) fn handed(command: &Command, name: &str, unwrapped: &mut Unwrapped) {
    unwrapped.inner.extend(commands(name, command.told()));
}

/// What a function makes of what it is given.
#[derive(Clone, Copy, PartialEq)]
enum Given {
    Text,
    /// A lone one is a text.
    TextOrWords,
    Words,
}

/// Returns the commands that programs in the language of this interpreter start.
pub(in crate::shell) fn commands<'a>(name: &str, programs: impl Iterator<Item = &'a str>) -> Vec<Inner> {
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
    // Of Python `exec` runs a text of its own language, and elsewhere it is a method of patterns and databases as well.
    let exec = |is_it: bool| Some("exec").filter(|_| is_it && language != "python");
    let by_words = HANDING.into_iter().chain(exec(is_shell_like)).map(|name| (name, Given::TextOrWords));
    let is_in_node = !is_shell_like && program.contains("child_process");
    let names = by_words.chain(HANDING_TEXT.into_iter().chain(exec(is_in_node)).map(|name| (name, Given::Text)));
    let behind = |name: &'static str| {
        let is_it =
            move |at: usize| !program[..at].ends_with(|c: char| c.is_alphanumeric() || "_%>".contains(c)) && !is_comment(program, at);
        program.match_indices(name).filter(move |(at, _)| is_it(*at)).map(move |(at, _)| &program[at + name.len()..])
    };
    for (rest, given) in names.flat_map(|(name, given)| behind(name).map(move |rest| (rest, given))).take(COMMANDS_MAX) {
        let rest = rest.trim_start();
        let arguments = rest.strip_prefix('(').or_else(|| is_shell_like.then_some(rest));
        found.extend(arguments.and_then(|arguments| started(arguments, given)));
    }
    if is_shell_like {
        // In a pattern or a text of another kind they are signs like others.
        let ticked = program.match_indices('`').filter(|(at, _)| is_value(&program[..*at]) && !is_comment(program, *at));
        found.extend(ticked.take(COMMANDS_MAX).filter_map(|(at, _)| bracketed(&program[at..])).map(|text| Inner::Text(text.to_owned())));
        let quoted = QUOTED.into_iter().flat_map(|name| program.match_indices(name)).filter(|(at, _)| is_value(&program[..*at]));
        found.extend(quoted.filter_map(|(at, name)| bracketed(&program[at + name.len()..])).map(|text| Inner::Text(text.to_owned())));
    }
    if language.ends_with("awk") {
        let texts = named_in_awk(program).into_iter().filter(|(text, is_written)| !is_written && text.contains(' '));
        found.extend(texts.map(|(text, _)| Inner::Text(text.to_owned())));
    }
    if language == "python" {
        let is_told = ["shell=True", "shell = True", "shell=1"].iter().any(|told| program.contains(told)) && !program.contains("cwd=");
        let calls = STARTING.iter().flat_map(|call| program.match_indices(call).filter(|(at, _)| is_python(program, *at)));
        let behind =
            calls.filter(|(at, _)| !is_comment(program, *at)).filter_map(|(at, call)| program[at + call.len()..].strip_prefix('('));
        found.extend(behind.take(COMMANDS_MAX).filter_map(|rest| started(rest, if is_told { Given::TextOrWords } else { Given::Words })));
    }
}

/// Returns whether a value may stand behind this: at the beginning, behind a sign that takes one, or behind a word that does.
fn is_value(before: &str) -> bool {
    let before = before.trim_end();
    let word = &before[before.trim_end_matches(char::is_alphanumeric).len()..];
    before.is_empty() || before.ends_with(['=', '(', ',', ';', '{', '\n']) || BEFORE_VALUE.contains(&word)
}

/// Returns whether the line that this place is in is a comment.
fn is_comment(program: &str, at: usize) -> bool {
    program[..at].rsplit('\n').next().unwrap_or_default().trim_start().starts_with(['#', '*']) || program[..at].ends_with("// ")
}

/// Returns what the arguments of a call start: one text for a shell, or several that are the words of a command.
fn started(rest: &str, given: Given) -> Option<Inner> {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("shell=True").map_or(rest, |rest| rest.trim_start_matches([',', ' ']));
    let rest = rest.strip_prefix("args=").unwrap_or(rest).trim_start();
    let list = rest.strip_prefix(['[', '(']);
    let mut rest = list.unwrap_or(rest);
    let mut words = Vec::new();
    let listed = rest.strip_prefix("qw").and_then(bracketed);
    words.extend(listed.into_iter().flat_map(str::split_whitespace));
    let mut is_whole = true;
    while listed.is_none() {
        // `r"…"`, and the list behind a program: `spawn("git", ["push"])`.
        let opened = rest.strip_prefix(['r', 'b', 'u']).filter(|rest| rest.starts_with(['"', '\''])).unwrap_or(rest);
        let opened = opened.strip_prefix('[').filter(|_| words.len() == 1).map_or(opened, str::trim_start);
        let Some(quote) = opened.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else {
            is_whole = opened.starts_with([')', ']', '{']) || opened.is_empty() || is_named(opened);
            break;
        };
        let Some((text, behind)) = opened[1..].split_once(quote) else { break };
        words.push(text);
        let Some(behind) = behind.trim_start().strip_prefix(',').filter(|_| given != Given::Text) else { break };
        rest = behind.trim_start();
    }
    let one = |text: &&str| Word { text: (*text).to_owned(), kind: WordKind::Known, plain: false, quoted: true };
    match words.as_slice() {
        [] => None,
        [text] if list.is_none() && is_whole => (given != Given::Words && !text.trim().is_empty()).then(|| Inner::Text((*text).to_owned())),
        words => {
            // What its own language puts there is not known.
            let rest = (!is_whole).then(|| Word::unknown("$…"));
            Some(Inner::Command(Command { words: words.iter().map(one).chain(rest).collect(), ..Command::default() }))
        }
    }
}

/// Returns whether an argument with a name of its own stands here: `check=True`, `cwd: "a"`.
fn is_named(rest: &str) -> bool {
    let behind = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    behind.len() < rest.len() && behind.trim_start().starts_with(['=', ':'])
}

/// Returns what stands between two marks of which the first is right here: `(…)`, `{…}`, `/…/`.
fn bracketed(rest: &str) -> Option<&str> {
    let open = rest.chars().next().filter(|c| "([{</!|`".contains(*c))?;
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
        check("awk", "BEGIN { system(\"rm x\"); \"rm y\" | getline; print | \"rm z\" }", &["rm x", "rm y", "rm z"]);
        check("python3", "import subprocess as sp; sp.run(\"rm x\", shell = True); sp.run((r\"rm\", \"y\"))", &["rm x", "rm|y"]);
        check("node", "cp.execFileSync(\"rm\", [\"-rf\", \"x\"]); spawn('git', ['push'], {cwd: 'a'})", &["rm|-rf|x", "git|push"]);
        check("lua", "os.execute(\"rm x\")", &["rm x"]);
        // What is put there by the language itself is not known.
        check(
            "python3",
            "import subprocess\nsubprocess.run([\"git\", c]); subprocess.run([\"ls\", \"-l\"], check=True)",
            &["git|$…", "ls|-l"],
        );
        check("perl", "$c = \"push\"; system(\"git\", $c)", &["git|$…"]);
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
        check("perl", "s/run `git push`/run `git pull`/; print \"`a`\"", &[]);
        check("ruby", "gsub(\"`git clean`\", \"x\")", &[]);
        check("perl", "$x = \"qx(rm x)\"\n# system \"rm x\"", &[]);
        check("node", "re.exec(\"git reset\"); db.exec(\"create table t (id)\")", &[]);
        check("php", "$pdo->exec(\"insert\");", &[]);
    }
}
