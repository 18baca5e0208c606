//! What `--help` and the manual pages say beyond a line for each flag: a page for each command.
//!
//! A test parses every example with the real command line, so none can outlive the flag it shows.

/// What one command's page adds to its summary and its flags.
pub(super) struct Page {
    /// Its words behind `podbay`; empty for the page of the whole program.
    pub(super) command: &'static str,
    /// What it does, in paragraphs divided by empty lines.
    pub(super) text: &'static str,
    /// What somebody wants, and the line that does it.
    pub(super) examples: &'static [(&'static str, &'static str)],
    pub(super) codes: Codes,
}

/// The exit codes that a page shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Codes {
    /// Those that every command shares; only the first page and `run` spell them out.
    Shared,
    All,
    /// A few of its own.
    Own(&'static [(&'static str, &'static str)]),
}

/// The codes that scripts depend on; `app::exit_code` has the numbers.
pub(super) const ALL_CODES: [(&str, &str); 11] = [
    ("0", "done"),
    ("1", "it was tried and failed"),
    ("2", "wrong usage or configuration"),
    (
        "3",
        "a limit was reached: turns, time, tokens, the model's window",
    ),
    (
        "4",
        "blocked: the last call that changes something was denied",
    ),
    ("5", "no sandbox"),
    ("6", "no model"),
    ("9", "some changes were not applied"),
    ("70", "a bug in Podbay"),
    ("130", "interrupted (Ctrl-C)"),
    ("143", "terminated (SIGTERM)"),
];

pub(super) const PAGES: &[Page] = &[
    Page {
        command: "",
        text: "The agent thinks outside, everything it does happens in a container: no network, no host file but the project, bounded \
               processor, memory, processes and time. Without a command it opens a chat in the current folder, or in the folder that is \
               named.\n\n\
               Settings come from files, from variables that begin with PODBAY_, and from flags, each stronger than the ones before. \
               Results go to the standard output, all else to the error stream.",
        examples: &[
            ("Set everything up and see it work:", "podbay quickstart"),
            ("Talk to the agent in the current folder:", "podbay"),
            (
                "Let it work on one task alone:",
                "podbay run \"make the tests pass\"",
            ),
            ("Look around in the sandbox yourself:", "podbay sh"),
        ],
        codes: Codes::All,
    },
    Page {
        command: "quickstart",
        text: "Builds or pulls the images that are missing, loads a small model, starts its server, and lets the model work on a copy of \
               an example, in the sandbox. What is there already is used again, so a second time takes seconds.\n\n\
               The small model proves that everything works; it writes no good code. Where no registry answers, the base images are made \
               from Debian's archive; as root this command may install debootstrap for it, and says so.",
        examples: &[
            ("Set everything up:", "podbay quickstart"),
            (
                "The same with a model of your own:",
                "podbay quickstart --model ~/models/coder.gguf",
            ),
            (
                "Without a model server of ours:",
                "podbay quickstart --endpoint http://127.0.0.1:8080/v1",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "run",
        text: "Works on a task until the model says that it is done, a limit is reached, or something is in the way. Nobody is asked: what \
               the mode does not allow is denied, and the model is told so. Only when it is done, at a terminal and with --apply, are you asked \
               about files that run by themselves. The model's answer goes to the standard output.\n\n\
               A pipe or a file on the standard input is added to the task, at most 256 KiB of it, and that is said. A pipe that brings \
               nothing for two seconds is left alone. With `-` as TASK the standard input is the task. Ctrl-C ends \
               the call that runs, and the model continues without it; while the model speaks, or twice, it ends the task (130). SIGTERM \
               ends it in any case (143).\n\n\
               An interrupted run, whatever interrupted it, resumes with --continue or --resume ID: the model is sent what it was sent \
               before, no call is executed twice, and one that was under way is told to the model as such. Without TASK the open task \
               continues.\n\n\
               With --plan nothing changes the project: the run ends with a plan, which is the answer, and the command that implements \
               it: --resume ID --implement.\n\n\
               With --demo nothing is needed and nothing is touched: a script stands in for the model, the files are in memory, and no \
               command is run. All else is as in a real run, the log and the exit code too, so a script around Podbay can be tried with it.\n\n\
               With --output json one object is printed at the end, on every way out, with the status, the exit code, the answer, the \
               usage and the error. With --output jsonl each event is printed as it happens, and that object last.",
        examples: &[
            (
                "Work in the current folder:",
                "podbay run \"make the tests pass\"",
            ),
            (
                "Review a change, without changing anything:",
                "git diff | podbay run --mode deny \"review this change\"",
            ),
            (
                "Have a plan made first, while the project is read-only:",
                "podbay run --plan \"move the settings into their own module\"",
            ),
            (
                "In a script, within bounds:",
                "podbay run --output json --max-turns 40 --timeout 20m \"fix the build\" >result.json",
            ),
        ],
        codes: Codes::All,
    },
    Page {
        command: "chat",
        text: "Opens a conversation in the project. The agent reads freely and asks before it changes anything; --mode says otherwise. \
               The first start asks, once, which model answers and how much the agent decides by itself. \
               --continue continues the last one of this project; what was allowed in it is asked for again. \
               What runs is stopped by Ctrl-C; twice, or /quit, leaves. /help lists what can be typed.",
        examples: &[
            ("Talk in the current folder:", "podbay chat"),
            ("Continue where you left:", "podbay chat --continue"),
            (
                "See each turn's changes before they are applied:",
                "podbay chat --changes review",
            ),
            (
                "Never ask about the tests, never touch the migrations:",
                "podbay chat --allow 'bash(cargo test)' --deny 'write_file(migrations/**)'",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "call",
        text: "Starts a sandbox, executes one tool call in it just as if a model had asked for it, with the same checks and \
               permissions, and prints what the model would have read.",
        examples: &[
            (
                "Read a file as a model would:",
                "podbay call read_file '{\"path\":\"README.md\"}'",
            ),
            (
                "Run a command:",
                "podbay call bash '{\"command\":\"make test\"}'",
            ),
            (
                "See what is refused:",
                "podbay call --mode deny write_file '{\"path\":\"a\",\"content\":\"b\"}'",
            ),
        ],
        codes: Codes::Own(&[
            ("0", "done"),
            ("1", "the call failed or is not valid"),
            (
                "4",
                "it was denied, or met a rule that denies in its middle",
            ),
            ("5", "no sandbox"),
        ]),
    },
    Page {
        command: "sh",
        text: "Opens a shell in the project's sandbox, under the same limits as the agent's commands, or runs the command behind `--` \
               there. With a terminal the command gets one of its own; without one, plain pipes. Its output passes unchanged. Where \
               `podbay up` has been called with the same settings, the shell joins that sandbox; with others it gets one of its own beside \
               it, and a warning. Ctrl-C is a key for the command; where the sandbox itself takes none for two seconds, one more says so, \
               and another one leaves it.",
        examples: &[
            ("Open a shell:", "podbay sh"),
            ("Run one command:", "podbay sh -- make test"),
            (
                "See what an image brings along:",
                "podbay sh --image debian:13 -- cat /etc/os-release",
            ),
        ],
        codes: Codes::Own(&[
            ("0 to 255", "the command's own"),
            ("125", "Podbay itself failed, and says why"),
        ]),
    },
    Page {
        command: "up",
        text: "Starts the sandbox and, where no endpoint is named, the model server. Later commands in this project join them instead of \
               starting their own. The sandbox ends when nobody has used it for `sandbox.lease` (30 minutes); `podbay down` ends both.",
        examples: &[
            ("Keep the sandbox of this project:", "podbay up"),
            ("With more room:", "podbay up --cpus 4 --memory 8GiB"),
            (
                "With another model:",
                "podbay up --model ~/models/coder.gguf",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "down",
        text: "Ends the project's sandbox and the model server, and removes what runs that were killed left behind. The model server is that of \
               all projects: where another process works with it, it stays, and that process is named.",
        examples: &[
            ("End what runs here:", "podbay down"),
            ("For another project:", "podbay down -C ~/src/shop"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "status",
        text: "Shows the engine, the project's sandbox and the model server or endpoint.",
        examples: &[
            ("For people:", "podbay status"),
            ("For scripts:", "podbay status --json | jq -r .engine"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "logs",
        text: "Shows what Podbay's own model server has printed: how it loaded the model, what went wrong, and of each request how many \
               tokens it read and wrote and how long that took. What they say is not in it, but for the few words that an error may \
               quote. The sandbox keeps no log; what its commands print is in the session.",
        examples: &[
            ("The last hundred lines:", "podbay logs"),
            ("Continue as more comes:", "podbay logs --follow --lines 20"),
            (
                "What the last session here tried of the network:",
                "podbay logs --network",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "stats",
        text: "Adds up what the runs and chats of this project took that have ended: requests to the model, tool calls by tool, tokens, cost and \
               time. It reads metrics.jsonl in the state folder, which is bounded (`session.events_max`): the oldest are dropped. What an agent \
               took counts for the session that started it. In a chat /stats shows the same of that session.",
        examples: &[
            ("What this project took:", "podbay stats"),
            (
                "All projects, for a script:",
                "podbay stats --all --json | jq .usage",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "why",
        text: "Reads from a session's log what was denied, the newest first: by permissions, by a hook or by the network, why, and what \
               would allow it.",
        examples: &[
            ("The last denials in this project:", "podbay why"),
            ("Those of one call:", "podbay why call_3"),
            (
                "Of an earlier session:",
                "podbay why --session 4uqzx5mg46st",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "network",
        text: "Helps to write rules for hosts that a sandbox may reach. docs/guides/network.md says what rules are.",
        examples: &[
            (
                "See what an installation asks for:",
                "podbay network learn -- npm install",
            ),
            (
                "See what it asks for besides npm's registry:",
                "podbay network learn --allow-host @npm -- npm install",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "network learn",
        text: "Runs a command in the sandbox, in which it reaches what rules allow already and nothing else. What else it asks for is denied, \
               and rules that would allow it are proposed on standard error. A command that was denied its first host asks for no second: \
               learn again with what was proposed.",
        examples: &[
            (
                "See what an installation asks for:",
                "podbay network learn -- npm install",
            ),
            (
                "See what it asks for besides npm's registry:",
                "podbay network learn --allow-host @npm -- npm install",
            ),
        ],
        codes: Codes::Own(&[
            ("0", "the command ran, whatever came of it"),
            ("125", "Podbay's own failure"),
        ]),
    },
    Page {
        command: "jobs",
        text: "A command that `podbay sh --detach` starts stays in the sandbox of `podbay up`. It ends by itself, with `podbay jobs stop`, or with \
               that sandbox. A process of Podbay in the background holds it and keeps up to 16 MiB of its output, both streams in one. Jobs that \
               have ended are remembered for a week.",
        examples: &[
            ("What is there:", "podbay jobs list"),
            (
                "What one prints, until it ends:",
                "podbay jobs logs -f k3f2",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "jobs list",
        text: "Lists jobs of all projects, the newest first, with the state of each: running, its exit code, or why it failed.",
        examples: &[
            ("What is there:", "podbay jobs list"),
            ("For a script:", "podbay jobs list --json"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "jobs logs",
        text: "Prints the output of a job as the command wrote it.",
        examples: &[
            ("What it has printed so far:", "podbay jobs logs k3f2"),
            ("Until it ends:", "podbay jobs logs --follow k3f2"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "jobs stop",
        text: "Sends the command TERM, and KILL after `sandbox.grace`, with all that it started; prints how it ended.",
        examples: &[
            ("By its id:", "podbay jobs stop k3f2a9d0c4e8b716"),
            ("By the beginning of its id:", "podbay jobs stop k3f2"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "install",
        text: "Runs the project's package managers in a sandbox of their own, the install phase: it reaches the registries of their presets and \
               what you allow, and it is over before any session begins. What they get stays in caches of this project, which its other \
               sandboxes have read-only, so that they need no network.\n\n\
               Files of the project open no host: a registry that one names is reached if your settings allow it, or with --allow-host. The \
               commands of `[setup]` come last, once for each image and content of lock files.",
        examples: &[
            ("Install what the manifests ask for:", "podbay install"),
            (
                "With a registry of your company:",
                "podbay install --allow-host \"pypi.example.com private\" pip",
            ),
            (
                "In an image that has the package manager:",
                "podbay install --runtime python",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "cache",
        text: "Each project has a cache of its own for each package manager, which `podbay install` fills. `podbay gc` removes those of projects \
               that are not there any more.",
        examples: &[
            ("What is there:", "podbay cache list"),
            ("Begin anew in this project:", "podbay cache rm"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "cache list",
        text: "Lists the caches of all projects, with what was in them after the last installation.",
        examples: &[
            ("What is there:", "podbay cache list"),
            ("For a script:", "podbay cache list --json"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "cache rm",
        text: "Removes caches of a project, by default that in the current folder. One that a running sandbox has stays, and that is said.",
        examples: &[
            ("All of this project:", "podbay cache rm"),
            ("One of them:", "podbay cache rm pip"),
            ("All of all projects:", "podbay cache rm --all"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "images",
        text: "Podbay's own images are built on this machine, from files that the program carries, on a Debian that is pulled or, where no \
               registry answers, made from Debian's archive.",
        examples: &[
            ("What is here:", "podbay images list"),
            ("Build all that a set-up needs:", "podbay images build"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "images build",
        text: "Builds the images that are named, or those that every set-up needs. They are built by themselves when they are needed; \
               this is for doing it beforehand, and for having Debian's updates: a new build asks the archive again.",
        examples: &[
            ("Build what every set-up needs:", "podbay images build"),
            (
                "Build the tool chain of a project:",
                "podbay images build podbay/python",
            ),
            (
                "Where no registry answers, as root:",
                "podbay images build --install",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "images list",
        text: "Lists every image that Podbay can build, whether it is here, and whether it is what this version would build.",
        examples: &[
            ("List them:", "podbay images list"),
            ("Only what is missing:", "podbay images list | grep absent"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "images bundle",
        text: "A bundle is one file with images and models in it, and nothing else: no key, no setting, no session. It is made where there \
               is a network and loaded where there is none.",
        examples: &[
            ("Here:", "podbay images bundle save podbay.tar"),
            ("There:", "podbay images bundle load podbay.tar"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "images bundle save",
        text: "Builds, pulls or loads what is missing, and puts it into one file. Without --image these are the workspace and the model \
               server, without --model the model that the settings name. Every part's size and SHA-256 stand in the file's first entry. \
               While it is written it is called FILE.part.",
        examples: &[
            (
                "What every set-up needs:",
                "podbay images bundle save podbay.tar",
            ),
            (
                "With a better model:",
                "podbay images bundle save podbay.tar --model ~/models/coder.gguf",
            ),
            (
                "One tool chain and no model:",
                "podbay images bundle save python.tar --image podbay/python --no-model",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "images bundle load",
        text: "Reads the whole file and compares it with what its first entry says; only then the engine gets the images, and the models \
               get their names. What is cut short, damaged or not what `save` writes is refused, and nothing of it stays. An image or a \
               model that is here under the same name with other contents is only replaced with --force.\n\n\
               The hashes show damage, not who made the file: load bundles of people you trust.",
        examples: &[
            ("Load it:", "podbay images bundle load podbay.tar"),
            (
                "See what is in it first:",
                "podbay images bundle load --check podbay.tar",
            ),
            (
                "Replace what an older one has brought:",
                "podbay images bundle load --force podbay.tar",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "mcp",
        text: "MCP servers are programs with tools of their own, which run in the sandbox, on your machine where your own settings say so, or elsewhere, reached over HTTP. Your settings name them, and so may a project's \
               `.mcp.json`; none of that file is started before you have enabled it. docs/guides/mcp.md says more.",
        examples: &[
            ("What there is, and why one is off:", "podbay mcp list"),
            ("Read and enable those of a project:", "podbay mcp trust"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "mcp list",
        text: "Lists each server with where it is named, its command, whether a session starts it, and if not, why. Its tools are those \
               that it listed in an earlier session.",
        examples: &[
            ("The list:", "podbay mcp list"),
            ("For a script:", "podbay mcp list --json"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "mcp trust",
        text: "Shows the servers that the `.mcp.json` of the project names, and enables them: these exact bytes, in this folder. When the \
               file changes it is asked again.",
        examples: &[
            ("Read them, and decide:", "podbay mcp trust"),
            ("In a script that knows the file:", "podbay mcp trust --yes"),
            ("Take it back:", "podbay mcp trust --revoke"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "mcp accept",
        text: "A server describes its tools, and the model reads that. Where a server says something else than in an earlier session, its \
               changed and new tools are not offered until you have seen them here.",
        examples: &[
            (
                "See what has changed, and decide:",
                "podbay mcp accept time",
            ),
            ("Without a question:", "podbay mcp accept time --yes"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "memory",
        text: "The agent may save short notes, which later sessions in this project are shown. They are files in Podbay's state folder, at most \
               20 for a project. `memory.enabled = false` switches them off. docs/guides/memory.md says more.",
        examples: &[
            ("What is known here:", "podbay memory list"),
            ("Take a note away:", "podbay memory forget build-command"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "memory list",
        text: "Lists the notes that sessions in this project are shown: yours for all projects, then those of the project, the newest first. \
               Files that cannot be used are named with the reason.",
        examples: &[
            ("The list:", "podbay memory list"),
            ("For a script, with the texts:", "podbay memory list --json"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "memory show",
        text: "Shows the file of a note.",
        examples: &[
            ("One of this project:", "podbay memory show build-command"),
            ("One of all projects:", "podbay memory show global/style"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "memory keep",
        text: "Keeps a note that the model proposed at the end of a session (`memory.learn`): later sessions are shown it.",
        examples: &[
            (
                "Keep one that `podbay memory list` shows as proposed:",
                "podbay memory keep build-command",
            ),
            (
                "Of another project:",
                "podbay memory keep release -C ~/src/site",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "memory forget",
        text: "Removes a note. Sessions that have read it keep what they have read.",
        examples: &[
            ("One of this project:", "podbay memory forget build-command"),
            ("One of all projects:", "podbay memory forget global/style"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "agents",
        text: "The model may give parts of a task to agents with conversations of their own. Each has a type, which says what it may use. A file \
               NAME.md in ~/.config/podbay/agents, or in .podbay/agents of a project, is another type. docs/guides/agents.md says more.",
        examples: &[
            ("The types that there are here:", "podbay agents list"),
            ("For a script:", "podbay agents list --json"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "agents list",
        text: "Lists the types of agents that sessions in this project have: Podbay's own, yours, then those of the project, which replace no \
               other. Files that cannot be used are named with the reason.",
        examples: &[
            ("The list:", "podbay agents list"),
            (
                "For a script, with tools and prompts:",
                "podbay agents list --json",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "skills",
        text: "A skill is a folder with a file SKILL.md, which says in its frontmatter what it is for and below that what its steps are. The model \
               is offered the name and description of each, and reads one when it chooses it. Yours are in ~/.config/podbay/skills, those of a \
               project in .podbay/skills and .claude/skills. docs/guides/skills.md says more.",
        examples: &[
            ("The skills that there are here:", "podbay skills list"),
            ("What one tells the model:", "podbay skills show pdf-forms"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "skills list",
        text: "Lists the skills that sessions in this project have: yours, then those of the project, which replace none of yours. Those that \
               cannot be used are named with the reason.",
        examples: &[
            ("The list:", "podbay skills list"),
            ("For a script:", "podbay skills list --json"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "skills show",
        text: "Shows what a skill is for, where it is, its steps, and the files that are put into the sandbox when it is chosen.",
        examples: &[
            ("One of them:", "podbay skills show pdf-forms"),
            (
                "One of another project:",
                "podbay skills show release -C ~/src/site",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "models",
        text: "Models for the model server: those that Podbay knows by name, those of your own list, and any GGUF file by its path or address. \
               Only the small model of quickstart was tried by us; the others are marked untried until you pull them.",
        examples: &[
            (
                "What there is, and what this machine would take:",
                "podbay models list",
            ),
            ("Load that one:", "podbay models pull"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "models list",
        text: "Lists name, size, memory and what is here of each model, and says in one sentence which one this machine takes when none is \
               named, and why.",
        examples: &[
            ("The list:", "podbay models list"),
            ("For a script:", "podbay models list --json"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "models pull",
        text: "Loads a model over several connections and checks its hash. What an earlier pull left is not loaded again, two pulls of \
               one model share one download, and a model that is here is checked and, where it is damaged, loaded anew. Without a name it \
               is the largest model that fits this machine.",
        examples: &[
            ("One of the list:", "podbay models pull qwen2.5-coder-7b"),
            (
                "A file of the hub:",
                "podbay models pull hf:owner/repository/model.gguf",
            ),
            (
                "A file from elsewhere:",
                "podbay models pull https://example.org/model.gguf",
            ),
        ],
        codes: Codes::Own(&[
            ("0", "it is here and right"),
            ("2", "there is no such model, or it may not be loaded"),
            (
                "6",
                "it could not be had; the next pull continues where this one ended",
            ),
        ]),
    },
    Page {
        command: "models rm",
        text: "Removes a model's files and what was loaded of them. A model that the running server serves is refused: `podbay down` ends it.",
        examples: &[
            ("Make room:", "podbay models rm qwen2.5-coder-7b"),
            (
                "A file that was loaded by its address:",
                "podbay models rm hf:owner/repository/model.gguf",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "models info",
        text: "Shows what is known of a model: licence, parameters, memory, where its files come from, where they are and their hashes.",
        examples: &[
            (
                "Before it is loaded:",
                "podbay models info qwen2.5-coder-7b",
            ),
            ("For a script:", "podbay models info smollm2-135m --json"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions",
        text: "Each run and each chat keeps a log of its events on disk, readable by you alone.",
        examples: &[
            ("What there is:", "podbay sessions list"),
            ("What happened last:", "podbay sessions show"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions list",
        text: "Lists the sessions of all projects, newest first: id, local time, folder and first words.",
        examples: &[
            ("The last twenty:", "podbay sessions list"),
            (
                "All, for a script:",
                "podbay sessions list --json -n 100000",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions show",
        text: "Shows a session event by event: what was asked, each call with its result, what was denied, and how it ended.",
        examples: &[
            ("The last one:", "podbay sessions show"),
            (
                "One of the list, as its records are:",
                "podbay sessions show --json 4k2m",
            ),
            (
                "The first version of its plan:",
                "podbay sessions show 4k2m --plan=1",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions resume",
        text: "Opens a chat that continues a session, in the folder that it worked in: the same as `podbay chat --resume ID` there. A log that \
               was cut off is repaired first, and what is cut is kept beside it. A session that another Podbay is writing is refused with \
               that one's process number.",
        examples: &[
            ("Continue with the last one:", "podbay sessions resume"),
            (
                "With one of the list, and another model:",
                "podbay sessions resume 4k2m --endpoint http://127.0.0.1:8080/v1",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions fork",
        text: "Copies a session with the outputs that were kept of it, and prints the new one's id. Both continue by themselves; the project's files \
               are the same for both.",
        examples: &[
            ("Try another way:", "podbay sessions fork last"),
            ("One of the list:", "podbay sessions fork 4k2m"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions report",
        text: "Prints what a session did, made of its log alone: calls, files that were created, modified, deleted and read, commands with their \
               exit codes, tests, denials, files that may run on your machine, tokens, time and cost. Sections without an entry are left out.",
        examples: &[
            ("What the last one did:", "podbay sessions report"),
            (
                "As a page for a browser:",
                "podbay sessions report 4k2m --format html > report.html",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions export",
        text: "Prints a session as Markdown or as one JSON object, without anything that a terminal obeys. What looks like a key is \
               replaced by ***; that is a guess, so read it before you hand it on.",
        examples: &[
            ("For a report:", "podbay sessions export last >session.md"),
            (
                "For a program:",
                "podbay sessions export 4k2m --format json | jq '.messages | length'",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions rewind",
        text: "Undoes your last N messages with all that the model answered and did after them: when the session continues, the model knows \
               nothing of it. The log keeps it, and files stay as they are. What a summary has replaced cannot be undone.",
        examples: &[
            (
                "Say the last thing otherwise:",
                "podbay sessions rewind last 1",
            ),
            (
                "Go back further, in one of the list:",
                "podbay sessions rewind 4k2m 3",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions rename",
        text: "Gives a session a name of at most 60 characters. The list shows it, and every command that takes a session's id takes the name. \
               The log stays as it is.",
        examples: &[
            ("Name the last one:", "podbay sessions rename last parser"),
            (
                "Give it another one:",
                "podbay sessions rename parser lexer",
            ),
            ("Take the name away:", "podbay sessions rename parser ''"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "sessions rm",
        text: "Removes sessions: their logs, what a repair kept of them, and the long outputs that were kept. One that is being written is refused. \
               `podbay gc` removes old ones as `session.keep_days` and `session.keep_sessions` say.",
        examples: &[
            ("One:", "podbay sessions rm 4k2m"),
            ("Several:", "podbay sessions rm 4k2m 7tqe"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "doctor",
        text: "Looks at everything that a run needs: engine, isolation, images, model, settings, state folder and terminal. Each line is ok, warn or \
               FAIL, and what is not ok has its remedy below it. Nothing is changed, and nothing has to work for it to start.\n\n\
               With --model the model is tried too: a chat, a stream, tool calls and the prompt of a run. That may start the model server.\n\n\
               With --attack nothing of this is looked at. Instead a sandbox of your settings is attacked, in a project that is thrown away: \
               escape, paths, network, frames and resources. Each row says what was tried, what must happen and what did; one that failed has \
               its remedy. The image is built if it is not here. Nothing of yours is changed.",
        examples: &[
            ("Look at everything:", "podbay doctor"),
            (
                "See whether the sandbox holds, on this machine and with these settings:",
                "podbay doctor --attack",
            ),
            (
                "Try an endpoint:",
                "podbay doctor --model --endpoint http://127.0.0.1:8080/v1",
            ),
            ("In a script:", "podbay doctor --json | jq -r .status"),
        ],
        codes: Codes::Own(&[
            ("0", "nothing failed; there may be warnings"),
            (
                "1",
                "something that a run needs does not work, or an attack got through",
            ),
            ("5", "with --attack: no sandbox"),
        ]),
    },
    Page {
        command: "init",
        text: "Writes `.podbay/config.toml`, with every setting in it and commented out, and lays a folder for compose beside the project, \
               NAME-podbay: compose.yaml, what it reads, and an `.env` that names the project and its owner. It is never in the project: who \
               can write it is root on this machine. What is there is never overwritten. No folder has to be prepared: everything works \
               without these files. What the first one sets may only make things tighter until `podbay config trust`.",
        examples: &[
            ("In the current folder:", "podbay init"),
            ("In another one:", "podbay init -C ~/src/shop"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "config",
        text: "Shows every setting with its value, where that comes from, and what it is for. `set`, `unset` and `edit` change your own \
               file, which counts in all projects; a file is written only if it can be read again.\n\n\
               Settings that come with a project, in its `.podbay/config.toml`, may only make things tighter: such a file comes with the \
               code, and the agent may have written it. What is passed over is said.",
        examples: &[
            ("For the current folder:", "podbay config"),
            (
                "For another project, with a settings file on top:",
                "podbay config -C ~/src/shop --config ci.toml",
            ),
            ("One setting:", "podbay config get sandbox.memory"),
            ("Change it:", "podbay config set sandbox.memory 4GiB"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "config list",
        text: "The same as `podbay config`, of a section, of what is set, or as JSON: there each origin has its layer (default, system, user, \
               project, file, environment or flag), and a file its path and line.",
        examples: &[
            ("What is set, and where:", "podbay config list --changed"),
            ("One section:", "podbay config list sandbox"),
            (
                "For a script:",
                "podbay config list --json | jq '.settings[] | select(.origins[0].layer != \"default\")'",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "config get",
        text: "Prints the value alone, a text without quotes and all else as JSON. On a terminal its origin follows.",
        examples: &[
            ("Which model is asked:", "podbay config get llm.model"),
            (
                "With where it comes from:",
                "podbay config get sandbox.memory --json",
            ),
        ],
        codes: Codes::Own(&[
            ("0", "it has a value"),
            ("1", "it is not set"),
            ("2", "there is no such setting, or a file cannot be read"),
        ]),
    },
    Page {
        command: "config set",
        text: "Writes one setting into your own file (`podbay config path`). Comments, order and layout of the file stay. The value is \
               checked first, and so is the whole file; what does not fit is refused and nothing is written. Something stronger that \
               overrides the setting here is named.",
        examples: &[
            (
                "More memory for every sandbox:",
                "podbay config set sandbox.memory 4GiB",
            ),
            (
                "A rule:",
                "podbay config set policy.deny 'bash(git push *)'",
            ),
            (
                "A model server by name:",
                "podbay config set providers.home.base_url http://127.0.0.1:8080/v1",
            ),
        ],
        codes: Codes::Own(&[
            ("0", "it is set"),
            ("1", "the file could not be written"),
            ("2", "there is no such setting, or the value does not fit"),
        ]),
    },
    Page {
        command: "config unset",
        text: "Removes one setting from your own file, so that the default or a weaker layer counts again. Comments stay.",
        examples: &[
            ("The default again:", "podbay config unset sandbox.memory"),
            ("A whole section:", "podbay config unset providers.home"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "config edit",
        text: "Opens your own file in $VISUAL or $EDITOR; one that does not exist yet begins with every setting, commented out. You edit a \
               copy: it takes the file's place once it can be read. Otherwise the mistake is shown with its line, and you may edit again.",
        examples: &[
            ("Change several settings:", "podbay config edit"),
            ("Begin a file of your own:", "podbay config edit"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "config path",
        text: "Prints the path of your own file, which may not exist yet; with --all also of the system's and the project's.",
        examples: &[
            ("Where it is:", "podbay config path"),
            ("All files that count here:", "podbay config path --all"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "config schema",
        text: "Prints the JSON Schema of a settings file, for editors that complete and check TOML, YAML or JSON by one.",
        examples: &[
            (
                "For an editor:",
                "podbay config schema > ~/.config/podbay/schema.json",
            ),
            ("See it:", "podbay config schema"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "config trust",
        text: "Shows the project's `.podbay/config.toml`, or what has changed in it since it was trusted, and asks whether all of it should \
               count. Trust is for these very bytes in this folder: after any change a chat asks again, and everything else continues as if \
               the file was not trusted.",
        examples: &[
            ("Read it and decide:", "podbay config trust"),
            (
                "In a script that has checked the file itself:",
                "podbay config trust -C ~/src/shop --yes",
            ),
            ("Take it back:", "podbay config trust --revoke"),
            ("See what is trusted:", "podbay config trust --list"),
        ],
        codes: Codes::Own(&[
            ("0", "trusted"),
            ("1", "the answer was no"),
            ("2", "no such file, or nobody to ask"),
        ]),
    },
    Page {
        command: "config answers",
        text: "Lists what you answered with `p` (yes, always in this project) in a chat. Each answer is about exactly one call: a tool with the \
               very command, folder or paths that you were asked about. They hold in mode ask, in this folder under this path, and are kept \
               outside of the project. Rules that deny or gate win over them.",
        examples: &[
            (
                "See what is allowed for good here:",
                "podbay config answers",
            ),
            (
                "Be asked again about the second one:",
                "podbay config answers --forget 2",
            ),
            (
                "Be asked again about all:",
                "podbay config answers -C ~/src/shop --forget-all",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "review",
        text: "`podbay run` lets the agent work on a copy, and your project stays as it is. What it changed waits under the \
               session's id until you apply or discard it.\n\n\
               Without a command it opens a screen at a terminal: the paths with their added and removed lines, the hunks of each to take or \
               leave, what may run on your machine, and what was changed in the project since. The commands below need no terminal.",
        examples: &[
            ("Decide on a screen:", "podbay review"),
            ("On one of several:", "podbay review --id k3f9"),
            ("See what waits:", "podbay review list"),
            ("Apply all of them:", "podbay review apply"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "review list",
        text: "Lists what runs changed that is not in the project yet, the newest first. It waits until it is applied or \
               discarded, however long that takes; `podbay gc` leaves it alone.",
        examples: &[
            ("See what waits:", "podbay review list"),
            ("In another folder:", "podbay review list -C ~/src/shop"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "review diff",
        text: "Shows what a review would bring into the project and what of it is not there yet, as a unified diff. Without an id there must be \
               one review only. Nothing is changed.",
        examples: &[
            ("See all of it:", "podbay review diff"),
            ("One folder of it:", "podbay review diff src"),
            ("Of one of several:", "podbay review diff k3f9 \"*.rs\""),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "review apply",
        text: "Brings changes into the project, file by file, each in one step. A file that was changed since is named and left as it is, and so is \
               what would be dangerous: links out of the project, set-user-id bits, devices and whatever belongs to git. \
               Files that programs on your machine run by themselves (hooks, editor tasks, `.envrc`) are left out until you say yes: at a terminal \
               you are asked, in a script --accept-auto-run says it. Those that run when you build or test come and are named. Where something was \
               left out the code is 9, and it still waits. `podbay undo` takes it back. If it was interrupted, the same command finishes it. What was done with git is taken over when the last \
               path is in and --only is not given: commits as commits, branches that did not move meanwhile, what is staged. `podbay undo` undoes files, not commits.",
        examples: &[
            ("Apply all of it:", "podbay review apply"),
            ("Only one folder:", "podbay review apply --only src"),
            (
                "Keep your own lines where they do not meet:",
                "podbay review apply --merge",
            ),
            (
                "Hooks and editor tasks, too:",
                "podbay review apply --accept-auto-run",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "review discard",
        text: "Drops what waits for good, commits too. What was applied already stays.",
        examples: &[
            ("Drop it:", "podbay review discard"),
            ("One of several:", "podbay review discard k3f9"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "undo",
        text: "Undoes what the last turn of a run or chat changed in the project, or the last N: files, modes, links and folders, whether a \
               tool or a command changed them. A file that was changed since is named and left as it is; the code is 1 then, and `podbay undo retry` tries it again.",
        examples: &[
            ("Undo the last turn:", "podbay undo"),
            ("The last three:", "podbay undo 3"),
            (
                "Keep your own lines where they do not meet:",
                "podbay undo --merge",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "undo list",
        text: "Lists the turns that changed something, the newest first, and whether they were undone.",
        examples: &[
            ("See what can be undone:", "podbay undo list"),
            ("In another folder:", "podbay undo list -C ~/src/shop"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "undo diff",
        text: "Shows what the last turns changed that were not undone, each by itself, as a unified diff. Nothing is changed.",
        examples: &[
            ("See what the last turn changed:", "podbay undo diff"),
            ("What the last two changed:", "podbay undo diff 2"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "undo redo",
        text: "Brings back the turn that was undone last, or the last N of them: after `undo 2`, `redo 2` brings both back. A new turn ends what can be brought back.",
        examples: &[
            ("Bring the last one back:", "podbay undo redo"),
            ("The last two:", "podbay undo redo 2"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "undo retry",
        text: "Tries again what was left as it was when turns were undone, or brought back: once what was in the way is gone, or with --merge. \
               Nothing else of those turns is touched. It works as long as the turns are kept, also when others came since.",
        examples: &[
            ("Try it again:", "podbay undo retry"),
            (
                "Keep your own lines where they do not meet:",
                "podbay undo retry --merge",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "undo resume",
        text: "Finishes an undo that was interrupted, by a crash or a full disk. Until then each file is as before or as after.",
        examples: &[
            ("Finish it:", "podbay undo resume"),
            ("In another folder:", "podbay undo resume -C ~/src/shop"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "undo abandon",
        text: "Gives up an undo that was interrupted: files that were set back stay so, the others stay as they are. The turn counts \
               as not undone, so `podbay undo` undoes the rest of it; of a redo, `podbay undo retry` does the rest.",
        examples: &[
            ("Give it up:", "podbay undo abandon"),
            ("In another folder:", "podbay undo abandon -C ~/src/shop"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "gc",
        text: "Removes containers whose Podbay has ended without cleaning up, which every start does too, volumes of other versions, and sessions \
               that `session.keep_days` or `session.keep_sessions` no longer keep (they keep all where nothing is set). \
               Nothing that a running Podbay uses is touched, and nothing that Podbay did not make. Snapshots of a project whose folder is not there \
               any more are named, and removed with `--snapshots` alone: it may lie on a disk that is not there today. So is what a session did with \
               git that could not all be taken over, which `--git` removes. What waits for a review is never touched.",
        examples: &[
            ("Remove leftovers:", "podbay gc"),
            (
                "Also what `podbay undo` kept of projects that are gone:",
                "podbay gc --snapshots",
            ),
            (
                "Also what sessions did with git and nobody took over:",
                "podbay gc --git",
            ),
            ("Say what is looked at:", "podbay gc --verbose"),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "debug",
        text: "Shows what otherwise stays inside, for people who find out why a model does not do what it should.",
        examples: &[
            (
                "What is understood of an answer:",
                "podbay debug parse <answer.txt",
            ),
            (
                "With the tools of a request:",
                "podbay debug parse --tools request.json <answer.txt",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "debug parse",
        text: "Reads a model's raw text on the standard input, at most 16 MiB, and prints what a session would make of it, as one JSON \
               object: \"content\", \"reasoning\", \"calls\" with name and arguments, and \"incomplete\": null, or what the text ended in \
               the middle of: \"part\" is \"call\", \"reasoning\", \"unreadable\" for a marked call in no form that can be read, or \"unclear\" for what only looks like a call.\n\n\
               The formats of some thirty families of models are recognised, whatever --template-hint says. Names of known tools \
               are calls, those of --tools, or else Podbay's own, and what a tag or token marks is one whatever tool it names. Such a mark counts wherever it stands outside of code; any other call, or one in a fence, where it is all of the text. --template-hint settles what a text alone leaves open, and hides no format.",
        examples: &[
            (
                "An answer that a server left unread:",
                "podbay debug parse <answer.txt",
            ),
            (
                "With the tools of a request:",
                "podbay debug parse --tools request.json <answer.txt",
            ),
            (
                "From a template that opens the thought itself:",
                "podbay debug parse --template-hint deepseek-r1 <answer.txt",
            ),
            (
                "Only the names:",
                "podbay debug parse <answer.txt | jq -r '.calls[].name'",
            ),
        ],
        codes: Codes::Own(&[
            ("0", "it was read, whatever it holds"),
            ("2", "the text is not UTF-8 or too long, or a flag is wrong"),
        ]),
    },
    Page {
        command: "completions",
        text: "Prints a script for the shell that is named. Put it where that shell looks for completions, and open a new one. \
               `podbay man DIR` writes the manual pages.",
        examples: &[
            (
                "bash:",
                "podbay completions bash >~/.local/share/bash-completion/completions/podbay",
            ),
            (
                "zsh, with that folder in $fpath:",
                "podbay completions zsh >~/.zfunc/_podbay",
            ),
            (
                "fish:",
                "podbay completions fish >~/.config/fish/completions/podbay.fish",
            ),
        ],
        codes: Codes::Shared,
    },
    Page {
        command: "man",
        text: "Writes a page in section 1 for every command into the folder, which is made if it is not there.",
        examples: &[
            ("For yourself:", "podbay man ~/.local/share/man/man1"),
            (
                "Read one right away:",
                "podbay man pages && man ./pages/podbay-run.1",
            ),
        ],
        codes: Codes::Shared,
    },
];
