use serde::Deserialize;
use serde::Serialize;

/// What the model's next answer is read with: what it was asked about once in this task, or the
/// pieces that the next one continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenAnswer {
    /// What it had answered when it was asked whether it meant to act, once in a task; without a
    /// word where it did act then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// What the last answers said that were cut by the most tokens that one may have, in their
    /// order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<String>,
    /// They stand in an object that has no end yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_object: bool,
    /// The last call that was cut, with what was said before it and what continued it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<HalfCall>,
}

/// A call that has no end, as the answer had reached its most tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HalfCall {
    /// What was said before it.
    pub before: String,
    /// What there is of it, as the model wrote it; of one that the server reports, the arguments
    /// alone.
    pub begun: String,
    /// It does not stand in the text: the server reports it, or it is an object of ours.
    #[serde(
        default,
        rename = "reported",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_reported: bool,
}

impl OpenAnswer {
    /// Returns whether nothing is open.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Notes that the model acted: what it said before is no part of its answer, and it meant to.
    pub fn acted(&mut self) {
        let answer = self.answer.take().map(|_| String::new());
        *self = Self {
            answer,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_acted_has_no_question_open_and_is_not_asked_whether_to_act_again() {
        let answer = Some("I would.".to_owned());
        let half = Some(HalfCall::default());
        let mut open = OpenAnswer {
            answer,
            pieces: vec!["a".into()],
            in_object: true,
            half,
        };
        open.acted();
        assert_eq!(
            open,
            OpenAnswer {
                answer: Some(String::new()),
                ..OpenAnswer::default()
            }
        );
        open.answer = None;
        open.acted();
        assert!(open.is_none());
    }
}
