//! Prompts of a server: texts that the user sends as a message, by a slash command.

use rmcp::model::ContentBlock;
use rmcp::model::GetPromptResult;
use rmcp::model::Prompt;
use serde_json::Map;
use serde_json::Value;

use super::content;
use super::plain_line;

/// Most prompts of one server.
const MOST_PROMPTS: usize = 64;

/// Most arguments of a prompt.
const MOST_ARGUMENTS: usize = 16;

/// A prompt, as the user is offered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptDefinition {
    /// `mcp__SERVER__PROMPT`.
    pub name: String,
    pub server: String,
    /// As the server calls it.
    pub(super) prompt: String,
    pub description: String,
    pub arguments: Vec<PromptArgument>,
}

/// An argument: a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub is_required: bool,
}

impl PromptDefinition {
    /// Returns what stands behind the name in a line of help.
    pub fn usage(&self) -> String {
        let word = |argument: &PromptArgument| {
            if argument.is_required {
                format!(" {}", argument.name.to_uppercase())
            } else {
                format!(" [{}]", argument.name.to_uppercase())
            }
        };
        self.arguments.iter().map(word).collect()
    }

    /// Gives each argument a word, and the last one the rest; the error says what is missing.
    pub(super) fn fill(&self, words: &str) -> Result<Map<String, Value>, String> {
        let mut rest = words.trim();
        let mut filled = Map::new();
        for (number, argument) in self.arguments.iter().enumerate() {
            let is_last = number + 1 == self.arguments.len();
            let (word, behind) = match rest.split_once(char::is_whitespace) {
                Some((word, behind)) if !is_last => (word, behind.trim_start()),
                _ => (rest, ""),
            };
            rest = behind;
            if !word.is_empty() {
                filled.insert(argument.name.clone(), Value::String(word.to_owned()));
            } else if argument.is_required {
                return Err(format!("it takes{}", self.usage()));
            }
        }
        if !rest.is_empty() {
            return Err("it takes no words".to_owned());
        }
        Ok(filled)
    }
}

/// Returns the prompts that can be offered, in the order of the server.
pub(super) fn definitions(server: &str, listed: &[Prompt]) -> Vec<PromptDefinition> {
    let is_plain = |name: &str| {
        let is_usual =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        !name.is_empty() && name.len() <= 64 && name.bytes().all(is_usual)
    };
    let definition = |prompt: &Prompt| {
        let arguments = prompt.arguments.as_deref().unwrap_or_default();
        let is_fit = is_plain(&prompt.name)
            && arguments.len() <= MOST_ARGUMENTS
            && arguments.iter().all(|argument| is_plain(&argument.name));
        is_fit.then(|| PromptDefinition {
            name: format!("mcp__{server}__{}", prompt.name),
            server: server.to_owned(),
            prompt: prompt.name.clone(),
            description: plain_line(prompt.description.as_deref().unwrap_or_default(), 200),
            arguments: arguments
                .iter()
                .map(|argument| PromptArgument {
                    name: argument.name.clone(),
                    is_required: argument.required.unwrap_or_default(),
                })
                .collect(),
        })
    };
    listed
        .iter()
        .filter_map(definition)
        .take(MOST_PROMPTS)
        .collect()
}

/// Returns the text of a prompt: what its messages say, one behind the other.
pub(super) fn text(result: &GetPromptResult) -> String {
    let said = result
        .messages
        .iter()
        .map(|message| match &message.content {
            ContentBlock::Text(_) | ContentBlock::Resource(_) => {
                content::part_text(&message.content)
            }
            _ => "[a part that is no text]".to_owned(),
        });
    content::joined(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::Role;
    use serde_json::json;

    fn prompt(value: Value) -> Prompt {
        serde_json::from_value(value).expect("a prompt")
    }

    #[test]
    fn words_fill_arguments_and_the_last_takes_the_rest() {
        let listed = [
            prompt(
                json!({"name": "fix", "description": "Fixes\u{1b}[2J it", "arguments": [
                {"name": "file", "required": true}, {"name": "how"}]}),
            ),
            prompt(json!({"name": "plain"})),
            prompt(json!({"name": "a b"})),
        ];
        let found = definitions("x", &listed);
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["mcp__x__fix", "mcp__x__plain"]);
        assert_eq!(
            (found[0].usage().as_str(), found[0].description.as_str()),
            (" FILE [HOW]", "Fixes [2J it")
        );
        let filled = |one: usize, words: &str| found[one].fill(words).map(Value::Object);
        assert_eq!(
            filled(0, "a.rs  with care "),
            Ok(json!({"file": "a.rs", "how": "with care"}))
        );
        assert_eq!(filled(0, "a.rs"), Ok(json!({"file": "a.rs"})));
        assert_eq!(filled(0, ""), Err("it takes FILE [HOW]".to_owned()));
        assert_eq!(filled(1, ""), Ok(json!({})));
        assert!(filled(1, "more").is_err());
    }

    #[test]
    fn the_messages_of_a_prompt_are_one_text() {
        let result: GetPromptResult = serde_json::from_value(json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "Look at\u{202e} it."}},
            {"role": "assistant", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
        ]}))
        .expect("a result");
        assert_eq!(text(&result), "Look at it.\n[a part that is no text]");
        assert_eq!(result.messages[0].role, Role::User);
    }
}
