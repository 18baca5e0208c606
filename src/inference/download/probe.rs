//! The first request to a source: the file's size and hash, and whether the server supports ranges.

use reqwest::StatusCode;

use super::AttemptError;
use super::ExpectedFile;
use super::partial_file::Goal;
use super::remedies::ELSEWHERE;
use super::remedies::LOGIN;
use super::remedies::NOT_IT;
use super::remedies::UNLISTED;
use super::request::Requester;
use super::request::text;
use super::segment::PAGE;
use super::segment::is_page;
use super::segment::parse_range;
use super::segment::wrong_size;
use crate::gguf::MAGIC;

/// What a source says about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceInfo {
    pub(super) goal: Goal,
    /// Whether the hash came from the hub just now.
    pub(super) announced: bool,
    pub(super) has_parts: bool,
}

/// Requests the first bytes of the file. With `is_model`, they must be those of a GGUF file.
pub(super) async fn probe(
    requester: &Requester<'_>,
    expected: &ExpectedFile,
    is_model: bool,
) -> Result<SourceInfo, AttemptError> {
    let last = MAGIC.len() - 1;
    let (mut response, linked) = requester
        .get(Some(&format!("bytes=0-{last}")), None)
        .await?;
    if is_page(&response) {
        return Err(requester.fatal(PAGE, LOGIN));
    }
    let has_parts = response.status() == StatusCode::PARTIAL_CONTENT;
    let told = match response.status() {
        StatusCode::RANGE_NOT_SATISFIABLE => {
            return Err(requester.fatal("the server's file is empty", NOT_IT));
        }
        StatusCode::PARTIAL_CONTENT => text(&response, "content-range")
            .and_then(parse_range)
            .and_then(|(_, total)| total),
        _ => response.content_length(),
    };
    let pairs = [
        (told, linked.size, ELSEWHERE),
        (told, expected.size, UNLISTED),
        (linked.size, expected.size, UNLISTED),
    ];
    for (size, other, remedy) in pairs {
        if let (Some(size), Some(other)) = (size, other)
            && size != other
        {
            return Err(requester.fatal(wrong_size(size, other), remedy));
        }
    }
    let Some(size) = told.or(linked.size).or(expected.size) else {
        return Err(requester.fatal(
            "the server does not say how large the file is, so a complete download could not be recognized",
            ELSEWHERE,
        ));
    };
    if let (Some(announced), Some(expected)) = (&linked.sha256, &expected.sha256)
        && announced != expected
    {
        let problem = format!(
            "the hub has another file than the one that is known: its SHA-256 is {announced} instead of {expected}"
        );
        return Err(requester.fatal(problem, UNLISTED));
    }
    let strong = |tag: &&str| tag.starts_with('"');
    let validator = text(&response, "etag").filter(strong).map(str::to_owned);
    if is_model {
        let mut head = Vec::new();
        while head.len() < MAGIC.len() {
            match tokio::time::timeout(requester.idle, response.chunk()).await {
                Ok(Ok(Some(bytes))) => head.extend_from_slice(&bytes),
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(AttemptError::Early(super::request::chain(&error))),
                Err(_) => {
                    return Err(AttemptError::Early(format!(
                        "the server said nothing for {} s",
                        requester.idle.as_secs_f32()
                    )));
                }
            }
        }
        if !head.starts_with(MAGIC) {
            return Err(requester.fatal("the server's file is not a GGUF file", NOT_IT));
        }
    }
    let announced = linked.sha256.is_some();
    let sha256 = expected.sha256.clone().or(linked.sha256);
    Ok(SourceInfo {
        goal: Goal {
            size,
            sha256,
            validator,
        },
        announced,
        has_parts,
    })
}
