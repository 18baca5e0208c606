//! Runs the hooks of each moment, and records the results.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Hook;
use super::HookPlace;
use super::WAITING;
use super::outcome::HookEnd;
use super::outcome::HookRun;
use super::outcome::HookVerdict;
use super::payload::HookPayload;
use super::payload::short;
use super::placeholder;
use crate::Options;
use crate::Pipeline;
use crate::PipelineError;
use crate::Services;
use crate::Workspace;
use crate::dispatch::dispatch_hook;
use crate::program_events;
use crate::screen::shown;
use podbay_event::CallStatus;
use podbay_event::HookOutcome;
use podbay_event::Kind;
use podbay_event::Moment;
use podbay_event::Sink;
use podbay_event::ToolCall;
use podbay_policy::Action;
use podbay_policy::Approved;
use podbay_policy::HostCall;
use podbay_policy::Verdict;
use podbay_wire as wire;
use podbay_wire::Call;
use podbay_wire::ExecGate;
use podbay_wire::Output;
use podbay_wire::message::Stream;

/// How much of each stream of a hook is kept, in bytes.
const KEPT: usize = 64 * 1024;

/// Why a call, message or task does not continue.
#[derive(Debug)]
pub enum HookStop {
    /// A hook blocks it, for this reason.
    Blocked(String),
    Cancelled,
    Sandbox(PipelineError),
}

/// What is needed to run one hook, also in the background.
#[derive(Clone)]
struct HookContext {
    workspace: Arc<dyn Workspace>,
    services: Arc<dyn Services>,
    options: Options,
    sink: Sink,
}

/// A hook that the policy allowed.
struct ApprovedHook {
    /// The command as in the settings.
    run: String,
    call: Option<String>,
    moment: Moment,
    action: Approved<Action>,
}

impl Pipeline {
    /// Runs the hooks of a session's start; returns their output for the model.
    #[boxed]
    pub async fn session_begins(&self, cancel: &CancellationToken) -> Result<String, HookStop> {
        self.tell(
            &HookPayload::new(Moment::SessionStart, self.hooks.session.as_ref()),
            cancel,
        )
        .await
    }

    /// Runs the hooks of a user's message; returns their output for the model.
    #[boxed]
    pub async fn prompted(
        &self,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<String, HookStop> {
        self.tell(
            &HookPayload {
                prompt: Some(text),
                ..HookPayload::new(Moment::UserPrompt, self.hooks.session.as_ref())
            },
            cancel,
        )
        .await
    }

    /// Runs the hooks before the conversation is compacted.
    #[boxed]
    pub async fn compacts(&self, cancel: &CancellationToken) -> Result<(), HookStop> {
        self.tell(
            &HookPayload::new(Moment::PreCompact, self.hooks.session.as_ref()),
            cancel,
        )
        .await
        .map(drop)
    }

    /// Runs the hooks after a task ended.
    #[boxed]
    pub async fn stopped(&self, status: &str, cancel: &CancellationToken) -> Result<(), HookStop> {
        self.tell(
            &HookPayload {
                status: Some(status),
                ..HookPayload::new(Moment::Stop, self.hooks.session.as_ref())
            },
            cancel,
        )
        .await
        .map(drop)
    }

    /// Runs the hooks before a call that was allowed.
    pub(crate) async fn before_call(
        &self,
        call: &ToolCall,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<(), HookStop> {
        let Some(input) = self.input_for(Moment::PreToolUse, call) else {
            return Ok(());
        };
        let told = HookPayload {
            call: Some(&call.id),
            tool_name: Some(name),
            tool_input: Some(&input),
            ..HookPayload::new(Moment::PreToolUse, self.hooks.session.as_ref())
        };
        self.tell(&told, cancel).await.map(drop)
    }

    /// Queues the hooks after a call; they run in the background, one after another.
    pub(crate) async fn after_call(
        &self,
        call: &ToolCall,
        name: &str,
        status: CallStatus,
        result: &str,
    ) {
        let Some(input) = self.input_for(Moment::PostToolUse, call) else {
            return;
        };
        let told = HookPayload {
            call: Some(&call.id),
            tool_name: Some(name),
            tool_input: Some(&input),
            tool_status: Some(status),
            tool_result: Some(short(result)),
            ..HookPayload::new(Moment::PostToolUse, self.hooks.session.as_ref())
        };
        let gate = self.workspace.exec_gate().await;
        let mut behind = self
            .hooks
            .behind
            .lock()
            .expect("nothing panics while it holds this lock");
        while behind.try_join_next().is_some() {}
        for hook in self
            .hooks
            .of(Moment::PostToolUse)
            .iter()
            .filter(|hook| told.is_for(hook))
        {
            let ready = match self.ready(hook, &told, gate) {
                Ok(ready) => ready,
                Err(reason) => {
                    self.not_run(hook, &told, &reason);
                    continue;
                }
            };
            if behind.len() >= WAITING {
                self.not_run(
                    hook,
                    &told,
                    "too many hooks of earlier calls are still running",
                );
                continue;
            }
            let (context, turn) = (self.context(), Arc::clone(&self.hooks.turn));
            let (options, end) = (self.hooks.options.clone(), self.hooks.end.clone());
            behind.spawn(async move {
                let Ok(_turn) = turn.acquire_owned().await else {
                    return;
                };
                let (run, call) = (ready.run.clone(), ready.call.clone());
                let begun = Instant::now();
                match context.run(ready, &end).await {
                    Ok(ran) => {
                        let verdict = ran.verdict(&run, &options, false);
                        context.record(
                            Moment::PostToolUse,
                            call,
                            &run,
                            &verdict,
                            &ran.said(),
                            begun.elapsed(),
                        );
                    }
                    // The next call reports it.
                    Err(error) => {
                        tracing::debug!(error = %error, "the sandbox was lost while a hook ran");
                    }
                }
            });
        }
    }

    /// Waits for background hooks before the sandbox ends, all together no longer than one of them
    /// may take, since their times could add up to any length. Those left are cancelled with a
    /// warning, also when `cancel` fires.
    #[boxed]
    pub async fn settle(&self, cancel: &CancellationToken) {
        let mut behind = std::mem::take(
            &mut *self
                .hooks
                .behind
                .lock()
                .expect("nothing panics while it holds this lock"),
        );
        let all = async { while behind.join_next().await.is_some() {} };
        let ended = tokio::time::timeout(
            self.hooks.longest(Moment::PostToolUse),
            cancel.clone().run_until_cancelled_owned(all),
        )
        .await;
        self.hooks.end.cancel();
        if ended.is_err() {
            let message = format!(
                "post_tool_use hooks took too long and are stopped: {}",
                behind.len()
            );
            (self.sink)(Kind::Warning { message }.into());
        }
        while behind.join_next().await.is_some() {}
    }

    /// Returns the normalized arguments, if a hook may need them.
    fn input_for(&self, moment: Moment, call: &ToolCall) -> Option<Value> {
        if self.hooks.of(moment).is_empty() {
            return None;
        }
        Some(
            self.catalogue
                .input(&call.name, &call.arguments)
                .unwrap_or_else(|| Value::String(call.arguments.clone())),
        )
    }

    async fn tell(
        &self,
        told: &HookPayload<'_>,
        cancel: &CancellationToken,
    ) -> Result<String, HookStop> {
        let may_block = matches!(told.event, Moment::UserPrompt | Moment::PreToolUse);
        let mut words = String::new();
        if self.hooks.of(told.event).is_empty() {
            return Ok(words);
        }
        let gate = self.workspace.exec_gate().await;
        for hook in self
            .hooks
            .of(told.event)
            .iter()
            .filter(|hook| told.is_for(hook))
        {
            let begun = Instant::now();
            let ran = match self.ready(hook, told, gate) {
                Ok(ready) => self
                    .context()
                    .run(ready, cancel)
                    .await
                    .map_err(|error| HookStop::Sandbox(PipelineError::Sandbox(error)))?,
                Err(reason) => HookRun {
                    end: HookEnd::NotRun(reason),
                    stdout: Vec::new(),
                    stderr: Vec::new(),
                },
            };
            let verdict = ran.verdict(&hook.run, &self.hooks.options, may_block);
            self.context().record(
                told.event,
                told.call.map(ToOwned::to_owned),
                &hook.run,
                &verdict,
                &ran.said(),
                begun.elapsed(),
            );
            match verdict {
                HookVerdict::Pass => words.push_str(short(&shown(&ran.stdout).text)),
                HookVerdict::Fail(_) => {}
                HookVerdict::Block(reason) => return Err(HookStop::Blocked(reason)),
                HookVerdict::Cancelled => return Err(HookStop::Cancelled),
            }
        }
        Ok(words.trim().to_owned())
    }

    /// Judges a hook; the error says why it may not run.
    fn ready(
        &self,
        hook: &Hook,
        told: &HookPayload<'_>,
        gate: ExecGate,
    ) -> Result<ApprovedHook, String> {
        let timeout = hook.timeout.unwrap_or(self.hooks.options.timeout);
        let call = wire::Hook {
            command: placeholder::fill(&hook.run)?,
            input: told.json(),
            environment: told.environment(&hook.run),
            timeout_ms: timeout.get().saturating_mul(1000),
            grace_ms: self.options.bash_grace.get().saturating_mul(1000),
            output_bytes: 2 * KEPT as u64,
            rules: Vec::new(),
        };
        let action = match hook.place {
            HookPlace::Sandbox => Action::Box(Call::Hook(call)),
            HookPlace::Host => Action::Host(HostCall::Hook(call)),
        };
        let verdict = {
            let mut policy = self
                .policy
                .lock()
                .expect("nothing panics while it holds this lock");
            policy.set_exec_gate(gate);
            policy.judge_hook(action)
        };
        match verdict {
            Verdict::Allow { action, .. } => Ok(ApprovedHook {
                run: hook.run.clone(),
                call: told.call.map(ToOwned::to_owned),
                moment: told.event,
                action,
            }),
            Verdict::Deny { reason, .. } => Err(reason),
            Verdict::Ask(_) => Err("a hook cannot ask for permission".to_owned()),
        }
    }

    fn not_run(&self, hook: &Hook, told: &HookPayload<'_>, reason: &str) {
        let verdict = HookVerdict::Fail(format!("it could not be run: {reason}"));
        self.context().record(
            told.event,
            told.call.map(ToOwned::to_owned),
            &hook.run,
            &verdict,
            "",
            Duration::ZERO,
        );
    }

    fn context(&self) -> HookContext {
        HookContext {
            workspace: Arc::clone(&self.workspace),
            services: Arc::clone(&self.services),
            options: self.options.clone(),
            sink: Arc::clone(&self.sink),
        }
    }
}

impl HookContext {
    async fn run(
        &self,
        ready: ApprovedHook,
        cancel: &CancellationToken,
    ) -> Result<HookRun, podbay_sandbox::Error> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let keep = |stream: Stream, bytes: &[u8]| {
            let kept: &mut Vec<u8> = if stream == Stream::Stderr {
                &mut stderr
            } else {
                &mut stdout
            };
            // The guest is not trusted to keep its bound.
            let room = KEPT.saturating_sub(kept.len());
            kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        };
        tracing::debug!(moment = ready.moment.as_str(), call = ?ready.call, run = ready.run, "a hook runs");
        let output = dispatch_hook(
            ready.action,
            &*self.workspace,
            &*self.services,
            &self.options,
            keep,
            cancel,
        )
        .await?;
        if let Output::Command(ended) = &output {
            program_events::tell_of_hook(&self.sink, ready.call.as_deref(), &ready.run, ended);
        }
        Ok(HookRun {
            end: HookEnd::of(&output),
            stdout,
            stderr,
        })
    }

    fn record(
        &self,
        moment: Moment,
        call: Option<String>,
        run: &str,
        verdict: &HookVerdict,
        said: &str,
        took: Duration,
    ) {
        let (outcome, why) = match verdict {
            HookVerdict::Pass => (HookOutcome::Passed, None),
            HookVerdict::Block(_) => (HookOutcome::Blocked, None),
            HookVerdict::Fail(why) => (HookOutcome::Failed, Some(why)),
            HookVerdict::Cancelled => (HookOutcome::Cancelled, None),
        };
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        (self.sink)(
            Kind::HookEnded {
                moment,
                call,
                run: run.to_owned(),
                outcome,
                said: said.to_owned(),
                duration_ms,
            }
            .into(),
        );
        if let Some(why) = why {
            let message = format!(
                "the hook `{run}` ({}) failed, which blocks nothing: {why}",
                moment.as_str()
            );
            (self.sink)(Kind::Warning { message }.into());
        }
    }
}
