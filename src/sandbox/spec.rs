use std::collections::BTreeSet;
use std::path::Path;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::CacheMount;
use super::Covers;
use super::Error;
use super::NetworkMode;
use super::NetworkPlan;
use super::Options;
use super::Project;
use super::covers::Record;
use super::covers::WORKSPACE;
use super::git;
use super::git::Lent;
use super::held::Held;
use super::image_paths;
use super::machine;
use super::mounted;
use super::plan_mode;
use super::scratch::CarriedFolder;
use super::scratch::Scratch;
use super::user::User;
use super::user_names::ImageUsers;
use super::user_names::UserNames;
use super::volumes::Closed;
use super::volumes::Share;
use super::volumes::cover;
use podbay_engine as engine;
use podbay_engine::ContainerSpec;
use podbay_engine::Engine;
use podbay_engine::ImageFacts;
use podbay_engine::Labels;
use podbay_engine::Log;
use podbay_engine::Mount;
use podbay_engine::Network;
use podbay_engine::Ulimit;
use podbay_engine::VolumeFile;
use podbay_event::ProgressSink;
use podbay_guest as guest;
use podbay_wire::BytesPath;
use podbay_wire::EGRESS_FOLDER;
use podbay_wire::message::DiskBegan;
use podbay_wire::message::DiskLimits;

/// Our seccomp profile; `docker/README.md` has its reasons.
pub const SECCOMP: &str = include_str!("../../docker/seccomp.json");

/// The same for sandboxes in which the guest decides on `ptrace`, call by call.
pub const SECCOMP_OF_COMMANDS: &str = include_str!("../../docker/seccomp.workspace.json");

/// Kernel files that read as empty in a sandbox: the engine's own list (naming one path replaces all of
/// it) and ours.
///
/// The last one is ours: even without a network the engine copies the host's resolver into the sandbox,
/// and with it names of the user's network.
pub const MASKED_PATHS: [&str; 14] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/kernel/debug",
    RESOLVER,
];

/// What cannot be written in a sandbox, even by uid 0: the engine's own list, and two of ours, in which
/// uid 0 could fill memory.
pub const READONLY_PATHS: [&str; 7] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/dev",
    "/sys/fs/cgroup",
];

/// What the kernel keeps of a command's shared memory, message queues and semaphores when the
/// command has ended: the memory is charged to the sandbox, and there is no process left to end for it.
/// The first removes shared memory that nobody uses, the others bound the rest.
const SYSCTLS: [(&str, &str); 3] = [
    ("kernel.shm_rmid_forced", "1"),
    ("kernel.msgmni", "32"),
    ("kernel.sem", "250 32000 100 128"),
];

/// Bytes of a sandbox's memory for each file that a temporary file system of it may hold: even an empty
/// one takes a kilobyte in the kernel.
const PER_FILE: u64 = 16 << 10;

/// The engine's own list of names, and its resolver.
const HOSTS: &str = "/etc/hosts";
const RESOLVER: &str = "/etc/resolv.conf";

/// The home folder in a sandbox.
pub(super) const HOME: &str = "/home/agent";

/// Where the guest's volume is mounted.
pub(super) const GUEST_FOLDER: &str = "/run/podbay/bin";

/// What a keeper may take: walking a large project takes some memory, git somewhat more.
const KEEPER_MEMORY: u64 = 1 << 30;
const KEEPER_PROCESSES: u32 = 64;

/// What makes a loader, a C library or a shell run or load something before the program of a
/// container, set to nothing in each of ours.
const EMPTIED: [&str; 7] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "GLIBC_TUNABLES",
];

/// Everything that makes one sandbox what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    container: ContainerSpec,
    /// What a user should know about it.
    pub warnings: Vec<String>,
    pub(super) project: Project,
    /// What is mounted in the project from elsewhere.
    pub(super) mounted: Vec<BytesPath>,
    /// What the guest watches; told to it at the start of each stream.
    pub(super) disk: DiskLimits,
    pub(super) covers: Covers,
    /// What its commands work on instead of the project, where their changes are pending.
    pub(super) review: Option<Held>,
    /// For a session alone.
    pub(super) git: Option<git::Options>,
    lent: Option<Lent>,
    network: NetworkPlan,
    /// The volume of the gateway's socket, for a session that may have one.
    gateway: Option<String>,
    ids: (u32, u32),
    /// Secrets that commands may read.
    reveal: Vec<String>,
    /// The name of its user, once the image is known.
    names: Option<UserNames>,
    scratch: Scratch,
    /// Nothing of the project can be written, nor of the session's git.
    read_only: bool,
    caches: Vec<CacheMount>,
    kind: Kind,
}

/// What a sandbox is to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The session's own.
    Session,
    /// One beside it on the same files, none of which it can write.
    Sibling,
    /// One that has nothing of the project.
    Throwaway,
}

impl Spec {
    /// Puts a sandbox together: the user's limits, and everything else as closed as it can be.
    pub fn new(
        project: &Project,
        image: &ImageFacts,
        engine: &engine::Facts,
        options: &Options,
        guest_volume: &str,
    ) -> Result<Self, Error> {
        options.check()?;
        if let Some(problem) = machine::misfit(image, engine) {
            return Err(Error::Image {
                image: image.tags.first().unwrap_or(&image.id).clone(),
                problem,
            });
        }
        let user = User::choose(project, engine, options)?;
        let memory = options.memory.bytes();
        let mut warnings: Vec<String> = user.warning.iter().cloned().collect();
        warnings.extend(
            engine
                .warnings
                .iter()
                .filter(|warning| warning.contains("No ") && warning.contains("limit"))
                .map(|warning| format!("the engine does not enforce everything: {warning}")),
        );
        let lost = guest::not_passed_on(&image.env);
        if !lost.is_empty() {
            warnings.push(format!(
                "commands do not get all that the image sets: {} would make programs run or load something else first, or something of the project",
                lost.join(", ")
            ));
        }
        if !project.is_writable() {
            warnings.push(
                "the project folder is not writable: reading works, changing files does not"
                    .to_owned(),
            );
        }
        let mounts = mounted::mounts(project.path());
        warnings.extend(mounted::warning(&mounts));
        let masked = mounts
            .iter()
            .filter_map(|path| std::str::from_utf8(path.as_bytes()).ok())
            .map(|path| format!("/workspace/{path}"));
        let masked_paths = MASKED_PATHS
            .iter()
            .map(|&path| path.to_owned())
            .chain(masked)
            .collect();
        let files = memory / PER_FILE;
        // At most half of the memory: these file systems are charged to it. `/tmp` and the home
        // folder are in memory only where the image has none that its user could write to.
        let shm = options.shm.bytes().min(memory / 2);
        let mut tmpfs = vec![
            (
                "/tmp".to_owned(),
                format!(
                    "rw,exec,nosuid,nodev,size={},nr_inodes={files},mode=1777",
                    memory / 4
                ),
            ),
            (
                HOME.to_owned(),
                format!(
                    "rw,exec,nosuid,nodev,size={},nr_inodes={files},mode=0700,uid={},gid={}",
                    memory * 3 / 16,
                    user.uid,
                    user.gid
                ),
            ),
            (
                "/run".to_owned(),
                "rw,noexec,nosuid,nodev,size=1m,nr_inodes=1k,mode=0755".to_owned(),
            ),
            // The engine's own would take any number of empty files.
            (
                "/dev/shm".to_owned(),
                format!(
                    "rw,noexec,nosuid,nodev,size={shm},nr_inodes={},mode=1777",
                    files / 4
                ),
            ),
        ];
        let refuse = |problem| Error::Image {
            image: image.tags.first().unwrap_or(&image.id).clone(),
            problem,
        };
        let share = Share {
            bytes: memory / 32,
            most_bytes: 16 << 20,
            files: files / 4,
            most_files: 10_000,
            exec: true,
        };
        let in_project = "the engine would make that folder in your project, as root".to_owned();
        let closed = [
            Closed {
                place: "/workspace",
                why: in_project,
            },
            Closed::mounted("/run/podbay"),
        ];
        for (path, options) in cover(&image.volumes, &closed, share).map_err(refuse)? {
            if !tmpfs.iter().any(|(covered, _)| *covered == path) {
                tmpfs.push((path, options));
            }
        }
        let mut readonly_paths: Vec<String> =
            READONLY_PATHS.iter().map(|&path| path.to_owned()).collect();
        if project.has_git() {
            // An absent path is ignored by the engine, and this way needs no source on the host
            // that could be swapped under it.
            readonly_paths.push("/workspace/.git".to_owned());
        }
        if project.has_settings() {
            // What the next run is told by must not be written by this one.
            readonly_paths.push("/workspace/.podbay".to_owned());
        }
        let container = ContainerSpec {
            name: String::new(),
            image: image.id.clone(),
            user: format!("{}:{}", user.uid, user.gid),
            entrypoint: vec![
                format!("{GUEST_FOLDER}/podbay"),
                "guest".to_owned(),
                "serve".to_owned(),
            ],
            env: environment(image),
            hostname: "workspace".to_owned(),
            labels: Labels {
                project: Some(project.key()),
                ..Labels::new(engine::Role::Workspace)
            },
            mounts: vec![
                Mount::Bind {
                    source: project.text().to_owned(),
                    target: "/workspace".to_owned(),
                    read_only: false,
                },
                Mount::Volume {
                    name: guest_volume.to_owned(),
                    target: GUEST_FOLDER.to_owned(),
                    read_only: true,
                },
            ],
            tmpfs,
            network: Network::None,
            memory,
            // An engine refuses more cores than it has.
            nano_cpus: (options.cpus.min(f64::from(engine.n_cpus.max(1))) * 1e9) as u64,
            cpu_shares: 512,
            n_processes: options.pids,
            ulimits: vec![
                Ulimit {
                    name: "core",
                    limit: 0,
                },
                Ulimit {
                    name: "nofile",
                    limit: u64::from(options.open_files),
                },
                Ulimit {
                    name: "fsize",
                    limit: options.file_size.bytes(),
                },
                Ulimit {
                    name: "memlock",
                    limit: 65536,
                },
                // The kernel counts both for the user, whoever of theirs uses them, and message
                // queues outlive their command.
                Ulimit {
                    name: "msgqueue",
                    limit: 0,
                },
                Ulimit {
                    name: "sigpending",
                    limit: 4096,
                },
            ],
            // In a rootless engine only a recent kernel lets these be set, and an engine that
            // cannot set one does not start the sandbox.
            sysctls: if engine.rootless {
                Vec::new()
            } else {
                SYSCTLS.to_vec()
            },
            shm,
            oom_score_adj: 500,
            seccomp: Some(SECCOMP_OF_COMMANDS.to_owned()),
            writable_root: false,
            masked_paths,
            readonly_paths,
            attached: true,
            auto_remove: true,
            log: Log::None,
        };
        Ok(Self {
            container,
            warnings,
            project: project.clone(),
            mounted: mounts,
            disk: options.disk_limits(),
            covers: Covers::default(),
            review: None,
            git: None,
            lent: None,
            network: NetworkPlan::default(),
            gateway: None,
            ids: (user.uid, user.gid),
            reveal: options.reveal.clone(),
            names: None,
            scratch: Scratch::in_memory(),
            read_only: false,
            caches: Vec::new(),
            kind: Kind::Session,
        })
    }

    /// Returns the same without anything of the project: `/workspace` is an empty folder, and lies
    /// in memory like all that can be written. To be called before the image is fitted.
    #[must_use]
    pub fn apart(mut self) -> Self {
        let container = &mut self.container;
        container
            .mounts
            .retain(|mount| !matches!(mount, Mount::Bind { target, .. } if target == WORKSPACE));
        let is_elsewhere = |path: &String| !path.starts_with("/workspace/");
        container.masked_paths.retain(is_elsewhere);
        container.readonly_paths.retain(is_elsewhere);
        let (uid, gid) = self.ids;
        let (size, files) = (container.memory / 4, container.memory / PER_FILE);
        container.tmpfs.push((
            WORKSPACE.to_owned(),
            format!(
                "rw,exec,nosuid,nodev,size={size},nr_inodes={files},mode=0700,uid={uid},gid={gid}"
            ),
        ));
        "throwaway".clone_into(&mut container.hostname);
        Self {
            mounted: Vec::new(),
            // All of it is in memory, within bounds of its own.
            disk: DiskLimits::default(),
            kind: Kind::Throwaway,
            ..self
        }
    }

    pub(super) fn is_apart(&self) -> bool {
        self.kind == Kind::Throwaway
    }

    /// Returns the same for a sandbox beside the session's, in which nothing of the project can be
    /// written. Its temporary files are its own.
    pub(super) fn beside(&self) -> Self {
        Self {
            kind: Kind::Sibling,
            ..self.reading_only(true)
        }
    }

    /// Names it among containers.
    pub(super) fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Session => "workspace",
            Kind::Sibling => "sibling",
            Kind::Throwaway => "throwaway",
        }
    }

    /// Returns the same with the network that another sandbox has, and its gateway.
    pub(super) fn in_network_of(&self, other: &Self) -> Self {
        self.with_network(other.network.clone())
            .reaching(other.gateway.as_deref())
    }

    /// Refuses an image in which links would lead the engine astray, and returns the same for what
    /// the image has for its user: a name, and folders to write to. What was found is remembered in
    /// the folder `seen`.
    #[boxed]
    pub async fn fit_to_image(
        self,
        engine: &Engine,
        image: &ImageFacts,
        seen: &Path,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let places = image_paths::Places::of_a_box();
        let found = Box::pin(image_paths::look(
            engine,
            &self.container,
            image,
            &places,
            seen,
            progress,
            cancel,
        ))
        .await;
        match found.map_err(Error::engine("look at the image"))? {
            Ok(users) => Ok(self.for_users(&users)),
            Err(problem) => Err(Error::Image {
                image: image.tags.first().unwrap_or(&image.id).clone(),
                problem,
            }),
        }
    }

    /// Returns the same for what an image has for its user: a name, and folders to write to.
    #[must_use]
    pub fn for_users(mut self, image: &ImageUsers) -> Self {
        let (scratch, said) = if self.is_apart() {
            (Scratch::in_memory(), None)
        } else {
            Scratch::of(image)
        };
        let names = UserNames::of(image, self.ids, scratch.home);
        self.warnings.extend(said);
        let env = &mut self.container.env;
        env.retain(|pair| !pair.starts_with("HOME="));
        env.push(format!("HOME={}", scratch.home));
        env.extend(names.variables());
        self.names = Some(names);
        self.scratch = scratch;
        self
    }

    /// Returns the files that the guest's volume must have for it.
    pub(super) fn user_files(&self) -> Vec<VolumeFile> {
        self.names.as_ref().map_or_else(Vec::new, UserNames::files)
    }

    /// Returns the folders that a session takes from one sandbox to the next.
    pub(super) fn carried(&self) -> Vec<CarriedFolder> {
        self.review
            .as_ref()
            .map_or_else(Vec::new, |held| self.scratch.carried(held))
    }

    /// Whether they are lost with the last container that has them.
    pub(super) fn is_scratch_in_memory(&self) -> bool {
        self.scratch.is_in_memory()
    }

    /// Returns what the engine is told, under a name and labels of this run.
    ///
    /// With a list of `hosts` of our own, by its path on the engine's machine, the engine need not
    /// set up any network: half of what it takes to start a sandbox.
    pub(super) fn container(
        &self,
        name: String,
        labels: Labels,
        hosts: Option<&str>,
    ) -> ContainerSpec {
        let mut container = self.uncovered(name, labels, hosts);
        if let Some(held) = &self.review {
            held.take_the_place_of_the_project(&mut container);
        }
        // What a session takes from one sandbox to the next is no other's.
        let carried = self.review.as_ref();
        let carried = carried.filter(|_| self.kind == Kind::Session);
        self.scratch.mount(&mut container, carried);
        if let (Some(names), Some(hosts)) = (&self.names, hosts) {
            // The list of hosts lies in the same volume.
            let volume = hosts.rsplit_once('/').map_or("", |(folder, _)| folder);
            container.mounts.extend(names.mounts(volume));
        }
        self.cover(&mut container);
        self.connect(&mut container);
        for cache in &self.caches {
            cache.mount(&mut container);
        }
        if let Some(lent) = &self.lent {
            lent.mount(&mut container);
        }
        if self.read_only {
            plan_mode::make_read_only(&mut container);
        }
        container
    }

    /// Returns the same for plan mode, or for any other.
    #[must_use]
    pub fn reading_only(&self, read_only: bool) -> Self {
        Self {
            read_only,
            ..self.clone()
        }
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns how the temporary file system at a place is mounted, if one is there.
    pub(super) fn temporary(&self, place: &str) -> Option<&str> {
        if !self.scratch.is_in_memory() {
            return None;
        }
        self.container
            .tmpfs
            .iter()
            .find(|(path, _)| path == place)
            .map(|(_, options)| options.as_str())
    }

    /// Returns the same for commands whose changes are pending.
    pub(super) fn held_back(&self, held: &Held) -> Self {
        Self {
            review: Some(held.clone()),
            ..self.clone()
        }
    }

    /// Returns the same sandbox on the project itself.
    pub(super) fn in_place(&self) -> Self {
        Self {
            review: None,
            ..self.clone()
        }
    }

    /// Returns where the sandbox must have mounts of its own.
    pub(super) fn places(&self) -> BTreeSet<BytesPath> {
        let mut places = if self.review.is_some() {
            self.covers.covered()
        } else {
            self.covers.places()
        };
        if let Some(lent) = &self.lent {
            // What is covered of a real repository is not there at all.
            places.retain(|place| !lent.is_in_place_of(place));
        }
        places
    }

    fn uncovered(&self, name: String, labels: Labels, hosts: Option<&str>) -> ContainerSpec {
        let labels = Labels {
            project: self.container.labels.project.clone(),
            ..labels
        };
        let mut container = ContainerSpec {
            name,
            labels,
            ..self.container.clone()
        };
        if let Some(hosts) = hosts {
            container.network = Network::Bare;
            container.mounts.push(Mount::OfVolume {
                source: hosts.to_owned(),
                target: HOSTS.to_owned(),
                read_only: true,
            });
        }
        container
    }

    /// Returns the same with other files of the project hidden and read-only.
    pub(super) fn covering(&self, covers: &Covers) -> Self {
        Self {
            covers: covers.clone(),
            ..self.clone()
        }
    }

    /// Returns the same with another network than none.
    #[must_use]
    pub fn with_network(&self, network: NetworkPlan) -> Self {
        let mut warnings = self.warnings.clone();
        warnings.extend(network.notes.iter().cloned());
        Self {
            warnings,
            network,
            ..self.clone()
        }
    }

    /// Returns the same with these caches of the project's, and no others.
    #[must_use]
    pub fn with_caches(&self, caches: Vec<CacheMount>) -> Self {
        Self {
            caches,
            ..self.clone()
        }
    }

    pub(super) fn caches(&self) -> &[CacheMount] {
        &self.caches
    }

    pub fn network(&self) -> &NetworkPlan {
        &self.network
    }

    /// Whether the engine's bridge is the sandbox's network.
    pub(super) fn has_open_network(&self) -> bool {
        self.network.mode == NetworkMode::Open
    }

    /// Returns the same with the volume in which a gateway's socket is, or will be.
    pub(super) fn reaching(&self, volume: Option<&str>) -> Self {
        Self {
            gateway: volume.map(str::to_owned),
            ..self.clone()
        }
    }

    fn connect(&self, container: &mut ContainerSpec) {
        if self.has_open_network() {
            container.network = Network::Outward;
            // Those of the engine, which tell of the network that it is on.
            container.masked_paths.retain(|path| path != RESOLVER);
            container.mounts.retain(
                |mount| !matches!(mount, Mount::OfVolume { target, .. } if target == HOSTS),
            );
        }
        if let Some(volume) = &self.gateway {
            container.mounts.push(Mount::Volume {
                name: volume.clone(),
                target: EGRESS_FOLDER.to_owned(),
                read_only: true,
            });
        }
    }

    /// Returns whether that copy is laid over the project.
    pub(super) fn is_laid_over(&self) -> bool {
        self.review.as_ref().is_some_and(Held::is_laid_over)
    }

    /// Returns whether commands work on a copy, of which a user accepts what they like.
    pub fn is_held_back(&self) -> bool {
        self.review.is_some()
    }

    /// Whether each turn of the session goes into the project at its end.
    pub(super) fn is_by_turn(&self) -> bool {
        self.review.as_ref().is_some_and(Held::is_by_turn)
    }

    /// Returns the same for a session, which has a git folder of its own.
    #[must_use]
    pub fn with_git(&self, git: git::Options) -> Self {
        Self {
            git: Some(git),
            ..self.clone()
        }
    }

    /// Returns the same with the session's git folder in the place of the real one.
    pub(super) fn lending(&self, lent: Option<Lent>) -> Self {
        Self {
            lent,
            ..self.clone()
        }
    }

    /// Checks what is lent, just before the engine mounts it.
    pub(super) fn check_lent(&self) -> Result<(), Error> {
        self.lent.as_ref().map_or(Ok(()), Lent::check)
    }

    /// Returns the same in another image, one of ours.
    pub(super) fn in_image(&self, image: &ImageFacts) -> Self {
        let container = ContainerSpec {
            image: image.id.clone(),
            env: environment(image),
            ..self.container.clone()
        };
        Self {
            container,
            ..self.clone()
        }
    }

    /// Returns the same with what the last sandbox of the project covered.
    #[must_use]
    pub fn covering_as_before(&self, records: &Path, auto_run: &[String]) -> Self {
        self.covering(&Record::new(records, &self.project).read(auto_run))
    }

    /// Returns the folders that are held in place: none in a copy, since they are the project's
    /// own, and what is moved there is seen before it is accepted.
    pub(super) fn held_folders(&self) -> Vec<String> {
        if self.review.is_some() {
            Vec::new()
        } else {
            self.covers.held_folders()
        }
    }

    fn cover(&self, container: &mut ContainerSpec) {
        container.masked_paths.extend(self.covers.masked_paths());
        for path in self.covers.readonly_paths() {
            if !container.readonly_paths.contains(&path) {
                container.readonly_paths.push(path);
            }
        }
        container
            .mounts
            .extend(self.held_folders().into_iter().map(|folder| Mount::Bind {
                source: format!("{}/{folder}", self.project.text()),
                target: format!("/workspace/{folder}"),
                read_only: false,
            }));
    }

    /// Returns what the engine is told to make the keeper of such a sandbox: the same machine, with
    /// nothing covered, and the project read-only unless it is to be changed.
    pub(super) fn keeper(
        &self,
        name: String,
        labels: Labels,
        hosts: Option<&str>,
        keep: Option<&str>,
        writes: bool,
    ) -> ContainerSpec {
        let mut container = self.uncovered(name, labels, hosts);
        for mount in &mut container.mounts {
            if let Mount::Bind { read_only, .. } = mount {
                *read_only = !writes;
            }
        }
        if let Some(keep) = keep {
            container.mounts.push(Mount::Seeded {
                name: keep.to_owned(),
                target: "/keep".to_owned(),
                read_only: false,
            });
        }
        if let Some(held) = &self.review {
            held.show(&mut container);
        }
        "keeper".clone_into(&mut container.hostname);
        container.memory = KEEPER_MEMORY;
        container.n_processes = KEEPER_PROCESSES;
        container.seccomp = Some(SECCOMP.to_owned());
        container
    }

    /// Returns a hash of all settings that make the sandbox what it is, to know whether a running one
    /// has the same. What it masks of the project is not one of them: commands of that very sandbox
    /// make files that the next search finds.
    pub(super) fn hash(&self) -> String {
        use sha2::Digest;
        let mut container = self.container.clone();
        for paths in [&mut container.masked_paths, &mut container.readonly_paths] {
            paths.retain(|path| !path.starts_with("/workspace/"));
        }
        // A gateway is a session's own, so that whoever wants one joins no sandbox without it.
        let network = match self.network.mode {
            NetworkMode::None => "",
            mode => mode.as_str(),
        };
        for cache in &self.caches {
            cache.mount(&mut container);
        }
        let digest =
            sha2::Sha256::digest(format!("{container:?}{network}{:?}", self.reveal).as_bytes());
        digest
            .iter()
            .take(12)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Returns the same for a sandbox that takes the place of another one of the session: the disk is
    /// counted as from the start of that.
    pub(super) fn counting_from(&self, began: Option<DiskBegan>) -> Self {
        Self {
            disk: DiskLimits { began, ..self.disk },
            ..self.clone()
        }
    }

    /// Returns the image as the engine is told it.
    pub fn image(&self) -> &str {
        &self.container.image
    }

    /// Returns the user and the group that its processes have.
    pub(super) fn ids(&self) -> (u32, u32) {
        self.ids
    }

    pub fn user(&self) -> &str {
        &self.container.user
    }

    pub fn memory(&self) -> u64 {
        self.container.memory
    }

    /// Returns the processor time that it gets, in thousandths of one processor's.
    pub(super) fn millicores(&self) -> u64 {
        self.container.nano_cpus / 1_000_000
    }

    pub fn n_processes(&self) -> u32 {
        self.container.n_processes
    }
}

/// Returns what takes an image's variables away that make a loader or a shell run something: the
/// others reach PID 1 whatever we do.
pub fn emptied() -> impl Iterator<Item = String> {
    EMPTIED.iter().map(|name| format!("{name}="))
}

/// Names the variables of an image that [`emptied`] takes away.
pub fn taken_away(image: &ImageFacts) -> Vec<&'static str> {
    let is_set = |name: &str| {
        image
            .env
            .iter()
            .filter_map(|pair| pair.split_once('='))
            .any(|(set, value)| set == name && !value.is_empty())
    };
    EMPTIED.into_iter().filter(|name| is_set(name)).collect()
}

/// Keeps package managers from trying again, some for minutes, where there is no network.
const FAIL_AT_ONCE: [&str; 5] = [
    "CARGO_NET_RETRY=0",
    "PIP_DISABLE_PIP_VERSION_CHECK=1",
    "PIP_RETRIES=0",
    "UV_HTTP_RETRIES=0",
    "npm_config_fetch_retries=0",
];

/// Whether Podbay itself sets a variable of this name for commands, whatever the user's own is.
pub fn is_own_variable(name: &str) -> bool {
    let fixed = FAIL_AT_ONCE.iter().filter_map(|pair| pair.split_once('='));
    fixed
        .chain(guest::DEFAULT_VARIABLES)
        .any(|(own, _)| own == name)
        || ["TERM", "USER", "LOGNAME", "SHELL"].contains(&name)
}

/// Returns the environment of PID 1; commands get a clean one from the guest.
fn environment(image: &ImageFacts) -> Vec<String> {
    let mut env = vec![
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        format!("HOME={HOME}"),
        "LANG=C.UTF-8".to_owned(),
        "TERM=dumb".to_owned(),
    ];
    env.extend(FAIL_AT_ONCE.map(str::to_owned));
    let path = image.env.iter().find(|pair| pair.starts_with("PATH="));
    if let Some(path) = path {
        // Images put their own tools on the path, and that is what they are chosen for.
        env[0].clone_from(path);
    }
    env.extend(emptied());
    env
}
