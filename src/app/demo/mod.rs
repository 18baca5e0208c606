//! A whole run with neither a model nor an engine: what it looks like, and a test of the set-up
//! that works anywhere.
//!
//! The loop, the pipeline, the policy, the log and the HTTP client are the real ones. The model is
//! a script behind a unix socket ([`script`], [`server`]), the project an example that lives in
//! memory ([`files`]): nothing is read from the disk, nothing is written to it but the session's
//! log, and no command is run anywhere.

mod files;
mod script;
mod server;

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::Error;
use super::Front;
use super::Place;
use super::Report;
use super::exit_code;
use super::host_hook::HostHooks;
use super::quickstart::EXAMPLE;
use super::record::Recorder;
use super::resume::Aim;
use super::rules;
use super::services::HostServices;
use super::sitting::begin;
use super::sitting::first_prompt;
use async_recursion::async_recursion as boxed;
use files::Files;
use podbay_agent::Agent;
use podbay_agent::Profile;
use podbay_agent::gather_context;
use podbay_event::Kind;
use podbay_llm as llm;
use podbay_llm::Client;
use podbay_session::Artifacts;
use podbay_session::ResumeState;
use podbay_tools::Catalogue;
use podbay_tools::Pipeline;
use podbay_tools::ToolSet;
use server::Server;

/// What the log of a demonstration calls its project. No folder is called so, hence no session of a
/// real project is ever taken for one.
pub(super) const PROJECT: &str = "demonstration (in memory)";

/// What is worked on where the user says nothing.
const TASK: &str = "Add a command that removes a note by its number.";

const WHAT_IT_IS: &str = "this is a demonstration: a script stands in for the model and does the same whatever the task, the files are in \
                          memory, no command is run, and no file of your project is touched";

/// How long the script may take to say what it is; it is in this process.
const PROBE: Duration = Duration::from_secs(10);

/// Shows a run and reports on it like on any other. Its time counts from `begun`.
#[boxed]
pub async fn demo(place: &Place, task: Option<&str>, front: &Front, begun: Instant) -> Report {
    let elapsed = || u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let task = task.filter(|task| !task.trim().is_empty()).unwrap_or(TASK);
    let recorder = match begin(place, PROJECT.to_owned(), Aim::Task(task), &front.sink) {
        Ok(recorder) => recorder,
        Err(error) => return Report::failed(&error, None, elapsed()),
    };
    recorder.warn(WHAT_IT_IS);
    let mut report = match show(place, task, front, &recorder, begun).await {
        Ok(report) => report,
        Err(error) => Report::failed(&error, Some(recorder.session().clone()), elapsed()),
    };
    report.exit_code = exit_code::after(&front.interrupt, report.exit_code);
    report.duration_ms = elapsed();
    if let Some(changed) = report.changes_event() {
        recorder.emit(changed);
    }
    recorder.emit(report.event());
    if let Some(problem) = recorder.unwritten() {
        report.fail(&Error::LogLost { problem });
    }
    report
}

async fn show(
    place: &Place,
    task: &str,
    front: &Front,
    recorder: &Recorder,
    begun: Instant,
) -> Result<Report, Error> {
    let config = &place.config;
    let cancel = front.interrupt.run();
    let policy = rules::policy(place.mode, &config.policy, |message| {
        (front.sink)(Kind::Warning { message }.into());
    })?;
    let server = Server::start().map_err(|source| Error::Io {
        doing: "let the script of the demonstration listen".to_owned(),
        source,
    })?;
    // The user's own settings are about models that exist. A script costs nothing, so that a
    // bound on the cost holds.
    let options = llm::Options {
        price: llm::Price::FREE,
        ..llm::Options::default()
    };
    let client = Client::new(server.endpoint(), None, options).map_err(Error::Model)?;
    let probed = client.probe(cancel, PROBE).await.map_err(Error::Model)?;
    let mut tools = config.tools.clone();
    tools.set = ToolSet::Small;
    let catalogue = Catalogue::new(&tools);
    let (prompt, begins) = first_prompt(
        &catalogue,
        &probed,
        &ResumeState::default(),
        Profile::Standard,
    );
    let files = Files::new(&EXAMPLE);
    recorder.emit(Kind::SandboxStarted {
        image: "none, files in memory".to_owned(),
        duration_ms: 0,
        hidden: Vec::new(),
        tracked: Vec::new(),
    });
    recorder.emit(Kind::ModelReady {
        model: probed.model.clone(),
        context: probed.context,
        tools: probed.tools,
        reason: probed.reason.clone(),
    });
    if let Some(begins) = begins {
        recorder.emit(begins);
    }
    let artifacts = Artifacts::new(&place.state, recorder.session(), &config.session);
    let parallel = tools.parallel as usize;
    let pipeline = Pipeline::new(
        catalogue,
        policy,
        Arc::new(files),
        Arc::new(HostServices::new(
            artifacts,
            recorder.sink(),
            HostHooks::of(place),
            None,
            None,
            None,
        )),
        Arc::clone(&front.asker),
        recorder.sink(),
        tools,
    );
    pipeline.set_window(probed.context);
    let mut agent = Agent::new(
        client,
        prompt,
        Arc::new(pipeline),
        parallel,
        config.agent.clone(),
        recorder.sink(),
    );
    if let Some(context) = gather_context(agent.pipeline(), &config.agent, probed.context, cancel)
        .await
        .map_err(Error::Sandbox)?
    {
        agent.add_context(&context);
    }
    let mut outcome = agent.run_since(begun, Some(task), &front.interrupt).await;
    let error = outcome.failure.take().map(Error::Agent);
    Ok(Report::of(
        outcome,
        error.as_ref(),
        probed.model,
        recorder.session().clone(),
        recorder.warnings(),
        0,
    ))
}
