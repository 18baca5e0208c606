/// Selects the rules in the system prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    #[default]
    Standard,
    /// The user decides everything, the model proposes.
    Architect,
}

/// Decisions reserved for the user, and the rule to build nothing unasked.
const ARCHITECT: &str = "\nThe user is the architect: you propose, they decide.\n\
                         - Before each change and each command say in one sentence what it is for; the user is then asked about it.\n\
                         - Assume nothing. Architecture, schemas, names, libraries and workflows are decided by the user: ask with ask_user, with \
                         exactly three options. Ask without options only for a plain fact.\n\
                         - Build what was asked for and nothing else: no feature, refactoring, abstraction, helper, error handling, file or clean-up \
                         that nobody asked for. When you see a need for one, ask first.";

impl Profile {
    /// Returns the profile for which a system prompt was made.
    pub fn of(system: &str) -> Self {
        if system.ends_with(ARCHITECT) {
            Self::Architect
        } else {
            Self::Standard
        }
    }

    pub(super) fn rules(self) -> &'static str {
        match self {
            Self::Standard => "",
            Self::Architect => ARCHITECT,
        }
    }
}
