//! What a session says of its sandbox and its model when both are ready.

use tokio_util::sync::CancellationToken;

use super::opened_session::OpenedSession;
use super::startup::Startup;
use crate::bench::Bench;
use podbay_event::Kind;
use podbay_sandbox::DEFAULT_IMAGE;

/// Said once, where it begins: from then on the requests of the run itself are among those that a
/// server has.
const BUSY: &str = "all slots of the model server are busy: the request waits for one";

/// Said at the start of every session in a sandbox that Podbay did not start; `docs/security.md` has the
/// whole list.
const NOT_WITH_ATTACH: &str = "attached to a sandbox that Podbay did not start: changes are live, also those of a chat, and review, masked secrets, plan mode, \
                               throw-away sandboxes (sandbox_run) and an allow-list for the network are not offered here";

pub(super) async fn tell(
    opened: &mut OpenedSession,
    startup: &mut Startup,
    bench: &Bench,
    cancel: &CancellationToken,
) {
    let recorder = opened.recorder.clone();
    let (started, model) = (&mut startup.started, &mut startup.model);
    let busy = model.probed.is_full().then(|| BUSY.to_owned());
    for warning in std::mem::take(&mut started.warnings)
        .into_iter()
        .chain(startup.unseen.take())
        .chain(std::mem::take(&mut model.notes))
        .chain(busy)
        .chain(bench.holes_once(cancel).await)
        .chain(std::mem::take(&mut startup.servers.warnings))
    {
        recorder.warn(warning);
    }
    let image = match bench.socket() {
        None => {
            let image = opened.config.sandbox.image.clone();
            image.unwrap_or_else(|| DEFAULT_IMAGE.to_owned())
        }
        Some(socket) => {
            recorder.warn(NOT_WITH_ATTACH);
            socket.path().display().to_string()
        }
    };
    let duration_ms = u64::try_from(started.duration.as_millis()).unwrap_or(u64::MAX);
    recorder.emit(Kind::SandboxStarted {
        image,
        duration_ms,
        hidden: std::mem::take(&mut started.hidden),
        tracked: std::mem::take(&mut started.tracked),
    });
    let probed = &model.probed;
    recorder.emit(Kind::ModelReady {
        model: probed.model.clone(),
        context: probed.context,
        tools: probed.tools,
        reason: probed.reason.clone(),
    });
    let past = &mut opened.past;
    if let Some(begins) = model.begins.take() {
        // What was counted had other tools.
        past.fullness.counted = None;
        if !past.history.is_empty() {
            recorder.warn(
                "the model reads the whole conversation anew: its tools, or the way they are told, are no longer those of the session",
            );
        }
        recorder.emit(begins);
    }
    if model.n_images > 0 {
        past.fullness.counted = None;
        recorder.emit(Kind::ImagesTakenOut { blind: false });
        recorder.warn("the images that the model was shown are taken out of the conversation: this one does not see");
    }
}
