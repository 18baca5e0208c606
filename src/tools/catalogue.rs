use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::Options;
use super::ToolSet;
use super::agent_types::AgentScope;
use super::agent_types::AgentType;
use super::argument_names;
use super::definitions;
use super::definitions::install_dependencies;
use super::definitions::memory_save;
use super::definitions::more_tools;
use super::definitions::more_tools::Wrapped;
use super::definitions::network_diagnostics;
use super::definitions::sandbox_run;
use super::definitions::spawn_agent;
use super::definitions::use_skill;
use super::definitions::web_fetch;
use super::definitions::web_search;
use super::foreign_formats;
use super::foreign_tools::ForeignTool;
use super::foreign_tools::ForeignTools;
use super::json_file;
use super::repair;
use super::skill;
use super::skill::SkillOffer;
use super::tool::Tool;
use podbay_llm::ToolSpec;
use podbay_llm::control::ControlTokens;
use podbay_llm::text;
use podbay_policy::Action;
use podbay_policy::FindTools;
use podbay_policy::HostCall;

/// Tools that are of no use without a network.
const NETWORK_TOOLS: [&str; 4] = [
    web_search::NAME,
    install_dependencies::NAME,
    web_fetch::NAME,
    network_diagnostics::NAME,
];

/// The tools of one session, in a fixed order.
pub struct Catalogue {
    /// Listed in the model's requests.
    tools: Vec<Tool>,
    /// Reachable through `more_tools`.
    others: Vec<Tool>,
    /// Denied as a whole: not listed; a call returns the reason for the denial.
    denied: Vec<Tool>,
    /// Tools of MCP servers.
    foreign: ForeignTools,
    options: Options,
    /// Control tokens that were neutralised in what the model reads.
    tokens: ControlTokens,
}

/// Why a call cannot be parsed; the text is for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidCall(pub(super) String);

/// Arguments that fit the tool's schema.
struct Fields<'a> {
    tool: &'a Tool,
    value: Value,
    /// How the arguments differ from what was sent, one line each.
    notes: Vec<String>,
}

/// A parsed call.
#[derive(Debug)]
pub(super) struct ParsedCall {
    /// The tool's own name.
    pub(super) name: Cow<'static, str>,
    /// The call as it was written, where it was wrapped in `more_tools`.
    pub(super) inner: Option<Wrapped>,
    pub(super) action: Action,
    /// How the call differs from what was sent, one line each; part of the result.
    pub(super) notes: Vec<String>,
}

impl Catalogue {
    pub fn new(options: &Options) -> Self {
        let (mut tools, others): (Vec<Tool>, Vec<Tool>) = definitions::all(options)
            .into_iter()
            .partition(|tool| tool.smallest_set <= options.set);
        if options.set == ToolSet::Small {
            tools.iter_mut().for_each(Tool::make_small);
        }
        Self {
            tools,
            others,
            denied: Vec::new(),
            foreign: ForeignTools::default(),
            options: options.clone(),
            tokens: ControlTokens::default(),
        }
    }

    /// Keeps only the named tools, for tasks that need few.
    #[must_use]
    pub fn only(mut self, names: &[&str]) -> Self {
        self.tools.retain(|tool| names.contains(&tool.name));
        self.others.clear();
        self
    }

    /// Stops listing these tools, all of whose calls are denied.
    #[must_use]
    pub fn without(mut self, denied: &BTreeSet<&str>) -> Self {
        let is_denied = |tool: &mut Tool| denied.contains(tool.name);
        self.denied.extend(self.tools.extract_if(.., is_denied));
        self.denied.extend(self.others.extract_if(.., is_denied));
        self
    }

    /// Takes out the tool that saves notes for later sessions, which the user has switched off.
    #[must_use]
    pub fn without_memory(mut self) -> Self {
        self.tools.retain(|tool| tool.name != memory_save::NAME);
        self.others.retain(|tool| tool.name != memory_save::NAME);
        self
    }

    /// Takes out the tool that starts agents, which is not offered here.
    #[must_use]
    pub fn without_agents(mut self) -> Self {
        self.tools.retain(|tool| tool.name != spawn_agent::NAME);
        self.others.retain(|tool| tool.name != spawn_agent::NAME);
        self
    }

    /// Tells the model of these types of agents.
    #[must_use]
    pub fn with_agents(mut self, types: &[AgentType]) -> Self {
        let words = spawn_agent::types(types);
        let own = self.tools.iter_mut().chain(&mut self.others);
        for tool in own.filter(|tool| tool.name == spawn_agent::NAME) {
            tool.describe_argument("agent_type", &words);
        }
        self
    }

    /// Tells the model of these skills; without any, takes out the tool that reads them.
    #[must_use]
    pub fn with_skills(mut self, skills: &[SkillOffer]) -> Self {
        if skills.is_empty() {
            self.tools.retain(|tool| tool.name != use_skill::NAME);
            self.others.retain(|tool| tool.name != use_skill::NAME);
            return self;
        }
        let words = skill::offer(skills);
        let own = self.tools.iter_mut().chain(&mut self.others);
        for tool in own.filter(|tool| tool.name == use_skill::NAME) {
            tool.describe_argument("name", &words);
        }
        self
    }

    /// Keeps the tools that an agent may use.
    #[must_use]
    pub fn for_agent(mut self, scope: &AgentScope) -> Self {
        self.tools.retain(|tool| scope.lets(tool));
        self.others.retain(|tool| scope.lets(tool));
        if scope.names_tools() {
            // What is named is listed, and then there is nothing to look for.
            self.tools.append(&mut self.others);
            self.tools.retain(|tool| tool.name != more_tools::NAME);
        }
        self
    }

    /// Takes out the search of the web, for which the user's settings name no engine.
    #[must_use]
    pub fn without_search(mut self) -> Self {
        self.tools.retain(|tool| tool.name != web_search::NAME);
        self.others.retain(|tool| tool.name != web_search::NAME);
        self
    }

    /// Tells the model of these languages for code in a sandbox of its own; without any, the tool
    /// for it is taken out.
    #[must_use]
    pub fn with_languages(mut self, languages: &[&str]) -> Self {
        if languages.is_empty() {
            self.tools.retain(|tool| tool.name != sandbox_run::NAME);
            self.others.retain(|tool| tool.name != sandbox_run::NAME);
        }
        let own = self.tools.iter_mut().chain(&mut self.others);
        for tool in own.filter(|tool| tool.name == sandbox_run::NAME) {
            tool.name_choices("language", languages);
        }
        self
    }

    /// Takes out the tools that need a network, which the user has switched off.
    #[must_use]
    pub fn offline(mut self) -> Self {
        let needs_network = |tool: &Tool| NETWORK_TOOLS.contains(&tool.name);
        self.tools.retain(|tool| !needs_network(tool));
        self.others.retain(|tool| !needs_network(tool));
        self
    }

    /// Adds the tools of MCP servers.
    #[must_use]
    pub fn with_foreign(mut self, tools: Vec<ForeignTool>) -> Self {
        self.foreign = ForeignTools::new(tools, self.options.set);
        self
    }

    /// Restores these control tokens, which were neutralised in what the model reads, in what it
    /// writes.
    #[must_use]
    pub fn restoring(mut self, tokens: &ControlTokens) -> Self {
        self.tokens = tokens.clone();
        self
    }

    /// Returns our own tools that are listed in the model's requests.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the names of all tools, listed or not.
    pub fn names(&self) -> Vec<&str> {
        let own = self.tools.iter().chain(&self.others).map(|tool| tool.name);
        let foreign = self.foreign.listed().chain(self.foreign.unlisted());
        own.chain(foreign.map(|tool| tool.name.as_str())).collect()
    }

    /// Returns what the model's requests list: our own tools, then those of MCP servers.
    pub fn listed_tools(&self) -> Vec<ToolSpec> {
        let own = self.tools.iter().map(|tool| ToolSpec {
            name: tool.name.to_owned(),
            description: tool.description.to_owned(),
            parameters: tool.parameters.clone(),
        });
        own.chain(self.foreign.listed().map(|tool| tool.spec(&self.tokens)))
            .collect()
    }

    /// Returns the tools that are not listed, and the aliases of all tools.
    pub fn unlisted_tools(&self) -> Vec<ToolSpec> {
        let spec = |name: &str, tool: &Tool| ToolSpec {
            name: name.to_owned(),
            description: tool.description.to_owned(),
            parameters: tool.parameters.clone(),
        };
        let all = self.tools.iter().chain(&self.others).chain(&self.denied);
        let aliases = all.flat_map(|tool| tool.aliases.iter().map(move |alias| (*alias, tool)));
        // A tool's own name takes precedence over an alias; of two equal names the last one counts.
        let names = aliases.chain(
            self.others
                .iter()
                .chain(&self.denied)
                .map(|tool| (tool.name, tool)),
        );
        names
            .filter(|(name, _)| self.tools.iter().all(|tool| tool.name != *name))
            .map(|(name, tool)| spec(name, tool))
            .chain(self.foreign.unlisted().map(|tool| tool.spec(&self.tokens)))
            .collect()
    }

    /// Returns the tool of a server that a model calls so. Where we have a tool of that name it is
    /// ours that is meant.
    fn find_foreign(&self, name: &str) -> Option<&ForeignTool> {
        self.foreign.find(name).or_else(|| {
            let is_ours = self.find(name).is_some();
            self.foreign.find_short(name).filter(|_| !is_ours)
        })
    }

    /// Returns the tool of that name or alias, listed or not. Ignores case, surrounding blanks, the
    /// prefixes that some models add to every name, and control tokens.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.known(name.trim())
            .or_else(|| self.known(text::Tools::bare(name)))
            .or_else(|| self.among_tokens(name))
    }

    /// Returns the only tool named between control tokens: gpt-oss mixes up the name and the
    /// headers around it.
    fn among_tokens(&self, name: &str) -> Option<&Tool> {
        let mut found = foreign_formats::between_tokens(name)?.filter_map(|part| self.find(part));
        let first = found.next()?;
        found.all(|other| other.name == first.name).then_some(first)
    }

    fn known(&self, name: &str) -> Option<&Tool> {
        // A tool's own name takes precedence over an alias: `archive` has the alias `tar`, and no
        // alias may shadow another tool's name.
        let all = || self.tools.iter().chain(&self.others).chain(&self.denied);
        let loosely = |known: &str| known.eq_ignore_ascii_case(name);
        all()
            .find(|tool| tool.name == name)
            .or_else(|| all().find(|tool| tool.aliases.contains(&name)))
            .or_else(|| all().find(|tool| loosely(tool.name)))
            .or_else(|| all().find(|tool| tool.aliases.iter().any(|alias| loosely(alias))))
    }

    /// Parses a call into an action: finds the tool, reads the JSON, checks it against the schema.
    /// A call wrapped in `more_tools` is unwrapped.
    pub(super) fn parse(&self, name: &str, arguments: &str) -> Result<ParsedCall, InvalidCall> {
        match self.read(name, arguments)? {
            ParseStep::Own(understood) => Ok(understood),
            ParseStep::Wrapped(wrapped, notes) => {
                if self
                    .find(&wrapped.name)
                    .is_some_and(|tool| tool.name == more_tools::NAME)
                {
                    return Err(InvalidCall(
                        "more_tools cannot call itself; name the tool that is meant".to_owned(),
                    ));
                }
                let ParseStep::Own(mut understood) =
                    self.read(&wrapped.name, &wrapped.arguments)?
                else {
                    return Err(InvalidCall("a call can be wrapped only once".to_owned()));
                };
                understood.notes.splice(0..0, notes);
                understood.inner = Some(wrapped);
                Ok(understood)
            }
        }
    }

    /// Returns the arguments of the call, unwrapped and normalized for its tool.
    pub(super) fn input(&self, name: &str, arguments: &str) -> Option<Value> {
        if self.find_foreign(name).is_some() {
            return match self.read(name, arguments).ok()? {
                ParseStep::Own(ParsedCall {
                    action: Action::Host(HostCall::Foreign(call)),
                    ..
                }) => Some(Value::Object(call.arguments)),
                ParseStep::Own(_) | ParseStep::Wrapped(..) => None,
            };
        }
        let Fields { tool, value, .. } = self.fields(name, arguments).ok()?;
        let wrapped = value
            .as_object()
            .filter(|_| tool.name == more_tools::NAME)
            .and_then(|fields| more_tools::wrapped(fields).ok()?);
        match wrapped {
            Some(wrapped) if self.find_foreign(&wrapped.name).is_some() => {
                self.input(&wrapped.name, &wrapped.arguments)
            }
            Some(wrapped) => Some(self.fields(&wrapped.name, &wrapped.arguments).ok()?.value),
            None => Some(value),
        }
    }

    fn read(&self, name: &str, arguments: &str) -> Result<ParseStep, InvalidCall> {
        if let Some(tool) = self.find_foreign(name) {
            let restore = |value: &mut Value| restore(value, &self.tokens);
            return self
                .foreign
                .parse(tool, name, arguments, restore)
                .map(ParseStep::Own);
        }
        let Fields {
            tool,
            value,
            mut notes,
        } = self.fields(name, arguments)?;
        let wrong =
            |problem: String| InvalidCall(format!("wrong arguments for {}: {problem}", tool.name));
        if tool.name == more_tools::NAME
            && let Some(fields) = value.as_object()
            && let Some(wrapped) = more_tools::wrapped(fields).map_err(wrong)?
        {
            return Ok(ParseStep::Wrapped(wrapped, notes));
        }
        let action = tool
            .action(value, &self.options, &mut notes)
            .map_err(wrong)?;
        Ok(ParseStep::Own(ParsedCall {
            name: tool.name.into(),
            inner: None,
            action,
            notes,
        }))
    }

    /// Finds the tool, reads the JSON, repairs it and checks it against the schema.
    fn fields(&self, name: &str, arguments: &str) -> Result<Fields<'_>, InvalidCall> {
        let tool = self.find(name).ok_or_else(|| self.unknown(name))?;
        let mut notes = Vec::new();
        if name.trim() != tool.name {
            notes.push(format!("{} was taken as {}", name.trim(), tool.name));
        }
        let mut fields = repair::read(tool, arguments, &mut notes).map_err(|problem| {
            InvalidCall(format!(
                "the arguments of {} {problem}, such as {}",
                tool.name,
                tool.example()
            ))
        })?;
        foreign_formats::milliseconds(tool, &mut fields, &self.options, &mut notes);
        repair::imply(name, tool, &mut fields);
        let wrong =
            |problem: String| InvalidCall(format!("wrong arguments for {}: {problem}", tool.name));
        let mut value = Value::Object(fields);
        argument_names::normalize(tool.schema.source(), tool.renamed, &mut value, &mut notes);
        restore(&mut value, &self.tokens);
        if let Some(fields) = value.as_object_mut() {
            json_file::write(tool.name, fields, &mut notes).map_err(wrong)?;
        }
        tool.schema.coerce(&mut value, &mut notes);
        // An array may have come as a string.
        argument_names::normalize(tool.schema.source(), tool.renamed, &mut value, &mut notes);
        if let Some(fields) = value.as_object_mut() {
            foreign_formats::reshape(tool, fields, &mut notes).map_err(wrong)?;
        }
        // A renamed argument may still have the wrong type.
        tool.schema.coerce(&mut value, &mut notes);
        if let Some(fields) = value.as_object_mut() {
            repair::unescape(tool.name, fields, &mut notes);
        }
        tool.schema.check(&value).map_err(|problems| {
            InvalidCall(format!(
                "wrong arguments for {}: {}. Right would be, for example, {}",
                tool.name,
                problems.join("; "),
                tool.example()
            ))
        })?;
        Ok(Fields { tool, value, notes })
    }

    /// Lists the tools that are not listed in the requests, or describes the named ones.
    pub(super) fn describe(&self, wanted: &FindTools) -> Result<String, String> {
        if wanted.names.is_empty() {
            return Ok(self.list(wanted));
        }
        let mut text = String::new();
        for name in &wanted.names {
            if let Some(tool) = self.find_foreign(name) {
                let _ = writeln!(
                    text,
                    "{}: {}\n{}",
                    tool.name, tool.description, tool.parameters["properties"]
                );
                continue;
            }
            let is_denied =
                |tool: &&Tool| self.denied.iter().any(|denied| denied.name == tool.name);
            let Some(tool) = self.find(name).filter(|tool| !is_denied(tool)) else {
                let shown: String = name.chars().take(60).collect();
                if self.others.is_empty() && self.foreign.unlisted().next().is_none() {
                    return Err(self.unknown(name).0);
                }
                return Err(format!(
                    "there is no tool `{shown}`. {}",
                    self.list(&FindTools {
                        max_results: u32::MAX,
                        ..FindTools::default()
                    })
                ));
            };
            let _ = writeln!(
                text,
                "{}: {}\n{}\nSuch as {}",
                tool.name,
                tool.description,
                tool.parameters["properties"],
                tool.example()
            );
        }
        let _ = write!(
            text,
            "Use one with {} and its name and arguments.",
            more_tools::NAME
        );
        Ok(text)
    }

    /// Returns one line for each unlisted tool; with a query, for each tool that has one of its
    /// words.
    fn list(&self, wanted: &FindTools) -> String {
        let words: Vec<String> = wanted
            .query
            .iter()
            .flat_map(|query| query.split_whitespace())
            .map(str::to_lowercase)
            .collect();
        let is_wanted = |entry: &Entry<'_>| {
            let names = entry.aliases.join(" ");
            let text = format!("{} {names} {}", entry.name, entry.description).to_lowercase();
            words.is_empty() || words.iter().any(|word| text.contains(word.as_str()))
        };
        let unlisted = self.others.iter().map(Entry::of);
        let unlisted = unlisted.chain(self.foreign.unlisted().map(Entry::of_foreign));
        // Those that are listed in requests come only where words were asked for.
        let told = self.tools.iter().map(Entry::of);
        let told = told.chain(self.foreign.listed().map(Entry::of_foreign));
        let told = told.filter(|_| !words.is_empty());
        let unlisted: Vec<Entry<'_>> = unlisted.collect();
        let has_others = !unlisted.is_empty();
        let all = unlisted.into_iter().chain(told);
        let found: Vec<Entry<'_>> = all.filter(is_wanted).collect();
        if found.is_empty() {
            let nothing = match (words.is_empty(), has_others) {
                (true, _) => "there are no other tools than those you have",
                (false, false) => "no tool is about that; there are no others than those you have",
                (false, true) => {
                    "no tool is about that; ask with other words, or without a query for all of them"
                }
            };
            return nothing.to_owned();
        }
        let mut text = String::new();
        for entry in found.iter().take(wanted.max_results as usize) {
            let parameters = entry.parameters["properties"].as_object();
            let names: Vec<&str> = parameters
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str())
                .collect();
            let _ = writeln!(
                text,
                "{}({}): {}",
                entry.name,
                names.join(", "),
                entry.description
            );
        }
        let n_more = found.len().saturating_sub(wanted.max_results as usize);
        if n_more > 0 {
            let _ = writeln!(
                text,
                "({n_more} more; ask with other words, or with a larger max_results)"
            );
        }
        let _ = write!(
            text,
            "Use one with {} and its name and arguments.",
            more_tools::NAME
        );
        text
    }

    fn unknown(&self, name: &str) -> InvalidCall {
        let own = self.tools.iter().map(|tool| tool.name);
        let foreign = self.foreign.listed().map(|tool| tool.name.as_str());
        let names: Vec<&str> = own.chain(foreign).collect();
        let shown: String = name.chars().take(60).collect();
        InvalidCall(format!(
            "there is no tool `{shown}`. The tools are: {}",
            names.join(", ")
        ))
    }
}

/// A tool in a list of them.
struct Entry<'a> {
    name: &'a str,
    aliases: &'a [&'a str],
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Entry<'a> {
    fn of(tool: &'a Tool) -> Self {
        Self {
            name: tool.name,
            aliases: tool.aliases,
            description: tool.description,
            parameters: &tool.parameters,
        }
    }

    fn of_foreign(tool: &'a ForeignTool) -> Self {
        Self {
            name: &tool.name,
            aliases: &[],
            description: &tool.description,
            parameters: &tool.parameters,
        }
    }
}

/// One step of parsing a call.
enum ParseStep {
    Own(ParsedCall),
    /// A wrapped call, and the notes about the arguments around it.
    Wrapped(Wrapped, Vec<String>),
}

/// Restores control tokens that were neutralised on their way to the model: text copied from a
/// result must be found in the file.
fn restore(value: &mut Value, tokens: &ControlTokens) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(restored) = tokens.restore(text) {
                *text = restored;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| restore(item, tokens)),
        Value::Object(fields) => fields.values_mut().for_each(|field| restore(field, tokens)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
