//! A session's gateway: made when there is the first rule, kept alive with the rules of the moment,
//! and removed with the session.

use std::fmt;
use std::sync::Arc;
use std::sync::PoisonError;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use podbay_egress::host_name::HostName;
use podbay_egress::rule::Access;
use podbay_egress::rule::Decision;
use podbay_egress::rule::Request;
use podbay_egress::rule::Rules;
use podbay_engine::ContainerId;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_event::InstanceId;
use podbay_event::Kind;
use podbay_event::Sink;
use podbay_wire::EgressEvent;
use podbay_wire::EgressRule;
use podbay_wire::HOST_MACHINE;
use podbay_wire::PROTOCOL;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::Error;
use super::super::Spec;
use super::super::docker::Filling;
use super::DeniedHost;
use super::Mark;
use super::NetworkMode;
use super::attempts::Attempts;
use super::container::container;
use super::container::volume_options;
use super::line::Line;
use super::own_machine;
use super::own_machine::Ports;
use super::talk::LAST_WORDS;

/// How often within [`WINDOW`] a gateway that ended is started anew.
const RESTARTS: usize = 5;
const WINDOW: Duration = Duration::from_mins(10);

/// For what a command was denied to be told. A gateway that lives needs a tenth of a millisecond.
const FLUSH: Duration = Duration::from_millis(500);

/// The engine lets go of a volume some time after its last container is gone.
const REMOVAL_TRIES: u32 = 40;
const REMOVAL_PAUSE: Duration = Duration::from_millis(50);

/// The way of a session's sandboxes to the hosts that rules allow.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

pub(super) struct Inner {
    engine: Engine,
    pub(super) spec: Spec,
    labels: Labels,
    volume: String,
    within: Duration,
    pub(super) sink: Sink,
    pub(super) wanted: watch::Sender<Wanted>,
    pub(super) reached: watch::Sender<Reached>,
    pub(super) attempts: Attempts,
    pub(super) ending: CancellationToken,
    keeping: std::sync::Mutex<Option<JoinHandle<()>>>,
    /// Why the user's own machine is not reached, where no rule lets it be.
    not_offered: Option<String>,
}

/// What a gateway is to be told.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) generation: u64,
    pub(super) rules: Vec<EgressRule>,
    pub(super) flush: u64,
}

/// What it has answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached {
    pub(super) generation: u64,
    pub(super) flush: u64,
    /// Why there is none, and will be none.
    failed: Option<String>,
}

/// Why a gateway that ran does no longer.
pub(super) enum Ended {
    /// It was to end.
    Told,
    Lost(String),
}

impl Gateway {
    /// Makes the volume that the session's sandboxes have mounted, where the plan has a gateway.
    pub(in super::super) async fn prepare(
        engine: &Engine,
        spec: &Spec,
        labels: &Labels,
        within: Duration,
        sink: &Sink,
        cancel: &CancellationToken,
    ) -> Result<Option<Self>, Error> {
        let plan = spec.network();
        if plan.mode != NetworkMode::Allowlist {
            return Ok(None);
        }
        let labels = Labels {
            role: Role::Gateway,
            project: Some(spec.project.key()),
            owner: Some(Owner::current()),
            instance: None,
            ..labels.clone()
        };
        let volume = format!("podbay-gateway-{}", InstanceId::random());
        let options = volume_options();
        engine
            .create_mounted_volume(&volume, &labels, ("tmpfs", "tmpfs", &options), cancel)
            .await
            .map_err(Error::engine("make the volume of the gateway"))?;
        let facts = engine
            .facts(cancel)
            .await
            .map_err(Error::engine("ask what the engine is"))?;
        let not_offered = own_machine::not_offered(facts);
        let mut rules = plan.rules.clone();
        if let Some(message) = &not_offered
            && !Ports::of(&rules).is_empty()
        {
            own_machine::without(&mut rules);
            let message = message.clone();
            sink(Kind::Warning { message }.into());
        }
        let wanted = Wanted {
            generation: 1,
            rules,
            flush: 0,
        };
        Ok(Some(Self(Arc::new(Inner {
            engine: engine.clone(),
            spec: spec.clone(),
            labels,
            volume,
            within,
            sink: Arc::clone(sink),
            wanted: watch::Sender::new(wanted),
            reached: watch::Sender::default(),
            attempts: Attempts::default(),
            ending: CancellationToken::new(),
            keeping: std::sync::Mutex::default(),
            not_offered,
        }))))
    }

    pub(in super::super) fn volume(&self) -> &str {
        &self.0.volume
    }

    /// Starts the gateway, and waits until its rules are in force.
    pub(in super::super) async fn begin(&self, cancel: &CancellationToken) -> Result<(), Error> {
        self.0.start();
        self.0.in_force(1, cancel).await
    }

    /// Starts it without waiting: until it is there, everything is denied.
    pub(in super::super) fn begin_soon(&self) {
        self.0.start();
    }

    /// Whether it is needed from the first command on.
    pub(in super::super) fn is_needed_at_once(&self) -> bool {
        self.0.spec.network().at_once
    }

    /// Returns whether it runs, or is on its way.
    pub fn is_there(&self) -> bool {
        self.0
            .keeping
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    /// Returns the rules that are to be in force.
    pub fn rules(&self) -> Vec<EgressRule> {
        self.0.wanted.borrow().rules.clone()
    }

    /// Puts other rules in force, and starts the gateway with the first of them. Streams that they
    /// do not allow are cut.
    #[boxed]
    pub async fn set_rules(
        &self,
        rules: Vec<EgressRule>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        Rules::parse(&rules).map_err(|error| Error::Gateway {
            problem: error.to_string(),
        })?;
        if let Some(problem) = &self.0.not_offered
            && !Ports::of(&rules).is_empty()
        {
            let problem = problem.clone();
            return Err(Error::Gateway { problem });
        }
        let mut generation = 0;
        self.0.wanted.send_modify(|wanted| {
            wanted.generation += 1;
            wanted.rules = rules;
            generation = wanted.generation;
        });
        self.0.start();
        self.0.in_force(generation, cancel).await
    }

    /// Takes rules back without waiting for it.
    pub fn withdraw(&self, gone: &[EgressRule]) {
        self.0.wanted.send_modify(|wanted| {
            wanted.generation += 1;
            wanted.rules.retain(|rule| !gone.contains(rule));
        });
    }

    /// Returns a mark to ask later what was denied since.
    pub fn mark(&self) -> Mark {
        self.0.attempts.mark()
    }

    /// Returns the hosts that were denied since a mark, also what a command was told just now.
    #[boxed]
    pub async fn denied_since(&self, mark: Mark) -> Vec<DeniedHost> {
        if self.is_there() {
            let mut flush = 0;
            self.0.wanted.send_modify(|wanted| {
                wanted.flush += 1;
                flush = wanted.flush;
            });
            let mut reached = self.0.reached.subscribe();
            let flushed =
                reached.wait_for(|reached| reached.flush >= flush || reached.failed.is_some());
            // What is told too late is an event all the same.
            drop(timeout(FLUSH, flushed).await);
        }
        self.0.attempts.denied_since(mark)
    }

    /// Returns the rule that would let a denied host be reached, if one of its own could. Of one
    /// that was asked for by its name alone it has the usual ports.
    pub fn rule_for(&self, denied: &DeniedHost) -> Option<EgressRule> {
        let host = HostName::parse(&denied.host).ok()?;
        let rule = EgressRule {
            host: if denied.by_name {
                host.to_string()
            } else {
                format!("{host}:{}", denied.port)
            },
            ..EgressRule::default()
        };
        let allows = |rules: &[EgressRule]| {
            let request = Request {
                host: &host,
                port: denied.port,
                access: Access::Tls,
            };
            Rules::parse(rules).is_ok_and(|rules| {
                if denied.by_name {
                    rules.ports_of(&host).is_ok()
                } else {
                    matches!(rules.decide(&request), Decision::Allow { .. })
                }
            })
        };
        if host.as_str() == HOST_MACHINE && self.0.not_offered.is_some() {
            return None;
        }
        let now = self.rules();
        let then = [now.as_slice(), std::slice::from_ref(&rule)].concat();
        (!allows(&now) && allows(&then)).then_some(rule)
    }

    /// Ends it and removes its volume; the sandboxes that have that mounted are gone by now.
    pub(in super::super) async fn close(&self) {
        self.0.ending.cancel();
        let keeping = self
            .0
            .keeping
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(keeping) = keeping {
            // One that panicked is gone as well.
            drop(keeping.await);
        }
        self.0.attempts.tell_rest(&self.0.sink);
        let cancel = CancellationToken::new();
        for _ in 0..REMOVAL_TRIES {
            match self.0.engine.remove_volume(&self.0.volume, &cancel).await {
                Ok(false) if self.is_left(&cancel).await => tokio::time::sleep(REMOVAL_PAUSE).await,
                Ok(_) => return,
                Err(error) => {
                    tracing::debug!(%error, "the gateway's volume is left");
                    return;
                }
            }
        }
        tracing::debug!(volume = self.0.volume, "the gateway's volume is in use");
    }

    async fn is_left(&self, cancel: &CancellationToken) -> bool {
        matches!(
            self.0.engine.volume_folder(&self.0.volume, cancel).await,
            Ok(Some(_))
        )
    }
}

impl Inner {
    fn start(self: &Arc<Self>) {
        let mut keeping = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        if keeping.is_none() && !self.ending.is_cancelled() {
            *keeping = Some(tokio::spawn(Arc::clone(self).keep()));
        }
    }

    async fn in_force(&self, generation: u64, cancel: &CancellationToken) -> Result<(), Error> {
        let mut reached = self.reached.subscribe();
        let answered = reached
            .wait_for(|reached| reached.generation >= generation || reached.failed.is_some());
        let answered = tokio::select! {
            () = cancel.cancelled() => return Err(Error::Cancelled),
            answered = timeout(self.within, answered) => answered,
        };
        let failed = |problem: &str| {
            Err(Error::Gateway {
                problem: problem.to_owned(),
            })
        };
        match answered {
            Ok(Ok(reached)) => reached.failed.as_deref().map_or(Ok(()), failed),
            Ok(Err(_)) => failed("the session ends"),
            Err(_) => failed(&format!("it did not answer within {:?}", self.within)),
        }
    }

    /// Has a gateway running until the session ends, or it is not available.
    async fn keep(self: Arc<Self>) {
        let mut ends: Vec<Instant> = Vec::new();
        loop {
            let reason = match self.serve().await {
                Ok(Ended::Told) => return,
                Ok(Ended::Lost(reason)) => reason,
                Err(_) if self.ending.is_cancelled() => return,
                Err(error) => {
                    let causes =
                        std::iter::successors(std::error::Error::source(&error), |error| {
                            error.source()
                        });
                    causes.fold(error.to_string(), |all, cause| format!("{all}: {cause}"))
                }
            };
            let now = Instant::now();
            ends.retain(|&end| now.duration_since(end) < WINDOW);
            ends.push(now);
            let is_over = ends.len() > RESTARTS || self.reached.borrow().generation == 0;
            let follows = if is_over {
                "there is none any more"
            } else {
                "it is started anew, and what went through it was cut"
            };
            let message = format!("the gateway to the network ended ({reason}): {follows}");
            if is_over {
                let problem = reason.clone();
                self.reached
                    .send_modify(|reached| reached.failed = Some(problem));
            }
            // Of one that never was, whoever wanted it is told.
            if self.reached.borrow().generation != 0 {
                (self.sink)(Kind::Warning { message }.into());
            }
            if is_over {
                return;
            }
        }
    }

    /// Starts one, and tells it what changes, until it ends.
    async fn serve(&self) -> Result<Ended, Error> {
        let (id, mut line) = self.start_one().await?;
        let ended = self.talk(&mut line).await;
        if matches!(ended, Ended::Told) {
            line.commands.end().await;
            let last_words = async {
                while let Some(Ok(event)) = line.events.next().await {
                    self.hear(event, None);
                }
            };
            // What it has not told by then it tells nobody.
            drop(timeout(LAST_WORDS, last_words).await);
        }
        drop(line);
        self.engine.discard(&id).await;
        Ok(ended)
    }

    async fn start_one(&self) -> Result<(ContainerId, Line), Error> {
        let cancel = &self.ending;
        let image = self
            .engine
            .empty_image(cancel)
            .await
            .map_err(Error::engine("make the image of the gateway"))?;
        let mut filling = Filling::begin(&self.engine, &self.spec, cancel).await?;
        loop {
            let instance = InstanceId::random();
            let labels = Labels {
                instance: Some(instance.clone()),
                ..self.labels.clone()
            };
            let plan = self.spec.network();
            let made = container(
                format!("podbay-gateway-{instance}"),
                &image,
                labels,
                &self.volume,
                plan,
            );
            let id = self
                .engine
                .create(&made, cancel)
                .await
                .map_err(Error::engine("make the gateway"))?;
            match self.run(&id).await {
                Ok(line) => return Ok((id, line)),
                Err(error) => {
                    self.engine.discard(&id).await;
                    filling.refill(error, cancel).await?;
                }
            }
        }
    }

    async fn run(&self, id: &ContainerId) -> Result<Line, Error> {
        let cancel = &self.ending;
        let stream = self
            .engine
            .attach(id, cancel)
            .await
            .map_err(Error::engine("attach to the gateway"))?;
        let said = stream.diagnostics();
        self.engine
            .start(id, cancel)
            .await
            .map_err(Error::engine("start the gateway"))?;
        let mut line = Line::new(stream);
        let first = tokio::select! {
            () = cancel.cancelled() => return Err(Error::Cancelled),
            first = timeout(self.within, line.events.next()) => first,
        };
        match first {
            Ok(Some(Ok(EgressEvent::Ready { protocol }))) if protocol == PROTOCOL => Ok(line),
            Ok(other) => {
                let said = said();
                let problem = if said.trim().is_empty() {
                    format!("its first word is {other:?}")
                } else {
                    said.trim().to_owned()
                };
                Err(Error::Gateway { problem })
            }
            Err(_) => Err(Error::Gateway {
                problem: format!("it did not answer within {:?}", self.within),
            }),
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("volume", &self.0.volume)
            .finish_non_exhaustive()
    }
}
