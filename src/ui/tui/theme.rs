use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::text;

/// The styles of the full-screen chat.
///
/// Colours are the sixteen of the terminal, which its user has chosen for a light or a dark ground;
/// without colour, bold, dim and reversed have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    is_coloured: bool,
}

/// What a piece of source code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Plain,
    Keyword,
    Text,
    Number,
    Comment,
}

#[expect(clippy::unused_self, reason = "every style is asked of the theme")]
impl Theme {
    pub fn new(is_coloured: bool) -> Self {
        Self { is_coloured }
    }

    fn coloured(self, color: Color) -> Style {
        if self.is_coloured {
            Style::new().fg(color)
        } else {
            Style::new()
        }
    }

    pub(super) fn plain(self) -> Style {
        Style::new()
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn accent(self) -> Style {
        self.coloured(Color::Cyan)
    }

    pub(super) fn user(self) -> Style {
        self.coloured(Color::Blue).add_modifier(Modifier::BOLD)
    }

    pub(super) fn good(self) -> Style {
        self.coloured(Color::Green)
    }

    pub(super) fn bad(self) -> Style {
        self.coloured(Color::Red)
    }

    pub(super) fn warn(self) -> Style {
        self.coloured(Color::Yellow)
    }

    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn inline_code(self) -> Style {
        self.coloured(Color::Cyan)
    }

    pub(super) fn token(self, token: Token) -> Style {
        match token {
            Token::Plain => Style::new(),
            Token::Keyword => self.coloured(Color::Magenta),
            Token::Text => self.coloured(Color::Green),
            Token::Number => self.coloured(Color::Yellow),
            Token::Comment => self.dim(),
        }
    }
}

/// Makes a piece of a line; what a terminal would obey, or what cannot be seen, is shown by its
/// number, and a tab is four blanks.
pub(super) fn span(words: &str, style: Style) -> Span<'static> {
    let words = if words.contains(['\t', '\n', '\r']) {
        words.replace('\t', "    ").replace(['\n', '\r'], " ")
    } else {
        words.to_owned()
    };
    Span::styled(safe(words), style)
}

/// Returns text in which nothing is left that a terminal would obey.
fn safe(words: String) -> String {
    // Joiners of emoji and of some scripts were let through by the cleaner, in their places.
    let is_fine = |c: char| !podbay_event::is_hidden(c) || matches!(c, '\u{200c}' | '\u{200d}');
    if words.chars().all(is_fine) {
        words
    } else {
        text::escape(&words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_of_a_line_holds_what_a_terminal_obeys() {
        let made = span("a\tb\x1b[2J\u{202e}\u{9b}", Style::new());
        assert_eq!(made.content, "a    b\\x1b[2J\\u{202e}\\x9b");
    }
}
