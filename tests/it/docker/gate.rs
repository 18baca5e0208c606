//! The exec gate under a real engine: rules hold on what runs, however it comes to run.

use std::time::Duration;

use serde_json::json;

use super::mounts::Image;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Forms of a push, and commands that only look like one, tried one after the other in a repository
/// with a remote.
const FORMS: &str = include_str!("../fixtures/gate/forms.sh");

/// Swaps an argument while its program is executed.
const RACE: &str = include_str!("../fixtures/gate/race.c");

/// Starts programs as fast as they end.
const STORM: &str = include_str!("../fixtures/gate/storm.c");

/// Does something at its first instruction, if it is told to.
const TARGET: &str = include_str!("../fixtures/gate/target.c");

fn bash(env: &TestBox, options: &[&str], command: &str) -> Done {
    let call = serde_json::json!({ "command": command, "timeout_seconds": 600 });
    let mut command = env.here(&["call"]);
    command.args(options).args(["bash", &call.to_string()]);
    // Twenty thousand races take their time.
    start(&mut command).wait_within(Duration::from_mins(10))
}

/// A rule that holds for whatever starts the program.
fn write_settings(env: &TestBox, rule: &str) -> String {
    let text = format!(
        "[[policy.rules]]\ndecision = \"deny\"\nrule = \"{rule}\"\nscope = \"anywhere\"\njustification = \"ask Ann\"\n"
    );
    std::fs::write(env.beside("gate.toml"), text).expect("written");
    env.beside("gate.toml").display().to_string()
}

fn count_of(text: &str, word: &str) -> usize {
    text.lines().filter(|line| line.starts_with(word)).count()
}

#[test]
fn no_form_of_a_push_gets_through_and_nothing_that_looks_like_one_is_refused() {
    let Some(env) = TestBox::new() else { return };
    env.write("forms.sh", FORMS);
    let settings = write_settings(&env, "bash(git push*)");
    let done = bash(&env, &["--config", &settings], "bash forms.sh");
    let text = done.text();
    let count = |word: &str| count_of(&text, word);
    assert!(count("HELD") >= 30, "{text}\n{}", done.stderr);
    assert_eq!((count("PUSHED"), count("REFUSED")), (0, 0), "{text}");
    assert!(count("FINE") >= 10, "{text}");
    assert!(
        text.contains("was not run")
            && text.contains("the rule `bash(git push*)` denies it: ask Ann"),
        "{text}"
    );
    // The table of what reaches others holds a push without any rule.
    let text = bash(&env, &[], "bash forms.sh").text();
    assert!(
        count_of(&text, "HELD") >= 30 && count_of(&text, "PUSHED") == 0,
        "{text}"
    );
    assert!(
        text.contains("the rule `built in: git push` denies it"),
        "{text}"
    );
    // Where the script is allowed all of them push, so that nothing else holds them.
    let text = bash(&env, &["--allow", "bash(bash forms.sh)"], "bash forms.sh").text();
    let held: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("HELD"))
        .collect();
    assert_eq!(held, Vec::<&str>::new(), "{text}");
    env.assert_no_container();
}

#[test]
fn an_argument_that_is_swapped_while_its_program_is_executed_wins_nothing() {
    let Some(env) = TestBox::new() else { return };
    env.write("race.c", RACE);
    env.write("target.c", TARGET);
    let build = "gcc -O2 -o race race.c -lpthread && gcc -O2 -o target target.c";
    assert_eq!(bash(&env, &[], build).code, 0);
    let n = podbay_soak::whole_or(20_000, 300);
    // Swapped all the time, and once after so many microseconds.
    let settings = write_settings(&env, "bash(tgt EVIL*)");
    for delay in ["0", "150", "600"] {
        let done = bash(
            &env,
            &["--config", &settings],
            &format!("./race {n} {delay} ./target"),
        );
        let text = done.text();
        assert!(
            text.contains(&format!("tried={n} effects=0 ")),
            "{delay}: {text}\n{}",
            done.stderr
        );
    }
    let text = bash(&env, &[], "./race 300 0 ./target").text();
    assert!(
        !text.contains("effects=0 "),
        "without the rule some win: {text}"
    );
}

#[test]
fn many_programs_at_once_of_whatever_make_all_run_and_are_counted() {
    let Some(env) = TestBox::new() else { return };
    env.write("plain", "echo without a first line\n");
    env.write("static.c", "int main(void) { return 0; }\n");
    env.write("thread.c", include_str!("../fixtures/gate/thread.c"));
    let settings = write_settings(&env, "bash(nothing at all)");
    let deny = ["--config", settings.as_str()];
    let build =
        "chmod +x plain && gcc -static -o static static.c && gcc -o thread thread.c -lpthread";
    assert_eq!(bash(&env, &[], build).code, 0);
    env.write("all.sh", "./plain; ./static && echo static; ./thread /bin/echo from a thread; /bin/echo $(seq 20000) | wc -w\n");
    env.write(
        "storm.sh",
        "for n in 1 2 3 4; do (for m in $(seq 500); do /bin/true; done) & done; wait; echo done\n",
    );
    let done = bash(&env, &deny, "sh all.sh");
    assert_eq!(
        done.text(),
        "without a first line\nstatic\nfrom a thread\n20000\n",
        "{}",
        done.stderr
    );
    // A storm while others continue.
    assert_eq!(bash(&env, &deny, "sh storm.sh").text(), "done\n");
    env.assert_no_container();
}

/// Programs start as fast as the machine can for a while, a minute in `just soak`: each runs, and
/// the sandbox is as before.
#[test]
#[expect(clippy::print_stderr, reason = "how many it were")]
fn programs_that_start_without_a_pause_all_run_and_the_next_call_is_held_too() {
    let Some(env) = TestBox::new() else { return };
    env.write("storm.c", STORM);
    env.write("empty.c", "int main(void) { return 0; }\n");
    env.write("then.sh", "touch made\n");
    let settings = write_settings(&env, "bash(touch *)");
    let deny = ["--config", settings.as_str()];
    let build = "gcc -O2 -o storm storm.c && gcc -static -o empty empty.c";
    assert_eq!(bash(&env, &[], build).code, 0);
    let seconds = podbay_soak::whole_or(60, 1);
    let done = bash(
        &env,
        &deny,
        &format!("./storm {seconds} ./empty; sh then.sh"),
    );
    let text = done.text();
    eprintln!("{seconds} s: {text}");
    assert!(
        text.contains(" failed=0\n") && !text.contains("started=0 "),
        "{text}\n{}",
        done.stderr
    );
    assert!(text.contains("`touch made` was not run"), "{text}");
    assert!(!env.path("made").exists());
    env.assert_no_container();
}

/// An image as alpine's: one static program with many names, and `ash` is its shell.
#[test]
#[ignore = "just soak: builds an image from Debian's archive"]
fn rules_hold_in_an_image_of_busybox_alone() {
    let Some(env) = TestBox::new() else { return };
    let tools = Image::new(
        &env,
        "ENV APT_OPTIONS=-oAcquire::Check-Valid-Until=false\n\
         RUN sh /usr/local/sbin/apt-install busybox-static musl-tools\n\
         RUN echo 'int main(void) { return 0; }' > /e.c && mkdir -p /out/bin && musl-gcc -static -o /out/bin/empty /e.c\n\
         RUN cp /bin/busybox /out/bin/ && cd /out/bin && for name in $(./busybox --list); do [ -e $name ] || ln -s busybox $name; done\n\
         FROM scratch\n\
         COPY --from=0 /out /",
    );
    let settings = write_settings(&env, "bash(wget *)");
    let options = ["--config", settings.as_str(), "--image", tools.0.as_str()];
    for command in [
        "wget http://x/",
        "busybox wget http://x/",
        "sh -c 'exec wget http://x/'",
        "xargs wget http://x/ < /dev/null",
    ] {
        env.write("try.sh", command);
        let text = bash(&env, &options, "sh try.sh").text();
        assert!(
            text.contains("was not run") && text.contains("ask Ann"),
            "{command}: {text}"
        );
    }
    let text = bash(
        &env,
        &options,
        "readlink /bin/sh; seq 3 | tail -n1; empty && echo empty; echo wget x | wc -w",
    );
    assert_eq!(text.text(), "busybox\n3\nempty\n2\n", "{}", text.stderr);
    env.assert_no_container();
}

#[test]
fn git_may_do_of_itself_what_is_denied_to_the_agent() {
    let Some(env) = TestBox::new() else { return };
    let settings = write_settings(&env, "bash(git reset*)");
    let make = "cd /tmp && git init -q r && cd r && git config user.name a && git config user.email a@b && echo x > f && git add f && \
                git commit -qm x && echo y > f && git stash -q && git stash pop -q && cat f; git worktree add -q ../w && ls ../w";
    assert_eq!(bash(&env, &["--config", &settings], make).text(), "y\nf\n");
    env.write(
        "again.sh",
        "cd /tmp && git init -q q && cd q && git reset --hard\n",
    );
    let text = bash(&env, &["--config", &settings], "sh again.sh").text();
    assert!(text.contains("`git reset --hard` was not run"), "{text}");
}

/// A script meets a rule, or a gate that nobody is there to open: the call is denied, in its exit
/// code and in what scripts read.
#[test]
fn what_is_denied_in_the_middle_ends_a_call_and_a_run_with_code_four() {
    let Some(env) = TestBox::new() else { return };
    env.write("run.sh", "/bin/echo before\ntouch made\n");
    let settings = write_settings(&env, "bash(touch *)");
    let done = bash(&env, &["--config", &settings], "sh run.sh").expect(4);
    assert!(
        done.text().contains("before\n") && done.text().contains("`touch made` was not run"),
        "{}",
        done.text()
    );
    let model = || {
        ScriptedModel::new()
            .calls("bash", json!({"command": "sh run.sh"}))
            .says("I could not.")
            .start_blocking()
    };
    for (flags, because) in [
        (
            &["--deny", "bash(touch *)"][..],
            "the rule `bash(touch *)` denies it",
        ),
        (&["--gate", "bash(touch *)"], "needs the user's approval"),
    ] {
        let model = model();
        let endpoint = model.endpoint();
        let task = [
            "run",
            "work",
            "--model",
            "scripted",
            "--endpoint",
            &endpoint,
            "--output",
            "jsonl",
        ];
        let done = run(env.here(&task).args(flags)).expect(4);
        let events: Vec<serde_json::Value> = done
            .text()
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let at =
            |is: &dyn Fn(&serde_json::Value) -> bool| events.iter().position(is).expect("an event");
        let denied = at(&|event| event["type"] == "call_decided" && event["decision"] == "deny");
        assert!(
            events[denied]["reason"]
                .as_str()
                .is_some_and(|reason| reason.contains(because)),
            "{}",
            events[denied]
        );
        assert!(
            at(&|event| event["type"] == "call_started") < denied
                && denied < at(&|event| event["type"] == "call_finished")
        );
        let result = events.last().expect("a result");
        assert_eq!(
            (
                result["type"].as_str(),
                result["status"].as_str(),
                result["exit_code"].as_u64()
            ),
            (Some("result"), Some("blocked"), Some(4))
        );
        assert_eq!(
            result["denied"].as_array().map(Vec::len),
            Some(1),
            "{result}"
        );
    }
    env.assert_no_container();
}
