//! A client's connection, and the one exchange (a request with its answer) that it has at a time.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::attempt::Activity;
use super::attempt::OpenAttempt;
use super::attempt::Traffic;
use super::connection::Origin;
use super::forward::Kept;
use super::gateway::ENDING;
use super::gateway::Shared;
use super::grant::Grant;
use super::head::Refusal;
use super::head::Refused;
use super::tunnel::idle_for;

/// Why a stream ended whose rule is gone.
pub(crate) const WITHDRAWN: &str = "cut: the rule that allowed it was withdrawn";

pub(crate) struct Client {
    pub shared: Arc<Shared>,
    pub activity: Arc<Activity>,
    /// Who asks, and for which host.
    pub origin: Origin,
    refused: Refused,
    current: Mutex<Option<(Grant, Arc<Traffic>)>>,
    kept: Mutex<Option<Kept>>,
    /// Its place among the connections, which its tunnel keeps.
    place: Arc<OwnedSemaphorePermit>,
}

impl Client {
    pub(crate) fn new(
        shared: Arc<Shared>,
        origin: Origin,
        refused: Refused,
        place: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            activity: Activity::new(),
            origin,
            refused,
            current: Mutex::default(),
            kept: Mutex::default(),
            place: Arc::new(place),
        })
    }

    pub(crate) fn place(&self) -> Arc<OwnedSemaphorePermit> {
        Arc::clone(&self.place)
    }

    pub(crate) fn take_refusal(&self) -> Option<Refusal> {
        lock(&self.refused).take()
    }

    /// Returns the connection of the last exchange, if it ended well.
    pub(crate) fn take_kept(&self) -> Option<Kept> {
        lock(&self.kept).take()
    }

    pub(crate) fn keep(&self, kept: Kept) {
        *lock(&self.kept) = Some(kept);
    }

    /// Waits until the rules do not allow the exchange that there is any more. A kept connection
    /// without one is closed at any change.
    pub(crate) async fn until_withdrawn(&self) {
        let mut in_force = self.shared.in_force.clone();
        while in_force.changed().await.is_ok() {
            let rules = &in_force.borrow_and_update().rules;
            match &*lock(&self.current) {
                Some((grant, traffic)) if !grant.holds(rules) => {
                    traffic.end(WITHDRAWN);
                    return;
                }
                Some(_) => {}
                None => drop(self.take_kept()),
            }
        }
    }

    /// Waits until nothing has gone for so long.
    pub(crate) async fn until_idle(&self, idle: Duration) {
        self.activity.until_idle(idle).await;
        self.end(&idle_for(idle));
    }

    /// Waits until the role ends.
    pub(crate) async fn until_ending(&self) {
        self.shared.ending.cancelled().await;
        self.end(ENDING);
    }

    /// Says of the exchange that there is why it ends.
    fn end(&self, why: &str) {
        if let Some((_, traffic)) = &*lock(&self.current) {
            traffic.end(why);
        }
    }
}

/// An exchange that was allowed, up to the end of its answer's body.
pub(crate) struct Exchange {
    client: Arc<Client>,
    attempt: Option<OpenAttempt>,
    traffic: Arc<Traffic>,
}

impl Exchange {
    pub(crate) fn begin(client: &Arc<Client>, attempt: OpenAttempt, grant: &Grant) -> Self {
        let traffic = Arc::clone(attempt.traffic());
        *lock(&client.current) = Some((grant.clone(), Arc::clone(&traffic)));
        Self {
            client: Arc::clone(client),
            attempt: Some(attempt),
            traffic,
        }
    }

    pub(crate) fn deny(&mut self, reason: &str) {
        if let Some(attempt) = &mut self.attempt {
            attempt.deny(reason);
        }
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Ends it as an exchange, and continues as a tunnel.
    pub(crate) fn into_attempt(mut self) -> OpenAttempt {
        self.attempt.take().expect("it is there until here")
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        *lock(&self.client.current) = None;
        self.client.activity.touch();
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
