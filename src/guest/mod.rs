//! The guest room.

mod beneath;
pub mod root;
pub mod tools;
