//! Reading what others wrote in some language: so far what a script of a shell says literally.
//!
//! Pure: text in, plain data out, no file, no clock, no process. What a reading means, and whether
//! it may be done, is for other rooms to say. Start with [`shell::read`].

pub mod shell;
