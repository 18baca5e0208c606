//! Many sandboxes at once, and what an idle guest weighs.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use futures::future::try_join_all;
use podbay::event::ToolCall;

use super::Outcome;
use super::place::Place;
use super::place::belongs_to_somebody;
use super::table::Table;
use super::table::seconds;
use super::warm::Warm;

const N_BOXES: usize = 16;

pub(super) async fn rows(place: &Place, table: &mut Table) -> Outcome<()> {
    let mut projects = Vec::new();
    for number in 0..N_BOXES {
        let project = place.project.with_file_name(format!("project_{number}"));
        fs::create_dir(&project)?;
        fs::write(project.join("number.txt"), format!("{number}\n"))?;
        belongs_to_somebody(&project)?;
        projects.push(project);
    }
    let begun = Instant::now();
    let boxes = try_join_all(projects.iter().map(|project| Warm::start(place, project))).await?;
    let result = measure(&boxes, begun, table).await;
    for warm in &boxes {
        warm.sandbox.close().await;
    }
    result
}

async fn measure(boxes: &[Warm], begun: Instant, table: &mut Table) -> Outcome<()> {
    let read = ToolCall {
        id: "read".to_owned(),
        name: "read_file".to_owned(),
        arguments: r#"{"path":"number.txt"}"#.to_owned(),
    };
    let answers = try_join_all(boxes.iter().map(|warm| warm.call(&read))).await?;
    let ours = begun.elapsed();
    let right = answers
        .iter()
        .enumerate()
        .all(|(number, answer)| answer.trim().ends_with(&number.to_string()));
    let peer = Instant::now();
    let mut children = Vec::new();
    for _ in 0..boxes.len() {
        let mut command = Command::new("docker");
        children.push(
            command
                .args([
                    "run",
                    "--rm",
                    "--network",
                    "none",
                    podbay::sandbox::DEFAULT_IMAGE,
                    "true",
                ])
                .spawn()?,
        );
    }
    for mut child in children {
        if !child.wait()?.success() {
            return Err("one of the peer's containers failed".into());
        }
    }
    let peer = peer.elapsed();
    let what = "16 sandboxes started at once, each with a read answered, against 16 × `docker run --rm … true` at once";
    table.note(what, &seconds(ours), &seconds(peer));
    table.figure(
        "all 16 answered rightly",
        if right { "yes" } else { "no" },
        "all work",
        right,
    );

    // What came with the start is let go by now; the supervisors that wait for calls are counted
    // too.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let (mut resident, mut anonymous) = (Vec::new(), Vec::new());
    for warm in boxes {
        let (all, own) = weight(&warm.container)?;
        resident.push(all);
        anonymous.push(own);
    }
    resident.sort_unstable();
    anonymous.sort_unstable();
    let (resident, anonymous) = (
        resident[N_BOXES / 2] as f64 / 1e6,
        anonymous[N_BOXES / 2] as f64 / 1e6,
    );
    table.figure(
        "idle guest, resident (PID 1)",
        &format!("{resident:.2} MB"),
        "≤ 8 MB",
        resident <= 8.0,
    );
    table.figure(
        "of it anonymous, with the processes it keeps ready",
        &format!("{anonymous:.2} MB"),
        "≤ 3 MB",
        anonymous <= 3.0,
    );
    Ok(())
}

/// Returns the bytes that are resident in the first process of a container, and those that all of
/// its processes have to themselves.
fn weight(container: &str) -> Outcome<(u64, u64)> {
    let output = Command::new("docker")
        .args(["inspect", "--format", "{{.State.Pid}}", container])
        .output()?;
    let first: u32 = String::from_utf8(output.stdout)?.trim().parse()?;
    let mut resident = 0;
    let mut anonymous = 0;
    for pid in family(first)? {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        let field = |name: &str| -> u64 {
            let line = rollup
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok())
                .unwrap_or(0)
                * 1024
        };
        if pid == first {
            resident = field("Rss");
        }
        // Pages that a fork shares are counted once in all.
        anonymous += field("Pss_Anon");
    }
    Ok((resident, anonymous))
}

/// Returns a process and all that descend from it.
fn family(first: u32) -> Outcome<Vec<u32>> {
    let mut all = vec![first];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        next += 1;
        let tasks = Path::new("/proc").join(pid.to_string()).join("task");
        for task in fs::read_dir(tasks)? {
            let children = fs::read_to_string(task?.path().join("children"))?;
            all.extend(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse::<u32>().ok()),
            );
        }
    }
    Ok(all)
}
