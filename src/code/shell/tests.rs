use std::time::Duration;
use std::time::Instant;

use proptest::prelude::*;

use super::*;
use podbay_soak as soak;

/// Writes a script as lines: programs with their words (`*` for patterns, `?` for what is not known), then doubts.
fn show(text: &str) -> String {
    let script = read(text);
    let word = |word: &Word| match word.kind {
        WordKind::Known => format!("{:?}", word.text),
        WordKind::Pattern => format!("*{:?}", word.text),
        WordKind::Unknown => format!("?{:?}", word.text),
    };
    let mut lines: Vec<String> = Vec::new();
    for command in &script.commands {
        let mut parts: Vec<String> = Vec::new();
        for assignment in &command.assignments {
            parts.push(format!("{}={}", assignment.name, assignment.value.as_ref().map_or("()".to_owned(), word)));
        }
        parts.extend(command.words.iter().map(word));
        for redirection in &command.redirections {
            parts.push(format!("{}{}", redirection.operator, redirection.target.as_ref().map_or(String::new(), word)));
        }
        lines.push(parts.join(" "));
    }
    lines.extend(script.doubts.iter().map(|doubt| format!("! {doubt}")));
    lines.join("\n")
}

/// Checks what is read, where nothing is in doubt.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(show(text), expected.join("\n"), "{text}");
}

/// Checks that a text is in doubt.
#[track_caller]
fn check_doubted(text: &str, why: &str) {
    let doubts = read(text).doubts;
    assert!(doubts.iter().any(|doubt| doubt.why.contains(why)), "{text}: {doubts:?}");
}

#[test]
fn every_command_is_found_wherever_it_stands() {
    check("a && b || c; d & e | f", &[r#""a""#, r#""b""#, r#""c""#, r#""d""#, r#""e""#, r#""f""#]);
    check("if [ -f a ]; then\n  b\nelse c; fi\nd", &[r#""[" "-f" "a" "]""#, r#""b""#, r#""c""#, r#""d""#]);
    check("for f in *.rs\ndo\n  cat \"$f\"\ndone", &[r#""cat" ?"$f""#]);
    check("case $x in a|b*) c;; *) d e;; esac", &[r#""c""#, r#""d" "e""#]);
    check("(a; { b; })", &[r#""a""#, r#""b""#]);
    check("echo $(a \"$(b)\") `c`", &[r#""echo" ?"$(a \"$(b)\")" ?"`c`""#, r#""a" ?"$(b)""#, r#""b""#, r#""c""#]);
    check("diff <(a) <(b)", &[r#""diff" ?"<(a)" ?"<(b)""#, r#""a""#, r#""b""#]);
    check("x=$(a) y=1 b", &[r#"x=?"$(a)" y="1" "b""#, r#""a""#]);
    check("f() { a; }; f", &[r#""a""#, r#""f""#]);
}

#[test]
fn a_word_is_what_the_program_gets() {
    check("r\\m x; $'\\x72m' y; \"r\"m 'z w'", &[r#""rm" "x""#, r#""rm" "y""#, r#""rm" "z w""#]);
    check("echo \"a \\\"b\\\" \\$c\"", &[r#""echo" "a \"b\" $c""#]);
    check("echo a{b,c{d,e}}f", &[r#""echo" "abf" "acdf" "acef""#]);
    check("ls *.rs '*.rs' ~/x ~y", &[r#""ls" *"*.rs" "*.rs" "~/x" ?"~y""#]);
    check("ls \\\n  -l", &[r#""ls" "-l""#]);
}

#[test]
fn redirections_are_told_from_words_as_the_shell_does() {
    check("echo >x a b 2>&1", &[r#""echo" "a" "b" >"x" >&"1""#]);
    check(">x rm y", &[r#""rm" "y" >"x""#]);
    check("cat <<A > x\nhi $(b)\nA\nc", &[r#""cat" >"x" <<?"hi $(b)\n""#, r#""b""#, r#""c""#]);
    check("python3 - <<'A'\nx\nA", &[r#""python3" "-" <<"x\n""#]);
}

#[test]
fn programs_behind_programs_are_found() {
    check(
        "sudo -u me env A=1 timeout 5 bash -c 'rm \"$1\"'",
        &[
            r#""sudo" "-u" "me" "env" "A=1" "timeout" "5" "bash" "-c" "rm \"$1\"""#,
            r#""env" "A=1" "timeout" "5" "bash" "-c" "rm \"$1\"""#,
            r#"A="1" "timeout" "5" "bash" "-c" "rm \"$1\"""#,
            r#""bash" "-c" "rm \"$1\"""#,
            r#""rm" ?"$1""#,
        ],
    );
    check(
        "find . -exec a {} \\; -exec b c {} +",
        &[
            r#""find" "." "-exec" "a" "{}" ";" "-exec" "b" "c" "{}" "+""#,
            r#""a" "./**""#,
            r#""a" ?"./{}""#,
            r#""b" "c" "./**""#,
            r#""b" "c" ?"./{}""#,
        ],
    );
    check("xargs -n 1 rm -f", &[r#""xargs" "-n" "1" "rm" "-f""#, r#""rm" "-f" ?"…""#]);
    check("bash <<'A'\nrm x\nA", &[r#""bash" <<"rm x\n""#, r#""rm" "x""#]);
    check("trap 'rm x' EXIT", &[r#""trap" "rm x" "EXIT""#, r#""rm" "x""#]);
}

#[test]
fn what_is_not_certain_is_said() {
    check_doubted("$X a", "which program");
    check_doubted("echo 'a", "cannot be parsed");
    check_doubted("r\\\nm x", "goes on in the next line");
    check_doubted("ls\r\npwd", "no blank to the shell");
    check_doubted("ls \\ \u{b}", "no blank to the shell");
    check_doubted("ls\0", "zero byte");
    check_doubted("[ a\nrm b ]", "");
    check_doubted("source $x", "not known");
    check_doubted(". /dev/stdin", "not known");
    check_doubted("echo x | sh", "text for a shell");
    check_doubted("alias ls='rm x'", "alias");
    for setting in ["x=$1", "x='a[$(b)]'", "read x", "export x=$(a)", "x=$y; y=a", "declare -n y=x"] {
        check_doubted(&format!("{setting}; echo $((x + 1))"), "arithmetic");
        check_doubted(&format!("{setting}; for ((x; x < 3; x++)); do a; done"), "arithmetic");
    }
    for certain in ["echo $((x))", "x=1; ((x++))", "for x in 1 2; do echo $((x * 2)); done", "x=1; y=$x; [[ $y -lt 2 ]]"] {
        assert!(read(certain).is_known(), "{certain}");
    }
    check_doubted("cat <<A\n$(b\nA\nc", "");
    check_doubted(&"a ".repeat(LENGTH_MAX), "too long");
}

#[test]
fn the_commands_of_a_function_are_known() {
    let bodies = |text: &str| {
        let script = read(text);
        let names =
            |body: &std::ops::Range<usize>| script.commands[body.clone()].iter().filter_map(Command::name).collect::<Vec<_>>().join(" ");
        script.functions.iter().map(|function| format!("{}: {}", function.name, names(&function.body))).collect::<Vec<_>>()
    };
    assert_eq!(bodies(":(){ :|:& };:"), [":: : :"]);
    assert_eq!(bodies("f() { g; }; g() { f; timeout 5 g; }; f"), ["f: g", "g: f timeout g"]);
    assert_eq!(bodies("bash -c 'x; f() { a; h() { b; }; }'"), ["h: b", "f: a b"]);
}

#[test]
fn a_shell_within_another_is_told_from_it() {
    let shells = |text: &str| {
        let script = read(text);
        (script.commands.iter().map(|command| command.shell).collect::<Vec<_>>(), script.shells)
    };
    assert_eq!(shells("a; (b; (c); d); e"), (vec![0, 1, 2, 1, 0], vec![0, 1]));
    assert_eq!(shells("a $(b) <(c); { d; }"), (vec![0, 1, 2, 0], vec![0, 0]));
    assert_eq!(shells("bash -c 'a; (b)'; eval c; env d"), (vec![0, 1, 2, 0, 0, 0, 0], vec![0, 1]));
}

#[test]
fn hostile_nesting_neither_overflows_nor_hangs() {
    let openers = [
        "$(((",
        "((((",
        "$(",
        "(",
        "{ ",
        "`",
        "\"$(",
        "${x:-",
        "<(",
        "if ",
        "[[ ",
        "a=(",
        "case x in ",
        "<<A ",
        "! ",
        "a[",
        "{a,",
        "$((",
        "[ ",
        "f() ",
        "x=",
    ];
    for opener in soak::sample(openers, 4) {
        for closer in ["", ")"] {
            let n = 20_000 / opener.len();
            let text = format!("{}{}", opener.repeat(n), closer.repeat(n));
            let started = Instant::now();
            let script = read(&text);
            assert!(!script.is_known() || matches!(opener, "x=" | "{a,"), "{opener}");
            assert!(started.elapsed() < Duration::from_mins(1), "{opener}: {:?}", started.elapsed());
        }
    }
    // As a thread of the runtime would have it.
    let deep = format!("{}rm -rf /{}", "a && ".repeat(20_000), " && b".repeat(5_000));
    let read_deep = move || read(&deep).commands.len();
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(read_deep).expect("a thread");
    assert_eq!(thread.join().expect("it does not overflow"), 25_001);
}

#[test]
fn a_list_behind_a_letter_of_several_bytes_is_read() {
    for text in ["a=é(case ls)", "é=(a b)", "aé=(b)", "\\;;a=é(case ls)"] {
        read(text);
    }
}

#[test]
fn texts_in_texts_and_programs_before_programs_come_to_an_end() {
    let mut text = "ls".to_owned();
    for _ in 0..20 {
        text = format!("eval {}", text.replace('\\', "\\\\").replace(' ', "\\ "));
        if text.len() > LENGTH_MAX {
            break;
        }
    }
    check_doubted(&text, "too");
    check_doubted(&"env ".repeat(30_000), "too many");
    let actions = read(&format!("find . {}", "-exec env a \\; ".repeat(8_000)));
    assert_eq!(actions.commands.len(), 1 + 2 * 8_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        read(&text);
        only_in_bash(&text);
    }

    #[test]
    fn no_shell_makes_it_panic(parts in prop::collection::vec(prop::sample::select(PARTS), 0..30)) {
        read(&parts.concat());
        only_in_bash(&parts.concat());
    }

    /// Whatever a command is put into, it is found, or the script is in doubt.
    #[test]
    fn a_command_is_found_or_the_script_is_in_doubt(
        before in prop::collection::vec(prop::sample::select(PARTS), 0..6),
        after in prop::collection::vec(prop::sample::select(PARTS), 0..6),
    ) {
        let text = format!("{}\nzap now\n{}", before.concat(), after.concat());
        let script = read(&text);
        let found = script.commands.iter().any(|command| command.name() == Some("zap"));
        let is_text = text.matches(['\'', '"', '#']).count() > 0 || text.contains("<<") || text.contains('\\');
        prop_assert!(found || !script.is_known() || is_text, "{text:?}: {script:?}");
    }
}

const PARTS: &[&str] = &[
    "ls",
    " ",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "(",
    ")",
    "{ ",
    " }",
    "$(",
    "`",
    "'",
    "\"",
    "\\",
    "$x",
    "${x",
    "}",
    "<<A\n",
    "A\n",
    "<",
    ">",
    ">&",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "case ",
    " in ",
    "esac",
    ";;",
    "[ ",
    " ]",
    "[[ ",
    " ]]",
    "((",
    "))",
    "=",
    "a=",
    "#",
    "!",
    "*",
    "~",
    "é",
    "\r",
    "\t",
    "function ",
    "f()",
    "bash -c ",
    "eval ",
    "find . -exec ",
    " \\;",
    "xargs ",
    "env ",
    "git -c ",
    "$'",
    "<(",
    "{a,b}",
    "\u{a0}",
    "\u{200b}",
    "-",
];

#[test]
fn what_a_change_of_folders_keeps_is_asked_for_where_that_costs_little() {
    let n_guards = |text: &str| {
        let commands = read(text).commands;
        commands.iter().filter(|command| command.guard.until > 0).count()
    };
    let joined = |n: usize| format!("{}ls", "cd a && ".repeat(n));
    assert_eq!([1, 10, 60].map(|n| n_guards(&joined(n))), [1, 10, 60]);
    // Each of those further down would take as many steps as it is deep.
    assert!(n_guards(&joined(3000)) <= 64);
    let deep = read(&joined(3000)).commands;
    assert!(
        deep[..2000].iter().enumerate().all(|(at, command)| command.guard == super::Guard { passed: at + 1, ..super::Guard::default() })
    );
}
