//! What a session has before its sandbox and its model: the project with its locks, the rules, and
//! the log.

use super::begin;
use crate::Error;
use crate::Front;
use crate::Place;
use crate::PlanStart;
use crate::bench::Ground;
use crate::is_attached;
use crate::model;
use crate::record::Recorder;
use crate::resume;
use crate::resume::Aim;
use crate::rules;
use podbay_agent::Profile;
use podbay_config::Answers;
use podbay_config::Config;
use podbay_event::Kind;
use podbay_llm::TaskKind;
use podbay_policy::Policy;
use podbay_sandbox::Changes;
use podbay_sandbox::Lock;
use podbay_session::Memories;
use podbay_session::ResumeState;
use podbay_session::State;

/// When the changes of a session come into the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    AtOnce,
    /// At the end of each turn.
    ByTurn,
    /// When the user applies the review.
    AfterReview,
}

pub(super) struct OpenedSession {
    /// With the model's settings for this kind of task.
    pub(super) config: Config,
    pub(super) applied: Applied,
    pub(super) ground: Ground,
    pub(super) policy: Policy,
    pub(super) answers: Option<Answers>,
    pub(super) memories: Option<Memories>,
    pub(super) locks: Vec<Lock>,
    pub(super) recorder: Recorder,
    /// What an earlier run of the session left.
    pub(super) past: ResumeState,
    pub(super) is_planning: bool,
}

impl Applied {
    fn of(config: &Config, kind: TaskKind) -> Self {
        if config.sandbox.changes == Changes::Live || is_attached(config) {
            return Self::AtOnce;
        }
        match kind {
            TaskKind::Chat => Self::ByTurn,
            TaskKind::Edit => Self::AfterReview,
        }
    }
}

impl OpenedSession {
    pub(super) fn open(place: &Place, aim: Aim<'_>, front: &Front) -> Result<Self, Error> {
        let kind = match aim {
            Aim::Chat => TaskKind::Chat,
            Aim::Task(_) | Aim::Open => TaskKind::Edit,
        };
        let config = Config {
            llm: place.config.llm.for_task(kind),
            ..place.config.clone()
        };
        if place.plan == PlanStart::On && is_attached(&config) {
            return Err(Error::not_attached("plan mode (--plan)"));
        }
        let applied = Applied::of(&config, kind);
        let warn = |message| (front.sink)(Kind::Warning { message }.into());
        let mut policy = rules::policy(place.mode, &config.policy, warn)?;
        model::check_endpoint(&config, place.api_key.as_ref())?;
        let ground = Ground::open(place)?;
        let answers = ground.answers(&place.state);
        let memories = config.memory.enabled.then(|| ground.memories(&place.state));
        rules::recall(&mut policy, answers.as_ref(), warn);
        // A pending review is in no other session's way.
        let locks = if applied == Applied::AfterReview {
            Vec::new()
        } else {
            vec![ground.lock(&place.state)?]
        };
        let (recorder, past) = open_log(place, &ground, aim, front)?;
        let is_planning = match place.plan {
            PlanStart::On => true,
            PlanStart::AsLeft => past.planning,
            PlanStart::Implement => false,
        };
        Ok(Self {
            config,
            applied,
            ground,
            policy,
            answers,
            memories,
            locks,
            recorder,
            past,
            is_planning,
        })
    }

    /// Takes the lock of the review that the session's changes are in.
    pub(super) fn lock_review(&mut self, state: &State) -> Result<(), Error> {
        if self.applied != Applied::AtOnce {
            let name = self.recorder.session().as_str();
            let lock = Lock::take_review(&state.locks(), name).map_err(Error::Sandbox)?;
            self.locks.push(lock);
        }
        Ok(())
    }

    pub(super) fn profile(&self) -> Profile {
        if self.policy.is_architect() {
            Profile::Architect
        } else {
            Profile::Standard
        }
    }
}

/// Begins the session's log, or continues that of an earlier run.
fn open_log(
    place: &Place,
    ground: &Ground,
    aim: Aim<'_>,
    front: &Front,
) -> Result<(Recorder, ResumeState), Error> {
    let Some(wanted) = &place.resume else {
        // Looked for before this session's own log is there.
        let interrupted = resume::broken_off(&place.state, &ground.text());
        let recorder = begin(place, ground.text(), aim, &front.sink)?;
        if let Some(id) = interrupted {
            recorder.warn(format!(
                "the last session here, {id}, was interrupted; `--resume {id}` resumes it"
            ));
        }
        return Ok((recorder, ResumeState::default()));
    };
    resume::open(place, &ground.text(), wanted, aim, &front.sink)
}
