//! The sandbox of `podbay up`. A new one takes the place of another only when it works: until then it
//! has a name that nobody joins.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Options;
use super::Project;
use super::Spec;
use super::docker::Filling;
use super::docker::Running;
use super::docker::SearchBeside;
use super::docker::facts_of;
use super::docker::is_as_asked_for;
use super::docker::is_covered;
use super::docker::not_greeted;
use super::docker::not_started;
use super::join_socket;
use super::link::Link;
use super::shared::SharedCovers;
use super::shared::SharedSandbox;
use super::spec::GUEST_FOLDER;
use podbay_engine::ContainerId;
use podbay_engine::ContainerState;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Mount;
use podbay_engine::NEXT;
use podbay_engine::OLD;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_guest as guest;
use podbay_wire::keep::FindOrder;

/// The sandbox of `podbay up`: it stays when its controller has gone, until nobody has used it for a
/// while.
pub struct Environment;

/// Whether a project has such a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentState {
    pub id: String,
    pub name: String,
    pub started_at: String,
    /// Somebody has paused it: nothing in it answers, and nobody joins it.
    pub paused: bool,
    /// Hash of the settings it was made from.
    spec: Option<String>,
}

impl EnvironmentState {
    /// Returns whether it can be joined by whoever wants a sandbox of these very settings.
    pub fn is_joined_for(&self, spec: &Spec) -> bool {
        !self.paused && self.spec.as_deref() == Some(spec.hash().as_str())
    }
}

/// How often a name that was freed may be taken again before something else must be wrong, and how
/// long the engine has meanwhile.
const MOST_TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Said by `podbay up` of a sandbox that somebody has paused.
const PAUSED: &str = "the environment was paused, so that nothing in it answered: it is made anew, without what was in its /tmp and home folder";

/// Said by `podbay up` of one that was made with other settings.
const REPLACED: &str = "the environment was made with other settings: it was made anew, without what was in its /tmp and home folder, and what ran in it has ended";

/// Said by whoever would have joined it.
const PAUSED_BESIDE: &str = "the environment of `podbay up` is paused, so this is a second sandbox beside it; `podbay up` makes it anew";

/// A sandbox that works and is to become a project's environment. The one before lives until then.
#[must_use = "a sandbox that nobody settles or discards stays under a name that nobody looks for"]
pub struct NextEnvironment {
    id: ContainerId,
    /// The container that has the name now, running or not.
    before: Option<ContainerId>,
    /// What is to be said of that one.
    pub note: Option<&'static str>,
}

impl Environment {
    /// Starts a sandbox for a project and sees to it that it works, unless one of the same making runs.
    /// `joins` is the folder for the sockets of controllers that join it.
    #[boxed]
    pub async fn prepare(
        engine: &Engine,
        spec: &Spec,
        options: &Options,
        joins: &Path,
        cancel: &CancellationToken,
    ) -> Result<Option<NextEnvironment>, Error> {
        let before = find(engine, &spec.project, cancel).await?;
        if before
            .as_ref()
            .is_some_and(|state| state.running && !state.paused && is_same(state, spec))
        {
            return Ok(None);
        }
        // Waking it could be the last it sees: the time of its lease continued.
        let note = before
            .as_ref()
            .filter(|state| state.running)
            .map(|state| if state.paused { PAUSED } else { REPLACED });
        let facts = facts_of(engine, cancel).await?;
        let is_here = facts.local && !facts.desktop;
        let present = before
            .as_ref()
            .and_then(|state| join_socket::folder_of(&state.mounts));
        // Without a folder controllers join by the engine, which only takes longer.
        let sockets = is_here
            .then(|| join_socket::make_folder(joins, &spec.project, present.as_deref()))
            .and_then(|made| {
                made.inspect_err(|error| tracing::debug!(%error, "no sockets"))
                    .ok()
            });
        let id = alone(engine, spec, options, sockets.as_deref(), cancel).await?;
        let works = works(engine, spec, options, &id, sockets, cancel).await;
        match works {
            // Dropping what was joined ended its guest, and the sandbox stays.
            Ok(()) => Ok(Some(NextEnvironment {
                id,
                before: before.map(|state| state.id),
                note,
            })),
            Err(error) => {
                engine.discard(&id).await;
                Err(error)
            }
        }
    }

    /// Returns what is to be said of a project's environment that stays as it is, where files came
    /// that one made now would protect.
    #[boxed]
    pub async fn lacks(
        engine: &Engine,
        spec: &Spec,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        let Present::Same(shared) = present(engine, spec, cancel).await? else {
            return Ok(None);
        };
        let later = shared.covers.later(&spec.project, &spec.covers);
        Ok(later.words(&BTreeSet::new()))
    }

    /// Puts a sandbox in the place of the one before, which ends. Where that fails everything is as it
    /// was.
    #[boxed]
    pub async fn settle(
        engine: &Engine,
        project: &Project,
        next: NextEnvironment,
    ) -> Result<(), Error> {
        // From here on an interrupt would leave names in disorder, and it takes no time.
        let cancel = CancellationToken::new();
        let (name, aside) = (name(project), name_of_old(project));
        let NextEnvironment { id, before, .. } = next;
        let placed = async {
            if let Some(before) = &before {
                match engine.rename(before, &aside, &cancel).await {
                    // Its lease is over, or somebody has removed it.
                    Err(error) if error.is_not_found() => {}
                    other => other?,
                }
            }
            engine.rename(&id, &name, &cancel).await
        };
        if let Err(error) = placed.await {
            if let Some(before) = &before
                && let Err(left) = engine.rename(before, &name, &cancel).await
            {
                tracing::debug!(%left, "the environment before has its name, or is gone");
            }
            engine.discard(&id).await;
            return Err(Error::engine(
                "put the new environment in its place; the one before it stays",
            )(error));
        }
        match before {
            Some(before) => engine.remove(&before).await.map_err(Error::left(&aside)),
            None => Ok(()),
        }
    }

    /// Ends a sandbox that is not wanted any more; the one before stays.
    #[boxed]
    pub async fn discard(engine: &Engine, next: NextEnvironment) {
        // The next `podbay up` or `podbay down` finds what is left of it by its name; if it runs,
        // its lease ends it.
        engine.discard(&next.id).await;
    }

    /// Ends the sandbox of a project; returns whether there was one.
    #[boxed]
    pub async fn down(
        engine: &Engine,
        project: &Project,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        remove_strays(engine, project, cancel).await?;
        match find(engine, project, cancel).await? {
            Some(state) => engine
                .remove_and_look(&state.id)
                .await
                .map(|()| true)
                .map_err(Error::left(&name(project))),
            None => Ok(false),
        }
    }

    /// Returns the project's environment, if one is up.
    #[boxed]
    pub async fn state(
        engine: &Engine,
        project: &Project,
        cancel: &CancellationToken,
    ) -> Result<Option<EnvironmentState>, Error> {
        let found = find(engine, project, cancel).await?;
        Ok(found
            .filter(|state| state.running)
            .map(|state| EnvironmentState {
                spec: state.labels.and_then(|labels| labels.spec),
                name: name(project),
                id: state.id.0,
                started_at: state.started_at,
                paused: state.paused,
            }))
    }
}

/// Makes room for a sandbox and starts it. What a controller that was killed had asked for may come to
/// be between the two; whoever holds the project is the only one that still wants the name.
async fn alone(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    sockets: Option<&Path>,
    cancel: &CancellationToken,
) -> Result<ContainerId, Error> {
    let mut n_tries = 1;
    loop {
        remove_strays(engine, &spec.project, cancel).await?;
        match start(engine, spec, options, sockets, cancel).await {
            Err(Error::Engine { source, .. }) if source.is_conflict() && n_tries < MOST_TRIES => {
                n_tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Makes and starts the sandbox, under a name that nobody joins.
async fn start(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    sockets: Option<&Path>,
    cancel: &CancellationToken,
) -> Result<ContainerId, Error> {
    let labels = Labels {
        spec: Some(spec.hash()),
        owner: Some(Owner::current()),
        ..Labels::new(Role::Environment)
    };
    let mut filling = Filling::begin(engine, spec, cancel).await?;
    loop {
        let id = filling
            .create(cancel, |hosts| {
                let mut container =
                    spec.container(name_of_next(&spec.project), labels.clone(), hosts);
                let lease = options.lease.get().to_string();
                container.entrypoint = vec![
                    format!("{GUEST_FOLDER}/podbay"),
                    "guest".into(),
                    "init".into(),
                    "--lease".into(),
                    lease,
                ];
                if let Some(source) = sockets.and_then(Path::to_str) {
                    let options = ["--sockets", join_socket::TARGET];
                    container.entrypoint.extend(options.map(ToOwned::to_owned));
                    container.mounts.push(Mount::Bind {
                        source: source.to_owned(),
                        target: join_socket::TARGET.to_owned(),
                        read_only: true,
                    });
                }
                container.attached = false;
                container
            })
            .await?;
        let Err(error) = engine.start(&id, cancel).await else {
            return Ok(id);
        };
        engine.discard(&id).await;
        filling
            .refill(not_started("start the environment", error), cancel)
            .await?;
    }
}

/// Removes what a controller left that was killed while it put one environment in the place of
/// another.
async fn remove_strays(
    engine: &Engine,
    project: &Project,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    for name in [name_of_next(project), name_of_old(project)] {
        if let Some(state) = engine
            .state(&name, cancel)
            .await
            .map_err(Error::engine("look for the environment"))?
        {
            engine
                .remove_and_look(&state.id)
                .await
                .map_err(Error::left(&name))?;
        }
    }
    Ok(())
}

fn name(project: &Project) -> String {
    format!("podbay-environment-{}", project.key())
}

fn name_of_next(project: &Project) -> String {
    format!("{}{NEXT}", name(project))
}

fn name_of_old(project: &Project) -> String {
    format!("{}{OLD}", name(project))
}

fn is_same(state: &ContainerState, spec: &Spec) -> bool {
    state
        .labels
        .as_ref()
        .and_then(|labels| labels.spec.as_deref())
        == Some(spec.hash().as_str())
}

async fn find(
    engine: &Engine,
    project: &Project,
    cancel: &CancellationToken,
) -> Result<Option<ContainerState>, Error> {
    engine
        .state(&name(project), cancel)
        .await
        .map_err(Error::engine("look for the environment"))
}

/// What came of looking for an environment.
pub(super) enum Present {
    /// It runs, and was made from the same settings.
    Same(SharedSandbox),
    /// One runs that was made from others, or was paused; these words are for the user.
    Other(String),
    None,
}

/// Looks for the environment of a project.
pub(super) async fn present(
    engine: &Engine,
    spec: &Spec,
    cancel: &CancellationToken,
) -> Result<Present, Error> {
    let Some(state) = find(engine, &spec.project, cancel)
        .await?
        .filter(|state| state.running)
    else {
        return Ok(Present::None);
    };
    Ok(if state.paused {
        Present::Other(PAUSED_BESIDE.to_owned())
    } else if is_same(&state, spec) {
        Present::Same(SharedSandbox {
            covers: SharedCovers::of(&state, &spec.mounted),
            sockets: join_socket::folder_of(&state.mounts),
            pid: state.pid,
            id: state.id,
        })
    } else {
        Present::Other(other_words(&state.image, spec.image()))
    })
}

/// Joins an environment; `None`: it was at its end. Its guest searches the project beside the calls.
pub(super) async fn join(
    engine: &Engine,
    spec: &Spec,
    shared: &SharedSandbox,
    find: &FindOrder,
    within: Duration,
    cancel: &CancellationToken,
) -> Result<Option<Running>, Error> {
    match joined(engine, spec, shared, find, within, cancel).await {
        Ok(running) => Ok(Some(running)),
        Err(error) if cancel.is_cancelled() => Err(error),
        Err(error) => {
            if ends(engine, spec, &shared.id, cancel).await {
                Ok(None)
            } else {
                Err(error)
            }
        }
    }
}

/// Returns whether a sandbox that could not be joined is at its end: its lease may have been over just
/// then.
async fn ends(engine: &Engine, spec: &Spec, id: &ContainerId, cancel: &CancellationToken) -> bool {
    for _ in 0..MOST_TRIES {
        match find(engine, &spec.project, cancel).await {
            Ok(Some(state)) if state.running && state.id == *id => tokio::time::sleep(PAUSE).await,
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// Says that there are two sandboxes now. Of what the other was made from the engine keeps the image;
/// the rest is a hash.
fn other_words(theirs: &str, ours: &str) -> String {
    let differs = if theirs == ours {
        "the same image, but other limits, other secrets revealed, or another guest".to_owned()
    } else {
        let short = |image: &str| {
            image
                .trim_start_matches("sha256:")
                .chars()
                .take(12)
                .collect::<String>()
        };
        format!("image {} there, {} here", short(theirs), short(ours))
    };
    format!(
        "the environment of `podbay up` was made with other settings ({differs}), so this is a second sandbox beside it, and both write to the \
         project; to join that one give the flags that `podbay up` was given, or keep them in .podbay/config.toml for both; `podbay up` with \
         the flags of this command makes it anew"
    )
}

/// Looks from inside of a new sandbox whether it is what was asked for. Its folder of sockets goes
/// where the guest does not connect to one.
async fn works(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    id: &ContainerId,
    sockets: Option<PathBuf>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let state = engine
        .state(&id.0, cancel)
        .await
        .map_err(Error::engine("look at the environment"))?;
    let pid = state.and_then(|state| state.pid);
    let mut stream = by_socket(sockets.as_deref(), pid, join_socket::STARTING).await;
    if let (None, Some(folder)) = (&stream, &sockets) {
        let _ = std::fs::remove_dir_all(folder);
    }
    if stream.is_none() {
        stream = Some(by_engine(engine, spec, id, cancel).await?);
    }
    let (within, disk) = (options.start_timeout.duration(), spec.disk);
    let JoinStream { stream, said } = stream.expect("it was reached one way or the other");
    let (_link, facts) = Link::connect(stream, &guest::build_id(), disk, within, cancel)
        .await
        .map_err(|error| not_greeted(error, &said()))?;
    is_as_asked_for(spec, facts_of(engine, cancel).await?, &facts)?;
    is_covered(spec, &facts)
}

/// Starts a guest in a sandbox that runs, and looks from inside whether that is what was asked for.
async fn joined(
    engine: &Engine,
    spec: &Spec,
    shared: &SharedSandbox,
    find: &FindOrder,
    within: Duration,
    cancel: &CancellationToken,
) -> Result<Running, Error> {
    let stream = match by_socket(shared.sockets.as_deref(), shared.pid, join_socket::RUNNING).await
    {
        Some(stream) => stream,
        None => by_engine(engine, spec, &shared.id, cancel).await?,
    };
    let JoinStream { stream, said } = stream;
    let (build, find) = (guest::build_id(), find.clone());
    let (link, facts, found) =
        Link::connect_searching(stream, &build, spec.disk, find, within, cancel)
            .await
            .map_err(|error| not_greeted(error, &said()))?;
    is_as_asked_for(spec, facts_of(engine, cancel).await?, &facts)?;
    Ok(Running {
        id: Some(shared.id.clone()),
        link,
        facts,
        owned: false,
        found: None,
        search: Some(SearchBeside {
            shared: shared.clone(),
            found,
        }),
    })
}

/// A stream to a guest, and what that says on its error stream.
struct JoinStream {
    stream: Box<dyn Duplex>,
    said: Box<dyn Fn() -> String + Send + Sync>,
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

async fn by_socket(
    folder: Option<&Path>,
    pid: Option<u32>,
    within: Duration,
) -> Option<JoinStream> {
    let (folder, pid) = (folder?, pid?);
    match join_socket::accept(folder, pid, within).await {
        Ok(stream) => Some(JoinStream {
            stream: Box::new(stream),
            said: Box::new(String::new),
        }),
        Err(error) => {
            tracing::debug!(%error, "the sandbox is joined by the engine");
            None
        }
    }
}

async fn by_engine(
    engine: &Engine,
    spec: &Spec,
    id: &ContainerId,
    cancel: &CancellationToken,
) -> Result<JoinStream, Error> {
    let program = format!("{GUEST_FOLDER}/podbay");
    let stream = engine
        .exec(id, spec.user(), &[&program, "guest", "serve"], cancel)
        .await
        .map_err(Error::engine("join the environment"))?;
    let said = Box::new(stream.diagnostics());
    let stream = Box::new(stream);
    Ok(JoinStream { stream, said })
}
