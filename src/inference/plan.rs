use super::Error;
use super::Model;
use super::Options;
use super::atomic_file;
use super::paths::SOCKET;
use super::server_env::ServerEnv;
use podbay_engine::ContainerSpec;
use podbay_engine::Facts;
use podbay_engine::ImageFacts;
use podbay_engine::Labels;
use podbay_engine::Log;
use podbay_engine::Mount;
use podbay_engine::Network;
use podbay_engine::Role;
use podbay_engine::Ulimit;
use podbay_event::ByteSize;
use podbay_sandbox::Closed;
use podbay_sandbox::MASKED_PATHS;
use podbay_sandbox::Places;
use podbay_sandbox::READONLY_PATHS;
use podbay_sandbox::SECCOMP;
use podbay_sandbox::Share;
use podbay_sandbox::cover;
use podbay_sandbox::misfit;

/// The server's port in its container, if it uses one.
pub(super) const PORT: u16 = 8080;

const SOCKET_FOLDER: &str = "/run/llama";
const KEY_FOLDER: &str = "/run/key";

/// Path of the model in the container: the file, or the folder of the parts.
const MODEL: &str = "/model.gguf";
const MODELS: &str = "/models";

/// Share of memory for the volumes of its image; the memory is computed for the model.
const VOLUMES: Share = Share {
    bytes: 16 << 20,
    most_bytes: 1 << 20,
    files: 16_000,
    most_files: 1000,
    exec: false,
};

/// The engine's default /dev/shm allows any number of empty files.
const SHM: &str = "rw,noexec,nosuid,nodev,size=1m,nr_inodes=1k,mode=1777";

/// Name of the key's file.
pub(super) const KEY: &str = "key";

/// Longest context in tokens that is chosen by default: it costs memory, and time to read.
const LONGEST_CONTEXT: u64 = 32_768;

/// Shortest context that scarce memory leads to: a shorter one does not hold a prompt and an
/// answer.
const SHORTEST_CONTEXT: u64 = 4096;

/// Mebibytes of earlier prompts that the server caches; its own default is 8192.
pub(super) const PROMPT_CACHE: u64 = 256;

/// Log level: how the server starts, and tokens and time of each request. Prompts and answers are
/// not logged, except for a few words that an error quotes.
const TALK: &str = "3";

/// Memory besides model, context and prompt cache, in bytes.
pub(super) const HEADROOM: u64 = 512 << 20;

/// The complete configuration of a model server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) container: ContainerSpec,
    /// Hash of everything relevant, by which a running server is recognized as the same.
    pub(super) hash: String,
    pub(super) context: u64,
    /// A warning for the user.
    pub(super) warning: Option<String>,
}

/// The host paths that a server gets.
pub(super) struct HostPaths<'a> {
    pub(super) name: String,
    pub(super) user: (u32, u32),
    pub(super) key_folder: &'a str,
    /// `None` if it listens on a port.
    pub(super) socket_folder: Option<&'a str>,
}

impl Plan {
    pub(super) fn new(
        model: &Model,
        image: &ImageFacts,
        engine: &Facts,
        options: &Options,
        host: &HostPaths<'_>,
    ) -> Result<Self, Error> {
        let refuse = |problem| Error::Image {
            image: options.image_name().to_owned(),
            problem,
        };
        if let Some(problem) = misfit(image, engine) {
            return Err(refuse(problem));
        }
        let beside =
            "the engine would make that folder on your disk, beside the server's socket, as root"
                .to_owned();
        let closed = [
            Closed {
                place: SOCKET_FOLDER,
                why: beside,
            },
            Closed::mounted(KEY_FOLDER),
            Closed::mounted(MODEL),
            Closed::mounted(MODELS),
        ];
        let mut tmpfs = cover(&image.volumes, &closed, VOLUMES).map_err(refuse)?;
        tmpfs.push(("/dev/shm".to_owned(), SHM.to_owned()));
        let mounted: Vec<&str> = closed
            .iter()
            .map(|closed| closed.place)
            .chain(tmpfs.iter().map(|(covered, _)| covered.as_str()))
            .collect();
        let variables = ServerEnv::new(image, &mounted);
        let n_threads = options.threads.unwrap_or(engine.n_cpus).clamp(1, 1024);
        let (context, memory) = size(model, engine.memory, options)?;
        let mut mounts = vec![Mount::Bind {
            source: host.key_folder.to_owned(),
            target: KEY_FOLDER.to_owned(),
            read_only: true,
        }];
        let mut targets = Vec::new();
        for path in &model.files {
            let refuse = |problem: &str| Error::Model {
                path: path.clone(),
                problem: problem.to_owned(),
                hint: None,
            };
            let source = path
                .to_str()
                .ok_or_else(|| refuse("its path is not UTF-8, and an engine takes no other"))?;
            // The parts of a split model find each other by name.
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let target = if model.files.len() == 1 {
                MODEL.to_owned()
            } else {
                format!("{MODELS}/{name}")
            };
            mounts.push(Mount::Bind {
                source: source.to_owned(),
                target: target.clone(),
                read_only: true,
            });
            targets.push(target);
        }
        let mut argv: Vec<String> = [&options.program, "-m", &targets[0], "--alias", &model.name]
            .map(str::to_owned)
            .to_vec();
        let network = if let Some(folder) = host.socket_folder {
            mounts.push(Mount::Bind {
                source: folder.to_owned(),
                target: SOCKET_FOLDER.to_owned(),
                read_only: false,
            });
            argv.extend(["--host".to_owned(), format!("{SOCKET_FOLDER}/{SOCKET}")]);
            Network::None
        } else {
            argv.extend(["--host", "0.0.0.0", "--port"].map(str::to_owned));
            argv.push(PORT.to_string());
            Network::Published {
                host_port: options.port,
                port: PORT,
            }
        };
        argv.extend(common_arguments(
            options,
            context,
            n_threads,
            &format!("{KEY_FOLDER}/{KEY}"),
        ));
        let container = ContainerSpec {
            name: host.name.clone(),
            // By its id: a tag may move before it is used.
            image: image.id.clone(),
            user: format!("{}:{}", host.user.0, host.user.1),
            entrypoint: argv,
            env: variables.env.clone(),
            hostname: "model-server".to_owned(),
            labels: Labels::new(Role::ModelServer),
            mounts,
            tmpfs,
            network,
            memory,
            // An engine refuses more cores than it has.
            nano_cpus: u64::from(n_threads.min(engine.n_cpus.max(1))) * 1_000_000_000,
            cpu_shares: 1024,
            // The server has compute threads, and as many HTTP threads.
            n_processes: 64 + 4 * n_threads.max(engine.n_cpus),
            ulimits: vec![
                Ulimit {
                    name: "core",
                    limit: 0,
                },
                Ulimit {
                    name: "nofile",
                    limit: 1024,
                },
                // The folder of its socket is on the host's disk, so file size is limited; a socket
                // has none.
                Ulimit {
                    name: "fsize",
                    limit: 0,
                },
                Ulimit {
                    name: "memlock",
                    limit: 65536,
                },
                // The kernel counts both per user, over all processes.
                Ulimit {
                    name: "msgqueue",
                    limit: 0,
                },
                Ulimit {
                    name: "sigpending",
                    limit: 4096,
                },
            ],
            sysctls: Vec::new(),
            shm: 1 << 20,
            oom_score_adj: 200,
            seccomp: Some(SECCOMP.to_owned()),
            writable_root: false,
            masked_paths: MASKED_PATHS.map(str::to_owned).to_vec(),
            readonly_paths: READONLY_PATHS.map(str::to_owned).to_vec(),
            attached: false,
            auto_remove: false,
            log: Log::Bounded,
        };
        // A file that was replaced under its name is another model.
        let all = format!("{container:?} {} {}", model.size, model.changed);
        let hash = atomic_file::hex(&atomic_file::sha256(all.as_bytes()))[..24].to_owned();
        let container = ContainerSpec {
            labels: Labels {
                spec: Some(hash.clone()),
                ..container.labels.clone()
            },
            ..container
        };
        Ok(Self {
            container,
            hash,
            context,
            warning: variables.warning(),
        })
    }

    /// Returns its mount points, at which the image must have no symlinks.
    pub(super) fn places(&self) -> Places {
        let targets = self.container.mounts.iter().filter_map(|mount| {
            if let Mount::Bind { target, .. } = mount {
                Some(target)
            } else {
                None
            }
        });
        let (folders, files): (Vec<_>, Vec<_>) = targets
            .cloned()
            .partition(|target| [KEY_FOLDER, SOCKET_FOLDER].contains(&target.as_str()));
        let mut on_the_way = ["/dev", "/etc", "/proc", "/run", "/sys"]
            .map(str::to_owned)
            .to_vec();
        if files.iter().any(|file| file.starts_with(MODELS)) {
            on_the_way.push(MODELS.to_owned());
        }
        let folders = [on_the_way, folders].concat();
        // The mount points depend on the model.
        let all = format!("{folders:?} {files:?}");
        let mark = format!(
            "-server-{}",
            &atomic_file::hex(&atomic_file::sha256(all.as_bytes()))[..12]
        );
        Places {
            folders,
            files,
            open: (SOCKET_FOLDER, "the folder of its socket"),
            owner: "the model server",
            mark,
            users: false,
        }
    }
}

/// Returns the tokens of context and the bytes of memory for a server of this model on a machine
/// with `machine` bytes (0: unknown).
pub fn measure(model: &Model, machine: u64, options: &Options) -> Result<(u64, u64), Error> {
    size(model, machine, options)
}

/// Returns the arguments that do not depend on the socket and the model.
pub(super) fn common_arguments(
    options: &Options,
    context: u64,
    n_threads: u32,
    key: &str,
) -> Vec<String> {
    let mut argv = [
        "--jinja",
        "--no-ui",
        "--offline",
        "--no-slots",
        "-np",
        "1",
        "-b",
        "512",
        "-lv",
        TALK,
    ]
    .map(str::to_owned)
    .to_vec();
    argv.extend(["--api-key-file", key].map(str::to_owned));
    argv.extend([
        "-c".to_owned(),
        context.to_string(),
        "-t".to_owned(),
        n_threads.to_string(),
    ]);
    argv.extend(["--cache-ram".to_owned(), PROMPT_CACHE.to_string()]);
    if options.sleep_idle.get() > 0 {
        argv.extend([
            "--sleep-idle-seconds".to_owned(),
            options.sleep_idle.get().to_string(),
        ]);
    }
    argv
}

/// Returns the tokens of context and the bytes of memory.
pub(super) fn size(model: &Model, machine: u64, options: &Options) -> Result<(u64, u64), Error> {
    // If the header does not tell it, a guess that is too high only makes the limit less tight.
    let per_token = model.bytes_per_token.unwrap_or(256 << 10);
    let needed = |context: u64| {
        per_token
            .saturating_mul(context)
            .saturating_add(model.size)
            .saturating_add((PROMPT_CACHE << 20) + HEADROOM)
    };
    let mut context = match options.context {
        Some(context) if context < 256 => {
            let problem = format!("{context} tokens hold neither a prompt nor an answer");
            return Err(Error::Setting {
                key: "inference.context",
                problem,
            });
        }
        Some(context) => u64::from(context),
        None => model
            .context
            .unwrap_or(SHORTEST_CONTEXT)
            .clamp(256, LONGEST_CONTEXT),
    };
    if let Some(memory) = options.memory {
        let least = ByteSize::mib(64);
        if memory < least {
            let problem = format!(
                "{} is less than the {} that the server needs without any model",
                memory.rounded(),
                least.rounded()
            );
            return Err(Error::Setting {
                key: "inference.memory",
                problem,
            });
        }
        return Ok((context, memory.bytes()));
    }
    // Without the engine's memory there is nothing to limit the context by.
    if machine == 0 {
        return Ok((context, needed(context)));
    }
    while options.context.is_none() && needed(context) > machine && context > SHORTEST_CONTEXT {
        context = (context / 2).max(SHORTEST_CONTEXT);
    }
    if needed(context) > machine {
        return Err(Error::TooLarge {
            needed: ByteSize::new(needed(context)),
            free: ByteSize::new(machine),
        });
    }
    Ok((context, needed(context)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn model() -> Model {
        Model {
            name: "m".into(),
            files: vec!["/m/m.gguf".into()],
            identities: vec![(1, 1)],
            size: 4 << 30,
            changed: 7,
            context: Some(131_072),
            bytes_per_token: Some(128 << 10),
            is_smoke: false,
            note: None,
        }
    }

    #[track_caller]
    fn check(machine_gib: u64, options: &Options, context: u64) {
        assert_eq!(
            size(&model(), machine_gib << 30, options)
                .expect("it fits")
                .0,
            context
        );
    }

    #[test]
    fn the_context_fits_the_memory() {
        let auto = Options::default();
        check(16, &auto, 32_768);
        check(8, &auto, 16_384);
        check(6, &auto, 8192);
        check(0, &auto, 32_768);
        assert!(matches!(
            size(&model(), 5 << 30, &auto),
            Err(Error::TooLarge { .. })
        ));
        let asked = Options {
            context: Some(65_536),
            ..Options::default()
        };
        check(16, &asked, 65_536);
        assert!(
            matches!(size(&model(), 8 << 30, &asked), Err(Error::TooLarge { .. })),
            "what was asked for is not shortened"
        );
        let small = Options {
            context: Some(1),
            ..Options::default()
        };
        assert!(matches!(
            size(&model(), 8 << 30, &small),
            Err(Error::Setting { .. })
        ));
    }

    pub(in super::super) fn container() -> ContainerSpec {
        plan(&model(), &Options::default(), true).container
    }

    fn plan(model: &Model, options: &Options, socket: bool) -> Plan {
        from(&image(&[]), model, options, socket).expect("a plan")
    }

    fn image(volumes: &[&str]) -> ImageFacts {
        ImageFacts {
            id: "sha256:00".into(),
            tags: vec![],
            labels: None,
            volumes: volumes.iter().map(|&volume| volume.to_owned()).collect(),
            env: vec![],
            architecture: String::new(),
            size: 0,
        }
    }

    fn from(
        image: &ImageFacts,
        model: &Model,
        options: &Options,
        socket: bool,
    ) -> Result<Plan, Error> {
        let engine = Facts::plain();
        let host = HostPaths {
            name: "n".into(),
            user: (1000, 1000),
            key_folder: "/k",
            socket_folder: socket.then_some("/s"),
        };
        Plan::new(model, image, &engine, options, &host)
    }

    #[test]
    fn image_volumes_are_masked_or_refused_at_the_servers_own_paths() {
        let covered = from(
            &image(&["/data/", "/srv/../cache"]),
            &model(),
            &Options::default(),
            true,
        )
        .expect("good ones")
        .container
        .tmpfs;
        let of = |path: &str| {
            covered
                .iter()
                .find(|(covered, _)| covered == path)
                .map(|(_, options)| options.as_str())
        };
        let options = "rw,noexec,nosuid,nodev,size=1048576,nr_inodes=1000,mode=1777";
        assert_eq!(
            (of("/data"), of("/cache")),
            (Some(options), Some(options)),
            "{covered:?}"
        );
        for (volume, words) in [
            ("/run/llama", "beside the server's socket, as root"),
            (
                "/run/../run/llama/made",
                "beside the server's socket, as root",
            ),
            ("/run/key", "at or below /run/key"),
            ("/model.gguf", "at or below /model.gguf"),
            ("/models/deep", "at or below /models"),
            ("/proc", "at or below /proc"),
            ("/", "its root as a volume"),
        ] {
            let error = from(
                &image(&["/data", volume]),
                &model(),
                &Options::default(),
                true,
            )
            .expect_err(volume);
            assert!(
                error.is_about_server() && error.to_string().contains(words),
                "{volume}: {error}"
            );
            assert!(
                error
                    .hint()
                    .is_some_and(|hint| hint.contains("inference.image"))
            );
        }
        let foreign = ImageFacts {
            architecture: "s390x".to_owned(),
            ..image(&[])
        };
        let error = from(&foreign, &model(), &Options::default(), true)
            .expect_err("another machine's")
            .to_string();
        assert!(error.contains("another kind of machine, s390x"), "{error}");
    }

    #[test]
    fn checked_paths_of_an_image_depend_on_the_models_mount_point() {
        let one = plan(&model(), &Options::default(), true).places();
        assert!(
            one.folders.contains(&"/run/llama".to_owned())
                && one.folders.contains(&"/run/key".to_owned()),
            "{one:?}"
        );
        assert_eq!(one.files, ["/model.gguf"]);
        let two = Model {
            files: vec![
                "/m/a-00001-of-00002.gguf".into(),
                "/m/a-00002-of-00002.gguf".into(),
            ],
            ..model()
        };
        let two = plan(&two, &Options::default(), true).places();
        assert!(two.folders.contains(&"/models".to_owned()), "{two:?}");
        assert_eq!(
            two.files,
            [
                "/models/a-00001-of-00002.gguf",
                "/models/a-00002-of-00002.gguf"
            ]
        );
        assert_ne!(one.mark, two.mark);
    }

    #[test]
    fn every_relevant_setting_changes_the_plans_hash() {
        let first = plan(&model(), &Options::default(), true);
        assert_eq!(first.hash, plan(&model(), &Options::default(), true).hash);
        let others = [
            plan(
                &Model {
                    changed: 8,
                    ..model()
                },
                &Options::default(),
                true,
            ),
            plan(
                &Model {
                    name: "other".into(),
                    ..model()
                },
                &Options::default(),
                true,
            ),
            plan(
                &model(),
                &Options {
                    context: Some(512),
                    ..Options::default()
                },
                true,
            ),
            plan(
                &model(),
                &Options {
                    threads: Some(1),
                    ..Options::default()
                },
                true,
            ),
            plan(&model(), &Options::default(), false),
        ];
        assert!(others.iter().all(|other| other.hash != first.hash));
    }

    #[test]
    fn with_a_socket_the_server_has_no_network() {
        let closed = plan(&model(), &Options::default(), true).container;
        assert_eq!(closed.network, Network::None);
        assert!(
            closed
                .mounts
                .iter()
                .all(|mount| matches!(mount, Mount::Bind { target, read_only, .. } if *read_only || target == SOCKET_FOLDER))
        );
        let open = plan(&model(), &Options::default(), false).container;
        assert_eq!(
            open.network,
            Network::Published {
                host_port: 7474,
                port: PORT
            }
        );
        assert!(open.entrypoint.contains(&"--api-key-file".to_owned()));
    }
}
