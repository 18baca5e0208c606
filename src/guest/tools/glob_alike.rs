//! The file that a pattern means whose letters only look like those of its name.

use nix::sys::stat::SFlag;

use super::ignore_rules::Rules;
use super::patterns::Patterns;
use super::patterns::Start;
use super::stop::Stop;
use super::walk::Entry;
use super::walk::Kind;
use super::walk::Visitor;
use super::walk::Walk;
use crate::root::Root;
use crate::root::file_type;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Files that are named where several look alike.
const MOST_NAMED: usize = 3;

/// What was found by letters that look alike.
pub(super) enum Alike {
    Nothing,
    Only(BytesPath),
    /// Which of them is meant nothing tells.
    Several(String),
}

/// Looks for what patterns mean that match nothing. Where rules speak of paths by their names,
/// names are what they are.
pub(super) fn find(
    root: &Root,
    patterns: &Patterns,
    include_ignored: bool,
    stop: &Stop<'_>,
) -> Result<Alike, Fault> {
    let Some(patterns) = patterns.alike().filter(|_| !root.beneath().refuses_links()) else {
        return Ok(Alike::Nothing);
    };
    let mut found: Vec<Vec<u8>> = Vec::new();
    for Start { base, path } in patterns.starts(root)? {
        let walk = Walk {
            base: &base,
            prefix: path.as_bytes(),
            rules: (!include_ignored).then(|| Rules::above(root, path.as_bytes())),
            hidden: include_ignored || patterns.names_hidden(),
            max_depth: usize::MAX,
            in_breadth: false,
            stop,
        };
        found.extend(
            walk.run(&Names {
                root,
                patterns: &patterns,
            })
            .states
            .into_iter()
            .flatten(),
        );
    }
    if stop.is_set() {
        return Ok(Alike::Nothing);
    }
    found.sort_unstable();
    found.dedup();
    let mut found = found.into_iter().map(BytesPath::from_bytes);
    Ok(match (found.next(), found.next()) {
        (None, _) => Alike::Nothing,
        (Some(only), None) => Alike::Only(only),
        (Some(first), Some(second)) => {
            let named: Vec<String> = [first, second]
                .into_iter()
                .chain(found)
                .take(MOST_NAMED)
                .map(|path| path.to_string())
                .collect();
            Alike::Several(format!(
                "several files look like it by their letters, such as {}: copy the name that is meant",
                named.join(" and ")
            ))
        }
    })
}

/// Says of the only file that it was taken.
pub(super) fn said(found: &BytesPath) -> String {
    format!("no name has the very letters: {found}, which looks alike, was taken")
}

struct Names<'a> {
    root: &'a Root,
    patterns: &'a Patterns,
}

impl Visitor for Names<'_> {
    type State = Vec<Vec<u8>>;

    fn select(&self, entry: &Entry<'_>) -> Option<bool> {
        self.patterns.select(entry)
    }

    fn visit(&self, found: &mut Self::State, entry: &Entry<'_>) {
        let is_file = match entry.kind {
            Kind::File => true,
            Kind::Link => self
                .root
                .look(&BytesPath::from_bytes(entry.path()))
                .is_ok_and(|stat| file_type(&stat) == SFlag::S_IFREG),
            Kind::Folder | Kind::Other => false,
        };
        if is_file && found.len() <= MOST_NAMED {
            found.push(entry.path().to_vec());
        }
    }
}
