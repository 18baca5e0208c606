//! The loop: ask the model, carry out what it calls, tell it what came of that, until it answers or
//! a limit is reached.
//!
//! This room decides when to go on and when to end. How a model is asked is `llm`'s business, what
//! a call may do `tools`' and `policy`'s. Start with [`Agent::run`].

mod adapt;
mod answered;
mod ask;
mod budget;
mod by_hand;
mod calls;
mod conversation;
mod denials;
mod early;
mod gauge;
mod instructions;
mod interrupt;
mod last_words;
mod moments;
mod nudge;
mod options;
mod outcome;
mod picture;
mod pieces;
mod profile;
mod prompt;
mod room;
mod run;
mod shrink;
mod stuck;
mod summary;
mod task;
mod unfollowed;
mod unread;
mod unseen;

pub use by_hand::ByHand;
pub use conversation::Conversation;
pub use interrupt::Interrupt;
pub use nudge::nudge;
pub use options::Options;
pub use outcome::Failure;
pub use outcome::Outcome;
pub use profile::Profile;
pub use prompt::Context;
pub use prompt::gather_context;
pub use prompt::system_prompt;
pub use run::Agent;
