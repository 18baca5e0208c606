//! The sandbox's end of the way to the gateway: a proxy on loopback, and the variables that tell
//! programs of it.
//!
//! What may be reached the gateway decides, outside of the sandbox. Nothing here is a boundary:
//! commands reach the gateway's socket without it just as well.

mod proxy;
mod variables;

use std::io;
use std::path::Path;
use std::path::PathBuf;

use podbay_wire::EGRESS_FOLDER;
use podbay_wire::EGRESS_SOCKET;

/// Offers the proxy where the gateway's volume is mounted; elsewhere there is never a gateway.
pub(super) fn start() -> io::Result<()> {
    if Path::new(EGRESS_FOLDER).is_dir() {
        proxy::start(socket())
    } else {
        Ok(())
    }
}

/// Returns what commands find in their environment: with the proxy, once there is a gateway.
pub(super) fn environment(own: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if socket().exists() {
        variables::with_proxy(own)
    } else {
        own.to_vec()
    }
}

fn socket() -> PathBuf {
    Path::new(EGRESS_FOLDER).join(EGRESS_SOCKET)
}
