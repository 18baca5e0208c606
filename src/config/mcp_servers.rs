//! Special handling of `[mcp.servers]`: a trusted project may name servers that run in the sandbox,
//! or that are reached without a key. Of a server that the user names, of one on the host, and of
//! one that gets a key of the user, it says nothing.

use std::collections::BTreeSet;

use toml::Table;
use toml::Value;

use super::Error;
use super::IgnoredSetting;
use super::Latitude;
use super::Origins;
use super::key::join;
use super::layer::Layer;

const KEY: &str = "mcp.servers";
const PLACE: &str = "where";
/// Variables of the user that hold keys.
const KEYS: [&str; 2] = ["bearer_token_env", "headers_env"];

/// Removes the servers from a project's layer that are not its own to name, and returns them.
/// `below`: what the weaker layers of the user say.
pub(super) fn without_users(layer: &mut Layer, below: &Table) -> Vec<IgnoredSetting> {
    let users: BTreeSet<String> = servers(below)
        .map(|servers| servers.keys().cloned().collect())
        .unwrap_or_default();
    let Some(own) = servers_mut(&mut layer.table) else {
        return Vec::new();
    };
    let is_users = |name: &str, server: &Value| users.contains(name) || is_of_user(server);
    let (taken, kept): (Table, Table) = std::mem::take(own)
        .into_iter()
        .partition(|(name, server)| is_users(name, server));
    *own = kept;
    let passed = |(name, value): (String, Value)| {
        let key = join(KEY, &name);
        IgnoredSetting {
            origin: layer.origin(&key),
            key,
            value: value.to_string(),
            holds: "what the other settings say".to_owned(),
            latitude: Latitude::AddInSandbox,
        }
    };
    taken.into_iter().map(passed).collect()
}

/// Returns the names of the servers of a layer.
pub(super) fn names(layer: &Layer) -> BTreeSet<String> {
    servers(&layer.table)
        .map(|servers| servers.keys().cloned().collect())
        .unwrap_or_default()
}

/// Refuses a server that a project describes and settings above it put on the host or give a key:
/// the project would have a say in what runs there, or in who gets the key.
pub(super) fn refuse_shared(
    merged: &Table,
    of_project: &BTreeSet<String>,
    origins: &Origins,
) -> Result<(), Error> {
    let shared = servers(merged)
        .into_iter()
        .flatten()
        .find(|(name, server)| of_project.contains(*name) && is_of_user(server));
    let Some((name, _)) = shared else {
        return Ok(());
    };
    let key = join(&join(KEY, name), PLACE);
    Err(Error::Value {
        origin: origins.of(&key).clone(),
        key,
        what: "the project's settings describe a server of this name, too: give yours another name"
            .to_owned(),
    })
}

/// Returns whether only the user may describe such a server.
fn is_of_user(server: &Value) -> bool {
    let place = server.get(PLACE);
    place.is_some_and(|place| place.as_str() != Some("sandbox"))
        || KEYS.iter().any(|key| server.get(key).is_some())
}

fn servers(table: &Table) -> Option<&Table> {
    table.get("mcp")?.get("servers")?.as_table()
}

fn servers_mut(table: &mut Table) -> Option<&mut Table> {
    table.get_mut("mcp")?.get_mut("servers")?.as_table_mut()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn layer(text: &str) -> Layer {
        Layer::parse(Path::new("config.toml"), text.to_owned()).expect("reads")
    }

    #[test]
    fn a_project_names_servers_of_its_own_in_the_sandbox_and_no_others() {
        let below = layer("[mcp.servers.user]\ncommand = 'x'\nwhere = 'host'").table;
        let mut own = layer(
            "[mcp.servers.own]\ncommand = 'a'\n[mcp.servers.plain]\ncommand = 'a'\nwhere = 'sandbox'\n\
             [mcp.servers.user]\ncommand = 'evil'\n[mcp.servers.host]\ncommand = 'evil'\nwhere = 'host'\n\
             [mcp.servers.key]\nurl = 'https://evil.example/'\nbearer_token_env = 'TOKEN'\n\
             [mcp.servers.list]\ncommand = 'evil'\nwhere = ['sandbox']",
        );
        let taken = without_users(&mut own, &below);
        let keys: Vec<&str> = taken.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "mcp.servers.host",
                "mcp.servers.key",
                "mcp.servers.list",
                "mcp.servers.user"
            ]
        );
        assert_eq!(
            names(&own).into_iter().collect::<Vec<_>>(),
            ["own", "plain"]
        );
        assert!(without_users(&mut layer("[llm]\nmodel = 'x'"), &below).is_empty());
    }
}
