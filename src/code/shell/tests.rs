use proptest::prelude::any;
use proptest::prop_assert;
use proptest::proptest;

use super::read;

/// Shows a script: its commands separated by ` ; `, each word in brackets where it needs them, `?`
/// for an unknown word, `=` for variables that are set, `>` for a file that is written, `…` where
/// parsing stopped, and what is unknown after ` -- `.
fn shown(text: &str) -> String {
    let script = read(text);
    let of_command = |command: &super::Command| {
        let words = command.words.iter().map(|word| match word {
            Some(word) if word.is_empty() || word.contains([' ', '\n']) => format!("<{word}>"),
            Some(word) => word.clone(),
            None => "?".to_owned(),
        });
        let marks = [(command.sets_variables, "="), (command.writes, ">")];
        let marks = marks
            .into_iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, mark)| mark.to_owned());
        words.chain(marks).collect::<Vec<_>>().join(" ")
    };
    let commands: Vec<String> = script.commands.iter().map(of_command).collect();
    let cut = if script.is_cut { " …" } else { "" };
    let unknown = script
        .unknown
        .map(|unknown| format!("{cut} -- {unknown}"))
        .unwrap_or_default();
    format!("{}{unknown}", commands.join(" ; "))
}

#[track_caller]
fn check(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(shown(text), *expected, "{text}");
    }
}

#[test]
fn words_are_unquoted_and_unescaped_as_by_a_shell() {
    check(&[
        ("git push", "git push"),
        ("  git\tpush  ", "git push"),
        ("git 'push origin' \"a b\"", "git <push origin> <a b>"),
        ("g\"\"it pu's'h", "git push"),
        ("g\\it pu\\\nsh", "git push"),
        ("echo \"a\\\"b\\$c\\d\" 'a\\b'", "echo a\"b$c\\d a\\b"),
        ("echo '' \"\"", "echo <> <>"),
        ("echo a#b # c; rm x\nls", "echo a#b ; ls"),
        ("echo $ a$ \"$ $\"", "echo $ a$ <$ $>"),
        (
            "git commit -m 'x $(y) `z` > $A *'",
            "git commit -m <x $(y) `z` > $A *>",
        ),
        ("find . -exec rm {} \\;", "find . -exec rm {} ;"),
        ("[ -f a ]", "[ -f a ]"),
        (
            "git reset HEAD~1 main^ a=b x:y",
            "git reset HEAD~1 main^ a=b x:y",
        ),
        ("é 日本", "é 日本"),
        ("ls\r", "ls\r"),
        ("", ""),
        ("# only\n\n", ""),
    ]);
}

#[test]
fn commands_are_separated_by_operators_and_line_ends() {
    check(&[
        (
            "a; b && c || d | e & f\ng |& h",
            "a ; b ; c ; d ; e ; f ; g ; h",
        ),
        ("a;b&&c||d|e&f", "a ; b ; c ; d ; e ; f"),
        ("make & ", "make"),
        ("a 'b;c' \"d&&e\" f\\;g", "a b;c d&&e f;g"),
    ]);
}

#[test]
fn redirects_are_not_words_and_writing_ones_are_reported() {
    check(&[
        ("make > log 2>&1", "make >"),
        ("make >log", "make >"),
        ("> log make x", "make x >"),
        ("make 2>/dev/null >/dev/null", "make"),
        ("make &> log", "make >"),
        ("make &>> log; ls", "make > ; ls"),
        ("make >& log", "make >"),
        ("make >&2 2>&- <&0 <&3-", "make"),
        ("make >>log <in >|out", "make >"),
        ("sort < in", "sort"),
        ("echo 2 > a", "echo 2 >"),
        ("echo a2>b", "echo a2 >"),
        ("cat <> f", "cat >"),
        ("make > 'a b'", "make >"),
    ]);
}

#[test]
fn assignments_before_a_command_are_not_words() {
    check(&[
        ("A=b C='d e' make x=y", "make x=y ="),
        ("A=1", "="),
        ("A+=1 make", "make ="),
        ("'A'=b make", "A=b make"),
        ("1=2 make", "1=2 make"),
        ("A=$B make", "make = -- a variable"),
    ]);
}

#[test]
fn expansions_are_unknown_words_and_the_rest_is_parsed() {
    check(&[
        ("git push $X main; ls", "git push ? main ; ls -- a variable"),
        ("$X push", "? push -- a variable"),
        ("git \"$X\"push \"a${B}c\"", "git ? ? -- a variable"),
        ("echo $1 $? $# $$ $@ $_a", "echo ? ? ? ? ? ? -- a variable"),
        ("ls *.rs a? [ab]", "ls ? ? ? -- a glob"),
        ("ls ~ ~/x a=~ HEAD~", "ls ? ? ? HEAD~ -- a home folder"),
        ("echo {a,b} x{1..3}", "echo ? ? -- `{`"),
        ("$X[ a; [$X b; $X{} c", "? a ; ? b ; ? c -- a variable"),
        ("make > $X", "make > -- a variable"),
        ("{fd}>x git push", "? git push > -- `{`"),
    ]);
}

#[test]
fn parsing_stops_where_the_rest_is_ambiguous() {
    check(&[
        (
            "git push $(x); sudo ls",
            "git push ? … -- a command substitution",
        ),
        (
            "git push `x`; sudo ls",
            "git push ? … -- a command substitution",
        ),
        (
            "echo \"a $(git push)\"",
            "echo ? … -- a command substitution",
        ),
        ("cat <<E\ngit push\nE", "cat ? … -- a here-document"),
        ("cat <<< x", "cat ? … -- a here-document"),
        ("diff <(a) b", "diff ? … -- a parenthesis"),
        ("(git push)", "? … -- a parenthesis"),
        ("f() { git push; }", "? … -- a parenthesis"),
        ("echo ${x:-y}; ls", "echo ? … -- `${`"),
        ("echo $'a'", "echo ? … -- a quote behind `$`"),
        ("git pu$(echo sh)", "git ? … -- a command substitution"),
        ("echo 'a", "echo ? … -- a quote without an end"),
        ("echo \"a", "echo ? … -- a quote without an end"),
        ("echo a\\", "echo ? … -- a quote without an end"),
        ("a\0b", "? … -- a byte that is zero"),
        ("function f { git push; }", "? … -- a keyword"),
        ("ls; coproc x { git push; }", "ls ; ? … -- a keyword"),
        ("case x in a) git push;; esac", "case x in ? … -- a keyword"),
        ("a;; b", "? … -- a keyword"),
        ("make >", "make -- a redirect without a file"),
        ("make > > x", "make > -- a redirect without a file"),
    ]);
}

#[test]
fn a_keyword_makes_a_script_unknown_but_its_commands_are_parsed() {
    check(&[
        (
            "if a; then git push; else b; fi",
            "a ; git push ; b ; fi -- a keyword",
        ),
        (
            "for x in a b; do git push; done",
            "for x in a b ; git push ; done -- a keyword",
        ),
        ("! git push", "git push -- a keyword"),
        ("{ git push; }", "git push ; } -- a keyword"),
        ("[[ a ]] && b", "[[ a ]] ; b -- a keyword"),
        ("'if' x", "if x"),
        ("echo if then", "echo if then"),
    ]);
}

#[test]
fn a_long_script_is_read_in_one_pass() {
    let text = "git add 'a b' \"c\" d\\ e > f; ".repeat(100_000);
    assert_eq!(read(&text).commands.len(), 100_000);
    for text in [
        "(".repeat(100_000),
        "$".repeat(100_000),
        "a$b".repeat(100_000),
        "\"".repeat(99_999),
        "{[*".repeat(100_000),
    ] {
        drop(read(&text));
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), shell in "[a$`'\"\\\\;&|<>(){}\\[*~#= \n0-]{0,60}") {
        drop(read(&text));
        let script = read(&shell);
        // Nothing of a script is lost where it is known.
        prop_assert!(script.unknown.is_some() || script.commands.iter().all(super::Command::is_known));
    }
}
