//! Counts the instructions of our own hot paths, and writes them to `docs/performance.md`.
//!
//! `cargo bench --bench instructions` (or `just count`). Times on a machine where others work too
//! say little; the number of instructions hardly changes. It is valgrind's cachegrind that counts,
//! so no counters of the processor are needed, and no rights. `-- --show` prints the table and
//! leaves the page as it is. Where valgrind is missing the rows say so.

#![expect(
    clippy::disallowed_methods,
    reason = "valgrind is a program, and runs this one and podbay"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program for a terminal"
)]

#[path = "../compare/alone.rs"]
mod alone;
mod count;
#[path = "../compare/ready.rs"]
mod ready;
mod table;
mod work;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

type Outcome<T> = Result<T, Box<dyn Error>>;

const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- instructions: written by `cargo bench --bench instructions` -->";
const END: &str = "<!-- end of instructions -->";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    let outcome = match first.as_deref() {
        // What valgrind runs: nothing else may be in that process.
        Some(work::FLAG) => work::run(arguments.next().as_deref(), arguments.next().as_deref()),
        _ if !std::env::args().any(|argument| argument == "--bench") => {
            // `cargo test --benches` starts this program too, and must not rewrite the page.
            println!("nothing is counted without `cargo bench`");
            Ok(())
        }
        _ => report(std::env::args().any(|argument| argument == "--show")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report(only_show: bool) -> Outcome<()> {
    let text = table::text()?;
    print!("{text}");
    if only_show {
        return Ok(());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path)?;
    let missing = || {
        format!(
            "{PAGE} has no place for the table: write the lines `{BEGIN}` and `{END}` where it belongs"
        )
    };
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_old, after) = rest.split_once(END).ok_or_else(missing)?;
    fs::write(&path, format!("{before}{BEGIN}\n\n{text}\n{END}{after}"))?;
    println!("\nwritten to {PAGE}");
    Ok(())
}
