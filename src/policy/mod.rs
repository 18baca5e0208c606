//! Decides what may be done: actions, the capabilities they need, and verdicts. Pure: no I/O, no
//! clock, no waiting.
//! Policy judges the very value that is executed later, so that nothing can change between the two;
//! [`Approved`] is the proof, and only this module can create one. Asking the user is the
//! pipeline's job. Start with [`Action`], then [`Policy::judge`].

mod action;
mod approved;
mod autonomy;
mod command_pattern;
#[cfg(test)]
mod command_tables;
#[cfg(test)]
mod disguised_commands;
#[cfg(test)]
mod dry_runs;
mod edit_check;
mod exact_call;
mod exec_rules;
mod glob;
mod host_call;
mod judge;
#[cfg(test)]
mod lasting_answers;
#[cfg(test)]
mod lasting_scopes;
mod narrower_search;
mod options;
mod parsed_command;
mod path_pattern;
mod paths;
mod program_table;
mod program_version;
mod question;
mod remembered;
mod rule;
#[cfg(test)]
mod rule_cases;
#[cfg(test)]
mod search_and_git_rules;
mod tool;
#[cfg(test)]
mod verdicts;

pub use action::Action;
pub use action::capabilities;
pub use approved::Approved;
pub use autonomy::Autonomy;
pub use exact_call::ExactCall;
pub use glob::matches as matches_pattern;
pub use host_call::DocumentSection;
pub use host_call::FOREIGN;
pub use host_call::FindTools;
pub use host_call::ForeignCall;
pub use host_call::HOST_TOOLS;
pub use host_call::HostCall;
pub use host_call::InstallCall;
pub use host_call::PlanCall;
pub use host_call::SandboxRun;
pub use host_call::SkillCall;
pub use host_call::SpawnCall;
pub use host_call::Task;
pub use host_call::TaskChange;
pub use host_call::TaskStatus;
pub use host_call::WebSearch;
pub use judge::Mode;
pub use judge::Policy;
pub use judge::Verdict;
pub use options::Options;
pub use options::RuleDecision;
pub use options::RuleEntry;
pub use options::RuleScope;
pub use question::Question;
pub use remembered::LastingScope;
pub use rule::Rule;
pub use rule::RuleError;
pub use tool::BACKGROUND;
pub use tool::HOOK;
