use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Spec;
use super::guest_volume;
use super::link;
use super::link::Link;
use super::shared::SharedSandbox;
use super::user_names::is_about_lists;
use super::user_names::is_list;
use super::way;
use podbay_engine as engine;
use podbay_engine::Attached;
use podbay_engine::ContainerId;
use podbay_engine::ContainerSpec;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Mount;
use podbay_event::InstanceId;
use podbay_guest as guest;
use podbay_wire::BytesPath;
use podbay_wire::keep::FindOrder;
use podbay_wire::keep::FindResult;
use podbay_wire::message::DiskLimits;
use podbay_wire::message::Facts;

/// The image that sandboxes are made from when none is named.
pub const DEFAULT_IMAGE: &str = "podbay/workspace";

/// Most names of `/workspace` that both sides compare.
const NAMES: usize = 256;

/// How often the guest's volume is filled for one start, before something else must be wrong.
const MOST_FILLS: u32 = 3;

/// One container with a guest that answers.
pub(super) struct Running {
    /// `None`: a sandbox that Podbay did not start.
    pub(super) id: Option<ContainerId>,
    pub(super) link: Link,
    pub(super) facts: Facts,
    /// Whether removing the container is ours to do.
    pub(super) owned: bool,
    /// What its guest found in the project before anything could run there, if it was to look.
    pub(super) found: Option<FindResult>,
    /// The search that its guest makes beside the calls, where it joined a sandbox.
    pub(super) search: Option<SearchBeside>,
}

/// A search of the project by a guest that joined the sandbox of `podbay up`.
pub(super) struct SearchBeside {
    pub(super) shared: SharedSandbox,
    pub(super) found: oneshot::Receiver<FindResult>,
}

/// Makes a container whose PID 1 is the guest, and waits for its first word and for what it finds.
/// It is started when `is_laid_out` fires: then its volumes have what they begin with.
pub(super) async fn start(
    engine: &Engine,
    spec: &Spec,
    labels: &Labels,
    find: &FindOrder,
    within: Duration,
    is_laid_out: &CancellationToken,
    cancel: &CancellationToken,
) -> Result<Running, Error> {
    let mut filling = Filling::begin(engine, spec, cancel).await?;
    loop {
        let id = filling
            .create(cancel, |hosts| {
                // A name of its own each time: the engine gives the last one's free only some time
                // after that has ended.
                let instance = InstanceId::random();
                spec.container(
                    format!("podbay-{}-{instance}", spec.kind()),
                    Labels {
                        instance: Some(instance),
                        ..labels.clone()
                    },
                    hosts,
                )
            })
            .await?;
        tokio::select! {
            () = is_laid_out.cancelled() => {}
            () = cancel.cancelled() => {}
        }
        match run(engine, spec, &id, find, within, cancel).await {
            Ok(running) => return Ok(running),
            Err(error) => {
                // It may have ended and be gone already; what is left of it must not stay in any
                // case.
                if cancel.is_cancelled() {
                    engine.discard_soon(&id).await;
                } else {
                    engine.discard(&id).await;
                }
                filling.refill(error, cancel).await?;
            }
        }
    }
}

/// The guest's volume while one sandbox is started from it: filled again where that turns out to be
/// needed.
pub(super) struct Filling<'a> {
    engine: &'a Engine,
    spec: &'a Spec,
    hosts: Option<String>,
    n_filled: u32,
    lists: UserLists,
}

/// Whether the lists of users are in the guest's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserLists {
    Expected,
    Filled,
    /// The engine does not mount them from there: the image's own stay.
    Unusable,
}

impl<'a> Filling<'a> {
    pub(super) async fn begin(
        engine: &'a Engine,
        spec: &'a Spec,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let volume = guest_volume::ready(engine, spec, cancel).await?;
        Ok(Self {
            engine,
            spec,
            hosts: volume.hosts,
            n_filled: u32::from(volume.filled),
            lists: UserLists::Expected,
        })
    }

    /// Makes a container, if the project's path still leads to it; `container` gets the path of our
    /// list of hosts.
    pub(super) async fn create(
        &mut self,
        cancel: &CancellationToken,
        container: impl Fn(Option<&str>) -> ContainerSpec,
    ) -> Result<ContainerId, Error> {
        loop {
            let mut made = container(self.hosts.as_deref());
            if self.lists == UserLists::Unusable {
                made.mounts.retain(|mount| !is_list(mount));
            }
            way::check(&self.spec.project)?;
            for folder in held_folders(&made) {
                way::check_below(&self.spec.project, folder)?;
            }
            self.spec.check_lent()?;
            match self.engine.create(&made, cancel).await {
                Ok(id) => return Ok(id),
                // Each project and image has its own, which come when they are first needed.
                Err(error)
                    if self.lists != UserLists::Unusable && is_about_lists(&error.to_string()) =>
                {
                    self.lists = if self.lists == UserLists::Expected {
                        guest_volume::fill_users(self.engine, self.spec, cancel).await?;
                        UserLists::Filled
                    } else {
                        UserLists::Unusable
                    };
                }
                // A volume that was not filled to its end has no list; an engine that does not
                // mount it from there does it the slow way.
                Err(error)
                    if self
                        .hosts
                        .as_deref()
                        .is_some_and(|hosts| error.to_string().contains(hosts)) =>
                {
                    if self.n_filled == 0 {
                        self.fill(cancel).await?;
                    } else {
                        self.hosts = None;
                    }
                }
                Err(error) => return Err(not_created(error, self.spec)),
            }
        }
    }

    /// Fills the volume again if a sandbox did not start for want of our program; any other reason is
    /// handed back.
    ///
    /// The volume of a controller that was killed while filling it exists and is empty; so does one
    /// that the engine made for this sandbox because `podbay gc` had just removed it.
    pub(super) async fn refill(
        &mut self,
        error: Error,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let absent = matches!(&error, Error::Engine { source, .. } if source.to_string().contains("no such file or directory"));
        if !absent || self.n_filled == MOST_FILLS {
            return Err(error);
        }
        self.fill(cancel).await
    }

    async fn fill(&mut self, cancel: &CancellationToken) -> Result<(), Error> {
        guest_volume::fill(self.engine, self.spec, cancel).await?;
        self.n_filled += 1;
        Ok(())
    }
}

/// Returns the folders of the project that a container holds in place.
fn held_folders(container: &ContainerSpec) -> impl Iterator<Item = &str> {
    container.mounts.iter().filter_map(|mount| match mount {
        Mount::Bind { target, .. } => target.strip_prefix("/workspace/"),
        _ => None,
    })
}

async fn run(
    engine: &Engine,
    spec: &Spec,
    id: &ContainerId,
    find: &FindOrder,
    within: Duration,
    cancel: &CancellationToken,
) -> Result<Running, Error> {
    // Attached first: the guest's first word must not be missed.
    let stream = engine
        .attach(id, cancel)
        .await
        .map_err(Error::engine("attach to the sandbox"))?;
    engine
        .start(id, cancel)
        .await
        .map_err(|error| not_started("start the sandbox", error))?;
    let running = greet(
        id.clone(),
        stream,
        spec.disk,
        Some(find.clone()),
        within,
        cancel,
    )
    .await?;
    is_as_asked_for(spec, facts_of(engine, cancel).await?, &running.facts)?;
    Ok(running)
}

/// Ends a sandbox in which nothing has run.
pub(super) async fn discard(engine: &Engine, running: &Running) {
    running.link.close();
    if let Some(id) = running.id.as_ref().filter(|_| running.owned) {
        engine.discard(id).await;
    }
}

/// Checks what nobody but the guest can see: whether the sandbox is on the project, has no network,
/// and cannot write in plan mode.
pub(super) fn is_as_asked_for(
    spec: &Spec,
    engine: &engine::Facts,
    facts: &Facts,
) -> Result<(), Error> {
    same_files(spec, engine, facts)?;
    if facts.networked && !spec.has_open_network() {
        let problem = "the engine gave it a network, though it was to have none".to_owned();
        return Err(Error::NotStarted { problem });
    }
    if facts.workspace_writable && spec.is_read_only() {
        let problem =
            "the engine mounted the project so that it can be written, though plan mode has it read-only"
                .to_owned();
        return Err(Error::NotStarted { problem });
    }
    Ok(())
}

/// Checks that everything is covered that is to be: what was not there when the engine looked is
/// not. The guest watches those that are.
pub(super) fn is_covered(spec: &Spec, facts: &Facts) -> Result<(), Error> {
    let mounted: BTreeSet<&BytesPath> = facts.mounts.iter().collect();
    match spec
        .places()
        .into_iter()
        .find(|place| !mounted.contains(place))
    {
        Some(place) => Err(Error::Uncovered {
            path: place.to_string(),
        }),
        None => Ok(()),
    }
}

/// Exchanges hellos with the guest at the other end of a stream.
async fn greet(
    id: ContainerId,
    stream: Attached,
    disk: DiskLimits,
    find: Option<FindOrder>,
    within: Duration,
    cancel: &CancellationToken,
) -> Result<Running, Error> {
    let diagnostics = stream.diagnostics();
    match Link::connect_looking(stream, &guest::build_id(), disk, find, within, cancel).await {
        Ok((link, facts, found)) => Ok(Running {
            id: Some(id),
            link,
            facts,
            owned: true,
            found,
            search: None,
        }),
        Err(error) => Err(not_greeted(error, &diagnostics())),
    }
}

/// Returns why a guest did not answer, by what it `said` on its error stream.
pub(super) fn not_greeted(error: link::Error, said: &str) -> Error {
    match said.trim() {
        "" => Error::Link(error),
        said => Error::NotStarted {
            problem: why_not_started(said),
        },
    }
}

/// Returns what a guest said that could not start. It writes to no disk before its hello, so that
/// none can be full.
fn why_not_started(said: &str) -> String {
    if said.ends_with("(os error 28)") {
        guest::NO_WATCHES.to_owned()
    } else {
        said.chars().take(400).collect()
    }
}

/// Checks that `/workspace` is the folder that was opened. Nothing has run in the sandbox yet, so the
/// guest's word is good.
///
/// The path may lead elsewhere by now: a command in the sandbox of a folder above can put a link in its
/// place while this one starts. Names are compared only where the engine's machine is another one,
/// which numbers its files in its own way.
fn same_files(spec: &Spec, engine: &engine::Facts, facts: &Facts) -> Result<(), Error> {
    let project = &spec.project;
    let is_elsewhere = !engine.local || engine.desktop;
    // A copy of it has a folder of its own, which the keeper knows.
    if spec.is_apart()
        || spec.review.is_some()
        || project.identity() == facts.workspace
        || (is_elsewhere && project.names(NAMES) == facts.workspace_names)
    {
        return Ok(());
    }
    Err(Error::OtherFiles {
        path: project.path().to_owned(),
    })
}

/// Returns what the engine is; whoever starts a sandbox knows that already.
pub(super) async fn facts_of<'a>(
    engine: &'a Engine,
    cancel: &CancellationToken,
) -> Result<&'a engine::Facts, Error> {
    engine
        .facts(cancel)
        .await
        .map_err(Error::engine("ask the engine what it is"))
}

/// Names the setting where the engine could not give what was asked for: how much that is nobody
/// can tell beforehand.
pub(super) fn not_started(doing: &str, error: engine::Error) -> Error {
    match refused_limit(&error.to_string()) {
        Some((key, of)) => Error::Setting {
            key,
            problem: format!(
                "the engine may not give a process {of}: its own limit, or that of the kernel, is lower; set it lower"
            ),
        },
        None => Error::engine(doing)(error),
    }
}

/// Reads from the engine's words which of the limits that we ask for it was not allowed to set, by
/// the kernel's numbers of them.
fn refused_limit(words: &str) -> Option<(&'static str, &'static str)> {
    let (_, rest) = words.split_once("setting rlimit type ")?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    match number.parse::<u32>().ok()? {
        libc::RLIMIT_FSIZE => Some(("sandbox.file_size", "files of this size")),
        libc::RLIMIT_NOFILE => Some(("sandbox.open_files", "so many open files")),
        _ => None,
    }
}

fn not_created(error: podbay_engine::Error, spec: &Spec) -> Error {
    let text = error.to_string();
    if text.contains("bind source path does not exist") {
        return Error::OtherFiles {
            path: spec.project.path().to_owned(),
        };
    }
    Error::engine("make the sandbox")(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_without_room_to_wait_does_not_speak_of_a_full_disk() {
        let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
        let words = why_not_started(&format!("podbay guest: {full}"));
        assert!(
            words.contains("fs.epoll.max_user_watches") && !words.contains("No space left"),
            "{words}"
        );
        assert_eq!(
            why_not_started("podbay guest: it is too old"),
            "podbay guest: it is too old"
        );
    }

    #[test]
    fn a_limit_that_the_engine_may_not_set_is_named_by_its_key() {
        let said = "runc create failed: error setting rlimits for ready process: error setting rlimit type";
        let key = |number: &str| {
            refused_limit(&format!(
                "{said} {number}: operation not permitted: unknown"
            ))
            .map(|(key, _)| key)
        };
        assert_eq!(
            (key("7"), key("1")),
            (Some("sandbox.open_files"), Some("sandbox.file_size"))
        );
        assert_eq!(
            (key("4"), key(""), refused_limit("the disk is on fire")),
            (None, None, None)
        );
        let error = engine::Error::Answer {
            doing: "start it".to_owned(),
            status: 500,
            message: format!("{said} 7: operation not permitted"),
        };
        assert!(matches!(
            not_started("start the sandbox", error),
            Error::Setting {
                key: "sandbox.open_files",
                ..
            }
        ));
        let error = engine::Error::Answer {
            doing: "start it".to_owned(),
            status: 500,
            message: "the disk is on fire".to_owned(),
        };
        assert!(matches!(
            not_started("start the sandbox", error),
            Error::Engine { .. }
        ));
    }
}
