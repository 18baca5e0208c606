//! CONNECT: a tunnel, for TLS that names the same host, or for anything where a rule says so.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Request;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use podbay_wire::EgressAccess;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;

use super::answer::Answer;
use super::answer::denied;
use super::answer::empty;
use super::answer::in_tunnel;
use super::answer::told;
use super::attempt::OpenAttempt;
use super::exchange::Client;
use super::gateway::Shared;
use super::grant::Grant;
use super::grant::GrantedAccess;
use super::reach::ServerStream;
use super::reach::Unreached;
use super::reach::Wanted;
use super::rule::Access;
use super::target::Target;
use super::tls::ACCESS_DENIED;
use super::tls::NotCarried;
use super::tls::read_hello;
use super::tunnel::Tunnel;
use super::tunnel::client_of;
use super::tunnel::until_cut;

pub(crate) async fn connect(
    client: &Arc<Client>,
    mut request: Request<Incoming>,
    target: Target,
    mut attempt: OpenAttempt,
) -> Answer {
    let Target { host, port, .. } = target;
    attempt.is_for(host.as_str(), port, EgressAccess::Tls);
    let decided = {
        let in_force = client.shared.in_force.borrow();
        // What may be anything is not looked at.
        let raw = in_force
            .decide(&host, port, Access::Raw)
            .map(|allowed| (allowed, GrantedAccess::Raw));
        raw.or_else(|_| {
            in_force
                .decide(&host, port, Access::Tls)
                .map(|allowed| (allowed, GrantedAccess::Tls))
        })
    };
    let (allowed, access) = match decided {
        Ok(decided) => decided,
        Err(reason) => {
            attempt.deny(&reason);
            return denied(host.as_str(), port, &reason);
        }
    };
    attempt.allow(
        if matches!(access, GrantedAccess::Raw) {
            EgressAccess::Raw
        } else {
            EgressAccess::Tls
        },
        &allowed.rule,
    );
    let wanted = Wanted {
        host: &host,
        port,
        private: allowed.private,
        upstream: allowed.upstream.as_ref(),
    };
    let reached = match client.shared.reach.reach(&wanted).await {
        Ok(reached) => reached,
        Err(unreached) => return not_reached(&wanted, &unreached, &mut attempt),
    };
    let grant = Grant {
        host,
        port,
        access,
        is_private: reached.is_private,
    };
    let opening = Opening {
        upgrade: hyper::upgrade::on(&mut request),
        server: reached.stream,
        grant,
        attempt,
        _place: client.place(),
    };
    client
        .shared
        .tasks
        .spawn(opening.run(Arc::clone(&client.shared)));
    empty(StatusCode::OK)
}

/// Says why an allowed host was not reached.
pub(crate) fn not_reached(
    wanted: &Wanted<'_>,
    unreached: &Unreached,
    attempt: &mut OpenAttempt,
) -> Answer {
    let (host, port) = (wanted.host, wanted.port);
    match unreached {
        Unreached::Denied(reason) => {
            attempt.deny(reason);
            denied(host.as_str(), port, reason)
        }
        Unreached::Failed(problem) => {
            attempt.fail(problem);
            told(
                StatusCode::BAD_GATEWAY,
                &format!("{host}:{port} is allowed and was not reached: {problem}"),
            )
        }
        Unreached::TimedOut(problem) => {
            attempt.fail(problem);
            told(
                StatusCode::GATEWAY_TIMEOUT,
                &format!("{host}:{port} is allowed and was not reached: {problem}"),
            )
        }
    }
}

/// A tunnel of which the client is not told yet.
struct Opening {
    upgrade: OnUpgrade,
    server: ServerStream,
    grant: Grant,
    attempt: OpenAttempt,
    _place: Arc<OwnedSemaphorePermit>,
}

impl Opening {
    async fn run(self, shared: Arc<Shared>) {
        let Self {
            upgrade,
            server,
            grant,
            mut attempt,
            _place,
        } = self;
        let traffic = Arc::clone(attempt.traffic());
        let carrying = async {
            // A client that hung up has no tunnel.
            let Some((mut client, from_client)) = client_of(upgrade).await else {
                return;
            };
            let from_client = match grant.access {
                GrantedAccess::Tls => match read_hello(
                    &mut client,
                    from_client.to_vec(),
                    &grant.host,
                    &shared.limits,
                )
                .await
                {
                    Ok(hello) => Bytes::from(hello),
                    Err(reason) => {
                        attempt.deny(&reason.to_string());
                        refuse(client, &grant, &reason).await;
                        return;
                    }
                },
                _ => from_client,
            };
            let tunnel = Tunnel {
                client,
                from_client,
                server,
                from_server: Bytes::new(),
            };
            // Either end may hang up as it likes.
            drop(tunnel.carry(&traffic).await);
        };
        until_cut(carrying, &shared, &grant, &traffic).await;
    }
}

/// Tells a client why its tunnel closes, in the language that it speaks.
pub(crate) async fn refuse(mut client: UnixStream, grant: &Grant, reason: &NotCarried) {
    let text;
    let told: &[u8] = if reason.is_of_tls() {
        &ACCESS_DENIED
    } else {
        text = in_tunnel(grant.host.as_str(), grant.port, &reason.to_string());
        &text
    };
    // A client that does not read it is told by the end of the stream.
    drop(client.write_all(told).await);
    drop(client.shutdown().await);
}
