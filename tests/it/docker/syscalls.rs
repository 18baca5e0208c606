//! What the kernel says to system calls: to any process of a sandbox, to a command in it, and without
//! our filters.

use std::collections::BTreeSet;

use podbay::sandbox::SECCOMP;
use podbay::sandbox::SECCOMP_OF_COMMANDS;
use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::probe::MINUS_ONE;
use crate::support::probe::Named;
use crate::support::probe::PROBE;
use crate::support::probe::PTRACE;
use crate::support::probe::Said;
use crate::support::probe::all;
use crate::support::probe::allowed;
use crate::support::probe::arguments;
use crate::support::probe::has_domains;
use crate::support::probe::named;
use crate::support::probe::read;
use crate::support::probe::refused;
use crate::support::test_env::owner;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Above the newest call that there is.
const END: i64 = 480;

/// Above the newest call that every engine knows: what an engine has never heard of it takes for
/// not there.
const KNOWN: i64 = 430;

/// The kernel lets these pass by every filter: they answer only where it has put a probe itself.
const BY_THE_KERNEL: [&str; 2] = ["uprobe", "uretprobe"];

/// Returns every number that the profile has no name for, called or not: nobody thought of it, so
/// nobody may have it.
fn unlisted() -> Vec<Named> {
    let profile: Value =
        serde_json::from_str(include_str!("../../../docker/seccomp.workspace.json")).expect("JSON");
    let rules = profile["syscalls"].as_array().expect("rules").iter();
    let names = rules
        .flat_map(|rule| rule["names"].as_array().expect("names"))
        .map(|name| name.as_str().expect("text"));
    let named_there: BTreeSet<&str> = names.collect();
    let all = all();
    let is_named = |number: &i64| {
        all.get(number)
            .is_some_and(|name| named_there.contains(name) || BY_THE_KERNEL.contains(name))
    };
    let name = |number: i64| {
        all.get(&number).map_or_else(
            || format!("number {number}"),
            |name| format!("{name} ({number})"),
        )
    };
    (0..END)
        .filter(|number| !is_named(number))
        .map(|number| (name(number), [vec![number], vec![MINUS_ONE; 6]].concat()))
        .collect()
}

fn calls() -> String {
    let conditional = refused()
        .into_iter()
        .map(|(name, numbers)| named(name, &numbers));
    let allowed = allowed()
        .into_iter()
        .map(|(name, numbers, _)| named(name, &numbers));
    let mut all: Vec<Named> = conditional.chain(allowed).chain(unlisted()).collect();
    all.push(named("openat2", &[libc::SYS_openat2, MINUS_ONE, 0, 0, 0]));
    all.push(named("clone3", &[libc::SYS_clone3, 0, 0]));
    all.push(named(PTRACE.0, &PTRACE.1));
    all.push(named(
        "landlock",
        &[libc::SYS_landlock_create_ruleset, 0, 0, 1],
    ));
    arguments(&all)
}

/// Panics unless everything was refused that should be, and everything else let through.
#[track_caller]
fn check(said: &Said) {
    for (name, _) in refused() {
        assert_eq!(said[name], "EPERM", "{name}");
    }
    for (name, numbers) in unlisted() {
        let is_unknown = numbers[0] > KNOWN && said[&name] == "ENOSYS";
        assert!(
            said[&name] == "EPERM" || is_unknown,
            "{name}: {}",
            said[&name]
        );
    }
    for (name, _, expected) in allowed() {
        assert_eq!(said[name], expected, "{name}");
    }
    assert_eq!(
        said["clone3"], "ENOSYS",
        "so that libraries fall back to clone"
    );
}

#[test]
fn the_calls_that_are_looked_for_are_those_of_this_kernel() {
    let all = all();
    for (name, numbers) in refused() {
        let name = name
            .split(' ')
            .next()
            .expect("a word")
            .replace("netlink", "socket");
        assert_eq!(all.get(&numbers[0]), Some(&name.as_str()), "{name}");
    }
    let unlisted: BTreeSet<String> = unlisted()
        .into_iter()
        .map(|(name, _)| name.split(' ').next().expect("a word").to_owned())
        .collect();
    for name in [
        "quotactl_fd",
        "lookup_dcookie",
        "io_uring_setup",
        "nfsservctl",
        "set_mempolicy_home_node",
    ] {
        assert!(unlisted.contains(name), "{name}");
    }
    if cfg!(target_arch = "x86_64") {
        for name in [
            "modify_ldt",
            "iopl",
            "ioperm",
            "sysfs",
            "ustat",
            "uselib",
            "_sysctl",
            "vserver",
        ] {
            assert!(unlisted.contains(name), "{name}");
        }
    }
}

#[test]
fn the_profile_of_commands_allows_ptrace_and_is_else_that_of_all() {
    let profile = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let (all, mut commands) = (profile(SECCOMP), profile(SECCOMP_OF_COMMANDS));
    let rules = commands["syscalls"].as_array_mut().expect("rules");
    rules.retain(|rule| rule["names"] != json!(["ptrace"]));
    assert!(all == commands && !SECCOMP.contains("ptrace"));
}

#[test]
fn the_profile_refuses_what_it_should_on_this_engine() {
    let Some(env) = TestBox::new() else { return };
    let calls = calls();
    // A process that the engine starts in the sandbox has the profile alone; a command has the guest's
    // filter on top.
    let begun = start(&mut env.here(&[
        "sh",
        "--",
        "sh",
        "-c",
        "touch begun; while ! test -e go; do sleep 0.05; done",
    ]));
    env.wait_for("begun");
    let profile = read(&docker(&[
        "exec",
        &env.container(),
        "python3",
        "-c",
        PROBE,
        &calls,
    ]));
    env.write("go", "");
    begun.wait().expect(0);
    let command = read(
        &run(&mut env.here(&["sh", "--", "python3", "-c", PROBE, &calls]))
            .expect(0)
            .text(),
    );
    let user = format!("{}:{}", owner().0, owner().1);
    let plain = [
        "run",
        "--rm",
        "--network",
        "none",
        "--user",
        &user,
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
    ];
    let plain = [
        &plain[..],
        &[
            "--security-opt",
            "seccomp=unconfined",
            "--entrypoint",
            "python3",
            "podbay/workspace",
            "-c",
            PROBE,
            &calls,
        ],
    ];
    let plain = read(&docker(&plain.concat()));

    check(&profile);
    check(&command);
    assert_eq!(
        (profile["openat2"].as_str(), command["openat2"].as_str()),
        ("EINVAL", "ENOSYS"),
        "for the guest alone"
    );
    assert_eq!(
        (&profile["landlock"], command["landlock"].as_str()),
        (&plain["landlock"], "ENOSYS"),
        "as this kernel has it, for the guest"
    );
    let in_a_domain = if has_domains() { "done" } else { "EPERM" };
    assert_eq!(
        (profile["ptrace"].as_str(), command["ptrace"].as_str()),
        ("done", in_a_domain),
        "for calls in a domain alone"
    );
    if cfg!(target_arch = "x86_64") {
        for said in [&profile, &command] {
            let killed = format!("signal {}", libc::SIGSYS);
            assert_eq!((&said["32-bit"], &said["x32"]), (&killed, &killed));
        }
    }
    // It is the filter that refused: without it most of these do not need any right.
    let open = |name: &str| plain[name] != "EPERM";
    for name in [
        "process_vm_readv",
        "io_uring_setup",
        "keyctl",
        "kcmp",
        "unshare",
        "personality without random addresses",
    ] {
        assert!(
            open(name),
            "{name} is refused without the profile as well: {plain:?}"
        );
    }
    // A number that nothing answers to is an answer of the kernel's own.
    let n_there = unlisted()
        .iter()
        .filter(|(name, _)| plain[name] != "EPERM" && plain[name] != "ENOSYS")
        .count();
    assert!(n_there > 20, "{n_there}: {plain:?}");
    let n_open = refused().iter().filter(|(name, _)| open(name)).count();
    assert!(
        n_open > refused().len() / 2 - 10,
        "the others take a right that nobody has: {n_open}: {plain:?}"
    );
    env.assert_no_container();
}
