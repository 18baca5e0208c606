//! The language spoken between the host and the keeper: the box of ours in which no model's command runs.
//!
//! The frames are those of the session's guest, the words are others. Both ends say hello; then the host gives one order after the other
//! and the keeper answers each. It ends with its input.

mod find;

use serde::Deserialize;
use serde::Serialize;

pub use self::find::Find;
pub use self::find::Found;
pub use self::find::MOST_HIDDEN;
pub use self::find::Secret;

/// From the host to the keeper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToKeeper {
    Hello { protocol: u32, build: String },
    Order { id: u32, order: Order },
}

/// From the keeper to the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromKeeper {
    Hello(KeeperHello),
    Done {
        id: u32,
        kept: Kept,
    },
    /// It ends after this.
    Closing {
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperHello {
    pub protocol: u32,
    pub build: String,
    /// Device and inode of the project's folder as the keeper sees it.
    pub workspace: (u64, u64),
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Order {
    Find(Find),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Kept {
    Found(Found),
    /// It could not be done; nothing was changed.
    Failed {
        doing: String,
        problem: String,
    },
}
