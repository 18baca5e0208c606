//! The addresses of loopback that names have, and what listens there for programs that know nothing
//! of proxies.
//!
//! A name gets an address of its own, so that a connection to that says which host is meant. What
//! may be reached the gateway decides, of each connection.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use podbay_wire::EgressPurpose;
use tokio::net::TcpListener;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::asker;
use super::dns::Found;
use super::gateway;
use super::proxy::Carrier;

/// Names that are remembered. One that was denied makes room, else the one that was used the
/// longest ago.
const NAMES: usize = 256;

/// Ports that are listened at, over all names. Each takes a descriptor, of which this process has
/// 4096.
const LISTENERS: usize = 512;

/// For so long what the gateway said of a name holds: resolvers ask for both families at once.
const FRESH: Duration = Duration::from_millis(500);

/// After so long without a question and without a connection the ports are free again. A program of
/// the sandbox cannot listen at all addresses while one of them is taken.
const UNUSED: Duration = Duration::from_mins(5);

/// Between the tests whether that is so, and after an error of a listener.
const LOOK: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// Addresses are given out one after the other: the same one again only after all others, so that
/// a program that kept one does not meet another host there.
const FIRST: u32 = u32::from_be_bytes([127, 80, 0, 1]);
const ADDRESSES: u32 = 1 << 20;

pub(super) struct Names {
    carrier: Carrier,
    state: Mutex<State>,
    listeners: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    known: HashMap<String, Arc<Known>>,
    n_given: u32,
}

/// One name. Its lock is held while the gateway is asked.
struct Known {
    address: Ipv4Addr,
    used: Arc<Mutex<Instant>>,
    now: tokio::sync::Mutex<Now>,
}

#[derive(Default)]
struct Now {
    said: Option<(Instant, Found)>,
    listening: BTreeMap<u16, AbortOnDropHandle<()>>,
}

impl Names {
    pub(super) fn new(carrier: Carrier) -> Arc<Self> {
        Arc::new(Self {
            carrier,
            state: Mutex::default(),
            listeners: Arc::new(Semaphore::new(LISTENERS)),
        })
    }

    /// Returns what becomes of a name, with somebody listening at its address where it has one.
    pub(super) async fn find(self: Arc<Self>, name: String, asker: SocketAddr) -> Found {
        let Some(known) = self.known(&name) else {
            return Found::Unknown;
        };
        let mut now = known.now.lock().await;
        match now.said {
            Some((at, found)) if at.elapsed() < FRESH => found,
            _ => {
                let found = self.ask(&name, &known, &mut now, asker).await;
                now.said = Some((Instant::now(), found));
                found
            }
        }
    }

    async fn ask(&self, name: &str, known: &Arc<Known>, now: &mut Now, asker: SocketAddr) -> Found {
        let program = asker::of_datagram(asker);
        let Ok(ports) = gateway::ports_of(self.carrier.socket(), name, program).await else {
            return Found::Unknown;
        };
        now.listening
            .retain(|port, listening| ports.contains(port) && !listening.is_finished());
        if ports.is_empty() {
            return Found::Denied;
        }
        for port in ports {
            if !now.listening.contains_key(&port)
                && let Ok(listening) = self.listen(name, known, port).await
            {
                now.listening.insert(port, listening);
            }
        }
        // Where nothing listens a program would meet another one of the sandbox.
        if now.listening.is_empty() {
            Found::Unknown
        } else {
            Found::Address(known.address)
        }
    }

    async fn listen(
        &self,
        name: &str,
        known: &Arc<Known>,
        port: u16,
    ) -> io::Result<AbortOnDropHandle<()>> {
        let place = Arc::clone(&self.listeners)
            .try_acquire_owned()
            .map_err(|_| io::ErrorKind::QuotaExceeded)?;
        let listener = TcpListener::bind((known.address, port)).await?;
        let purpose = EgressPurpose::Direct {
            host: name.to_owned(),
            port,
        };
        let accepting = accept(
            listener,
            self.carrier.clone(),
            purpose,
            Arc::clone(&known.used),
            place,
        );
        Ok(AbortOnDropHandle::new(tokio::spawn(accepting)))
    }

    /// Returns a name's place; nothing where all are in use just now.
    fn known(&self, name: &str) -> Option<Arc<Known>> {
        let mut state = lock(&self.state);
        if let Some(known) = state.known.get(name) {
            *lock(&known.used) = Instant::now();
            return Some(Arc::clone(known));
        }
        if state.known.len() >= NAMES {
            let oldest = state
                .known
                .iter()
                .filter_map(|(name, known)| {
                    let now = known.now.try_lock().ok()?;
                    Some(((!now.listening.is_empty(), *lock(&known.used)), name))
                })
                .min()
                .map(|(_, name)| name.clone())?;
            state.known.remove(&oldest);
        }
        let known = Arc::new(Known {
            address: Ipv4Addr::from_bits(FIRST + state.n_given % ADDRESSES),
            used: Arc::new(Mutex::new(Instant::now())),
            now: tokio::sync::Mutex::default(),
        });
        state.n_given = state.n_given.wrapping_add(1);
        state.known.insert(name.to_owned(), Arc::clone(&known));
        Some(known)
    }
}

/// Carries what connects, until nothing has for long.
async fn accept(
    listener: TcpListener,
    carrier: Carrier,
    purpose: EgressPurpose,
    used: Arc<Mutex<Instant>>,
    _place: OwnedSemaphorePermit,
) {
    loop {
        match tokio::time::timeout(LOOK, listener.accept()).await {
            Ok(Ok((client, from))) => {
                *lock(&used) = Instant::now();
                carrier.carry(client, from, purpose.clone()).await;
            }
            Ok(Err(_)) => tokio::time::sleep(PAUSE).await,
            Err(_) if lock(&used).elapsed() > UNUSED => return,
            Err(_) => {}
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
