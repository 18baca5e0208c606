//! The llm room.
