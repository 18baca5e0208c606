//! Files whose names match a glob pattern only by look-alike characters.

use nix::sys::stat::SFlag;

use super::ignore_rules::IgnoreRules;
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

/// Files listed where several look alike.
const MOST_NAMED: usize = 3;

/// Result of a search by look-alike characters.
pub(super) enum LookalikeMatch {
    Nothing,
    Only(BytesPath),
    /// Several files fit; nothing tells which is meant.
    Several(String),
}

/// Searches by look-alike characters for patterns that match nothing. Not in calls whose paths are
/// checked by name.
pub(super) fn find(
    root: &Root,
    patterns: &Patterns,
    include_ignored: bool,
    stop: &Stop<'_>,
) -> Result<LookalikeMatch, Fault> {
    let Some(patterns) = patterns.alike().filter(|_| !root.beneath().refuses_links()) else {
        return Ok(LookalikeMatch::Nothing);
    };
    let mut found: Vec<Vec<u8>> = Vec::new();
    for Start { base, path } in patterns.starts(root)? {
        let walk = Walk {
            base: &base,
            prefix: path.as_bytes(),
            rules: (!include_ignored).then(|| IgnoreRules::above(root, path.as_bytes())),
            hidden: include_ignored || patterns.names_hidden(),
            max_depth: usize::MAX,
            in_breadth: false,
            stop,
        };
        found.extend(
            walk.run(&NameCollector {
                root,
                patterns: &patterns,
            })
            .states
            .into_iter()
            .flatten(),
        );
    }
    if stop.is_set() {
        return Ok(LookalikeMatch::Nothing);
    }
    found.sort_unstable();
    found.dedup();
    let mut found = found.into_iter().map(BytesPath::from_bytes);
    Ok(match (found.next(), found.next()) {
        (None, _) => LookalikeMatch::Nothing,
        (Some(only), None) => LookalikeMatch::Only(only),
        (Some(first), Some(second)) => {
            let named: Vec<String> = [first, second]
                .into_iter()
                .chain(found)
                .take(MOST_NAMED)
                .map(|path| path.to_string())
                .collect();
            LookalikeMatch::Several(format!(
                "several names consist of look-alike characters, such as {}: copy the one that is meant",
                named.join(" and ")
            ))
        }
    })
}

/// The note about a file that was found this way.
pub(super) fn note(found: &BytesPath) -> String {
    format!("no name matches exactly: {found}, which looks alike, was used")
}

struct NameCollector<'a> {
    root: &'a Root,
    patterns: &'a Patterns,
}

impl Visitor for NameCollector<'_> {
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
