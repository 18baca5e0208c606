//! What only a real engine can show.

mod agents;
mod apart;
mod archive;
mod asked;
mod attack;
mod autonomy;
mod bad_days;
mod bombs;
mod bundle;
mod busy;
mod by_turn;
mod by_turn_git;
mod call;
mod chat;
mod closed;
mod compose;
mod compose_folder;
mod contexts;
mod counted;
mod crowd;
mod cut_off;
mod disk_full;
mod doctor;
mod faults;
mod filled;
mod foreign;
mod forged;
mod full;
mod gate;
mod git;
mod git_aside;
mod git_below;
mod git_hooks;
mod git_killed;
mod git_rows;
mod given_up;
mod greedy;
mod hidden;
mod holes;
mod host_hook;
mod hostile_server;
mod huge;
mod image_links;
mod inference;
mod inspect;
mod instructions;
mod keepers;
mod killed;
mod kills;
mod leftovers;
mod limits;
mod lost;
mod made;
mod many_calls;
mod mcp;
mod mcp_asking;
mod memory;
mod model_server;
mod mounts;
mod network;
mod no_bash;
mod plan_mode;
mod programs;
mod provision;
mod quickstart;
mod reboot;
mod resources;
mod resumed;
mod review;
mod review_large;
mod reviewed_git;
mod reviewed_lures;
mod scratch;
mod screen;
mod second;
mod second_engine;
mod secrets;
mod selinux;
mod setuid;
mod sh;
mod shared_files;
mod shared_server;
mod shut;
mod skills;
mod slash;
mod stopping;
mod syscalls;
mod task;
mod test_box;
mod throwaway;
mod tls_engine;
mod tool_box;
mod traced;
mod undo;
mod undo_killed;
mod unremoved;
mod user_name;
mod writable;

use std::io;
use std::io::Write;
use std::sync::Arc;
use std::sync::Once;

use podbay::engine;
use podbay::engine::Engine;
use podbay::event::ProgressSink;
use tokio_util::sync::CancellationToken;

/// Says whether the user left these tests out, and tells so once.
fn left_out() -> bool {
    static TOLD: Once = Once::new();
    let left_out = std::env::var("PODBAY_TEST_DOCKER").is_ok_and(|value| value == "0");
    if left_out {
        // Not by a macro: the harness keeps to itself what a test that passes prints that way.
        TOLD.call_once(|| {
            drop(io::stderr().write_all(
                b"left out, because PODBAY_TEST_DOCKER=0: all tests that need a container engine\n",
            ));
        });
    }
    left_out
}

/// Returns the machine's engine; `None` where the user left these tests out.
async fn connect() -> Option<Engine> {
    if left_out() {
        return None;
    }
    Some(
        Engine::connect(&engine::Options::default(), &CancellationToken::new())
            .await
            .expect("an engine, or PODBAY_TEST_DOCKER=0"),
    )
}

/// Returns a command that sends a signal to all processes but PID 1 and itself, one after the
/// other: `kill` of all at once is refused.
fn signal_all(signal: u8) -> String {
    // The oldest first: without its supervisor a call would be over before what starts commands has
    // its turn.
    format!(
        "bash -c 'for p in $(seq 2 9999); do [ $p = $$ ] || kill -{signal} $p; done' 2>/dev/null"
    )
}

/// Prints what takes long, so that a slow test says why.
#[expect(
    clippy::print_stderr,
    reason = "the test harness keeps it until a test fails"
)]
fn progress() -> ProgressSink {
    Arc::new(|progress| eprintln!("{}: {}", progress.task, progress.detail))
}
