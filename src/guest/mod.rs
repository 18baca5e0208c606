//! The guest room.
