//! One way in: whatever is done in a sandbox passes the pipeline, or one of the few places that are
//! named here with their reason.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use podbay::event::CallStatus;
use podbay::event::Decision;
use podbay::event::Kind;
use podbay::policy;
use podbay::policy::Mode;
use podbay::tools::HookOptions;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

/// A function that hands a call to a sandbox or gives a line to one, whatever stands in front of
/// its name, and the only files of the rooms that see sandboxes which may use it.
const FUNCTIONS: &[(&str, &[&str])] = &[
    // `podbay doctor --attack` attacks a sandbox that it made for that, in a project of its own.
    // The command `podbay call` has the same name.
    (
        "call",
        &[
            "app/doctor/attack/inside.rs",
            "app/doctor/attack/paths.rs",
            "app/mod.rs",
            "cli/call.rs",
            "cli/mod.rs",
            "tools/dispatch.rs",
            // The files of a skill that the user wrote, as a part of the approved `use_skill`.
            "tools/skill.rs",
        ],
    ),
    ("call_asking", &["tools/dispatch.rs"]),
    ("call_with_haste", &[]),
    // A user's own shell, with a terminal that no call of a tool has.
    ("link", &["app/shell.rs"]),
];
/// Modules whose `Cargo.toml` names no sandbox, and the one that sandboxes are of.
const OTHER_ROOMS: [&str; 15] = [
    "code", "config", "egress", "engine", "event", "guest", "llm", "mcp", "policy", "sandbox",
    "search", "session", "ui", "web", "wire",
];

/// A name that leads to the sandbox or to the host's own hands, and the only files of `src/` that
/// may use it.
const NAMES: &[(&str, &[&str])] = &[
    // The pipeline, the check of an edit before its question (policy makes it, and it writes
    // nothing), the images that a user names (judged as a `read_file`), and where it is made. The
    // command line has a function of its own of that name.
    (
        "dispatch(",
        &[
            "cli/mod.rs",
            "guest/session.rs",
            "guest/tools/mod.rs",
            "tools/dispatch.rs",
            "tools/edit_check.rs",
            "tools/images.rs",
            "tools/pipeline.rs",
        ],
    ),
    (
        "dispatch_hook(",
        &["tools/dispatch.rs", "tools/hook/runner.rs"],
    ),
    // What a model is shown of a project before the first task, of which no model chose a word;
    // rules are asked about it all the same.
    ("dispatch_peek(", &["tools/dispatch.rs", "tools/peek.rs"]),
    (
        "call_asking(",
        &[
            "sandbox/kept.rs",
            "sandbox/link/mod.rs",
            "sandbox/sibling.rs",
            "tools/dispatch.rs",
        ],
    ),
    ("call_with_haste(", &["sandbox/link/mod.rs"]),
    // A user's own shell, with a terminal that no call of a tool has.
    (
        "link.open(",
        &[
            "app/doctor/attack/frames.rs",
            "app/shell.rs",
            "sandbox/kept.rs",
        ],
    ),
    // An MCP server, which the user named or enabled; `sandbox/kept.rs` opens it.
    ("sandbox.open(", &["app/mcp/opener.rs"]),
    ("Approved::by_hand(exec", &["app/mcp/opener.rs"]),
    ("by_hand(Exec", &["app/shell.rs"]),
    // An approval comes from policy alone.
    ("Approved::action(", &["policy/judge.rs"]),
    (
        "Approved::by_name(",
        &[
            "policy/edit_check.rs",
            "policy/judge.rs",
            "policy/question.rs",
        ],
    ),
    (
        "fn action(mut action: Action) -> Self",
        &["policy/approved.rs"],
    ),
    // Hands of the host: a hook's command, what is kept.
    (".run_hook(", &["tools/dispatch.rs", "tools/host.rs"]),
    // Code in a sandbox of its own, which is not the session's.
    (".run_apart(", &["tools/host.rs"]),
    (".run_throwaway(", &["app/throwaway.rs"]),
    ("host.serve(", &["tools/dispatch.rs"]),
];

#[test]
fn only_the_pipeline_and_the_places_named_here_reach_the_sandbox() {
    let has = |code: &str, name: &str| {
        code.match_indices(name).any(|(at, _)| {
            // `dispatch(` is no part of a longer name.
            let before = code[..at].chars().next_back().unwrap_or(' ');
            !name.starts_with(char::is_alphabetic) || !(before.is_alphanumeric() || before == '_')
        })
    };
    check_users(NAMES, &[], has);
    check_users(FUNCTIONS, &OTHER_ROOMS, hands_something_to);
}

/// Compares where a name is used with where a table says it may be.
fn check_users(table: &[(&str, &[&str])], without: &[&str], uses: impl Fn(&str, &str) -> bool) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(files.len() > 100, "only {} files were found", files.len());
    let mut users = vec![Vec::new(); table.len()];
    for path in &files {
        let file = path
            .strip_prefix(&root)
            .expect("beneath it")
            .to_str()
            .expect("UTF-8");
        if file
            .split('/')
            .next()
            .is_some_and(|room| without.contains(&room))
        {
            continue;
        }
        let text = fs::read_to_string(path).expect("a readable source file");
        let code: Vec<&str> = text
            .split("\n#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default()
            .lines()
            .filter(is_code)
            .collect();
        let code: String = code
            .join(" ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            // A method may stand on a line of its own.
            .replace(" .", ".");
        for ((name, _), users) in table.iter().zip(&mut users) {
            if uses(&code, name) {
                users.push(file.to_owned());
            }
        }
    }
    for ((name, may), mut found) in table.iter().zip(users) {
        found.sort();
        assert_eq!(
            found, *may,
            "`{name}` is used elsewhere, or no longer where this table says"
        );
    }
}

/// Returns whether a method or a function of a type that is called so is given anything, or is
/// handed on to be called elsewhere.
fn hands_something_to(code: &str, function: &str) -> bool {
    code.match_indices(function).any(|(at, _)| {
        let (before, behind) = (code[..at].trim_end(), &code[at + function.len()..]);
        if behind.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            return false;
        }
        match behind.trim_start().strip_prefix('(') {
            Some(arguments) => {
                (before.ends_with('.') || before.ends_with("::"))
                    && !arguments.trim_start().starts_with(')')
            }
            None => before.ends_with("::") && !behind.trim_start().starts_with("::"),
        }
    })
}

#[test]
fn no_spelling_of_a_call_hides_it() {
    for code in [
        "sandbox.call(call, f)",
        "self .workspace .call( call)",
        "sandbox().call(call)",
        "Workspace::call(&*workspace, call)",
        "<Link as Workspace>::call(link, call)",
        "let f = Link::call; f(link, call)",
        "calls.map(Workspace::call)",
    ] {
        assert!(hands_something_to(code, "call"), "{code}");
    }
    for code in [
        "early.call()",
        "self.call == other.call",
        "let call = call(",
        "use super::call::take;",
        "link.call_with_haste(call)",
        "recall(x)",
    ] {
        assert!(!hands_something_to(code, "call"), "{code}");
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}

fn is_code(line: &&str) -> bool {
    !line.trim_start().starts_with("//")
}

/// A way in, and what it takes to go it.
struct Way {
    name: &'static str,
    /// The rule that stops it.
    rule: &'static str,
    hooks: &'static str,
    model: fn() -> ScriptedModel,
    by_hand: Option<&'static str>,
}

fn quiet() -> ScriptedModel {
    ScriptedModel::new().says("Done.")
}

/// All but `podbay call` and what is typed in a terminal, which need a sandbox of an engine:
/// `a_denial_stops_a_call_and_a_command_typed_in_a_chat`.
const WAYS: [Way; 6] = [
    Way {
        name: "a call of the model's, in a run and in a chat",
        rule: "bash(touch *)",
        hooks: "",
        model: || {
            ScriptedModel::new()
                .calls("bash", json!({"command": "touch made"}))
                .says("Done.")
        },
        by_hand: None,
    },
    Way {
        name: "a call that begins while the model still speaks",
        rule: "read_file",
        hooks: "",
        model: || {
            ScriptedModel::new()
                .calls("read_file", json!({"path": "made"}))
                .says("Done.")
        },
        by_hand: None,
    },
    Way {
        name: "a call through the generic tool",
        rule: "bash(touch *)",
        hooks: "",
        model: || {
            ScriptedModel::new()
                .calls(
                    "more_tools",
                    json!({"tool": "bash", "arguments": {"command": "touch made"}}),
                )
                .says("Done.")
        },
        by_hand: None,
    },
    Way {
        name: "a call in the model's text",
        rule: "bash(touch *)",
        hooks: "",
        model: || {
            let call = "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"touch made\"}}\n</tool_call>";
            ScriptedModel::new().says(call).says("Done.")
        },
        by_hand: None,
    },
    Way {
        name: "a hook's own command",
        rule: "hook(touch *)",
        hooks: "[[stop]]\nrun = \"touch made\"",
        model: quiet,
        by_hand: None,
    },
    Way {
        name: "a command that the user types",
        rule: "bash(touch *)",
        hooks: "",
        model: quiet,
        by_hand: Some("touch made"),
    },
];

#[tokio::test]
async fn a_rule_that_denies_stops_whoever_comes() {
    for way in WAYS {
        for is_denied in [true, false] {
            let deny = if is_denied {
                vec![way.rule.to_owned()]
            } else {
                Vec::new()
            };
            let policy = policy::Options {
                deny,
                ..policy::Options::default()
            };
            let hooks: HookOptions = toml::from_str(way.hooks).expect("hooks");
            let desk = Desk::new(
                (way.model)().start().await,
                Wishes {
                    mode: Mode::Auto,
                    policy,
                    hooks,
                    ..Wishes::default()
                },
            )
            .await;
            match way.by_hand {
                Some(command) => {
                    desk.agent
                        .lock()
                        .await
                        .run_by_hand(command, &desk.interrupt)
                        .await
                        .expect("a sandbox");
                }
                None => drop(desk.work("work").await),
            }
            assert_eq!(
                desk.reached().is_empty(),
                is_denied,
                "{}: {:?}",
                way.name,
                desk.reached()
            );
            assert_eq!(
                desk.guest.path("made").exists(),
                !is_denied && way.rule != "read_file",
                "{}",
                way.name
            );
        }
    }
}

/// `!CMD`: approved by the user's own hand, and in all else a call like every other.
#[tokio::test]
async fn what_a_person_runs_passes_hooks_is_recorded_and_told_to_the_model() {
    let hooks = "[[pre_tool_use]]\nrun = 'echo not now >&2; exit 1'\nif = { tool = 'bash', input_contains = 'later' }";
    let model = ScriptedModel::new().says("I see.").start().await;
    let wishes = Wishes {
        mode: Mode::Ask,
        hooks: toml::from_str(hooks).expect("hooks"),
        ..Wishes::default()
    };
    let desk = Desk::new(model, wishes).await;
    let run = async |command: &str| {
        desk.agent
            .lock()
            .await
            .run_by_hand(command, &desk.interrupt)
            .await
            .expect("a sandbox")
    };
    let ran = run("echo found > a; cat a; seq 20000").await;
    assert_eq!(ran.status, CallStatus::Ok);
    assert!(
        ran.text.starts_with("found\n")
            && ran.text.contains("read_file with path \"artifact:hand-1\""),
        "{}",
        ran.text
    );
    assert!(
        desk.artifacts
            .page("hand-1", 1, 1)
            .is_ok_and(|page| page.text == "found\n")
    );
    let held = run("touch later").await;
    assert!(
        held.status == CallStatus::Denied
            && held.text.contains("a hook of the user blocks it: not now"),
        "{}",
        held.text
    );
    assert_eq!(run("false").await.status, CallStatus::Failed);
    // Nobody is asked about their own words, and the log says whose they were.
    let kinds = desk.kinds();
    assert!(
        !kinds
            .iter()
            .any(|kind| matches!(kind, Kind::PermissionAsked { .. }))
    );
    let decided = |kind: &&Kind| matches!(kind, Kind::CallDecided { decision: Decision::Allow, reason, call, .. } if reason == "the user typed it" && call.starts_with("hand-"));
    assert_eq!(kinds.iter().filter(decided).count(), 3);
    let begun = kinds
        .iter()
        .filter(|kind| matches!(kind, Kind::CallStarted { name, .. } if name == "bash"))
        .count();
    let ended = kinds
        .iter()
        .filter(|kind| matches!(kind, Kind::CallFinished { .. }))
        .count();
    assert_eq!((begun, ended), (2, 3));
    // The model reads it before the next words, and a log with it is resumed.
    desk.work("what did I do?").await;
    let messages = desk.model.requests()[0]["messages"].to_string();
    assert!(
        messages.contains("The user ran this in the sandbox themselves:\\n$ echo found > a; cat a"),
        "{messages}"
    );
    let past = podbay::session::ResumeState::of(&desk.events());
    let again = Desk::new(
        ScriptedModel::new().says("Still here.").start().await,
        Wishes {
            past,
            ..Wishes::default()
        },
    )
    .await;
    again.work("continue").await;
    assert!(
        again.model.heads()[0].starts_with(desk.model.heads().last().expect("requests")),
        "to the byte"
    );
    // What a user only looks at is a call like every other too, and says nothing to the model.
    let look = async |path: &str| {
        desk.agent
            .lock()
            .await
            .tree_by_hand(path, &desk.interrupt)
            .await
            .expect("a sandbox")
    };
    let shown = look("").await;
    assert!(
        shown.status == CallStatus::Ok && shown.text.lines().any(|line| line.trim() == "a"),
        "{}",
        shown.text
    );
    assert!(
        look("nowhere")
            .await
            .text
            .starts_with("nowhere: no such file or directory")
    );
    let is_tree = |kind: &Kind| matches!(kind, Kind::CallStarted { name, .. } if name == "tree");
    assert_eq!(desk.kinds().iter().filter(|kind| is_tree(kind)).count(), 2);
    // In a mode that only reads the user's own hand only reads, too.
    let wishes = Wishes {
        mode: Mode::Deny,
        ..Wishes::default()
    };
    let silent = Desk::new(ScriptedModel::new().says("x").start().await, wishes).await;
    let denied = silent
        .agent
        .lock()
        .await
        .run_by_hand("touch a", &silent.interrupt)
        .await
        .expect("a sandbox");
    assert_eq!(
        (denied.status, silent.reached().len()),
        (CallStatus::Denied, 0)
    );
}
