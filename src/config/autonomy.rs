use super::Config;
use super::Loaded;
use super::Origin;

/// Sets the turn limit of the chosen autonomy, unless a layer sets one.
pub(super) fn suit(loaded: &mut Loaded<Config>) {
    let turns = loaded
        .config
        .policy
        .autonomy
        .and_then(podbay_policy::Autonomy::max_turns);
    if let Some(turns) = turns
        && matches!(loaded.origins.of("agent.max_turns"), Origin::Default)
    {
        loaded.config.agent.max_turns = turns;
    }
}
