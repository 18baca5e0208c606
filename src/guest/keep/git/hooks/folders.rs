//! Folders of which a hook starts whatever lies in them: by `run-parts`, by a pattern (`for f in checks/*; do sh "$f"; done`), or by what `find`
//! and `ls` list. All that comes into such a folder runs with the hook, under whatever name.

use std::collections::BTreeSet;

use super::words::RUNNERS;
use super::words::spelled;
use crate::root::split;

/// Words behind which a command stands, beside what parts commands.
const BEFORE_COMMANDS: [&[u8]; 20] = [
    b"do",
    b"then",
    b"else",
    b"elif",
    b"if",
    b"while",
    b"until",
    b"!",
    b"{",
    b"exec",
    b"command",
    b"env",
    b"time",
    b"sudo",
    b"nohup",
    b"xargs",
    b"-exec",
    b"-execdir",
    b"-ok",
    b"-okdir",
];

/// What a script or a function calls what it is given.
const GIVEN: [&[u8]; 4] = [b"0", b"1", b"@", b"*"];

/// How deep scripts are looked into that stand in a word of another one.
const MAX_DEPTH: usize = 4;

const PATTERN: &[u8] = b"*?[";

/// A word of a script, without its quotes, or what parts two commands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(Vec<u8>),
    Part(u8),
}

impl Token {
    fn word(&self) -> &[u8] {
        if let Self::Word(word) = self { word } else { b"" }
    }
}

/// Returns the folders that a script runs all of, each as it may be spelled.
pub(super) fn folders(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for unit in units(tokens(text)) {
        let runs_all = runs_what_it_lists(&unit, 0);
        for (at, token) in unit.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| &unit[at]);
            let given = || arguments(&unit, at).into_iter().map(|at| spellings(Some(&unit[at - 1]), unit[at].word())).collect::<Vec<_>>();
            match split(token.word()).1 {
                b"run-parts" if is_command(before) => found.extend(given()),
                b"find" | b"ls" if runs_all && is_command(before) => {
                    let given = given();
                    // Without one it is where the hook is.
                    found.extend(if given.is_empty() { vec![vec![b".".to_vec()]] } else { given });
                }
                _ if runs_all => found.extend(above_pattern(token.word()).map(|folder| spellings(before, folder))),
                _ => {}
            }
        }
    }
    found
}

/// Returns where the arguments of a command stand that are no options; of `find` those before what it looks for.
fn arguments(unit: &[Token], at: usize) -> Vec<usize> {
    let is_find = split(unit[at].word()).1 == b"find";
    let mut found = Vec::new();
    // Of a command in the midst of them, whose output is taken.
    let mut depth = 0_usize;
    for (at, token) in unit.iter().enumerate().skip(at + 1) {
        match token {
            Token::Part(b'(') => depth += 1,
            Token::Part(b')') if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            Token::Part(b')' | b'\n' | b';' | b'&' | b'|') => break,
            Token::Part(_) => {}
            Token::Word(word) if is_find && (word == b"!" || word.starts_with(b"-") && word.len() > 2) => break,
            // A pattern is looked at by itself.
            Token::Word(word) if word.starts_with(b"-") || above_pattern(word).is_some() => {}
            Token::Word(_) => found.push(at),
        }
    }
    found
}

/// What stands behind a variable or the output of a command is from the top of the working tree, or leads up from the folder of git.
fn spellings(before: Option<&Token>, folder: &[u8]) -> Vec<Vec<u8>> {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    if let Some(variable) = folder.strip_prefix(b"$") {
        return if variable.contains(&b'/') { spelled(Some(b'$'), variable) } else { Vec::new() };
    }
    let is_behind = folder.starts_with(b"/") && matches!(before, Some(Token::Part(b')' | b'`')));
    if is_behind { spelled(Some(b')'), folder) } else { vec![folder.to_vec()] }
}

/// Returns the folder above a pattern, if there is one.
fn above_pattern(word: &[u8]) -> Option<&[u8]> {
    let at = word.iter().position(|byte| PATTERN.contains(byte))?;
    let end = word[..at].iter().rposition(|byte| *byte == b'/')?;
    (end > 0).then(|| &word[..end])
}

/// Whether some of these start what the others list.
fn runs_what_it_lists(unit: &[Token], depth: usize) -> bool {
    let variables = variables(unit);
    let is_listed = |word: &[u8]| {
        // `./$f` is the same file.
        let name = split(word).1.strip_prefix(b"$").unwrap_or_default();
        let name = name.strip_prefix(b"{").and_then(|name| name.strip_suffix(b"}")).unwrap_or(name);
        word == b"{}" || variables.contains(name)
    };
    unit.iter().enumerate().any(|(at, token)| {
        let word = token.word();
        let begins = || is_command(at.checked_sub(1).map(|at| &unit[at])) || follows_xargs(&unit[..at]);
        let program = split(word).1;
        let runs = || is_listed(word) || runs_files(program) && runs_listed(program, &unit[at + 1..], &is_listed, depth);
        !word.is_empty() && begins() && runs()
    })
}

/// Whether a program runs the file which it is given.
fn runs_files(program: &[u8]) -> bool {
    RUNNERS.contains(&program) || matches!(program, b"." | b"python" | b"python3" | b"node" | b"bun" | b"deno" | b"ruby")
}

/// Whether a runner that stands before these runs something that nobody has named: what is listed, a pattern, or what it reads.
fn runs_listed(runner: &[u8], rest: &[Token], is_listed: &dyn Fn(&[u8]) -> bool, depth: usize) -> bool {
    let is_shell = runner == b"." || runner == b"source" || runner.ends_with(b"sh");
    for (at, token) in rest.iter().enumerate() {
        match token.word() {
            // It only looks whether it can be read, or runs a module, or a program in its words.
            b"-n" | b"-m" | b"--check" | b"--syntax-check" => return false,
            [b'-', options @ ..] if !is_shell && !options.starts_with(b"-") && reads_only(runner, options) => return false,
            [b'-', options @ ..] if !options.starts_with(b"-") && options.ends_with(b"c") => {
                let script = rest.get(at + 1).map_or(&b""[..], Token::word);
                return depth < MAX_DEPTH && units(tokens(script)).iter().any(|unit| runs_what_it_lists(unit, depth + 1));
            }
            [b'-', ..] => {}
            // It reads what comes before it, or `xargs` adds something.
            b"" => return true,
            word => return is_listed(word) || above_pattern(word).is_some(),
        }
    }
    true
}

/// Whether short options of an interpreter that is no shell have it run none of the files behind them.
fn reads_only(runner: &[u8], options: &[u8]) -> bool {
    match runner {
        b"php" => options.contains(&b'l') || options.contains(&b'r'),
        b"python" | b"python3" => options.starts_with(b"m"),
        b"perl" | b"ruby" => options.iter().any(|option| b"ce".contains(option)),
        b"node" | b"bun" | b"deno" => options.iter().any(|option| b"cep".contains(option)),
        _ => false,
    }
}

/// Returns the variables that have what is listed, one after the other.
fn variables(unit: &[Token]) -> BTreeSet<&[u8]> {
    let mut variables = BTreeSet::from(GIVEN);
    for (at, token) in unit.iter().enumerate() {
        let words = unit[at + 1..].iter().map(Token::word).take_while(|word| !word.is_empty());
        match token.word() {
            b"for" => variables.extend(words.take(1)),
            b"read" => variables.extend(words.filter(|word| !word.starts_with(b"-"))),
            _ => {}
        }
    }
    variables
}

/// Whether a command begins behind this.
fn is_command(before: Option<&Token>) -> bool {
    match before {
        None | Some(Token::Part(_)) => true,
        Some(Token::Word(word)) => BEFORE_COMMANDS.contains(&word.as_slice()),
    }
}

/// Whether `xargs` stands before, with options of its own between.
fn follows_xargs(before: &[Token]) -> bool {
    let mut command = before.iter().rev().take_while(|token| matches!(token, Token::Word(_))).map(Token::word);
    let is_of_option = |word: &[u8]| word.starts_with(b"-") || word == b"{}" || word.iter().all(u8::is_ascii_digit);
    command.find(|word| !is_of_option(word)).is_some_and(|word| split(word).1 == b"xargs")
}

/// Parts a script into lines, and loops with all that is in them.
fn units(tokens: Vec<Token>) -> Vec<Vec<Token>> {
    let mut units = Vec::new();
    let mut unit: Vec<Token> = Vec::new();
    let mut depth = 0_usize;
    for token in tokens {
        match token.word() {
            b"for" | b"while" | b"until" | b"select" if is_command(unit.last()) => depth += 1,
            b"done" if is_command(unit.last()) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if token == Token::Part(b'\n') && depth == 0 {
            units.push(std::mem::take(&mut unit));
        } else {
            unit.push(token);
        }
    }
    units.push(unit);
    units
}

fn tokens(text: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut word = Vec::new();
    let mut quote = None;
    // What is open around a command whose output is taken.
    let mut around = Vec::new();
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if quote != Some(b'\'') => word.extend(bytes.next().filter(|byte| *byte != b'\n')),
            _ if quote == Some(byte) => quote = None,
            b'"' | b'\'' if quote.is_none() => quote = Some(byte),
            b'$' if quote != Some(b'\'') && bytes.next_if_eq(&b'(').is_some() => {
                around.push(quote.take());
                end(&mut tokens, &mut word, Some(b'('));
            }
            b')' if quote.is_none() => {
                quote = around.pop().flatten();
                end(&mut tokens, &mut word, Some(b')'));
            }
            b'`' if quote != Some(b'\'') => end(&mut tokens, &mut word, Some(b'`')),
            b';' | b'&' | b'|' | b'(' | b'\n' if quote.is_none() => end(&mut tokens, &mut word, Some(byte)),
            b' ' | b'\t' if quote.is_none() => end(&mut tokens, &mut word, None),
            byte => word.push(byte),
        }
    }
    end(&mut tokens, &mut word, None);
    tokens
}

fn end(tokens: &mut Vec<Token>, word: &mut Vec<u8>, part: Option<u8>) {
    if !word.is_empty() {
        tokens.push(Token::Word(std::mem::take(word)));
    }
    tokens.extend(part.map(Token::Part));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: &[&str]) {
        let found = folders(script.as_bytes());
        let first: Vec<String> =
            found.iter().filter_map(|spelled| spelled.first()).map(|folder| String::from_utf8_lossy(folder).into_owned()).collect();
        assert_eq!(first, expected, "{script}");
    }

    #[test]
    fn a_folder_all_of_which_a_hook_starts_is_found() {
        for script in [
            "for f in checks/*; do sh \"$f\"; done",
            "for f in checks/*; do \"./$f\" || exit 1; done",
            "for f in checks/*; do [ -x \"$f\" ] && sh \"$PWD/$f\"; done",
            "for f in checks/*.sh\ndo\n  [ -x \"$f\" ] || continue\n  \"$f\" \"$@\" || exit 1\ndone",
            "for f in ./checks/*; do\n . \"${f}\"\ndone",
            "for f in \"$(git rev-parse --show-toplevel)\"/checks/*; do exec $f; done",
            "for f in \"$ROOT\"/checks/*.py; do python3 \"$f\"; done",
            "run-parts checks",
            "run-parts --exit-on-error --regex='.*' checks/",
            "cd x && run-parts --report ./checks",
            "find checks -name '*.sh' -exec sh {} \\;",
            "find checks -type f -exec {} +",
            "find checks -type f | while read -r f; do bash \"$f\"; done",
            "find checks -name '*.sh' -print0 | xargs -0 -n1 bash",
            "for f in $(ls checks); do sh \"checks/$f\"; \"$f\"; done",
            "ls checks/* | xargs -n 1 sh",
            "sh -e checks/*",
            "find \"$(git rev-parse --show-toplevel)/checks\" -name '*.sh' -exec sh {} \\;",
            "cat checks/* | sh",
            "find checks -type f -exec sh -c 'sh \"$1\"' _ {} \\;",
        ] {
            let found = folders(script.as_bytes());
            let is_it = |folder: &Vec<u8>| matches!(folder.as_slice(), b"checks" | b"./checks");
            assert!(found.iter().flatten().any(is_it), "{script}: {found:?}");
        }
        check("find . -name '*.sh' -exec sh {} \\;", &["."]);
    }

    #[test]
    fn a_folder_that_a_hook_only_works_on_is_none() {
        for script in [
            "eslint src",
            "cargo fmt -- src/*.rs",
            "git diff --quiet -- src",
            "for f in src/*.rs; do rustfmt --check \"$f\" || exit 1; done",
            "for f in src/*.sh; do bash -n \"$f\"; done\nsh scripts/check",
            "for f in src/*.py; do python -m py_compile \"$f\"; done",
            "find src -name '*.py' -exec black --check {} +",
            "find src -name '*.rs' | xargs rustfmt --check",
            "find src -type f | while read -r f; do grep -l TODO \"$f\"; done",
            "ls src/*\nsh scripts/check",
            "FILES=$(git diff --cached --name-only); for f in $FILES; do sh -n \"$f\"; done",
            "prettier --check 'src/**/*.ts'",
            "for f in src/*.js; do node --check \"$f\" || exit 1; done",
            "for f in src/*.json; do python3 -mjson.tool \"$f\" >/dev/null; done",
            "find src -name '*.php' -print0 | xargs -0 -n1 php -l",
            "perl -pi -e 's/[ \\t]+$//' src/*.c",
            "find src -name '*.rs' -exec sh -c 'rustfmt \"$1\"' _ {} \\;",
        ] {
            check(script, &[]);
        }
    }
}
