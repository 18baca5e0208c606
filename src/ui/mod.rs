//! What a user sees and types: events as text or JSON, progress, questions, lines of input.
//!
//! Nothing here decides or remembers anything about the work; it shows [`podbay_event::Event`]s and
//! returns what was typed. It writes only to the writers it is given. Whatever comes from a model,
//! a tool, a file name or an error goes through [`text`] before a terminal may see it: that is the
//! one place where escapes are dealt with.
//!
//! Start with [`Plain`], then [`text`].

mod agent_lines;
mod answer;
mod arguments;
mod ask;
mod call;
mod confirm;
mod execution_report;
mod external_editor;
mod fuzzy;
mod html;
pub mod json;
mod keyboard;
mod line;
mod line_editor;
mod line_paste;
mod look_alike;
mod note;
mod options;
mod output;
mod padding;
mod paint;
mod plain;
mod progress;
mod question;
mod run_summary;
pub mod slash;
pub mod text;
pub mod tui;
mod turn_summary;

pub use ask::Question;
pub use ask::ask;
pub use call::duration;
pub use confirm::confirm;
pub use execution_report::report_markdown;
pub use execution_report::report_text;
pub use external_editor::edit_text;
pub use html::html_page;
pub use keyboard::Keyboard;
pub use keyboard::Typed;
pub use line::read_message;
pub use line_editor::LineEditor;
pub use look_alike::revealed;
pub use options::Color;
pub use options::Keys;
pub use options::Options;
pub use padding::counted;
pub use padding::is_padded;
pub use paint::Paint;
pub use plain::Look;
pub use plain::Plain;
pub use progress::Progress;
pub use question::may_continue;
pub use question::question;
