//! Runs git so that no setting of the repository can start a program.
//!
//! A repository's configuration can name programs for nearly everything: hooks, pagers, external
//! diffs, filters, file-system monitors. A writer of that configuration could have them run by a
//! tool that only reads. So all of these are switched off; those under user-chosen names (filters)
//! one by one, after the names have been queried. What cannot be switched off is refused. All of it
//! runs in the sandbox all the same.

mod refusals;

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::fstat;
use tokio::io::AsyncReadExt;

use super::bash::cannot_prepare;
use super::bash::null;
use super::bash::pipe;
use super::target_entry::refused;
use crate::call_channel::CallChannel;
use crate::child::Stdio;
use crate::command;
use crate::command::CommandPlan;
use crate::command::Input;
use crate::order::Order;
use crate::root::where_is;
use crate::session::Session;
use crate::stdio::Pipe;
use podbay_wire::BytesPath;
use podbay_wire::CommandEnded;
use podbay_wire::End;
use podbay_wire::Fault;
use podbay_wire::Git;
use podbay_wire::GitBranch;
use podbay_wire::GitQuery;
use podbay_wire::GitStash;
use podbay_wire::Output;
use podbay_wire::message::Stream;
use podbay_wire::protected_name;

/// How long a preparatory query may take.
const QUESTION: Duration = Duration::from_secs(20);
/// Most bytes of the answer to one.
const MAX_ANSWER: u64 = 4 * 1024 * 1024;
/// Protected names that are excluded from a diff one by one.
const MAX_LEFT_OUT: usize = 500;
/// Most bytes of them with their pathspec prefixes: all are arguments of one program.
const MAX_LEFT_OUT_BYTES: usize = 160 * 1024;
const AROUND_ONE: usize = 32;

/// How many parent folders are searched for a repository, and the largest `.git` file.
const MAX_ABOVE: usize = 64;
const MAX_LINK: u64 = 8 * 1024;

/// Settings under which git starts no program, for those with fixed names.
const SETTINGS: [&str; 13] = [
    "safe.directory=*",
    // File names are printed unescaped, as the tools take them.
    "core.quotePath=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "color.ui=false",
    "diff.external=",
    "diff.autoRefreshIndex=false",
    "diff.ignoreSubmodules=dirty",
    "status.submoduleSummary=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "gc.auto=0",
];

/// Environment for the same purpose: no user or system configuration, no helper, no fetching.
const ENVIRONMENT: [&str; 8] = [
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_CONFIG_NOSYSTEM=1",
    "GIT_ATTR_NOSYSTEM=1",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_NO_LAZY_FETCH=1",
    "GIT_ALLOW_PROTOCOL=",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_PAGER=cat",
];

pub(crate) async fn run(session: &Session, git: &Git, line: &mut CallChannel) -> Output {
    match ask(session, git, line).await {
        Ok(ended) => Output::Command(ended),
        Err(fault) => Output::Fault(fault),
    }
}

async fn ask(session: &Session, git: &Git, line: &mut CallChannel) -> Result<CommandEnded, Fault> {
    let place = session.directories.resolve(&git.path)?.fd;
    let mut asking = Asking {
        session,
        place,
        settings: Vec::new(),
    };
    if asking.answer(&["rev-parse", "--git-dir"]).await?.is_empty() {
        if let Some(fault) = asking.leads_away(&git.path) {
            return Err(fault);
        }
        // Outside of a repository `git diff` would print its usage; this query gives one sentence
        // instead.
        return asking
            .show(
                git,
                line,
                ["rev-parse", "--git-dir"]
                    .map(|word| word.as_bytes().to_vec())
                    .to_vec(),
            )
            .await;
    }
    asking.refuse_elsewhere(&git.path).await?;
    asking.settings = asking.filters_off().await?;
    asking.refuse(&git.query).await?;
    let staged = match &git.query {
        GitQuery::Commit { files, .. } => asking.to_stage(files).await?,
        _ => Vec::new(),
    };
    if let Some(steps) = steps(session, &git.query, &staged)? {
        return asking.take_steps(git, line, steps).await;
    }
    let file = git
        .query
        .file()
        .map(|file| session.directories.absolute(file))
        .transpose()?;
    let mut words = words(&git.query);
    let mut note = None;
    if let GitQuery::Diff { .. } = git.query
        && !git.protected
    {
        let skipped = asking.protected(&words, file.as_deref()).await?;
        if !skipped.is_empty() {
            note = Some(format!(
                "not shown, because their names are protected: {} file(s)",
                skipped.len()
            ));
        }
        words.push(b"--".to_vec());
        words.push(file.map_or_else(|| b":(top)".to_vec(), |file| literal(&file)));
        words.extend(
            skipped
                .iter()
                .map(|name| [b":(top,exclude,literal)", name.as_slice()].concat()),
        );
    } else {
        words.push(b"--".to_vec());
        words.extend(file.map(|file| literal(&file)));
    }
    let mut ended = asking.show(git, line, words).await?;
    if ended.output_bytes == 0
        && ended.end == (End::Exited { code: 0 })
        && let Some(path) = git.query.file()
        && let Some(fault) = session.directories.lacks(path)
        && !asking.knows(path).await?
    {
        return Err(fault);
    }
    let compares_commits = matches!(&git.query, GitQuery::Diff { base: Some(base), .. } if !base.contains("..") && base != "HEAD" && base != "@");
    if ended.output_bytes == 0 && compares_commits {
        note = note.or_else(|| {
            Some("`base` compares commits; leave it out to see uncommitted changes".to_owned())
        });
    }
    ended.note = [note, ended.note]
        .into_iter()
        .flatten()
        .reduce(|all, note| format!("{all}; {note}"));
    Ok(ended)
}

/// Returns git's arguments for a query, without paths.
fn words(query: &GitQuery) -> Vec<Vec<u8>> {
    let words = match query {
        GitQuery::Status => [
            "status",
            "--short",
            "--branch",
            "--untracked-files=normal",
            "--ignore-submodules=dirty",
        ]
        .map(str::to_owned)
        .to_vec(),
        GitQuery::Diff { staged, base, .. } => {
            let fixed = [
                "diff",
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                "--submodule=short",
                "--ignore-submodules=dirty",
            ];
            let mut words = fixed.map(str::to_owned).to_vec();
            words.extend(staged.then(|| "--cached".to_owned()));
            words.extend(base.as_ref().map(|base| compared(base)));
            words
        }
        GitQuery::Log {
            count,
            oneline,
            author,
            ..
        } => {
            let format = if *oneline {
                "--format=tformat:%h%d %s"
            } else {
                "--format=tformat:commit %H%d%nAuthor: %an <%ae>%nDate:   %ad%n%n%w(0,4,4)%B"
            };
            let mut words = [
                "log",
                "--no-color",
                "--no-ext-diff",
                "--no-textconv",
                "--no-show-signature",
                "--decorate=short",
                format,
            ]
            .map(str::to_owned)
            .to_vec();
            words.push(format!("--max-count={count}"));
            words.extend(author.as_ref().map(|author| format!("--author={author}")));
            words
        }
        // Their arguments are in `steps`.
        GitQuery::Commit { .. }
        | GitQuery::Branch(_)
        | GitQuery::Checkout { .. }
        | GitQuery::Stash(_) => Vec::new(),
    };
    words.into_iter().map(String::into_bytes).collect()
}

/// Returns the arguments for the sides of a diff: commits only, because a path in a commit does not
/// say what it is.
fn compared(base: &str) -> String {
    let commit = |name: &str| format!("{}^{{commit}}", if name.is_empty() { "HEAD" } else { name });
    let range = |dots: &str| {
        base.split_once(dots)
            .map(|(from, to)| format!("{}{dots}{}", commit(from), commit(to)))
    };
    match base {
        // A commit against HEAD itself would be empty; the uncommitted changes are meant.
        "HEAD" | "@" => base.to_owned(),
        // A range names its own end.
        _ => range("...")
            .or_else(|| range(".."))
            .unwrap_or_else(|| format!("{}...HEAD", commit(base))),
    }
}

/// Returns the git commands for a query that changes something, in order; `None`: it only reads. Of
/// the files of a commit only some may exist and be staged.
fn steps(
    session: &Session,
    query: &GitQuery,
    staged: &[&BytesPath],
) -> Result<Option<Vec<Vec<Vec<u8>>>>, Fault> {
    let line = |words: &[&str]| {
        words
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect::<Vec<_>>()
    };
    let steps = match query {
        GitQuery::Status | GitQuery::Diff { .. } | GitQuery::Log { .. } => return Ok(None),
        GitQuery::Commit { message, files } => {
            if files.is_empty() {
                // Of the whole repository, wherever in it the call is made.
                return Ok(Some(vec![
                    line(&["add", "--all", "--", ":/"]),
                    line(&["commit", "--cleanup=strip", "-m", message]),
                ]));
            }
            // With this option instead of a pathspec prefix, git's error messages show the names as
            // given.
            let literally = ["--literal-pathspecs"];
            let paths =
                |files: &mut dyn Iterator<Item = &BytesPath>| -> Result<Vec<Vec<u8>>, Fault> {
                    files
                        .map(|file| session.directories.absolute(file))
                        .collect()
                };
            let add = [
                line(&literally),
                line(&["add", "--all", "--"]),
                paths(&mut staged.iter().copied())?,
            ]
            .concat();
            // Other staged files stay staged.
            let commit = [
                line(&literally),
                line(&["commit", "--cleanup=strip", "-m", message, "--"]),
                paths(&mut files.iter())?,
            ]
            .concat();
            let add = (!staged.is_empty()).then_some(add);
            add.into_iter().chain([commit]).collect()
        }
        GitQuery::Branch(GitBranch::List) => vec![line(&[
            "branch",
            "--no-color",
            "--no-column",
            "--all",
            "--verbose",
        ])],
        GitQuery::Branch(GitBranch::Create { name }) => vec![line(&["branch", "--no-track", name])],
        GitQuery::Branch(GitBranch::Delete { name }) => vec![line(&["branch", "--delete", name])],
        GitQuery::Checkout {
            target,
            create: true,
        } => vec![line(&["checkout", "--no-track", "-b", target])],
        // `--` keeps git from taking a branch name as a file.
        GitQuery::Checkout {
            target,
            create: false,
        } => vec![line(&["checkout", target, "--"])],
        GitQuery::Stash(GitStash::List) => vec![line(&["stash", "list"])],
        GitQuery::Stash(GitStash::Push { message }) => {
            let mut push = line(&["stash", "push"]);
            push.extend(message.iter().flat_map(|message| line(&["-m", message])));
            vec![push]
        }
        GitQuery::Stash(GitStash::Pop { index }) => {
            vec![line(&["stash", "pop", "--index", &stash(*index)])]
        }
        GitQuery::Stash(GitStash::Apply { index }) => {
            vec![line(&["stash", "apply", "--index", &stash(*index)])]
        }
        GitQuery::Stash(GitStash::Drop { index }) => vec![line(&["stash", "drop", &stash(*index)])],
    };
    Ok(Some(steps))
}

fn stash(index: u32) -> String {
    format!("stash@{{{index}}}")
}

/// A pathspec that matches exactly this path, whatever characters it has.
fn literal(path: &[u8]) -> Vec<u8> {
    [b":(literal)", path].concat()
}

/// A repository, and how git is run on it.
struct Asking<'a> {
    session: &'a Session,
    place: OwnedFd,
    /// Settings that switch off this repository's filters.
    settings: Vec<Vec<u8>>,
}

impl Asking<'_> {
    fn order(&self, words: Vec<Vec<u8>>) -> Order {
        let mut argv: Vec<Vec<u8>> = ["git", "--no-pager", "--no-optional-locks"]
            .map(|word| word.as_bytes().to_vec())
            .to_vec();
        for setting in SETTINGS
            .iter()
            .map(|setting| setting.as_bytes())
            .chain(self.settings.iter().map(Vec::as_slice))
        {
            argv.extend([b"-c".to_vec(), setting.to_vec()]);
        }
        argv.extend(words);
        let mut environment = self.session.environment.clone();
        environment.retain(|pair| {
            !pair.starts_with(b"GIT_") && !pair.starts_with(b"LC_") && !pair.starts_with(b"LANG")
        });
        environment.extend(ENVIRONMENT.map(|pair| pair.as_bytes().to_vec()));
        environment.extend([b"TERM=dumb".to_vec(), b"LC_ALL=C.UTF-8".to_vec()]);
        // A repository above the project is not used.
        environment.push(
            [
                b"GIT_CEILING_DIRECTORIES=",
                self.session.directories.above().as_slice(),
            ]
            .concat(),
        );
        Order {
            argv,
            environment,
            ..Order::default()
        }
    }

    fn stdio(&self, stdout: OwnedFd, stderr: OwnedFd) -> Result<Stdio, Fault> {
        let directory = self
            .place
            .try_clone()
            .map_err(|error| cannot_prepare(&error))?;
        Ok(Stdio {
            stdin: null()?,
            stdout,
            stderr,
            directory,
            report: None,
        })
    }

    /// Runs git commands in order until one fails; the model reads the output of the last one.
    async fn take_steps(
        &self,
        git: &Git,
        line: &mut CallChannel,
        steps: Vec<Vec<Vec<u8>>>,
    ) -> Result<CommandEnded, Fault> {
        let mut ended = None;
        for step in steps {
            let done = self.show(git, line, step).await?;
            let is_good = done.end == (End::Exited { code: 0 });
            ended = Some(done);
            if !is_good {
                break;
            }
        }
        ended.ok_or_else(|| failed("there is nothing to do"))
    }

    /// Runs the git command whose output the model reads.
    async fn show(
        &self,
        git: &Git,
        line: &mut CallChannel,
        words: Vec<Vec<u8>>,
    ) -> Result<CommandEnded, Fault> {
        let (source, stdout) = pipe()?;
        let stdio = self.stdio(
            stdout.try_clone().map_err(|error| cannot_prepare(&error))?,
            stdout,
        )?;
        let plan = CommandPlan {
            order: self.order(words),
            stdio,
            sources: vec![(
                Pipe::new(source).map_err(|error| cannot_prepare(&error))?,
                Stream::Stdout,
            )],
            input: Input::Nowhere,
            timeout: Some(Duration::from_millis(git.timeout_ms)),
            grace: Duration::from_millis(git.grace_ms),
            stream_bytes: git.stream_bytes,
            tail_bytes: git.tail_bytes,
        };
        command::run(self.session, line, plan).await.map_err(no_git)
    }

    /// Returns the fault for a linked worktree or submodule whose repository is not in the sandbox.
    /// Git's own message names a folder that does not exist there.
    fn leads_away(&self, path: &BytesPath) -> Option<Fault> {
        let mut place = self.place.try_clone().ok()?;
        let root = fstat(self.session.directories.open_root().ok()?).ok()?;
        for _ in 0..MAX_ABOVE {
            let flags = OFlag::O_RDONLY
                | OFlag::O_NOFOLLOW
                | OFlag::O_NONBLOCK
                | OFlag::O_NOCTTY
                | OFlag::O_CLOEXEC;
            let mut text = Vec::new();
            if let Ok(file) = openat(&place, ".git", flags, Mode::empty())
                && File::from(file)
                    .take(MAX_LINK)
                    .read_to_end(&mut text)
                    .is_ok()
                && let Some(target) = text.trim_ascii().strip_prefix(b"gitdir:")
            {
                let target = BytesPath::from_bytes(target.trim_ascii());
                return Some(refused(
                    path,
                    format!(
                        "is a linked worktree or a submodule: its repository is {target}, which is not in the sandbox. Continue without git, or say \
                         that Podbay must be started in the folder that holds the repository itself"
                    ),
                ));
            }
            let here = fstat(&place).ok()?;
            if (here.st_dev, here.st_ino) == (root.st_dev, root.st_ino) {
                return None;
            }
            place = openat(
                &place,
                "..",
                OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
                Mode::empty(),
            )
            .ok()?;
        }
        None
    }

    /// Runs a git query that prints one line.
    async fn answer(&self, words: &[&str]) -> Result<Vec<u8>, Fault> {
        let mut answer = self
            .question(words.iter().map(|word| word.as_bytes().to_vec()).collect())
            .await?;
        if answer.last() == Some(&b'\n') {
            answer.pop();
        }
        Ok(answer)
    }

    /// Refuses a repository whose files lie outside of the project (`core.worktree`): a read would
    /// read those.
    async fn refuse_elsewhere(&self, path: &BytesPath) -> Result<(), Fault> {
        // A bare repository has no work tree, and prints nothing.
        let top = self.answer(&["rev-parse", "--show-toplevel"]).await?;
        let root = where_is(self.session.directories.open_root()?)
            .map_err(|errno| failed(errno.desc()))?;
        match top.strip_prefix(root.as_slice()) {
            _ if top.is_empty() => Ok(()),
            Some([] | [b'/', ..]) => Ok(()),
            _ => Err(refused(
                path,
                format!(
                    "is a repository whose core.worktree says that its files are in {}, outside of the project, so git was not asked; \
                     `git config --unset core.worktree` there makes it one of its own folder",
                    BytesPath::from_bytes(top)
                ),
            )),
        }
    }

    /// Runs a git query whose output we parse.
    async fn question(&self, words: Vec<Vec<u8>>) -> Result<Vec<u8>, Fault> {
        let (source, stdout) = pipe()?;
        let nowhere = File::options()
            .write(true)
            .open("/dev/null")
            .map_err(|error| cannot_prepare(&error))?;
        let stdio = self.stdio(stdout, OwnedFd::from(nowhere))?;
        // Dropping it ends all processes of the query.
        let _started = command::start(self.session, &self.order(words), stdio)
            .await
            .map_err(no_git)?;
        let source = Pipe::new(source).map_err(|error| cannot_prepare(&error))?;
        let mut answer = Vec::new();
        let mut smallest = source.take(MAX_ANSWER + 1);
        let read = tokio::time::timeout(QUESTION, smallest.read_to_end(&mut answer)).await;
        match read {
            Ok(Ok(_)) if answer.len() as u64 <= MAX_ANSWER => Ok(answer),
            Ok(Ok(_)) => Err(failed(
                "its output about settings or files is too long; use bash",
            )),
            Ok(Err(error)) => Err(failed(&error.to_string())),
            Err(_elapsed) => Err(failed("git did not answer in time")),
        }
    }

    /// Returns settings that switch off this repository's filters.
    async fn filters_off(&self) -> Result<Vec<Vec<u8>>, Fault> {
        let words = ["config", "--list", "--includes", "--null", "--name-only"]
            .map(|word| word.as_bytes().to_vec())
            .to_vec();
        let mut off = Vec::new();
        for key in self
            .question(words)
            .await?
            .split(|byte| *byte == 0)
            .filter(|key| key.starts_with(b"filter."))
        {
            let Some(end) = key.iter().rposition(|byte| *byte == b'.') else {
                continue;
            };
            let value: &[u8] = match &key[end + 1..] {
                b"clean" | b"smudge" | b"process" => b"",
                b"required" => b"false",
                _ => continue,
            };
            if key.contains(&b'=') || key.contains(&b'\n') {
                return Err(failed(
                    "a filter of this repository has a name that cannot be switched off; use bash",
                ));
            }
            off.push([key, b"=", value].concat());
        }
        off.sort();
        off.dedup();
        Ok(off)
    }

    /// Returns whether git's history knows a file or folder that does not exist.
    async fn knows(&self, path: &BytesPath) -> Result<bool, Fault> {
        let path = literal(&self.session.directories.absolute(path)?);
        for words in [
            &["ls-files", "--cached", "-z"][..],
            &["rev-list", "--all", "--max-count=1"],
        ] {
            let words = words
                .iter()
                .map(|word| word.as_bytes().to_vec())
                .chain([b"--".to_vec(), path.clone()]);
            if !self.question(words.collect()).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the names in a diff that look like secrets.
    async fn protected(
        &self,
        words: &[Vec<u8>],
        file: Option<&[u8]>,
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let mut words = words.to_vec();
        words.extend(
            ["--name-only", "--no-renames", "--no-relative", "-z", "--"]
                .map(|word| word.as_bytes().to_vec()),
        );
        words.extend(file.map(literal));
        let answer = self.question(words).await?;
        let is_secret = |name: &&[u8]| {
            protected_name(&BytesPath::from_bytes(*name))
                .is_some_and(|protected| protected.is_secret)
        };
        let names: Vec<Vec<u8>> = answer
            .split(|byte| *byte == 0)
            .filter(is_secret)
            .map(<[u8]>::to_vec)
            .collect();
        if names.len() > MAX_LEFT_OUT
            || names
                .iter()
                .map(|name| name.len() + AROUND_ONE)
                .sum::<usize>()
                > MAX_LEFT_OUT_BYTES
        {
            return Err(failed(
                "it contains more protected names than can be excluded; name a file or a folder",
            ));
        }
        Ok(names)
    }
}

fn failed(problem: &str) -> Fault {
    Fault::Io {
        doing: "ask git".to_owned(),
        problem: problem.to_owned(),
    }
}

fn no_git(fault: Fault) -> Fault {
    match fault {
        Fault::NotFound { .. } => Fault::NotStarted {
            problem: "this image has no git; use an image with git".to_owned(),
        },
        other => other,
    }
}
