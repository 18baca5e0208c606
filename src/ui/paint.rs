use std::ffi::OsString;

use owo_colors::OwoColorize;

use super::Color;

/// Colours text, or leaves it as it is.
///
/// Only text that is already clean may be painted: the colours are escapes themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    pub const NONE: Self = Self { on: false };

    /// Decides for one stream: by the setting, else by whether it is a terminal that wants colours.
    pub fn new(color: Color, is_terminal: bool, var: impl Fn(&str) -> Option<OsString>) -> Self {
        let on = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let refused = var("NO_COLOR").is_some_and(|value| !value.is_empty())
                    || var("TERM").is_some_and(|value| value == "dumb");
                is_terminal && !refused
            }
        };
        Self { on }
    }

    pub fn dim(self, text: &str) -> String {
        if self.on {
            text.dimmed().to_string()
        } else {
            text.to_owned()
        }
    }

    pub fn bold(self, text: &str) -> String {
        if self.on {
            text.bold().to_string()
        } else {
            text.to_owned()
        }
    }

    pub fn good(self, text: &str) -> String {
        if self.on {
            text.green().to_string()
        } else {
            text.to_owned()
        }
    }

    pub fn bad(self, text: &str) -> String {
        if self.on {
            text.red().to_string()
        } else {
            text.to_owned()
        }
    }

    pub fn path(self, text: &str) -> String {
        if self.on {
            text.cyan().to_string()
        } else {
            text.to_owned()
        }
    }

    pub fn delimiter(self, text: &str) -> String {
        if self.on {
            text.green().bold().to_string()
        } else {
            text.to_owned()
        }
    }

    pub fn heading(self, text: &str) -> String {
        if self.on {
            text.dimmed().bold().to_string()
        } else {
            text.to_owned()
        }
    }

    pub fn warn(self, text: &str) -> String {
        if self.on {
            text.yellow().to_string()
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(color: Color, is_terminal: bool, vars: &[(&str, &str)], on: bool) {
        let paint = Paint::new(color, is_terminal, |name| {
            vars.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).into())
        });
        assert_eq!(paint.on, on);
    }

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        check(Color::Auto, true, &[], true);
        check(Color::Auto, false, &[], false);
        check(Color::Auto, true, &[("NO_COLOR", "1")], false);
        check(Color::Auto, true, &[("NO_COLOR", "")], true);
        check(Color::Auto, true, &[("TERM", "dumb")], false);
        check(Color::Always, false, &[("NO_COLOR", "1")], true);
        check(Color::Never, true, &[], false);
        assert_eq!(Paint::NONE.bad("x"), "x");
        let paint = Paint { on: true };
        assert_eq!(paint.bad("x"), "\x1b[31mx\x1b[39m");
        assert_eq!(paint.delimiter("x"), "\x1b[1m\x1b[32mx\x1b[39m\x1b[0m");
    }
}
