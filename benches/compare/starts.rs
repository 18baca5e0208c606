//! Runs that a model answers at once, and what joins the sandbox of `podbay up`: whole processes,
//! in turns with Docker's own.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::Outcome;
use super::place::Place;
use super::place::belongs_to_somebody;
use super::place::check;
use super::place::run;
use super::scripted_model::ScriptedModel;
use super::table::Table;
use super::table::Times;

/// Files of the projects in whose sandbox a command is run, and how many lie in a folder.
const SIZES: [usize; 2] = [10, 30_000];
pub(super) const A_FOLDER: usize = 100;

pub(super) fn rows(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    runs(place, table, rounds)?;
    for n_files in SIZES {
        shared(place, table, n_files, rounds)?;
    }
    Ok(())
}

/// What the model of a run does.
#[derive(Clone, Copy)]
enum Turn {
    Answers,
    CallsBash,
}

impl Turn {
    fn script(self) -> ScriptedModel {
        match self {
            Self::Answers => ScriptedModel::new(),
            Self::CallsBash => ScriptedModel::new().calls("bash", json!({"command": "true"})),
        }
        .says("Done.")
    }

    fn words(self) -> &'static str {
        match self {
            Self::Answers => "one turn",
            Self::CallsBash => "one call of `bash`",
        }
    }
}

/// Adds the time of one run to the end, without that of its model's start.
fn one_run(
    place: &Place,
    project: &Path,
    changes: &str,
    turn: Turn,
    times: &mut Times,
) -> Outcome<()> {
    let model = turn.script().start_blocking();
    let folder = project.to_string_lossy().into_owned();
    let mut command = place.command(&["run", "-C", &folder, "--changes", changes, "--endpoint"]);
    command.arg(model.endpoint()).arg("say something");
    times.add(|| check("podbay run", &mut command))
}

fn runs(place: &Place, table: &mut Table, rounds: usize) -> Outcome<()> {
    let project = project(place, "runs", SIZES[0])?;
    git(&project, &["init", "-q"])?;
    git(&project, &["add", "."])?;
    git(&project, &["commit", "-q", "-m", "all"])?;
    belongs_to_somebody(&project)?;
    let mounted = format!("{}:/workspace", project.display());
    for changes in ["review", "live"] {
        for (turn, bar) in [(Turn::Answers, 1.3), (Turn::CallsBash, 1.6)] {
            let (mut ours, mut peer) = (Times::default(), Times::default());
            // The first one makes what the next ones find.
            one_run(place, &project, changes, turn, &mut Times::default())?;
            for _ in 0..rounds {
                one_run(place, &project, changes, turn, &mut ours)?;
                peer.add(|| docker_run(&mounted))?;
            }
            let what = format!(
                "whole `podbay run` of {}, git project, changes {changes}, against `docker run --rm --network none -v … true`",
                turn.words()
            );
            table.row(&what, &ours, &peer, Some(bar));
        }
    }
    Ok(())
}

pub(super) fn docker_run(mounted: &str) -> Outcome<()> {
    let image = podbay::sandbox::DEFAULT_IMAGE;
    let words = ["run", "--rm", "--network", "none", "-v", mounted, image];
    run("docker", &[&words[..], &["true"]].concat())
}

/// What joins a sandbox that is there.
fn shared(place: &Place, table: &mut Table, n_files: usize, rounds: usize) -> Outcome<()> {
    let project = project(place, &format!("shared-{n_files}"), n_files)?;
    let folder = project.to_string_lossy().into_owned();
    let model = ScriptedModel::new().start_blocking();
    place.podbay(&["up", "-C", &folder, "--endpoint", &model.endpoint()])?;
    let measured = joined(place, table, &project, n_files, rounds);
    place.podbay(&["down", "-C", &folder])?;
    measured
}

fn joined(
    place: &Place,
    table: &mut Table,
    project: &Path,
    n_files: usize,
    rounds: usize,
) -> Outcome<()> {
    let folder = project.to_string_lossy().into_owned();
    let listed = Command::new("docker")
        .args(["ps", "-q", "--filter", "label=dev.podbay.role=environment"])
        .output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let container = listed.lines().next().ok_or("there is no environment")?;
    let (mut ours, mut peer) = (Times::default(), Times::default());
    let sh = || place.podbay(&["sh", "-C", &folder, "--", "true"]);
    sh()?;
    for _ in 0..rounds {
        ours.add(sh)?;
        peer.add(|| run("docker", &["exec", container, "true"]))?;
    }
    let what = format!(
        "`podbay sh -- true` beside `podbay up`, {n_files} files, against `docker exec … true`"
    );
    table.row(&what, &ours, &peer, Some(0.6));
    let (mut ours, mut peer) = (Times::default(), Times::default());
    let mounted = format!("{}:/workspace", project.display());
    for _ in 0..rounds {
        one_run(place, project, "live", Turn::Answers, &mut ours)?;
        peer.add(|| docker_run(&mounted))?;
    }
    let what = format!(
        "whole `podbay run` of one turn that joins `podbay up`, {n_files} files, against `docker run --rm --network none -v … true`"
    );
    table.row(&what, &ours, &peer, Some(0.5));
    Ok(())
}

/// Makes a project of so many files, in folders of [`A_FOLDER`].
pub(super) fn project(place: &Place, name: &str, n_files: usize) -> Outcome<PathBuf> {
    let project = place.project.with_file_name(name);
    for number in 0..n_files {
        let folder = project.join(format!("folder_{}", number / A_FOLDER));
        if number % A_FOLDER == 0 {
            fs::create_dir_all(&folder)?;
        }
        fs::write(
            folder.join(format!("file_{number}.txt")),
            format!("{number}\n"),
        )?;
    }
    belongs_to_somebody(&project)?;
    Ok(project)
}

fn git(project: &Path, words: &[&str]) -> Outcome<()> {
    check(
        "git",
        Command::new("git")
            .args(["-c", "user.name=Bench", "-c", "user.email=bench@localhost"])
            // The project belongs to the user of its sandbox by then.
            .args(["-c", "safe.directory=*"])
            .args(words)
            .current_dir(project),
    )
}
