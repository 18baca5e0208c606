//! The ui room.
