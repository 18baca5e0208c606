//! A plain HTTP connection that becomes a WebSocket: a tunnel from then on, under the grant of its
//! request.

use std::sync::Arc;

use http_body_util::Either;
use http_body_util::Full;
use hyper::Response;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;

use super::answer::Answer;
use super::exchange::Client;
use super::exchange::Exchange;
use super::forward::Kept;
use super::grant::Grant;
use super::headers::become_websocket;
use super::headers::keep_end_to_end;
use super::tunnel::Tunnel;
use super::tunnel::client_of;
use super::tunnel::server_of;
use super::tunnel::until_cut;

/// What a server's agreement leads to.
pub(crate) struct Agreed {
    pub from_client: OnUpgrade,
    pub answer: Response<Incoming>,
    /// What drives the server's connection up to its change.
    pub server: Kept,
    pub exchange: Exchange,
    pub grant: Grant,
}

pub(crate) fn open(client: &Arc<Client>, agreed: Agreed) -> Answer {
    let Agreed {
        from_client,
        mut answer,
        server: driven,
        exchange,
        grant,
    } = agreed;
    let to_server = hyper::upgrade::on(&mut answer);
    let (mut parts, _) = answer.into_parts();
    keep_end_to_end(&mut parts.headers);
    become_websocket(&mut parts.headers);
    let (shared, place) = (Arc::clone(&client.shared), client.place());
    let attempt = exchange.into_attempt();
    client.shared.tasks.spawn(async move {
        let _place = place;
        let traffic = Arc::clone(attempt.traffic());
        let carrying = async {
            // An end that hung up has no tunnel.
            let (Some((client, from_client)), Some((server, from_server))) =
                tokio::join!(client_of(from_client), server_of(to_server))
            else {
                return;
            };
            drop(driven);
            drop(
                Tunnel {
                    client,
                    from_client,
                    server,
                    from_server,
                }
                .carry(&traffic)
                .await,
            );
        };
        until_cut(carrying, &shared, &grant, &traffic).await;
        drop(attempt);
    });
    Response::from_parts(parts, Either::Left(Full::default()))
}
