//! Skills, as a model is offered them and as it reads the one that it chose.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::dispatch::Workspace;
use super::render::Rendered;
use podbay_wire::Call;
use podbay_wire::Output;
use podbay_wire::PlaceSkill;
use podbay_wire::PlacedFile;

/// Most bytes that the offer of all skills takes, and most letters of one description in it.
const OFFER_MAX: usize = 3000;
const DESCRIPTION_MAX: usize = 160;
/// Most files that are named with where they are.
const MOST_NAMED: usize = 16;

/// A skill that a model may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillOffer {
    /// Lower-case letters, digits and hyphens.
    pub name: String,
    /// One line.
    pub description: String,
    /// Whether it is the project's, which is untrusted.
    pub of_project: bool,
}

/// A skill that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    pub name: String,
    /// What the model reads.
    pub text: String,
    /// What is put into the sandbox.
    pub files: Vec<PlacedFile>,
    /// What of its files is left out, and why.
    pub left_out: Vec<String>,
}

/// Tells the model which skills there are: with descriptions as long as there is room, then by name.
pub(super) fn offer(skills: &[SkillOffer]) -> String {
    let mut words = String::from("One of: ");
    for (n, skill) in skills.iter().enumerate() {
        let gap = if n == 0 { "" } else { "; " };
        let whose = if skill.of_project {
            "the project's: "
        } else {
            ""
        };
        let description = match skill.description.char_indices().nth(DESCRIPTION_MAX) {
            Some((end, _)) => format!("{}…", &skill.description[..end]),
            None => skill.description.clone(),
        };
        let whole = format!("{gap}{} ({whose}{description})", skill.name);
        let short = format!("{gap}{}", skill.name);
        if words.len() + whole.len() <= OFFER_MAX * 3 / 4 {
            words.push_str(&whole);
        } else if words.len() + short.len() <= OFFER_MAX {
            words.push_str(&short);
        } else {
            words.push_str(&format!("; and {} more", skills.len() - n));
            break;
        }
    }
    words
}

/// Puts the files of a skill into the sandbox, and returns what the model reads of it. Without the
/// files there are still its steps.
pub(super) async fn place(
    skill: Skill,
    workspace: &dyn Workspace,
    within: Duration,
    cancel: &CancellationToken,
) -> Rendered {
    let Skill {
        name,
        text,
        files,
        left_out,
    } = skill;
    let mut rendered = Rendered::said(Ok(text));
    for problem in &left_out {
        rendered.note(&format!("left out of its files: {problem}"));
    }
    if files.is_empty() {
        return rendered;
    }
    let paths = files.iter().take(MOST_NAMED).map(|file| file.path.clone());
    let mut named = paths.collect::<Vec<_>>().join(", ");
    if files.len() > MOST_NAMED {
        named.push_str(&format!(" and {} more", files.len() - MOST_NAMED));
    }
    let call = Call::PlaceSkill(PlaceSkill { name, files });
    let placed = workspace.call(call, Box::new(|_, _| {}), cancel, within);
    rendered.note(&match placed.await {
        Ok(Output::Placed(placed)) => format!(
            "its files are in the sandbox, in {}: {named}; run them with bash",
            shown(&placed.path.to_string())
        ),
        Ok(Output::Fault(fault)) => format!(
            "its files ({named}) are not in the sandbox: {}",
            shown(&fault.to_string())
        ),
        Ok(_) => format!("its files ({named}) are not in the sandbox"),
        Err(error) => format!("its files ({named}) are not in the sandbox: {error}"),
    });
    rendered
}

/// Bounds what the guest says.
fn shown(words: &str) -> String {
    words.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, description: &str, of_project: bool) -> SkillOffer {
        SkillOffer {
            name: name.to_owned(),
            description: description.to_owned(),
            of_project,
        }
    }

    #[test]
    fn skills_are_offered_with_whose_they_are() {
        let skills = [
            skill("pdf", "Fills forms", false),
            skill("release", "Makes a release", true),
        ];
        assert_eq!(
            offer(&skills),
            "One of: pdf (Fills forms); release (the project's: Makes a release)"
        );
    }

    #[test]
    fn the_offer_of_many_skills_is_bounded_and_says_how_many_are_missing() {
        let many: Vec<SkillOffer> = (0..200)
            .map(|n| skill(&format!("skill-number-{n}"), &"ä".repeat(1000), true))
            .collect();
        let words = offer(&many);
        assert!(words.len() <= OFFER_MAX + 20, "{}", words.len());
        assert!(
            words.contains("skill-number-0 (the project's: ää"),
            "{words}"
        );
        assert!(words.contains("; skill-number-20; "), "{words}");
        assert!(words.ends_with(" more"), "{words}");
    }
}
