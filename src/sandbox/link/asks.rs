//! Who answers the one thing that a guest may ask: whether a program that waits in the sandbox continues
//! there.

use std::future::Future;
use std::pin::Pin;

use podbay_wire::AskedProgram;

/// Somebody who can be asked. What the guest says of the program is its word, and nobody else's.
pub trait Asks: Send + Sync {
    /// Returns whether it continues. Where this is dropped before it is done, nobody needs the answer
    /// any more.
    fn ask<'a>(&'a self, program: AskedProgram) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// Where nobody can be asked, nothing continues.
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
