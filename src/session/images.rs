//! Images of a conversation: the log names them, and their bytes are artifacts.

use std::io::Read;

use super::Artifacts;
use podbay_llm::message::Message;
use podbay_wire::ImageKind;

/// Prefix of an image's URL until its bytes are loaded.
const NAMED: &str = "artifact:";
/// Most bytes of an image; none that was shown is larger.
const MAX_IMAGE: u64 = 8 << 20;

/// Returns the placeholder URL of an image in a replayed conversation.
pub(super) fn name(artifact: &str, media_type: &str) -> String {
    format!("{NAMED}{artifact},{media_type}")
}

/// Returns whether the bytes are not loaded yet.
pub(super) fn is_named(url: &str) -> bool {
    url.starts_with(NAMED)
}

/// Loads the image; `None` if its artifact is gone, or the log was edited.
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
