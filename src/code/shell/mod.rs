//! The literal commands of a shell script: words and quotes without any expansion, separated by
//! `;`, `&`, `&&`, `|`, `||` and line ends.
//!
//! A word with a variable or a glob in it is unknown, and so is everything from a substitution, a
//! here-document, a subshell or a function on. Nothing is guessed and nothing is interpreted. So a
//! script that is known starts exactly these commands, as far as it says, and one that is not known
//! contains them.
//!
//! This is no boundary. It finds early what a script says plainly; what runs is seen in the
//! sandbox. Start with [`read`].

mod reader;

#[cfg(test)]
mod tests;

pub use reader::read;

/// The commands that a script starts, as far as it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<Command>,
    /// The first construct that is not known; `None`: the commands are complete.
    pub unknown: Option<&'static str>,
    /// Parsing stopped before the script's end, so it may start others.
    pub is_cut: bool,
}

/// A program, or a builtin, with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Its name and arguments, without quotes; `None`: the shell expands it to any number of words.
    pub words: Vec<Option<String>>,
    /// Variables are set for it or, where there are no words, for the script.
    pub sets_variables: bool,
    /// A redirect writes into a file that is not `/dev/null`.
    pub writes: bool,
}

impl Script {
    /// Returns whether everything in it was parsed.
    pub fn is_known(&self) -> bool {
        self.unknown.is_none()
    }
}

impl Command {
    /// Returns its words up to the first that is not known.
    pub fn known(&self) -> Vec<&str> {
        self.words.iter().map_while(Option::as_deref).collect()
    }

    /// Returns all of its words, with `unknown` in the place of those that are not known.
    pub fn texts<'a>(&'a self, unknown: &'a str) -> Vec<&'a str> {
        self.words
            .iter()
            .map(|word| word.as_deref().unwrap_or(unknown))
            .collect()
    }

    /// Returns whether all of its words are known.
    pub fn is_known(&self) -> bool {
        self.words.iter().all(Option::is_some)
    }
}
