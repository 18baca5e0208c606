//! A box without bash: what its shell may read otherwise than bash is no longer certain, whoever comes with it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use podbay::event::Answer;
use podbay::event::Answered;
use podbay::event::CallStatus;
use podbay::event::HookOutcome;
use podbay::event::Kind;
use podbay::policy;
use podbay::policy::Mode;
use podbay::sandbox;
use podbay::sandbox::link::Link;
use podbay::tools::Later;
use podbay::tools::OnChunk;
use podbay::tools::Workspace;
use podbay::wire::Call;
use podbay::wire::CommandEnded;
use podbay::wire::End;
use podbay::wire::Output;
use podbay::wire::Shell;
use podbay::wire::message::Facts;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::hostile::attached;
use crate::hostile::facts;
use crate::hostile::listen;
use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::desk::Wishes;
use crate::support::guest::TestGuest;
use crate::support::test_env::run;

/// The guest of a box of which this is told.
struct Told(Link, Shell);

impl Workspace for Told {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        Workspace::call(&self.0, call, on_chunk, cancel, deadline)
    }

    fn shell(&self) -> Later<'_, Shell> {
        Box::pin(std::future::ready(self.1))
    }
}

/// In bash a test that makes nothing.
const HIDING: &str = "! [[ -n x && ( touch == made ) && b ]]";

async fn desk(shell: Shell, wishes: Wishes) -> Desk {
    let model = ScriptedModel::new().calls("bash", json!({ "command": HIDING })).says("Done.").start().await;
    let guest = TestGuest::start().await;
    let told = Told(guest.link.clone(), shell);
    Desk::over(guest, Arc::new(told), model, wishes).await
}

fn rules(allow: &[&str], deny: &[&str]) -> policy::Options {
    let owned = |rules: &[&str]| rules.iter().map(|&rule| rule.to_owned()).collect();
    policy::Options { allow: owned(allow), deny: owned(deny), ..policy::Options::default() }
}

/// The verdict comes to the model as its result.
async fn result(shell: Shell, mode: Mode, policy: policy::Options) -> (bool, String) {
    let answers = vec![Answered { answer: Answer::Deny, reason: None }];
    let desk = desk(shell, Wishes { mode, policy, answers, ..Wishes::default() }).await;
    desk.work("work").await;
    (!desk.reached().is_empty(), desk.results(1)[0].clone())
}

#[tokio::test]
async fn where_there_is_no_bash_nothing_hides_behind_what_only_bash_reads_so() {
    for (mode, why) in [(Mode::Auto, "the sandbox has no bash, and its sh may read `[[` otherwise"), (Mode::Ask, "the person said no")] {
        let (reached, text) = result(Shell::Plain, mode, rules(&[], &[])).await;
        assert!(!reached && text.contains(why), "{text}");
        assert!(result(Shell::Bash, mode, rules(&[], &[])).await.0, "bash reads it the way it was read");
    }
    for deny in ["bash(touch *)", "bash(rm *)"] {
        let (reached, text) = result(Shell::Plain, Mode::Auto, rules(&[], &[deny])).await;
        assert!(!reached && text.contains(&format!("the rule `{deny}` denies it")) && text.contains("no bash runs it"), "{text}");
        assert!(result(Shell::Bash, Mode::Auto, rules(&[], &[deny])).await.0);
    }
    for (allow, reaches) in [("bash", false), ("bash(! *)", false), ("bash(/./)", false), (&*format!("bash({HIDING})"), true)] {
        assert_eq!(result(Shell::Plain, Mode::Auto, rules(&[allow], &[])).await.0, reaches, "{allow}");
        assert_eq!(result(Shell::Plain, Mode::Ask, rules(&[allow], &[])).await.0, reaches, "{allow}");
    }
}

#[tokio::test]
async fn a_denial_holds_hooks_and_the_persons_own_commands_there_too() {
    for (shell, denied) in [(Shell::Plain, true), (Shell::Bash, false)] {
        let hooks = toml::from_str(&format!("[[stop]]\nrun = '{HIDING}'")).expect("hooks");
        let wishes = Wishes { policy: rules(&[], &["hook(touch *)", "bash(touch *)"]), hooks, ..Wishes::default() };
        let desk = desk(shell, wishes).await;
        let by_hand = desk.agent.lock().await.run_by_hand(HIDING, &desk.interrupt).await.expect("a sandbox");
        assert_eq!(by_hand.status == CallStatus::Denied, denied, "{}", by_hand.text);
        desk.work("work").await;
        let ended = desk.kinds().into_iter().find_map(|kind| if let Kind::HookEnded { outcome, .. } = kind { Some(outcome) } else { None });
        assert_eq!(desk.reached().contains(&"hook".to_owned()), !denied);
        assert_eq!(ended == Some(HookOutcome::Failed), denied, "{ended:?}");
    }
}

#[test]
fn a_call_where_nobody_is_asked_says_why_and_what_to_do() {
    for (shell, code) in [(Shell::Plain, 4), (Shell::Bash, 0)] {
        let env = TestEnv::new();
        let n_calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_calls);
        listen(&env.beside("guest.sock"), Some(Facts { shell, ..facts() }), move |guest| {
            let id = guest.call()?;
            counted.fetch_add(1, Ordering::SeqCst);
            guest.done(id, Output::Command(CommandEnded::plain(End::Exited { code: 0 })))
        });
        let mut command = env.podbay(&["call", "--mode", "ask", "bash", &json!({ "command": HIDING }).to_string()]);
        attached(&env, &mut command);
        let done = run(&mut command).expect(code);
        assert_eq!(n_calls.load(Ordering::SeqCst), usize::from(shell == Shell::Bash));
        if shell == Shell::Plain {
            assert!(done.text().contains("nobody is there to give it (the sandbox has no bash, and its sh may read `[[` otherwise"));
        }
    }
}
