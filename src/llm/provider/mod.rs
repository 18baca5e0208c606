//! How one kind of server is spoken to, one file per kind; what several share stands beside them.

pub(super) mod assemble;
pub(super) mod calls;
pub(super) mod failure;
pub(super) mod half;
pub(super) mod instead;
mod object;
pub(super) mod openai;
pub(super) mod think;
