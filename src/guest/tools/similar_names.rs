use crate::lookalike::normalize_bytes;

/// Most names returned.
const MAX_GIVEN: usize = 3;

/// Longer names are compared only ignoring case; the distance costs the product of both lengths.
const MAX_MEASURED: usize = 64;

/// Collects the names of a folder that a mistyped one may have meant.
pub(crate) struct SimilarNames {
    wanted: Vec<u8>,
    /// Distance and name, the nearest first.
    found: Vec<(usize, Vec<u8>)>,
}

impl SimilarNames {
    pub(crate) fn to(wanted: &[u8]) -> Self {
        Self {
            wanted: normalize_bytes(wanted).to_ascii_lowercase(),
            found: Vec::new(),
        }
    }

    pub(crate) fn offer(&mut self, name: &[u8]) {
        let Some(distance) = self.distance(&normalize_bytes(name).to_ascii_lowercase()) else {
            return;
        };
        let key = (distance, name.to_vec());
        let at = self.found.partition_point(|other| *other < key);
        if at < MAX_GIVEN {
            self.found.insert(at, key);
            self.found.truncate(MAX_GIVEN);
        }
    }

    pub(crate) fn best(self) -> Vec<Vec<u8>> {
        self.found.into_iter().map(|(_, name)| name).collect()
    }

    /// Returns the edit distance to a name, or `None` where it is too far.
    fn distance(&self, name: &[u8]) -> Option<usize> {
        let wanted = self.wanted.as_slice();
        if wanted.is_empty() {
            return None;
        }
        if wanted == name {
            return Some(0);
        }
        if wanted.len() <= MAX_MEASURED && name.len() <= MAX_MEASURED {
            let distance = edit_distance(wanted, name);
            if distance <= (wanted.len() / 3).max(1) {
                return Some(distance);
            }
        }
        // The same stem with another extension, `util.ts` for `util.tsx`, is a likely slip however
        // long the extension is.
        let same_stem = stem(wanted).len() >= 2 && stem(wanted) == stem(name);
        same_stem.then_some(MAX_MEASURED)
    }
}

fn stem(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|byte| *byte == b'.') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Counts insertions, deletions, substitutions and transpositions.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, to) in b.iter().enumerate() {
            let changed = above[j] + usize::from(from != to);
            row[j + 1] = changed.min(row[j] + 1).min(above[j + 1] + 1);
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = above;
        above = row;
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, folder: &[&str], expected: &[&str]) {
        let mut similar = SimilarNames::to(wanted.as_bytes());
        for name in folder {
            similar.offer(name.as_bytes());
        }
        let best: Vec<String> = similar
            .best()
            .into_iter()
            .map(|name| String::from_utf8_lossy(&name).into_owned())
            .collect();
        assert_eq!(best, expected);
    }

    #[test]
    fn typos_find_the_intended_name() {
        check("mian.rs", &["lib.rs", "main.rs"], &["main.rs"]);
        check("readme.md", &["README.md", "Cargo.toml"], &["README.md"]);
        check("util.ts", &["util.tsx", "other.ts"], &["util.tsx"]);
        check("scr", &["src", "doc"], &["src"]);
        check(
            "config.yml",
            &["config.toml", "config.json"],
            &["config.toml", "config.json"],
        );
    }

    #[test]
    fn dissimilar_names_are_not_suggested() {
        check("a.txt", &["Makefile", "zebra"], &[]);
        check("", &["a"], &[]);
    }

    #[test]
    fn at_most_three_names_are_suggested_nearest_first() {
        check(
            "test1",
            &["test9", "Test1", "test8", "test7"],
            &["Test1", "test7", "test8"],
        );
    }
}
