//! The first request to a source: the file's size and hash, and whether the server supports ranges.

use reqwest::StatusCode;

use super::Ended;
use super::Expected;
use super::ask::Asker;
use super::ask::text;
use super::part::Goal;
use super::remedy::ELSEWHERE;
use super::remedy::LOGIN;
use super::remedy::NOT_IT;
use super::remedy::UNLISTED;
use super::segment::PAGE;
use super::segment::is_page;
use super::segment::parse_range;
use super::segment::wrong_size;
use crate::gguf::MAGIC;

/// What a source says about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) goal: Goal,
    /// Whether the hash came from the hub just now.
    pub(super) announced: bool,
    pub(super) has_parts: bool,
}

/// Requests the first bytes of the file. With `is_model`, they must be those of a GGUF file.
pub(super) async fn probe(
    asker: &Asker<'_>,
    expected: &Expected,
    is_model: bool,
) -> Result<Found, Ended> {
    let last = MAGIC.len() - 1;
    let (mut response, linked) = asker.get(Some(&format!("bytes=0-{last}")), None).await?;
    if is_page(&response) {
        return Err(asker.fatal(PAGE, LOGIN));
    }
    let has_parts = response.status() == StatusCode::PARTIAL_CONTENT;
    let told = match response.status() {
        StatusCode::RANGE_NOT_SATISFIABLE => {
            return Err(asker.fatal("the server's file is empty", NOT_IT));
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
            return Err(asker.fatal(wrong_size(size, other), remedy));
        }
    }
    let Some(size) = told.or(linked.size).or(expected.size) else {
        return Err(asker.fatal(
            "the server does not say how large the file is, so nobody could tell when it is whole",
            ELSEWHERE,
        ));
    };
    if let (Some(announced), Some(expected)) = (&linked.sha256, &expected.sha256)
        && announced != expected
    {
        let problem = format!(
            "the hub has another file than the one that is known: its SHA-256 is {announced} instead of {expected}"
        );
        return Err(asker.fatal(problem, UNLISTED));
    }
    let strong = |tag: &&str| tag.starts_with('"');
    let validator = text(&response, "etag").filter(strong).map(str::to_owned);
    if is_model {
        let mut head = Vec::new();
        while head.len() < MAGIC.len() {
            match tokio::time::timeout(asker.idle, response.chunk()).await {
                Ok(Ok(Some(bytes))) => head.extend_from_slice(&bytes),
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(Ended::Early(super::ask::chain(&error))),
                Err(_) => {
                    return Err(Ended::Early(format!(
                        "the server said nothing for {} s",
                        asker.idle.as_secs_f32()
                    )));
                }
            }
        }
        if !head.starts_with(MAGIC) {
            return Err(asker.fatal("what the server sends is no GGUF file", NOT_IT));
        }
    }
    let announced = linked.sha256.is_some();
    let sha256 = expected.sha256.clone().or(linked.sha256);
    Ok(Found {
        goal: Goal {
            size,
            sha256,
            validator,
        },
        announced,
        has_parts,
    })
}
