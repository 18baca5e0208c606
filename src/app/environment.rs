use std::sync::Arc;

use async_recursion::async_recursion as boxed;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Front;
use super::Place;
use super::bench::Bench;
use super::bench::Ground;
use super::exit_code;
use super::model;
use super::review;
use podbay_engine::FileLock;
use podbay_engine::Labels;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_event::ByteSize;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_event::Seconds;
use podbay_inference as inference;
use podbay_llm::Endpoint;
use podbay_sandbox as sandbox;
use podbay_sandbox::Environment;
use podbay_sandbox::NetworkMode;
use podbay_sandbox::Sandbox;
use podbay_sandbox::Socket;
use podbay_wire::keep::PendingRef;
use podbay_wire::keep::PendingRepository;
use podbay_wire::keep::PendingReview;

/// How long a sandbox that Podbay did not start may take to say what it is like.
const ANSWER: Seconds = Seconds::new(2);

/// What knows of an environment that somebody has paused.
const PAUSED: &str = "paused: nothing in it answers; `podbay up` makes it anew";

/// What runs for a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Version and address of the engine.
    pub engine: String,
    pub environment: Option<Running>,
    pub model_server: Option<Running>,
    /// The endpoint that is used instead of a model server of ours.
    pub endpoint: Option<String>,
    /// Ids of what was changed and waits to be accepted.
    pub reviews: Vec<String>,
    /// What was done with git that waits with them.
    pub waiting: Vec<Waiting>,
    /// The socket of a sandbox that Podbay did not start; then no engine is contacted.
    pub socket: Option<String>,
}

/// What was done with git in a session whose changes wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    pub review: String,
    pub branches: Vec<WaitingBranch>,
    /// All that waits of it in words, as `podbay review list` has them.
    pub git: Vec<String>,
}

/// A branch or a tag that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingBranch {
    /// The repository's place in the project.
    pub repository: String,
    pub name: String,
    /// `null`: it is new.
    pub old: Option<String>,
    pub new: String,
    /// How many commits of the session it has; `null`: they were not counted.
    pub commits: Option<u64>,
}

impl Waiting {
    /// `None`: nothing was done with git.
    fn of(review: &PendingReview) -> Option<Self> {
        let of = |one: &PendingRepository| -> Vec<WaitingBranch> {
            let branch = |waiting: &PendingRef| WaitingBranch {
                repository: one.path.to_string(),
                name: waiting.name.to_string(),
                old: waiting.old.clone(),
                new: waiting.new.clone(),
                commits: waiting.n_commits,
            };
            one.names.first.iter().map(branch).collect()
        };
        let branches = review.git.repositories.iter().flat_map(of).collect();
        (!review.git.is_empty()).then(|| Self {
            review: review.name.clone(),
            branches,
            git: review.git.lines(),
        })
    }
}

/// One container that is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Running {
    pub name: String,
    pub id: String,
    pub since: String,
    /// What it serves or was made from, in a few words.
    pub detail: String,
}

/// Starts the environment and, where the model is ours, the model server. Returns what is up then.
#[boxed]
pub async fn up(place: &Place, with_model: bool, front: &Front) -> Result<Status, Error> {
    let cancel = front.interrupt.run();
    if with_model {
        model::check_endpoint(&place.config, place.api_key.as_ref())?;
    }
    if place.config.network.mode() == NetworkMode::Allowlist {
        return Err(Error::usage(
            "an allow-list belongs to a session, and `podbay up` has none: its sandbox would outlive the gateway",
            "leave it out here (--network none); `podbay run`, `chat`, `sh` and `call` have a gateway of their own",
        ));
    }
    let bench = open(place, "`podbay up`", cancel).await?;
    bench.sweep_aside();
    let status = Box::pin(up_with(place, with_model, front, &bench)).await;
    bench.tell_left(&front.sink);
    status
}

async fn up_with(
    place: &Place,
    with_model: bool,
    front: &Front,
    bench: &Bench,
) -> Result<Status, Error> {
    let cancel = front.interrupt.run();
    let sink = Arc::clone(&front.sink);
    let progress: ProgressSink = Arc::new(move |step| sink(Kind::Progress(step).into()));
    // Of two that come at once the second finds what the first has made.
    let folder = place.state.locks();
    let lock = FileLock::wait(
        &folder,
        &format!("up-{}", bench.project()?.key()),
        || {},
        cancel,
    )
    .await
    .map_err(Error::Engine)?;
    let environment = async {
        let spec = bench.spec(&progress, cancel).await?;
        let labels = Labels {
            owner: Some(Owner::current()),
            ..Labels::new(Role::Keeper)
        };
        let records = place.state.covers();
        let look = sandbox::look_through(
            bench.engine()?,
            &spec,
            &place.config.sandbox,
            labels,
            &records,
            cancel,
        );
        let spec = look.await.map_err(Error::Sandbox)?;
        let options = &place.config.sandbox;
        let joins = place.state.joins();
        let next = Environment::prepare(bench.engine()?, &spec, options, &joins, cancel)
            .await
            .map_err(Error::Sandbox)?;
        Ok::<_, Error>((spec, next))
    };
    let server = async {
        if !with_model {
            return Ok(None);
        }
        model::connect(bench, place.api_key.clone(), &progress, cancel)
            .await
            .map(Some)
    };
    let (spec, found) = match tokio::join!(environment, server) {
        (Ok((mut spec, next)), Ok(found)) => {
            if let Some(next) = next {
                spec.warnings.extend(next.note.map(ToOwned::to_owned));
                Environment::settle(bench.engine()?, bench.project()?, next)
                    .await
                    .map_err(Error::Sandbox)?;
            } else {
                let lacks = Environment::lacks(bench.engine()?, &spec, cancel).await;
                spec.warnings.extend(lacks.map_err(Error::Sandbox)?);
            }
            (spec, found)
        }
        // Whoever is told that it failed expects what was there before, also when it failed by an
        // interrupt.
        (Ok((_, next)), Err(error)) => {
            if let Some(next) = next {
                Environment::discard(bench.engine()?, next).await;
            }
            return Err(error);
        }
        (Err(error), _) => return Err(error),
    };
    drop(lock);
    for message in spec
        .warnings
        .into_iter()
        .chain(bench.holes_once(cancel).await)
    {
        (front.sink)(Kind::Warning { message }.into());
    }
    if let Some(model::Found { probed, notes, .. }) = found {
        for message in notes {
            (front.sink)(Kind::Warning { message }.into());
        }
        (front.sink)(
            Kind::ModelReady {
                model: probed.model,
                context: probed.context,
                tools: probed.tools,
                reason: probed.reason,
            }
            .into(),
        );
    }
    look(place, bench, cancel).await
}

/// Ends the environment of the project and the model server, unless another process works with
/// that; returns the names of what was ended.
#[boxed]
pub async fn down(place: &Place, front: &Front) -> Result<Vec<String>, Error> {
    let cancel = front.interrupt.run();
    let bench = open(place, "`podbay down`", cancel).await?;
    let mut ended = Vec::new();
    // One that cannot be ended is no reason to leave the other.
    let environment = Environment::down(bench.engine()?, bench.project()?, cancel)
        .await
        .map_err(Error::Sandbox);
    if matches!(environment, Ok(true)) {
        ended.push("environment".to_owned());
    }
    let server = inference::ModelServer::new(
        bench.engine()?,
        &place.config.inference,
        &model::paths(&bench),
    );
    let server = match server.stop(cancel).await {
        // It is that of all projects.
        Err(inference::Error::Used { pid, model }) => {
            let message = format!(
                "the model server stays: process {pid} works with the model {model}; end that one first"
            );
            (front.sink)(Kind::Warning { message }.into());
            Ok(false)
        }
        other => other.map_err(Error::Inference),
    };
    if matches!(server, Ok(true)) {
        ended.push("model server".to_owned());
    }
    match (environment, server) {
        (Ok(_), Ok(_)) => Ok(ended),
        (environment, server) => {
            let failed: Vec<Error> = environment.err().into_iter().chain(server.err()).collect();
            Err(unfinished(failed, &ended, front))
        }
    }
}

/// Says what was ended where not all could be, and which error kept which; returns the one that the
/// command ends with.
fn unfinished(mut failed: Vec<Error>, ended: &[String], front: &Front) -> Error {
    let warn = |message| (front.sink)(Kind::Warning { message }.into());
    if !ended.is_empty() {
        warn(format!("ended: {}", ended.join(", ")));
    }
    if front.interrupt.is_ended() {
        // A signal decides the code, and what is left is to be said all the same.
        failed.insert(0, Error::Interrupted);
    }
    let first = failed.remove(0);
    for error in failed
        .iter()
        .filter(|error| error.exit_code() != exit_code::INTERRUPTED)
    {
        let words = std::iter::once(error.to_string())
            .chain(error.causes())
            .chain(error.hints());
        warn(words.collect::<Vec<_>>().join(": "));
    }
    first
}

#[boxed]
pub async fn status(place: &Place, front: &Front) -> Result<Status, Error> {
    let cancel = front.interrupt.run();
    let bench = Bench::open(&place.config, &place.state, Ground::open(place)?, cancel).await?;
    let mut status = look(place, &bench, cancel).await?;
    if !status.reviews.is_empty() {
        let told = Box::pin(review::all_waiting(&bench, front, cancel)).await;
        // Which reviews wait is known all the same.
        let reviews = told
            .inspect_err(|error| tracing::debug!(%error, "what waits with reviews is not known"))
            .unwrap_or_default();
        status.waiting = reviews
            .iter()
            .filter(|review| status.reviews.contains(&review.name))
            .filter_map(Waiting::of)
            .collect();
    }
    Ok(status)
}

/// Passes on what the model server prints.
pub async fn logs(
    place: &Place,
    follow: bool,
    lines: u32,
    write: impl FnMut(&[u8]),
    front: &Front,
) -> Result<(), Error> {
    let cancel = front.interrupt.run();
    let bench = open(place, "`podbay logs`", cancel).await?;
    let server = inference::ModelServer::new(
        bench.engine()?,
        &place.config.inference,
        &model::paths(&bench),
    );
    if server
        .logs(lines, follow, write, cancel)
        .await
        .map_err(Error::Inference)?
    {
        return Ok(());
    }
    Err(Error::usage(
        "no model server of ours is up",
        "start it with `podbay up`; another endpoint's log is kept by its own machine",
    ))
}

/// Opens the project for a command that needs an engine.
async fn open(place: &Place, what: &str, cancel: &CancellationToken) -> Result<Bench, Error> {
    match Ground::open(place)? {
        Ground::Socket(_) => Err(Error::not_attached(what)),
        project @ Ground::Project(_) => {
            Bench::open(&place.config, &place.state, project, cancel).await
        }
    }
}

async fn look(place: &Place, bench: &Bench, cancel: &CancellationToken) -> Result<Status, Error> {
    if let Some(socket) = bench.socket() {
        return look_at(place, socket, cancel).await;
    }
    let (engine, project) = (bench.engine()?, bench.project()?);
    let facts = engine.facts(cancel).await.map_err(Error::Engine)?;
    let environment = Environment::state(engine, project, cancel)
        .await
        .map_err(Error::Sandbox)?;
    let server = inference::ModelServer::new(engine, &place.config.inference, &model::paths(bench));
    let server = server.state(cancel).await.map_err(Error::Inference)?;
    let reviews = sandbox::reviews(engine, project, cancel)
        .await
        .map_err(Error::Sandbox)?;
    Ok(Status {
        engine: format!("{} at {}", facts.version, facts.address),
        environment: environment.map(|state| Running {
            detail: if state.paused {
                PAUSED.to_owned()
            } else {
                project.text().to_owned()
            },
            name: state.name,
            id: state.id,
            since: state.started_at,
        }),
        model_server: server.filter(|state| state.running).map(|state| Running {
            name: state.name,
            id: state.container.0,
            since: state.started_at,
            detail: match state.health {
                inference::Health::Ready => "ready".to_owned(),
                inference::Health::Loading => "loads its model".to_owned(),
                inference::Health::NoAnswer(why) => format!("does not answer: {why}"),
            },
        }),
        endpoint: endpoint(place),
        reviews: reviews
            .into_iter()
            .map(|review| review.session.to_string())
            .collect(),
        waiting: Vec::new(),
        socket: None,
    })
}

/// Asks a sandbox that Podbay did not start what it is like.
async fn look_at(
    place: &Place,
    socket: &Socket,
    cancel: &CancellationToken,
) -> Result<Status, Error> {
    let options = sandbox::Options {
        start_timeout: ANSWER,
        ..place.config.sandbox.clone()
    };
    let environment = match Sandbox::attach(socket, &options, Arc::new(|_| {}), cancel).await {
        Ok((sandbox, started)) => {
            sandbox.close().await;
            let facts = started.facts;
            let memory = facts.memory_bytes.map_or_else(
                || "no limit of memory".to_owned(),
                |bytes| ByteSize::new(bytes).rounded(),
            );
            let processes = facts.n_processes.map_or_else(
                || "no limit of processes".to_owned(),
                |count| format!("{count} processes"),
            );
            let detail = format!("uid {}, {memory}, {processes}", facts.uid);
            Some(Running {
                name: socket.path().display().to_string(),
                id: String::new(),
                since: String::new(),
                detail,
            })
        }
        Err(sandbox::Error::NotAttached { .. }) => None,
        Err(error) => return Err(Error::Sandbox(error)),
    };
    Ok(Status {
        engine: "none (attached)".to_owned(),
        environment,
        model_server: None,
        endpoint: endpoint(place),
        reviews: Vec::new(),
        waiting: Vec::new(),
        socket: Some(socket.path().display().to_string()),
    })
}

/// Returns the endpoint that is named. What is no address is shown as what is wrong with it: it may
/// hold a key.
fn endpoint(place: &Place) -> Option<String> {
    let text = place.config.llm.endpoint.as_deref()?;
    Some(
        Endpoint::parse(text)
            .map_or_else(|error| error.to_string(), |endpoint| endpoint.to_string()),
    )
}
