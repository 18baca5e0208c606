use serde::Deserialize;
use serde::Serialize;

use super::ToolCall;

/// What the model's next answer is read with: a question about calls in its last one, or the pieces that the next one goes on with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenAnswer {
    /// The calls that it is asked about, because of the words around them: made again right away they are meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<ToolCall>,
    /// It was told to write a call in its text: there one counts that no mark tells from other JSON, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_text: bool,
    /// How often it was asked so since it last did something.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_asked: u32,
    /// What it had answered when it was asked whether it meant to act, once in a task; without a word where it did act then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// What the last answers said that were cut by the most tokens that one may have, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<String>,
    /// They stand in an object that has no end yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_object: bool,
    /// Calls in those pieces of which nobody knows whether they were meant: asked about once the answer has its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubted: Vec<ToolCall>,
    /// The last call that was cut, with what was said before it and what went on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<HalfCall>,
}

/// A call that has no end, as the answer had reached its most tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HalfCall {
    /// What was said before it.
    pub before: String,
    /// What there is of it, as the model wrote it; of one that the server reports, the arguments alone.
    pub begun: String,
    /// It does not stand in the text: the server reports it, or it is an object of ours.
    #[serde(default, rename = "reported", skip_serializing_if = "std::ops::Not::not")]
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
        *self = Self { answer, ..Self::default() };
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_acted_has_no_question_open_and_is_not_asked_whether_to_act_again() {
        let call = ToolCall { id: "c1".into(), name: "bash".into(), arguments: "{}".into() };
        let answer = Some("I would.".to_owned());
        let half = Some(HalfCall::default());
        let mut open = OpenAnswer {
            asked: vec![call.clone()],
            by_text: true,
            n_asked: 2,
            answer,
            pieces: vec!["a".into()],
            in_object: true,
            doubted: vec![call],
            half,
        };
        open.acted();
        assert_eq!(open, OpenAnswer { answer: Some(String::new()), ..OpenAnswer::default() });
        open.answer = None;
        open.acted();
        assert!(open.is_none());
    }
}
