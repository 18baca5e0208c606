//! What may be done: the action itself, what it needs, and the verdict. Pure: no I/O, no clock, no
//! waiting.
//!
//! Policy judges the very value that is carried out later, so that nothing can change between the
//! two; [`Approved`] is the proof, and only this room can make one. Asking a person is the
//! pipeline's job. Start with [`Action`], then [`Policy::judge`].

mod action;
#[cfg(test)]
mod answers;
mod approved;
mod autonomy;
mod command_pattern;
#[cfg(test)]
mod corpus;
mod exact;
mod exec_rules;
mod glob;
#[cfg(test)]
mod hidden;
mod host_call;
mod judge;
#[cfg(test)]
mod looking;
mod narrower;
mod options;
mod paths;
mod pattern;
mod programs;
mod question;
mod reading;
mod rule;
#[cfg(test)]
mod rule_cases;
mod tool;
#[cfg(test)]
mod tried;
#[cfg(test)]
mod verdicts;
mod version;

pub use action::Action;
pub use action::capabilities;
pub use approved::Approved;
pub use autonomy::Autonomy;
pub use exact::Exact;
pub use host_call::FindTools;
pub use host_call::HostCall;
pub use host_call::Task;
pub use host_call::TaskChange;
pub use host_call::TaskStatus;
pub use judge::Mode;
pub use judge::Policy;
pub use judge::Verdict;
pub use options::Example;
pub use options::Options;
pub use options::RuleDecision;
pub use options::RuleScope;
pub use question::Question;
pub use rule::Rule;
pub use rule::RuleError;
pub use tool::BACKGROUND;
pub use tool::HOOK;
