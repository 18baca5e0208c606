//! Which files count as text, and the largest that are compared.

/// Larger texts are neither shown nor merged.
pub(super) const MOST_TEXT: usize = 1024 * 1024;

/// Bytes that are searched for a NUL byte, as git does.
const LOOKED_AT: usize = 8_000;

pub(super) fn is_text(content: &[u8]) -> bool {
    content.len() <= MOST_TEXT && !is_binary(content)
}

/// Returns whether content is binary, of any length.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(LOOKED_AT)].contains(&0)
}
