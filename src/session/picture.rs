//! Images of a conversation: the log names them, and their bytes are artifacts.

use std::io::Read;

use super::Artifacts;
use podbay_llm::message::Message;
use podbay_wire::ImageKind;

/// Stands at the beginning of an image's address until its bytes are there.
const NAMED: &str = "artifact:";
/// Largest image; none that was shown is larger.
const MAX_IMAGE: u64 = 8 << 20;

/// Returns what stands for an image's address in a conversation as a log tells it.
pub(super) fn name(artifact: &str, media_type: &str) -> String {
    format!("{NAMED}{artifact},{media_type}")
}

/// Returns whether the bytes are still to come.
pub(super) fn is_named(url: &str) -> bool {
    url.starts_with(NAMED)
}

/// Returns the image that is named so; `None` where its artifact is gone, or where somebody wrote
/// something else into the log.
pub(super) fn load(artifacts: &Artifacts, name: &str) -> Option<Message> {
    let (id, media_type) = name.strip_prefix(NAMED)?.split_once(',')?;
    let kind = ImageKind::of(media_type)?;
    let mut data = Vec::new();
    artifacts
        .open(id)
        .ok()?
        .take(MAX_IMAGE + 1)
        .read_to_end(&mut data)
        .ok()?;
    (data.len() as u64 <= MAX_IMAGE).then(|| Message::image("", kind.media_type(), &data))
}
