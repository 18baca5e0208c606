//! The backend `attach`: a sandbox that Podbay did not start, and no engine at all.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::check::Check;
use super::check::Group;
use crate::Error;
use crate::model;
use podbay_config::Config;
use podbay_event::Seconds;
use podbay_sandbox as sandbox;
use podbay_sandbox::Sandbox;
use podbay_sandbox::Socket;

const GROUP: Group = Group::Sandbox;

/// How long the sandbox may take to say what it is like. One that is just being started is not
/// waited for.
const ANSWER: Seconds = Seconds::new(2);

/// Said in place of what would have been asked of an engine.
pub(super) const WITHOUT: &str = "not looked at: with `sandbox.backend = attach` no engine is used";

/// Connects to the socket as a run would, and judges what answers there.
pub(super) async fn socket(options: &sandbox::Options, cancel: &CancellationToken) -> Vec<Check> {
    let failed = |error: &sandbox::Error| {
        let remedy = "name the socket of a sandbox by its whole path: sandbox.socket = \"/…\"; docs/guides/compose.md shows a set-up";
        vec![Check::error(GROUP, "socket", error, error.hint(), remedy)]
    };
    let socket = match Socket::open(options) {
        Ok(socket) => socket,
        Err(error) => return failed(&error),
    };
    let options = sandbox::Options {
        start_timeout: ANSWER,
        ..options.clone()
    };
    let started = match Sandbox::attach(&socket, &options, Arc::new(|_| {}), cancel).await {
        Ok((sandbox, started)) => {
            sandbox.close().await;
            started
        }
        Err(error) => return failed(&error),
    };
    let uid = started.facts.uid;
    let mut checks = vec![Check::ok(
        GROUP,
        "socket",
        format!(
            "a guest of this build answers at {}, as uid {uid}",
            socket.path().display()
        ),
    )];
    let remedy = "compose.yaml and `.env` say what the sandbox is like; `docker compose up -d` starts it anew when they have changed";
    checks.push(super::gate::told(
        GROUP,
        started.facts.exec_gate,
        options.strict,
    ));
    checks.extend(
        started
            .warnings
            .into_iter()
            .map(|warning| Check::warn(GROUP, "limits", warning, remedy)),
    );
    checks
}

/// A model has to be named here: no server of ours can be started.
pub(super) fn endpoint(config: &Config) -> Option<Check> {
    config.llm.endpoint.is_none().then(|| {
        let error: Error = model::not_named();
        Check::error(
            Group::Model,
            "endpoint",
            &error,
            error.hint(),
            "name one with --endpoint",
        )
    })
}
