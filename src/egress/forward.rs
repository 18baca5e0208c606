//! Plain HTTP: each request is decided on, framed anew and sent on, over the connection of the last
//! one where that leads to the same host.

use std::sync::Arc;

use http_body_util::Either;
use hyper::Request;
use hyper::Response;
use hyper::StatusCode;
use hyper::Uri;
use hyper::Version;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::client::conn::http1::SendRequest;
use hyper::header::HOST;
use hyper::header::HeaderValue;
use hyper::http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use podbay_wire::EgressAccess;
use podbay_wire::EgressUpstream;
use tokio_util::task::AbortOnDropHandle;

use super::answer::Answer;
use super::answer::denied;
use super::answer::told;
use super::attempt::OpenAttempt;
use super::body::CountedBody;
use super::connect::not_reached;
use super::exchange::Client;
use super::exchange::Exchange;
use super::exchange::WITHDRAWN;
use super::grant::Allowed;
use super::grant::Grant;
use super::grant::GrantedAccess;
use super::headers::become_websocket;
use super::headers::keep_end_to_end;
use super::headers::wants_websocket;
use super::host_name::HostName;
use super::limits::HEADERS;
use super::reach::Unreached;
use super::reach::Wanted;
use super::target::Target;
use super::websocket;
use super::websocket::Agreed;

/// A connection to a server.
pub(crate) struct Kept {
    host: HostName,
    port: u16,
    upstream: Option<EgressUpstream>,
    is_private: bool,
    sender: SendRequest<CountedBody>,
    _driver: AbortOnDropHandle<()>,
}

impl Kept {
    fn leads_to(&self, wanted: &Wanted<'_>) -> bool {
        self.host == *wanted.host
            && self.port == wanted.port
            && self.upstream.as_ref() == wanted.upstream
            && (wanted.private || !self.is_private)
    }
}

pub(crate) async fn forward(
    client: &Arc<Client>,
    request: Request<Incoming>,
    target: Target,
    mut attempt: OpenAttempt,
) -> Answer {
    let Target { host, port, .. } = target;
    attempt.is_for(host.as_str(), port, EgressAccess::Http);
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", PathAndQuery::as_str)
        .to_owned();
    let access = GrantedAccess::Http {
        method: request.method().as_str().to_owned(),
        path,
    };
    let decided = client
        .shared
        .in_force
        .borrow()
        .decide(&host, port, access.access());
    let Allowed {
        rule,
        private,
        upstream,
    } = match decided {
        Ok(allowed) => allowed,
        Err(reason) => {
            attempt.deny(&reason);
            return denied(host.as_str(), port, &reason);
        }
    };
    attempt.allow(EgressAccess::Http, &rule);
    let wanted = Wanted {
        host: &host,
        port,
        private,
        upstream: upstream.as_ref(),
    };
    let (mut server, mut is_fresh) = match ready(client, &wanted).await {
        Ok(ready) => ready,
        Err(unreached) => return not_reached(&wanted, &unreached, &mut attempt),
    };
    let grant = Grant {
        host: host.clone(),
        port,
        access,
        is_private: server.is_private,
    };
    let mut exchange = Exchange::begin(client, attempt, &grant);
    // Rules that came while the host was reached. Later ones find the exchange.
    if !grant.holds(&client.shared.in_force.borrow().rules) {
        exchange.deny(WITHDRAWN);
        return denied(host.as_str(), port, WITHDRAWN);
    }
    let (mut request, to_websocket) = outbound(request, &wanted, &exchange);
    let answer = loop {
        let problem = match server.sender.try_send_request(request).await {
            Ok(answer) => break answer,
            Err(mut error) => match error.take_message() {
                // A server may close what it was kept at any time. Nothing of the request was sent.
                Some(unsent) if !is_fresh => match reached(client, &wanted).await {
                    Ok(again) if grant.is_private || !again.is_private => {
                        (request, server, is_fresh) = (unsent, again, true);
                        continue;
                    }
                    Ok(_) => "it is in a private network now".to_owned(),
                    Err(
                        Unreached::Denied(problem)
                        | Unreached::Failed(problem)
                        | Unreached::TimedOut(problem),
                    ) => problem,
                },
                _ => format!("it did not answer: {}", error.into_error()),
            },
        };
        exchange.traffic().end(&problem);
        return told(
            StatusCode::BAD_GATEWAY,
            &format!("{host}:{port} is allowed and did not answer: {problem}"),
        );
    };
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        return match to_websocket {
            Some(from_client) => websocket::open(
                client,
                Agreed {
                    from_client,
                    answer,
                    server,
                    exchange,
                    grant,
                },
            ),
            None => told(
                StatusCode::BAD_GATEWAY,
                &format!("{host}:{port} changed the protocol, and was not asked to"),
            ),
        };
    }
    client.keep(server);
    inbound(answer, exchange)
}

/// Returns the kept connection where it leads there and is of use, else a fresh one, and says which
/// it is.
async fn ready(client: &Arc<Client>, wanted: &Wanted<'_>) -> Result<(Kept, bool), Unreached> {
    if let Some(mut kept) = client.take_kept().filter(|kept| kept.leads_to(wanted)) {
        let is_ready =
            tokio::time::timeout(client.shared.limits.dial_time, kept.sender.ready()).await;
        if is_ready.is_ok_and(|ready| ready.is_ok()) {
            return Ok((kept, false));
        }
    }
    Ok((reached(client, wanted).await?, true))
}

async fn reached(client: &Arc<Client>, wanted: &Wanted<'_>) -> Result<Kept, Unreached> {
    let reached = client.shared.reach.reach(wanted).await?;
    let handshake = http1::Builder::new()
        .max_headers(HEADERS)
        .max_buf_size(client.shared.limits.answer_head)
        .handshake(TokioIo::new(reached.stream))
        .await;
    let (sender, connection) = handshake.map_err(|error| Unreached::Failed(error.to_string()))?;
    let driver = client.shared.tasks.spawn(async move {
        // The request's own error says it.
        drop(connection.with_upgrades().await);
    });
    Ok(Kept {
        host: wanted.host.clone(),
        port: wanted.port,
        upstream: wanted.upstream.cloned(),
        is_private: reached.is_private,
        sender,
        _driver: AbortOnDropHandle::new(driver),
    })
}

/// Makes the request that the server gets, and says what becomes of the client's connection if the
/// server agrees to a WebSocket.
fn outbound(
    mut request: Request<Incoming>,
    wanted: &Wanted<'_>,
    exchange: &Exchange,
) -> (Request<CountedBody>, Option<hyper::upgrade::OnUpgrade>) {
    let to_websocket = wants_websocket(request.headers()).then(|| hyper::upgrade::on(&mut request));
    let (mut parts, body) = request.into_parts();
    keep_end_to_end(&mut parts.headers);
    if to_websocket.is_some() {
        become_websocket(&mut parts.headers);
    }
    let host = if wanted.port == 80 {
        wanted.host.to_string()
    } else {
        format!("{}:{}", wanted.host, wanted.port)
    };
    parts
        .headers
        .insert(HOST, HeaderValue::try_from(host).expect("a name is ASCII"));
    parts.uri = parts
        .uri
        .path_and_query()
        .cloned()
        .map_or_else(|| Uri::from_static("/"), Uri::from);
    parts.version = Version::HTTP_11;
    (
        Request::from_parts(
            parts,
            CountedBody::of_request(body, Arc::clone(exchange.traffic())),
        ),
        to_websocket,
    )
}

fn inbound(answer: Response<Incoming>, exchange: Exchange) -> Answer {
    let (mut parts, body) = answer.into_parts();
    keep_end_to_end(&mut parts.headers);
    parts.version = Version::HTTP_11;
    Response::from_parts(parts, Either::Right(CountedBody::of_answer(body, exchange)))
}
