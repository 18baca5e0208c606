//! Merges of texts that were changed on both sides.

use super::super::Error;
use super::super::Store;
use super::super::compare::Change;
use super::super::deflate::Deflate;
use super::super::merge::merge;
use super::super::node::Node;
use super::super::object::ObjectId;
use super::super::read::FoundEntry;
use super::super::store::PutOutcome;

/// Texts that are merged from two sides.
pub(super) struct Merges<'a> {
    pub(super) store: &'a mut Store,
    pub(super) made: Vec<Vec<u8>>,
}

impl Merges<'_> {
    pub(super) fn merge(
        &mut self,
        change: &Change,
        here: &FoundEntry,
    ) -> Result<Option<Node>, Error> {
        let (
            Some(Node::File { object: base, .. }),
            Some(Node::File {
                object: wanted,
                mode,
                ..
            }),
            FoundEntry::File { content, .. },
        ) = (&change.before, &change.after, here)
        else {
            return Ok(None);
        };
        let Some(merged) = merge(&self.store.get(base)?, content, &self.store.get(wanted)?) else {
            return Ok(None);
        };
        let node = Node::File {
            mode: *mode,
            n_bytes: merged.len() as u64,
            object: ObjectId::of(&merged),
        };
        self.made.push(merged);
        Ok(Some(node))
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        let addition = self.store.add();
        let mut deflate = Deflate::default();
        for content in &self.made {
            match addition.put(content, &mut deflate)? {
                PutOutcome::Kept(_) => {}
                PutOutcome::Full => {
                    return Err(Error::Full {
                        most_bytes: self.store.most_bytes(),
                    });
                }
            }
        }
        let added = addition.finish()?;
        self.store.take_in_added(added)
    }
}
