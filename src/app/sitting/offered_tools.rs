//! The tools that a session offers, as far as they are known before its sandbox and its model.

use std::path::Path;
use std::sync::Arc;

use super::opened_session::OpenedSession;
use crate::agents;
use crate::skills::Skills;
use podbay_search::Searcher;
use podbay_tools::AgentType;
use podbay_tools::Catalogue;

pub(super) struct OfferedTools {
    pub(super) catalogue: Catalogue,
    /// `None`: the session has no agents.
    pub(super) agent_types: Option<Vec<AgentType>>,
    pub(super) skills: Arc<Skills>,
    pub(super) searcher: Option<Searcher>,
}

impl OfferedTools {
    /// `only` names the tools of a session that has no others, and no agents or skills.
    pub(super) fn of(
        opened: &OpenedSession,
        project: Option<&Path>,
        only: Option<&[&str]>,
    ) -> Self {
        let OpenedSession {
            config,
            recorder,
            policy,
            ..
        } = opened;
        let mut catalogue = Catalogue::new(&config.tools);
        if opened.memories.is_none() {
            catalogue = catalogue.without_memory();
        }
        let mut warnings = Vec::new();
        let agent_types = (config.agents.enabled && only.is_none()).then(|| {
            let user = agents::user_folder();
            let (types, problems) =
                agents::list_agents(config, user.as_deref(), project).into_types();
            warnings.extend(problems);
            types
        });
        catalogue = match &agent_types {
            Some(types) => catalogue.with_agents(types),
            None => catalogue.without_agents(),
        };
        let mut skills = Skills::default();
        if only.is_none() {
            let (read, problems) = Skills::of(config, project);
            warnings.extend(problems);
            skills = read;
        }
        catalogue = catalogue.with_skills(&skills.offers());
        if config.offline {
            catalogue = catalogue.offline();
        }
        let variable = |name: &str| std::env::var(name).ok();
        let searcher = Searcher::of(&config.search, variable).unwrap_or_else(|problem| {
            warnings.push(problem);
            None
        });
        if searcher.is_none() {
            catalogue = catalogue.without_search();
        }
        if let Some(only) = only {
            catalogue = catalogue.only(only);
        }
        for warning in warnings {
            recorder.warn(warning);
        }
        Self {
            // The rules of a session do not change, and so what the model knows of its tools does
            // not either.
            catalogue: catalogue.without(&policy.denied_tools()),
            agent_types,
            skills: Arc::new(skills),
            searcher,
        }
    }
}
