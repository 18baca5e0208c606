//! Images named in a user's message: `@shot.png` shows the model that file of the project.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::Failure;
use super::Interrupt;
use super::settings_hooks::in_time;
use podbay_event::Kind;
use podbay_llm::Message;
use podbay_tools::ImageError;
use podbay_wire::BytesPath;
use podbay_wire::Image;

/// File name extensions of images.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];
/// Maximum number of images per message.
const MOST: usize = 8;

/// An image ready to be added to the conversation; its data is stored already.
pub(super) struct PreparedImage {
    /// The event for the log.
    record: Kind,
    message: Message,
}

/// The result of reading the images of a message.
pub(super) enum ImageLookup {
    All(Vec<PreparedImage>),
    /// The user stopped it.
    Stopped,
    /// The task's time is up.
    Late,
}

impl Agent {
    /// Reads and stores the images that a message names, before anything is sent: an image that
    /// cannot be shown must fail first, and once the message is logged only its text can be
    /// written.
    pub(super) async fn look_at(
        &self,
        text: &str,
        begun: Instant,
        interrupt: &Interrupt,
    ) -> Result<ImageLookup, Failure> {
        let paths = named(text);
        if paths.is_empty() {
            return Ok(ImageLookup::All(Vec::new()));
        }
        let cancel = interrupt.step();
        let (images, is_late) = in_time(
            self.options.timeout.get(),
            begun,
            &cancel,
            self.read_images(paths, &cancel),
        )
        .await;
        let is_stopped = cancel.is_cancelled();
        interrupt.idle();
        match images {
            _ if is_late => Ok(ImageLookup::Late),
            _ if is_stopped => Ok(ImageLookup::Stopped),
            images => images.map(ImageLookup::All),
        }
    }

    async fn read_images(
        &self,
        paths: Vec<&str>,
        cancel: &CancellationToken,
    ) -> Result<Vec<PreparedImage>, Failure> {
        let mut images = Vec::new();
        let mut seen: Vec<(Vec<&str>, Image)> = Vec::new();
        for path in paths {
            if cancel.is_cancelled() {
                break;
            }
            let unseen = match self
                .pipeline
                .read_image(BytesPath::from_text(path), cancel)
                .await
            {
                // The same file under another name, unless a link makes it another one.
                Ok(image)
                    if seen.iter().any(|(names, other)| {
                        *names == folded(path) && other.data == image.data
                    }) =>
                {
                    continue;
                }
                Ok(_) if images.len() == MOST => {
                    return Err(Failure::Images {
                        problem: format!("more than {MOST} images are named in one message"),
                    });
                }
                Ok(image) => {
                    images.push(self.keep_image(
                        "image",
                        format!("{}, which the user shows.", image.path),
                        &image,
                    ));
                    seen.push((folded(path), image));
                    // Storing and encoding megabytes takes time: an interrupt is handled in
                    // between.
                    tokio::task::yield_now().await;
                    continue;
                }
                Err(unseen) => unseen,
            };
            let why = match unseen {
                ImageError::Absent => continue,
                ImageError::Quit => {
                    cancel.cancel();
                    break;
                }
                // In many projects `@/` is a prefix of their own paths.
                ImageError::Outside if path.starts_with('/') => continue,
                ImageError::Outside => "it leads out of the project".to_owned(),
                ImageError::Blind => {
                    "the server does not report that the model accepts images".to_owned()
                }
                ImageError::Denied(reason) => reason,
                _ if cancel.is_cancelled() => break,
                ImageError::Fault(problem) => {
                    return Err(Failure::Images {
                        problem: format!("`@{path}` cannot be shown: {problem}"),
                    });
                }
                ImageError::Sandbox(error) => return Err(Failure::Sandbox(error)),
            };
            self.emit(Kind::Warning {
                message: format!(
                    "the image `@{path}` is not shown to the model: {why}; it remains an ordinary word"
                ),
            });
        }
        Ok(images)
    }

    /// Stores the data of an image under `name`, so that a resumed session sends it again.
    pub(super) fn keep_image(&self, name: &str, text: String, image: &Image) -> PreparedImage {
        let media_type = image.kind.media_type();
        let record = match self.pipeline.keep_bytes(name, &image.data.0) {
            Some(artifact) => Kind::ImageShown {
                text: text.clone(),
                media_type: media_type.to_owned(),
                artifact,
            },
            // The log then has only the text.
            None => Kind::NoteAdded { text: text.clone() },
        };
        PreparedImage {
            record,
            message: Message::image(text, media_type, &image.data.0),
        }
    }

    /// Shows images to the model. All of them are logged before the first is encoded for the model,
    /// which takes time: a log that ends between two of them would lack the rest.
    pub(super) fn show_images(&mut self, images: Vec<PreparedImage>) {
        let (records, messages): (Vec<Kind>, Vec<Message>) = images
            .into_iter()
            .map(|shown| (shown.record, shown.message))
            .unzip();
        for record in records {
            self.emit(record);
        }
        for message in messages {
            self.conversation.push(message);
        }
    }
}

/// Returns the components of a path relative to the project, with `.` and `..` resolved.
fn folded(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for name in path.strip_prefix("/workspace/").unwrap_or(path).split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => drop(names.pop()),
            name => names.push(name),
        }
    }
    names
}

/// Returns the image paths that a text names, each once: words that begin with `@` and have an
/// image's extension, or are quoted after it.
fn named(text: &str) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    // The end of the last path: another one may begin there.
    let mut ended = None;
    for (at, _) in text.match_indices('@') {
        // In `me@example.png` it is part of a word.
        let begins =
            ended == Some(at) || text[..at].chars().next_back().is_none_or(may_stand_before);
        let rest = &text[at + 1..];
        let path = match rest.strip_prefix('"') {
            _ if !begins => continue,
            Some(quoted) => quoted.split_once('"').map_or("", |(path, _)| path),
            None => word(rest),
        };
        if is_image(path) {
            ended = Some(at + 1 + path.len() + if rest.starts_with('"') { 2 } else { 0 });
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

fn may_stand_before(c: char) -> bool {
    c.is_whitespace() || "([{\"'`,;:".contains(c)
}

/// Returns the word at the beginning, up to another image that begins in it.
fn word(rest: &str) -> &str {
    const AFTER: [char; 12] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '`'];
    let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
    let begins_anew = |at: usize| {
        let before = &word[..at];
        is_image(before)
            || before.ends_with(may_stand_before)
                && is_image(
                    before
                        .trim_end_matches(may_stand_before)
                        .trim_end_matches(AFTER),
                )
    };
    let end = word
        .match_indices('@')
        .map(|(at, _)| at)
        .find(|at| begins_anew(*at))
        .unwrap_or(word.len());
    word[..end]
        .trim_end_matches(may_stand_before)
        .trim_end_matches(AFTER)
}

fn is_image(path: &str) -> bool {
    let ends = |ending: &&str| {
        let begin = path
            .len()
            .checked_sub(ending.len())
            .filter(|begin| *begin > 0);
        begin
            .and_then(|begin| path.get(begin..))
            .is_some_and(|end| end.eq_ignore_ascii_case(ending))
    };
    !path.contains(['\n', '\r']) && ENDINGS.iter().any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(named(text), expected, "{text}");
    }

    #[test]
    fn images_are_named_by_words_beginning_with_an_at_sign() {
        check("what is in @shot.png?", &["shot.png"]);
        check(
            "@a/b.JPG and (@c.webp), then @a/b.JPG again.",
            &["a/b.JPG", "c.webp"],
        );
        check(
            "see @\"my shots/one two.jpeg\" and `@x.gif`",
            &["my shots/one two.jpeg", "x.gif"],
        );
        check("look:\n@é.png", &["é.png"]);
        check("@a.png,@i0.png", &["a.png", "i0.png"]);
        check(
            "@a.png;@b.png:(@c.png),@\"d.png\"",
            &["a.png", "b.png", "c.png", "d.png"],
        );
        check(
            "@i0.png@i1.png@\"i 2.png\"@i3.png",
            &["i0.png", "i1.png", "i 2.png", "i3.png"],
        );
        check("@icon@2x.png and @a,b.png", &["icon@2x.png", "a,b.png"]);
    }

    #[test]
    fn different_spellings_of_a_path_are_equal() {
        for path in [
            "a/b.png",
            "./a/b.png",
            "a//b.png",
            "a/./b.png",
            "c/../a/b.png",
            "/workspace/a/b.png",
        ] {
            assert_eq!(folded(path), ["a", "b.png"], "{path}");
        }
        assert_eq!(folded("../../a.png"), ["..", "..", "a.png"]);
    }

    #[test]
    fn other_words_name_no_image() {
        for text in [
            "mail me@example.png",
            "@main.rs",
            "@types/node",
            "@ a.png",
            "@.png",
            "a @",
            "@\"a.png",
            "@\"a\n.png\"",
            "a.png",
            "@pngx",
        ] {
            check(text, &[]);
        }
    }
}
