//! The sandbox room.
