//! The sandbox room.

pub mod link;
