//! Use cases: what each command does, from opening the project to the report, without a word on how
//! it is asked for or shown.
//!
//! This room composes all the others but `ui`. Events leave it by the sink it is given, a user is
//! asked through the asker it is given, so every front end shares it. Start with [`run`], then
//! [`Bench`], which holds what a session needs.

mod agents;
mod attach;
mod bench;
pub mod bundle;
mod cache;
mod call;
mod came;
mod chat;
mod compose_folder;
mod demo;
mod denials;
pub mod doctor;
mod dotenv;
mod environment;
mod error;
mod first_start;
mod gc;
mod held_folder;
mod holes;
mod host_hook;
mod host_process;
mod images;
mod init;
mod install;
mod install_record;
mod job;
mod learning;
mod mcp;
mod memory;
mod model;
mod models;
mod network;
mod other_model;
mod own_server;
mod parse;
mod project_changes;
mod quickstart;
mod record;
mod report;
mod resume;
mod review;
mod rules;
mod run;
mod seat;
mod serve_model;
mod services;
mod session_install;
mod sessions;
mod settings;
mod shell;
mod sitting;
mod skills;
mod throwaway;
mod tried_hosts;
mod undo;
mod veil;

pub use agents::AgentLine;
pub use agents::AgentList;
pub use agents::AgentReport;
pub use agents::AgentSource;
pub use agents::agents;
pub use cache::CacheChoice;
pub use cache::CacheLine;
pub use cache::RemovedCaches;
pub use cache::list_caches;
pub use cache::remove_caches;
pub use call::Called;
pub use call::call;
pub use came::Came;
pub use chat::Chat;
pub use chat::ChatEnded;
pub use chat::Decide;
pub use chat::Fate;
pub use chat::Said;
pub use chat::Verdict;
pub use demo::demo;
pub use environment::Status;
pub use environment::down;
pub use environment::logs;
pub use environment::status;
pub use environment::up;
pub use error::Error;
pub use error::ErrorReport;
pub use error::exit_code;
pub use first_start::FREEDOMS;
pub use first_start::FreedomOffer;
pub use first_start::LOCAL_SERVERS;
pub use first_start::ModelOffer;
pub use first_start::model_offers;
pub use first_start::servers_at;
pub use gc::Also;
pub use gc::Collected;
pub use gc::gc;
pub use gc::prune_sessions;
pub use images::ImageLine;
pub use images::build_images;
pub use images::list_images;
pub use init::Initialised;
pub use init::init;
pub use install::InstallReport;
pub use install::InstallWish;
pub use install::InstalledStep;
pub use install::StepOutcome;
pub use install::install;
pub use job::begin_job;
pub use job::hold_job;
pub use job::job;
pub use job::job_output;
pub use job::list_jobs;
pub use job::started_job;
pub use job::stop_job;
pub use mcp::McpServer;
pub use mcp::McpServerChanges;
pub use mcp::McpServerState;
pub use mcp::ProjectMcp;
pub use mcp::accept_tools;
pub use mcp::changed_tools;
pub use mcp::mcp_servers;
pub use mcp::project_mcp;
pub use mcp::revoke_project_mcp;
pub use mcp::trust_project_mcp;
pub use memory::MemoryLine;
pub use memory::MemoryLines;
pub use memory::list_memories;
pub use memory::memories;
pub use models::ModelFile;
pub use models::ModelLine;
pub use models::Models;
pub use models::list_models;
pub use models::model_info;
pub use models::model_mistakes;
pub use models::model_to_pull;
pub use models::pull_model;
pub use models::remove_model;
pub use other_model::check_model;
pub use other_model::other_models;
pub use other_model::set_model;
pub use parse::ParsedText;
pub use parse::parse_text;
pub use quickstart::Quickstart;
pub use quickstart::quickstart;
pub use report::GitBranch;
pub use report::GitReport;
pub use report::PlanReport;
pub use report::Report;
pub use report::UNDO_DIFF;
pub use report::may_run_words;
pub use resume::Resume;
pub use resume::check_project;
pub use resume::past_events;
pub use review::Commits;
pub use review::ReviewWish;
pub use review::Reviewed;
pub use review::accept;
pub use review::chosen_review;
pub use review::how_auto_run_comes;
pub use review::is_whole;
pub use review::review;
pub use review::review_names;
pub use review::runs_by_itself;
pub use review::waits_to_be_run;
pub use rules::rule_problems;
pub use run::Front;
pub use run::Place;
pub use run::PlanStart;
pub use run::run;
pub use run::run_with;
pub use serve_model::model_server;
pub use sessions::execution_report;
pub use sessions::export_json;
pub use sessions::export_markdown;
pub use sessions::fork_session;
pub use sessions::list_sessions;
pub use sessions::local_time;
pub use sessions::not_listed;
pub use sessions::other_sessions;
pub use sessions::raw_session;
pub use sessions::remove_sessions;
pub use sessions::rename_session;
pub use sessions::rewind_session;
pub use sessions::session_ids;
pub use sessions::session_line;
pub use sessions::session_plan;
pub use sessions::session_project;
pub use sessions::session_stats;
pub use sessions::show_session;
pub use sessions::stats;
pub use settings::ProjectSettings;
pub use settings::Settings;
pub use settings::check_folder;
pub use settings::distrust_settings;
pub use settings::end_trust_without_file;
pub use settings::forget_answers;
pub use settings::lasting_answers;
pub use settings::project_settings;
pub use settings::revoke_settings;
pub use settings::settings;
pub use settings::trust_settings;
pub use settings::trusted_settings;
pub use shell::Shell;
pub use shell::ShellCommand;
pub use shell::ShellInput;
pub use shell::ShellUpdate;
pub use shell::shell;

pub use undo::undo;

pub use podbay_guest::not_watched;
pub use podbay_sandbox::NetworkMode;
pub use podbay_sandbox::git::Ended as GitEnded;
pub use podbay_wire::keep::ApplyOutcome;
pub use podbay_wire::keep::ChangeKind;
pub use podbay_wire::keep::CountedPath;
pub use podbay_wire::keep::EntryType;
pub use podbay_wire::keep::MayRun;
pub use podbay_wire::keep::NamedList;
pub use podbay_wire::keep::PendingChanges;
pub use podbay_wire::keep::PendingGit;
pub use podbay_wire::keep::PendingReview;
pub use podbay_wire::keep::ReviewAnswer;
pub use podbay_wire::keep::ReviewApplied;
pub use podbay_wire::keep::ReviewDifference;
pub use podbay_wire::keep::ReviewedTurn;
pub use podbay_wire::keep::RunTrigger;
pub use podbay_wire::keep::TakenHunks;
pub use podbay_wire::keep::TurnDifference;
pub use podbay_wire::keep::TurnList;
pub use podbay_wire::keep::TurnState;
pub use podbay_wire::keep::TurnSummary;
pub use podbay_wire::keep::UndoAnswer;
pub use podbay_wire::keep::UndoOrder as Undo;

use std::ffi::OsString;
use std::path::PathBuf;

use podbay_event::Event;
use podbay_event::Kind;

/// Makes a warning that a front end wants shown like any other.
pub fn warning(message: impl Into<String>) -> Event {
    Kind::Warning {
        message: message.into(),
    }
    .into()
}

/// Returns where the state folder is, or will be; makes nothing.
pub fn find_state(var: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Error> {
    State::find(var).map_err(Error::Session)
}

/// Returns whether the settings name a sandbox that Podbay did not start.
pub fn is_attached(config: &podbay_config::Config) -> bool {
    config.sandbox.backend == podbay_sandbox::Backend::Attach
}

pub use denials::Denial;
pub use denials::Layer;
pub use denials::denials;
pub use denials::network_log;
pub use network::NetworkProposal;
pub use network::check_network_rule;
pub use network::propose_network_rules;
pub use podbay_agent::Interrupt;
pub use podbay_llm::http::install_crypto;
pub use podbay_mcp::Change as McpToolChange;
pub use podbay_mcp::PromptDefinition as McpPrompt;
pub use podbay_mcp::ServerPlace as McpPlace;
pub use podbay_mcp::ServerState as McpState;
pub use podbay_mcp::ServerStatus as McpStatus;
pub use podbay_mcp::Source as McpSource;
pub use podbay_policy::Autonomy;
pub use podbay_policy::Mode;
pub use podbay_sandbox::Changes;
pub use podbay_sandbox::TurnSelection;
pub use podbay_sandbox::is_image_name;
pub use podbay_session::Error as MemoryError;
pub use podbay_session::JobRecord;
pub use podbay_session::Memories;
pub use podbay_session::State;
pub use podbay_session::Stats;
pub use podbay_tools::Asker;
pub use podbay_tools::Later;
pub use podbay_wire::BytesPath;
pub use skills::SkillLine;
pub use skills::SkillList;
pub use skills::SkillSource;
pub use skills::skills;
pub use tried_hosts::TriedHosts;
