use super::Error;
use super::encoding::put_bytes;
use super::encoding::take;
use super::encoding::take_bytes;
use super::node::Node;
use super::object::ObjectId;
use super::store::Store;
use podbay_wire::BytesPath;
use podbay_wire::keep::UncapturedReason;

/// The entries of a folder, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) Vec<(Vec<u8>, Node)>);

/// The name of the project's own folder in its own tree, which records its mode. Older snapshots
/// have none.
pub(super) const OWN: &[u8] = b".";

/// Numbered by position in stored trees: append only.
const REASONS: [UncapturedReason; 7] = [
    UncapturedReason::TooLarge,
    UncapturedReason::StoreFull,
    UncapturedReason::Unreadable,
    UncapturedReason::Special,
    UncapturedReason::GitFolder,
    UncapturedReason::OtherFileSystem,
    UncapturedReason::TooDeep,
];

const FOLDER: u8 = 0;
const FILE: u8 = 1;
const LINK: u8 = 2;
const UNKEPT: u8 = 3;

impl Tree {
    pub(super) fn read(store: &Store, id: &ObjectId) -> Result<Self, Error> {
        Self::decode(&store.get(id)?).ok_or(Error::Broken { id: *id })
    }

    /// Encodes the tree; equal trees have equal bytes.
    pub(super) fn encode(&mut self) -> Vec<u8> {
        self.0.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let mut out = Vec::with_capacity(self.0.len() * 72);
        for (name, node) in &self.0 {
            put_bytes(&mut out, name);
            match node {
                Node::Folder { mode, tree } => {
                    out.push(FOLDER);
                    out.extend_from_slice(&mode.to_le_bytes());
                    out.extend_from_slice(tree.as_bytes());
                }
                Node::File {
                    mode,
                    n_bytes,
                    object,
                } => {
                    out.push(FILE);
                    out.extend_from_slice(&mode.to_le_bytes());
                    out.extend_from_slice(&n_bytes.to_le_bytes());
                    out.extend_from_slice(object.as_bytes());
                }
                Node::Link { target } => {
                    out.push(LINK);
                    put_bytes(&mut out, target.as_bytes());
                }
                Node::Unkept { why, mark } => {
                    let number = REASONS
                        .iter()
                        .position(|reason| reason == why)
                        .expect("all reasons are listed");
                    out.push(UNKEPT);
                    out.push(number as u8);
                    out.extend_from_slice(mark.as_bytes());
                }
            }
        }
        out
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut entries = Vec::new();
        while !bytes.is_empty() {
            let name = take_bytes(&mut bytes)?.to_vec();
            let [kind] = take(&mut bytes)?;
            let node = match kind {
                FOLDER => Node::Folder {
                    mode: u32::from_le_bytes(take(&mut bytes)?),
                    tree: take_id(&mut bytes)?,
                },
                FILE => Node::File {
                    mode: u32::from_le_bytes(take(&mut bytes)?),
                    n_bytes: u64::from_le_bytes(take(&mut bytes)?),
                    object: take_id(&mut bytes)?,
                },
                LINK => Node::Link {
                    target: BytesPath::from_bytes(take_bytes(&mut bytes)?),
                },
                UNKEPT => {
                    let [number] = take(&mut bytes)?;
                    Node::Unkept {
                        why: *REASONS.get(usize::from(number))?,
                        mark: take_id(&mut bytes)?,
                    }
                }
                _ => return None,
            };
            entries.push((name, node));
        }
        Some(Self(entries))
    }
}

fn take_id(bytes: &mut &[u8]) -> Option<ObjectId> {
    take(bytes).map(ObjectId::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_decoded_as_encoded_and_a_partial_one_is_an_error() {
        let id = ObjectId::of(b"x");
        let mut tree = Tree(vec![
            (
                b"z".to_vec(),
                Node::Folder {
                    mode: 0o1755,
                    tree: id,
                },
            ),
            (
                b"new\nline \xff".to_vec(),
                Node::File {
                    mode: 0o4644,
                    n_bytes: u64::MAX,
                    object: id,
                },
            ),
            (
                b"link".to_vec(),
                Node::Link {
                    target: BytesPath::from_bytes(b"../\xfe"),
                },
            ),
        ]);
        tree.0.extend(REASONS.map(|why| {
            (
                format!("{why:?}").into_bytes(),
                Node::Unkept { why, mark: id },
            )
        }));
        let bytes = tree.encode();
        assert_eq!(Tree::decode(&bytes).as_ref(), Some(&tree));
        assert_eq!(tree.0[0].0, b"GitFolder", "sorted by bytes");
        for end in 0..bytes.len() {
            assert_ne!(Tree::decode(&bytes[..end]).as_ref(), Some(&tree), "{end}");
        }
        assert_eq!(Tree::decode(&[&bytes[..], &[9, 0, 1]].concat()), None);
    }
}
