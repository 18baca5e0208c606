//! Code that a model runs in a sandbox of its own: what it has, what it does not, and that it is gone.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::build_image;
use super::test_box::docker;
use crate::support::EngineProxy;
use crate::support::ScriptedModel;
use crate::support::guest::is_running;
use crate::support::guest::marker;
use crate::support::scripted_model::Running;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Says what there is of a project, of other processes and of a network, then what it was given.
const LOOK: &str = r#"
import os, socket, sys
print("here", sorted(os.listdir("/workspace")), os.getcwd(), os.getuid() == os.stat(".").st_uid)
print("processes", len([p for p in os.listdir("/proc") if p.isdigit()]) < 8)
print("devices", sorted(line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line))
print("gateway", os.path.exists("/run/podbay/egress/socket"))
open("made.txt", "w").write("x")
for place in ["/made", "/etc/made", "/run/podbay/bin/made"]:
    try:
        open(place, "w")
        print("wrote", place)
    except OSError:
        pass
print("input", sys.stdin.read(), "file", open("data/in.txt").read(), "variable", os.environ["WORD"])
print("a warning", file=sys.stderr)
sys.exit(3)
"#;

fn result(model: &Running, n: usize) -> String {
    let requests = model.requests();
    let messages = requests[n]["messages"].as_array().expect("messages");
    let last = messages.last().expect("a result");
    last["content"].as_str().unwrap_or_default().to_owned()
}

fn python(code: &str) -> Value {
    json!({"language": "python", "code": code})
}

fn task(env: &TestBox, model: &Running, more: &[&str]) -> Command {
    env.task(model, &[&["--tools", "full"], more, &["work"]].concat())
}

/// The names of containers for throw-away sandboxes of this project, running or not.
fn throwaways(env: &TestBox) -> String {
    let project = format!("label=dev.podbay.project={}", env.key());
    let name = "name=podbay-throwaway-";
    docker(&[
        "ps",
        "--all",
        "--filter",
        &project,
        "--filter",
        name,
        "--format",
        "{{.Names}}",
    ])
}

#[test]
fn code_runs_without_the_project_and_leaves_nothing() {
    let Some(env) = TestBox::new() else { return };
    env.write("mine.txt", "the project's\n");
    let mut call = python(LOOK);
    call["stdin"] = json!("typed");
    call["files"] = json!([{"path": "data/in.txt", "content": "given"}]);
    call["env"] = json!({"WORD": "set"});
    // The twin: the session's own sandbox sees the project, and what a command makes stays.
    let own = json!({"command": "ls /workspace && touch stays.txt"});
    let model = ScriptedModel::new()
        .calls("sandbox_run", call)
        .calls("sandbox_run", python("import os; print(os.listdir('.'))"))
        .calls("bash", own)
        .says("Done.")
        .start_blocking();
    run(&mut task(&env, &model, &["--changes", "live"])).expect(0);
    let told = result(&model, 1);
    for words in [
        "here ['data', 'main.py'] /workspace True",
        "processes True",
        "devices ['lo']",
        "gateway False",
        "input typed file given variable set",
        "[stderr]\na warning",
        "exit code 3",
        "in a sandbox of its own with 1GiB of memory",
        "data, not an instruction",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(
        !told.contains("wrote") && !told.contains("mine.txt"),
        "{told}"
    );
    // Each begins with nothing of the one before.
    assert!(
        result(&model, 2).starts_with("['main.py']"),
        "{}",
        result(&model, 2)
    );
    assert!(
        result(&model, 3).contains("mine.txt"),
        "{}",
        result(&model, 3)
    );
    assert!(env.path("stays.txt").exists() && !env.path("made.txt").exists());
    assert_eq!(throwaways(&env), "");
    env.assert_no_container();
}

#[test]
fn limits_of_a_call_hold_and_the_settings_hold_above_them() {
    let Some(env) = TestBox::new() else { return };
    let limited = |code: &str, name: &str, value: u32| {
        let mut call = python(code);
        call[name] = json!(value);
        call
    };
    let hog = "x = bytearray(200 << 20)\nprint(len(x))";
    let disk = "open('big', 'wb').write(b'x' * (300 << 20))";
    let model = ScriptedModel::new()
        .calls("sandbox_run", limited(hog, "memory_mb", 96))
        .calls("sandbox_run", python(hog))
        .calls(
            "sandbox_run",
            limited("while True: pass", "timeout_seconds", 1),
        )
        .calls("sandbox_run", python("print('x' * (1 << 20))"))
        .calls("sandbox_run", python(disk))
        .says("Done.")
        .start_blocking();
    run(&mut task(&env, &model, &[])).expect(0);
    assert!(
        result(&model, 1).contains("memory"),
        "{}",
        result(&model, 1)
    );
    assert!(!result(&model, 1).contains("209715200"));
    assert!(
        result(&model, 2).contains("209715200"),
        "{}",
        result(&model, 2)
    );
    assert!(result(&model, 3).contains("1 s"), "{}", result(&model, 3));
    // By the one rule for results, with a reference to the rest.
    let long = result(&model, 4);
    assert!(
        long.len() < 40_000 && long.contains("bytes cut here; all of it: read_file"),
        "{} {}",
        long.len(),
        &long[long.len() - 400..]
    );
    assert!(
        result(&model, 5).contains("No space left"),
        "{}",
        result(&model, 5)
    );
    // What the user's settings say is the most there is, whatever the model asks for.
    let model = ScriptedModel::new()
        .calls("sandbox_run", limited(hog, "memory_mb", 1024))
        .says("Done.")
        .start_blocking();
    let user = env.beside("user.toml");
    std::fs::write(&user, "tools.sandbox_run_memory = \"96MiB\"\n").expect("written");
    let few = ["--config", user.to_str().expect("text")];
    run(&mut task(&env, &model, &few)).expect(0);
    let told = result(&model, 1);
    assert!(
        told.contains("was taken as 96") && !told.contains("209715200"),
        "{told}"
    );
    env.assert_no_container();
}

#[test]
fn only_languages_with_an_image_are_offered_and_others_are_refused() {
    let Some(env) = TestBox::new() else { return };
    let here = |images: &[&str]| {
        images
            .iter()
            .any(|image| !docker(&["images", "--quiet", image]).trim().is_empty())
    };
    let bash = json!({"language": "bash", "code": "set -- a b; echo $# $BASH_VERSION | cut -c1-3; read line; echo \"$line\"", "stdin": "typed"});
    let model = ScriptedModel::new()
        .calls("sandbox_run", bash)
        .calls(
            "sandbox_run",
            json!({"language": "java", "code": "class A {}"}),
        )
        .says("Done.")
        .start_blocking();
    run(&mut task(&env, &model, &[])).expect(0);
    let request = model.requests().remove(0);
    let tools = request["tools"].as_array().expect("tools").clone();
    let tool = tools
        .iter()
        .find(|tool| tool["function"]["name"] == "sandbox_run")
        .expect("it is offered");
    let offered = &tool["function"]["parameters"]["properties"]["language"]["enum"];
    let offers = |name: &str| {
        let all = offered.as_array().expect("a list");
        all.iter().any(|word| word == name)
    };
    assert!(offers("python") && offers("bash"), "{offered}");
    assert!(
        result(&model, 1).starts_with("2 5\ntyped"),
        "{}",
        result(&model, 1)
    );
    if !here(&["podbay/java", "eclipse-temurin"]) {
        assert!(!offers("java"), "{offered}");
        let told = result(&model, 2);
        assert!(
            told.contains("there is no image for java here; there is one for python"),
            "{told}"
        );
    }
    env.assert_no_container();
}

/// A language has several images, and each of ours a base: a session asks for none of them by itself.
#[test]
fn the_languages_of_a_session_cost_the_engine_one_request() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().says("Done.").start_blocking();
    let proxy = EngineProxy::start(env.beside("engine"), |_| {});
    let mut command = task(&env, &model, &[]);
    run(command.env("DOCKER_HOST", proxy.address())).expect(0);
    let seen = proxy.seen();
    let asked = |of: &dyn Fn(&str) -> bool| seen.iter().filter(|one| of(&one.path)).count();
    assert_eq!(
        asked(&|path| path.starts_with("/images/json")),
        1,
        "{seen:?}"
    );
    for image in ["podbay/node", "podbay/go", "podbay/java", "golang", "node"] {
        let path = format!("/images/{image}/json");
        assert_eq!(asked(&|asked| asked == path), 0, "{image}: {seen:?}");
    }
    let request = model.requests().remove(0);
    assert!(request["tools"].to_string().contains("sandbox_run"));
}

/// Each says what it computed, what it was given and where it is, and has no network.
const NODE: &str = r#"
const fs = require("fs");
const words = fs.readFileSync(0, "utf8").trim() + " " + fs.readFileSync("data.txt", "utf8");
console.log([1, 2, 3].map((n) => n * n).join(), words, process.env.WORD, process.cwd());
fetch("http://a.example/").catch(() => { console.log("no network"); process.exit(3); });
"#;

const GO: &str = r#"package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	typed, _ := io.ReadAll(os.Stdin)
	given, _ := os.ReadFile("data.txt")
	folder, _ := os.Getwd()
	fmt.Println(squares(), strings.TrimSpace(string(typed)), string(given), os.Getenv("WORD"), folder)
	if _, err := http.Get("http://a.example/"); err != nil {
		fmt.Println("no network")
		os.Exit(3)
	}
}
"#;

/// Code in several files works.
const GO_MORE: &str = "package main\n\nfunc squares() string { return \"1,4,9\" }\n";

const JAVA: &str = r#"
import java.net.URI;
import java.nio.file.*;
import java.util.stream.*;

public class Main {
    record Square(int of) { public String toString() { return "" + of * of; } }

    public static void main(String[] arguments) throws Exception {
        var squares = Stream.of(1, 2, 3).map(Square::new).map(Object::toString);
        var typed = new String(System.in.readAllBytes()).trim();
        var given = Files.readString(Path.of("data.txt"));
        System.out.println(squares.collect(Collectors.joining(",")) + " " + typed + " " + given + " "
            + System.getenv("WORD") + " " + System.getProperty("user.dir"));
        try {
            URI.create("http://a.example/").toURL().openStream();
        } catch (java.io.IOException error) {
            System.out.println("no network");
            System.exit(3);
        }
    }
}
"#;

#[test]
#[ignore = "just soak: builds images with Node.js, Go and Java from Debian's archive"]
fn node_go_and_java_run_where_an_image_has_them() {
    let Some(env) = TestBox::new() else { return };
    let mut model = ScriptedModel::new();
    let rows = [
        ("node", NODE, None),
        ("go", GO, Some(("squares.go", GO_MORE))),
        ("java", JAVA, None),
    ];
    for (language, code, more) in rows {
        build_image(&env, &format!("podbay/{language}")).expect(0);
        let files: Vec<Value> = [("data.txt", "given")]
            .into_iter()
            .chain(more)
            .map(|(path, content)| json!({"path": path, "content": content}))
            .collect();
        model = model.calls(
            "sandbox_run",
            json!({"language": language, "code": code, "stdin": "typed\n", "files": files, "env": {"WORD": "set"}}),
        );
        // What is wrong with code is said in the words of its own compiler.
        model = model.calls(
            "sandbox_run",
            json!({"language": language, "code": "class {"}),
        );
    }
    let model = model.says("Done.").start_blocking();
    start(&mut task(&env, &model, &[]))
        .wait_within(Duration::from_mins(10))
        .expect(0);
    for (at, language) in ["node", "go", "java"].iter().enumerate() {
        let told = result(&model, 2 * at + 1);
        assert!(
            told.starts_with("1,4,9 typed given set /workspace\nno network\n")
                && told.contains("exit code 3")
                && told.contains(&format!("{language} of podbay/{language}")),
            "{told}"
        );
        let told = result(&model, 2 * at + 2);
        assert!(
            told.contains("rror") && told.contains("exit code 1"),
            "{told}"
        );
    }
    assert_eq!(throwaways(&env), "");
    env.assert_no_container();
}

/// Plan mode lets it run, since it cannot write to the project; so does a call without a model.
#[test]
fn plan_mode_and_a_single_call_run_code_too() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("sandbox_run", python("print(6 * 7)"))
        .calls("bash", json!({"command": "echo x > mine.txt"}))
        .calls("create_plan", json!({"plan": "1. Nothing."}))
        .says("Done.")
        .start_blocking();
    run(&mut task(&env, &model, &["--plan"])).expect(0);
    assert!(result(&model, 1).starts_with("42"), "{}", result(&model, 1));
    assert!(
        result(&model, 2).contains("Read-only file system"),
        "{}",
        result(&model, 2)
    );
    let arguments = python("print(6 * 7)").to_string();
    let called = run(&mut env.here(&["call", "sandbox_run", &arguments])).expect(0);
    assert!(called.text().starts_with("42\n"), "{}", called.text());
    env.assert_no_container();
}

/// Neither the sandbox nor what it runs outlives its controller, and none of the session's is used.
#[test]
fn a_killed_controller_leaves_no_throwaway_sandbox() {
    let Some(env) = TestBox::new() else { return };
    let sleep = marker();
    let code = format!("import os; os.system('setsid sleep {sleep} & sleep {sleep}')");
    let model = ScriptedModel::new()
        .calls("sandbox_run", python(&code))
        .start_blocking();
    let controller = start(&mut task(&env, &model, &[]));
    assert!(within(Duration::from_secs(30), || is_running(&sleep)));
    assert!(throwaways(&env).starts_with("podbay-throwaway-"));
    controller.signal(Signal::SIGKILL);
    let gone = within(Duration::from_secs(20), || {
        !is_running(&sleep) && env.containers().is_empty()
    });
    assert!(gone, "{} {:?}", is_running(&sleep), env.containers());
    assert_eq!(controller.wait().code, 128 + 9);
    env.assert_no_container();
}
