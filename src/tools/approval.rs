//! From a verdict to an approval: asks the user where the policy says so, and remembers lasting
//! answers.

use tokio_util::sync::CancellationToken;

use super::Pipeline;
use super::pipeline::Caller;
use podbay_event::Answer;
use podbay_event::Answered;
use podbay_event::Asked;
use podbay_event::Capability;
use podbay_event::Decision;
use podbay_event::Kind;
use podbay_event::Lasting;
use podbay_event::ToolCall;
use podbay_policy::Action;
use podbay_policy::Approved;
use podbay_policy::ExactCall;
use podbay_policy::LastingScope;
use podbay_policy::Mode;
use podbay_policy::Question;
use podbay_policy::Verdict;
use podbay_sandbox::Ended;
use podbay_wire::Call;
use podbay_wire::Fault;
use podbay_wire::Output;

/// Why a call is not executed.
#[derive(Debug)]
pub(super) enum NotApproved {
    /// Denied by the policy or the user, for this reason.
    Denied(String),
    /// Cancelled before it was answered.
    Withdrawn,
    /// The call's sandbox ended before it was answered; the text tells the model.
    BoxEnded(String),
    /// It cannot do what it says, so the user was not asked: its result.
    Unfit(Box<Output>),
}

/// What ends the wait for an answer.
enum Next {
    Answered(Answered),
    Cancelled,
    BoxEnded(Ended),
}

impl NotApproved {
    pub(super) fn words(self) -> String {
        match self {
            Self::Denied(reason) => reason,
            Self::Withdrawn => "the call was cancelled".to_owned(),
            Self::BoxEnded(problem) => problem,
            Self::Unfit(_) => "it does not fit".to_owned(),
        }
    }
}

/// Returns whether an action starts programs.
fn is_command(action: &Action) -> bool {
    matches!(action, Action::Box(Call::Bash(_)))
}

impl Pipeline {
    /// Judges the action, and asks the user where the verdict is to ask. Sends an event for each
    /// decision.
    pub(super) async fn approve(
        &self,
        call: &ToolCall,
        name: &str,
        action: Action,
        caller: Caller,
        cancel: &CancellationToken,
    ) -> (Result<Approved<Action>, NotApproved>, bool) {
        let gate = if is_command(&action) {
            Some(self.workspace.exec_gate().await)
        } else {
            None
        };
        let decided = |decision: Decision, reason: &str| {
            let (call, name) = (call.id.clone(), name.to_owned());
            (self.sink)(
                Kind::CallDecided {
                    call,
                    name,
                    decision,
                    reason: reason.to_owned(),
                }
                .into(),
            );
        };
        if self.only_reads && caller == Caller::Model && !action.is_read_only() {
            let reason = "this agent only reads: its type allows no call that may change something";
            decided(Decision::Deny, reason);
            return (Err(NotApproved::Denied(reason.to_owned())), false);
        }
        let verdict = {
            let mut policy = self
                .policy
                .lock()
                .expect("nothing panics while it holds this lock");
            if let Some(gate) = gate {
                policy.set_exec_gate(gate);
            }
            policy.set_directory(
                &self
                    .here
                    .lock()
                    .expect("nothing panics while it holds this lock"),
            );
            match caller {
                Caller::Model => policy.judge(action),
                Caller::User => policy.judge_by_hand(action),
            }
        };
        match verdict {
            Verdict::Allow { action, reason } => {
                decided(Decision::Allow, &reason);
                (Ok(action), false)
            }
            Verdict::Deny { reason, .. } => {
                decided(Decision::Deny, &reason);
                (Err(NotApproved::Denied(reason)), false)
            }
            Verdict::Ask(question) => {
                if self.asker.can_answer()
                    && let Some(output) = self.unfit(call, question.action(), cancel).await
                {
                    return (Err(NotApproved::Unfit(Box::new(output))), false);
                }
                let (outcome, quit) = self.ask(call, name, question, cancel).await;
                match &outcome {
                    Ok(_) => decided(Decision::Allow, "the user allowed it"),
                    Err(NotApproved::Denied(reason)) => decided(Decision::Deny, reason),
                    Err(
                        NotApproved::Withdrawn | NotApproved::BoxEnded(_) | NotApproved::Unfit(_),
                    ) => {}
                }
                (outcome, quit)
            }
        }
    }

    /// Asks the user, and remembers an answer that lasts.
    pub(super) async fn ask(
        &self,
        call: &ToolCall,
        name: &str,
        question: Question,
        cancel: &CancellationToken,
    ) -> (Result<Approved<Action>, NotApproved>, bool) {
        if !self.asker.can_answer() {
            let needs: Vec<String> = question
                .capabilities
                .iter()
                .map(Capability::describe)
                .collect();
            let what = if needs.is_empty() {
                String::new()
            } else {
                format!(" to {}", needs.join(" and to "))
            };
            let by = question
                .rule()
                .map(|rule| format!(", as the rule `{rule}` says"))
                .unwrap_or_default();
            let grant = question
                .capabilities
                .iter()
                .find_map(Capability::grant)
                .map(|grant| format!("; {grant} gives it beforehand"))
                .unwrap_or_default();
            let reason =
                format!("it needs the user's permission{what}{by}, and no user can give it{grant}");
            return (Err(NotApproved::Denied(reason)), false);
        }
        let capabilities = question.capabilities.clone();
        (self.sink)(
            Kind::PermissionAsked {
                call: call.id.clone(),
                capabilities: capabilities.clone(),
            }
            .into(),
        );
        let lasting = question.lasting_scope(self.services.keeps_answers());
        // The question shows what would be executed: the model's own argument names may be aliases
        // that look like something else.
        let arguments = self
            .catalogue
            .input(&call.name, &call.arguments)
            .map_or_else(|| call.arguments.clone(), |input| input.to_string());
        let meant = ToolCall {
            id: call.id.clone(),
            name: name.to_owned(),
            arguments,
        };
        let asked = Asked {
            call: meant,
            capabilities,
            lasting,
            agent: None,
        };
        let is_in_box = matches!(question.action(), Action::Box(_));
        let next = tokio::select! {
            biased;
            () = cancel.cancelled() => Next::Cancelled,
            ended = self.workspace.ended(), if is_in_box => Next::BoxEnded(ended),
            answered = self.asker.ask(&asked) => Next::Answered(answered),
        };
        // The question is withdrawn when its call is cancelled or its sandbox ends; an answer that
        // arrives in the same moment is ignored.
        let Answered { answer, reason } = match next {
            Next::Answered(answered) if !cancel.is_cancelled() => answered,
            Next::Answered(_) | Next::Cancelled => return (Err(NotApproved::Withdrawn), false),
            Next::BoxEnded(ended) => {
                let told = self.workspace.tell_ended(ended).await;
                self.follow(&Output::Fault(Fault::BoxEnded {
                    problem: told.clone(),
                }));
                return (Err(NotApproved::BoxEnded(told)), false);
            }
        };
        let answer = self.remember(&question, &asked.lasting, answer);
        (self.sink)(
            Kind::PermissionAnswered {
                call: call.id.clone(),
                answer,
                reason: reason.clone(),
            }
            .into(),
        );
        let no = || {
            NotApproved::Denied(reason.map_or_else(
                || "the user said no".to_owned(),
                |reason| format!("the user said no: {reason}"),
            ))
        };
        (
            question.answered(answer).ok_or_else(no),
            answer == Answer::Quit,
        )
    }

    /// Stores an answer for as long as it may hold; returns the answer that takes effect.
    fn remember(&self, question: &Question, lasting: &Lasting, answer: Answer) -> Answer {
        let answer = match (answer, lasting) {
            (
                Answer::AllowSession | Answer::AllowAlways | Answer::AllowEdits,
                Lasting::Once { .. } | Lasting::InCall { .. },
            )
            | (Answer::AllowEdits, Lasting::Exactly { edits: false, .. }) => Answer::Allow,
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
                let message = format!("the answer is valid for this session only: {problem}");
                (self.sink)(Kind::Warning { message }.into());
                Answer::AllowSession
            }
        };
        self.policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .remember(question, answer);
        answer
    }

    /// Returns what a lasting answer would cover while this command waits for its first write.
    pub(super) fn lasting_scope_of(&self, action: &Action) -> Option<LastingScope> {
        self.policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .lasting_scope_of(action)
    }

    /// Returns the mode: what is allowed without asking.
    pub fn mode(&self) -> Mode {
        self.policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .mode()
    }

    /// Sets the mode, from the next call on.
    pub fn set_mode(&self, mode: Mode) {
        self.policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .set_mode(mode);
        (self.sink)(
            Kind::ModeChanged {
                mode: mode.as_str().to_owned(),
            }
            .into(),
        );
    }

    /// Returns the remembered answers, each with whether it is stored permanently for this project.
    pub fn answers(&self) -> Vec<(ExactCall, bool)> {
        let (session, always) = self
            .policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .answers();
        let only_now = session
            .into_iter()
            .filter(|exact| !always.contains(exact))
            .map(|exact| (exact, false))
            .collect::<Vec<_>>();
        let mut answers: Vec<(ExactCall, bool)> = only_now
            .into_iter()
            .chain(always.iter().map(|exact| (exact.clone(), true)))
            .collect();
        for (exact, is_for_good) in self.hosts.answers() {
            if !answers.iter().any(|(known, _)| *known == exact) {
                answers.push((exact, is_for_good));
            }
        }
        answers
    }

    /// Removes an answer, in memory and from the store; the error says why the store kept it.
    pub fn forget_answer(&self, exact: &ExactCall) -> Result<(), String> {
        if self.services.keeps_answers() {
            self.services.forget_answer(exact)?;
        }
        self.withdraw_host(exact);
        self.policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .forget(exact);
        Ok(())
    }

    /// Updates the working directory of later commands from a call's output.
    pub(super) fn follow(&self, output: &Output) {
        let here = match output {
            Output::Moved(moved) => Some(moved.path.clone()),
            Output::Command(ended) => ended.working_directory.clone(),
            // A new sandbox starts in the project's folder.
            Output::Fault(Fault::BoxEnded { .. }) => Some(".".into()),
            _ => None,
        };
        if let Some(here) = here {
            *self
                .here
                .lock()
                .expect("nothing panics while it holds this lock") = here;
        }
    }
}
