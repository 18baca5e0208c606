//! The end of a turn whose changes go into the project: what the keeper does on folders of this
//! machine, with a copy laid over the project. Needs the right to mount.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use podbay::guest::keep;
use podbay::guest::keep::review;
use podbay::wire::BytesPath;
use podbay::wire::keep::EndOfTurn;
use podbay::wire::keep::ReviewAnswer;
use podbay::wire::keep::ReviewOrder;
use podbay::wire::keep::TurnFate;

use super::Outcome;
use super::kept::path;
use super::kept::text;
use super::kept::write;
use super::table::Table;
use super::table::Times;

const ROUNDS: usize = 9;

pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    row(table, 10_000, 3, 60)?;
    row(table, 100_000, 100, 400)
}

fn row(table: &mut Table, n_files: usize, n_changed: usize, most_ms: u64) -> Outcome<()> {
    let place = tempfile::tempdir()?;
    let at = |name: &str| place.path().join(name);
    for number in 0..n_files {
        write(&at("project").join(path(number)), &text(number, 0))?;
    }
    for name in ["state", "upper", "work", "copy"] {
        fs::create_dir(at(name))?;
    }
    // Files that were written just now are read again the next time.
    std::thread::sleep(Duration::from_secs(3));
    let options = ["lowerdir", "upperdir", "workdir"]
        .iter()
        .zip(["project", "upper", "work"]);
    let options: Vec<String> = options
        .map(|(option, name)| format!("{option}={}", at(name).display()))
        .collect();
    let options = format!("{},redirect_dir=nofollow,xino=off", options.join(","));
    mount(&[
        "-t",
        "overlay",
        "overlay",
        "-o",
        &options,
        &at("copy").to_string_lossy(),
    ])?;
    let measured = measure(place.path(), n_files, n_changed);
    let unmounted = Command::new("umount").arg(at("copy")).status()?;
    let (ours, peer) = measured?;
    if !unmounted.success() {
        return Err("the copy is still mounted".into());
    }
    let what = format!(
        "end of a turn, {n_changed} files changed in a project of {n_files}, against `git add -A` of the same in the copy"
    );
    table.row(&what, &ours, &peer, None);
    super::kept::bar(table, &ours, most_ms);
    Ok(())
}

fn measure(place: &Path, n_files: usize, n_changed: usize) -> Outcome<(Times, Times)> {
    let at = |name: &str| place.join(name);
    let open = |name: &str| keep::Project::open(&at(name));
    let (project, copy, upper) = (open("project")?, open("copy")?, open("upper")?);
    let state = keep::StateFolder::open(&at("state"))?;
    let seen = review::SessionView {
        copy: Some(&copy),
        upper: Some(&upper),
        ..review::SessionView::default()
    };
    let ask = |order: &ReviewOrder| review::order(&project, seen, &state, order);
    let (git_dir, name) = (at("git"), || "s".to_owned());
    super::kept::run_git(&git_dir, &at("copy"), &["init", "-q"])?;
    super::kept::run_git(&git_dir, &at("copy"), &["add", "-A"])?;
    let (mut ours, mut peer) = (Times::default(), Times::default());
    for round in 1..=ROUNDS {
        let (is_copied, by_turn) = (false, true);
        ask(&ReviewOrder::Begin {
            name: name(),
            words: String::new(),
            is_copied,
            place: BytesPath::default(),
            by_turn,
        })?;
        for number in 0..n_changed {
            write(
                &at("copy").join(path(number * (n_files / n_changed))),
                &text(number, round),
            )?;
        }
        peer.add(|| super::kept::run_git(&git_dir, &at("copy"), &["add", "-A"]))?;
        let turn = EndOfTurn {
            fate: TurnFate::Keep,
            n_turn: round as u64,
            words: String::new(),
            keeps_view: false,
            next_view: 1,
            with_auto_run: false,
            auto_run: Vec::new(),
            only: Vec::new(),
            hunks: Vec::new(),
        };
        let answer = ours.add(|| {
            ask(&ReviewOrder::Turn {
                name: name(),
                turn: turn.clone(),
            })
        })?;
        let came = if let ReviewAnswer::Turn(ended) = &answer {
            ended.came.changes.n
        } else {
            0
        };
        if came != n_changed as u64 {
            return Err(format!("{came} files came of {n_changed}").into());
        }
    }
    Ok((ours, peer))
}

fn mount(arguments: &[&str]) -> Outcome<()> {
    let done = Command::new("mount").args(arguments).output()?;
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("mount: {}", String::from_utf8_lossy(&done.stderr)).into())
    }
}
