//! Parsers for code of other languages: so far the literal commands of a shell script.
//!
//! Pure: text in, plain data out; no file, no clock, no process. What a result means, and whether
//! it may run, is for other modules to say. Start with [`shell::read`].

pub mod shell;
