//! Which files that may run are named when there are too many: changed files of the user must not
//! be lost among the new ones of a session.

use std::collections::BTreeMap;

use podbay_wire::keep::MOST_NAMED;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;

/// Collects files that may run.
#[derive(Debug, Default)]
pub(in crate::keep) struct Ranking(Vec<(bool, MayRun)>);

impl Ranking {
    /// `was_there`: it is a file of the user's that was changed.
    pub(in crate::keep) fn add(&mut self, file: MayRun, was_there: bool) {
        self.0.push((was_there, file));
    }

    /// Returns all in their order if there is room. Otherwise one of each kind comes first, then
    /// changed files, then new ones, each kind of name in turn, and those near the top before deep
    /// ones.
    pub(in crate::keep) fn named(self) -> NamedList<MayRun> {
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

/// Reasons may start with the name of a link, of which a session can make any number.
fn kind(why: &str) -> &str {
    why.rsplit(": ").next().unwrap_or(why)
}

/// The suffix of the name, or the whole name. Targets of links may have any name.
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
    use podbay_wire::keep::RunTrigger;

    fn named(files: impl Iterator<Item = (bool, String, &'static str)>) -> (u64, Vec<String>) {
        let mut foremost = Ranking::default();
        for (was_there, path, why) in files {
            foremost.add(
                MayRun {
                    path: path.as_str().into(),
                    why: why.to_owned(),
                    when: RunTrigger::WhenYouRunIt,
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
    fn changed_files_and_one_of_each_kind_are_named_before_new_files() {
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
    fn a_short_list_is_named_completely_and_in_order() {
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
