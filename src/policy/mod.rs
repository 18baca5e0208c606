//! The policy room.
