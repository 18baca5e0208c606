//! Which programs a piece of shell may start, with which words.
//!
//! The grammar (tree-sitter's for bash) says how a text hangs together; it is generous, and where it and bash differ a command could hide.
//! So nothing it says is believed that is not checked: each word is read again letter by letter (`word`), and between the tokens there may be
//! nothing but blanks (`gap`). Whatever is left over, cannot be parsed, or is only known when it runs is a [`Doubt`], and a script with a
//! doubt may do more than its commands say.
//!
//! This is no boundary. A shell can be made to do anything in ways that nobody foresees; the sandbox holds, the reading asks less often.
//!
//! Start with [`read`]; then `walk` (the tree), `word` (one word), `unwrap` (programs that start programs).

mod changed;
mod command;
mod continued;
mod expansion;
mod files;
mod gap;
mod held;
mod heredoc;
mod line_program;
mod linked;
mod mentioned;
mod numbers;
mod parse;
mod parted;
mod pattern;
mod pieces;
mod plain;
mod read;
mod runs;
mod said;
mod sed_script;
mod texts;
mod unwrap;
mod values;
mod walk;
mod word;
mod written;

#[cfg(test)]
mod tests;

pub use changed::named_by_awk;
pub use changed::patched;
pub use command::Assignment;
pub use command::Command;
pub use command::Doubt;
pub use command::Function;
pub use command::Guard;
pub use command::Redirection;
pub use command::Script;
pub use command::Value;
pub use command::Word;
pub use command::WordKind;
pub use command::WrittenText;
pub use expansion::expansion_end;
pub use expansion::with_value;
pub use line_program::LineProgram;
pub use pattern::fits;
pub use plain::built_into_bash;
pub use plain::only_in_bash;
pub use read::LENGTH_MAX;
pub use read::read;
pub use read::read_with_marks;
pub use runs::RUNNING;
pub use runs::is_language;
pub use sed_script::SedScripts;
pub use sed_script::files_of_sed;
pub use sed_script::given as given_to_sed;
pub use values::ABOVE;
pub use values::GIT_FOLDER;
pub use values::HERE;
pub use values::LINES_MAX;
pub use values::TOP;
pub use values::is_folder;
