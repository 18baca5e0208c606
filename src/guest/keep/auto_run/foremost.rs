//! Of more that may run than can be named, which is named: what a person had and looks for is not
//! to drown in what a session made.

use std::collections::BTreeMap;

use podbay_wire::keep::MOST_NAMED;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::Named;

/// Collects what may run.
#[derive(Debug, Default)]
pub(in crate::keep) struct Foremost(Vec<(bool, MayRun)>);

impl Foremost {
    /// `was_there`: it is the person's, and was changed.
    pub(in crate::keep) fn add(&mut self, file: MayRun, was_there: bool) {
        self.0.push((was_there, file));
    }

    /// Names all in their order, where there is room. Else it is one of each kind first, then what
    /// was changed, then what is new, each form of name in its turn, and what lies near the top
    /// before what lies deep.
    pub(in crate::keep) fn named(self) -> Named<MayRun> {
        let mut all = self.0;
        if all.len() <= MOST_NAMED {
            return all.into_iter().map(|(_, file)| file).collect();
        }
        all.sort_by_key(|(was_there, file)| {
            (
                !was_there,
                memchr::memchr_iter(b'/', file.path.as_bytes()).count(),
            )
        });
        let mut n_of_kind: BTreeMap<String, usize> = BTreeMap::new();
        let mut n_of_form: BTreeMap<(bool, String, String), usize> = BTreeMap::new();
        let mut ranked: Vec<_> = all
            .into_iter()
            .map(|(was_there, file)| {
                let kind = kind(&file.why).to_owned();
                let in_form = next(&mut n_of_form, (was_there, kind.clone(), form(&file)));
                let is_first = next(&mut n_of_kind, kind) == 0;
                ((!is_first, !was_there, in_form), file)
            })
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, file)| file).collect()
    }
}

fn next<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) -> usize {
    let n = counts.entry(key).or_default();
    *n += 1;
    *n - 1
}

/// Reasons have the name of a link before them at times, of which a session could make any number.
fn kind(why: &str) -> &str {
    why.rsplit(": ").next().unwrap_or(why)
}

/// What the name ends in, or all of it. What only links lead to may have any name.
fn form(file: &MayRun) -> String {
    if kind(&file.why) != file.why {
        return String::new();
    }
    let path = file.path.to_text().to_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.')
        .map_or(name, |(_, end)| end)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::keep::When;

    fn named(files: impl Iterator<Item = (bool, String, &'static str)>) -> (u64, Vec<String>) {
        let mut foremost = Foremost::default();
        for (was_there, path, why) in files {
            foremost.add(
                MayRun {
                    path: path.as_str().into(),
                    why: why.to_owned(),
                    when: When::WhenYouRunIt,
                },
                was_there,
            );
        }
        let named = foremost.named();
        (
            named.n,
            named.first.iter().map(|file| file.path.to_text()).collect(),
        )
    }

    #[test]
    fn what_was_changed_and_each_kind_do_not_drown_in_what_is_new() {
        let decoys = (0..1000).map(|n| (false, format!("d/{n}.mk"), "a build"));
        let links = (0..1000).map(|n| (false, format!("d/{n}"), "the link x leads to it: a build"));
        let others = [
            (true, "zz/deep/er/Makefile".to_owned(), "a build"),
            (true, "zz/deep/er/b.mk".to_owned(), "a build"),
            (false, "zz/deep/er/conftest.py".to_owned(), "a test"),
            (false, "zz/deep/er/configure".to_owned(), "a build"),
        ];
        let (n, first) = named(decoys.chain(links).chain(others));
        assert_eq!((n, first.len()), (2004, MOST_NAMED));
        assert_eq!(
            first[..3],
            [
                "zz/deep/er/Makefile",
                "zz/deep/er/conftest.py",
                "zz/deep/er/b.mk"
            ]
        );
        assert!(first.contains(&"zz/deep/er/configure".to_owned()));
    }

    #[test]
    fn what_fits_is_all_named_in_its_order() {
        let files = ["a/b/Makefile", "Makefile", "a/Makefile"]
            .map(|path| (false, path.to_owned(), "a build"));
        assert_eq!(
            named(files.into_iter()),
            (
                3,
                vec![
                    "a/b/Makefile".into(),
                    "Makefile".into(),
                    "a/Makefile".into()
                ]
            )
        );
        assert_eq!(named(std::iter::empty()), (0, Vec::new()));
    }
}
