//! Searching for consecutive lines.

/// Returns each position at which `wanted` begins in `here`, overlapping ones too.
///
/// Each line is compared about twice (Knuth, Morris and Pratt): in a file of equal lines, comparing
/// from each position would take minutes.
pub(super) fn runs<'a, L: PartialEq>(
    here: &'a [L],
    wanted: impl AsRef<[L]> + 'a,
) -> impl Iterator<Item = usize> + 'a {
    let borders = borders(wanted.as_ref());
    let mut n_fit = 0;
    let n_wanted = borders.len();
    let ends = here.iter().enumerate().filter(move |(_, line)| {
        let wanted = wanted.as_ref();
        if n_fit == wanted.len() {
            n_fit = n_fit.checked_sub(1).map_or(0, |last| borders[last]);
        }
        while n_fit > 0 && wanted[n_fit] != **line {
            n_fit = borders[n_fit - 1];
        }
        n_fit += usize::from(wanted.get(n_fit) == Some(*line));
        n_fit > 0 && n_fit == wanted.len()
    });
    ends.map(move |(at, _)| at + 1 - n_wanted)
}

/// Returns for each line the length of the longest proper prefix that also ends there.
fn borders<L: PartialEq>(wanted: &[L]) -> Vec<usize> {
    let mut borders = vec![0; wanted.len()];
    let mut n_fit = 0;
    for at in 1..wanted.len() {
        while n_fit > 0 && wanted[n_fit] != wanted[at] {
            n_fit = borders[n_fit - 1];
        }
        n_fit += usize::from(wanted[n_fit] == wanted[at]);
        borders[at] = n_fit;
    }
    borders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_run_is_found_nowhere() {
        assert_eq!(runs(&[1, 2], [0; 0]).next(), None);
        assert_eq!(runs(&[], [1]).next(), None);
    }

    /// Compared from each position, these would take hours.
    #[test]
    fn equal_lines_are_compared_about_twice() {
        let here = vec![1; 1_000_000];
        let wanted = [vec![1; 500_000], vec![2]].concat();
        assert_eq!(runs(&here, &wanted).next(), None);
    }

    proptest! {
        #[test]
        fn every_position_of_a_run_is_found(here in proptest::collection::vec(0..2, 0..40), wanted in proptest::collection::vec(0..2, 1..5)) {
            let expected: Vec<usize> = here.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted).map(|(at, _)| at).collect();
            prop_assert_eq!(runs(&here, &wanted).collect::<Vec<_>>(), expected);
        }
    }
}
