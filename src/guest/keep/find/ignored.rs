//! Repositories deep in what ignore files leave out: what a package manager checked out, and
//! whatever else a person keeps there.
//!
//! There are many names in such folders, so that nothing but repositories is looked for.

use std::time::Duration;
use std::time::Instant;

use super::Finder;
use super::Part;
use crate::beneath::Beneath;
use crate::tools::walk::Entry;
use crate::tools::walk::Kind;
use crate::tools::walk::Visitor;
use crate::tools::walk::Walk;

/// What was found in ignored folders.
pub(super) struct Deep {
    pub(super) parts: Vec<Part>,
    /// Whether there was time for all of them.
    pub(super) is_whole: bool,
}

/// Looks through these folders, by their paths from the project's, with a slash in front of each.
pub(super) fn repositories(
    finder: &Finder<'_>,
    base: &Beneath,
    folders: Vec<Vec<u8>>,
    within: Duration,
) -> Deep {
    if folders.is_empty() {
        return Deep {
            parts: Vec::new(),
            is_whole: true,
        };
    }
    let stop = finder.stop.until(Instant::now() + within);
    let walk = Walk {
        base,
        prefix: b"",
        rules: None,
        hidden: true,
        max_depth: usize::MAX,
        in_breadth: true,
        stop: &stop,
    };
    let walked = walk.run_in(folders, &Repositories { finder });
    Deep {
        parts: walked.states,
        is_whole: !stop.is_late(),
    }
}

struct Repositories<'a> {
    finder: &'a Finder<'a>,
}

impl Visitor for Repositories<'_> {
    type State = Part;

    fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        Some(entry.kind == Kind::Folder)
    }

    fn visit(&self, _part: &mut Part, _entry: &Entry<'_>) {}

    fn repository(&self, part: &mut Part, entry: &Entry<'_>) {
        self.finder.repository(part, entry);
    }
}
