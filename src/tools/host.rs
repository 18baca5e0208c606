//! Tools that the host executes.

use std::sync::Mutex;
use std::sync::PoisonError;

use tokio_util::sync::CancellationToken;

use super::AgentAnswer;
use super::Asker;
use super::Catalogue;
use super::Installed;
use super::KeptLines;
use super::Pipeline;
use super::Services;
use super::SpawnOrder;
use super::call_asker::CallAsker;
use super::dispatch::CallProgress;
use super::dispatch::CommandOutput;
use super::render::Rendered;
use super::screen::shown;
use super::skill;
use super::tasks::Tasks;
use podbay_policy::ForeignCall;
use podbay_policy::HostCall;
use podbay_policy::SandboxRun;
use podbay_sandbox::link::Asks;
use podbay_wire::Encoding;
use podbay_wire::Fault;
use podbay_wire::FileText;
use podbay_wire::Output;
use podbay_wire::Read;
use podbay_wire::message::Stream;
use podbay_wire::n_bytes;

/// The answer for the model where no user can answer.
const NOBODY: &str = "No user can answer. Decide yourself what is most likely wanted, continue, and say in your answer what you assumed.";

/// What is needed to execute calls on the host.
pub(super) struct Host<'a> {
    pub(super) services: &'a dyn Services,
    pub(super) asker: &'a dyn Asker,
    pub(super) tasks: &'a Mutex<Tasks>,
    pub(super) catalogue: &'a Catalogue,
    /// Answers where the sandbox asks whether a program may continue.
    pub(super) asks: &'a dyn Asks,
    /// The id of the call.
    pub(super) call: &'a str,
    /// Changes the sandbox and what it may do, for plan mode.
    pub(super) pipeline: &'a Pipeline,
}

/// The result of a call: the guest's output, or text.
pub(super) enum CallResult {
    Output(Output),
    Text(Rendered),
    /// The same, and the task ends with it.
    LastText(Rendered),
    /// What an agent did and answered.
    Agent(AgentAnswer),
}

/// What a call on the host came to, and what a command of it printed.
pub(super) struct Served {
    pub(super) result: CallResult,
    pub(super) printed: CommandOutput,
}

impl From<CallResult> for Served {
    fn from(result: CallResult) -> Self {
        Self {
            result,
            printed: CommandOutput::default(),
        }
    }
}

/// What stands before the standard error of code that ran in a sandbox of its own.
const STDERR: &[u8] = b"[stderr]\n";

/// How much of what package managers printed a model reads where all is well.
const LEAST_PRINTED: usize = 1000;

fn rendered(installed: &Installed) -> Rendered {
    let mut body = shown(&installed.printed).text;
    if installed.is_ok {
        let at = body.ceil_char_boundary(body.len().saturating_sub(LEAST_PRINTED));
        let at = at + body[at..].find('\n').map_or(0, |end| end + 1) * usize::from(at > 0);
        body.drain(..at);
    }
    Rendered {
        footer: installed.summary.clone(),
        ok: installed.is_ok,
        ..Rendered::said(Ok(body))
    }
}

impl Host<'_> {
    /// Executes one call; `tell` receives its output, and is told before the user is asked.
    pub(super) async fn serve(
        &self,
        call: HostCall,
        mut tell: impl FnMut(CallProgress<'_>) + Send,
        cancel: &CancellationToken,
    ) -> Served {
        let rendered = match call {
            HostCall::ReadArtifact { id, offset, limit } => {
                return CallResult::Output(self.read_artifact(&id, offset, limit)).into();
            }
            HostCall::Think { .. } => Rendered::said(Ok("noted".to_owned())),
            HostCall::Tasks(change) => Rendered::said(
                self.tasks
                    .lock()
                    .expect("nothing panics while it holds this lock")
                    .take(change),
            ),
            HostCall::FindTools(wanted) => Rendered::said(self.catalogue.describe(&wanted)),
            HostCall::SaveMemory(memory) => Rendered::said(self.services.save_memory(memory)),
            HostCall::WriteSection(section) => {
                Rendered::said(self.services.write_section(&section))
            }
            HostCall::UseSkill(wanted) => match self.services.use_skill(&wanted.name) {
                Ok(skill) => {
                    let within = self.pipeline.options.file_timeout.duration();
                    skill::place(skill, &*self.pipeline.workspace, within, cancel).await
                }
                Err(problem) => Rendered::said(Err(problem)),
            },
            HostCall::Install(call) => {
                let on_chunk =
                    Box::new(|_: Stream, bytes: &[u8]| tell(CallProgress::Output(bytes)));
                let done = self.services.install(call.ecosystems, on_chunk, cancel);
                match done.await {
                    Ok(installed) => rendered(&installed),
                    Err(problem) => Rendered::said(Err(problem)),
                }
            }
            HostCall::Search(search) => {
                Rendered::said(self.services.search_web(&search, cancel).await)
            }
            HostCall::Foreign(call) => self.call_foreign(call, tell, cancel).await,
            HostCall::Spawn(wanted) => {
                let order = SpawnOrder {
                    call: self.call,
                    wanted,
                    parent: self.pipeline,
                };
                return CallResult::Agent(self.services.spawn_agent(order, cancel).await).into();
            }
            HostCall::AskUser { question, options } => {
                self.ask(&question, &options, || tell(CallProgress::Asked), cancel)
                    .await
            }
            HostCall::Plan(plan) => {
                let say_asked = || tell(CallProgress::Asked);
                let outcome = Box::pin(self.pipeline.serve_plan(plan, say_asked, cancel)).await;
                if outcome.ends_task {
                    return CallResult::LastText(outcome.rendered).into();
                }
                outcome.rendered
            }
            HostCall::RunApart(run) => return self.run_apart(run, tell, cancel).await,
            HostCall::Hook(hook) => {
                let on_chunk =
                    Box::new(|_: Stream, bytes: &[u8]| tell(CallProgress::Output(bytes)));
                let done = self.services.run_hook(hook, on_chunk, cancel).await;
                return CallResult::Output(done).into();
            }
        };
        CallResult::Text(rendered).into()
    }

    /// Calls a tool of an MCP server, which may ask the user meanwhile.
    async fn call_foreign(
        &self,
        call: ForeignCall,
        tell: impl FnMut(CallProgress<'_>) + Send,
        cancel: &CancellationToken,
    ) -> Rendered {
        let tell = Mutex::new(tell);
        let say = |progress: CallProgress<'_>| {
            let mut tell = tell.lock().unwrap_or_else(PoisonError::into_inner);
            (*tell)(progress);
        };
        let asker = CallAsker {
            inner: self.asker,
            say_asked: &|| say(CallProgress::Asked),
        };
        let on_chunk = Box::new(|_: Stream, bytes: &[u8]| say(CallProgress::Output(bytes)));
        let called = self.services.call_foreign(call, on_chunk, &asker, cancel);
        Rendered::said(called.await)
    }

    /// Runs code in a sandbox of its own; its two streams are told one after the other.
    async fn run_apart(
        &self,
        run: SandboxRun,
        mut tell: impl FnMut(CallProgress<'_>) + Send,
        cancel: &CancellationToken,
    ) -> Served {
        let most = usize::try_from(self.pipeline.options.bash_stream.bytes()).unwrap_or(usize::MAX);
        let (mut head, mut stderr) = (Vec::new(), Vec::new());
        let on_chunk = Box::new(|stream: Stream, bytes: &[u8]| {
            let kept = if stream == Stream::Stderr {
                &mut stderr
            } else {
                &mut head
            };
            // The guest keeps this bound too, but the guest is not trusted.
            let room = most.saturating_sub(kept.len());
            kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            tell(CallProgress::Output(bytes));
        });
        let output = self.services.run_apart(run, on_chunk, cancel).await;
        if !stderr.is_empty() {
            if !head.is_empty() && !head.ends_with(b"\n") {
                head.push(b'\n');
            }
            head.extend_from_slice(STDERR);
            head.append(&mut stderr);
        }
        Served {
            result: CallResult::Output(output),
            printed: CommandOutput {
                head,
                ..CommandOutput::default()
            },
        }
    }

    /// Asks the user a question; returns at once where no user can answer.
    async fn ask(
        &self,
        question: &str,
        options: &[String],
        say_asked: impl FnOnce() + Send,
        cancel: &CancellationToken,
    ) -> Rendered {
        if !self.asker.can_answer() {
            return Rendered::said(Ok(NOBODY.to_owned()));
        }
        say_asked();
        let answer = tokio::select! {
            () = cancel.cancelled() => return Rendered::said(Err("cancelled before the user answered".to_owned())),
            answer = self.asker.question(question, options) => answer,
        };
        Rendered::said(Ok(answer.map_or_else(
            || NOBODY.to_owned(),
            |answer| format!("The user answers: {answer}"),
        )))
    }

    fn read_artifact(&self, id: &str, offset: u64, limit: u64) -> Output {
        let path = format!("artifact:{id}");
        match self.services.read_artifact(id, offset, limit) {
            Ok(KeptLines { text, bytes, .. }) if text.is_empty() && bytes > 0 => {
                let problem = format!(
                    "line {offset} is after the end; the artifact ({}) has fewer lines",
                    n_bytes(bytes)
                );
                Output::Fault(Fault::Invalid {
                    field: "offset".to_owned(),
                    problem,
                })
            }
            Ok(KeptLines { text, next, bytes }) => {
                let n_lines = text.lines().count() as u64;
                let file = FileText {
                    path: path.as_str().into(),
                    bytes,
                    first_line: offset,
                    n_lines,
                    total_lines: None,
                    more: next.is_some(),
                    cut_lines: 0,
                    encoding: Encoding::Utf8,
                    fault: None,
                    text,
                };
                Output::Read(Read {
                    files: vec![file],
                    remaining: 0,
                    memos: Vec::new(),
                })
            }
            Err(problem) => Output::Fault(Fault::Io {
                doing: path,
                problem: format!("{problem}; repeat the call whose result it was"),
            }),
        }
    }
}
