use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::test_env::TestEnv;
use crate::support::test_env::run;

#[test]
fn bash_loads_the_script_and_completes_with_it() {
    let env = TestEnv::new();
    let script = run(&mut env.podbay(&["completions", "bash"]))
        .expect(0)
        .stdout;
    let file = env.beside("podbay.bash");
    fs::write(&file, script).expect("written");
    let bash = |line: &str| {
        let mut command = Command::new("bash");
        env.surround(&mut command);
        command.args(["--norc", "-euc", line, "bash"]).arg(&file);
        run(&mut command).expect(0).text()
    };
    bash("bash -n \"$1\"");
    assert!(bash("source \"$1\"; complete -p podbay").contains("-F _podbay podbay"));
    // What bash itself does when Tab is pressed behind these words.
    let complete = |words: &str| {
        let line = format!(
            "source \"$1\"; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _podbay podbay \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        bash(&line).trim().to_owned()
    };
    assert_eq!(complete("podbay quick"), "quickstart");
    assert_eq!(complete("podbay images bui"), "build");
    assert_eq!(complete("podbay run --max-tu"), "--max-turns");
    assert_eq!(complete("podbay run --output json"), "json jsonl");
    // Ids that this machine knows.
    let program = env!("CARGO_BIN_EXE_podbay");
    run(&mut env.podbay(&["sessions", "list"])).expect(0);
    let log = env.state().join("sessions/2026-11-21_abcdefghjkmn.jsonl");
    let header = "{\"type\":\"session_started\",\"at\":\"2026-11-21T10:00:00Z\",\"version\":1,\"session\":\"abcdefghjkmn\",\
                  \"podbay\":\"0.1.0\",\"project\":\"/p\",\"mode\":\"auto\",\"task\":\"x\"}\n";
    fs::write(&log, header).expect("written");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).expect("ours");
    let with_ids = |words: &str| {
        let line = format!(
            "podbay() {{ {program} \"$@\"; }}; source \"$1\"; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _podbay podbay \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        bash(&line).trim().to_owned()
    };
    assert_eq!(with_ids("podbay sessions show abc"), "abcdefghjkmn");
    assert_eq!(with_ids("podbay run --resume abc"), "abcdefghjkmn");
    assert_eq!(with_ids("podbay models info smollm2"), "smollm2-135m");
    assert_eq!(with_ids("podbay run --model smollm2"), "smollm2-135m");
    assert_eq!(with_ids("podbay sessions show xyz"), "");
    // Nothing that the help hides.
    assert_eq!(complete("podbay run --api-key"), "--api-key-env");
}

#[test]
fn zsh_and_fish_take_their_scripts_where_they_are_installed() {
    let env = TestEnv::new();
    for (shell, line, offered) in [
        (
            "zsh",
            "autoload -Uz compinit; compinit -u -D; source \"$1\"; [[ ${_comps[podbay]} == _podbay ]] && echo quickstart",
            "quickstart",
        ),
        (
            "fish",
            "source $argv[2]; complete -C 'podbay quick'",
            "quickstart\t",
        ),
    ] {
        if !is_installed(shell) {
            continue;
        }
        let file = env.beside(&format!("_podbay.{shell}"));
        fs::write(
            &file,
            run(&mut env.podbay(&["completions", shell]))
                .expect(0)
                .stdout,
        )
        .expect("written");
        let mut command = Command::new(shell);
        env.surround(&mut command);
        let bare = if shell == "zsh" { "-f" } else { "--no-config" };
        let said = run(command.args([bare, "-c", line, shell]).arg(&file)).expect(0);
        assert!(
            said.text().starts_with(offered) && said.stderr.is_empty(),
            "{shell}: {} {}",
            said.text(),
            said.stderr
        );
    }
}

/// Says so where a shell is missing: no test skips in silence.
fn is_installed(shell: &str) -> bool {
    let is_installed = Command::new(shell).arg("--version").output().is_ok();
    if !is_installed {
        let words = format!("left out, because it is not installed: completions in {shell}\n");
        drop(std::io::Write::write_all(
            &mut std::io::stderr(),
            words.as_bytes(),
        ));
    }
    is_installed
}

#[test]
fn fish_completes_commands_of_three_words() {
    if !is_installed("fish") {
        return;
    }
    let env = TestEnv::new();
    let script = env.beside("podbay.fish");
    fs::write(
        &script,
        run(&mut env.podbay(&["completions", "fish"]))
            .expect(0)
            .stdout,
    )
    .expect("written");
    fs::write(env.beside("bundle.tar"), "").expect("written");
    // What fish offers when Tab is pressed behind these words, without its descriptions.
    let offered = |line: &str| {
        let mut command = Command::new("fish");
        env.surround(&mut command);
        command.current_dir(script.parent().expect("a folder"));
        let said = run(command
            .args([
                "--no-config",
                "-c",
                "source $argv[2]; complete -C $argv[3]",
                "fish",
            ])
            .arg(&script)
            .arg(line))
        .expect(0);
        assert!(said.stderr.is_empty(), "{}", said.stderr);
        said.text()
            .lines()
            .filter_map(|line| line.split('\t').next().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(offered("podbay images bundle "), ["help", "load", "save"]);
    assert_eq!(offered("podbay images bundle save --no"), ["--no-model"]);
    assert_eq!(offered("podbay images bundle load --f"), ["--force"]);
    assert_eq!(offered("podbay images bundle load --ch"), ["--check"]);
    assert_eq!(
        offered("podbay images bundle save --ch"),
        Vec::<String>::new(),
        "that flag is of `load`"
    );
    // A file belongs behind them, and no other word.
    let behind = offered("podbay images bundle load b");
    assert!(
        behind.contains(&"bundle.tar".to_owned())
            && offered("podbay images bundle load s")
                .iter()
                .all(|word| word != "save"),
        "{behind:?}"
    );
    assert!(offered("podbay images bundle help l").contains(&"load".to_owned()));
    // Two words are as they were.
    assert_eq!(offered("podbay images bui"), ["build"]);
    assert_eq!(offered("podbay images build --inst"), ["--install"]);
}

#[test]
fn no_script_offers_files_for_what_is_none() {
    let env = TestEnv::new();
    let zsh = run(&mut env.podbay(&["completions", "zsh"]))
        .expect(0)
        .text();
    for words in [":N:' ", ":URL:' ", "podbay/python:' "] {
        assert!(zsh.contains(words), "{words}");
    }
    assert!(
        zsh.contains(":DIR:_files")
            && zsh.contains(":FILE:_files")
            && zsh.contains(":NAME:_default"),
        "what may be a file still is one"
    );
}

#[test]
fn every_shell_gets_a_script_of_its_own() {
    let env = TestEnv::new();
    let marks = [
        ("zsh", "#compdef podbay"),
        ("fish", "complete -c podbay"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-Arg"),
    ];
    for (shell, mark) in marks {
        let script = run(&mut env.podbay(&["completions", shell]))
            .expect(0)
            .text();
        assert!(
            script.contains(mark) && script.contains("quickstart"),
            "{shell}: {script}"
        );
    }
    run(&mut env.podbay(&["completions", "cmd"]))
        .expect(2)
        .says(&["cmd", "bash", "fish", "zsh"]);
}

#[test]
fn every_command_has_a_manual_page_with_its_flags_and_examples() {
    let env = TestEnv::new();
    let folder = env.beside("share/man/man1");
    let words = ["man", folder.to_str().expect("UTF-8")];
    let said = run(&mut env.podbay(&words)).expect(0).text();
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("made")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(
        said.starts_with(&format!("{} pages in ", names.len())),
        "{said}"
    );
    for name in [
        "podbay.1",
        "podbay-run.1",
        "podbay-images-build.1",
        "podbay-sessions-show.1",
    ] {
        assert!(names.iter().any(|there| there == name), "{name}: {names:?}");
    }
    let page = fs::read_to_string(folder.join("podbay-run.1")).expect("a page");
    for words in [
        ".TH PODBAY-RUN 1",
        "\\-\\-endpoint",
        ".SH EXAMPLES",
        ".SH \"EXIT STATUS\"",
        "a limit was reached",
        ".SH LIMITS",
    ] {
        assert!(page.contains(words), "`{words}` is missing:\n{page}");
    }
    assert!(
        !page.contains("\\-\\-api\\-key\\fR") && !names.iter().any(|name| name == "podbay-man.1"),
        "hidden things are shown"
    );
    // The same again, so that two builds of a release are the same.
    let first = fs::read(folder.join("podbay.1")).expect("a page");
    run(&mut env.podbay(&words)).expect(0);
    assert_eq!(fs::read(folder.join("podbay.1")).expect("a page"), first);

    let file = env.beside("file");
    fs::write(&file, "").expect("written");
    let below = file.join("man1");
    run(&mut env.podbay(&["man", below.to_str().expect("UTF-8")]))
        .expect(1)
        .says(&["manual pages", "man1", "caused by"]);
}
