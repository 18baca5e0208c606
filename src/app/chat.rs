use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Front;
use super::Interrupt;
use super::Place;
use super::Report;
use super::came::Came;
use super::exit_code;
use super::learning::learn;
use super::project_changes::of_tools;
use super::project_changes::of_turn;
use super::report::UNDO_DIFF;
use super::report::may_run_words;
use super::resume::Aim;
use super::seat::Closed;
use super::seat::Seat;
use super::seat::end_turn;
use super::sitting::plan_task;
use super::sitting::sit_down;
use super::undo;
use podbay_agent::ProjectContext;
use podbay_agent::UserCommand;
use podbay_event::Kind;
use podbay_event::MessageQueue;
use podbay_event::Plan;
use podbay_event::PlanDecision;
use podbay_event::ProjectChanges;
use podbay_event::RunStatus;
use podbay_event::SessionId;
use podbay_event::Usage;
use podbay_guest::memory::release_program_pages;
use podbay_mcp::PromptDefinition;
use podbay_mcp::ServerStatus;
use podbay_policy::Mode;
use podbay_sandbox::EndedTurn;
use podbay_sandbox::HeldTurn;
use podbay_sandbox::TurnSelection;
use podbay_tools::Later;
use podbay_tools::Pipeline;
use podbay_wire::BytesPath;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::ReviewedTurn;
use podbay_wire::keep::UndoAnswer;
use podbay_wire::keep::UndoOrder;

/// A conversation with a user: one sandbox, one model, many messages.
pub struct Chat {
    seat: Seat,
    project: PathBuf,
    begun: Instant,
    turns: u32,
    tool_calls: u32,
    usage: Usage,
    last_response: String,
    /// What the last command of the user's own brought into the project.
    came_by_hand: Option<Came>,
    /// The user decides on each turn's changes before they are applied.
    is_reviewed: bool,
    /// What the project was on after the last turn.
    branch: Option<String>,
    /// What was named after a message as what may run on the user's machine.
    named: BTreeSet<BytesPath>,
}

/// What becomes of what a turn changed that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Keep,
    Drop,
}

/// Asks a user what becomes of a turn that they broke off.
pub trait Decide {
    /// `n_changes`: how many paths it has changed.
    fn decide(&mut self, n_changes: u64) -> Later<'_, Fate>;

    /// Decides on what is pending, which is not in the project yet.
    fn review<'a>(&'a mut self, pending: &'a ReviewedTurn, can_drop: bool) -> Later<'a, Verdict>;
}

/// What becomes of changes that are pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// These are applied; the others stay pending.
    Apply(TurnSelection),
    Drop,
    /// All of it stays pending.
    Leave,
}

/// What the end of a chat left.
#[derive(Debug)]
pub struct ChatEnded {
    /// What was done with git that may run on the user's machine later, but for what was named
    /// before.
    pub may_run: Vec<String>,
    pub came: Option<Came>,
    /// Paths that stay pending, since the user did not decide on them.
    pub n_pending: u64,
}

/// What came of one message.
#[derive(Debug)]
pub struct Said {
    /// What of it is in the project, where that comes at the end.
    pub came: Option<Came>,
    /// It was interrupted, and what it had changed is dropped.
    pub is_dropped: bool,
    /// How many paths are pending, where the user left them so.
    pub n_pending: u64,
    /// What it left that may run on the user's machine later; `None`: nobody looked.
    may_run: Option<NamedList<MayRun>>,
    /// There may be others, of which nobody knows.
    is_cut: bool,
    pub status: RunStatus,
    /// Why it could not continue, if so.
    pub error: Option<Error>,
}

impl Said {
    /// Returns what it left that may run on the user's machine later, each with the reason.
    pub fn may_run(&self) -> Vec<String> {
        if let Some(came) = &self.came {
            return came.may_run();
        }
        self.may_run
            .as_ref()
            .map_or_else(Vec::new, |files| may_run_words(files, UNDO_DIFF))
    }

    /// Whether that is known.
    pub fn is_may_run_known(&self) -> bool {
        // Of what was dropped nothing is there.
        self.is_dropped
            || self.came.as_ref().map_or(
                self.may_run.is_some() && !self.is_cut,
                Came::is_may_run_known,
            )
    }
}

impl Chat {
    /// Opens the project, starts sandbox and model.
    #[boxed]
    pub async fn open(place: &Place, front: &Front) -> Result<Self, Error> {
        let mut session: Option<SessionId> = None;
        let begun = Instant::now();
        match Box::pin(sit_down(
            place,
            Aim::Chat,
            None,
            front,
            front.interrupt.run(),
            &mut session,
        ))
        .await
        {
            Ok(mut seat) => {
                seat.agent.ask_at_request_limit(Arc::clone(&front.asker));
                if seat.sandbox.is_by_turn() {
                    front.interrupt.end_turns();
                }
                // Most of the program that was needed for that is not needed again.
                release_program_pages();
                Ok(Self {
                    seat,
                    project: place.project.clone(),
                    begun,
                    turns: 0,
                    tool_calls: 0,
                    usage: Usage::default(),
                    last_response: String::new(),
                    came_by_hand: None,
                    is_reviewed: false,
                    branch: None,
                    named: BTreeSet::new(),
                })
            }
            Err((error, recorder)) => {
                if let Some(recorder) = recorder {
                    let duration_ms =
                        u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                    recorder.emit(Report::failed(&error, session, duration_ms).event());
                }
                Err(error)
            }
        }
    }

    pub fn session(&self) -> &SessionId {
        self.seat.recorder.session()
    }

    /// Returns whether an earlier run left a task open.
    pub fn is_open(&self) -> bool {
        self.seat.is_open
    }

    pub fn model(&self) -> &str {
        &self.seat.model
    }

    /// Has messages that the user types while a task runs join it, from this queue.
    pub fn read_queue(&mut self, queue: MessageQueue) {
        self.seat.agent.read_queue(queue);
    }

    /// Sends one message and executes what the model asks for. `decide` is asked what becomes of
    /// so many changes, where the user broke it off and they are not in the project yet.
    #[boxed]
    pub async fn say(
        &mut self,
        text: &str,
        interrupt: &Interrupt,
        decide: &mut (dyn Decide + Send),
    ) -> Said {
        interrupt.begin_turn();
        self.seat.begin_turn(text);
        let outcome = self.seat.agent.run(text, interrupt).await;
        interrupt.end_turn();
        if outcome.tool_calls > 0 {
            // While this turn's sandbox is still there.
            self.look_for_branch(interrupt).await;
        }
        // The next message may be long in coming.
        self.seat.recorder.sync();
        release_program_pages();
        self.turns += outcome.turns;
        self.tool_calls += outcome.tool_calls;
        self.usage += outcome.usage;
        self.last_response = outcome.response;
        let changed = outcome.changed;
        let mut said = Said {
            came: None,
            is_dropped: false,
            n_pending: 0,
            may_run: None,
            is_cut: false,
            status: outcome.status,
            error: outcome.failure.map(|failure| self.seat.error(failure)),
        };
        if self.is_reviewed {
            if let Some(reviewed) = self.reviewed(text, interrupt, decide).await {
                return Said {
                    status: said.status,
                    error: said.error,
                    ..reviewed
                };
            }
        } else if said.status == RunStatus::Interrupted
            && outcome.tool_calls > 0
            && self.drop_if_wanted(interrupt, decide).await
        {
            return Said {
                is_dropped: true,
                ..said
            };
        }
        match end_turn(&self.seat.sandbox, interrupt, None).await {
            Some(EndedTurn::InPlace(ended)) => {
                self.tell_changes(of_turn(&ended));
                said.is_cut = ended.is_may_run_cut;
                said.may_run = Some(ended.may_run);
            }
            Some(EndedTurn::Came(turn)) => said.came = Some(self.came(*turn)),
            None if !self.seat.sandbox.has_turns() => self.tell_changes(of_tools(&changed)),
            None => {}
        }
        // Where that is never known it is no news, and documented.
        said.may_run = said
            .may_run
            .or_else(|| (!self.seat.sandbox.has_turns()).then(NamedList::default));
        self.named.extend(
            said.may_run
                .iter()
                .flat_map(|named| &named.first)
                .map(|file| file.path.clone()),
        );
        said
    }

    /// Has the user decide on each turn's changes before any of them is applied. Returns whether
    /// that is possible here: where changes are live it is not.
    pub fn review_turns(&mut self) -> bool {
        self.is_reviewed = self.seat.sandbox.is_by_turn();
        if self.is_reviewed {
            self.seat.sandbox.keep_pending();
        }
        self.is_reviewed
    }

    /// Has the user decide on what is pending in this session; `None`: nothing is.
    #[boxed]
    pub async fn review(
        &mut self,
        interrupt: &Interrupt,
        decide: &mut (dyn Decide + Send),
    ) -> Option<Said> {
        self.reviewed("/review", interrupt, decide).await
    }

    /// Shows what is pending and does with it what the user decides; `None`: nothing is pending.
    async fn reviewed(
        &mut self,
        words: &str,
        interrupt: &Interrupt,
        decide: &mut (dyn Decide + Send),
    ) -> Option<Said> {
        let sandbox = self.seat.sandbox.clone();
        let n_turn = self.seat.n_turns;
        let pending = sandbox.show_pending(n_turn, words, interrupt.run()).await?;
        let mut said = Said {
            came: None,
            is_dropped: false,
            n_pending: pending.n_left,
            may_run: Some(NamedList::default()),
            is_cut: false,
            status: RunStatus::Completed,
            error: None,
        };
        match decide.review(&pending, sandbox.can_drop()).await {
            Verdict::Leave => {}
            Verdict::Drop => match sandbox.drop_turn(interrupt.run()).await {
                Ok(()) => {
                    self.tell_fact(
                        "The user looked at the changes and dropped them: the files are as they were before.",
                    );
                    (said.is_dropped, said.n_pending) = (true, 0);
                }
                Err(error) => self.seat.recorder.warn(format!(
                    "the changes could not be dropped, so they stay pending: {error}"
                )),
            },
            Verdict::Apply(selection) => {
                let is_part = !selection.only.is_empty();
                sandbox.select_of_turn(selection);
                if let Some(EndedTurn::Came(turn)) = end_turn(&sandbox, interrupt, None).await {
                    said.n_pending = turn.turn.n_left;
                    said.came = Some(self.came(*turn));
                    if is_part {
                        self.tell_fact(
                            "The user looked at the changes and applied some of them to the project; the others are pending.",
                        );
                    }
                }
            }
        }
        Some(said)
    }

    /// Tells the model something with the next message.
    fn tell_fact(&mut self, words: &str) {
        self.seat.agent.add_context(&ProjectContext {
            text: words.to_owned(),
            ..ProjectContext::default()
        });
    }

    /// Asks what becomes of a turn that was interrupted; returns whether it is dropped.
    async fn drop_if_wanted(
        &mut self,
        interrupt: &Interrupt,
        decide: &mut (dyn Decide + Send),
    ) -> bool {
        let n_changes = self.seat.sandbox.count_changes(interrupt.run()).await;
        if n_changes == 0 || decide.decide(n_changes).await == Fate::Keep {
            return false;
        }
        if let Err(error) = self.seat.sandbox.drop_turn(interrupt.run()).await {
            self.seat.recorder.warn(format!(
                "the changes of this turn could not be dropped, so they are kept: {error}"
            ));
            return false;
        }
        self.tell_fact(
            "The user stopped the last turn and dropped its changes: the files are as they were before it.",
        );
        true
    }

    /// Has that come with each message from now on, unasked.
    pub fn accept_all_auto_run(&self) {
        self.seat.sandbox.accept_all_auto_run();
    }

    /// Applies, too, what programs on the user's machine run by themselves, which the last
    /// message has changed.
    #[boxed]
    pub async fn accept_auto_run(&mut self, words: &str, interrupt: &Interrupt) -> Option<Came> {
        let turn = self
            .seat
            .sandbox
            .accept_auto_run(self.seat.n_turns, words, interrupt.run())
            .await?;
        Some(self.came(turn))
    }

    /// Takes what a turn brought into the project, and has the log tell it.
    fn came(&self, turn: HeldTurn) -> Came {
        let came = Came::new(turn, self.session());
        self.tell_changes(came.changes());
        came
    }

    fn tell_changes(&self, changes: ProjectChanges) {
        if changes.n > 0 {
            self.seat.recorder.emit(Kind::ProjectChanged(changes));
        }
    }

    /// Has a summary take the place of older messages, one that keeps above all what is about
    /// `focus`; returns whether there was anything to replace.
    #[boxed]
    pub async fn compact(&mut self, focus: &str, interrupt: &Interrupt) -> bool {
        let (usage, is_shorter) = self.seat.agent.compact(focus, interrupt).await;
        self.usage += usage;
        is_shorter
    }

    /// Returns how many tokens the conversation is, and how many the model reads at once, where
    /// that is known.
    #[boxed]
    pub async fn fullness(&mut self, interrupt: &Interrupt) -> (u64, Option<u64>) {
        self.seat.agent.fullness(interrupt).await
    }

    /// Returns the branch that the project was on after the last turn.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    /// Looks again which branch the project is on in the sandbox.
    #[boxed]
    pub async fn look_for_branch(&mut self, interrupt: &Interrupt) {
        if let Some(branch) = self.seat.agent.branch(interrupt.run()).await {
            self.branch = Some(branch);
        }
    }

    /// Returns how many of the user's messages could be rewound.
    pub fn n_turns(&self) -> usize {
        self.seat.agent.n_turns()
    }

    /// Returns the project's files, for completion.
    #[boxed]
    pub async fn files(&self, interrupt: &Interrupt) -> Vec<String> {
        self.seat.agent.files(interrupt.run()).await
    }

    pub(super) fn pipeline(&self) -> &Pipeline {
        self.seat.agent.pipeline()
    }

    /// Returns the last answer of the model.
    pub fn last_response(&self) -> &str {
        &self.last_response
    }

    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Returns the names of the tools that the model knows of.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.pipeline().catalogue().listed_tools();
        tools.into_iter().map(|tool| tool.name).collect()
    }

    /// Returns the MCP servers of the session, what each is doing and which tools it has.
    pub fn mcp_servers(&self) -> Vec<ServerStatus> {
        self.seat
            .mcp
            .as_ref()
            .map_or_else(Vec::new, |servers| servers.status())
    }

    /// Returns the prompts of the session's MCP servers.
    #[boxed]
    pub async fn mcp_prompts(&self, cancel: &CancellationToken) -> Vec<PromptDefinition> {
        match &self.seat.mcp {
            Some(servers) => servers.prompts(cancel).await,
            None => Vec::new(),
        }
    }

    /// Returns the message that a prompt of an MCP server stands for; the error says what is wrong.
    #[boxed]
    pub async fn mcp_message(
        &self,
        prompt: &PromptDefinition,
        words: &str,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        match &self.seat.mcp {
            Some(servers) => servers.prompt(prompt, words, cancel).await,
            None => Err("this session has no MCP servers".to_owned()),
        }
    }

    /// Tells the model something with the next message.
    pub fn tell(&mut self, words: &str) {
        self.seat.agent.add_context(&ProjectContext {
            text: format!("The user says by the way: {words}"),
            ..ProjectContext::default()
        });
    }

    /// Notes in the log what the session has come to, and returns it.
    pub fn checkpoint(&mut self) -> String {
        self.seat.agent.checkpoint()
    }

    /// Begins or ends plan mode; returns whether that changed anything. The model knows of it with
    /// the next message.
    #[boxed]
    pub async fn set_plan_mode(&mut self, on: bool, interrupt: &Interrupt) -> Result<bool, Error> {
        let words = self
            .pipeline()
            .switch_plan_mode(on, interrupt.run())
            .await
            .map_err(Error::Sandbox)?;
        if let Some(words) = &words {
            self.seat.agent.add_note(words);
        }
        Ok(words.is_some())
    }

    /// Returns whether plan mode is on.
    pub fn is_planning(&self) -> bool {
        self.pipeline().is_planning()
    }

    /// Returns the last plan of the session.
    pub fn plan(&self) -> Option<Plan> {
        self.pipeline().plan()
    }

    /// Takes the last answer as the plan, where there is none yet; returns the plan.
    pub fn plan_or_answer(&mut self) -> Option<Plan> {
        if self.plan().is_none() && self.is_planning() && !self.last_response.trim().is_empty() {
            self.pipeline().save_plan(&self.last_response, false);
        }
        self.plan()
    }

    /// Takes a plan as the user changed it.
    pub fn change_plan(&mut self, text: &str) {
        self.pipeline().save_plan(text, true);
    }

    /// Notes that the user wants nothing of the last plan.
    pub fn discard_plan(&mut self) {
        self.pipeline().decide_plan(PlanDecision::Discarded, None);
        self.tell_fact("The user discarded the plan. Do not implement it.");
    }

    /// Approves the last plan and ends plan mode; returns the message that has the model
    /// implement it, `None` where there is no plan.
    #[boxed]
    pub async fn approve_plan(&mut self, interrupt: &Interrupt) -> Result<Option<String>, Error> {
        let Some(plan) = self.plan() else {
            return Ok(None);
        };
        self.pipeline().decide_plan(PlanDecision::Approved, None);
        self.set_plan_mode(false, interrupt).await?;
        Ok(Some(plan_task(&plan)))
    }

    /// Returns how much is allowed without asking.
    pub fn mode(&self) -> Mode {
        self.seat.agent.pipeline().mode()
    }

    /// Changes that from the next call on.
    pub fn set_mode(&mut self, mode: Mode) {
        self.seat.agent.pipeline().set_mode(mode);
    }

    /// Returns the answers that hold now, in words, each with for how long.
    pub fn answers(&self) -> Vec<String> {
        let until = |always| {
            if always {
                "always in this project"
            } else {
                "until the session ends"
            }
        };
        self.seat
            .agent
            .pipeline()
            .answers()
            .iter()
            .map(|(exact, always)| format!("{} ({})", exact.words(), until(*always)))
            .collect()
    }

    /// Takes the answer of this number, from 1, back; returns what it was, in words.
    pub fn forget_answer(&mut self, number: usize) -> Result<String, String> {
        let pipeline = self.seat.agent.pipeline();
        let answers = pipeline.answers();
        let Some((exact, _)) = number.checked_sub(1).and_then(|at| answers.get(at)) else {
            return Err(format!(
                "there is no answer {number}; there are {}",
                answers.len()
            ));
        };
        pipeline.forget_answer(exact).map(|()| exact.words())
    }

    /// Runs a command of the user's own in the sandbox; the model knows of it with their next
    /// message.
    #[boxed]
    pub async fn run_by_hand(
        &mut self,
        command: &str,
        interrupt: &Interrupt,
    ) -> Result<UserCommand, Error> {
        self.seat.begin_turn(&format!("!{command}"));
        let ran = self.seat.agent.run_by_hand(command, interrupt).await;
        // What is reviewed waits for the next look.
        if !self.is_reviewed
            && let Some(EndedTurn::Came(turn)) = end_turn(&self.seat.sandbox, interrupt, None).await
        {
            self.came_by_hand = Some(self.came(*turn));
        }
        ran.map_err(|failure| self.seat.error(failure))
    }

    /// Returns what that brought into the project, once.
    pub fn came_by_hand(&mut self) -> Option<Came> {
        self.came_by_hand.take()
    }

    /// Shows the user the folders below one; the model is not told of it.
    #[boxed]
    pub async fn tree_by_hand(
        &mut self,
        path: &str,
        interrupt: &Interrupt,
    ) -> Result<UserCommand, Error> {
        self.seat
            .agent
            .tree_by_hand(path, interrupt)
            .await
            .map_err(|failure| self.seat.error(failure))
    }

    /// Shows or undoes what turns changed; the model knows of it with the next message.
    #[boxed]
    pub async fn undo(
        &mut self,
        order: UndoOrder,
        interrupt: &Interrupt,
    ) -> Result<UndoAnswer, Error> {
        let answer = undo::finished(
            self.seat
                .sandbox
                .undo(order, interrupt.run())
                .await
                .map_err(Error::Sandbox)?,
        )?;
        if let UndoAnswer::Undone(undone) = &answer
            && let Some(words) = undo::for_model(undone)
        {
            self.seat.agent.add_context(&ProjectContext {
                text: words,
                ..ProjectContext::default()
            });
        }
        Ok(answer)
    }

    /// Ends the sandbox and the log, which then says with which exit code and, if so, why the
    /// conversation could not continue. Returns what was done with git that may run on the user's
    /// machine later, but for what was named before.
    ///
    /// `cancel` ends the commands of the settings that are still at work.
    #[boxed]
    pub async fn close(
        mut self,
        exit_code: u8,
        error: Option<&Error>,
        cancel: &CancellationToken,
    ) -> ChatEnded {
        if error.is_none() && exit_code == exit_code::DONE {
            let interrupt = Interrupt::under(cancel, &CancellationToken::new());
            self.usage += learn(&mut self.seat, self.tool_calls, &interrupt).await;
        }
        let sandbox = self.seat.sandbox.clone();
        let Closed { git, came, .. } = self.seat.close(cancel).await;
        let came = came.map(|turn| self.came(turn));
        let status = match exit_code {
            exit_code::DONE => RunStatus::Completed,
            _ if error.is_some() => RunStatus::Failed,
            _ => RunStatus::Interrupted,
        };
        let finished = Kind::RunFinished {
            status,
            exit_code,
            response: self.last_response,
            turns: self.turns,
            tool_calls: self.tool_calls,
            usage: self.usage,
            limit: None,
            error: error.map(ToString::to_string),
            duration_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        self.seat.recorder.emit(finished);
        ChatEnded {
            may_run: git
                .map(|git| git.may_run_words(|file| !self.named.contains(&file.path)))
                .unwrap_or_default(),
            came,
            n_pending: sandbox.n_kept_pending(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::keep::RunTrigger;

    #[test]
    fn what_is_only_counted_of_what_may_run_is_said_after_a_message_too() {
        let of = |n: usize| MayRun {
            path: format!("{n}.mk").as_str().into(),
            why: "a build runs what it says".to_owned(),
            when: RunTrigger::ByItself,
        };
        let said = |n: usize| {
            let may_run = Some((0..n).map(of).collect());
            Said {
                came: None,
                is_dropped: false,
                n_pending: 0,
                may_run,
                is_cut: false,
                status: RunStatus::Completed,
                error: None,
            }
            .may_run()
        };
        assert_eq!(said(230).len(), 201);
        assert_eq!(
            said(230)[200],
            "and 30 more: `podbay undo diff` shows all that changed"
        );
        assert_eq!(said(1), ["0.mk: a build runs what it says"]);
        assert!(said(0).is_empty());
    }
}
