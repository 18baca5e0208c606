//! Measures what is ours alone and needs no engine, and writes the table of `docs/performance.md`
//! that says so.
//!
//! `cargo bench --bench own`. `-- --show` prints the table and leaves the page as it is; names of
//! groups (`parser`, `session`, `history`, `early`, `shell`, `pipeline`, `filter`, `gate`, which
//! needs gcc and make, `egress`, `kept`, which needs git, `turns`, which mounts) measure those
//! alone and print them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program for a terminal"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the page's writer, which is shared, asks the engine's program about the machine"
)]

mod agent;
#[path = "../compare/alone.rs"]
mod alone;
mod early;
mod egress;
mod filter;
mod gate;
#[expect(dead_code, reason = "shared: most of it is for the tests")]
#[path = "../../tests/it/support/guest.rs"]
mod guest;
mod history;
mod kept;
#[path = "../compare/page.rs"]
#[expect(
    dead_code,
    reason = "shared: what looks at the engine is for the other bench"
)]
mod page;
mod parser;
mod pipeline;
#[path = "../compare/ready.rs"]
mod ready;
#[expect(dead_code, reason = "shared: most scripts are for the tests")]
#[path = "../../tests/it/support/scripted_model/mod.rs"]
mod scripted_model;
mod session;
mod shell;
#[path = "../compare/table.rs"]
#[expect(dead_code, reason = "shared: no row here is in seconds")]
mod table;
mod throughput;
mod turns;

use std::error::Error;
use std::process::ExitCode;

use self::table::Table;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What the page calls the table.
const NAME: &str = "no engine";

const GROUPS: [&str; 11] = [
    "parser", "session", "history", "early", "shell", "pipeline", "filter", "gate", "egress",
    "kept", "turns",
];

fn main() -> ExitCode {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    // `cargo test --benches` starts this program too, and must not rewrite the page.
    if !has("--bench") {
        println!("nothing is measured without `cargo bench`");
        return ExitCode::SUCCESS;
    }
    let groups: Vec<&str> = GROUPS.into_iter().filter(|group| has(group)).collect();
    let outcome = measure(&groups).and_then(|text| {
        if has("--show") || !groups.is_empty() {
            print!("{text}");
        } else {
            page::write(NAME, "own", &text)?;
            println!("{text}\nwritten to {}", page::PAGE);
        }
        Ok(())
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(groups: &[&str]) -> Outcome<String> {
    podbay::app::install_crypto();
    let wanted = |group: &str| groups.is_empty() || groups.contains(&group);
    let mut table = Table::new();
    if wanted("parser") {
        parser::rows(&mut table);
    }
    if wanted("session") {
        session::rows(&mut table)?;
    }
    if wanted("history") {
        history::rows(&mut table)?;
    }
    if wanted("early") {
        early::rows(&mut table)?;
    }
    if wanted("shell") {
        shell::rows(&mut table)?;
    }
    if wanted("pipeline") {
        pipeline::rows(&mut table)?;
    }
    if wanted("filter") {
        filter::rows(&mut table)?;
    }
    if wanted("gate") {
        gate::rows(&mut table)?;
    }
    if wanted("egress") {
        egress::rows(&mut table)?;
    }
    if wanted("kept") {
        kept::rows(&mut table)?;
    }
    if wanted("turns") {
        turns::rows(&mut table)?;
    }
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let rest =
        "Other work may have been running there meanwhile; the ratios say more than the times.";
    Ok(format!(
        "Measured on {date}: {cores} cores. {rest}\n\n{}",
        table.text()
    ))
}
