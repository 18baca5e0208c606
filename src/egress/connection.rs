//! Serves one client's connection: what it asks for, one request after the other, until it becomes
//! a tunnel or ends.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::BytesMut;
use hyper::Request;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::CONNECTION;
use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use podbay_wire::EgressAccess;
use podbay_wire::EgressOpening;
use podbay_wire::EgressPurpose;
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::answer::Answer;
use super::answer::denied;
use super::answer::refused;
use super::attempt::OpenAttempt;
use super::connect::connect;
use super::direct::Direct;
use super::exchange::Client;
use super::forward::forward;
use super::gateway::Shared;
use super::head::Heads;
use super::head::is_last;
use super::head::is_stand_in;
use super::host_name::HostName;
use super::limits::HEADERS;
use super::names;
use super::opening;
use super::target::Target;

/// Who asks over a connection, and for what.
pub(crate) struct Origin {
    /// The program, as far as the guest found it.
    pub program: Option<String>,
    /// The host that the program believes to be connected to; nothing where it knows of the proxy.
    pub host: Option<(HostName, u16)>,
}

pub(crate) async fn serve(
    mut stream: UnixStream,
    shared: Arc<Shared>,
    place: OwnedSemaphorePermit,
) {
    let opened = tokio::select! {
        () = shared.ending.cancelled() => return,
        opened = timeout(shared.limits.head_time, opening::read(&mut stream)) => opened,
    };
    // A client that says nothing, or what no guest says.
    let Ok(Ok((EgressOpening { purpose, program }, read))) = opened else {
        return;
    };
    match purpose {
        EgressPurpose::Proxy => {
            let origin = Origin {
                program,
                host: None,
            };
            serve_http(stream, read, origin, shared, place).await;
        }
        EgressPurpose::Name { host } => names::answer(stream, &host, program, &shared).await,
        EgressPurpose::Direct { host, port } => {
            // Only names lead here.
            let Ok(host) = HostName::parse(&host) else {
                return;
            };
            let direct = Direct {
                stream,
                read,
                host,
                port,
                program,
            };
            direct.serve(shared, place).await;
        }
    }
}

/// Serves HTTP, of which some was read already.
pub(crate) async fn serve_http(
    stream: UnixStream,
    read: BytesMut,
    origin: Origin,
    shared: Arc<Shared>,
    place: OwnedSemaphorePermit,
) {
    let heads = Heads::new(stream, read, &shared.limits);
    let client = Client::new(Arc::clone(&shared), origin, heads.refused(), place);
    let for_service = Arc::clone(&client);
    let service = service_fn(move |request| {
        let client = Arc::clone(&for_service);
        async move { Ok::<_, Infallible>(answer(client, request).await) }
    });
    let serving = http1::Builder::new()
        // Heads has the time and the size of each.
        .header_read_timeout(None)
        .max_headers(HEADERS)
        // An answer has the date that its server wrote.
        .auto_date_header(false)
        .half_close(true)
        .serve_connection(TokioIo::new(heads), service)
        .with_upgrades();
    // Each says why before the exchange is dropped with `serving`.
    tokio::select! {
        // What goes wrong here is a client that hangs up.
        _ = serving => {}
        () = client.until_withdrawn() => {}
        () = client.until_idle(shared.limits.idle) => {}
        () = client.until_ending() => {}
    }
}

async fn answer(client: Arc<Client>, request: Request<Incoming>) -> Answer {
    client.activity.touch();
    // Where the controller does not read, requests wait, and none goes unrecorded.
    let Ok(place) = client.shared.attempts.clone().reserve_owned().await else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "the gateway ends");
    };
    let origin = &client.origin;
    let mut attempt = OpenAttempt::new(place, Arc::clone(&client.activity), origin.program.clone());
    if let Some((host, port)) = &origin.host {
        attempt.is_for(host.as_str(), *port, EgressAccess::Unknown);
    }
    if is_stand_in(request.uri())
        && let Some(refusal) = client.take_refusal()
    {
        attempt.deny(&refusal.problem);
        return refused(refusal.status, &refusal.problem);
    }
    let is_last = is_last(request.headers());
    let (parts, body) = request.into_parts();
    let target = match &origin.host {
        Some((host, port)) => Target::of_origin(&parts, host, *port),
        None => Target::of(&parts),
    };
    let target = match target {
        Ok(target) => target,
        Err(error) => {
            attempt.is_for(&error.host, error.port, EgressAccess::Unknown);
            attempt.deny(&error.problem);
            return match error.status {
                StatusCode::FORBIDDEN => denied(&error.host, error.port, &error.problem),
                status => refused(status, &error.problem),
            };
        }
    };
    let request = Request::from_parts(parts, body);
    let mut answer = if target.is_connect {
        connect(&client, request, target, attempt).await
    } else {
        forward(&client, request, target, attempt).await
    };
    if is_last && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        answer
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}
