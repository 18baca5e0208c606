//! Tests of dry runs: a patch with `dry_run`, and commands that only report what they would do.

use super::Action;
use super::Mode;
use super::Options;
use super::Policy;
use super::Verdict;
use super::verdicts::shell;
use podbay_event::Decision;
use podbay_wire::ApplyPatch;
use podbay_wire::Call;
use podbay_wire::FilePatch;
use podbay_wire::PatchAction;

fn patch(files: &[(&str, PatchAction)], dry_run: bool) -> Action {
    let files = files
        .iter()
        .map(|(path, action)| FilePatch {
            path: (*path).into(),
            action: action.clone(),
            notes: Vec::new(),
        })
        .collect();
    Action::Box(Call::ApplyPatch(ApplyPatch {
        files,
        dry_run,
        protected: false,
        known: None,
    }))
}

fn update(to: Option<&str>) -> PatchAction {
    PatchAction::Update {
        hunks: Vec::new(),
        to: to.map(Into::into),
    }
}

fn add() -> PatchAction {
    PatchAction::Add {
        content: "x".to_owned(),
    }
}

/// Checks the decisions in the modes ask, auto and deny.
#[track_caller]
fn check(options: &Options, action: &Action, expected: [Decision; 3]) {
    let decided = [Mode::Ask, Mode::Auto, Mode::Deny].map(|mode| {
        let policy = Policy::new(mode, options).expect("good rules");
        match policy.judge(action.clone()) {
            Verdict::Allow { .. } => Decision::Allow,
            Verdict::Ask(_) => Decision::Ask,
            Verdict::Deny { .. } => Decision::Deny,
        }
    });
    assert_eq!(decided, expected, "{action:?}");
}

const ALLOWED: [Decision; 3] = [Decision::Allow; 3];
const DENIED: [Decision; 3] = [Decision::Deny; 3];
const ASKED_IN_ASK: [Decision; 3] = [Decision::Ask, Decision::Deny, Decision::Deny];
const WRITES: [Decision; 3] = [Decision::Ask, Decision::Allow, Decision::Deny];

#[test]
fn a_dry_run_of_a_patch_is_allowed_like_reading() {
    let none = Options::default();
    let files = [("a", update(None)), ("b", add()), ("c", update(Some("d")))];
    check(&none, &patch(&files, true), ALLOWED);
    check(&none, &patch(&files, false), WRITES);
    // It would reveal the contents.
    for secret in [(".env", update(None)), ("a", update(Some("id_rsa")))] {
        let files = [("b", add()), secret];
        check(&none, &patch(&files, true), ASKED_IN_ASK);
        check(&none, &patch(&files, false), ASKED_IN_ASK);
    }
    // Git's configuration files may be read.
    let hook = [(".git/hooks/pre-commit", update(None))];
    check(&none, &patch(&hook, true), ALLOWED);
    check(&none, &patch(&hook, false), ASKED_IN_ASK);
}

#[test]
fn rules_match_a_dry_run_like_the_patch_itself() {
    let rules = |deny: &[&str], gate: &[&str], ask: &[&str]| {
        let owned = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        Options {
            deny: owned(deny),
            gate: owned(gate),
            ask: owned(ask),
            ..Options::default()
        }
    };
    let within = [("a", update(None)), ("secret/b", update(None))];
    let moved = [("a", update(Some("secret/b")))];
    let beside = [("a", update(None)), ("public/b", add())];
    for rule in ["apply_patch(secret/**)", "apply_patch(/^secret/)"] {
        let deny = rules(&[rule], &[], &[]);
        let gate = rules(&[], &[rule], &[]);
        for files in [&within[..], &moved[..]] {
            check(&deny, &patch(files, true), DENIED);
            check(&gate, &patch(files, true), ASKED_IN_ASK);
        }
        check(&deny, &patch(&beside, true), ALLOWED);
        check(&gate, &patch(&beside, true), ALLOWED);
    }
    check(
        &rules(&["apply_patch"], &[], &[]),
        &patch(&beside, true),
        DENIED,
    );
    check(
        &rules(&[], &[], &["apply_patch"]),
        &patch(&beside, true),
        [Decision::Ask, Decision::Allow, Decision::Allow],
    );
    check(
        &rules(&["write_file", "edit_file"], &[], &[]),
        &patch(&beside, true),
        ALLOWED,
    );
}

#[test]
fn a_dry_run_follows_no_link_to_a_denied_path() {
    let options = Options {
        deny: vec!["apply_patch(secret/**)".to_owned()],
        ..Options::default()
    };
    for mode in [Mode::Ask, Mode::Auto, Mode::Deny] {
        let policy = Policy::new(mode, &options).expect("a good rule");
        let verdict = policy.judge(patch(&[("a", update(None))], true));
        assert!(
            matches!(verdict, Verdict::Allow { action, .. } if action.is_by_name()),
            "{mode:?}"
        );
    }
}

#[test]
fn a_commands_own_dry_run_is_judged_like_the_command() {
    let none = Options::default();
    for command in [
        "git push --dry-run",
        "git clean -n",
        "npm publish --dry-run",
        "git apply --check a.patch",
        "make -n",
    ] {
        check(&none, &shell(command), WRITES);
        let program = command.split(' ').next().unwrap_or_default();
        let deny = Options {
            deny: vec![format!("bash({program} *)")],
            ..Options::default()
        };
        check(&deny, &shell(command), DENIED);
        let gate = Options {
            gate: vec![format!("bash({program} *)")],
            ..Options::default()
        };
        check(&gate, &shell(command), ASKED_IN_ASK);
    }
    for command in ["git push", "npm publish"] {
        check(&none, &shell(command), ASKED_IN_ASK);
    }
}
