//! The agent room.
