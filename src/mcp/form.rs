//! What a server asks the user for: a flat form, and how an answer in words fills a field of it.

use rmcp::model::ElicitationSchema;
use serde::Deserialize;
use serde_json::Value;

use super::plain_line;

/// Most fields of a form, and most choices of a field.
const MOST_FIELDS: usize = 20;
const MOST_CHOICES: usize = 50;

/// Longest text of a server in a question, in characters.
const LONGEST_MESSAGE: usize = 1000;
const LONGEST_LABEL: usize = 100;
const LONGEST_DESCRIPTION: usize = 300;

/// What leaves a field out.
pub(super) const LEFT_OUT: &str = "-";

/// What a server wants to know.
#[derive(Debug, PartialEq)]
pub(super) struct Form {
    pub(super) message: String,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Field {
    /// As the server calls it.
    pub(super) name: String,
    pub(super) label: String,
    description: String,
    kind: Kind,
    is_required: bool,
    default: Option<Value>,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Text {
        least: usize,
        most: usize,
    },
    Number {
        is_whole: bool,
        least: f64,
        most: f64,
    },
    YesNo,
    OneOf(Vec<Choice>),
    SomeOf {
        choices: Vec<Choice>,
        least: usize,
        most: usize,
    },
}

#[derive(Clone, Debug, PartialEq)]
struct Choice {
    value: String,
    shown: String,
}

/// A field as the protocol has it: the kinds differ in their keys.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Property {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, rename = "enum")]
    values: Vec<String>,
    #[serde(default)]
    enum_names: Vec<String>,
    #[serde(default)]
    one_of: Vec<Titled>,
    #[serde(default)]
    items: Option<Items>,
    #[serde(default)]
    min_length: Option<usize>,
    #[serde(default)]
    max_length: Option<usize>,
    #[serde(default)]
    minimum: Option<f64>,
    #[serde(default)]
    maximum: Option<f64>,
    #[serde(default)]
    min_items: Option<usize>,
    #[serde(default)]
    max_items: Option<usize>,
    #[serde(default)]
    default: Option<Value>,
}

#[derive(Deserialize)]
struct Titled {
    #[serde(rename = "const")]
    value: String,
    title: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Items {
    #[serde(default, rename = "enum")]
    values: Vec<String>,
    #[serde(default)]
    any_of: Vec<Titled>,
}

impl Form {
    /// Reads what a server asks for; the error says why the user cannot be asked so.
    pub(super) fn read(message: &str, schema: &ElicitationSchema) -> Result<Self, String> {
        let mut names: Vec<&String> = schema.properties.keys().collect();
        if let Some(order) = &schema.property_order {
            names.sort_by_key(|name| order.iter().position(|next| next == *name));
        }
        if names.len() > MOST_FIELDS {
            return Err(format!(
                "its form has {} fields, and at most {MOST_FIELDS} are asked for",
                names.len()
            ));
        }
        let required = schema.required.as_deref().unwrap_or_default();
        let field = |name: &String| -> Result<Field, String> {
            let property = serde_json::to_value(&schema.properties[name]);
            let property = property.and_then(serde_json::from_value::<Property>);
            let property = property.map_err(|error| plain_line(&error.to_string(), 200))?;
            Field::read(name, property, required.contains(name))
        };
        Ok(Self {
            message: plain_line(message, LONGEST_MESSAGE),
            fields: names.into_iter().map(field).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the fields in words.
    pub(super) fn words(&self) -> String {
        let words = self.fields.iter().map(|field| {
            let more = if field.is_required {
                ""
            } else {
                ", may be left out"
            };
            format!("{} ({}{more})", field.label, field.kind.words())
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

impl Field {
    fn read(name: &str, property: Property, is_required: bool) -> Result<Self, String> {
        let label = property.title.as_deref().unwrap_or(name);
        let label = Some(plain_line(label, LONGEST_LABEL)).filter(|label| !label.is_empty());
        let description = property.description.as_deref().unwrap_or_default();
        let description = plain_line(description, LONGEST_DESCRIPTION);
        let default = property.default.clone();
        Ok(Self {
            kind: Kind::read(property)?,
            name: name.to_owned(),
            label: label.ok_or("a field of its form has no name")?,
            description,
            is_required,
            default,
        })
    }

    /// Returns the question for this field.
    pub(super) fn question(&self, server: &str) -> String {
        let mut question = format!(
            "The MCP server `{server}` wants: {} ({})",
            self.label,
            self.kind.words()
        );
        if !self.description.is_empty() {
            question.push_str(&format!("\n{}", self.description));
        }
        if let Kind::SomeOf { choices, .. } = &self.kind {
            let shown: Vec<&str> = choices.iter().map(|choice| choice.shown.as_str()).collect();
            question.push_str(&format!(
                "\nSome of these, with commas: {}",
                shown.join(", ")
            ));
        }
        match &self.default {
            Some(default) => question.push_str(&format!(
                "\n{LEFT_OUT} stands for {}",
                plain_line(&default.to_string(), LONGEST_LABEL)
            )),
            None if !self.is_required => question.push_str(&format!("\n{LEFT_OUT} leaves it out")),
            None => {}
        }
        question
    }

    /// Returns the answers to choose from; none where any words may be one.
    pub(super) fn options(&self) -> Vec<String> {
        let mut options: Vec<String> = match &self.kind {
            Kind::YesNo => vec!["yes".to_owned(), "no".to_owned()],
            Kind::OneOf(choices) => choices.iter().map(|choice| choice.shown.clone()).collect(),
            Kind::Text { .. } | Kind::Number { .. } | Kind::SomeOf { .. } => return Vec::new(),
        };
        if self.default.is_some() || !self.is_required {
            options.push(LEFT_OUT.to_owned());
        }
        options
    }

    /// Returns the value of an answer, `None` where it is left out; the error says what is wrong.
    pub(super) fn value(&self, answer: &str) -> Result<Option<Value>, String> {
        let answer = answer.trim();
        if answer == LEFT_OUT && (self.default.is_some() || !self.is_required) {
            return Ok(self.default.clone());
        }
        self.kind.value(answer).map(Some)
    }
}

impl Kind {
    fn read(property: Property) -> Result<Self, String> {
        let by_names = |values: Vec<String>, names: &[String]| {
            let named = values.into_iter().enumerate().map(|(at, value)| Choice {
                shown: plain_line(names.get(at).unwrap_or(&value), LONGEST_LABEL),
                value,
            });
            named.collect::<Vec<_>>()
        };
        let by_titles = |titled: Vec<Titled>| {
            let titled = titled.into_iter().map(|choice| Choice {
                shown: plain_line(&choice.title, LONGEST_LABEL),
                value: choice.value,
            });
            titled.collect::<Vec<_>>()
        };
        let kind = match property.type_.as_str() {
            "string" if !property.one_of.is_empty() => Self::OneOf(by_titles(property.one_of)),
            "string" if !property.values.is_empty() => {
                Self::OneOf(by_names(property.values, &property.enum_names))
            }
            "string" => Self::Text {
                least: property.min_length.unwrap_or(0),
                most: property.max_length.unwrap_or(usize::MAX),
            },
            "integer" | "number" => Self::Number {
                is_whole: property.type_ == "integer",
                least: property.minimum.unwrap_or(f64::NEG_INFINITY),
                most: property.maximum.unwrap_or(f64::INFINITY),
            },
            "boolean" => Self::YesNo,
            "array" => {
                let items = property.items.ok_or("a list of its form has no choices")?;
                let mut choices = by_titles(items.any_of);
                choices.extend(by_names(items.values, &[]));
                Self::SomeOf {
                    least: property.min_items.unwrap_or(0),
                    most: property.max_items.unwrap_or(choices.len()),
                    choices,
                }
            }
            other => {
                return Err(format!(
                    "its form has a field of the type `{}`",
                    plain_line(other, 20)
                ));
            }
        };
        match &kind {
            Self::OneOf(choices) | Self::SomeOf { choices, .. } => are_choices(choices)?,
            Self::Text { .. } | Self::Number { .. } | Self::YesNo => {}
        }
        Ok(kind)
    }

    fn words(&self) -> String {
        match self {
            Self::Text { .. } => "text".to_owned(),
            Self::YesNo => "yes or no".to_owned(),
            Self::OneOf(choices) => format!("one of {}", choices.len()),
            Self::SomeOf { choices, .. } => format!("some of {}", choices.len()),
            Self::Number {
                is_whole,
                least,
                most,
            } => {
                let mut words = if *is_whole {
                    "a whole number"
                } else {
                    "a number"
                }
                .to_owned();
                if least.is_finite() {
                    words.push_str(&format!(" from {least}"));
                }
                if most.is_finite() {
                    words.push_str(&format!(" up to {most}"));
                }
                words
            }
        }
    }

    fn value(&self, answer: &str) -> Result<Value, String> {
        match self {
            Self::Text { least, most } => {
                let length = answer.chars().count();
                if length < *least {
                    Err(format!("It must have at least {least} characters."))
                } else if length > *most {
                    Err(format!("It must have at most {most} characters."))
                } else {
                    Ok(answer.into())
                }
            }
            Self::Number {
                is_whole,
                least,
                most,
            } => {
                let number = answer
                    .parse::<f64>()
                    .ok()
                    .filter(|number| number.is_finite());
                let number = number.ok_or("It must be a number.")?;
                if number < *least || number > *most {
                    return Err(format!("It must be {}.", self.words()));
                }
                if *is_whole {
                    let whole = answer.parse::<i64>();
                    return whole
                        .map(Value::from)
                        .map_err(|_| "It must be a whole number.".to_owned());
                }
                Ok(number.into())
            }
            Self::YesNo => match answer.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("It must be yes or no.".to_owned()),
            },
            Self::OneOf(choices) => chosen(choices, answer).map(Value::from),
            Self::SomeOf {
                choices,
                least,
                most,
            } => {
                let words = answer
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                let values: Vec<String> = words
                    .map(|word| chosen(choices, word))
                    .collect::<Result<_, _>>()?;
                if values.len() < *least || values.len() > *most {
                    return Err(format!("From {least} to {most} can be chosen."));
                }
                Ok(values.into())
            }
        }
    }
}

/// Refuses choices that cannot be shown, or of which two look the same.
fn are_choices(choices: &[Choice]) -> Result<(), String> {
    let mut shown: Vec<&str> = choices.iter().map(|choice| choice.shown.as_str()).collect();
    shown.sort_unstable();
    shown.dedup();
    if shown.len() != choices.len() || shown.contains(&"") || shown.contains(&LEFT_OUT) {
        return Err("its form has choices that cannot be told apart".to_owned());
    }
    if choices.is_empty() || choices.len() > MOST_CHOICES {
        return Err(format!(
            "its form has a field with {} choices, and 1 to {MOST_CHOICES} are asked for",
            choices.len()
        ));
    }
    Ok(())
}

fn chosen(choices: &[Choice], word: &str) -> Result<String, String> {
    let found = choices
        .iter()
        .find(|choice| choice.shown == word)
        .or_else(|| choices.iter().find(|choice| choice.value == word));
    let found = found.map(|choice| choice.value.clone());
    found.ok_or_else(|| format!("`{}` is none of the choices.", plain_line(word, 60)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(properties: &Value) -> Result<Form, String> {
        let schema = json!({"type": "object", "properties": properties, "required": ["a"]});
        let schema = serde_json::from_value(schema).expect("a schema of the protocol");
        Form::read("Who\u{1b}[2J\nare you?", &schema)
    }

    #[track_caller]
    fn check(property: &Value, answer: &str, expected: Result<Value, &str>) {
        let form = form(&json!({"a": property})).expect("a form");
        let value = form.fields[0].value(answer);
        match expected {
            Ok(expected) => assert_eq!(value, Ok(Some(expected)), "{answer}"),
            Err(words) => assert!(
                value.as_ref().is_err_and(|why| why.contains(words)),
                "{answer}: {value:?}"
            ),
        }
    }

    #[test]
    fn an_answer_in_words_is_a_value_of_the_field_s_type() {
        let text = json!({"type": "string", "minLength": 2, "maxLength": 4});
        check(&text, " bob ", Ok(json!("bob")));
        check(&text, "b", Err("at least 2"));
        check(&text, "bobby", Err("at most 4"));
        let age = json!({"type": "integer", "minimum": 1, "maximum": 9});
        check(&age, "7", Ok(json!(7)));
        check(&age, "10", Err("a whole number from 1 up to 9"));
        check(&age, "1.5", Err("whole"));
        check(&age, "seven", Err("a number"));
        check(&json!({"type": "number"}), "1.5", Ok(json!(1.5)));
        check(&json!({"type": "number"}), "inf", Err("a number"));
        check(&json!({"type": "boolean"}), "Yes", Ok(json!(true)));
        check(&json!({"type": "boolean"}), "maybe", Err("yes or no"));
        let colour = json!({"type": "string", "oneOf": [{"const": "#f00", "title": "red"}, {"const": "#00f", "title": "blue"}]});
        check(&colour, "blue", Ok(json!("#00f")));
        check(&colour, "#f00", Ok(json!("#f00")));
        check(&colour, "green", Err("none of the choices"));
        let plain = json!({"type": "string", "enum": ["x", "y"]});
        check(&plain, "y", Ok(json!("y")));
        let some = json!({"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["x", "y"]}});
        check(&some, "x, y", Ok(json!(["x", "y"])));
        check(&some, ",", Err("From 1 to 2"));
    }

    #[test]
    fn only_what_may_be_left_out_is_left_out() {
        let form = form(&json!({
            "a": {"type": "string"},
            "b": {"type": "string"},
            "c": {"type": "boolean", "default": true},
        }))
        .expect("a form");
        let values: Vec<_> = form
            .fields
            .iter()
            .map(|field| field.value(LEFT_OUT))
            .collect();
        assert_eq!(
            values,
            [Ok(Some(json!("-"))), Ok(None), Ok(Some(json!(true)))]
        );
        assert_eq!(form.fields[2].options(), ["yes", "no", "-"]);
        assert_eq!(
            form.words(),
            "a (text), b (text, may be left out), c (yes or no, may be left out)"
        );
    }

    #[test]
    fn text_of_a_server_is_bounded_and_plain_and_its_forms_are_small() {
        let long = "x".repeat(5000);
        let bounded = form(&json!({"a": {"type": "string", "title": long, "description": "see\u{1b}[31m\nAllow?"}}))
            .expect("a form");
        assert_eq!(bounded.message, "Who [2J are you?");
        let question = bounded.fields[0].question("x");
        assert!(
            question.len() < 600
                && question.ends_with("see [31m Allow?")
                && !question.contains('\u{1b}'),
            "{question}"
        );
        let many: serde_json::Map<_, _> = (0..21)
            .map(|n| (format!("f{n}"), json!({"type": "boolean"})))
            .collect();
        assert!(form(&many.into()).is_err_and(|why| why.contains("21 fields")));
        let choices: Vec<String> = (0..51).map(|n| n.to_string()).collect();
        let many = form(&json!({"a": {"type": "string", "enum": choices}}));
        assert!(many.is_err_and(|why| why.contains("51 choices")));
        let alike = form(&json!({"a": {"type": "string", "enum": ["x", "x\u{200b}"]}}));
        assert!(alike.is_err_and(|why| why.contains("told apart")));
    }
}
