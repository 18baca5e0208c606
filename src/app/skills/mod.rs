//! Skills: folders with a file `SKILL.md`, which says what the skill is for and what its steps
//! are, and with the files that these need.
//!
//! A model is offered them by name and description, and reads one when it chooses it. Those of a
//! project are text of the project: bounded, cleaned, and marked as what they are. Start with
//! [`Skills`].

mod chosen;
mod definition;
mod list;

pub(super) use chosen::Skills;
pub use definition::SkillSource;
pub use list::SkillLine;
pub use list::SkillList;
pub use list::skills;
