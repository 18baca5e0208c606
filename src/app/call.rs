use std::sync::Arc;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Asker;
use super::Error;
use super::Front;
use super::Place;
use super::bench::Bench;
use super::bench::Ground;
use super::exit_code;
use super::host_hook::HostHooks;
use super::rules;
use super::services::run_apart;
use super::shell::LAST_WORDS;
use super::throwaway::ThrowawayRunner;
use podbay_event::CallStatus;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_event::Sink;
use podbay_event::ToolCall;
use podbay_policy::SandboxRun;
use podbay_sandbox::Lock;
use podbay_sandbox::Sandbox;
use podbay_sandbox::Spec;
use podbay_session::CommandRecord;
use podbay_tools::Catalogue;
use podbay_tools::KeptLines;
use podbay_tools::Later;
use podbay_tools::OnChunk;
use podbay_tools::Pipeline;
use podbay_tools::PipelineError;
use podbay_tools::Services;
use podbay_wire as wire;
use podbay_wire::Output;

/// What came of one call without a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// What a model would read.
    pub text: String,
    pub exit_code: u8,
}

/// Executes one tool call through the whole pipeline, without a model and without a session.
#[boxed]
pub async fn call(
    place: &Place,
    tool: &str,
    arguments: &str,
    front: &Front,
) -> Result<Called, Error> {
    let cancel = front.interrupt.run();
    let warn = |message| (front.sink)(Kind::Warning { message }.into());
    let mut policy = rules::policy(place.mode, &place.config.policy, warn)?;
    let mut catalogue = Catalogue::new(&place.config.tools);
    if place.config.offline {
        catalogue = catalogue.offline();
    }
    let starts = catalogue.find(tool).map_or("", |tool| tool.name);
    let is_command = ["bash", "start_background_process"].contains(&starts);
    let is_left_running =
        starts == "start_background_process" || starts == "bash" && wants_background(arguments);
    let ground = Ground::open(place)?;
    rules::recall(&mut policy, ground.answers(&place.state).as_ref(), warn);
    let bench = Bench::reach(&place.config, &place.state, ground, cancel).await?;
    bench.sweep_aside();
    let Taken { sandbox, lock, .. } = take(&bench, front).await?;
    if is_command {
        match bench.gate_lack(sandbox.exec_gate().await) {
            Ok(unseen) => unseen.into_iter().for_each(warn),
            Err(error) => {
                sandbox.close_session().await;
                return Err(error);
            }
        }
    }
    let pipeline = Pipeline::new(
        catalogue,
        policy,
        Arc::new(sandbox.clone()),
        Arc::new(CallServices {
            hooks: HostHooks::of(place),
            throwaway: ThrowawayRunner::of(&bench, &sandbox, &progress_sink(front)),
        }),
        Arc::clone(&front.asker) as Arc<dyn Asker>,
        Arc::clone(&front.sink),
        place.config.tools.clone(),
    );
    let pipeline = pipeline.with_hooks(rules::hooks(&place.config.hooks, warn), None);
    // Nobody's window is at stake: the tool's own limits are the only ones.
    pipeline.set_window(Some(u64::from(u32::MAX)));
    let mut record = CommandRecord::begin(
        &place.state,
        &place.config.session,
        "call",
        bench.ground_text(),
        &format!("{tool} {arguments}"),
    );
    let call = ToolCall {
        id: "call".to_owned(),
        name: tool.to_owned(),
        arguments: arguments.to_owned(),
    };
    let step = front.interrupt.step();
    let outcome = pipeline.run(&call, &step).await;
    pipeline.settle(&step).await;
    sandbox.has_told(LAST_WORDS).await;
    sandbox.close_session().await;
    if let Some(lock) = lock {
        lock.release();
    }
    let finished = outcome
        .map_err(|PipelineError::Sandbox(error)| Error::Sandbox(error))
        .inspect_err(|error| record.end(error.exit_code()))?;
    let exit_code = match finished.status {
        CallStatus::Ok => exit_code::DONE,
        CallStatus::Failed | CallStatus::Conflict | CallStatus::TimedOut | CallStatus::Invalid => {
            exit_code::FAILED
        }
        CallStatus::Denied => exit_code::BLOCKED,
        CallStatus::Cancelled => exit_code::INTERRUPTED,
    };
    record.end(exit_code);
    let mut text = finished.text;
    if is_left_running && finished.status == CallStatus::Ok {
        // Also in the sandbox of `podbay up`: what a call starts belongs to whoever made it, and that
        // is over.
        text.push_str("\n[a single call has no background: what it left running has ended with it; `podbay sh` stays as long as you do]");
    }
    Ok(Called { text, exit_code })
}

/// Returns whether the arguments ask for a command that continues after the call, in whichever form a
/// tool takes that.
fn wants_background(arguments: &str) -> bool {
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let wish = &arguments["background"];
    wish.as_bool().unwrap_or_else(|| {
        wish.as_str()
            .is_some_and(|text| text.eq_ignore_ascii_case("true"))
    })
}

/// A sandbox for one use.
pub(super) struct Taken {
    pub(super) sandbox: Sandbox,
    pub(super) lock: Option<Lock>,
    /// It is that of `podbay up`.
    pub(super) is_joined: bool,
}

/// Gets a sandbox for one use: that of `podbay up`, which others use as well, or one of its own under
/// the project's lock.
pub(super) async fn take(bench: &Bench, front: &Front) -> Result<Taken, Error> {
    let taken = Box::pin(take_one(bench, front)).await;
    bench.tell_left(&sink_of(front));
    taken
}

async fn take_one(bench: &Bench, front: &Front) -> Result<Taken, Error> {
    let cancel = front.interrupt.run();
    let progress = progress_sink(front);
    let (sandbox, started, lock) = if bench.socket().is_some() {
        // A sandbox that Podbay did not start is shared like that of `podbay up`.
        let lock = match bench.lock() {
            Ok(lock) => Some(lock),
            Err(Error::Sandbox(podbay_sandbox::Error::BusySocket { .. })) => None,
            Err(error) => return Err(error),
        };
        let (sandbox, started) = bench.start(&progress, None, sink_of(front), cancel).await?;
        (sandbox, started, lock)
    } else {
        let spec = bench.spec(&progress, cancel).await?;
        let lock = match bench.lock() {
            Ok(lock) => Some(lock),
            Err(busy) if is_up(bench, &spec, front).await => {
                tracing::debug!(%busy, "joining the environment beside it");
                None
            }
            Err(busy) => return Err(busy),
        };
        let (sandbox, started) = bench.sandbox(&spec, None, sink_of(front), cancel).await?;
        (sandbox, started, lock)
    };
    sandbox.hurry_at(front.interrupt.haste());
    for message in started.warnings {
        (front.sink)(Kind::Warning { message }.into());
    }
    let is_joined = started.joined && bench.socket().is_none();
    Ok(Taken {
        sandbox,
        // A command that stays must not keep a session from the project.
        lock: lock.filter(|_| !is_joined),
        is_joined,
    })
}

fn progress_sink(front: &Front) -> ProgressSink {
    let sink = Arc::clone(&front.sink);
    Arc::new(move |step| sink(Kind::Progress(step).into()))
}

fn sink_of(front: &Front) -> Sink {
    Arc::clone(&front.sink)
}

async fn is_up(bench: &Bench, spec: &Spec, front: &Front) -> bool {
    let (Ok(engine), Ok(project)) = (bench.engine(), bench.project()) else {
        return false;
    };
    let state = podbay_sandbox::Environment::state(engine, project, front.interrupt.run()).await;
    matches!(state, Ok(Some(state)) if state.is_joined_for(spec))
}

/// One call has no session that artifacts could belong to.
struct CallServices {
    hooks: HostHooks,
    /// `None`: the sandbox is one that Podbay did not start.
    throwaway: Option<ThrowawayRunner>,
}

impl Services for CallServices {
    fn store_artifact(&self, _call: &str, _bytes: &[u8]) -> Option<String> {
        None
    }

    fn read_artifact(&self, id: &str, _offset: u64, _limit: u64) -> Result<KeptLines, String> {
        Err(format!(
            "artifact {id} belongs to a session; a single call has none"
        ))
    }

    fn run_hook<'a>(
        &'a self,
        hook: wire::Hook,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Output> {
        Box::pin(self.hooks.run(hook, on_chunk, cancel))
    }

    fn run_apart<'a>(
        &'a self,
        run: SandboxRun,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Output> {
        run_apart(self.throwaway.as_ref(), run, on_chunk, cancel)
    }
}
