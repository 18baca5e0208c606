use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Instant;

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::Asker;
use super::Catalogue;
use super::Options;
use super::Services;
use super::Window;
use super::catalogue::Understood;
use super::class::Expected;
use super::class::Seen;
use super::class::failed;
use super::class::hint;
use super::dispatch::Told;
use super::dispatch::Workspace;
use super::dispatch::dispatch;
use super::each::task_list;
use super::early;
use super::hook::Held;
use super::hook::HookOptions;
use super::hook::Hooks;
use super::host::Came;
use super::host::Host;
use super::render::fit;
use super::render::render;
use super::tasks::Tasks;
use super::touched::Touched;
use super::touched::touched;
use crate::event::Answer;
use crate::event::Answered;
use crate::event::Asked;
use crate::event::CallStatus;
use crate::event::Decision;
use crate::event::Kind;
use crate::event::Lasting;
use crate::event::SessionId;
use crate::event::Sink;
use crate::event::ToolCall;
use crate::policy::Action;
use crate::policy::Approved;
use crate::policy::HostCall;
use crate::policy::Policy;
use crate::policy::Question;
use crate::policy::Verdict;
use crate::sandbox;
use crate::wire::BytesPath;
use crate::wire::Call;
use crate::wire::Fault;
use crate::wire::Image;
use crate::wire::Output;
use crate::wire::ReadFile;

/// Tokens a model is taken to read at once when its server does not say.
const ASSUMED_WINDOW: u64 = 8192;

/// The one way from a call to its result: parse, check, judge, ask, record, dispatch, render, record.
pub struct Pipeline {
    pub catalogue: Catalogue,
    pub(super) policy: Mutex<Policy>,
    pub(super) workspace: Arc<dyn Workspace>,
    pub(super) services: Arc<dyn Services>,
    asker: Arc<dyn Asker>,
    pub(super) sink: Sink,
    pub(super) options: Options,
    pub(super) hooks: Hooks,
    tasks: Mutex<Tasks>,
    seen: Seen,
    window: AtomicU64,
    /// The model can be shown images.
    images: AtomicBool,
}

/// What came of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub status: CallStatus,
    /// What the model reads.
    pub text: String,
    /// It would have changed nothing.
    pub read_only: bool,
    /// The person who was asked wants to end the session.
    pub quit: bool,
    /// The files that a file tool touched. What commands change is not seen here.
    pub changed: Vec<(BytesPath, Touched)>,
    /// The image that the model is to be shown.
    pub image: Option<Image>,
}

/// Why no call can be carried out any more.
#[derive(Debug, Error)]
pub enum PipelineError {
    #[error("the sandbox is lost")]
    Sandbox(#[source] sandbox::Error),
}

/// Why a call is not carried out.
#[derive(Debug)]
enum Refused {
    /// Policy or a person does not allow it, for this reason.
    No(String),
    /// It was given up before anybody answered.
    Withdrawn,
}

impl Refused {
    fn words(self) -> String {
        match self {
            Self::No(reason) => reason,
            Self::Withdrawn => "what was under way was cancelled".to_owned(),
        }
    }
}

/// Why an image cannot be shown.
#[derive(Debug)]
pub enum Unseen {
    /// The project has no such file: the word means something else.
    Absent,
    /// It leads out of the project.
    Outside,
    /// The model sees nothing.
    Blind,
    /// Why policy, or the person who was asked, does not let it be read.
    Denied(String),
    /// What is wrong with the file.
    Fault(String),
    Sandbox(PipelineError),
}

impl Pipeline {
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
            policy: Mutex::new(policy),
            workspace,
            services,
            asker,
            sink: early::holding(sink),
            options,
            hooks: Hooks::new(HookOptions::default(), None),
            tasks: Mutex::default(),
            seen: Seen::default(),
            window: AtomicU64::new(ASSUMED_WINDOW),
            images: AtomicBool::new(false),
        }
    }

    /// Ties the commands of the person's settings to the moments of a session.
    #[must_use]
    pub fn with_hooks(mut self, options: HookOptions, session: Option<SessionId>) -> Self {
        self.hooks = Hooks::new(options, session);
        self
    }

    /// Tells how many tokens the model reads at once.
    pub fn set_window(&self, tokens: Option<u64>) {
        self.window.store(tokens.unwrap_or(ASSUMED_WINDOW), Ordering::Relaxed);
    }

    /// Tells whether the model can be shown images.
    pub fn set_images(&self, wanted: bool) {
        self.images.store(wanted, Ordering::Relaxed);
    }

    /// Makes the list of tasks what calls of an earlier run made it; each is the arguments of one.
    pub fn recall_tasks(&self, calls: &[String]) {
        let mut tasks = self.tasks.lock().expect("nothing panics while it holds this lock");
        for arguments in calls {
            if let Ok(Understood { action: Action::Host(HostCall::Tasks(change)), .. }) = self.catalogue.parse(task_list::NAME, arguments) {
                // What could not be done then cannot be done now.
                let _ = tasks.take(change);
            }
        }
    }

    /// Returns whether a call may run at once with others of its kind; one that cannot be understood does nothing.
    pub fn runs_beside_others(&self, call: &ToolCall) -> bool {
        self.catalogue.parse(&call.name, &call.arguments).map_or(true, |understood| understood.action.runs_beside_others())
    }

    /// Takes one call all the way.
    pub async fn run(&self, call: &ToolCall, cancel: &CancellationToken) -> Result<Finished, PipelineError> {
        let begun = Instant::now();
        let Understood { name, inner, mut action, notes } = match self.catalogue.parse(&call.name, &call.arguments) {
            Ok(understood) => understood,
            Err(misunderstood) => return Ok(self.finish(call, &call.name, CallStatus::Invalid, misunderstood.0, true, None, begun)),
        };
        // Whoever is asked, and the log, must see the call that is meant, not the one around it.
        let meant = inner.map(|arguments| ToolCall { id: call.id.clone(), name: name.to_owned(), arguments });
        let call = meant.as_ref().unwrap_or(call);
        let mut may_show = false;
        if let Action::Box(Call::ReadFile(read)) = &mut action {
            may_show = self.images.load(Ordering::Relaxed);
            read.images = may_show;
        }
        let read_only = action.is_read_only();
        if let Some(problem) = self.objection(&action) {
            return Ok(self.finish(call, name, CallStatus::Invalid, problem, read_only, None, begun));
        }
        let (action, quit) = self.approve(call, name, action, cancel).await;
        let action = match action {
            Ok(action) => action,
            Err(Refused::No(reason)) => {
                let text = denied(&reason);
                return Ok(Finished { quit, ..self.finish(call, name, CallStatus::Denied, text, read_only, None, begun) });
            }
            Err(Refused::Withdrawn) => return Ok(self.leave_out(call)),
        };
        if let Err(held) = self.before_call(call, name, cancel).await {
            return self.held(call, name, held, read_only);
        }
        // The person's time to think is not the call's.
        let begun = Instant::now();
        // What is about to happen is on disk before it happens; only a read that begins early is written down behind its answer.
        (self.sink)(Kind::CallStarted { call: call.id.clone(), name: name.to_owned(), arguments: call.arguments.clone() }.into());
        let tell = |told: Told<'_>| {
            let kind = match told {
                Told::Printed(bytes) => Kind::CallOutput { call: call.id.clone(), text: String::from_utf8_lossy(bytes).into_owned() },
                Told::Asked => Kind::QuestionAsked { call: call.id.clone() },
            };
            (self.sink)(kind.into());
        };
        let expected = Expected::of(action.get());
        let outcome = dispatch(action, &*self.workspace, self.host(), &self.options, tell, cancel).await;
        let (came, printed) = match outcome {
            Ok(found) => found,
            Err(error) => {
                self.finish(call, name, CallStatus::Failed, error.to_string(), read_only, None, begun);
                return Err(PipelineError::Sandbox(error));
            }
        };
        // One that is taken back leaves nothing behind, and the model's time to write is not the call's.
        let begun = begun + early::meant().await;
        let most = self.most(name);
        let (mut rendered, output) = match came {
            Came::Said(rendered) => (rendered, None),
            Came::Output(output) => {
                self.follow(&output);
                self.seen.take(&output);
                (render(&output, &printed, &self.options, most), Some(output))
            }
        };
        let status = if rendered.ok { CallStatus::Ok } else { failed(output.as_ref(), &expected, &self.seen, cancel.is_cancelled()) };
        for note in notes.iter().map(String::as_str).chain(hint(status)) {
            rendered.note(note);
        }
        let artifact = if rendered.keep || rendered.body.len() > most {
            self.services.store_artifact(&call.id, rendered.body.as_bytes())
        } else {
            None
        };
        let text = fit(&rendered, most, artifact.as_deref());
        self.after_call(call, name, status, &text);
        let changed = output.as_ref().map(touched).unwrap_or_default();
        let image = match output {
            // A guest that answers with one unasked is not believed.
            Some(Output::Image(shown)) if may_show => Some(shown),
            _ => None,
        };
        Ok(Finished { changed, image, ..self.finish(call, name, status, text, read_only, artifact, begun) })
    }

    /// Ends a call that a hook did not let through.
    fn held(&self, call: &ToolCall, name: &str, held: Held, read_only: bool) -> Result<Finished, PipelineError> {
        let begun = Instant::now();
        match held {
            Held::Back(reason) => {
                let reason = format!("a hook of the person's holds it back: {reason}");
                let (id, tool) = (call.id.clone(), name.to_owned());
                (self.sink)(Kind::CallDecided { call: id, name: tool, decision: Decision::Deny, reason: reason.clone() }.into());
                Ok(self.finish(call, name, CallStatus::Denied, denied(&reason), read_only, None, begun))
            }
            Held::Cancelled => Ok(self.leave_out(call)),
            Held::Sandbox(error) => {
                self.finish(call, name, CallStatus::Failed, error.to_string(), read_only, None, begun);
                Err(error)
            }
        }
    }

    /// Reads an image that the person named. It is judged as a `read_file` of the same path would be: a rule that denies that denies this.
    pub async fn look(&self, path: BytesPath, cancel: &CancellationToken) -> Result<Image, Unseen> {
        let sees = self.images.load(Ordering::Relaxed);
        let arguments = serde_json::json!({ "path": path.to_text() }).to_string();
        let action = Action::Box(Call::ReadFile(ReadFile {
            path: Some(path),
            offset: 1,
            limit: 1,
            max_bytes: 1,
            cursor: None,
            max_files: 1,
            images: sees,
            protected: false,
        }));
        let verdict = self.policy.lock().expect("nothing panics while it holds this lock").judge(action);
        let action = match verdict {
            Verdict::Allow { action, .. } => action,
            Verdict::Deny { reason, .. } => return Err(Unseen::Denied(reason)),
            Verdict::Ask(question) => {
                let call = ToolCall { id: "image".to_owned(), name: "read_file".to_owned(), arguments };
                self.ask(&call, question, cancel).await.0.map_err(|refused| Unseen::Denied(refused.words()))?
            }
        };
        let output = match dispatch(action, &*self.workspace, self.host(), &self.options, |_| {}, cancel).await {
            Ok((Came::Output(output), _)) => output,
            Ok((Came::Said(said), _)) => return Err(Unseen::Fault(said.body)),
            Err(error) => return Err(Unseen::Sandbox(PipelineError::Sandbox(error))),
        };
        Err(match output {
            Output::Image(image) if sees => return Ok(image),
            Output::Fault(Fault::NotFound { .. } | Fault::IsDirectory { .. } | Fault::NotDirectory { .. } | Fault::Invalid { .. }) => {
                Unseen::Absent
            }
            Output::Fault(Fault::Outside { .. }) => Unseen::Outside,
            Output::Fault(_) | Output::Image(_) if !sees => Unseen::Blind,
            _ if !sees => Unseen::Absent,
            Output::Fault(fault) => Unseen::Fault(for_person(&fault)),
            _ => Unseen::Fault("it is no image that a model reads".to_owned()),
        })
    }

    /// Ends a call that is not begun, because what was under way was cancelled.
    pub fn leave_out(&self, call: &ToolCall) -> Finished {
        let text = "not carried out: what was under way was cancelled".to_owned();
        self.finish(call, &call.name, CallStatus::Cancelled, text, true, None, Instant::now())
    }

    /// Ends a call in the middle of which Podbay itself went wrong: that is a result like any other, and the run goes on.
    pub fn crashed(&self, call: &ToolCall) -> Finished {
        let text =
            "Podbay itself went wrong in this call, which is a mistake in it and none of yours. What the call may have changed is not \
                    known: look before you go on, and try another way."
                .to_owned();
        self.finish(call, &call.name, CallStatus::Failed, text, false, None, Instant::now())
    }

    /// Keeps what the model has read once, so that a short reference can stand in its place; returns the name to read it by.
    pub fn keep(&self, call: &str, text: &str) -> Option<String> {
        self.keep_bytes(call, text.as_bytes())
    }

    /// Keeps what is no text, such as an image.
    pub fn keep_bytes(&self, name: &str, bytes: &[u8]) -> Option<String> {
        self.services.store_artifact(name, bytes)
    }

    /// Judges, and asks where the verdict is to ask. Whatever was decided is an event.
    async fn approve(
        &self,
        call: &ToolCall,
        name: &str,
        action: Action,
        cancel: &CancellationToken,
    ) -> (Result<Approved<Action>, Refused>, bool) {
        let verdict = self.policy.lock().expect("nothing panics while it holds this lock").judge(action);
        let decided = |decision: Decision, reason: &str| {
            let (call, name) = (call.id.clone(), name.to_owned());
            (self.sink)(Kind::CallDecided { call, name, decision, reason: reason.to_owned() }.into());
        };
        match verdict {
            Verdict::Allow { action, reason } => {
                decided(Decision::Allow, &reason);
                (Ok(action), false)
            }
            Verdict::Deny { reason, .. } => {
                decided(Decision::Deny, &reason);
                (Err(Refused::No(reason)), false)
            }
            Verdict::Ask(question) => {
                let (outcome, quit) = self.ask(call, question, cancel).await;
                match &outcome {
                    Ok(_) => decided(Decision::Allow, "a person allowed it"),
                    Err(Refused::No(reason)) => decided(Decision::Deny, reason),
                    Err(Refused::Withdrawn) => {}
                }
                (outcome, quit)
            }
        }
    }

    /// Asks a person, and remembers an answer that lasts.
    async fn ask(&self, call: &ToolCall, question: Question, cancel: &CancellationToken) -> (Result<Approved<Action>, Refused>, bool) {
        if !self.asker.is_somebody_there() {
            let needs: Vec<String> = question.capabilities.iter().map(crate::event::Capability::describe).collect();
            let what = if needs.is_empty() { String::new() } else { format!(" to {}", needs.join(" and to ")) };
            return (Err(Refused::No(format!("it needs a person's permission{what}, and nobody is there to give it"))), false);
        }
        let capabilities = question.capabilities.clone();
        (self.sink)(Kind::PermissionAsked { call: call.id.clone(), capabilities: capabilities.clone() }.into());
        let lasting = match question.lasting() {
            Ok(exact) => Lasting::Exactly { what: exact.words(), always: self.services.keeps_answers() },
            Err(because) => Lasting::Once { because: because.to_owned() },
        };
        let asked = Asked { call: call.clone(), capabilities, lasting };
        let answered = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answered = self.asker.ask(&asked) => Some(answered),
        };
        // A question whose call is given up is withdrawn; an answer that comes in the same moment is one to nothing.
        let Some(Answered { answer, reason }) = answered.filter(|_| !cancel.is_cancelled()) else {
            return (Err(Refused::Withdrawn), false);
        };
        let answer = self.remember(&question, &asked.lasting, answer);
        (self.sink)(Kind::PermissionAnswered { call: call.id.clone(), answer, reason: reason.clone() }.into());
        let no = || Refused::No(reason.map_or_else(|| "the person said no".to_owned(), |reason| format!("the person said no: {reason}")));
        (question.answered(answer).ok_or_else(no), answer == Answer::Quit)
    }

    /// Keeps an answer for as long as it may hold, and returns the answer that this makes it.
    fn remember(&self, question: &Question, lasting: &Lasting, answer: Answer) -> Answer {
        let answer = match (answer, lasting) {
            (Answer::AllowSession | Answer::AllowAlways, Lasting::Once { .. }) => Answer::Allow,
            (Answer::AllowAlways, Lasting::Exactly { always: false, .. }) => Answer::AllowSession,
            (answer, _) => answer,
        };
        let kept = match question.lasting() {
            Ok(exact) if answer == Answer::AllowAlways => self.services.keep_answer(exact),
            _ => Ok(()),
        };
        let answer = match kept {
            Ok(()) => answer,
            Err(problem) => {
                let message = format!("the answer holds for this session alone: {problem}");
                (self.sink)(Kind::Warning { message }.into());
                Answer::AllowSession
            }
        };
        self.policy.lock().expect("nothing panics while it holds this lock").remember(question, answer);
        answer
    }

    /// Notes where commands run from now on, as far as the box tells.
    fn follow(&self, output: &Output) {
        let here = match output {
            Output::Moved(moved) => Some(moved.path.clone()),
            Output::Command(ended) => ended.working_directory.clone(),
            // A new box begins in the project's folder.
            Output::Fault(Fault::BoxEnded { .. }) => Some(".".into()),
            _ => None,
        };
        if let Some(here) = here {
            self.policy.lock().expect("nothing panics while it holds this lock").move_to(&here);
        }
    }

    /// Returns what is wrong with an action that is well-formed, in words that a model can act on.
    fn objection(&self, action: &Action) -> Option<String> {
        let is_architect = || self.policy.lock().expect("nothing panics while it holds this lock").is_architect();
        match action {
            Action::Host(HostCall::AskUser { options, .. }) if ![0, 3].contains(&options.len()) && is_architect() => Some(format!(
                "`options` has {} answers: the person wants exactly three to choose from (another one can always be typed), or none where a \
                 plain fact is asked for",
                options.len()
            )),
            _ => None,
        }
    }

    fn host(&self) -> Host<'_> {
        Host { services: &*self.services, asker: &*self.asker, tasks: &self.tasks, catalogue: &self.catalogue }
    }

    fn most(&self, name: &str) -> usize {
        let window = Window { tokens: self.window.load(Ordering::Relaxed), percent: self.options.result_percent };
        let own = match name {
            "read_file" => self.options.read_bytes.bytes().saturating_mul(2),
            _ => self.options.bash_output.bytes(),
        };
        window.characters().min(usize::try_from(own).unwrap_or(usize::MAX))
    }

    #[expect(clippy::too_many_arguments, reason = "one place that ends every call, whatever became of it")]
    fn finish(
        &self,
        call: &ToolCall,
        name: &str,
        status: CallStatus,
        text: String,
        read_only: bool,
        artifact: Option<String>,
        begun: Instant,
    ) -> Finished {
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        (self.sink)(
            Kind::CallFinished { call: call.id.clone(), name: name.to_owned(), status, result: text.clone(), artifact, duration_ms }.into(),
        );
        Finished { status, text, read_only, quit: false, changed: Vec::new(), image: None }
    }
}

/// Says to the model that a call was not carried out.
fn denied(reason: &str) -> String {
    format!("Denied: {reason}. It was not carried out. Do not try to get around this; go on without it, or say what you need.")
}

/// Says what is wrong with an image to whoever named it: what the model reads of it is advice for a model.
fn for_person(fault: &Fault) -> String {
    match fault {
        Fault::TooLarge { bytes, limit, .. } => format!("it has {bytes} bytes, and an image that is shown has at most {limit}"),
        Fault::Protected { name, .. } => format!("it leads to {name}, which is protected by its name"),
        Fault::Binary { kind, .. } => format!("it is no image that a model reads but a {kind}"),
        Fault::NotRegular { kind, .. } => format!("it is not a regular file but a {kind}"),
        Fault::PermissionDenied { .. } => "permission denied".to_owned(),
        fault => fault.to_string(),
    }
}
