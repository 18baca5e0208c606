//! Connections of programs that know nothing of proxies: the guest says which host the program
//! believes to be connected to, and what it sends shows which kind of access it is.

use std::sync::Arc;

use bytes::BytesMut;
use podbay_wire::EgressAccess;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;

use super::attempt::Activity;
use super::attempt::OpenAttempt;
use super::connect::refuse;
use super::connection;
use super::connection::Origin;
use super::gateway::Shared;
use super::grant::Allowed;
use super::grant::Grant;
use super::grant::GrantedAccess;
use super::host_name::HostName;
use super::reach::Unreached;
use super::reach::Wanted;
use super::rule::Access;
use super::tls::ACCESS_DENIED;
use super::tls::HANDSHAKE;
use super::tls::read_hello;
use super::tunnel::Tunnel;
use super::tunnel::until_cut;

/// Such a connection, and what was read of it.
pub(crate) struct Direct {
    pub stream: UnixStream,
    pub read: BytesMut,
    pub host: HostName,
    pub port: u16,
    pub program: Option<String>,
}

/// What a program speaks, by its first byte.
enum Spoken {
    Tls,
    /// Or what is neither that nor TLS, which the answer says.
    Http,
    Nothing,
    Closed,
}

impl Direct {
    pub(crate) async fn serve(mut self, shared: Arc<Shared>, place: OwnedSemaphorePermit) {
        // What may be anything is not looked at: its server may be the first to speak.
        let raw = shared
            .in_force
            .borrow()
            .decide(&self.host, self.port, Access::Raw);
        match raw {
            Ok(allowed) => self.tunnel(allowed, GrantedAccess::Raw, &shared).await,
            Err(reason) => match self.spoken(&shared).await {
                Spoken::Tls => self.tls(&shared).await,
                Spoken::Http => {
                    let origin = Origin {
                        program: self.program,
                        host: Some((self.host, self.port)),
                    };
                    connection::serve_http(self.stream, self.read, origin, shared, place).await;
                }
                Spoken::Nothing => {
                    if let Some(mut attempt) = self.attempt(EgressAccess::Unknown, &shared).await {
                        attempt.deny(&reason);
                    }
                }
                Spoken::Closed => {}
            },
        }
    }

    async fn spoken(&mut self, shared: &Shared) -> Spoken {
        if self.read.is_empty() {
            let first = self.stream.read_buf(&mut self.read);
            let waited = tokio::select! {
                () = shared.ending.cancelled() => return Spoken::Closed,
                waited = tokio::time::timeout(shared.limits.hello_time, first) => waited,
            };
            match waited {
                Err(_) => return Spoken::Nothing,
                Ok(Ok(0) | Err(_)) => return Spoken::Closed,
                Ok(Ok(_)) => {}
            }
        }
        if self.read[0] == HANDSHAKE {
            Spoken::Tls
        } else {
            Spoken::Http
        }
    }

    /// Returns the attempt that this is; nothing where the role ends.
    async fn attempt(&self, access: EgressAccess, shared: &Shared) -> Option<OpenAttempt> {
        // Where the controller does not read, connections wait, and none goes unrecorded.
        let place = shared.attempts.clone().reserve_owned().await.ok()?;
        let mut attempt = OpenAttempt::new(place, Activity::new(), self.program.clone());
        attempt.is_for(self.host.as_str(), self.port, access);
        Some(attempt)
    }

    async fn tls(mut self, shared: &Arc<Shared>) {
        let decided = shared
            .in_force
            .borrow()
            .decide(&self.host, self.port, Access::Tls);
        match decided {
            Ok(allowed) => self.tunnel(allowed, GrantedAccess::Tls, shared).await,
            Err(reason) => {
                if let Some(mut attempt) = self.attempt(EgressAccess::Tls, shared).await {
                    attempt.deny(&reason);
                }
                // A client that does not read it is told by the end of the stream.
                drop(self.stream.write_all(&ACCESS_DENIED).await);
            }
        }
    }

    async fn tunnel(self, allowed: Allowed, access: GrantedAccess, shared: &Arc<Shared>) {
        let kind = if matches!(access, GrantedAccess::Raw) {
            EgressAccess::Raw
        } else {
            EgressAccess::Tls
        };
        let Some(mut attempt) = self.attempt(kind, shared).await else {
            return;
        };
        attempt.allow(kind, &allowed.rule);
        let Self {
            mut stream,
            read,
            host,
            port,
            ..
        } = self;
        let mut grant = Grant {
            host,
            port,
            access,
            is_private: false,
        };
        let first = match grant.access {
            GrantedAccess::Tls => {
                let hello = read_hello(&mut stream, read.to_vec(), &grant.host, &shared.limits);
                match hello.await {
                    Ok(hello) => hello.into(),
                    Err(reason) => {
                        attempt.deny(&reason.to_string());
                        refuse(stream, &grant, &reason).await;
                        return;
                    }
                }
            }
            _ => read.freeze(),
        };
        let reached = {
            let wanted = Wanted {
                host: &grant.host,
                port,
                private: allowed.private,
                upstream: allowed.upstream.as_ref(),
            };
            tokio::select! {
                () = shared.ending.cancelled() => return,
                reached = shared.reach.reach(&wanted) => reached,
            }
        };
        let reached = match reached {
            Ok(reached) => reached,
            // The program sees a connection that closes; the attempt says why.
            Err(Unreached::Denied(reason)) => return attempt.deny(&reason),
            Err(Unreached::Failed(problem) | Unreached::TimedOut(problem)) => {
                return attempt.fail(&problem);
            }
        };
        grant.is_private = reached.is_private;
        let traffic = Arc::clone(attempt.traffic());
        let carrying = async {
            let tunnel = Tunnel {
                client: stream,
                from_client: first,
                server: reached.stream,
                from_server: bytes::Bytes::new(),
            };
            // Either end may hang up as it likes.
            drop(tunnel.carry(&traffic).await);
        };
        until_cut(carrying, shared, &grant, &traffic).await;
    }
}
