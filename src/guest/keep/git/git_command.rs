//! Runs git on the real repository: with settings that override its own, so that nothing is
//! started, fetched or tidied up on the way.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::io::Read;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use nix::sys::signal::killpg;
use nix::unistd::Pid;

use podbay_wire::Fault;

/// Most output of git that is kept; more is truncated.
const MAX_SAID: u64 = 1 << 20;
/// The limit where all output matters: the paths of some hundred thousand files.
pub(crate) const MAX_LISTED: u64 = 16 << 20;

const SETTINGS: [&str; 37] = [
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.alternateRefsCommand=true",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "index.sparse=false",
    "index.skipHash=false",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.fsckObjects=true",
    "fetch.prune=false",
    "fetch.pruneTags=false",
    "fetch.writeCommitGraph=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "submodule.propagateBranches=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "log.showSignature=false",
    "commit.gpgSign=false",
    // A user who allows these in what they fetch from others does not mean a session's work.
    "fetch.fsck.hasDot=error",
    "fetch.fsck.hasDotdot=error",
    "fetch.fsck.hasDotgit=error",
    "fetch.fsck.fullPathname=error",
    "fetch.fsck.gitmodulesBlob=error",
    "fetch.fsck.gitmodulesLarge=error",
    "fetch.fsck.gitmodulesName=error",
    "fetch.fsck.gitmodulesParse=error",
    "fetch.fsck.gitmodulesPath=error",
    "fetch.fsck.gitmodulesSymlink=error",
    "fetch.fsck.gitmodulesUpdate=error",
    "fetch.fsck.gitmodulesUrl=error",
];

const ENVIRONMENT: [(&str, &str); 19] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ALLOW_PROTOCOL", "file"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_ADVICE", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_AUTHOR_NAME", "Podbay"),
    ("GIT_AUTHOR_EMAIL", "podbay@localhost"),
    // The author of branch moves in the reflogs.
    ("GIT_COMMITTER_NAME", "Podbay"),
    ("GIT_COMMITTER_EMAIL", "podbay@localhost"),
    ("GIT_MERGE_AUTOEDIT", "no"),
];

/// Git at one repository.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    folder: PathBuf,
    /// An empty folder, so that no working tree that the repository names is entered.
    work_tree: PathBuf,
    index: Option<PathBuf>,
    /// The object folder, if not the repository's own.
    objects: Option<PathBuf>,
    /// Whether objects are made with a fixed date, so that they are reproducible.
    has_fixed_date: bool,
    /// Whether git is killed as soon as its output exceeds the limit.
    is_bounded: bool,
    /// Whether new references need not survive a power failure.
    skips_flush: bool,
    end: Instant,
}

/// The output of git.
#[derive(Clone, Debug)]
pub(crate) struct GitOutput {
    pub(crate) is_good: bool,
    pub(crate) stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl GitOutput {
    /// Returns git's error message: its last lines, which name the cause.
    pub(crate) fn problem(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let shown = |line: &str| {
            line.chars()
                .filter(|character| !character.is_control() && !podbay_wire::is_hidden(*character))
                .take(300)
                .collect()
        };
        let lines: Vec<String> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(shown)
            .collect();
        if lines.is_empty() {
            "git gave no reason".to_owned()
        } else {
            lines[lines.len().saturating_sub(3)..].join("; ")
        }
    }
}

impl Git {
    pub(crate) fn new(folder: &Path, work_tree: &Path, end: Instant) -> Self {
        Self {
            folder: folder.to_owned(),
            work_tree: work_tree.to_owned(),
            index: None,
            objects: None,
            has_fixed_date: false,
            is_bounded: false,
            skips_flush: false,
            end,
        }
    }

    pub(crate) fn with_index(&self, index: &Path) -> Self {
        Self {
            index: Some(index.to_owned()),
            ..self.clone()
        }
    }

    /// Returns the same with the objects of another repository.
    pub(crate) fn with_objects(&self, objects: &Path) -> Self {
        Self {
            objects: Some(objects.to_owned()),
            ..self.clone()
        }
    }

    pub(crate) fn with_fixed_date(&self) -> Self {
        Self {
            has_fixed_date: true,
            ..self.clone()
        }
    }

    /// Returns the same without flushing new references, which are soon removed: flushing very many
    /// takes longer than all else.
    pub(crate) fn without_flush(&self) -> Self {
        Self {
            skips_flush: true,
            ..self.clone()
        }
    }

    /// Returns the same with a shorter time limit, for commands that may not end.
    pub(crate) fn bounded(&self, time: Duration) -> Self {
        Self {
            is_bounded: true,
            end: self.end.min(Instant::now() + time),
            ..self.clone()
        }
    }

    /// Returns the same with a deadline, if its own is not earlier.
    pub(crate) fn until(&self, end: Instant) -> Self {
        Self {
            end: self.end.min(end),
            ..self.clone()
        }
    }

    /// Whether its deadline is over.
    pub(crate) fn is_late(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Runs git to its end; a non-zero exit is no error.
    pub(crate) fn run<S: AsRef<OsStr>>(
        &self,
        words: &[S],
        stdin: &[u8],
    ) -> Result<GitOutput, Fault> {
        let failed = |problem: String| Fault::Io {
            doing: format!("run git {}", words[0].as_ref().to_string_lossy()),
            problem,
        };
        let mut child = self
            .command(words)
            .spawn()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Fault::NotStarted {
                    problem: "this image has no git".to_owned(),
                },
                _ => failed(error.to_string()),
            })?;
        let (ended, told) = mpsc::channel();
        let (stdout, stderr, input) =
            (child.stdout.take(), child.stderr.take(), child.stdin.take());
        // In a thread of its own: git may write much before it has read all.
        let given = stdin.to_vec();
        std::thread::spawn(move || input.map(|mut input| input.write_all(&given)));
        for (is_stdout, pipe) in [
            (
                true,
                stdout.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            ),
            (false, stderr.map(|pipe| Box::new(pipe) as _)),
        ] {
            let ended = ended.clone();
            let is_list = is_stdout && self.is_bounded;
            std::thread::spawn(move || {
                let mut said = Vec::new();
                if let Some(mut pipe) = pipe {
                    let _ = pipe
                        .by_ref()
                        .take(if is_list { MAX_LISTED } else { MAX_SAID })
                        .read_to_end(&mut said);
                    // A closed pipe ends a process that writes on.
                    if !is_list {
                        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
                    }
                }
                let _ = ended.send((is_stdout, said));
            });
        }
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let left = self.end.saturating_duration_since(Instant::now());
            match told.recv_timeout(left) {
                Ok((true, said)) => stdout = said,
                Ok((false, said)) => stderr = said,
                Err(_) => {
                    end(&mut child);
                    return Err(failed(
                        "it did not finish in time; nothing is lost, and it can be \
                        started again"
                            .to_owned(),
                    ));
                }
            }
        }
        let status = wait(&mut child, self.end).map_err(|error| failed(error.to_string()))?;
        Ok(GitOutput {
            is_good: status,
            stdout,
            stderr,
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "no command of a model ever runs here, and no spawner with its filter is there to ask"
    )]
    fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut git_dir = OsString::from("--git-dir=");
        git_dir.push(&self.folder);
        let mut command = Command::new("git");
        command
            .env_clear()
            .envs(ENVIRONMENT)
            .env("GIT_WORK_TREE", &self.work_tree);
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        if let Some(objects) = &self.objects {
            command.env("GIT_OBJECT_DIRECTORY", objects);
        }
        if self.has_fixed_date {
            // Later than all parents: git walks commits by date, and through the whole history for
            // one that seems older.
            command.envs([
                ("GIT_AUTHOR_DATE", "@4000000000 +0000"),
                ("GIT_COMMITTER_DATE", "@4000000000 +0000"),
            ]);
        }
        let passing = self.skips_flush.then_some("core.fsync=-reference");
        command
            .arg(git_dir)
            .args(
                SETTINGS
                    .iter()
                    .copied()
                    .chain(passing)
                    .flat_map(|setting| ["-c", setting]),
            )
            .args(words);
        command
            .current_dir(&self.work_tree)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Its children are killed with it.
        command.process_group(0);
        command
    }
}

fn wait(child: &mut Child, until: Instant) -> std::io::Result<bool> {
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(status.success()),
            None if Instant::now() > until => {
                end(child);
                return Ok(false);
            }
            // Its output has ended, so it is about to exit.
            None => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

fn end(child: &mut Child) {
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::sample::Sample;
    use super::*;

    #[test]
    fn no_program_named_by_a_repository_is_started() {
        let sample = Sample::new();
        sample.commit("a", "1");
        let hook = sample.path(".git/hooks/reference-transaction");
        fs::write(
            &hook,
            format!("#!/bin/sh\ntouch {}\n", sample.beside("PWN").display()),
        )
        .expect("written");
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("set");
        let config = fs::read_to_string(sample.path(".git/config")).expect("read");
        sample.git(&["config", "core.worktree", "/nonexistent/elsewhere"]);
        let git = Git::new(
            &sample.path(".git"),
            &sample.path(""),
            Instant::now() + Duration::from_secs(20),
        );
        let answer = git
            .run(&["update-ref", "refs/heads/new", "HEAD"], b"")
            .expect("runs");
        assert!(answer.is_good, "{}", answer.problem());
        assert!(!sample.beside("PWN").exists());
        sample.write(".git/config", &config);
        sample.git(&["update-ref", "refs/heads/newer", "HEAD"]);
        assert!(
            sample.beside("PWN").exists(),
            "without our settings the hook runs"
        );
    }

    #[test]
    fn a_command_that_does_not_end_is_killed() {
        let sample = Sample::new();
        nix::unistd::mkfifo(
            &sample.path(".git/index"),
            nix::sys::stat::Mode::from_bits_truncate(0o600),
        )
        .expect("made");
        let git = Git::new(
            &sample.path(".git"),
            &sample.path(""),
            Instant::now() + Duration::from_millis(300),
        );
        let fault = git
            .run(&["ls-files"], b"")
            .expect_err("it waits for the pipe");
        assert!(fault.to_string().contains("in time"), "{fault}");
        let git = Git::new(
            &sample.path(".git"),
            &sample.path(""),
            Instant::now() + Duration::from_secs(20),
        );
        let answer = git.run(&["cat-file", "-e", "nothing"], b"").expect("runs");
        assert!(
            !answer.is_good && answer.problem().contains("nothing"),
            "{}",
            answer.problem()
        );
    }
}
