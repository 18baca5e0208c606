//! State shared by the calls of one stream.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::sys::statfs::FsType;
use nix::sys::statfs::statfs;
use tokio::sync::Notify;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::call_channel::CallChannel;
use super::call_channel::HostMessage;
use super::cgroup::Cgroup;
use super::directory::Directories;
use super::disk::Disk;
use super::disk::FreeSpace;
use super::disk::OwnShare;
use super::disk::folders_on_disk;
use super::disk::is_growth;
use super::disk::is_on_disk;
use super::gate::KnownPrograms;
use super::jobs::Job;
use super::jobs::Jobs;
use super::jobs::drop_oldest;
use super::network;
use super::order::Order;
use super::order::Report;
use super::order::StopOrder;
use super::pool;
use super::pool::Pool;
use super::process_tree::kill_in_place_of;
use super::project_growth::ProjectGrowth;
use super::project_growth::WriteBlock;
use super::project_growth::grown;
use super::project_mode::ProjectMode;
use super::shell::Shell;
use super::spawner_client::Control;
use super::spawner_client::Spawner;
use super::tools;
use super::tools::Workspace;
use podbay_wire::CACHE_FOLDER;
use podbay_wire::CACHE_OWNED;
use podbay_wire::Call;
use podbay_wire::CallEffect;
use podbay_wire::CallKind;
use podbay_wire::End;
use podbay_wire::Fault;
use podbay_wire::Limit;
use podbay_wire::Moved;
use podbay_wire::Output;
use podbay_wire::PlaceSkill;
use podbay_wire::Processes;
use podbay_wire::Programs;

/// POSIX shared memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// Temporary files that outlive a reboot elsewhere.
const VAR_TMP: &str = "/var/tmp";

/// How long background commands may take to disappear after KILL.
const BACKGROUND_ENDS: Duration = Duration::from_secs(2);

/// Pause between two checks whether a supervisor, which kills, was stopped.
const BACKGROUND_AGAIN: Duration = Duration::from_millis(50);

/// Interval between two checks of background logs: a fast writer fills `/tmp` within half a second.
const LOG_LOOK: Duration = Duration::from_millis(50);

/// Interval between two checks of the disk space that background commands take.
const BACKGROUND_LOOK: Duration = Duration::from_millis(500);

/// Largest log of one, in bytes, and as a fraction of the folder's space.
const MAX_LOG: u64 = 64 << 20;
const LOG_PART: u64 = 4;

/// What a serving process is given at its start.
#[derive(Debug)]
pub struct Setup {
    /// The project's folder, `/workspace` in a sandbox.
    pub workspace: PathBuf,
    /// Folder for the output of background commands, `/tmp` in a sandbox.
    pub scratch: PathBuf,
    /// `NAME=value`: the environment of every command.
    pub environment: Vec<Vec<u8>>,
    pub spawner: Spawner,
    /// The build id that this end reports; [`super::build_id`] outside of tests.
    pub build: String,
}

impl Setup {
    /// Returns the folders that take space on disks: the project, and the temporary folders and the
    /// home folder, as far as they are not in memory.
    pub(super) fn on_disk(&self) -> Vec<PathBuf> {
        let others = [self.scratch.clone(), PathBuf::from(VAR_TMP)];
        let others: Vec<PathBuf> = others
            .into_iter()
            .chain(home(&self.environment))
            .chain(caches())
            .collect();
        folders_on_disk(&self.workspace, &others)
    }
}

/// Returns the folders of caches, which an install phase writes to.
fn caches() -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(CACHE_FOLDER)
        .into_iter()
        .flatten()
        .flatten()
        .map(|cache| cache.path().join(CACHE_OWNED))
}

fn home(environment: &[Vec<u8>]) -> Option<PathBuf> {
    environment
        .iter()
        .find_map(|pair| pair.strip_prefix(b"HOME="))
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
}

pub(super) struct Session {
    pub(super) directories: Directories,
    pub(super) scratch: PathBuf,
    /// Without what tells of a gateway.
    pub(super) environment: Vec<Vec<u8>>,
    pub(super) spawner: Spawner,
    pub(super) shell: Option<Shell>,
    pub(super) cgroup: Cgroup,
    pub(super) disk: Disk,
    /// Commands in progress, and commands ever started: tells whether one was alone.
    pub(super) n_running: AtomicUsize,
    pub(super) n_started: AtomicUsize,
    /// Whether the project is an overlay.
    pub(super) is_overlay: bool,
    /// The files that the rules of the last calls name.
    pub(super) programs: Arc<KnownPrograms>,
    workspace: Arc<Workspace>,
    project_mode: ProjectMode,
    pool: Pool,
    /// When each host was last asked for a page.
    last_requests: Mutex<tools::web::LastRequests>,
    background: Mutex<Vec<Background>>,
    /// Notes for the next command's result.
    notices: Mutex<Vec<String>>,
    background_ended: Notify,
    /// What is known of them, also after their end.
    pub(super) jobs: Jobs,
    fatal: mpsc::Sender<String>,
}

fn is_overlay(workspace: &Path) -> bool {
    const OVERLAY: FsType = FsType(0x794c_7630);
    statfs(workspace).is_ok_and(|found| found.filesystem_type() == OVERLAY)
}

/// A command that outlives its call. Dropping this ends it, because its supervisor loses its
/// connection.
struct Background {
    control: Arc<Control>,
    supervisor: i32,
    _watch: AbortOnDropHandle<()>,
}

impl Session {
    /// Opens what the calls need; `fatal` takes the reason why the sandbox must end.
    pub(super) fn open(
        setup: Setup,
        shell: Option<Shell>,
        cgroup: Cgroup,
        fatal: mpsc::Sender<String>,
    ) -> io::Result<Self> {
        let on_disk = setup.on_disk();
        Ok(Self {
            directories: Directories::open(&setup.workspace)?,
            scratch: setup.scratch,
            environment: setup.environment,
            spawner: setup.spawner,
            shell,
            cgroup,
            disk: Disk::watch(on_disk),
            n_running: AtomicUsize::new(0),
            n_started: AtomicUsize::new(0),
            is_overlay: is_overlay(&setup.workspace),
            programs: Arc::default(),
            workspace: Arc::new(Workspace::open(&setup.workspace)?),
            project_mode: ProjectMode::of(&setup.workspace),
            pool: Pool::start()?,
            last_requests: Mutex::default(),
            background: Mutex::default(),
            notices: Mutex::default(),
            background_ended: Notify::new(),
            jobs: Jobs::default(),
            fatal,
        })
    }

    /// Returns what a command that starts now finds in its environment.
    pub(super) fn environment(&self) -> Vec<Vec<u8>> {
        network::environment(&self.environment)
    }

    /// Returns when the next page of a host may be asked for, and takes that moment.
    pub(super) fn next_request(&self, host: &str) -> tokio::time::Instant {
        self.last_requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next(host, tokio::time::Instant::now())
    }

    /// Runs one call.
    pub(super) async fn run(self: Arc<Self>, call: Call, line: CallChannel) -> Output {
        // Rules about names apply to exactly those names.
        let is_by_name = matches!(call, Call::ByName { .. });
        let call = match self.without_links(call) {
            Ok(call) => call,
            Err(fault) => return Output::Fault(fault),
        };
        // The file tools do this themselves, on a worker thread.
        let replaced = match call.facts().kind {
            CallKind::Session | CallKind::Command if !is_by_name => {
                tools::lookalike_names::find_names(self.workspace.root(), &call)
            }
            CallKind::File | CallKind::LongFile | CallKind::Session | CallKind::Command => None,
        };
        match replaced {
            None => self.dispatch(call, line).await,
            Some((call, names)) => {
                tools::lookalike_names::with_note(self.dispatch(call, line).await, names)
            }
        }
    }

    async fn dispatch(self: Arc<Self>, call: Call, mut line: CallChannel) -> Output {
        match call {
            Call::Bash(bash) => tools::bash::run(&self, bash, &mut line).await,
            Call::Exec(exec) => tools::exec::run(&self, exec, &mut line).await,
            Call::Hook(hook) => tools::hook::run(&self, hook, &mut line).await,
            Call::Git(git) => tools::git::run(&self, &git, &mut line).await,
            Call::Web(web) => tools::web::run(&self, &web, &mut line).await,
            Call::Env(env) => tools::env::run(&self.environment(), &env)
                .map_or_else(Output::Fault, Output::Environment),
            Call::Cd(cd) => self
                .directories
                .go(&cd.path)
                .map_or_else(Output::Fault, |path| Output::Moved(Moved { path })),
            Call::Processes(call) => {
                let served = self
                    .jobs
                    .serve(&call, self.cgroup.has_no_free_process())
                    .await;
                let directory = (call == Processes::List).then(|| self.directories.current());
                served.map_or_else(Output::Fault, |served| {
                    Output::Background(podbay_wire::Background {
                        directory,
                        ..served
                    })
                })
            }
            call => {
                if call.facts().effect == CallEffect::AddsFiles
                    && let Some(shut) = self.shut().await
                {
                    let problem = format!(
                        "{shut}: nothing was changed; remove what is not needed first, with a command"
                    );
                    return Output::Fault(Fault::Io {
                        doing: "write the file".to_owned(),
                        problem,
                    });
                }
                match call {
                    Call::PlaceSkill(call) => self.place_skill(call).await,
                    call => self.run_file_tool(call, line).await,
                }
            }
        }
    }

    async fn place_skill(&self, call: PlaceSkill) -> Output {
        let environment = self.environment();
        let place = move || tools::place_skill::run(&environment, &call);
        let placed = self.pool.run(pool::JobKind::Short, place).await;
        placed.map_or_else(
            || Output::Fault(bug()),
            |placed| placed.map_or_else(Output::Fault, Output::Placed),
        )
    }

    /// Refuses a link on a path of a call that the session serves, where links are not followed. The
    /// file tools check that themselves.
    fn without_links(&self, call: Call) -> Result<Call, Fault> {
        let Call::ByName { call: named } = call else {
            return Ok(call);
        };
        match named.facts().kind {
            CallKind::Session => {}
            CallKind::File | CallKind::LongFile | CallKind::Command => {
                return Ok(Call::ByName { call: named });
            }
        }
        named
            .facts()
            .paths
            .into_iter()
            .try_for_each(|named| self.directories.refuse_link(named.path))?;
        Ok(*named)
    }

    /// Adds to an order the files that its rules name.
    pub(super) async fn with_programs(&self, order: &Order) -> Order {
        let (known, rules) = (Arc::clone(&self.programs), order.rules.clone());
        let path = order.variable(b"PATH=").unwrap_or_default().to_vec();
        let find = move || known.of(&rules, &path).to_vec();
        let programs = self.pool.run(pool::JobKind::Short, find).await;
        Order {
            programs: programs.unwrap_or_default(),
            ..order.clone()
        }
    }

    async fn run_file_tool(&self, call: Call, mut line: CallChannel) -> Output {
        let stop = Arc::new(AtomicBool::new(false));
        let mut job = {
            let workspace = Arc::clone(&self.workspace);
            let stop = Arc::clone(&stop);
            self.pool
                .begin(kind(&call), move || tools::run(&workspace, &call, &stop))
        };
        loop {
            let word = tokio::select! {
                output = job.end() => return output.unwrap_or_else(|| Output::Fault(bug())),
                word = line.next() => word,
            };
            match word {
                HostMessage::Cancel => {
                    stop.store(true, Ordering::Relaxed);
                    // While it waits for a thread it does not notice the cancellation, and the host
                    // waits only briefly.
                    if job.take_back() {
                        return Output::Fault(Fault::Cancelled);
                    }
                    // A cancelled call receives no more messages; only its end is waited for.
                    return job.end().await.unwrap_or_else(|| Output::Fault(bug()));
                }
                HostMessage::Input(data) => line.consumed(data.len()),
                HostMessage::Credit(_)
                | HostMessage::Resize { .. }
                | HostMessage::Answer { .. } => {}
            }
        }
    }

    /// Names the sandbox's folders that are full, and what gives them more room.
    pub(super) fn full(&self) -> Option<String> {
        let home = home(&self.environment);
        let folders = [
            Some(self.scratch.as_path()),
            home.as_deref(),
            Some(Path::new(VAR_TMP)),
            Some(Path::new(SHARED_MEMORY)),
        ];
        folders.into_iter().flatten().find_map(|path| {
            let room = FreeSpace::of(path).filter(FreeSpace::is_full)?;
            let place = path.display();
            if is_on_disk(path) {
                return Some(format!(
                    "the disk of {place} is full; if that is why it failed, remove files there, or free space on the engine's machine"
                ));
            }
            let files = if room.all_files > 0 {
                format!(" in {} files", room.all_files)
            } else {
                String::new()
            };
            let key = if path == Path::new(SHARED_MEMORY) {
                "sandbox.shm"
            } else {
                "sandbox.memory"
            };
            Some(format!(
                "{place} is full: it holds {} MiB{files} at most (`{key}` gives it more); if that is why it failed, remove files there",
                room.all_bytes >> 20
            ))
        })
    }

    /// Ends the sandbox: the guest has lost control of something in it.
    pub(super) fn end_box(&self, reason: String) -> Fault {
        // One reason is enough; the first one is reported.
        let _ = self.fatal.try_send(reason.clone());
        Fault::BoxEnded { problem: reason }
    }

    /// Keeps a background command's supervisor alive until its end, or the session's.
    pub(super) fn keep(self: &Arc<Self>, control: Arc<Control>, job: Job) {
        let (id, supervisor) = (job.id, job.supervisor);
        let log = job.log.try_clone().ok();
        let most = FreeSpace::of(&self.scratch)
            .map_or(MAX_LOG, |room| (room.all_bytes / LOG_PART).min(MAX_LOG));
        self.jobs.add(job);
        let session = Arc::downgrade(self);
        let watched = Arc::clone(&control);
        let start = self.disk.room();
        let mut killed_at: Option<Instant> = None;
        let mut ran = (Programs::default(), Vec::new());
        let mut look_at = Instant::now() + BACKGROUND_LOOK;
        let watch = tokio::spawn(async move {
            let end = loop {
                tokio::select! {
                    report = watched.next() => match report {
                        Some(Report::Ended { status, .. }) => break how(status),
                        // The call that started it is over, so its questions are denied.
                        Some(Report::Asks { question, .. }) => watched.answer(question, false),
                        None => break End::Signaled { signal: libc::SIGKILL },
                        Some(Report::Ran { programs, denied }) => ran = (programs, denied),
                        Some(_) => {}
                    },
                    () = tokio::time::sleep(LOG_LOOK) => {
                        let Some(session) = session.upgrade() else { return };
                        session.bound_log(id, log.as_ref(), most);
                        if Instant::now() < look_at {
                            continue;
                        }
                        look_at = Instant::now() + BACKGROUND_LOOK;
                        if let Some(told) = killed_at {
                            kill_in_place_of(supervisor);
                            watched.insist(told.elapsed());
                        } else if let Some(limit) = session.filled_disk(start).await {
                            killed_at = Some(Instant::now());
                            watched.order(StopOrder::Kill);
                            session.tell_of_filled_disk(limit);
                        }
                    }
                }
            };
            if let Some(session) = session.upgrade() {
                // It may have exceeded the bound before a check.
                session.bound_log(id, log.as_ref(), most);
                session.jobs.ended(&watched, end, ran);
                session
                    .background()
                    .retain(|kept| !Arc::ptr_eq(&kept.control, &watched));
                session.background_ended.notify_waiters();
            }
        });
        self.background().push(Background {
            control,
            supervisor,
            _watch: AbortOnDropHandle::new(watch),
        });
    }

    /// Drops the oldest part of a background command's output beyond the bound; the next command
    /// reports it.
    fn bound_log(&self, id: i32, log: Option<&File>, most: u64) {
        if log.is_some_and(|log| drop_oldest(log, most)) {
            self.tell(format!(
                "background process {id} has printed more than {} MiB: the oldest part was dropped, and reads as zero bytes in its log",
                most >> 20
            ));
        }
    }

    /// Returns the disk limit that is crossed now, given what was free at the start.
    async fn filled_disk(&self, start: Option<FreeSpace>) -> Option<Limit> {
        let (start, now) = (start?, self.disk.room()?);
        let limit = self.disk.crossed(OwnShare::Some(start), now)?;
        self.is_ours(limit, now).await.then_some(limit)
    }

    /// Returns whether the project crossed a disk limit; `true` where that cannot be found out in
    /// time.
    pub(super) async fn is_ours(&self, limit: Limit, now: FreeSpace) -> bool {
        !is_growth(limit)
            || self
                .grown(limit)
                .await
                .is_none_or(|grown| self.disk.is_ours(&grown, now, limit))
    }

    async fn grown(&self, limit: Limit) -> Option<ProjectGrowth> {
        let (folders, since) = self.disk.place();
        let by_files = matches!(limit, Limit::Files { .. } | Limit::FreeFiles { .. });
        self.pool
            .run(pool::JobKind::Short, move || {
                grown(&folders, since, by_files)
            })
            .await
    }

    /// Returns why nothing may be written, whoever took the space; `None`: there is space.
    pub(super) async fn shut(&self) -> Option<WriteBlock> {
        let now = self.disk.room()?;
        // Growth that turns out to be others' changes the project's baseline, all at once.
        for _ in 0..3 {
            let limit = self.disk.crossed(OwnShare::None, now)?;
            let grown = self.grown(limit).await;
            if !is_growth(limit)
                || grown
                    .as_ref()
                    .is_none_or(|grown| self.disk.is_ours(grown, now, limit))
            {
                return Some(WriteBlock {
                    limit,
                    most: grown.and_then(|grown| grown.most),
                });
            }
        }
        None
    }

    /// Returns whether no disk limit is crossed, by free space alone.
    pub(super) fn has_room(&self) -> bool {
        self.disk
            .room()
            .is_none_or(|now| self.disk.crossed(OwnShare::None, now).is_none())
    }

    /// Takes the notes on what happened since the last command.
    pub(super) fn told(&self) -> Option<String> {
        std::mem::take(&mut *self.notices())
            .into_iter()
            .reduce(|all, note| format!("{all}; {note}"))
    }

    /// Adds a note that background commands were ended, and for which limit.
    pub(super) fn tell_of_filled_disk(&self, limit: Limit) {
        self.tell(format!("a background command was ended: {limit}"));
    }

    /// Adds a note on why other commands were ended.
    pub(super) fn tell_of_stopping(&self) {
        self.tell("running commands were ended: one of them repeatedly stopped the sandbox's own processes".to_owned());
    }

    fn tell(&self, notice: String) {
        let mut notices = self.notices();
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    /// Restores access to the project's folder if a command removed it; the next command reports
    /// it.
    pub(super) fn keep_open(&self) {
        self.project_mode
            .restore()
            .into_iter()
            .for_each(|said| self.tell(said));
    }

    fn notices(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all background commands; returns how many there were.
    pub(super) async fn end_background(&self) -> usize {
        let is_crowded = self.cgroup.has_no_free_process();
        let n_ended = {
            let background = self.background();
            for kept in background.iter() {
                // Two concurrent calls stop each other; they are woken below.
                if is_crowded {
                    kept.control.kill_at_once();
                } else {
                    kept.control.kill();
                }
            }
            background.len()
        };
        // The caller that waits for a free process gets the result.
        let told = Instant::now();
        loop {
            let changed = self.background_ended.notified();
            let supervisors: Vec<i32> = self
                .background()
                .iter()
                .map(|kept| kept.supervisor)
                .collect();
            if supervisors.is_empty() || told.elapsed() >= BACKGROUND_ENDS {
                return n_ended;
            }
            // A command can stop its supervisor, which has the same user; it must be killed all the
            // same.
            supervisors.into_iter().for_each(kill_in_place_of);
            if tokio::time::timeout(BACKGROUND_AGAIN, changed).await.is_err()
                // One after the other, where there is time for it.
                && let Some(first) = self.background().first()
            {
                first.control.insist(told.elapsed());
            }
        }
    }

    /// Names the background commands that still exist after they were told to end.
    pub(super) fn not_ended(&self) -> String {
        let names: Vec<String> = self
            .jobs
            .supervisors()
            .into_iter()
            .filter_map(|supervisor| self.jobs.named(supervisor))
            .collect();
        format!(
            "the process table is full, and {} could not be ended within {} s",
            names.join(", "),
            BACKGROUND_ENDS.as_secs()
        )
    }

    pub(super) fn n_background(&self) -> usize {
        self.background().len()
    }

    fn background(&self) -> std::sync::MutexGuard<'_, Vec<Background>> {
        self.background
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn kind(call: &Call) -> pool::JobKind {
    match call.facts().kind {
        CallKind::LongFile => pool::JobKind::Long,
        CallKind::File | CallKind::Session | CallKind::Command => pool::JobKind::Short,
    }
}

/// Returns how a command ended, from its wait status.
pub(super) fn how(status: i32) -> End {
    let status = ExitStatus::from_raw(status);
    match status.code() {
        Some(code) => End::Exited { code },
        None => End::Signaled {
            signal: status.signal().unwrap_or(libc::SIGKILL),
        },
    }
}

fn bug() -> Fault {
    Fault::Io {
        doing: "run the call".to_owned(),
        problem: "the tool failed unexpectedly; this is a bug of Podbay: try another way"
            .to_owned(),
    }
}
