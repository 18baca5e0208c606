//! Images that a person names in a message: `@shot.png` shows the model that file of the project.

use super::Agent;
use super::Failure;
use super::Interrupt;
use crate::tools::Unseen;
use crate::wire::BytesPath;
use crate::wire::Image;

/// What the names of images end with.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];
/// Most images of one message.
const MOST: usize = 8;

impl Agent {
    /// Reads the images that a message names, before anything of it is told: one that cannot be shown must not be talked about.
    pub(super) async fn look_at(&self, text: &str, interrupt: &Interrupt) -> Result<Vec<Image>, Failure> {
        let paths = named(text);
        if paths.len() > MOST {
            return Err(Failure::Images { problem: format!("{} images are named in one message, and {MOST} can be shown", paths.len()) });
        }
        let cancel = interrupt.step();
        let mut images = Vec::with_capacity(paths.len());
        for path in paths {
            match self.pipeline.look(BytesPath::from_text(path), &cancel).await {
                Ok(image) => images.push(image),
                Err(Unseen::Sandbox(error)) => return Err(Failure::Sandbox(error)),
                Err(Unseen::Blind) => {
                    return Err(Failure::Images {
                        problem: format!("the model cannot be shown `@{path}`: its server does not say that it sees"),
                    });
                }
                Err(Unseen::Fault(problem)) => return Err(Failure::Images { problem: format!("`@{path}` cannot be shown: {problem}") }),
            }
        }
        interrupt.idle();
        Ok(images)
    }
}

/// Returns the paths of images that a text names, each once: words that begin with `@` and end as images do, or stand in quotes behind it.
fn named(text: &str) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices('@') {
        // In `me@example.png` it belongs to a word.
        let begins = text[..at].chars().next_back().is_none_or(|before| before.is_whitespace() || "([{\"'`,;:".contains(before));
        let rest = &text[at + 1..];
        let path = if let Some(quoted) = rest.strip_prefix('"') {
            quoted.split_once('"').map_or("", |(path, _)| path)
        } else {
            let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
            word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '`'])
        };
        if begins && is_image(path) && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn is_image(path: &str) -> bool {
    let ends = |ending: &&str| {
        let begin = path.len().checked_sub(ending.len()).filter(|begin| *begin > 0);
        begin.and_then(|begin| path.get(begin..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
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
        check("@a/b.JPG and (@c.webp), then @a/b.JPG again.", &["a/b.JPG", "c.webp"]);
        check("see @\"my shots/one two.jpeg\" and `@x.gif`", &["my shots/one two.jpeg", "x.gif"]);
        check("look:\n@é.png", &["é.png"]);
    }

    #[test]
    fn other_words_are_words() {
        for text in
            ["mail me@example.png", "@main.rs", "@types/node", "@ a.png", "@.png", "a @", "@\"a.png", "@\"a\n.png\"", "a.png", "@pngx"]
        {
            check(text, &[]);
        }
    }
}
