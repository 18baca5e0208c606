//! Questions about names: which ports may be reached. No resolver is asked.

use std::sync::Arc;

use podbay_wire::EgressAccess;
use podbay_wire::EgressName;
use podbay_wire::MAX_NAME_PORTS;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::attempt::Activity;
use super::attempt::OpenAttempt;
use super::gateway::Shared;
use super::host_name::HostName;
use super::limits::SHOWN;

/// Answers one question. A name that no rule allows is an attempt, which is told before the answer;
/// of one that is allowed the connection will be.
pub(crate) async fn answer(
    mut stream: UnixStream,
    host: &str,
    program: Option<String>,
    shared: &Arc<Shared>,
) {
    let found = HostName::parse(host)
        .map_err(|error| error.to_string())
        .and_then(|host| {
            let in_force = shared.in_force.borrow();
            let ports = in_force.rules.ports_of(&host);
            ports.map_err(|reason| reason.to_string())
        });
    let ports = match found {
        Ok(ports) => ports.into_iter().take(MAX_NAME_PORTS).collect(),
        Err(reason) => {
            // Where the controller does not read, questions wait, and none goes unrecorded.
            let Ok(place) = shared.attempts.clone().reserve_owned().await else {
                return;
            };
            let mut attempt = OpenAttempt::new(place, Activity::new(), program);
            let host = HostName::parse(host).map_or_else(
                |_| host.chars().take(SHOWN).collect(),
                |host| host.to_string(),
            );
            attempt.is_for(&host, 0, EgressAccess::Name);
            attempt.deny(&reason);
            Vec::new()
        }
    };
    let mut line = serde_json::to_vec(&EgressName { ports }).expect("plain data");
    line.push(b'\n');
    // A guest that hung up needs no answer.
    drop(stream.write_all(&line).await);
}
