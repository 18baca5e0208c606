//! A conversation begins: project, sandbox and model, side by side.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::Front;
use super::Place;
use super::PlanStart;
use super::agents;
use super::agents::SharedSibling;
use super::agents::SpawnerParts;
use super::bench::Bench;
use super::bench::Ground;
use super::bench::progress_of;
use super::host_hook::HostHooks;
use super::mcp;
use super::mcp::session::BegunServers;
use super::mcp::session::NamedServers;
use super::model;
use super::own_server::OwnServer;
use super::record::Recorder;
use super::resume;
use super::resume::Aim;
use super::rules;
use super::seat::Seat;
use super::services::HostServices;
use super::session_install::SessionInstaller;
use super::skills::Skills;
use super::throwaway;
use super::throwaway::ThrowawayRunner;
use podbay_agent::Agent;
use podbay_agent::Conversation;
use podbay_agent::Ledger;
use podbay_agent::Profile;
use podbay_agent::gather_context;
use podbay_agent::system_prompt;
use podbay_config::Config;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::Plan;
use podbay_event::PlanDecision;
use podbay_event::SessionId;
use podbay_event::Sink;
use podbay_event::ToolMode;
use podbay_event::ToolTold;
use podbay_llm::ProbeResult;
use podbay_llm::Prompt;
use podbay_llm::TaskKind;
use podbay_llm::ToolModeChoice;
use podbay_llm::ToolSpec;
use podbay_sandbox::Changes;
use podbay_sandbox::Lock;
use podbay_sandbox::Project;
use podbay_search::Searcher;
use podbay_session::Artifacts;
use podbay_session::ResumeState;
use podbay_tools::Catalogue;
use podbay_tools::Pipeline;

/// Said once, where it begins: from then on the requests of the run itself are among those that a
/// server has.
const BUSY: &str = "all slots of the model server are busy: the request waits for one";

/// Said at the start of every session in a sandbox that Podbay did not start; `docs/security.md` has the
/// whole list.
const NOT_WITH_ATTACH: &str = "attached to a sandbox that Podbay did not start: changes are live, also those of a chat, and review, masked secrets, plan mode, \
                               throw-away sandboxes (sandbox_run) and an allow-list for the network are not offered here";

/// Sits down within the time of the task, which runs from `begun`; what is under way when it is
/// over is cancelled and cleaned up.
pub(super) async fn sit_down_in_time(
    place: &Place,
    aim: Aim<'_>,
    front: &Front,
    begun: Instant,
    session: &mut Option<SessionId>,
) -> Result<Seat, (Error, Option<Recorder>)> {
    let cancel = front.interrupt.run().child_token();
    let mut sitting = Box::pin(sit_down(place, aim, None, front, &cancel, session));
    let seconds = place.config.agent.timeout.get();
    if seconds == 0 {
        return sitting.await;
    }
    let left = Duration::from_secs(seconds).saturating_sub(begun.elapsed());
    if let Ok(seated) = tokio::time::timeout(left, &mut sitting).await {
        return seated;
    }
    cancel.cancel();
    match sitting.await {
        // Whatever it stumbled over, the time was what made it stumble; a user who left in the
        // meantime comes first.
        Err((_, recorder)) if !front.interrupt.is_ended() => {
            if let Some(recorder) = &recorder {
                recorder.emit(Kind::LimitReached {
                    limit: LimitKind::Time,
                    at_end: true,
                });
            }
            Err((Error::Late { seconds }, recorder))
        }
        seated => seated,
    }
}

/// Opens the project, starts sandbox and model side by side, and prepares the conversation. `cancel`
/// ends that, and only that.
pub(super) async fn sit_down(
    place: &Place,
    aim: Aim<'_>,
    only: Option<&[&str]>,
    front: &Front,
    cancel: &CancellationToken,
    session: &mut Option<SessionId>,
) -> Result<Seat, (Error, Option<Recorder>)> {
    let kind = match aim {
        Aim::Chat => TaskKind::Chat,
        Aim::Task(_) | Aim::Open => TaskKind::Edit,
    };
    let config = &Config {
        llm: place.config.llm.for_task(kind),
        ..place.config.clone()
    };
    if place.plan == PlanStart::On && super::is_attached(config) {
        return Err((Error::not_attached("plan mode (--plan)"), None));
    }
    let is_held = config.sandbox.changes != Changes::Live && !super::is_attached(config);
    let (is_reviewed, is_by_turn) = (
        is_held && kind == TaskKind::Edit,
        is_held && kind == TaskKind::Chat,
    );
    let warn = |message| (front.sink)(Kind::Warning { message }.into());
    let mut policy =
        rules::policy(place.mode, &config.policy, warn).map_err(|error| (error, None))?;
    model::check_endpoint(config, place.api_key.as_ref()).map_err(|error| (error, None))?;
    let profile = if policy.is_architect() {
        Profile::Architect
    } else {
        Profile::Standard
    };
    let ground = Ground::open(place).map_err(|error| (error, None))?;
    let answers = ground.answers(&place.state);
    let memories = config.memory.enabled.then(|| ground.memories(&place.state));
    rules::recall(&mut policy, answers.as_ref(), warn);
    // What is pending is in nobody's way.
    let mut lock = if is_reviewed {
        None
    } else {
        Some(ground.lock(&place.state).map_err(|error| (error, None))?)
    };
    // Looked for before this session's own log is there.
    let broken_off = if place.resume.is_none() {
        resume::broken_off(&place.state, &ground.text())
    } else {
        None
    };
    let (recorder, mut past) = match &place.resume {
        Some(wanted) => resume::open(place, &ground.text(), wanted, aim, &front.sink),
        None => begin(place, ground.text(), aim, &front.sink)
            .map(|recorder| (recorder, ResumeState::default())),
    }
    .map_err(|error| (error, None))?;
    *session = Some(recorder.session().clone());
    let is_planning = match place.plan {
        PlanStart::On => true,
        PlanStart::AsLeft => past.planning,
        PlanStart::Implement => false,
    };
    if let Some(broken_off) = broken_off {
        recorder.warn(format!("the last session here, {broken_off}, was interrupted; `--resume {broken_off}` resumes it"));
    }
    let failed = |error| (error, Some(recorder.clone()));
    let mut review_lock = None;
    if is_by_turn {
        let name = recorder.session().as_str();
        review_lock = Some(
            Lock::take_review(&place.state.locks(), name)
                .map_err(|error| failed(Error::Sandbox(error)))?,
        );
    }
    if is_reviewed {
        let name = recorder.session().as_str();
        lock = Some(
            Lock::take_review(&place.state.locks(), name)
                .map_err(|error| failed(Error::Sandbox(error)))?,
        );
    }
    let (named_servers, warnings) = if only.is_some() {
        (NamedServers::default(), Vec::new())
    } else {
        mcp::session::name(config, ground.project(), place.mode, &place.state)
    };
    for warning in warnings {
        recorder.warn(warning);
    }
    let progress = progress_of(&recorder);
    let mut bench = Bench::open(config, &place.state, ground, cancel)
        .await
        .map_err(failed)?;
    if kind == TaskKind::Chat && front.asker.can_answer() {
        bench.let_grant();
    }
    if is_planning {
        bench.begin_read_only();
    }
    model::check(&bench).map_err(failed)?;
    bench.sweep_aside();
    // Neither needs the other, and each takes its time. Only the tools of servers, which run in the
    // sandbox, are waited for before the first prompt is made.
    let (tell_tools, tools_told) = tokio::sync::oneshot::channel();
    let make_box = async {
        if is_reviewed || is_by_turn {
            let words = aim
                .task()
                .unwrap_or(if is_by_turn { "a chat" } else { "(continues)" });
            Box::pin(bench.start_reviewed(
                &progress,
                recorder.session(),
                words,
                is_by_turn,
                recorder.sink(),
                cancel,
            ))
            .await
        } else {
            Box::pin(bench.start(&progress, Some(recorder.session()), recorder.sink(), cancel))
                .await
        }
    };
    let mut catalogue = Catalogue::new(&config.tools);
    if memories.is_none() {
        catalogue = catalogue.without_memory();
    }
    let may_spawn = config.agents.enabled && only.is_none();
    let mut agent_types = Vec::new();
    if may_spawn {
        let project = bench.project().ok().map(Project::path);
        let user = agents::user_folder();
        let (types, warnings) = agents::list_agents(config, user.as_deref(), project).into_types();
        for warning in warnings {
            recorder.warn(warning);
        }
        catalogue = catalogue.with_agents(&types);
        agent_types = types;
    } else {
        catalogue = catalogue.without_agents();
    }
    let mut skills = Skills::default();
    if only.is_none() {
        let project = bench.project().ok().map(Project::path);
        let (read, warnings) = Skills::of(config, project);
        for warning in warnings {
            recorder.warn(warning);
        }
        skills = read;
    }
    let skills = Arc::new(skills);
    catalogue = catalogue.with_skills(&skills.offers());
    if config.offline {
        catalogue = catalogue.offline();
    }
    let variable = |name: &str| std::env::var(name).ok();
    let searcher = Searcher::of(&config.search, variable).unwrap_or_else(|problem| {
        recorder.warn(problem);
        None
    });
    if searcher.is_none() {
        catalogue = catalogue.without_search();
    }
    if let Some(only) = only {
        catalogue = catalogue.only(only);
    }
    // The rules of a session do not change, and so what the model knows of its tools does not
    // either.
    catalogue = catalogue.without(&policy.denied_tools());
    let make_box = async {
        let made = make_box.await;
        let mut begun = BegunServers::default();
        if let Ok((sandbox, _)) = &made
            && !named_servers.are_none()
        {
            sandbox.hurry_at(front.interrupt.haste());
            begun = named_servers
                .begin(
                    config,
                    &place.project,
                    sandbox,
                    &policy,
                    &place.state,
                    cancel,
                )
                .await;
        }
        let _ = tell_tools.send(begun.tools.clone());
        (made, begun)
    };
    let find_model = async {
        let mut found = Box::pin(model::connect(
            &bench,
            place.api_key.clone(),
            &progress,
            cancel,
        ))
        .await?;
        keep_mode(&mut found.probed, &past, config.llm.tool_mode);
        let languages = throwaway::languages(&bench, &progress, cancel);
        let (foreign, languages) = tokio::join!(tools_told, languages);
        let catalogue = catalogue
            .with_languages(&languages)
            .with_foreign(foreign.unwrap_or_default())
            .restoring(&found.probed.tokens);
        let (prompt, begins) = first_prompt(&catalogue, &found.probed, &past, profile);
        let mut history = past.history.clone();
        // Another model may continue the session, and one that sees nothing would be refused
        // every request.
        let n_images = if found.probed.images {
            0
        } else {
            history.take_images_out()
        };
        let prompt = prompt.with_untold(&catalogue.unlisted_tools());
        let prompt = prompt
            .with_dialect(found.client.dialect())
            .with_tokens(&found.probed.tokens);
        let conversation = Conversation::resume(prompt, history);
        let warm_up = config.inference.warm_up.duration();
        if found.own.is_some()
            && !warm_up.is_zero()
            && let Err(error) = found
                .client
                .warm(conversation.prompt(), cancel, warm_up)
                .await
        {
            // It only saves time, and the first request will say what is wrong.
            tracing::debug!(%error, "the model could not read ahead");
        }
        Ok::<_, Error>((found, catalogue, languages, conversation, begins, n_images))
    };
    let ((made, begun), found) = tokio::join!(make_box, find_model);
    bench.tell_left(&recorder.sink());
    let (sandbox, started) = match made {
        Ok(made) => made,
        Err(error) => return Err(failed(error)),
    };
    sandbox.hurry_at(front.interrupt.haste());
    let unseen = match bench.gate_lack(started.facts.exec_gate) {
        Ok(unseen) => unseen,
        Err(error) => {
            sandbox.give_up().await;
            return Err(failed(error));
        }
    };
    let (found, catalogue, languages, conversation, begins, n_images) = match found {
        Ok(found) => found,
        Err(error) => {
            sandbox.give_up().await;
            return Err(failed(error));
        }
    };
    let model::Found {
        client,
        probed,
        notes,
        own,
    } = found;
    let server = own.map(|(server, serving)| OwnServer::keep(server, serving, recorder.sink()));
    let busy = probed.is_full().then(|| BUSY.to_owned());
    for warning in started
        .warnings
        .into_iter()
        .chain(unseen)
        .chain(notes)
        .chain(busy)
        .chain(bench.holes_once(cancel).await)
        .chain(begun.warnings)
    {
        recorder.warn(warning);
    }
    let image = match bench.socket() {
        None => config
            .sandbox
            .image
            .clone()
            .unwrap_or_else(|| podbay_sandbox::DEFAULT_IMAGE.to_owned()),
        Some(socket) => {
            recorder.warn(NOT_WITH_ATTACH);
            socket.path().display().to_string()
        }
    };
    let duration_ms = u64::try_from(started.duration.as_millis()).unwrap_or(u64::MAX);
    recorder.emit(Kind::SandboxStarted {
        image,
        duration_ms,
        hidden: started.hidden,
        tracked: started.tracked,
    });
    recorder.emit(Kind::ModelReady {
        model: probed.model.clone(),
        context: probed.context,
        tools: probed.tools,
        reason: probed.reason.clone(),
    });
    if let Some(begins) = begins {
        // What was counted had other tools.
        past.fullness.counted = None;
        if !past.history.is_empty() {
            recorder.warn(
                "the model reads the whole conversation anew: its tools, or the way they are told, are no longer those of the session",
            );
        }
        recorder.emit(begins);
    }
    if n_images > 0 {
        past.fullness.counted = None;
        recorder.emit(Kind::ImagesTakenOut { blind: false });
        recorder.warn("the images that the model was shown are taken out of the conversation: this one does not see");
    }
    let hooks = rules::hooks(&config.hooks, |message| recorder.warn(message));
    let ledger = Ledger::default();
    let throwaway = ThrowawayRunner::of(&bench, &sandbox, &progress).map(Arc::new);
    let spawner = may_spawn.then(|| {
        Arc::new(SpawnerParts {
            place: place.clone(),
            config: config.clone(),
            project: bench.ground_text(),
            types: agent_types,
            skills: Arc::clone(&skills),
            client: client.clone(),
            probed: probed.clone(),
            foreign: begun.tools.clone(),
            servers: begun.servers.clone(),
            sandbox: sandbox.clone(),
            sibling: SharedSibling::default(),
            languages,
            throwaway: throwaway.clone(),
            answers: answers.clone(),
            denied: policy
                .denied_tools()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            hooks: hooks.clone(),
            asker: Arc::clone(&front.asker),
            interrupt: front.interrupt.clone(),
            ledger: ledger.clone(),
            context: Mutex::default(),
            names: Mutex::default(),
            ended: Mutex::default(),
        })
    });
    let artifacts = Artifacts::new(&place.state, recorder.session(), &config.session);
    let pipeline = Pipeline::new(
        catalogue.restoring(&probed.tokens),
        policy,
        Arc::new(sandbox.clone()),
        Arc::new(
            HostServices::new(
                artifacts,
                recorder.sink(),
                HostHooks::of(place),
                answers,
                begun.servers.clone(),
                memories.clone(),
            )
            .with_skills(&skills)
            .with_agents(
                spawner
                    .as_ref()
                    .map(|spawner| spawner.main(recorder.session().clone(), recorder.sink())),
            )
            .installing(SessionInstaller::of(&bench, &sandbox, recorder.sink()))
            .searching(searcher)
            .running_apart(throwaway),
        ),
        Arc::clone(&front.asker),
        recorder.sink(),
        config.tools.clone(),
    );
    let pipeline = pipeline.with_hooks(hooks, Some(recorder.session().clone()));
    pipeline.set_window(probed.context);
    pipeline.set_images(probed.images);
    pipeline.recall_tasks(&past.tasks);
    pipeline.recall_seen(&past.seen);
    let parallel = config.tools.parallel as usize;
    let agent = Agent::new(
        client,
        conversation,
        Arc::new(pipeline),
        parallel,
        config.agent.clone(),
        recorder.sink(),
    );
    let mut agent = agent.with_past(&past).with_ledger(&ledger);
    // What an earlier run told stays as it was told.
    if past.history.is_empty() {
        match gather_context(agent.pipeline(), &config.agent, probed.context, cancel).await {
            Ok(context) => {
                let mut context = context.unwrap_or_default();
                if let Some(memories) = &memories {
                    let list = memories.list();
                    context.warnings.extend(list.problems);
                    let notes = list.memories.into_iter().map(|stored| stored.memory);
                    context.add_memories(&notes.collect::<Vec<_>>(), probed.context);
                }
                started
                    .mounted_words
                    .iter()
                    .for_each(|fact| context.add_fact(fact));
                agent.add_context(&context);
                if let Some(spawner) = &spawner {
                    spawner.tell(context);
                }
            }
            Err(error) => {
                sandbox.give_up().await;
                return Err(failed(Error::Sandbox(error)));
            }
        }
    }
    let plan = past.plan.take();
    let n_plans = plan.as_ref().map(|plan| plan.version);
    let plan_task = plan
        .as_ref()
        .filter(|_| place.plan == PlanStart::Implement)
        .map(plan_task);
    agent.pipeline().recall_plan(past.planning, plan);
    if plan_task.is_some() {
        agent.pipeline().decide_plan(PlanDecision::Approved, None);
        agent.pipeline().continue_without_plan_mode();
    } else if is_planning && !past.planning {
        let words = agent.pipeline().begin_in_plan_mode();
        agent.add_note(words);
    }
    // A server may call itself what it likes, also what it should keep to itself.
    let model = place.api_key.as_ref().map_or_else(
        || probed.model.clone(),
        |key| key.hide_in(probed.model.clone()),
    );
    let n_turns = past.history.said().len() as u64;
    let is_open = past.is_open() && !past.history.said().is_empty();
    let untold = past.task.filter(|_| matches!(aim, Aim::Open));
    Ok(Seat {
        agent,
        recorder: recorder.clone(),
        model,
        untold,
        plan_task,
        n_plans,
        server,
        is_open,
        sandbox,
        n_turns,
        mounted: started.mounted,
        locks: lock.into_iter().chain(review_lock).collect(),
        mcp: begun.servers,
        learner: memories.filter(|_| config.memory.learn),
        agents: spawner,
    })
}

/// Returns the task that an approved plan is.
pub(super) fn plan_task(plan: &Plan) -> String {
    format!(
        "The user approved this plan, and the project can be changed again. Implement it now, step by step:\n\n{}",
        plan.text
    )
}

/// Begins a new session's log.
pub(super) fn begin(
    place: &Place,
    project: String,
    aim: Aim<'_>,
    watcher: &Sink,
) -> Result<Recorder, Error> {
    let header = Kind::SessionStarted {
        version: podbay_session::VERSION,
        session: SessionId::random(),
        podbay: env!("CARGO_PKG_VERSION").to_owned(),
        project,
        mode: place.mode.as_str().to_owned(),
        task: aim.task().map(ToOwned::to_owned),
    };
    Recorder::begin(
        &place.state,
        &place.config.session,
        header,
        place.api_key.as_ref(),
        Arc::clone(watcher),
    )
}

/// Continues as an earlier run of the session has learnt that this model must be told about tools.
fn keep_mode(probed: &mut ProbeResult, past: &ResumeState, choice: ToolModeChoice) {
    let Some(beginning) = &past.beginning else {
        return;
    };
    let steps = |mode| match mode {
        ToolMode::Native => 0,
        ToolMode::Constrained => 1,
        ToolMode::Text => 2,
    };
    if choice == ToolModeChoice::Auto && steps(beginning.mode) > steps(probed.tools) {
        probed.tools = beginning.mode;
        "as the session has done before".clone_into(&mut probed.reason);
    }
}

/// Returns what all requests begin with, and the event that says so unless the log has it already.
pub(super) fn first_prompt(
    catalogue: &Catalogue,
    probed: &ProbeResult,
    past: &ResumeState,
    profile: Profile,
) -> (Prompt, Option<Kind>) {
    let tools = catalogue.listed_tools();
    let (mode, thinking) = (probed.tools, probed.replay_thinking());
    if let Some(prompt) = resume::same_beginning(past, &tools, mode, thinking, profile) {
        return (prompt, None);
    }
    let system = system_prompt(profile);
    // A template that knows no system message does not learn of one.
    let folded = past
        .beginning
        .as_ref()
        .is_some_and(|beginning| beginning.folded);
    let prompt = Prompt::new(&system, &tools, mode)
        .with_thinking_replayed(thinking)
        .with_system_folded(folded);
    let told = |tool: ToolSpec| ToolTold {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
    };
    (
        prompt,
        Some(Kind::PromptBegun {
            system,
            tools: tools.into_iter().map(told).collect(),
            mode,
            thinking,
            folded,
        }),
    )
}
