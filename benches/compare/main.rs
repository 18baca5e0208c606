//! Measures Podbay against what others do, in turns, and writes the table of `docs/performance.md`.
//!
//! `cargo bench --bench compare` (or `just bench`). It needs a container engine, the `docker`
//! command, `python3` and `rg` for the peers, and the images `podbay/workspace` and
//! `podbay/llama-server`. `-- --show` prints the table and leaves the page as it is; `-- --quick`
//! does so with few rounds; names of groups (`wall`, `cold`, `starts`, `many`, `search`, `patch`,
//! `turn`, `turn-end`, `agents`, `chat`, `kept`, `model`) measure those alone and print them.

#![expect(
    clippy::disallowed_methods,
    reason = "the peers are programs, and so are we in some rows"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program for a terminal"
)]

mod agents;
mod alone;
mod chat;
mod cold;
mod kept;
mod many;
mod model;
mod page;
mod patch;
mod peer;
mod place;
mod reuse;
#[expect(dead_code, reason = "shared: most scripts are for the tests")]
#[path = "../../tests/it/support/scripted_model/mod.rs"]
mod scripted_model;
mod search;
mod starts;
mod table;
mod terminal;
mod turn;
mod turn_end;
mod wall;
mod warm;

use std::error::Error;
use std::process::ExitCode;

use self::place::Place;
use self::table::Table;
use self::warm::Warm;

type Outcome<T> = Result<T, Box<dyn Error>>;

const GROUPS: [&str; 12] = [
    "wall", "cold", "starts", "many", "search", "patch", "turn", "turn-end", "agents", "chat",
    "kept", "model",
];

fn main() -> ExitCode {
    // The sandbox runs the program that made it, which is this one.
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|role| role == "guest") {
        return podbay::guest::main(arguments);
    }
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    // `cargo test --benches` starts this program too, and must not rewrite the page.
    if !has("--bench") {
        println!("nothing is measured without `cargo bench`");
        return ExitCode::SUCCESS;
    }
    let groups: Vec<&str> = GROUPS.into_iter().filter(|group| has(group)).collect();
    let only_show = has("--quick") || has("--show") || !groups.is_empty();
    let outcome = measure(has("--quick"), &groups).and_then(|measured| {
        if only_show {
            print!("{}", measured.text);
        } else {
            page::write(&measured.storage, "compare", &measured.text)?;
            println!("{}\nwritten to {}", measured.text, page::PAGE);
        }
        Ok(())
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&*error),
    }
}

fn failed(error: &dyn Error) -> ExitCode {
    eprintln!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("caused by: {cause}");
        source = cause.source();
    }
    ExitCode::FAILURE
}

struct Measured {
    /// Storage driver of the engine; the page has a table for each.
    storage: String,
    text: String,
}

fn measure(quick: bool, groups: &[&str]) -> Outcome<Measured> {
    podbay::app::install_crypto();
    let rounds = |n: usize| if quick { (n / 10).max(2) } else { n };
    let wanted = |group: &str| groups.is_empty() || groups.contains(&group);
    let place = Place::make()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut table = Table::new();

    let warm = runtime.block_on(Warm::start(&place, &place.project))?;
    let machine = page::Machine::look(warm.cgroup);
    let result = if wanted("wall") {
        wall::rows(&runtime, &warm, &mut table, rounds(200))
    } else {
        Ok(())
    };
    runtime.block_on(warm.sandbox.close());
    result?;
    if wanted("cold") {
        cold::rows(&place, &mut table, rounds(20))?;
    }
    if wanted("starts") {
        starts::rows(&place, &mut table, rounds(20))?;
    }
    if wanted("many") {
        runtime.block_on(many::rows(&place, &mut table))?;
    }
    if wanted("search") {
        search::rows(&runtime, &place, &mut table, rounds(20))?;
    }
    if wanted("patch") {
        patch::rows(&runtime, &place, &mut table, rounds(20))?;
    }
    if wanted("turn") {
        turn::rows(&place, &mut table, rounds(100))?;
    }
    if wanted("turn-end") {
        turn_end::rows(&runtime, &place, &mut table, rounds(15))?;
    }
    if wanted("agents") {
        agents::rows(&place, &mut table, rounds(20))?;
    }
    if wanted("chat") {
        chat::rows(&place, &mut table, rounds(20))?;
    }
    if wanted("kept") {
        kept::rows(&runtime, &place, &mut table, rounds(15))?;
    }
    if wanted("model") {
        runtime.block_on(model::rows(&place, &mut table))?;
    }

    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let rest =
        "Other work may have been running there meanwhile; the ratios say more than the times.";
    Ok(Measured {
        text: format!(
            "Measured on {date}: {}. {rest}\n\n{}",
            machine.text,
            table.text()
        ),
        storage: machine.storage,
    })
}
