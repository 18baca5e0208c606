//! Which reviews were about to be brought in: with no record left of one of these, all of it is in.
//! Without this, nobody could tell it from one whose record was lost, of which the changes are all
//! that there is.

use super::Error;
use super::Folder;

const FILE: &str = "accepted";
/// How many are remembered: what is left of one is removed right after, or by the same command once
/// more.
const MOST: usize = 100;

/// Notes that a review is about to be brought in, before it can be forgotten for that.
pub(super) fn note(state: &Folder, name: &str) -> Result<(), Error> {
    let mut names = names(state)?;
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    names.push(name.to_owned());
    let start = names.len().saturating_sub(MOST);
    state.replace(FILE, names[start..].join("\n").as_bytes())
}

/// Notes that a review is about to be dropped.
pub(super) fn forget(state: &Folder, name: &str) -> Result<(), Error> {
    let mut names = names(state)?;
    let n_names = names.len();
    names.retain(|known| known != name);
    if names.len() == n_names {
        Ok(())
    } else {
        state.replace(FILE, names.join("\n").as_bytes())
    }
}

pub(super) fn is_noted(state: &Folder, name: &str) -> Result<bool, Error> {
    Ok(names(state)?.iter().any(|known| known == name))
}

fn names(state: &Folder) -> Result<Vec<String>, Error> {
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
    fn the_last_ones_are_remembered_each_once() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let state = Folder::open(place.path()).expect("opens");
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
