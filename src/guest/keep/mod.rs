//! The keeper: our program in a box in which no model's command ever runs, beside that of the session.
//!
//! It reads the project, which is hostile: a command of the session changes it meanwhile. So every path is resolved beneath an open
//! folder and through no link, only regular files are read, and never for longer than they were asked for. Start with [`serve`], which
//! hands each order to the file of its name.

mod find;
mod serve;

pub(super) use serve::Places;
pub(super) use serve::run;
