//! How a conversation is written for the server, one file per way of offering tools.
//! [`native`] uses the server's own tool calls. [`constrained`] describes the tools in the system
//! prompt and has the server constrain the answer to a JSON schema. [`prompted`] only describes
//! them, for servers without schema support; [`text`] parses the result, and also the calls that
//! models write as text although the tools were offered natively.

pub mod call_tail;
pub(super) mod constrained;
pub(super) mod fences;
pub(super) mod json_answer;
pub(super) mod native;
pub(super) mod prompted;
pub(super) mod schema;
pub mod text;
pub(super) mod unknown_tool;
