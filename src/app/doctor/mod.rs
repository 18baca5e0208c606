//! `podbay doctor`: everything that a run needs, looked at without changing any of it.
//!
//! One file for each group of checks. What is gathered and what is made of it are kept apart:
//! judging is a plain function from facts to lines. All groups are looked at side by side; each
//! look has a time of its own, so nothing that hangs holds up the rest.

mod attached;
mod attack;
mod check;
mod engine;
mod full;
mod gate;
mod host;
mod images;
mod isolation;
mod model;
mod nudged;
mod settings;
mod state;
mod trial;

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

pub use self::attack::Attempt;
pub use self::attack::Outcome;
pub use self::attack::Siege;
pub use self::attack::attack;
pub use self::check::Check;
pub use self::check::Diagnosis;
pub use self::check::Group;
pub use self::check::Status;
pub use self::host::Terminal;
use super::Error;
use podbay_config::Config;
use podbay_config::Sources;
use podbay_engine::Engine;
use podbay_engine::Provision;
use podbay_event::ProgressSink;
use podbay_event::Secret;
use podbay_inference::ModelServer;
use podbay_inference::Paths;
use podbay_sandbox::Backend;

/// How long one look may take. The engine's first answer has a shorter patience of its own, with
/// better words.
const LIMIT: Duration = Duration::from_secs(12);

/// Longest text of a line, in characters: some of it is somebody else's.
const LONGEST: usize = 700;

/// What is to be looked at.
pub struct Subject {
    pub sources: Sources,
    /// Where the state folder is or will be.
    pub state: Result<PathBuf, Error>,
    /// The project folder, where one was named.
    pub project: Option<PathBuf>,
    pub terminal: Terminal,
    /// Reads the key that the settings name.
    pub key: fn(&Config) -> Result<Option<Secret>, Error>,
    /// Whether the model is tried too, which may start our own server.
    pub trial: bool,
}

/// Looks at everything and says what it found. Only an interrupt is an error: whatever is wrong is
/// a line.
#[boxed]
pub async fn diagnose(
    subject: Subject,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Diagnosis, Error> {
    unless_cancelled(Box::pin(look(subject, progress, cancel)), cancel).await
}

/// What is under way when the user interrupts fails by that, and is no finding, however fast it
/// was.
async fn unless_cancelled<T>(
    look: impl Future<Output = T>,
    cancel: &CancellationToken,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Error::Interrupted),
        found = look => if cancel.is_cancelled() { Err(Error::Interrupted) } else { Ok(found) },
    }
}

async fn look(subject: Subject, progress: &ProgressSink, cancel: &CancellationToken) -> Diagnosis {
    let Subject {
        sources,
        state,
        project,
        terminal,
        key,
        trial,
    } = subject;
    let mut checks = vec![host::terminal(&terminal)];
    // A settings file may be a pipe, or lie on a disk that answers no more.
    let read = blocking(move || {
        let (config, mut checks) = settings::judge(&sources, Config::load(&sources));
        let key = key(&config);
        checks.extend(settings::key(&config, &key));
        checks.extend(settings::models(&config));
        (config, key.ok().flatten(), checks)
    });
    let (config, key, found) = read.await.unwrap_or_else(|| {
        let remedy = "is one of them a pipe, or on a disk that is gone? see docs/configuration.md for where they are";
        (Config::default(), None, vec![late(Group::Settings, "files", remedy)])
    });
    checks.extend(found);
    let root = match &state {
        Ok(root) => Some(root.as_path()),
        Err(error) => {
            checks.push(Check::error(
                Group::State,
                "folder",
                error,
                error.hint(),
                "set PODBAY_HOME to a folder of your own",
            ));
            None
        }
    };
    let (engine, state, project, endpoint) = tokio::join!(
        Box::pin(of_backend(&config, root, progress, cancel)),
        of_state(root),
        of_project(&config, project, root),
        of_endpoint(&config, key.clone(), cancel),
    );
    let (engine, found) = engine;
    checks.extend([found, state, project, endpoint].into_iter().flatten());
    if trial {
        let source = trial::Source {
            config: &config,
            key: key.clone(),
            engine: engine.as_ref(),
            state: root,
            progress,
        };
        checks.extend(trial::run(&source, cancel).await);
    }
    for check in &mut checks {
        let remedy = check.remedy.as_mut();
        for text in std::iter::once(&mut check.detail).chain(remedy) {
            *text = bounded(std::mem::take(text), key.as_ref());
        }
    }
    Diagnosis::new(checks)
}

/// Looks at what sandboxes are had from.
async fn of_backend(
    config: &Config,
    root: Option<&Path>,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> (Option<Engine>, Vec<Check>) {
    if config.sandbox.backend != Backend::Attach {
        return Box::pin(of_engine(config, root, progress, cancel)).await;
    }
    let remedy = "`docker compose restart workspace` starts it anew";
    let (socket, kernel) =
        tokio::join!(within(attached::socket(&config.sandbox, cancel)), kernel());
    let mut checks = vec![
        Check::ok(Group::Engine, "connection", attached::WITHOUT),
        host::clock(jiff::Timestamp::now(), None),
    ];
    checks.extend(socket.unwrap_or_else(|| vec![late(Group::Sandbox, "socket", remedy)]));
    checks.extend(attached::endpoint(config));
    checks.extend(isolation::judge_kernel(&kernel));
    checks.push(Check::ok(Group::Images, "images", attached::WITHOUT));
    (None, checks)
}

/// Asks this machine's kernel.
async fn kernel() -> isolation::Kernel {
    blocking(isolation::Kernel::look).await.unwrap_or_default()
}

async fn of_engine(
    config: &Config,
    root: Option<&Path>,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> (Option<Engine>, Vec<Check>) {
    let needs_file = config.llm.endpoint.is_none();
    let paths = root.map(Paths::new).filter(|_| needs_file);
    let remedy = "it hangs or is overloaded: try `docker info`, and restart it";
    let reached = async {
        let engine = Engine::connect(&config.engine, cancel).await?;
        let facts = engine.facts(cancel).await?.clone();
        Ok((engine, facts))
    };
    let (engine, facts) = match within(reached).await {
        Some(Ok(reached)) => reached,
        outcome => {
            let mut checks = vec![match outcome {
                Some(Err(error)) => engine::unreachable(&error),
                _ => late(Group::Engine, "connection", remedy),
            }];
            checks.push(host::clock(jiff::Timestamp::now(), None));
            checks.extend(isolation::judge_kernel(&kernel().await));
            checks.extend(images::not_looked_at(
                "not looked at: no engine answers",
                images::is_static(),
            ));
            if let Some(paths) = &paths {
                checks.extend(model_file(config, paths, None, cancel).await);
            }
            return (None, checks);
        }
    };
    let facts = &facts;
    let provision = Provision::new(
        &engine,
        &config.engine,
        config.offline,
        root.unwrap_or(Path::new("/nonexistent")).join("locks"),
        progress,
    );
    let details = async {
        let (kernel, details) = tokio::join!(kernel(), within(engine.details(cancel)));
        match details {
            Some(Ok(details)) => {
                let mut checks = engine::judge(facts);
                checks.extend(isolation::judge(
                    facts,
                    &details,
                    &kernel,
                    config.sandbox.strict,
                ));
                let theirs = facts.local.then_some(details.time.as_str());
                checks.push(host::clock(jiff::Timestamp::now(), theirs));
                checks
            }
            Some(Err(error)) => vec![engine::unreachable(&error)],
            None => vec![late(Group::Engine, "connection", remedy)],
        }
    };
    let disk = async {
        let facts = facts.clone();
        let remedy = "its disk does not answer: check that the file system there is well (`df`)";
        blocking(move || engine::disk(&facts))
            .await
            .unwrap_or_else(|| late(Group::Engine, "disk", remedy))
    };
    let images = async {
        match within(images::images(&engine, config, &provision, cancel)).await {
            Some(Ok(checks)) => checks,
            Some(Err(error)) => vec![Check::error(
                Group::Images,
                "images",
                &error,
                error.hint(),
                "try `docker images`",
            )],
            None => vec![late(Group::Images, "images", remedy)],
        }
    };
    let leftovers = async {
        let both = async { tokio::try_join!(engine.containers(cancel), engine.volumes(cancel)) };
        match within(both).await {
            Some(Ok((containers, volumes))) => {
                vec![
                    images::guest(&volumes, images::is_static()),
                    images::leftovers(&containers, &volumes, config.engine.keep_guest.duration()),
                ]
            }
            Some(Err(error)) => vec![Check::error(
                Group::Images,
                "leftovers",
                &error,
                error.hint(),
                "try `docker ps -a`",
            )],
            None => vec![late(Group::Images, "leftovers", remedy)],
        }
    };
    let model = async {
        let Some(paths) = &paths else {
            return Vec::new();
        };
        let server = ModelServer::new(&engine, &config.inference, paths);
        let (mut checks, server) = tokio::join!(
            model_file(config, paths, Some(facts), cancel),
            within(model::server(&server, config, cancel))
        );
        checks.push(server.unwrap_or_else(|| {
            late(
                Group::Model,
                "server",
                "`podbay down` ends it, and the next run starts another",
            )
        }));
        checks
    };
    let (details, disk, images, leftovers, model) =
        tokio::join!(details, disk, images, leftovers, model);
    let checks = [details, vec![disk], images, leftovers, model]
        .into_iter()
        .flatten()
        .collect();
    (Some(engine), checks)
}

async fn model_file(
    config: &Config,
    paths: &Paths,
    facts: Option<&podbay_engine::Facts>,
    cancel: &CancellationToken,
) -> Vec<Check> {
    let remedy = "its disk does not answer: move the file to another one";
    within(model::file(config, paths, facts, cancel))
        .await
        .unwrap_or_else(|| vec![late(Group::Model, "file", remedy)])
}

async fn of_state(root: Option<&Path>) -> Vec<Check> {
    let Some(root) = root.map(Path::to_owned) else {
        return Vec::new();
    };
    let remedy = "its disk does not answer: set PODBAY_HOME to a folder on a local one";
    blocking(move || state::look(&root))
        .await
        .unwrap_or_else(|| vec![late(Group::State, "folder", remedy)])
}

async fn of_project(config: &Config, named: Option<PathBuf>, root: Option<&Path>) -> Vec<Check> {
    if config.sandbox.backend == Backend::Attach {
        return vec![settings::attached_project(named.is_some())];
    }
    let root = root.unwrap_or(Path::new("/nonexistent")).to_owned();
    let remedy = "its disk does not answer: use a folder on a local one";
    let found = blocking(move || settings::project(named.as_deref(), &root)).await;
    found.unwrap_or_else(|| vec![late(Group::Settings, "project", remedy)])
}

async fn of_endpoint(
    config: &Config,
    key: Option<Secret>,
    cancel: &CancellationToken,
) -> Vec<Check> {
    let Some(text) = &config.llm.endpoint else {
        return Vec::new();
    };
    let remedy = "check its address, and that it is well";
    let found = within(model::endpoint(text, config, key, cancel)).await;
    found.unwrap_or_else(|| vec![late(Group::Model, "endpoint", remedy)])
}

async fn within<T>(look: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(LIMIT, look).await.ok()
}

/// Runs what may wait for a disk on a thread of its own. One that never comes back is left behind.
async fn blocking<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    within(tokio::task::spawn_blocking(look)).await?.ok()
}

fn late(group: Group, name: &str, remedy: &str) -> Check {
    Check::fail(
        group,
        name,
        format!("no answer within {} s", LIMIT.as_secs()),
        remedy,
    )
}

/// Cuts a text, and hides the key in it: a server may repeat what it was sent.
fn bounded(text: String, key: Option<&Secret>) -> String {
    let text = match key {
        Some(key) => key.hide_in(text),
        None => text,
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_an_interruption_breaks_is_no_finding() {
        for _ in 0..64 {
            let cancel = CancellationToken::new();
            let look = async {
                tokio::task::yield_now().await;
                cancel.cancel();
            };
            assert!(matches!(
                unless_cancelled(look, &cancel).await,
                Err(Error::Interrupted)
            ));
        }
        assert!(matches!(
            unless_cancelled(async { 7 }, &CancellationToken::new()).await,
            Ok(7)
        ));
    }

    #[test]
    fn texts_are_cut_and_hold_no_key() {
        let key = Secret::new("sk-sesame");
        assert_eq!(
            bounded("it said sk-sesame".to_owned(), Some(&key)),
            "it said ***"
        );
        let cut = bounded("é".repeat(LONGEST + 10), None);
        assert_eq!(cut.chars().count(), LONGEST + 1);
    }
}
