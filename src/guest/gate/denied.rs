//! Programs that were denied, for the call's result.

use std::collections::HashMap;

use super::process::Arguments;
use super::program_log::shortened;
use podbay_wire::Because;
use podbay_wire::BytesPath;
use podbay_wire::Denied;
use podbay_wire::MAX_DENIED;

#[derive(Debug, Default)]
pub(super) struct DeniedPrograms {
    listed: Vec<Denied>,
    places: HashMap<(Vec<Vec<u8>>, Because, bool), usize>,
}

impl DeniedPrograms {
    pub(super) fn add(&mut self, argv: &Arguments, because: Because, killed: bool) {
        let (words, truncated) = shortened(argv);
        let key = (words, because, killed);
        if let Some(listed) = self
            .places
            .get(&key)
            .and_then(|&at| self.listed.get_mut(at))
        {
            listed.count += 1;
            return;
        }
        // Beyond these the first ones are enough.
        if self.listed.len() >= MAX_DENIED {
            return;
        }
        let argv = key
            .0
            .iter()
            .map(|word| BytesPath::from_bytes(word.clone()))
            .collect();
        self.listed.push(Denied {
            argv,
            truncated,
            count: 1,
            because: key.1.clone(),
            killed,
        });
        self.places.insert(key, self.listed.len() - 1);
    }

    pub(super) fn take(&mut self) -> Vec<Denied> {
        std::mem::take(self).listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_denials_are_counted_and_the_list_is_bounded() {
        let mut denied = DeniedPrograms::default();
        let argv = |n: usize| Arguments {
            words: vec![b"git".to_vec(), n.to_string().into_bytes()],
            truncated: false,
        };
        for n in (0..100).chain([0, 0]) {
            denied.add(&argv(n), Because::Unnamed, false);
        }
        denied.add(&argv(0), Because::Changed, true);
        let all = denied.take();
        assert_eq!((all.len(), all[0].count, all[1].count), (MAX_DENIED, 3, 1));
        assert!(denied.take().is_empty());
    }
}
