//! The full-screen chat.
//!
//! [`Screen`] is the state: events and keys go in, [`Screen::draw`] makes a frame of it, and it
//! does nothing by itself. `run` is the loop around it, with the terminal and the threads.
//! [`Tui`] is what the driver holds. Start with `screen`.

mod draw;
mod editor;
mod handle;
mod highlight;
mod inbox;
mod keys;
mod markdown;
mod modal;
mod notify;
mod page;
mod panel;
mod popup;
mod prose;
mod review;
mod review_frame;
mod run;
mod screen;
mod search;
mod start;
mod status;
mod terminal;
mod theme;
mod transcript;
mod vi;
mod wrap;

#[cfg(test)]
mod faces;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod page_frames;

pub(crate) use editor::is_long_paste;
pub(crate) use editor::paste_label;
pub use handle::OnCommand;
pub use handle::Tui;
pub use keys::next_mode;
pub use modal::CANCELLED;
pub(crate) use popup::completions;
pub use review::ReviewChoice;
pub use review::ReviewFile;
pub use review::ReviewView;
pub use screen::Screen;
pub use start::StartChoice;
pub use start::StartOption;
pub use start::StartView;
pub use status::Facts;
pub use terminal::restore;
pub use theme::Theme;
pub(crate) use transcript::tokens;
