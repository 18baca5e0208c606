//! The stashes: every one but the last is in the log of `refs/stash` alone.

use super::refs::object;
use super::untrusted_folder::UntrustedFolder;
use podbay_wire::Fault;

pub(crate) const NAME: &[u8] = b"refs/stash";
pub(crate) const LOG: &[u8] = b"logs/refs/stash";
pub(crate) const MAX_LOG: u64 = 1 << 20;
/// Longest message of a stash that is imported.
const MAX_MESSAGE: usize = 200;

/// One stash.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stash {
    pub object: String,
    pub message: String,
}

/// Reads all stashes, the oldest first; lines that git would not write are left out.
pub(crate) fn read(folder: &UntrustedFolder) -> Result<Vec<Stash>, Fault> {
    Ok(folder
        .read(LOG, MAX_LOG)?
        .map(|text| parse(&text))
        .unwrap_or_default())
}

fn parse(text: &[u8]) -> Vec<Stash> {
    text.split(|byte| *byte == b'\n')
        .filter_map(stash)
        .collect()
}

fn stash(line: &[u8]) -> Option<Stash> {
    let object = object(line.get(41..81)?)?;
    let at = line
        .iter()
        .position(|byte| *byte == b'\t')
        .unwrap_or(line.len());
    let message = String::from_utf8_lossy(line.get(at + 1..).unwrap_or_default());
    // It is printed on the user's terminal.
    let message = message
        .chars()
        .filter(|character| !character.is_control() && !podbay_wire::is_hidden(*character))
        .take(MAX_MESSAGE)
        .collect();
    Some(Stash { object, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stashes_are_read_in_the_order_they_were_made() {
        let (zero, one, two) = ("0".repeat(40), "1".repeat(40), "2".repeat(40));
        let who = "A <a@b> 1700000000 +0000";
        let text = format!(
            "{zero} {one} {who}\tWIP on main: 1\n{one} {two} {who}\tOn x: \x1b[2Jy\nnonsense\n{two} {zero} {who}\tz\n"
        );
        let expected = [(one, "WIP on main: 1"), (two, "On x: [2Jy")];
        assert_eq!(
            parse(text.as_bytes()),
            expected.map(|(object, message)| Stash {
                object,
                message: message.to_owned()
            })
        );
    }
}
