//! What counts as text, and how much of it is compared.

/// Larger texts are neither shown nor put together.
pub(super) const MOST_TEXT: usize = 1024 * 1024;

/// How much of a file is looked at for a NUL byte, as git does.
const LOOKED_AT: usize = 8_000;

pub(super) fn is_text(content: &[u8]) -> bool {
    content.len() <= MOST_TEXT && !is_binary(content)
}

/// Returns whether content is no text, however long it is.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(LOOKED_AT)].contains(&0)
}
