//! Who answers the one thing that a guest may ask: whether a program that waits in the box goes on
//! there.

use std::future::Future;
use std::pin::Pin;

use podbay_wire::AskedProgram;

/// Somebody who can be asked. What the guest says of the program is its word, and nobody else's.
pub trait Asks: Send + Sync {
    /// Returns whether it goes on. Where this is dropped before it is done, nobody needs the answer
    /// any more.
    fn ask<'a>(&'a self, program: AskedProgram) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// Where nobody can be asked, nothing goes on.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Asks for Nobody {
    fn ask<'a>(
        &'a self,
        _program: AskedProgram,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(std::future::ready(false))
    }
}
