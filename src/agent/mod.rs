//! The agent loop: request an answer from the model, execute its calls, return the results, until
//! it answers without a call or a limit is reached.
//! This module decides when to continue and when to end. How a model is requested is the business
//! of `llm`, what a call may do that of `tools` and `policy`. Start with [`Agent::run`].

mod adapt;
mod answer_pieces;
mod answer_text;
mod budget;
mod calls;
mod compaction;
mod context_window;
mod conversation;
mod denials;
mod early_calls;
mod final_answer;
mod folder_instructions;
mod instruction_file;
mod instruction_imports;
mod instructions;
mod interrupt;
mod invisible_characters;
mod key_files;
mod learning;
mod ledger;
mod loop_detector;
mod memories;
mod model_request;
mod named_images;
mod nudge;
mod options;
mod outcome;
mod profile;
mod project_commands;
mod prompt;
mod request_limit;
mod run;
mod settings_hooks;
mod sub_agent;
mod summary;
mod task;
mod unfollowed_instructions;
mod unread_results;
mod user_command;
mod window_gauge;

pub use conversation::Conversation;
pub use interrupt::Interrupt;
pub use invisible_characters::VisibleText;
pub use ledger::Ledger;
pub use nudge::nudge;
pub use options::Options;
pub use outcome::Failure;
pub use outcome::Outcome;
pub use profile::Profile;
pub use prompt::ProjectContext;
pub use prompt::gather_context;
pub use prompt::system_prompt;
pub use run::Agent;
pub use sub_agent::sub_agent_prompt;
pub use user_command::UserCommand;
