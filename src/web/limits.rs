//! Every bound of a fetch. Servers and pages are untrusted, and each bound is what one of them can
//! make it hold or wait for.

use std::time::Duration;

/// Redirects that are followed.
pub(crate) const REDIRECTS: usize = 5;

/// Bytes of a body that are read, and as many after it was decompressed.
pub(crate) const BODY: usize = 5 << 20;

/// Bytes of an answer's head, as of the gateway's.
pub(crate) const HEAD: usize = 64 << 10;

/// Bytes of an address.
pub(crate) const URL: usize = 8 << 10;

/// Elements within each other that are converted: the converter calls itself for each, and browsers
/// stop at 512.
pub(crate) const DEPTH: usize = 512;

/// Elements of a page that are opened and not closed. Pages leave some hundred lists and images so.
pub(crate) const LEFT_OPEN: usize = 20_000;

/// Stack of the thread that converts, which must hold that.
pub(crate) const STACK: usize = 64 << 20;

/// Memory and processor time of the program: a small page can make a parser hold and do much.
pub(crate) const MEMORY: u64 = 1 << 30;
pub(crate) const PROCESSOR_SECONDS: u64 = 20;

/// Between two requests to one host.
pub(crate) const PAUSE: Duration = Duration::from_millis(1500);
