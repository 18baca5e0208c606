//! The whole tool box through the pipeline, over a real guest: each tool as a model calls it.

pub(crate) mod all;
mod archiving;
mod asked;
mod background;
mod git;
mod large;
mod odd_files;
mod own;
mod seen;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use podbay::event::Answer;
use podbay::event::Answered;
use podbay::event::Asked;
use podbay::event::CallStatus;
use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::Memory;
use podbay::event::Seconds;
use podbay::event::ToolCall;
use podbay::policy;
use podbay::policy::DocumentSection;
use podbay::policy::Mode;
use podbay::policy::Policy;
use podbay::policy::SandboxRun;
use podbay::policy::WebSearch;
use podbay::tools;
use podbay::tools::AgentAnswer;
use podbay::tools::Asker;
use podbay::tools::Catalogue;
use podbay::tools::FileChangeKind;
use podbay::tools::Finished;
use podbay::tools::Installed;
use podbay::tools::KeptLines;
use podbay::tools::Later;
use podbay::tools::OnChunk;
use podbay::tools::Pipeline;
use podbay::tools::Services;
use podbay::tools::Skill;
use podbay::tools::SpawnOrder;
use podbay::tools::ToolSet;
use podbay::wire::CommandEnded;
use podbay::wire::End;
use podbay::wire::Output;
use podbay::wire::message::Stream;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::desk::Watched;
use crate::support::guest::TestGuest;

/// A pipeline over a guest, where nobody is there to ask unless an answer is given.
struct Hand {
    guest: TestGuest,
    pipeline: Pipeline,
    reached: Arc<Mutex<Vec<String>>>,
    events: Arc<Mutex<Vec<Event>>>,
    /// What a user was asked for permission for.
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Hand {
    async fn new() -> Self {
        Self::with(ToolSet::Full, Mode::Auto, policy::Options::default(), None).await
    }

    async fn with(set: ToolSet, mode: Mode, rules: policy::Options, answer: Option<&str>) -> Self {
        Self::over(
            TestGuest::start().await,
            tools::Options {
                set,
                ..tools::Options::default()
            },
            mode,
            &rules,
            answer,
        )
    }

    /// Continues in another process and another sandbox, with what the log says.
    async fn resumed(mut self) -> Self {
        let workspace = self.guest.take_workspace();
        let events: Vec<Event> = self
            .events
            .lock()
            .expect("no test panics while it holds this")
            .clone();
        let lines: Vec<String> = events
            .iter()
            .map(|event| podbay::event::json_line(event).expect("JSON"))
            .collect();
        let events: Vec<Event> = lines
            .iter()
            .map(|line| serde_json::from_str(line).expect("reads"))
            .collect();
        let options = tools::Options {
            set: ToolSet::Full,
            ..tools::Options::default()
        };
        let next = Self::over(
            TestGuest::in_folder(workspace, &[]).await,
            options,
            Mode::Auto,
            &policy::Options::default(),
            None,
        );
        next.pipeline
            .recall_seen(&podbay::session::ResumeState::of(&events).seen);
        next.events
            .lock()
            .expect("no test panics while it holds this")
            .extend(events);
        next
    }

    fn over(
        guest: TestGuest,
        options: tools::Options,
        mode: Mode,
        rules: &policy::Options,
        answer: Option<&str>,
    ) -> Self {
        let (reached, events) = (
            Arc::<Mutex<Vec<String>>>::default(),
            Arc::<Mutex<Vec<Event>>>::default(),
        );
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let kept = Arc::clone(&events);
        let pipeline = Pipeline::new(
            Catalogue::new(&options),
            Policy::new(mode, rules).expect("good rules"),
            Arc::new(Watched {
                inner: Arc::new(guest.link.clone()),
                reached: Arc::clone(&reached),
            }),
            Arc::new(Nothing),
            Arc::new(Person {
                answer: answer.map(str::to_owned),
                asked: Arc::clone(&asked),
            }),
            Arc::new(move |event| {
                kept.lock()
                    .expect("no test panics while it holds this")
                    .push(event);
            }),
            options,
        );
        pipeline.set_window(Some(100_000));
        Self {
            guest,
            pipeline,
            reached,
            events,
            asked,
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Finished {
        self.call_with(tool, arguments, &CancellationToken::new())
            .await
    }

    async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        cancel: &CancellationToken,
    ) -> Finished {
        let call = ToolCall {
            id: "a".to_owned(),
            name: tool.to_owned(),
            arguments: arguments.to_string(),
        };
        self.pipeline
            .run(&call, cancel)
            .await
            .expect("the sandbox is there")
    }

    /// Makes a call that must succeed; returns what the model reads.
    #[track_caller]
    fn ok(&self, tool: &'static str, arguments: Value) -> impl Future<Output = String> + '_ {
        let place = std::panic::Location::caller();
        async move {
            let finished = self.call(tool, arguments).await;
            assert_eq!(
                finished.status,
                CallStatus::Ok,
                "{place}: {}",
                finished.text
            );
            finished.text
        }
    }

    /// Makes a call that must not succeed; returns what the model reads.
    #[track_caller]
    fn fails(
        &self,
        tool: &'static str,
        arguments: Value,
        status: CallStatus,
    ) -> impl Future<Output = String> + '_ {
        let place = std::panic::Location::caller();
        async move {
            let finished = self.call(tool, arguments).await;
            assert_eq!(finished.status, status, "{place}: {}", finished.text);
            finished.text
        }
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.guest.path(name);
        std::fs::create_dir_all(path.parent().expect("has one")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.guest.path(name)).expect("is there")
    }

    fn has(&self, name: &str) -> bool {
        self.guest.path(name).symlink_metadata().is_ok()
    }

    /// Runs a program in the project, for what a test needs there.
    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = std::process::Command::new(program);
        command
            .args(arguments)
            .current_dir(self.guest.workspace.path())
            .env_clear();
        let own = [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/nonexistent"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
        ];
        let author = [
            "GIT_AUTHOR_NAME",
            "GIT_COMMITTER_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_EMAIL",
        ]
        .map(|name| (name, "ann@example.org"));
        let output = command
            .envs(own)
            .envs(author)
            .output()
            .expect("the program is there");
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn reached(&self) -> Vec<String> {
        self.reached
            .lock()
            .expect("no test panics while it holds this")
            .clone()
    }

    fn kinds(&self) -> Vec<Kind> {
        self.events
            .lock()
            .expect("no test panics while it holds this")
            .iter()
            .map(|event| event.kind.clone())
            .collect()
    }
}

struct Nothing;

impl Services for Nothing {
    fn store_artifact(&self, _call: &str, _bytes: &[u8]) -> Option<String> {
        None
    }

    fn read_artifact(&self, id: &str, _offset: u64, _limit: u64) -> Result<KeptLines, String> {
        Err(format!("{id} is not kept"))
    }

    fn spawn_agent<'a>(
        &'a self,
        order: SpawnOrder<'a>,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, AgentAnswer> {
        Box::pin(std::future::ready(AgentAnswer {
            is_ok: true,
            text: format!("{} looked", order.wanted.agent),
            ..AgentAnswer::default()
        }))
    }

    fn save_memory(&self, memory: Memory) -> Result<String, String> {
        Ok(format!("saved as {}", memory.name))
    }

    fn write_section(&self, section: &DocumentSection) -> Result<String, String> {
        Ok(format!("wrote {}: {}", section.heading, section.content))
    }

    fn use_skill(&self, name: &str) -> Result<Skill, String> {
        if name != "greet" {
            return Err(format!("there is no skill `{name}`"));
        }
        Ok(Skill {
            name: name.to_owned(),
            text: "Say hello.".to_owned(),
            files: Vec::new(),
            left_out: vec!["link is a link or no file".to_owned()],
        })
    }

    fn search_web<'a>(
        &'a self,
        search: &'a WebSearch,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, Result<String, String>> {
        Box::pin(std::future::ready(Ok(format!("found {}", search.query))))
    }

    fn run_apart<'a>(
        &'a self,
        run: SandboxRun,
        mut on_chunk: OnChunk<'a>,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, Output> {
        on_chunk(Stream::Stderr, b"a warning\n");
        on_chunk(Stream::Stdout, format!("ran {}\n", run.code).as_bytes());
        Box::pin(std::future::ready(Output::Command(CommandEnded::plain(
            End::Exited { code: 0 },
        ))))
    }

    fn plan_install(&self, ecosystems: &[String]) -> Result<String, String> {
        Ok(format!("{ecosystems:?}, reaching a.example"))
    }

    fn install<'a>(
        &'a self,
        ecosystems: Vec<String>,
        mut on_chunk: OnChunk<'a>,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, Result<Installed, String>> {
        let printed = b"added 3 packages\n".to_vec();
        on_chunk(Stream::Stdout, &printed);
        Box::pin(std::future::ready(Ok(Installed {
            is_ok: true,
            summary: format!("{ecosystems:?}: done"),
            printed,
        })))
    }
}

/// How long somebody thinks who is slow.
const SLOW: Duration = Duration::from_secs(2);

/// Somebody with one answer to every question, or nobody; permission they never give. `wait` never
/// comes to an end, and `slow` takes a while.
struct Person {
    answer: Option<String>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Asker for Person {
    fn ask<'a>(&'a self, asked: &'a Asked) -> Later<'a, Answered> {
        self.asked
            .lock()
            .expect("no test panics while it holds this")
            .push(asked.clone());
        let thinks = if self.answer.as_deref() == Some("slow") {
            SLOW
        } else {
            Duration::ZERO
        };
        Box::pin(async move {
            tokio::time::sleep(thinks).await;
            Answer::Deny.into()
        })
    }

    fn question<'a>(
        &'a self,
        _question: &'a str,
        _options: &'a [String],
    ) -> Later<'a, Option<String>> {
        Box::pin(async move {
            match self.answer.as_deref() {
                Some("wait") => std::future::pending().await,
                answer => answer.map(str::to_owned),
            }
        })
    }

    fn can_answer(&self) -> bool {
        self.answer.is_some()
    }
}

/// A tree as text: names, modes and contents of all there is.
fn tree(folder: &std::path::Path) -> Vec<(String, u32, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt;
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(here) = folders.pop() {
        for entry in std::fs::read_dir(&here).expect("a folder").flatten() {
            let path = entry.path();
            let stat = path.symlink_metadata().expect("is there");
            let bytes = match () {
                () if stat.is_symlink() => path
                    .read_link()
                    .expect("a link")
                    .into_os_string()
                    .into_encoded_bytes(),
                () if stat.is_dir() => {
                    folders.push(path.clone());
                    Vec::new()
                }
                () => std::fs::read(&path).expect("a file"),
            };
            all.push((
                path.strip_prefix(folder)
                    .expect("beneath")
                    .display()
                    .to_string(),
                stat.mode(),
                bytes,
            ));
        }
    }
    all.sort();
    all
}

fn none() -> Value {
    json!({})
}
