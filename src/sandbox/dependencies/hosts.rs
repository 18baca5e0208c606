//! Which hosts an install phase reaches: those of the ecosystems' presets, and what else the user
//! lets it reach. A project's files never add one.

use podbay_egress::rule::Access;
use podbay_egress::rule::Decision;
use podbay_egress::rule::Request;
use podbay_egress::rule::Rules;
use podbay_wire::EgressEffect;
use podbay_wire::EgressRule;

use super::super::network::presets;
use super::super::network::rules_of;
use super::Ecosystem;
use super::NamedRegistry;

/// What an install phase reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallHosts {
    pub rules: Vec<EgressRule>,
    /// What files of the project name, and no rule allows.
    pub unreached: Vec<NamedRegistry>,
}

/// Returns the hosts: the presets', those of `given`, which the user named for this phase, and of
/// the rules of their settings those that a named registry needs. What settings deny stays denied.
pub fn install_hosts(
    chosen: &[&Ecosystem],
    named: &[NamedRegistry],
    settings: &[EgressRule],
    given: &[EgressRule],
) -> InstallHosts {
    let preset_of = |ecosystem: &&Ecosystem| {
        let name = ecosystem.preset.as_ref()?;
        presets().iter().find(|preset| preset.name == *name)
    };
    let mut rules: Vec<EgressRule> = chosen
        .iter()
        .filter_map(preset_of)
        .flat_map(|preset| &preset.hosts)
        .flat_map(|host| rules_of(host, EgressEffect::Allow).unwrap_or_default())
        .collect();
    rules.extend(given.iter().cloned());
    let is_needed = |rule: &&EgressRule| {
        rule.effect == EgressEffect::Deny
            || named
                .iter()
                .any(|registry| allows(std::slice::from_ref(*rule), registry))
    };
    rules.extend(settings.iter().filter(is_needed).cloned());
    let mut kept: Vec<EgressRule> = Vec::new();
    for rule in rules {
        if !kept.contains(&rule) {
            kept.push(rule);
        }
    }
    let unreached = named
        .iter()
        .filter(|registry| !allows(&kept, registry))
        .cloned()
        .collect();
    InstallHosts {
        rules: kept,
        unreached,
    }
}

/// Whether rules let something of a registry through: a rule may name methods and paths.
fn allows(rules: &[EgressRule], registry: &NamedRegistry) -> bool {
    let Ok(parsed) = Rules::parse(rules) else {
        return false;
    };
    let with = |access| {
        let request = Request {
            host: &registry.host,
            port: registry.port,
            access,
        };
        matches!(parsed.decide(&request), Decision::Allow { .. })
    };
    let paths = rules.iter().flat_map(|rule| &rule.paths);
    with(Access::Tls)
        || paths.chain([&"/".to_owned()]).any(|path| {
            with(Access::Http {
                method: "GET",
                path,
            })
        })
}

#[cfg(test)]
mod tests {
    use podbay_egress::host_name::HostName;

    use super::super::ecosystem;
    use super::*;

    fn rules(texts: &[&str], effect: EgressEffect) -> Vec<EgressRule> {
        texts
            .iter()
            .flat_map(|text| rules_of(text, effect).expect("a rule"))
            .collect()
    }

    fn named(host: &str, port: u16) -> NamedRegistry {
        NamedRegistry {
            host: HostName::parse(host).expect("a name"),
            port,
            file: "requirements.txt".to_owned(),
        }
    }

    #[track_caller]
    fn check(
        registries: &[NamedRegistry],
        settings: &[EgressRule],
        given: &[&str],
        hosts: &[&str],
        unreached: &[&str],
    ) {
        let pip = ecosystem("pip").expect("a row");
        let given = rules(given, EgressEffect::Allow);
        let found = install_hosts(&[pip], registries, settings, &given);
        let allowed: Vec<&str> = found.rules.iter().map(|rule| rule.host.as_str()).collect();
        let left: Vec<String> = found.unreached.iter().map(NamedRegistry::place).collect();
        assert_eq!(
            (allowed.as_slice(), left.as_slice()),
            (
                hosts,
                &unreached
                    .iter()
                    .map(|&place| place.to_owned())
                    .collect::<Vec<_>>()[..]
            )
        );
    }

    #[test]
    fn a_file_of_the_project_opens_no_host() {
        let own = ["pypi.org", "files.pythonhosted.org"];
        check(
            &[named("evil.example", 443)],
            &[],
            &[],
            &own,
            &["evil.example"],
        );
        check(&[named("pypi.org", 443)], &[], &[], &own, &[]);
        // Another port of the same host is another place.
        check(
            &[named("pypi.org", 8443)],
            &[],
            &[],
            &own,
            &["pypi.org:8443"],
        );
    }

    #[test]
    fn rules_of_the_user_count_where_a_file_needs_them() {
        let settings = rules(
            &[
                "index.example:8443 private",
                "git.example",
                "mirror.example GET /simple",
            ],
            EgressEffect::Allow,
        );
        check(
            &[named("index.example", 8443), named("mirror.example", 80)],
            &settings,
            &[],
            &[
                "pypi.org",
                "files.pythonhosted.org",
                "index.example:8443",
                "mirror.example",
            ],
            &[],
        );
        check(
            &[],
            &settings,
            &["files.example"],
            &["pypi.org", "files.pythonhosted.org", "files.example"],
            &[],
        );
    }

    #[test]
    fn what_the_user_denies_stays_denied() {
        let denied = rules(&["pypi.org"], EgressEffect::Deny);
        check(
            &[named("pypi.org", 443)],
            &denied,
            &[],
            &["pypi.org", "files.pythonhosted.org", "pypi.org"],
            &["pypi.org"],
        );
    }
}
