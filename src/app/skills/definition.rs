//! A `SKILL.md`: frontmatter with `name` and `description` among keys of other programs, then the
//! steps in Markdown.

use podbay_agent::VisibleText;
use podbay_event::frontmatter_among_others;
use podbay_llm::control::ControlTokens;

/// Whose a skill is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillSource {
    User,
    /// Its text is as trusted as the other files of the project.
    Project,
}

const NAME_MAX: usize = 64;
/// Most letters of a description.
const DESCRIPTION_MAX: usize = 1024;

/// What a `SKILL.md` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SkillText {
    pub(super) name: String,
    /// One line.
    pub(super) description: String,
    pub(super) steps: String,
    /// What was removed from it, in words for the user.
    pub(super) warning: Option<String>,
}

/// Reads the text of a `SKILL.md` in a folder of this name; `path` is how the user knows the file.
pub(super) fn parse(text: &str, folder: &str, path: &str) -> Result<SkillText, String> {
    let visible = VisibleText::of(text);
    let warning = visible.warning(path);
    let ([name, description], body) =
        frontmatter_among_others(&visible.text, ["name", "description"])?;
    let name = name.unwrap_or_else(|| folder.to_owned());
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_name) {
        return Err(format!(
            "its name is not made of 1 to {NAME_MAX} lower-case letters, digits and hyphens"
        ));
    }
    let description = description.ok_or("its frontmatter has no `description`")?;
    let description: Vec<&str> = description.split_whitespace().collect();
    let description = description.join(" ");
    if description.is_empty() || description.chars().count() > DESCRIPTION_MAX {
        return Err(format!(
            "its description has no letters, or more than {DESCRIPTION_MAX}"
        ));
    }
    let steps = body.trim();
    if steps.is_empty() {
        return Err("it has no steps below its frontmatter".to_owned());
    }
    let plain = |text: &str| ControlTokens::default().neutralise(text).into_owned();
    Ok(SkillText {
        name,
        description: plain(&description),
        steps: plain(steps),
        warning,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_has_a_name_a_description_and_steps() {
        let text = "---\nname: pdf-forms\ndescription: >\n  Fills forms.\n  All kinds.\nlicense: MIT\n---\n\n# Steps\n\n1. Run it.\n";
        let skill = parse(text, "folder", "SKILL.md").expect("a skill");
        assert_eq!(skill.name, "pdf-forms");
        assert_eq!(skill.description, "Fills forms. All kinds.");
        assert_eq!(skill.steps, "# Steps\n\n1. Run it.");
        assert_eq!(skill.warning, None);
        let skill = parse("---\ndescription: d\n---\nx", "folder", "SKILL.md").expect("a skill");
        assert_eq!(skill.name, "folder");
    }

    #[test]
    fn what_cannot_be_seen_and_control_tokens_reach_no_model() {
        let text = "---\nname: a\ndescription: d\u{202e}e <|im_start|>\n---\nobey\u{e0041}\u{1b}[2J <|im_end|>\n";
        let skill = parse(text, "a", "a/SKILL.md").expect("a skill");
        assert!(skill.description.starts_with("de "), "{skill:?}");
        assert!(skill.steps.starts_with("obey[2J "), "{skill:?}");
        assert!(!format!("{skill:?}").contains("<|im_"), "{skill:?}");
        let warning = skill.warning.expect("it is said");
        assert!(
            warning.starts_with("a/SKILL.md contains 3 invisible characters"),
            "{warning}"
        );
    }

    #[test]
    fn what_is_no_skill_is_refused_with_the_reason() {
        for (text, reason) in [
            ("Do it.", "does not begin with frontmatter"),
            ("---\nname: a\n---\nx", "no `description`"),
            ("---\nname: ../a\ndescription: d\n---\nx", "its name is not"),
            ("---\nname: A\ndescription: d\n---\nx", "its name is not"),
            ("---\nname: a\ndescription:\n---\nx", "has no letters"),
            ("---\nname: a\ndescription: d\n---\n \n", "it has no steps"),
        ] {
            let problem = parse(text, "a", "SKILL.md").expect_err(reason);
            assert!(problem.contains(reason), "{problem}");
        }
        let long = format!("---\ndescription: {}\n---\nx", "x".repeat(1025));
        parse(&long, "a", "SKILL.md").expect_err("too long");
    }
}
