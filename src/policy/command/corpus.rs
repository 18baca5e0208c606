//! The table of commands in `tests/it/fixtures/shell_commands.txt`, read whole.

use nix::sys::resource::UsageWho;
use nix::sys::resource::getrusage;
use nix::sys::time::TimeValLike;

use crate::Action;
use crate::Mode;
use crate::Options;
use crate::Policy;
use crate::Verdict;
use crate::action::reading_of;
use podbay_event::Capability;
use podbay_soak as soak;
use podbay_wire::Bash;
use podbay_wire::Call;
use podbay_wire::Shell;

const TABLE: &str = include_str!("../../../tests/it/fixtures/shell_commands.txt");

fn bash(command: &str) -> Action {
    Action::Box(Call::Bash(Bash {
        command: command.to_owned(),
        working_directory: None,
        timeout_ms: 1,
        grace_ms: 1,
        stream_bytes: 1,
        tail_bytes: 1,
        background: false,
        rules: Vec::new(),
        write_gate: None,
    }))
}

/// Says what a command needs in the table's words.
fn needs(command: &str, shell: Shell) -> String {
    let reading = reading_of(&bash(command), "", shell).expect("a command");
    let mut words: Vec<String> = reading
        .capabilities
        .iter()
        .map(|capability| match capability {
            Capability::ReadFiles => "read_files".to_owned(),
            Capability::RunInBox => "run_in_box".to_owned(),
            Capability::ChangeSessionGit => "change_session_git".to_owned(),
            Capability::ChangeOutsideBox => "change_outside_box".to_owned(),
            Capability::Network { host } => format!("network={host}"),
            Capability::ProtectedName { name } => format!("protected={name}"),
            Capability::BlockedCommand { .. } => "blocked".to_owned(),
            Capability::GatedGit { operation } => format!("git={operation}"),
            other => format!("{other:?}"),
        })
        .collect();
    words.dedup();
    format!("{}{}", words.join(", "), if reading.script.is_known() { "" } else { " ?" })
}

fn verdicts(command: &str, shell: Shell) -> String {
    let verdict = |mode| {
        let mut policy = Policy::new(mode, &Options::default()).expect("no rules");
        policy.read_by(shell);
        match policy.judge(bash(command)) {
            Verdict::Allow { .. } => "allow",
            Verdict::Ask(_) => "ask",
            Verdict::Deny { .. } => "deny",
        }
    };
    [Mode::Ask, Mode::Auto, Mode::Deny].map(verdict).join(" ")
}

#[test]
fn every_command_of_the_table_needs_what_the_table_says() {
    let (mut expected_needs, mut expected_verdicts) = (String::new(), "");
    let (mut n_commands, mut wrong) = (0, Vec::new());
    let mut shell = Shell::Bash;
    let mut random = soak::Random::seeded();
    for (number, line) in TABLE.lines().enumerate() {
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|header| header.contains(" : ")) {
            let (needs, verdicts) = header.split_once(" : ").expect("it was looked for");
            let in_sh = needs.strip_prefix("in sh: ");
            shell = if in_sh.is_some() { Shell::Plain } else { Shell::Bash };
            let needs = in_sh.unwrap_or(needs);
            let is_known = !needs.ends_with('?');
            let mut words: Vec<&str> = needs.trim_end_matches([' ', '?']).split(", ").collect();
            words.sort_by_key(|word| ORDER.iter().position(|known| word.starts_with(known)));
            expected_needs = format!("{}{}", words.join(", "), if is_known { "" } else { " ?" });
            expected_verdicts = verdicts;
            continue;
        }
        // A comment has a blank behind its `#`, and stands in front of a header or at the top.
        if line.is_empty() || (line.starts_with('#') && !line.contains('␤')) {
            continue;
        }
        let command = line.replace('␤', "\n").replace('␍', "\r").replace('␉', "\t").replace('␀', "\0");
        n_commands += 1;
        if !soak::is_whole() && random.below(4) != 0 {
            continue;
        }
        let found = (needs(&command, shell), verdicts(&command, shell));
        if found != (expected_needs.clone(), expected_verdicts.to_owned()) {
            let script = reading_of(&bash(&command), "", shell).expect("a command").script;
            let doubts: Vec<String> = script.doubts.iter().map(ToString::to_string).collect();
            let (n, v) = found;
            wrong.push(format!(
                "{}: {line}\n    is [{n} : {v}]\n    not [{expected_needs} : {expected_verdicts}] {}",
                number + 1,
                doubts.join("; ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {n_commands} commands are read otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(n_commands >= 400, "{n_commands}");
}

#[test]
fn what_may_be_read_in_many_ways_is_judged_in_little_time() {
    let texts = [
        "cd a;rm *\n".repeat(4000),
        "cd $a;rm $b/*\n".repeat(3000),
        format!("D=/a/b/c\n{}", "rm ${D%%/*}\n".repeat(4000)),
        format!("f() {{ rm $1; }}\n{}", "f a\n".repeat(8000)),
        format!("git diff > a\n{}", "git apply -R b\n".repeat(3000)),
        format!("for d in {}; do cd $d; rm *; done", "$x . ".repeat(8000)),
        "mkdir a;cd b;rm *\n".repeat(3000),
        "echo rm x >> a;sh a\n".repeat(2000),
        format!("[ {}", "cd a;".repeat(25_000)),
        format!("{}ls", "cd x && ".repeat(3500)),
        format!("find . {}", "-exec true {} \\; ".repeat(6000)),
        format!("f() {{ {}ls; }}\n{}", "cd $1 && ".repeat(800), "f a\n".repeat(1000)),
        format!("f() {{ {}}}\n{}", "echo $1; ".repeat(850), "f a\n".repeat(4500)),
        format!("for i in {}; do {}done", "a ".repeat(25_000), "$i; ".repeat(12_000)),
        format!("set -- a b c\n{}", "\"$@\"\n".repeat(16_000)),
        (0..2500).map(|n| format!("awk '{{print > \"f{n}\"}}' a; sh f{n}; ")).collect(),
        (0..4000).map(|n| format!("echo a > f{n}; sh f{n}; ")).collect(),
        format!("find . {}", "-exec mv {} a \\; ".repeat(5000)),
        format!("ln -s /workspace l\nA=$PWD\nfor f in a b c; do {}done", "cd $f; rm $A/l/$f; ".repeat(4000)),
        format!("find {} {}", "a ".repeat(20_000), "-name b ".repeat(6000)),
        format!("cat <<'E' {}\n{}\nE", "| cat ".repeat(6000), "rm x\n".repeat(10_000)),
        format!("cat <<E {}| sh\n{}\nE", "| cat ".repeat(6000), "rm $x\n".repeat(9000)),
        "echo rm x | env nice timeout 5 nohup sh\n".repeat(2500),
        format!("echo '{}' | xargs -I{{}} sh -c '{{}}'", "rm x y\n".repeat(12_000)),
        "r\\\nm x\n".repeat(14_000),
        format!("{}{}", "(".repeat(500), "r\\\nm x;".repeat(12_000)),
        "/b*/*?*?*?* x\n".repeat(7000),
        format!("/bin/?? {}", "x ".repeat(50_000)),
        "$(which rm git sh) x\n".repeat(4500),
        format!("alias a='b{0}'\nalias b='a{0}'\n{1}", " a".repeat(500), "b\n".repeat(40_000)),
        format!("{}shift; echo $1 $2 $@", "set -- a b c d e f g;".repeat(6000)),
        "cat <<E; ls\nE\n".repeat(8000),
        format!("f() {{ shift; {}}}\n{}", "echo $1; ".repeat(100), "f a b c d e f g\n".repeat(4000)),
        format!("{}{}", "alias a=b; alias b=a; alias c='b a a a a';".repeat(10), "c x\n".repeat(20_000)),
    ];
    for text in soak::sample(texts, 10) {
        let before = worked();
        let _ = needs(&text, Shell::Bash);
        let took = worked() - before;
        assert!(took < 20, "{took} s: {}", &text[..40]);
    }
}

/// Returns how many seconds this thread was at work: others have the processor, too.
fn worked() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).expect("it is ours").user_time().num_seconds()
}

/// The order of capabilities, which is that of the enum.
const ORDER: [&str; 8] =
    ["read_files", "run_in_box", "change_session_git", "network", "change_outside_box", "protected", "blocked", "git="];

#[test]
fn a_text_too_deep_to_be_read_hides_nothing_that_stands_in_it() {
    let denied = |command: &str| verdicts(command, Shell::Bash).split(' ').nth(1) == Some("deny");
    let open = "(".repeat(401);
    let spans: String = (0..300).map(|n| format!("`step{n}`\n")).collect();
    let arms: String = (0..450).map(|n| format!("{n}) make x{n};;\n")).collect();
    let list: String = (0..450).map(|n| format!("{n}) the item {n} of ours\n")).collect();
    for text in [
        format!("# {open}\nsudo ls"),
        format!("echo '{open}'; git push"),
        format!("cat > README.md <<'EOF'\n{spans}EOF\ngit push"),
        format!("case $1 in\n{arms}esac\nsudo ls"),
        format!("bash -c 'echo {open}; sudo ls'"),
    ] {
        assert!(denied(&text), "{}", &text[text.len().saturating_sub(80)..]);
    }
    for text in [format!("cat > README.md <<'EOF'\n{spans}EOF\nmake"), format!("cat > list.md <<'EOF'\n{list}EOF\ngit add list.md")] {
        assert!(!denied(&text), "{}", &text[text.len() - 40..]);
    }
}
