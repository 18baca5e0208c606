//! Plan mode: between reading with a plan at its end, and work on the project.
//!
//! The sandbox is what holds it: in plan mode it is one in which the project is mounted read-only.
//! Policy only keeps tools from trying what cannot work. What the model is told of it comes as
//! results and messages, so that the prompt's prefix stays as it is.

use std::sync::Mutex;

use tokio_util::sync::CancellationToken;

use super::Pipeline;
use super::render::Rendered;
use podbay_event::Kind;
use podbay_event::Plan;
use podbay_event::PlanAnswer;
use podbay_event::PlanDecision;
use podbay_policy::PlanCall;
use podbay_sandbox as sandbox;
use podbay_sandbox::Switched;

/// Most bytes of a plan.
pub(super) const LONGEST: usize = 64 << 10;

/// What the model is told when plan mode begins.
const BEGUN: &str = "Plan mode is on. The project is mounted read-only: nothing can change it, whatever is tried, and tools that change files are denied. Read, \
                     search, run commands; builds and tests work where they write below /tmp (for others: copy the project there). Find out what the task needs, \
                     then call create_plan with the whole plan in Markdown: what to change where, in which order, and how to check it. Where it is not among your tools, \
                     more_tools calls it: {\"tool\": \"create_plan\", \"arguments\": {\"plan\": \"…\"}}. If you cannot do that either, write the plan as your answer. Plan mode ends when the user approves.";

/// What the model is told when plan mode has ended.
const ENDED: &str =
    "Plan mode is over: you work in a new sandbox, in which the project can be changed again.";

/// What the model is told where nobody can approve its plan.
const FOR_LATER: &str =
    "The plan is saved for the user, who decides about it later. Plan mode stays on.";

/// The plans of a session.
#[derive(Default)]
pub(super) struct Plans {
    last: Mutex<Option<Plan>>,
}

impl Plans {
    fn last(&self) -> Option<Plan> {
        self.last
            .lock()
            .expect("nothing panics while it holds this lock")
            .clone()
    }

    fn set(&self, plan: Option<Plan>) {
        *self
            .last
            .lock()
            .expect("nothing panics while it holds this lock") = plan;
    }
}

/// What a call about a plan came to.
pub(super) struct PlanOutcome {
    pub(super) rendered: Rendered,
    /// The plan waits for a user who is not here: there is nothing left to do.
    pub(super) ends_task: bool,
}

impl PlanOutcome {
    fn said(result: Result<String, String>) -> Self {
        Self {
            rendered: Rendered::said(result),
            ends_task: false,
        }
    }
}

impl Pipeline {
    /// Returns whether plan mode is on.
    pub fn is_planning(&self) -> bool {
        self.policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .is_planning()
    }

    /// Returns the last plan of the session.
    pub fn plan(&self) -> Option<Plan> {
        self.plans.last()
    }

    /// Restores what an earlier run of the session left. The sandbox is one of that kind already.
    pub fn recall_plan(&self, is_planning: bool, plan: Option<Plan>) {
        self.plans.set(plan);
        self.set_planning(is_planning);
    }

    /// Notes that plan mode is on from the session's first sandbox on; returns the words for the
    /// model.
    pub fn begin_in_plan_mode(&self) -> &'static str {
        self.set_planning(true);
        self.tell_plan_mode(true, None);
        BEGUN
    }

    /// Notes that the session continues outside of plan mode, in a new sandbox.
    pub fn continue_without_plan_mode(&self) {
        if self.is_planning() {
            self.set_planning(false);
            self.tell_plan_mode(false, None);
        }
    }

    /// Begins or ends plan mode; returns the words for the model, `None` where that changes
    /// nothing.
    pub async fn switch_plan_mode(
        &self,
        on: bool,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, sandbox::Error> {
        if self.is_planning() == on {
            return Ok(None);
        }
        let switched = self.workspace.set_read_only(on, cancel).await?;
        self.set_planning(on);
        self.tell_plan_mode(on, switched.as_ref());
        let mut words = if on { BEGUN } else { ENDED }.to_owned();
        if let Some(switched) = &switched {
            if !switched.ended.is_empty() {
                words.push_str(&format!(
                    " These background commands ended with the sandbox before: {}.",
                    switched.ended.join(", ")
                ));
            }
            if switched.has_new_scratch {
                words.push_str(" What was in /tmp and in the home folder is gone.");
            }
        }
        Ok(Some(words))
    }

    /// Saves a plan, or another version of it; returns its number.
    pub fn save_plan(&self, text: &str, edited: bool) -> u32 {
        let version = self.plans.last().map_or(0, |plan| plan.version) + 1;
        let text = text[..text.floor_char_boundary(LONGEST)].to_owned();
        (self.sink)(
            Kind::PlanMade {
                version,
                text: text.clone(),
                edited,
            }
            .into(),
        );
        self.plans.set(Some(Plan {
            version,
            text,
            decision: None,
        }));
        version
    }

    /// Notes what a user decided about the last plan.
    pub fn decide_plan(&self, decision: PlanDecision, reason: Option<&str>) {
        let Some(plan) = self.plans.last() else {
            return;
        };
        (self.sink)(
            Kind::PlanDecided {
                version: plan.version,
                decision,
                reason: reason.map(str::to_owned),
            }
            .into(),
        );
        self.plans.set(Some(Plan {
            decision: Some(decision),
            ..plan
        }));
    }

    /// Has the user decide about the last plan, and ends plan mode where they approve it. Returns
    /// the words for the model; `None`: nobody is here to decide.
    pub async fn ask_about_plan(
        &self,
        cancel: &CancellationToken,
    ) -> Option<Result<String, String>> {
        let plan = self.plans.last()?;
        if !self.asker.can_answer() {
            return None;
        }
        let answer = tokio::select! {
            () = cancel.cancelled() => return Some(Err("cancelled before the user decided".to_owned())),
            answer = self.asker.plan(&plan.text) => answer?,
        };
        Some(match &answer {
            PlanAnswer::Approve { edited } => {
                let edited = edited.as_deref().filter(|edited| *edited != plan.text);
                if let Some(edited) = edited {
                    self.save_plan(edited, true);
                }
                self.approved(edited, cancel).await
            }
            PlanAnswer::Revise(reason) => {
                self.decide_plan(answer.decision(), reason.as_deref());
                let what = reason
                    .as_ref()
                    .map_or_else(String::new, |reason| format!(" They say: {reason}"));
                Ok(format!(
                    "The user wants another plan.{what} Revise it and call create_plan again."
                ))
            }
            PlanAnswer::Discard => {
                self.decide_plan(answer.decision(), None);
                Ok("The user discarded the plan. Do not implement it; say in a sentence that it is dropped, and wait for their next message."
                    .to_owned())
            }
        })
    }

    async fn approved(
        &self,
        edited: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        self.decide_plan(PlanDecision::Approved, None);
        let ended = self.switch_plan_mode(false, cancel).await.map_err(|error| {
            format!("the user approved the plan, but no sandbox that can write could be made, so plan mode stays on: {error}")
        })?;
        let plan = edited.map_or_else(
            || "The user approved the plan.".to_owned(),
            |edited| format!("The user changed the plan and approved it:\n\n{edited}\n\n"),
        );
        let ended = ended.map_or_else(String::new, |ended| format!(" {ended}"));
        Ok(format!("{plan}{ended} Implement it now, step by step."))
    }

    /// Serves a call of the model; `say_asked` comes before a user is asked.
    pub(super) async fn serve_plan(
        &self,
        call: PlanCall,
        say_asked: impl FnOnce() + Send,
        cancel: &CancellationToken,
    ) -> PlanOutcome {
        match call {
            // It would never end.
            PlanCall::Enter if !self.asker.can_answer() && !self.is_planning() => {
                return PlanOutcome::said(Ok(
                    "Plan mode did not begin, since no user is here to approve a plan. Plan for yourself, and continue."
                        .to_owned(),
                ));
            }
            PlanCall::Enter => {
                return PlanOutcome::said(match self.switch_plan_mode(true, cancel).await {
                    Ok(words) => Ok(words.unwrap_or_else(|| "Plan mode is on already.".to_owned())),
                    Err(error) => Err(format!("plan mode cannot begin: {error}")),
                });
            }
            PlanCall::Create { text } => {
                self.save_plan(&text, false);
            }
            PlanCall::Implement if self.plans.last().is_none() => {
                let problem = "there is no plan yet: call create_plan with it";
                return PlanOutcome::said(Err(problem.to_owned()));
            }
            PlanCall::Implement => {}
        }
        if self.asker.can_answer() {
            say_asked();
        }
        match self.ask_about_plan(cancel).await {
            Some(decided) => PlanOutcome::said(decided),
            None if self.is_planning() => PlanOutcome {
                rendered: Rendered::said(Ok(FOR_LATER.to_owned())),
                ends_task: true,
            },
            // Without plan mode nothing waits for the user.
            None => PlanOutcome::said(Ok(
                "The plan is saved. No user is here to decide about it: implement it.".to_owned(),
            )),
        }
    }

    fn set_planning(&self, on: bool) {
        self.policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .set_planning(on);
    }

    fn tell_plan_mode(&self, on: bool, switched: Option<&Switched>) {
        let (ended, duration_ms) = switched.map_or_else(Default::default, |switched| {
            let ms = u64::try_from(switched.duration.as_millis()).unwrap_or(u64::MAX);
            (switched.ended.clone(), ms)
        });
        (self.sink)(
            Kind::PlanModeChanged {
                on,
                ended,
                duration_ms,
            }
            .into(),
        );
    }
}
