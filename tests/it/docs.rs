//! Pages that are made from the program, and facts in the others that can be checked.
//!
//! `PODBAY_BLESS=1 cargo test` writes the made pages anew.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use podbay::config;
use podbay::config::Config;
use podbay::tools;
use podbay::tools::Catalogue;
use podbay::tools::ToolSet;
use podbay::wire::frame;
use podbay::wire::message::ToGuest;
use podbay::wire::message::ToHost;

#[test]
fn the_page_of_settings_is_what_the_program_knows() {
    let page = format!(
        "# Settings\n\n<!-- Made by `PODBAY_BLESS=1 cargo test`; do not edit. -->\n\n{}\n{}",
        include_str!("docs/configuration.md"),
        config::markdown::<Config>()
    );
    check_page("docs/configuration.md", &page);
}

#[test]
fn the_page_of_tools_is_the_catalogue() {
    let mut page = format!(
        "# Tools\n\n<!-- Made by `PODBAY_BLESS=1 cargo test`; do not edit. -->\n\n{}",
        include_str!("docs/tools.md")
    );
    let names = |set| {
        let catalogue = Catalogue::new(&tools::Options {
            set,
            ..tools::Options::default()
        });
        catalogue
            .tools()
            .iter()
            .map(|tool| tool.name)
            .collect::<BTreeSet<_>>()
    };
    let (small, standard) = (names(ToolSet::Small), names(ToolSet::Standard));
    page.push_str("\n| tool | set | what a model reads of it | arguments | also known as |\n| --- | --- | --- | --- | --- |\n");
    for tool in Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    })
    .tools()
    {
        let set = match tool.name {
            name if small.contains(name) => "small",
            name if standard.contains(name) => "standard",
            _ => "full",
        };
        let required = tool.parameters["required"].as_array().expect("a list");
        let argument = |name: &String| {
            format!(
                "`{name}`{}",
                if required.iter().any(|one| one == name) {
                    "*"
                } else {
                    ""
                }
            )
        };
        let arguments: Vec<String> = tool.parameters["properties"]
            .as_object()
            .expect("properties")
            .keys()
            .map(argument)
            .collect();
        let aliases: Vec<String> = tool
            .aliases()
            .iter()
            .map(|alias| format!("`{alias}`"))
            .collect();
        let description = tool.description.replace('*', "\\*");
        let _ = writeln!(
            page,
            "| `{}` | {set} | {description} | {} | {} |",
            tool.name,
            arguments.join(" "),
            aliases.join(" ")
        );
    }
    page.push_str("\n`*`: must be given.\n");
    check_page("docs/tools.md", &page);
}

#[test]
fn the_page_of_commands_is_the_help_of_all_of_them() {
    let mut page = format!(
        "# Command line\n\n<!-- Made by `PODBAY_BLESS=1 cargo test`; do not edit. -->\n\n{}",
        include_str!("docs/later.md")
    );
    describe(&[], &mut page);
    check_page("docs/cli.md", &page);
}

/// A page that claims something about safety names the test that tries to break it. A claim whose
/// test is still to come says so, and then the test must indeed not exist.
#[test]
fn every_test_that_the_security_page_names_exists() {
    let exists = |name: &str| Sources::all().find(name).is_some();
    let mut wrong = Vec::new();
    let mut n_named = 0;
    for path in ["docs/security.md", "docs/security-cases.md"] {
        let page = fs::read_to_string(root().join(path)).expect("the page");
        for (number, line) in page.lines().enumerate() {
            for name in quoted(line).filter(|name| is_test_name(name)) {
                n_named += 1;
                let to_come = line.contains(&format!("to come: `{name}`"));
                if exists(name) == to_come {
                    let problem = if to_come {
                        "exists by now"
                    } else {
                        "does not exist"
                    };
                    wrong.push(format!("{path}:{}: the test {name} {problem}", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_named > 20, "only {n_named} names of tests were found");
}

/// A row of these tables says what happens on a bad day, and its last cell which tests show it.
#[test]
fn every_test_that_a_table_of_bad_days_names_exists() {
    for path in ["docs/models.md", "docs/bad-days.md"] {
        let page = fs::read_to_string(root().join(path)).expect("the page");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
        let tests = rows
            .iter()
            .filter_map(|row| row.trim_end_matches([' ', '|']).rsplit(" | ").next())
            .flat_map(quoted);
        let names: Vec<&str> = tests.filter(|name| is_test_name(name)).collect();
        let missing: Vec<&&str> = names
            .iter()
            .filter(|name| Sources::all().find(name).is_none())
            .collect();
        assert!(missing.is_empty(), "{path}: {missing:?}");
        assert!(
            names.len() > 20,
            "{path}: only {} names of tests were found",
            names.len()
        );
    }
}

/// The cases that must be there, whatever else is: how many there are of each kind from number one
/// on, and those with other numbers.
const CASES: [(&str, u32, &[u32]); 10] = [
    ("ESC", 19, &[]),
    ("P", 17, &[]),
    ("G", 11, &[]),
    ("N", 5, &[]),
    ("F", 13, &[]),
    ("T", 5, &[]),
    ("R", 18, &[]),
    ("C", 5, &[]),
    ("REL", 10, &[20, 21, 22, 23, 25, 26, 28, 29]),
    ("A", 3, &[5, 6, 7, 9]),
];

/// Each case has an id of its own, a state, and a test unless it says why not, and which run has
/// its tests whole; those marked are what `podbay doctor --attack` tries.
#[test]
fn every_case_has_a_state_and_a_test_or_a_reason() {
    let page = fs::read_to_string(root().join("docs/security-cases.md")).expect("the page");
    let attacks =
        fs::read_to_string(root().join("src/app/doctor/attack/attacks.toml")).expect("the table");
    let tried: BTreeSet<&str> = attacks
        .lines()
        .filter_map(|line| line.strip_prefix("id = \"")?.strip_suffix('"'))
        .collect();
    let (mut ids, mut marked) = (BTreeSet::new(), BTreeSet::new());
    for line in page.lines().filter(|line| {
        line.starts_with("| ") && !line.starts_with("| id") && !line.starts_with("| ---")
    }) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, what, state, tests, run] = cells[..] else {
            panic!("five cells: {line}")
        };
        let (id, mark) = id.split_once(' ').unwrap_or((id, ""));
        assert!(ids.insert(id), "{id} is there twice");
        if mark == "`A`" {
            marked.insert(id);
        }
        assert!(!what.is_empty(), "{line}");
        let has_test = quoted(tests).any(is_test_name);
        let is_soaked =
            quoted(tests).any(|name| is_test_name(name) && Sources::all().is_shortened(name));
        let expected = if is_soaked {
            "`just soak`"
        } else {
            "`cargo test`"
        };
        assert_eq!(
            run,
            if has_test { expected } else { "" },
            "{id}: which run has its tests whole"
        );
        match state.split(':').next().unwrap_or_default() {
            "held" => assert!(has_test, "{id} names no test"),
            "in part" => assert!(
                has_test && state.len() > 12,
                "{id} names a test, and what that does not show"
            ),
            "open" => assert!(!has_test, "{id} has a test"),
            "not ours" => assert!(state.len() > 14, "{id} gives no reason"),
            state => panic!("{id}: {state} is no state"),
        }
    }
    for (kind, last, others) in CASES {
        for number in (1..=last).chain(others.iter().copied()) {
            let id = format!("{kind}-{number:02}");
            assert!(ids.contains(id.as_str()), "{id} is not there any more");
        }
    }
    assert_eq!(marked, tried);
}

/// All sources, and where each function is in them.
struct Sources {
    text: String,
    functions: HashMap<String, usize>,
}

impl Sources {
    fn all() -> &'static Self {
        static ALL: OnceLock<Sources> = OnceLock::new();
        ALL.get_or_init(|| {
            let mut text = String::new();
            for folder in ["src", "tests"] {
                read_all(&root().join(folder), &mut text);
            }
            Self::of(text)
        })
    }

    fn of(text: String) -> Self {
        let mut functions = HashMap::new();
        for at in memchr::memmem::find_iter(text.as_bytes(), "fn ") {
            let name = text[at + 3..].split('(').next().unwrap_or_default();
            functions.entry(name.to_owned()).or_insert(at);
        }
        Self { text, functions }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.functions.get(name).copied()
    }

    /// Returns whether `cargo test` leaves a test out, or a part of it, which `just soak` does not.
    fn is_shortened(&self, name: &str) -> bool {
        let Some(at) = self.find(name) else {
            return false;
        };
        let (before, from) = self
            .text
            .split_at(self.text[..at].rfind('\n').map_or(0, |end| end + 1));
        let indent: String = from.chars().take_while(|&c| c == ' ').collect();
        let body =
            &from[..memchr::memmem::find(from.as_bytes(), format!("\n{indent}}}\n").as_bytes())
                .unwrap_or(from.len())];
        let mut attributes = before
            .lines()
            .rev()
            .take_while(|line| line.trim_start().starts_with("#["));
        body.contains("soak::") || attributes.any(|line| line.contains("ignore = \"just soak"))
    }
}

#[test]
fn a_test_that_is_shortened_is_told_from_one_that_is_whole() {
    let source = "
    #[test]
    #[ignore = \"just soak: long\"]
    fn left_out() {
    }

    #[test]
    fn sampled() {
        for n in soak::sample(0..9, 3) {
        }
    }

    #[test]
    fn whole() {
        let all = 1;
    }

    fn n_kills() {
        soak::n_kills(4);
    }
";
    let sources = Sources::of(source.to_owned());
    let shortened: Vec<&str> = ["left_out", "sampled", "whole", "absent"]
        .into_iter()
        .filter(|name| sources.is_shortened(name))
        .collect();
    assert_eq!(shortened, ["left_out", "sampled"]);
}

/// To each case that is held there is a control, in which the attack works, or the reason why there
/// is none.
#[test]
fn every_case_has_a_control_or_a_reason() {
    let page = fs::read_to_string(root().join("docs/security-cases.md")).expect("the page");
    let (_, controls) = page.split_once("## What must work").expect("the part");
    let table: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split([' ', '|']).next())
        .filter(|id| is_id(id))
        .collect();
    let mut told: BTreeSet<String> = BTreeSet::new();
    for words in controls
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| is_id(word))
    {
        told.insert(words.to_owned());
    }
    // "P-01 to P-04"
    for (before, after) in controls
        .match_indices(" to ")
        .map(|(at, _)| (&controls[..at], &controls[at + 4..]))
    {
        let first = before.rsplit([' ', '\n', '(']).next().unwrap_or_default();
        let last: String = after
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        if let (Some((kind, first)), Some((same, last))) =
            (first.split_once('-'), last.split_once('-'))
            && kind == same
            && let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>())
        {
            told.extend((first..=last).map(|number| format!("{kind}-{number:02}")));
        }
    }
    let unknown: Vec<&String> = told
        .iter()
        .filter(|id| !table.contains(id.as_str()))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let untold: Vec<&&str> = table.iter().filter(|id| !told.contains(**id)).collect();
    assert!(untold.is_empty(), "{untold:?}");
}

/// Letters, a dash and a number of two digits.
fn is_id(text: &str) -> bool {
    let parts = text
        .split_once('-')
        .filter(|(kind, _)| !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_uppercase()));
    parts.is_some_and(|(_, number)| {
        number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[test]
fn every_example_of_the_protocol_page_reads_back() {
    let page = fs::read_to_string(root().join("docs/protocol.md")).expect("the page");
    let mut sender = None;
    let mut n_examples = 0;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(language) => sender = language.strip_prefix("json ").map(str::to_owned),
            None if sender.is_some() => {
                n_examples += 1;
                let again = match sender.as_deref() {
                    Some("host") => frame::decode::<ToGuest>(line.as_bytes())
                        .and_then(|message| frame::encode(&message)),
                    _ => frame::decode::<ToHost>(line.as_bytes())
                        .and_then(|message| frame::encode(&message)),
                };
                let again = again.unwrap_or_else(|error| panic!("{line}: {error:?}"));
                assert_eq!(String::from_utf8_lossy(&again), line);
            }
            None => {}
        }
    }
    assert!(n_examples > 10, "only {n_examples} examples were found");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/decisions", "docs/guides"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder");
        pages.extend(
            entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|end| end == "md")),
        );
    }
    let mut broken = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = link.split('#').next().unwrap_or_default();
            let outside = link.contains("://") || file.is_empty();
            if !outside
                && !page
                    .parent()
                    .expect("a page lies in a folder")
                    .join(file)
                    .try_exists()
                    .unwrap_or(false)
            {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Compares a page with what it should be, or writes it.
#[track_caller]
fn check_page(path: &str, page: &str) {
    let file = root().join(path);
    if std::env::var_os("PODBAY_BLESS").is_some_and(|value| value == "1") {
        fs::write(&file, page).expect("the page can be written");
        return;
    }
    let there = fs::read_to_string(&file).unwrap_or_default();
    if there != page {
        let line = there
            .lines()
            .zip(page.lines())
            .position(|(old, new)| old != new)
            .unwrap_or(there.lines().count().min(page.lines().count()));
        let (old, new) = (
            there.lines().nth(line).unwrap_or_default(),
            page.lines().nth(line).unwrap_or_default(),
        );
        panic!(
            "{path} is out of date from line {} on; PODBAY_BLESS=1 cargo test writes it anew\n  has: {old}\n  now: {new}",
            line + 1
        );
    }
}

/// Adds the help of one command and of those below it.
fn describe(words: &[String], page: &mut String) {
    let output = Command::new(env!("CARGO_BIN_EXE_podbay"))
        .args(words)
        .arg("--help")
        // Neither a terminal's width nor the user's settings may show in the page.
        .env_clear()
        .output()
        .expect("podbay runs");
    assert!(output.status.success(), "podbay {} --help", words.join(" "));
    let help = String::from_utf8(output.stdout).expect("help is UTF-8");
    let name = ["podbay".to_owned()]
        .iter()
        .chain(words)
        .cloned()
        .collect::<Vec<_>>()
        .join(" ");
    let level = if words.is_empty() { "" } else { "#" };
    let body: String = help
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    let _ = write!(
        page,
        "\n#{level}# {name}\n\n```text\n{}\n```\n",
        body.trim_end()
    );
    let commands = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "));
    for command in commands
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
    {
        if command != "help" {
            describe(&[words, &[command.to_owned()]].concat(), page);
        }
    }
}

/// Returns what stands between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Tests are named by sentences: several words, all in lower case.
fn is_test_name(text: &str) -> bool {
    let words: BTreeSet<&str> = text.split('_').collect();
    words.len() >= 4
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn read_all(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a readable folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_all(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).expect("a source file"));
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
