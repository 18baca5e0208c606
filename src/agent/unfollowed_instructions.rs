//! Detects instruction files that look as if they were followed and are not: names in another case.

use tokio_util::sync::CancellationToken;

use super::prompt::WITHIN;
use podbay_sandbox as sandbox;
use podbay_tools::Pipeline;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Glob;
use podbay_wire::INSTRUCTIONS;
use podbay_wire::OTHER_INSTRUCTIONS;
use podbay_wire::Output;

/// Maximum number of files named.
const MOST_NAMED: usize = 3;

/// Maximum number of files searched for, enough to say that there are more.
const MOST_FOUND: u32 = 100;

/// Searches for them and returns the warning; `followed` are the files that are followed, under all
/// their names.
pub(super) async fn warning(
    pipeline: &Pipeline,
    followed: &[&BytesPath],
    cancel: &CancellationToken,
) -> Result<Option<String>, sandbox::Error> {
    let names = names().map(in_any_case).collect::<Vec<_>>().join(",");
    let call = Glob {
        pattern: format!("**/{{{names}}}"),
        path: BytesPath::from_text("."),
        exclude: None,
        include_ignored: false,
        max_results: MOST_FOUND,
    };
    let Some(Output::Files(found)) = pipeline
        .peek(Call::Glob(call), Box::new(|_, _| {}), cancel, WITHIN)
        .await?
    else {
        return Ok(None);
    };
    Ok(said(found.paths, followed))
}

/// The file names that are followed at the top of a project.
fn names() -> impl Iterator<Item = &'static str> {
    [INSTRUCTIONS]
        .into_iter()
        .chain(OTHER_INSTRUCTIONS)
        .filter(|name| !name.contains('/'))
}

/// Returns a case-insensitive pattern for a name.
fn in_any_case(name: &str) -> String {
    let either = |letter: char| {
        if letter.is_ascii_alphabetic() {
            format!(
                "[{}{}]",
                letter.to_ascii_uppercase(),
                letter.to_ascii_lowercase()
            )
        } else {
            letter.to_string()
        }
    };
    name.chars().map(either).collect()
}

fn said(mut found: Vec<BytesPath>, followed: &[&BytesPath]) -> Option<String> {
    // Files at the top with exactly these names are reported one by one, and those in folders are
    // followed when a file there is touched.
    let is_exact = |path: &BytesPath| {
        let name = path.as_bytes().rsplit(|byte| *byte == b'/').next();
        names().any(|known| name == Some(known.as_bytes()))
    };
    found.retain(|path| !followed.contains(&path) && !is_exact(path));
    found.sort();
    let mut named: Vec<String> = found
        .iter()
        .take(MOST_NAMED)
        .map(ToString::to_string)
        .collect();
    named.extend((found.len() > MOST_NAMED).then(|| format!("{} more", found.len() - MOST_NAMED)));
    let is = if found.len() == 1 { "is" } else { "are" };
    (!found.is_empty()).then(|| {
        format!(
            "{} {is} not followed: only {INSTRUCTIONS} and {} are, with exactly these names",
            named.join(", "),
            OTHER_INSTRUCTIONS[0]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: &[&str], expected: Option<&str>) {
        let followed = BytesPath::from_text("docs/agents.md");
        let said = said(
            found
                .iter()
                .map(|path| BytesPath::from_text(path))
                .collect(),
            &[&followed],
        );
        let named = said
            .as_deref()
            .and_then(|said| said.split_once(" not followed: only PODBAY.md and AGENTS.md are"));
        assert_eq!(named.map(|(named, _)| named), expected, "{said:?}");
    }

    #[test]
    fn instructions_in_another_case_are_named() {
        check(&["agents.md"], Some("agents.md is"));
        check(&["AGENTS.md", "sub/AGENTS.md"], None);
        check(&["AGENTS.md", "sub/agents.md"], Some("sub/agents.md is"));
        check(
            &["podbay.MD", "a/b/Agents.md", "AGENTS.md"],
            Some("a/b/Agents.md, podbay.MD are"),
        );
        check(
            &[
                "5/Agents.md",
                "4/Agents.md",
                "3/Agents.md",
                "2/Agents.md",
                "1/Agents.md",
            ],
            Some("1/Agents.md, 2/Agents.md, 3/Agents.md, 2 more are"),
        );
        // A link leads to it.
        check(&["docs/agents.md", "PODBAY.md", "AGENTS.md"], None);
        check(&[], None);
    }
}
