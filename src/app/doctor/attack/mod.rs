//! `--attack`: what an agent could try against its sandbox, tried in the user's own set-up.
//!
//! A throw-away project and two sandboxes made from the user's settings: one as they are, one with
//! less memory and fewer processes, in which filling up is quick and does not trouble the machine.
//! What is tried stands in `attacks.toml`, with what must happen; nothing does harm where it
//! succeeds. With the backend `attach` there is one sandbox, and it is the real one.
//!
//! Start with [`attack`], then `table.rs`.

mod frames;
mod ground;
mod inside;
mod limits;
mod paths;
mod table;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use async_recursion::async_recursion as boxed;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use self::ground::Ground;
use self::inside::Inside;
use self::limits::Machine;
use self::limits::Measure;
use self::table::Row;
use self::table::rows;
use crate::Error;
use crate::Front;
use crate::Place;
use crate::bench;
use crate::bench::Bench;
use crate::is_attached;
use podbay_config::Config;
use podbay_event::ByteSize;
use podbay_event::Kind;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Unit;
use podbay_guest::attack::ATTACKS;
use podbay_guest::attack::Finding;
use podbay_sandbox::Lock;
use podbay_sandbox::Sandbox;
use podbay_wire::message::Facts;

/// Most memory and processes of the sandbox that is filled up.
const SMALL: (ByteSize, u32) = (ByteSize::mib(256), 128);

/// Most growth of the project in that sandbox: more than what comes and goes on a disk that others use.
const GROWTH: ByteSize = ByteSize::mib(64);

/// The row about it: growth counts from the start of a sandbox, so that it has one of its own.
const GROWING: &str = "R-18";

/// How often a row is tried where others, who use the same disk, may have decided how it came out.
const TRIES: u32 = 8;

/// Longest text of what came of a row, in characters.
const LONGEST: usize = 400;

/// Whether the sandbox stood up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Held,
    Failed,
}

/// One row: what was tried, what must happen, what did. The last may hold words from the sandbox:
/// they are made safe where they are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// As docs/security-cases.md has it.
    pub id: &'static str,
    pub group: &'static str,
    pub tried: &'static str,
    pub expected: &'static str,
    pub got: String,
    pub status: Outcome,
    /// What to do about it; always there where it failed.
    pub remedy: Option<&'static str>,
}

/// Everything that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Siege {
    /// The worst of all.
    pub status: Outcome,
    pub attacks: Vec<Attempt>,
}

impl Siege {
    fn new(attacks: Vec<Attempt>) -> Self {
        let failed = attacks
            .iter()
            .any(|attempt| attempt.status == Outcome::Failed);
        Self {
            status: if failed {
                Outcome::Failed
            } else {
                Outcome::Held
            },
            attacks,
        }
    }

    pub fn n_failed(&self) -> usize {
        self.attacks
            .iter()
            .filter(|attempt| attempt.status == Outcome::Failed)
            .count()
    }
}

/// Tries everything. That a sandbox is not available is an error; that one does not hold is a row.
#[boxed]
pub async fn attack(place: &Place, front: &Front) -> Result<Siege, Error> {
    let doing = |source| Error::Io {
        doing: "make a project to throw away (TMPDIR names another place)".to_owned(),
        source,
    };
    let ground = if is_attached(&place.config) {
        None
    } else {
        Some(Ground::make(&place.project).map_err(doing)?)
    };
    let project = ground
        .as_ref()
        .map_or_else(|| place.project.clone(), Ground::project);
    let place = Place {
        project: project.clone(),
        config: place.config.clone(),
        state: place.state.clone(),
        mode: place.mode,
        api_key: place.api_key.clone(),
        resume: None,
        plan: crate::PlanStart::AsLeft,
    };
    let cancel = front.interrupt.run();
    let mut camp = Box::pin(Camp::pitch(&place, &place.config, front, cancel)).await?;
    let engine = match camp.bench.engine() {
        Ok(engine) => Some(engine.facts(cancel).await.map_err(Error::Engine)?),
        // The sandbox is somebody else's.
        Err(_) => None,
    };
    let (memory, n_cpus) = (
        engine.map(|facts| facts.memory),
        engine.map(|facts| facts.n_cpus),
    );
    let facts = camp.facts.clone();
    let measure = Measure {
        config: &place.config,
        machine: Machine::look(memory, &project),
        memory: facts.memory_bytes,
        n_processes: facts.n_processes,
        millicores: facts.millicores,
        asked: ground.as_ref().map(|_| asked(&place.config, n_cpus)),
        growth: ground
            .as_ref()
            .map(|_| smaller(&place.config).sandbox.disk.bytes()),
    };
    let mut is_small = false;
    let mut attempts = Vec::new();
    for (at, row) in rows().iter().enumerate() {
        let is_resource = row.group == "resources";
        let mut is_new = ground.is_some() && (row.id == GROWING || is_resource && !is_small);
        is_small |= is_resource && ground.is_some();
        let config = if is_small {
            smaller(&place.config)
        } else {
            place.config.clone()
        };
        step(front, at, &row.tried, false);
        let mut n_tried = 0;
        let found = loop {
            if is_new {
                Box::pin(camp.strike()).await;
                camp = Box::pin(Camp::pitch(&place, &config, front, cancel)).await?;
            }
            let found = tokio::select! {
                found = camp.attempt(row, &measure, cancel) => found,
                () = cancel.cancelled() => Err(Error::Interrupted),
            };
            n_tried += 1;
            // It says nothing of the sandbox then.
            let is_disturbed = camp.is_disturbed.load(Ordering::Relaxed);
            is_new = ground.is_some()
                && is_disturbed
                && n_tried < TRIES
                && found.as_ref().is_ok_and(|found| !found.held);
            if !is_new {
                break found;
            }
        };
        match found {
            Ok(found) => attempts.push(attempt(row, found)),
            Err(error) => {
                Box::pin(camp.strike()).await;
                return Err(error);
            }
        }
    }
    step(front, rows().len(), "", true);
    Box::pin(camp.strike()).await;
    Ok(Siege::new(attempts))
}

/// A sandbox under attack, and what goes with it.
struct Camp {
    bench: Bench,
    sandbox: Sandbox,
    facts: Facts,
    lock: Option<Lock>,
    /// The folder that the attacks by tools go for, below `/workspace`.
    folder: String,
    /// Others may have filled the disk, so that a command was ended for it, or have freed as much
    /// as one took.
    is_disturbed: AtomicBool,
}

impl Camp {
    async fn pitch(
        place: &Place,
        config: &Config,
        front: &Front,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let mut n_tried = 0;
        loop {
            let camp = Self::make(place, config, front, cancel).await?;
            n_tried += 1;
            let made = camp
                .inside(cancel)
                .attack("links", std::slice::from_ref(&camp.folder))
                .await
                .map(inside::Ran::found);
            if made.as_ref().is_ok_and(|found| found.held) {
                return Ok(camp);
            }
            let is_disturbed = camp.is_disturbed.load(Ordering::Relaxed);
            Box::pin(camp.strike()).await;
            let found = made?;
            if !is_disturbed || n_tried == TRIES {
                let hint = "the project of the sandbox must be writable for this, and its guest of this version";
                return Err(Error::usage(
                    format!("the attacks cannot begin: {}", found.got),
                    hint,
                ));
            }
        }
    }

    async fn make(
        place: &Place,
        config: &Config,
        front: &Front,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let place = Place {
            project: place.project.clone(),
            config: config.clone(),
            state: place.state.clone(),
            mode: place.mode,
            api_key: None,
            resume: None,
            plan: crate::PlanStart::AsLeft,
        };
        let bench = Bench::open(config, &place.state, bench::Ground::open(&place)?, cancel).await?;
        let lock = bench.lock()?;
        let sink = Arc::clone(&front.sink);
        let progress: ProgressSink = Arc::new(move |step| sink(Kind::Progress(step).into()));
        // That a sandbox ended is a row's to tell, and a user who reads rows need not be warned
        // twice.
        let (sandbox, started) = bench
            .start(&progress, None, Arc::new(|_| {}), cancel)
            .await?;
        let folder = format!(".podbay-attack-{}", std::process::id());
        Ok(Self {
            bench,
            sandbox,
            facts: started.facts,
            lock: Some(lock),
            folder,
            is_disturbed: AtomicBool::new(false),
        })
    }

    fn inside<'a>(&'a self, cancel: &'a CancellationToken) -> Inside<'a> {
        let is_disturbed = &self.is_disturbed;
        Inside {
            sandbox: &self.sandbox,
            facts: &self.facts,
            folder: self.folder.clone(),
            is_disturbed,
            cancel,
        }
    }

    async fn attempt(
        &self,
        row: &Row,
        measure: &Measure<'_>,
        cancel: &CancellationToken,
    ) -> Result<Finding, Error> {
        let inside = self.inside(cancel);
        let id = row.id.as_str();
        if let Some(found) = limits::attack(&inside, measure, id).await? {
            return Ok(found);
        }
        if let Some(found) = paths::attack(&inside, id).await? {
            return Ok(found);
        }
        if let Some(found) = frames::attack(id).await {
            return Ok(found);
        }
        match id {
            "ESC-20" => neighbours(&inside).await,
            "N-04" => listeners(&inside).await,
            "S-01" => {
                let found = inside.attack(id, &[]).await?.found();
                let of_image = self.variables_of_image(cancel).await?;
                Ok(environment(&found, &of_image))
            }
            id if ATTACKS.iter().any(|(known, _)| *known == id) => {
                inside.attack(id, &[]).await.map(inside::Ran::found)
            }
            id => unreachable!("a test sees to it that somebody executes {id}"),
        }
    }

    /// Returns what the image sets, as `NAME=value`; nothing where no engine is ours to ask.
    async fn variables_of_image(&self, cancel: &CancellationToken) -> Result<Vec<String>, Error> {
        let Ok(engine) = self.bench.engine() else {
            return Ok(Vec::new());
        };
        let chosen = self.bench.config.sandbox.image.as_deref();
        let name = chosen.unwrap_or(podbay_sandbox::DEFAULT_IMAGE);
        let facts = engine.image(name, cancel).await.map_err(Error::Engine)?;
        Ok(facts.map(|facts| facts.env).unwrap_or_default())
    }

    async fn strike(self) {
        // A new token: what was made is removed also when the user has had enough.
        let cancel = CancellationToken::new();
        let removed = self
            .inside(&cancel)
            .attack("tidy", std::slice::from_ref(&self.folder))
            .await;
        tracing::debug!(
            held = removed.is_ok_and(|ran| ran.finding.is_some_and(|finding| finding.held)),
            "tidied up"
        );
        self.sandbox.close().await;
        if let Some(lock) = self.lock {
            lock.release();
        }
    }
}

/// Lets a command wait while another, of a call of its own, goes for it.
async fn neighbours(inside: &Inside<'_>) -> Result<Finding, Error> {
    let terms = inside.terms();
    let goes_for_it = async {
        let ran = inside.attack("ESC-20", &[]).await;
        terms.cancel.cancel();
        ran
    };
    let (waited, ran) = tokio::join!(inside.attack_with("neighbour", &[], &terms), goes_for_it);
    waited?;
    ran.map(inside::Ran::found)
}

/// Opens a port and a socket by name on this machine, as a service of the user's would, and lets
/// the sandbox look for them.
async fn listeners(inside: &Inside<'_>) -> Result<Finding, Error> {
    use std::net::TcpListener;
    use std::net::UdpSocket;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    use std::os::unix::net::UnixListener;
    let doing = |source| Error::Io {
        doing: "open a port for the sandbox to look for".to_owned(),
        source,
    };
    // Whoever comes is never answered; the kernel alone takes the connection.
    let port = TcpListener::bind(("0.0.0.0", 0)).map_err(doing)?;
    let number = port.local_addr().map_err(doing)?.port();
    let name = format!("podbay-attack-{}", std::process::id());
    let _named = SocketAddr::from_abstract_name(&name)
        .and_then(|address| UnixListener::bind_addr(&address))
        .map_err(doing)?;
    // The address by which this machine would go out; nothing is sent.
    let own = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket
            .connect("192.0.2.1:9")
            .and_then(|()| socket.local_addr())
    });
    let mut addresses = vec![
        format!("127.0.0.1:{number}"),
        format!("172.17.0.1:{number}"),
        format!("@{name}"),
    ];
    addresses.extend(own.ok().map(|own| format!("{}:{number}", own.ip())));
    let found = inside.attack("N-04", &addresses).await?.found();
    drop(port);
    Ok(found)
}

/// Variables that shells set, alike on many machines.
const COMMON: [&str; 4] = ["TZ", "PWD", "SHLVL", "_"];

/// Judges what commands find in their environment by what is in ours; it never says a value. What
/// Podbay or the image sets is no leak where the user's own value happens to be the same.
fn environment(found: &Finding, of_image: &[String]) -> Finding {
    if !found.held {
        return found.clone();
    }
    let inside: Vec<&str> = found.got.split('\0').collect();
    let ours = std::env::vars_os().filter(|(name, value)| {
        let name = name.to_string_lossy();
        !COMMON.contains(&name.as_ref())
            && !podbay_sandbox::is_own_variable(&name)
            && !name.starts_with("LC_")
            && !value.is_empty()
    });
    let leaked: Vec<String> = ours
        .filter(|(name, value)| {
            let pair = format!("{}={}", name.display(), value.display());
            inside.contains(&pair.as_str()) && !of_image.contains(&pair)
        })
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    if leaked.is_empty() {
        return Finding {
            held: true,
            got: format!("{} variables, none of them yours", inside.len()),
        };
    }
    Finding {
        held: false,
        got: format!("found: {}", leaked.join(", ")),
    }
}

/// Returns the settings of the sandbox that is filled up.
fn smaller(config: &Config) -> Config {
    let mut config = config.clone();
    let sandbox = &mut config.sandbox;
    sandbox.memory = ByteSize::new(sandbox.memory.bytes().min(SMALL.0.bytes()));
    sandbox.pids = sandbox.pids.min(SMALL.1);
    if sandbox.disk.bytes() > 0 {
        sandbox.disk = ByteSize::new(sandbox.disk.bytes().min(GROWTH.bytes()));
    }
    config
}

/// Returns how many thousandths of a core the settings ask for; an engine is never asked for more
/// than it has.
fn asked(config: &Config, n_cpus: Option<u32>) -> u64 {
    let there = n_cpus.map_or(f64::INFINITY, |n| f64::from(n.max(1)));
    (config.sandbox.cpus.min(there) * 1000.0) as u64
}

fn attempt(row: &'static Row, found: Finding) -> Attempt {
    let status = if found.held {
        Outcome::Held
    } else {
        Outcome::Failed
    };
    let got = match found.got.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &found.got[..end]),
        None => found.got,
    };
    let remedy = (status == Outcome::Failed).then_some(row.remedy.as_str());
    Attempt {
        id: &row.id,
        group: &row.group,
        tried: &row.tried,
        expected: &row.expected,
        got,
        status,
        remedy,
    }
}

fn step(front: &Front, done: usize, detail: &str, finished: bool) {
    let task = "attacking a sandbox of your settings".to_owned();
    let total = Some(rows().len() as u64);
    let progress = Progress {
        task,
        done: done as u64,
        total,
        unit: Unit::Steps,
        detail: detail.to_owned(),
        finished,
    };
    (front.sink)(Kind::Progress(progress).into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_ours_is_named_without_its_value() {
        // Cargo sets this one, and nobody else has it like this.
        let pair = format!("CARGO_MANIFEST_DIR={}", env!("CARGO_MANIFEST_DIR"));
        let found = |got: String| Finding { held: true, got };
        assert_eq!(
            environment(&found(format!("PATH=/bin\0{pair}")), &[]),
            Finding {
                held: false,
                got: "found: CARGO_MANIFEST_DIR".to_owned()
            }
        );
        assert!(environment(&found("PATH=/bin".to_owned()), &[]).held);
        assert!(environment(&found(pair.clone()), &[pair]).held);
    }

    #[test]
    fn one_row_that_fails_decides_and_has_its_remedy() {
        let row = &rows()[0];
        let held = attempt(
            row,
            Finding {
                held: true,
                got: "x".repeat(LONGEST + 5),
            },
        );
        let failed = attempt(
            row,
            Finding {
                held: false,
                got: String::new(),
            },
        );
        assert_eq!((held.remedy, held.got.chars().count()), (None, LONGEST + 1));
        assert_eq!(failed.remedy, Some(row.remedy.as_str()));
        let siege = Siege::new(vec![held.clone(), failed]);
        assert_eq!((siege.status, siege.n_failed()), (Outcome::Failed, 1));
        assert_eq!(Siege::new(vec![held]).status, Outcome::Held);
    }

    #[test]
    fn the_box_that_is_filled_up_is_never_larger_than_the_settings() {
        let mut config = Config::default();
        config.sandbox.pids = 20;
        let small = smaller(&config).sandbox;
        assert_eq!(
            (small.pids, small.memory, small.disk),
            (20, SMALL.0, GROWTH)
        );
        config.sandbox.disk = ByteSize::new(0);
        assert_eq!(
            smaller(&config).sandbox.disk.bytes(),
            0,
            "no limit stays none"
        );
    }
}
