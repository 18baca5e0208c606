//! What only a real engine can show.

mod inference;
mod provision;

use std::sync::Arc;

use podbay::engine;
use podbay::engine::Engine;
use podbay::event::ProgressSink;
use tokio_util::sync::CancellationToken;

/// Returns the machine's engine; `None`, and a printed line, where the person left these tests out.
#[expect(clippy::print_stderr, reason = "a test never skips in silence")]
async fn connect() -> Option<Engine> {
    if std::env::var("PODBAY_TEST_DOCKER").is_ok_and(|value| value == "0") {
        eprintln!("left out: PODBAY_TEST_DOCKER=0");
        return None;
    }
    Some(Engine::connect(&engine::Options::default(), &CancellationToken::new()).await.expect("an engine, or PODBAY_TEST_DOCKER=0"))
}

/// Prints what takes long, so that a slow test says why.
#[expect(clippy::print_stderr, reason = "the test harness keeps it until a test fails")]
fn progress() -> ProgressSink {
    Arc::new(|progress| eprintln!("{}: {}", progress.task, progress.detail))
}
