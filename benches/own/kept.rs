//! What a keeper does with the files and the git of a large project: keeping how it is, making a
//! session's git folder, taking over from it.
//!
//! These are its functions on folders of this machine; that a keeper runs in a container is not
//! counted.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use podbay::guest::keep;
use podbay::guest::keep::git;
use podbay::guest::keep::undo;
use podbay::wire::BytesPath;
use podbay::wire::keep::GitAnswer;
use podbay::wire::keep::GitOrder;
use podbay::wire::keep::GitSource;
use podbay::wire::keep::Identity;
use podbay::wire::keep::OutsideRepositories;
use podbay::wire::keep::UserGitSettings;

use super::Outcome;
use super::table::Table;
use super::table::Times;

const ROUNDS: usize = 9;
/// Files of the project that snapshots are taken of, and how many of them change from one to the
/// next.
const N_FILES: usize = 10_000;
const N_CHANGED: usize = 10;
/// The repository that a session gets a folder for.
const N_TRACKED: usize = 20_000;
const N_COMMITS: usize = 50_000;
/// Commits that a session leaves.
const N_NEW: usize = 10;
const FILES_IN_A_FOLDER: usize = 100;

pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    snapshots(table)?;
    repository(table)
}

fn snapshots(table: &mut Table) -> Outcome<()> {
    let place = tempfile::tempdir()?;
    let project = place.path().join("project");
    for number in 0..N_FILES {
        write(&project.join(path(number)), &text(number, 0))?;
    }
    // Files that were written just now are read again the next time, by git too.
    std::thread::sleep(Duration::from_secs(3));
    let opened = keep::Project::open(&project)?;
    let (mut ours, mut peer) = (Times::default(), Times::default());
    for round in 0..ROUNDS {
        let state = new_folder(place.path(), &format!("first-{round}"))?;
        ours.add(|| {
            undo::begin(
                &opened,
                &keep::StateFolder::open(&state)?,
                "bench",
                1,
                "first",
            )
        })?;
        let git_dir = place.path().join(format!("git-{round}"));
        run_git(&git_dir, &project, &["init", "-q"])?;
        peer.add(|| run_git(&git_dir, &project, &["add", "-A"]))?;
    }
    table.row(
        &format!("first snapshot of {N_FILES} files, against `git add -A` in an empty repository"),
        &ours,
        &peer,
        None,
    );
    bar(table, &ours, 1000);

    let state = new_folder(place.path(), "later")?;
    let state = keep::StateFolder::open(&state)?;
    undo::begin(&opened, &state, "bench", 1, "first")?;
    let git_dir = place.path().join("git-0");
    let (mut ours, mut peer) = (Times::default(), Times::default());
    for round in 1..=2 * ROUNDS {
        for number in 0..N_CHANGED {
            write(
                &project.join(path(number * (N_FILES / N_CHANGED))),
                &text(number, round),
            )?;
        }
        undo::end(&opened, &state)?;
        run_git(&git_dir, &project, &["add", "-A"])?;
        for number in 0..N_CHANGED {
            write(
                &project.join(path(1 + number * (N_FILES / N_CHANGED))),
                &text(number, round),
            )?;
        }
        ours.add(|| undo::begin(&opened, &state, "bench", round as u64 + 1, "later"))?;
        peer.add(|| run_git(&git_dir, &project, &["add", "-A"]))?;
    }
    table.row(
        &format!("a later one, {N_CHANGED} files changed, against `git add -A`"),
        &ours,
        &peer,
        None,
    );
    bar(table, &ours, 100);
    Ok(())
}

fn repository(table: &mut Table) -> Outcome<()> {
    let place = tempfile::tempdir()?;
    let project = place.path().join("project");
    let real = project.join(".git");
    make_repository(&project)?;
    let (mut preparing, mut cloning) = (Times::default(), Times::default());
    let (mut importing, mut fetching) = (Times::default(), Times::default());
    for round in 0..ROUNDS {
        let beside = Beside::make(place.path(), round, &real)?;
        preparing.add(|| beside.carry_out(&project, &beside.prepare()))?;
        let clone = place.path().join(format!("clone-{round}"));
        cloning.add(|| {
            let status = Command::new("git")
                .args(["clone", "-q", "--shared", "--no-checkout"])
                .arg(&project)
                .arg(&clone)
                .status()?;
            succeeded("git clone", status)
        })?;
        for number in 0..N_NEW {
            let changed = project.join(path(number));
            write(&changed, &text(number, round + 1))?;
            run_git(
                &beside.session,
                &project,
                &[
                    "-c",
                    "core.fsync=none",
                    "commit",
                    "-q",
                    "-m",
                    "by the session",
                    "--",
                    &path(number),
                ],
            )?;
        }
        let bare = place.path().join(format!("bare-{round}"));
        let all = format!("+refs/heads/*:refs/fetched/{round}/*");
        let status = Command::new("git")
            .args(["clone", "-q", "--bare", "--shared"])
            .arg(&project)
            .arg(&bare)
            .status()?;
        succeeded("git clone", status)?;
        fetching.add(|| {
            run_git(
                &bare,
                &project,
                &[
                    "-c",
                    "fetch.fsckObjects=true",
                    "fetch",
                    "-q",
                    &beside.session.to_string_lossy(),
                    &all,
                ],
            )
        })?;
        let answer = importing.add(|| beside.carry_out(&project, &beside.settle()))?;
        match answer {
            GitAnswer::Settled(settled)
                if settled.is_settled
                    && settled
                        .imported
                        .repositories
                        .iter()
                        .any(|one| !one.moved.is_empty()) => {}
            other => return Err(format!("nothing was taken over: {other:?}").into()),
        }
    }
    let what = format!(
        "git folder of a session, {N_TRACKED} files and {N_COMMITS} commits, against `git clone --shared --no-checkout`"
    );
    table.row(&what, &preparing, &cloning, None);
    bar(table, &preparing, 300);
    let what =
        format!("taking over {N_NEW} commits, index included, against `git fetch` with fsck");
    table.row(&what, &importing, &fetching, None);
    bar(table, &importing, 600);
    Ok(())
}

pub(super) fn bar(table: &mut Table, times: &Times, most_ms: u64) {
    let holds = times.at(50) <= Duration::from_millis(most_ms);
    table.figure(
        "the same",
        &format!("{} ms", times.at(50).as_millis()),
        &format!("≤ {most_ms} ms"),
        holds,
    );
}

/// What lies beside the project for one session.
struct Beside {
    session: PathBuf,
    state: PathBuf,
    aside: PathBuf,
    scratch: PathBuf,
    source: GitSource,
}

impl Beside {
    fn make(place: &Path, round: usize, real: &Path) -> Outcome<Self> {
        let folder = |name: &str| new_folder(place, &format!("{name}-{round}"));
        let session = folder("session")?;
        let text = |path: &Path| path.to_string_lossy().as_ref().into();
        let source = GitSource {
            path: ".git".into(),
            real: text(real),
            worktree: None,
            session: text(&session),
            pointer: None,
            real_in_box: text(real),
            session_in_box: text(&session),
        };
        Ok(Self {
            session,
            state: folder("state")?,
            aside: folder("aside")?,
            scratch: folder("scratch")?,
            source,
        })
    }

    fn prepare(&self) -> GitOrder {
        let identity = Some(Identity {
            name: "Bench".to_owned(),
            email: "bench@localhost".to_owned(),
        });
        let (id, sources) = ("bench".to_owned(), vec![self.source.clone()]);
        let person = UserGitSettings {
            identity,
            ..UserGitSettings::default()
        };
        GitOrder::Prepare {
            id,
            sources,
            hidden: Vec::new(),
            person,
            review: None,
            place: BytesPath::default(),
            outside: OutsideRepositories::default(),
        }
    }

    fn settle(&self) -> GitOrder {
        let (id, top) = ("bench".to_owned(), Some(self.source.clone()));
        let (auto_run, place) = (Vec::new(), "/project".into());
        GitOrder::Settle {
            id,
            top,
            below: None,
            no_import: None,
            tries_again: false,
            is_top_theirs: Some(true),
            review: None,
            auto_run,
            place,
            file_size: u64::MAX,
        }
    }

    fn carry_out(&self, project: &Path, order: &GitOrder) -> Outcome<GitAnswer> {
        let folders = git::KeeperFolders {
            project,
            state: &self.state,
            aside: &self.aside,
            scratch: &self.scratch,
        };
        Ok(git::execute(&folders, order)?)
    }
}

/// Makes a repository with a long history, and its files.
fn make_repository(project: &Path) -> Outcome<()> {
    fs::create_dir(project)?;
    let git_dir = project.join(".git");
    run_git(&git_dir, project, &["init", "-q", "-b", "main"])?;
    let mut child = git_command(&git_dir, project)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()?;
    let mut stream = std::io::BufWriter::new(
        child
            .stdin
            .take()
            .ok_or("no way to tell git what to import")?,
    );
    for commit in 0..N_COMMITS {
        let mut told = String::new();
        let _ = writeln!(
            told,
            "commit refs/heads/main\nmark :{}\ncommitter A <a@localhost> {} +0000\ndata 4\nwork",
            commit + 1,
            1_700_000_000 + commit
        );
        // The first commit has all files, each further one changes one.
        let changed = if commit == 0 {
            0..N_TRACKED
        } else {
            commit % N_TRACKED..commit % N_TRACKED + 1
        };
        for number in changed {
            let text = text(number, commit);
            let _ = writeln!(
                told,
                "M 100644 inline {}\ndata {}\n{text}",
                path(number),
                text.len()
            );
        }
        stream.write_all(told.as_bytes())?;
    }
    drop(stream);
    succeeded("git fast-import", child.wait()?)?;
    run_git(&git_dir, project, &["reset", "-q", "--hard", "main"])
}

fn git_command(git_dir: &Path, work_tree: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .arg("--git-dir")
        .arg(git_dir)
        .arg("--work-tree")
        .arg(work_tree)
        .current_dir(work_tree);
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

pub(super) fn run_git(git_dir: &Path, work_tree: &Path, words: &[&str]) -> Outcome<()> {
    succeeded(
        "git",
        git_command(git_dir, work_tree)
            .args(words)
            .stdin(Stdio::null())
            .status()?,
    )
}

fn succeeded(name: &str, status: std::process::ExitStatus) -> Outcome<()> {
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name} ended with {status}").into())
    }
}

fn new_folder(place: &Path, name: &str) -> Outcome<PathBuf> {
    let path = place.join(name);
    fs::create_dir(&path)?;
    Ok(path)
}

pub(super) fn path(number: usize) -> String {
    format!("folder_{}/file_{number}.txt", number / FILES_IN_A_FOLDER)
}

/// Some 2 KB that differ from file to file and from version to version.
pub(super) fn text(number: usize, version: usize) -> String {
    let mut text = format!("file {number}, version {version}\n");
    for line in 0..60 {
        let _ = writeln!(
            text,
            "line {line} of what is in it: {}",
            number.wrapping_mul(2_654_435_761).rotate_left(line) % 1_000_003
        );
    }
    text
}

pub(super) fn write(path: &Path, text: &str) -> Outcome<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    Ok(fs::write(path, text)?)
}
