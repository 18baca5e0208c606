//! Images that a person names in a message: `@shot.png` shows the model that file of the project.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::Failure;
use super::Interrupt;
use super::moments::in_time;
use podbay_event::Kind;
use podbay_llm::Message;
use podbay_tools::ImageError;
use podbay_wire::BytesPath;
use podbay_wire::Image;

/// What the names of images end with.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];
/// Most images of one message.
const MOST: usize = 8;

/// An image on its way into the conversation; its bytes are kept already.
pub(super) struct Shown {
    /// What the log says of it.
    record: Kind,
    message: Message,
}

/// What came of looking at the images of a message.
pub(super) enum Looked {
    All(Vec<Shown>),
    /// The person ended it.
    Stopped,
    /// The time of the task is up.
    Late,
}

impl Agent {
    /// Reads and keeps the images that a message names, before anything of it is told: what cannot
    /// be shown must not be talked about, and once the message is logged only words are left to
    /// write.
    pub(super) async fn look_at(
        &self,
        text: &str,
        begun: Instant,
        interrupt: &Interrupt,
    ) -> Result<Looked, Failure> {
        let paths = named(text);
        if paths.is_empty() {
            return Ok(Looked::All(Vec::new()));
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
            _ if is_late => Ok(Looked::Late),
            _ if is_stopped => Ok(Looked::Stopped),
            images => images.map(Looked::All),
        }
    }

    async fn read_images(
        &self,
        paths: Vec<&str>,
        cancel: &CancellationToken,
    ) -> Result<Vec<Shown>, Failure> {
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
                // By another name the same file, where no link makes it another one.
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
                        format!("{}, which the person shows.", image.path),
                        &image,
                    ));
                    seen.push((folded(path), image));
                    // Keeping and encoding megabytes takes its time: whoever wants to stop this
                    // gets a turn.
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
                // In many projects `@/` is how their own files begin.
                ImageError::Outside if path.starts_with('/') => continue,
                ImageError::Outside => "it leads out of the project".to_owned(),
                ImageError::Blind => "its server does not say that the model sees".to_owned(),
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
                    "the model is not shown `@{path}`: {why}; to it this is a word like any other"
                ),
            });
        }
        Ok(images)
    }

    /// Keeps the bytes of an image under `name`, so that whoever goes on with the session sends
    /// them again.
    pub(super) fn keep_image(&self, name: &str, text: String, image: &Image) -> Shown {
        let media_type = image.kind.media_type();
        let record = match self.pipeline.keep_bytes(name, &image.data.0) {
            Some(artifact) => Kind::ImageShown {
                text: text.clone(),
                media_type: media_type.to_owned(),
                artifact,
            },
            // The log has the words alone then.
            None => Kind::NoteAdded { text: text.clone() },
        };
        Shown {
            record,
            message: Message::image(text, media_type, &image.data.0),
        }
    }

    /// Shows the model images. All of them are logged before the first is written for the model,
    /// which takes its time: a log that ends between two of them lacks the rest.
    pub(super) fn show_images(&mut self, images: Vec<Shown>) {
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

/// Returns the names that a path is made of, as seen from the project's folder, without what leads
/// nowhere.
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

/// Returns the paths of images that a text names, each once: words that begin with `@` and end as
/// images do, or stand in quotes behind it.
fn named(text: &str) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    // Where the last path ended: another one may begin there.
    let mut ended = None;
    for (at, _) in text.match_indices('@') {
        // In `me@example.png` it belongs to a word.
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

/// Returns the word at the beginning, as far as no other image begins in it.
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
    fn images_are_named_by_words_that_begin_with_an_at_sign() {
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
    fn a_path_has_many_names() {
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
    fn other_words_are_words() {
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
