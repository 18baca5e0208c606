//! Search in a large project, against ripgrep in the same sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use podbay::event::ToolCall;
use serde_json::json;
use tokio::runtime::Runtime;

use super::Outcome;
use super::place::Place;
use super::place::belongs_to_somebody;
use super::table::Table;
use super::table::Times;
use super::warm::Warm;

const N_FOLDERS: usize = 1000;
const N_FILES: usize = 100;

pub(super) fn rows(
    runtime: &Runtime,
    place: &Place,
    table: &mut Table,
    rounds: usize,
) -> Outcome<()> {
    let project = place.project.with_file_name("large");
    make(&project)?;
    let warm = runtime.block_on(Warm::start(place, &project))?;
    let result = measure(runtime, &warm, table, rounds);
    runtime.block_on(warm.sandbox.close());
    result
}

fn measure(runtime: &Runtime, warm: &Warm, table: &mut Table, rounds: usize) -> Outcome<()> {
    let call = |name: &str, arguments: serde_json::Value| {
        runtime.block_on(warm.call(&ToolCall {
            id: name.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        }))
    };
    // By the clock of the sandbox, so that the shell around it is not counted.
    let ripgrep = |arguments: &str| -> Outcome<Duration> {
        let command = format!(
            "s=$(date +%s%N); .tools/rg {arguments} >/dev/null; e=$(date +%s%N); echo $((e - s))"
        );
        Ok(Duration::from_nanos(
            call("bash", json!({"command": command}))?.trim().parse()?,
        ))
    };
    let searches = [
        (
            "`grep` over 100,000 files",
            "grep",
            json!({"pattern": "needle_[0-9]+"}),
            "--line-number 'needle_[0-9]+'",
        ),
        (
            "`glob` over 100,000 files",
            "glob",
            json!({"pattern": "**/file_7*.rs"}),
            "--files --glob '**/file_7*.rs'",
        ),
    ];
    for (what, tool, arguments, theirs) in searches {
        let found = call(tool, arguments.clone())?;
        if !found.contains("file_7") {
            return Err(format!("{tool} found nothing: {found}").into());
        }
        ripgrep(theirs)?;
        let (mut ours, mut peer) = (Times::default(), Times::default());
        for _ in 0..rounds {
            ours.add(|| call(tool, arguments.clone()))?;
            peer.0.push(ripgrep(theirs)?);
        }
        table.row(
            &format!("{what}, against `rg` in the same sandbox"),
            &ours,
            &peer,
            Some(1.1),
        );
    }
    Ok(())
}

/// Makes a project of many small files, some with what is searched for, and ripgrep beside them.
pub(super) fn make(project: &std::path::Path) -> Outcome<()> {
    let line = "let value = compute(first, second) + offset; // nothing to be found here\n";
    for folder in 0..N_FOLDERS {
        let path = project.join(format!("folder_{folder}"));
        fs::create_dir_all(&path)?;
        for file in 0..N_FILES {
            let needle = if (folder * N_FILES + file).is_multiple_of(1007) {
                format!("needle_{file}\n")
            } else {
                String::new()
            };
            let end = if file.is_multiple_of(2) { "rs" } else { "txt" };
            fs::write(
                path.join(format!("file_{file}.{end}")),
                format!("{}{needle}{}", line.repeat(3), line.repeat(2)),
            )?;
        }
    }
    // So that something is found by name and by content.
    fs::write(project.join("file_7.rs"), "needle_7 in file_7\n")?;
    let which = Command::new("sh").args(["-c", "command -v rg"]).output()?;
    let rg = String::from_utf8(which.stdout)?;
    if rg.trim().is_empty() {
        return Err("ripgrep, the peer of search, is missing: `apt-get install ripgrep`".into());
    }
    fs::create_dir(project.join(".tools"))?;
    fs::copy(rg.trim(), project.join(".tools/rg"))?;
    fs::set_permissions(project.join(".tools/rg"), fs::Permissions::from_mode(0o755))?;
    belongs_to_somebody(project)
}
