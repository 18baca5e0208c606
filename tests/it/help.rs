//! What `--help` looks like on a narrow terminal. `INSTA_UPDATE=always cargo test --test it help`
//! writes the snapshots anew.

use std::process::Command;

/// Columns of an old terminal; nothing in a help text may need more.
const WIDTH: usize = 80;

#[test]
fn the_help_of_every_command_fits_a_narrow_terminal() {
    let mut pages = Vec::new();
    collect(&[], &mut pages);
    assert!(pages.len() > 15, "only {} pages", pages.len());
    for (words, page) in pages {
        for line in page.lines() {
            assert!(
                line.chars().count() <= WIDTH,
                "podbay {}: too wide: {line}",
                words.join(" ")
            );
        }
        let name = if words.is_empty() {
            "podbay".to_owned()
        } else {
            format!("podbay-{}", words.join("-"))
        };
        insta::assert_snapshot!(name, page);
    }
}

#[test]
fn the_short_help_of_the_first_page_names_every_command_and_where_to_read_on() {
    let page = help(&[], "-h");
    for words in [
        "quickstart",
        "run",
        "completions",
        "Start with: podbay quickstart",
        "--endpoint <URL>",
    ] {
        assert!(page.contains(words), "`{words}` is missing:\n{page}");
    }
    for words in ["Examples:", "--api-key ", "  man "] {
        assert!(!page.contains(words), "`{words}` is there:\n{page}");
    }
}

/// Lines of the smallest terminal that is common.
const SCREEN: usize = 24;

#[test]
fn the_short_help_of_every_command_fits_one_screen() {
    let mut pages = Vec::new();
    collect(&[], &mut pages);
    for (words, _) in pages {
        let page = help(&words, "-h");
        let n_lines = page.trim_end().lines().count();
        assert!(
            n_lines <= SCREEN,
            "podbay {} -h has {n_lines} lines:\n{page}",
            words.join(" ")
        );
        assert!(
            page.lines().all(|line| line.chars().count() <= WIDTH),
            "podbay {} -h is too wide:\n{page}",
            words.join(" ")
        );
    }
}

#[test]
fn the_flags_of_a_command_stand_before_those_of_all_commands() {
    for (words, own) in [
        (&["review", "apply"][..], "--only <PATHSPEC>"),
        (&["undo"], "--merge"),
        (&["run"], "--changes <CHANGES>"),
        (&["logs"], "--follow"),
        (&["call"], "--mode <MODE>"),
        (&["config", "trust"], "--revoke"),
    ] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let page = help(&words, "--help");
        let at = |flag: &str| {
            page.find(flag)
                .unwrap_or_else(|| panic!("`{flag}` is missing:\n{page}"))
        };
        assert!(at(own) < at("--path <DIR>"), "{page}");
    }
}

fn collect(words: &[String], pages: &mut Vec<(Vec<String>, String)>) {
    let page = help(words, "--help");
    let commands = page
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "));
    let below: Vec<String> = commands
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect();
    pages.push((words.to_vec(), page));
    for name in below {
        collect(&[words, &[name]].concat(), pages);
    }
}

fn help(words: &[String], flag: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_podbay"))
        .args(words)
        .arg(flag)
        .env_clear()
        .env("COLUMNS", WIDTH.to_string())
        .output()
        .expect("podbay runs");
    assert!(output.status.success(), "podbay {} {flag}", words.join(" "));
    String::from_utf8(output.stdout)
        .expect("help is UTF-8")
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}
