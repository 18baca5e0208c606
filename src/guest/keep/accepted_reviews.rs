//! The reviews whose apply was about to finish. When such a review has no record any more, all of
//! it is in the project. Without this list, that case could not be told from a lost record, where
//! the changes in the session's volume are all that is left.

use super::Error;
use super::StateFolder;

const FILE: &str = "accepted";
/// Most names that are kept. What is left of a review is removed right after its apply, or by the
/// next run of the same command, so older names are of no use.
const MOST: usize = 100;

/// Notes that a review is about to be applied completely, before its record is removed.
pub(super) fn note(state: &StateFolder, name: &str) -> Result<(), Error> {
    let mut names = names(state)?;
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    names.push(name.to_owned());
    let start = names.len().saturating_sub(MOST);
    state.replace(FILE, names[start..].join("\n").as_bytes())
}

/// Removes the note of a review that is about to be discarded.
pub(super) fn forget(state: &StateFolder, name: &str) -> Result<(), Error> {
    let mut names = names(state)?;
    let n_names = names.len();
    names.retain(|known| known != name);
    if names.len() == n_names {
        Ok(())
    } else {
        state.replace(FILE, names.join("\n").as_bytes())
    }
}

pub(super) fn is_noted(state: &StateFolder, name: &str) -> Result<bool, Error> {
    Ok(names(state)?.iter().any(|known| known == name))
}

fn names(state: &StateFolder) -> Result<Vec<String>, Error> {
    let text = state.read(FILE)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&text)
        .lines()
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_names_are_kept_each_once() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let state = StateFolder::open(place.path()).expect("opens");
        assert!(!is_noted(&state, "0").expect("read"));
        for n in 0..=MOST {
            note(&state, &n.to_string()).expect("noted");
            note(&state, &n.to_string()).expect("noted");
        }
        let is_noted = |name: &str| is_noted(&state, name).expect("read");
        assert!(!is_noted("0") && is_noted("1") && is_noted(&MOST.to_string()));
        forget(&state, "1").expect("forgotten");
        assert!(!is_noted("1") && is_noted("2"));
    }
}
