//! The inference room.
