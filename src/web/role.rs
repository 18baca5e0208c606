//! The role `podbay web fetch URL …` and `podbay web ACTION TARGET`: a command of a sandbox, whose
//! standard output is what a model reads; and `podbay web gateway SERVER`.

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::resource::Resource;
use nix::sys::resource::setrlimit;
use podbay_wire::EGRESS_FOLDER;
use podbay_wire::EGRESS_SOCKET;

use super::carry::carry;
use super::diagnose::Action;
use super::diagnose::diagnose;
use super::fetch::Wanted;
use super::fetch::fetch;
use super::fetch::parse;
use super::gateway::Gateway;
use super::gateway::tls;
use super::limits::MEMORY;
use super::limits::PAUSE;
use super::limits::PROCESSOR_SECONDS;

const USAGE: &str = "usage: podbay web fetch URL MAX_LENGTH markdown|raw | dns_lookup|check_connection|ping TARGET | gateway SERVER";

/// What is to be done.
enum Job {
    Fetch(Wanted),
    Diagnose(Action, String),
}

/// Does it; `arguments` are those after `podbay web`.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = arguments
        .into_iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["gateway", server] = *words {
        return carried(server);
    }
    let done = job(&words).and_then(|job| {
        bound().map_err(|error| format!("no bounds can be set: {error}"))?;
        run(job)
    });
    let (text, code) = match done {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(text) => (text, ExitCode::FAILURE),
    };
    // Whoever does not read it does not want it.
    let _ = writeln!(io::stdout().lock(), "{}", text.trim_end());
    code
}

/// Carries a connection; what goes wrong is a line of the standard error.
fn carried(server: &str) -> ExitCode {
    let socket = Path::new(EGRESS_FOLDER).join(EGRESS_SOCKET);
    match carry(&socket, server) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _unread = writeln!(io::stderr().lock(), "{problem}");
            ExitCode::FAILURE
        }
    }
}

fn job(words: &[&str]) -> Result<Job, String> {
    match *words {
        ["fetch", url, max_length, form @ ("markdown" | "raw")] => Ok(Job::Fetch(Wanted {
            url: parse(url).map_err(|problem| format!("`url`: {problem}"))?,
            max_length: max_length.parse().map_err(|_| USAGE.to_owned())?,
            raw: form == "raw",
            pause: PAUSE,
        })),
        ["dns_lookup", target] => Ok(Job::Diagnose(Action::Name, target.to_owned())),
        ["check_connection", target] => Ok(Job::Diagnose(Action::Connection, target.to_owned())),
        ["ping", target] => Ok(Job::Diagnose(Action::Ping, target.to_owned())),
        _ => Err(USAGE.to_owned()),
    }
}

/// Ends the program where a page makes it hold or compute without end.
fn bound() -> io::Result<()> {
    setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY)?;
    setrlimit(Resource::RLIMIT_CPU, PROCESSOR_SECONDS, PROCESSOR_SECONDS)?;
    Ok(())
}

fn run(job: Job) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("it cannot begin: {error}"))?;
    let gateway = Gateway {
        socket: Path::new(EGRESS_FOLDER).join(EGRESS_SOCKET),
        program: match job {
            Job::Fetch(_) => "web_fetch",
            Job::Diagnose(..) => "network_diagnostics",
        },
        tls: tls()?,
    };
    runtime.block_on(async {
        match job {
            Job::Fetch(wanted) => fetch(&gateway, &wanted).await,
            Job::Diagnose(action, target) => diagnose(&gateway, action, &target).await,
        }
    })
}
