use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::Asker;
use super::Catalogue;
use super::Options;
use super::Services;
use super::Window;
use super::approval::NotApproved;
use super::call_end::CallEnd;
use super::call_end::CallInProgress;
use super::call_end::denied;
use super::call_status::failed;
use super::call_status::hint;
use super::catalogue::ParsedCall;
use super::changed_files::FileChangeKind;
use super::changed_files::changed_files;
use super::definitions::install_dependencies;
use super::definitions::more_tools::Wrapped;
use super::definitions::task_list;
use super::denied_hosts::Hosts;
use super::denied_hosts::ToldHosts;
use super::dispatch::CallProgress;
use super::dispatch::Workspace;
use super::dispatch::dispatch;
use super::early_call;
use super::hook::HookOptions;
use super::hook::Hooks;
use super::host::CallResult;
use super::host::Host;
use super::no_network;
use super::planning::Plans;
use super::program_approval::ProgramAsker;
use super::program_events::Refusals;
use super::program_events::tell_of_background;
use super::render::Rendered;
use super::render::fit;
use super::render::render;
use super::seen_files::SeenFiles;
use super::seen_files::memos;
use super::tasks::Tasks;
use podbay_event::CallStatus;
use podbay_event::Kind;
use podbay_event::SessionId;
use podbay_event::Sink;
use podbay_event::ToolCall;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_policy::InstallCall;
use podbay_policy::Policy;
use podbay_sandbox as sandbox;
use podbay_sandbox::link::Asks;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Image;
use podbay_wire::Memo;
use podbay_wire::Output;

/// Context window in tokens that is assumed when the server does not tell it.
const ASSUMED_WINDOW: u64 = 8192;

/// The only way from a call to its result: parse, check, judge, ask, record, dispatch, render,
/// record.
pub struct Pipeline {
    pub catalogue: Catalogue,
    /// Shared with the agents that this session starts.
    pub(super) policy: Arc<Mutex<Policy>>,
    /// Whether each call that may change something is denied.
    pub(super) only_reads: bool,
    pub(super) workspace: Arc<dyn Workspace>,
    /// The working directory of commands, as far as it is known; shared by those who share the
    /// sandbox.
    pub(super) here: Arc<Mutex<BytesPath>>,
    pub(super) services: Arc<dyn Services>,
    pub(super) asker: Arc<dyn Asker>,
    pub(super) sink: Sink,
    pub(super) options: Options,
    pub(super) hooks: Hooks,
    pub(super) tasks: Mutex<Tasks>,
    pub(super) plans: Plans,
    pub(super) seen: SeenFiles,
    pub(super) hosts: Hosts,
    pub(super) window: AtomicU64,
    /// Whether the model can read images.
    pub(super) images: AtomicBool,
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub status: CallStatus,
    /// The text for the model.
    pub text: String,
    /// The call would have changed nothing.
    pub read_only: bool,
    /// Some of it was executed.
    pub has_begun: bool,
    /// The user wants to end the session.
    pub quit: bool,
    /// The model made a plan, and nobody is here to decide about it: the task ends.
    pub ends_task: bool,
    /// What was denied to an agent that it started, one line each.
    pub denied: Vec<String>,
    /// Files that a file tool changed; changes by commands are not known here.
    pub changed: Vec<(BytesPath, FileChangeKind)>,
    /// Files that a file tool read or changed, by their real paths in the project.
    pub touched: Vec<BytesPath>,
    /// The image to show to the model.
    pub image: Option<Image>,
}

/// Why no more calls can be executed.
#[derive(Debug, Error)]
pub enum PipelineError {
    #[error("the sandbox is lost")]
    Sandbox(#[source] sandbox::Error),
}

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    Model,
    User,
}

impl Pipeline {
    /// Returns the tools of the session.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub fn new(
        catalogue: Catalogue,
        policy: Policy,
        workspace: Arc<dyn Workspace>,
        services: Arc<dyn Services>,
        asker: Arc<dyn Asker>,
        sink: Sink,
        options: Options,
    ) -> Self {
        Self {
            catalogue,
            policy: Arc::new(Mutex::new(policy)),
            only_reads: false,
            workspace,
            here: Arc::new(Mutex::new(".".into())),
            services,
            asker,
            sink: early_call::holding(sink),
            options,
            hooks: Hooks::new(HookOptions::default(), None),
            tasks: Mutex::default(),
            plans: Plans::default(),
            seen: SeenFiles::default(),
            hosts: Hosts::default(),
            window: AtomicU64::new(ASSUMED_WINDOW),
            images: AtomicBool::new(false),
        }
    }

    /// Sets the hooks of the user's settings.
    #[must_use]
    pub fn with_hooks(mut self, options: HookOptions, session: Option<SessionId>) -> Self {
        self.hooks = Hooks::new(options, session);
        self
    }

    /// Sets the model's context window in tokens.
    pub fn set_window(&self, tokens: Option<u64>) {
        self.window
            .store(tokens.unwrap_or(ASSUMED_WINDOW), Ordering::Relaxed);
    }

    /// Sets whether the model can read images.
    pub fn set_images(&self, wanted: bool) {
        self.images.store(wanted, Ordering::Relaxed);
    }

    /// Returns the open tasks of the task list.
    pub fn open_tasks(&self) -> Vec<String> {
        self.tasks
            .lock()
            .expect("nothing panics while it holds this lock")
            .open()
    }

    /// Restores the task list from the calls of an earlier run, given by their arguments.
    pub fn recall_tasks(&self, calls: &[String]) {
        let mut tasks = self
            .tasks
            .lock()
            .expect("nothing panics while it holds this lock");
        for arguments in calls {
            if let Ok(ParsedCall {
                action: Action::Host(HostCall::Tasks(change)),
                ..
            }) = self.catalogue.parse(task_list::NAME, arguments)
            {
                // A call that failed then fails now too.
                let _ = tasks.take(change);
            }
        }
    }

    /// Restores what the model knew of files at the end of an earlier run.
    pub fn recall_seen(&self, memos: &[Memo]) {
        self.seen.take(memos);
    }

    /// Returns whether a call may run in parallel with others; one that cannot be parsed does
    /// nothing.
    pub fn runs_beside_others(&self, call: &ToolCall) -> bool {
        self.catalogue.parse(&call.name, &call.arguments).map_or(
            true,
            |understood| match understood.action {
                Action::Host(HostCall::Spawn(wanted)) => {
                    self.services.agent_only_reads(&wanted.agent)
                }
                action => action.runs_beside_others(),
            },
        )
    }

    /// Executes one call of the model.
    #[boxed]
    pub async fn run(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> Result<Finished, PipelineError> {
        self.take(call, Caller::Model, cancel).await
    }

    /// Executes a call of the user's own. It asks no permission; all else applies.
    #[boxed]
    pub async fn run_by_hand(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> Result<Finished, PipelineError> {
        self.take(call, Caller::User, cancel).await
    }

    /// The twelve steps, in their order.
    async fn take(
        &self,
        call: &ToolCall,
        caller: Caller,
        cancel: &CancellationToken,
    ) -> Result<Finished, PipelineError> {
        let begun = Instant::now();
        // Steps 1 and 2, parsing and the schema: the model's text becomes an action, or an error
        // for the model.
        let ParsedCall {
            name,
            inner,
            mut action,
            mut notes,
        } = match self.catalogue.parse(&call.name, &call.arguments) {
            Ok(understood) => understood,
            Err(misunderstood) => {
                let underway = CallInProgress {
                    call,
                    name: &call.name,
                    read_only: true,
                    begun,
                };
                return Ok(
                    self.finish(underway, CallEnd::new(CallStatus::Invalid, misunderstood.0))
                );
            }
        };
        let name = &*name;
        // Questions and the log show the unwrapped call.
        let meant = inner.map(|Wrapped { name, arguments }| ToolCall {
            id: call.id.clone(),
            name,
            arguments,
        });
        let call = meant.as_ref().unwrap_or(call);
        let mut may_show = false;
        if let Action::Box(Call::ReadFile(read)) = &mut action {
            may_show = self.images.load(Ordering::Relaxed);
            read.images = may_show;
        }
        let mut underway = CallInProgress {
            call,
            name,
            // In plan mode nothing is changed, and what is denied keeps the task from nothing.
            read_only: action.is_read_only() || self.is_planning(),
            begun,
        };
        // Step 3, plausibility. Paths are resolved by the kernel in the sandbox alone.
        if let Some(problem) = self.objection(&action) {
            return Ok(self.finish(underway, CallEnd::new(CallStatus::Invalid, problem)));
        }
        let action = match self.plan_install(action) {
            Ok(action) => self.read_git_names(action, &mut notes, cancel).await,
            Err(problem) => {
                return Ok(self.finish(underway, CallEnd::new(CallStatus::Failed, problem)));
            }
        };
        // Steps 4 and 5, read-only modes, then capabilities, rules, the user's answer: an approval,
        // or none.
        let (action, quit) = self.approve(call, name, action, caller, cancel).await;
        // Time that the user takes to answer is not the call's.
        underway.begun = Instant::now();
        let action = match action {
            Ok(action) => action,
            Err(NotApproved::Denied(reason)) => {
                return Ok(Finished {
                    quit,
                    ..self.finish(underway, CallEnd::new(CallStatus::Denied, denied(&reason)))
                });
            }
            Err(NotApproved::Withdrawn) => return Ok(self.leave_out(call)),
            Err(NotApproved::Unfit(output)) => {
                return Ok(self.end_unfit(underway, &output, &notes));
            }
            Err(NotApproved::BoxEnded(problem)) => {
                let text = format!(
                    "The sandbox ended while the user was asked about this call: {problem}. The call was not executed; repeat it if it \
                     is still what you want."
                );
                return Ok(self.finish(underway, CallEnd::new(CallStatus::Failed, text)));
            }
        };
        // Step 6, a cache, is left out on purpose: docs/decisions/023-results-are-not-cached.md.
        // Step 7, hooks that may block the call.
        if let Err(held) = self.before_call(call, name, cancel).await {
            return self.held(underway, held);
        }
        // Nor is the time that hooks took.
        underway.begun = Instant::now();
        // Step 8, execution. The start is recorded before anything happens; only an early read is
        // recorded after its answer.
        (self.sink)(
            Kind::CallStarted {
                call: call.id.clone(),
                name: name.to_owned(),
                arguments: call.arguments.clone(),
            }
            .into(),
        );
        let tell = |told: CallProgress<'_>| {
            let kind = match told {
                CallProgress::Output(bytes) => Kind::CallOutput {
                    call: call.id.clone(),
                    text: String::from_utf8_lossy(bytes).into_owned(),
                },
                CallProgress::Asked => Kind::QuestionAsked {
                    call: call.id.clone(),
                },
            };
            (self.sink)(kind.into());
        };
        let scope = self.lasting_scope_of(action.get());
        let asks = ProgramAsker::new(self, call, name, scope, cancel);
        let outcome = dispatch(
            action,
            &*self.workspace,
            &self.seen,
            self.host(&asks, &call.id),
            &self.options,
            tell,
            asks.cancel(),
        )
        .await;
        underway.begun += asks.waited();
        let (result, printed) = match outcome {
            Ok(found) => found,
            Err(error) => {
                self.finish(
                    underway,
                    CallEnd::new(CallStatus::Failed, error.to_string()),
                );
                return Err(PipelineError::Sandbox(error));
            }
        };
        let hosts = match &result {
            CallResult::Output(Output::Command(_)) => {
                self.tell_denied_hosts(call, name, asks.cancel()).await
            }
            _ => ToldHosts::default(),
        };
        underway.begun += hosts.waited;
        let refused = match &result {
            CallResult::Output(Output::Command(ended)) => {
                self.tell_programs(call, name, ended, &asks)
            }
            CallResult::Output(Output::Background(background)) => {
                tell_of_background(&self.sink, &call.id, background);
                Refusals::default()
            }
            _ => Refusals::default(),
        };
        // An early call that is cancelled leaves no trace, and the time the model takes to write is
        // not the call's.
        underway.begun += early_call::confirmed().await;
        let most = self.most(name);
        let ends_task = matches!(result, CallResult::LastText(_));
        let (mut changed_by_agent, mut denied) = (Vec::new(), Vec::new());
        let (mut rendered, output, seen) = match result {
            CallResult::Agent(answer) => {
                changed_by_agent = answer.changed;
                denied = answer.denied;
                let said = if answer.is_ok {
                    Ok(answer.text)
                } else {
                    Err(answer.text)
                };
                let mut rendered = Rendered::said(said);
                rendered.note(&answer.footer);
                (rendered, None, Vec::new())
            }
            CallResult::Text(rendered) | CallResult::LastText(rendered) => {
                (rendered, None, Vec::new())
            }
            CallResult::Output(output) => {
                self.follow(&output);
                let seen = memos(&output, most);
                let mut rendered = render(&output, &printed, &self.options, most);
                let over_part = self.seen.take(&seen);
                // A file that was deleted meanwhile was not replaced.
                let is_replaced = matches!(&output, Output::Written(written) if !written.created);
                for path in over_part.iter().filter(|_| is_replaced) {
                    rendered.note(&format!(
                        "you had been shown only a part of {path}; all of it was replaced"
                    ));
                }
                (rendered, Some(output), seen)
            }
        };
        let status = if rendered.ok {
            CallStatus::Ok
        } else {
            failed(output.as_ref(), asks.cancel().is_cancelled())
        };
        let status = refused.status(status);
        if let Some(note) = asks.for_model() {
            rendered.note(&note);
        }
        for note in &hosts.notes {
            rendered.note(note);
        }
        // Where a host was denied, that says more.
        if hosts.notes.is_empty()
            && !rendered.ok
            && matches!(output, Some(Output::Command(_)))
            && let Some(hint) = no_network::hint(&rendered.body)
        {
            rendered.note(hint);
        }
        for note in notes
            .iter()
            .map(String::as_str)
            .chain(hint(status, name, self.options.set))
        {
            rendered.note(note);
        }
        // Step 10, long results are stored as artifacts, comes before step 9, hooks that receive
        // the model's text. What `read_file` shows is a file or an artifact already.
        let is_long = name != "read_file"
            && rendered.body.len() as u64 > self.options.artifact_threshold.bytes();
        let artifact = if rendered.keep || is_long || rendered.body.len() > most {
            self.services
                .store_artifact(&call.id, rendered.body.as_bytes())
        } else {
            None
        };
        let text = fit(&rendered, most, artifact.as_deref());
        self.after_call(call, name, status, &text).await;
        let touched = seen.iter().flat_map(Memo::paths).cloned().collect();
        // Steps 11 and 12: there is no cache to update or to invalidate.
        let changed = output.as_ref().map_or(changed_by_agent, changed_files);
        let image = match output {
            // An image that was not asked for is ignored.
            Some(Output::Image(shown)) if may_show => Some(shown),
            _ => None,
        };
        let quit = asks.has_quit() || hosts.has_quit;
        Ok(Finished {
            changed,
            touched,
            denied,
            image,
            quit,
            ends_task,
            has_begun: true,
            ..self.finish(
                underway,
                CallEnd {
                    status,
                    text,
                    artifact,
                    seen,
                },
            )
        })
    }

    /// Stores text that the model has read, so that a reference can replace it; returns the
    /// artifact's name.
    pub fn keep(&self, call: &str, text: &str) -> Option<String> {
        self.keep_bytes(call, text.as_bytes())
    }

    /// Stores binary data, such as an image.
    pub fn keep_bytes(&self, name: &str, bytes: &[u8]) -> Option<String> {
        self.services.store_artifact(name, bytes)
    }

    /// Returns what is wrong with a well-formed action, with a remedy for the model.
    fn objection(&self, action: &Action) -> Option<String> {
        let is_architect = || {
            self.policy
                .lock()
                .expect("nothing panics while it holds this lock")
                .is_architect()
        };
        match action {
            Action::Host(HostCall::AskUser { options, .. }) if is_architect() => {
                let different: BTreeSet<String> =
                    options.iter().map(|option| option.to_lowercase()).collect();
                let has = match (options.len(), different.len()) {
                    (0, _) | (3, 3) => return None,
                    (n, n_different) if n == n_different => format!("{n} answers"),
                    (n, n_different) => format!("{n} answers, of which {n_different} differ"),
                };
                Some(format!(
                    "`options` has {has}: the user wants exactly three to choose from (another one can always be typed), or none where a plain \
                     fact is asked for"
                ))
            }
            _ => None,
        }
    }

    /// Fills in what an install phase would run and reach, which is what the user is asked about.
    fn plan_install(&self, action: Action) -> Result<Action, String> {
        match action {
            Action::Host(HostCall::Install(call)) => {
                let is_denied = self
                    .policy
                    .lock()
                    .expect("nothing panics while it holds this lock")
                    .denies_tool(install_dependencies::NAME);
                if is_denied {
                    return Ok(Action::Host(HostCall::Install(call)));
                }
                let words = self.services.plan_install(&call.ecosystems)?;
                Ok(Action::Host(HostCall::Install(InstallCall {
                    words,
                    ..call
                })))
            }
            other => Ok(other),
        }
    }

    pub(super) fn host<'a>(&'a self, asks: &'a dyn Asks, call: &'a str) -> Host<'a> {
        Host {
            services: &*self.services,
            asker: &*self.asker,
            tasks: &self.tasks,
            catalogue: &self.catalogue,
            asks,
            call,
            pipeline: self,
        }
    }

    pub(super) fn most(&self, name: &str) -> usize {
        let window = Window {
            tokens: self.window.load(Ordering::Relaxed),
            percent: self.options.result_percent,
        };
        let own = match name {
            "read_file" => self.options.read_bytes.bytes().saturating_mul(2),
            _ => self.options.bash_output.bytes(),
        };
        window
            .characters()
            .min(usize::try_from(own).unwrap_or(usize::MAX))
    }
}
