//! A running sandbox with the whole pipeline in front of it.

use std::path::Path;
use std::sync::Arc;

use podbay::engine;
use podbay::engine::Engine;
use podbay::engine::Labels;
use podbay::engine::Owner;
use podbay::engine::Provision;
use podbay::engine::Role;
use podbay::event::CallStatus;
use podbay::event::InstanceId;
use podbay::event::ProgressSink;
use podbay::event::SessionId;
use podbay::event::Sink;
use podbay::event::ToolCall;
use podbay::policy;
use podbay::policy::Mode;
use podbay::policy::Policy;
use podbay::sandbox;
use podbay::sandbox::Project;
use podbay::sandbox::Sandbox;
use podbay::sandbox::Spec;
use podbay::tools;
use podbay::tools::Catalogue;
use podbay::tools::Pipeline;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::alone::Alone;
use super::place::Place;

/// A running sandbox with the whole pipeline in front of it.
pub(super) struct Warm {
    pub(super) sandbox: Sandbox,
    pipeline: Pipeline,
    pub(super) container: String,
    /// Version of the control groups that the guest found.
    pub(super) cgroup: u8,
}

/// What keeps something of the project beside the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Session<'a> {
    /// A single call: there is nothing to be kept.
    None,
    /// Turns are kept, so that they can be undone.
    Live(&'a SessionId),
    /// Changes are pending.
    HeldBack(&'a SessionId),
    /// Changes go into the project at the end of each turn.
    ByTurn(&'a SessionId),
}

impl Warm {
    pub(super) async fn start(place: &Place, project: &Path) -> Outcome<Self> {
        Self::start_as(place, project, Session::None).await
    }

    /// Starts the sandbox of a session, and waits for what must be kept before anything is changed.
    pub(super) async fn start_as(
        place: &Place,
        project: &Path,
        session: Session<'_>,
    ) -> Outcome<Self> {
        let cancel = CancellationToken::new();
        let options = engine::Options::default();
        let engine = Engine::connect(&options, &cancel).await?;
        let progress: ProgressSink = Arc::new(|step| eprintln!("{}: {}", step.task, step.detail));
        let records = place.state.join("records");
        std::fs::create_dir_all(&records)?;
        let image = Provision::new(&engine, &options, false, &records, &progress)
            .ensure(sandbox::DEFAULT_IMAGE, &cancel)
            .await?;
        let project = Project::open(project, None, &place.state)?;
        let box_options = sandbox::Options::default();
        let spec = Spec::new(
            &project,
            &image,
            engine.facts(&cancel).await?,
            &box_options,
            &sandbox::guest_volume_name(),
        )?;
        let spec = spec.covering_as_before(&records, &box_options.auto_run);
        let (spec, id) = match session {
            Session::None => (spec, None),
            Session::Live(id) => (spec, Some(id)),
            Session::HeldBack(id) | Session::ByTurn(id) => {
                let by_turn = matches!(session, Session::ByTurn(_));
                let held =
                    sandbox::hold_back(&engine, &spec, &box_options, id, by_turn, &cancel).await?;
                (held, Some(id))
            }
        };
        let labels = Labels {
            instance: Some(InstanceId::random()),
            owner: Some(Owner::current()),
            session: id.cloned(),
            ..Labels::new(Role::Workspace)
        };
        let sink: Sink = Arc::new(|_event| {});
        let (sandbox, _started) = Sandbox::start(
            &engine,
            &spec,
            &box_options,
            labels,
            &records,
            Arc::clone(&sink),
            &cancel,
        )
        .await?;
        match session {
            Session::None => {}
            Session::Live(id) => sandbox.begin_turn(id.as_str(), 1, "bench"),
            Session::HeldBack(_) => sandbox.begin_review("bench", true, &cancel),
            Session::ByTurn(_) => sandbox.begin_view("bench"),
        }
        let (container, guest) = sandbox.describe().await.ok_or("the sandbox has ended")?;
        let container = container.ok_or("a sandbox of ours has a container")?;
        let tool_options = tools::Options::default();
        let pipeline = Pipeline::new(
            Catalogue::new(&tool_options),
            Policy::new(Mode::Auto, &policy::Options::default())?,
            Arc::new(sandbox.clone()),
            Arc::new(Alone),
            Arc::new(Alone),
            sink,
            tool_options,
        );
        Ok(Self {
            sandbox,
            pipeline,
            container,
            cgroup: guest.cgroup,
        })
    }

    /// Carries a call out and returns what a model would read.
    pub(super) async fn call(&self, call: &ToolCall) -> Outcome<String> {
        let finished = self.pipeline.run(call, &CancellationToken::new()).await?;
        if finished.status == CallStatus::Ok {
            Ok(finished.text)
        } else {
            Err(format!("{}: {}", call.name, finished.text).into())
        }
    }
}
