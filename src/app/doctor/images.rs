//! What sandboxes are made from, the program in them, and what was left of earlier ones.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::check::Check;
use super::check::Group;
use podbay_config::Config;
use podbay_engine as engine;
use podbay_engine::Engine;
use podbay_engine::ImageState;
use podbay_engine::Leftover;
use podbay_engine::Provision;
use podbay_event::ByteSize;
use podbay_guest as guest;
use podbay_sandbox as sandbox;

const GROUP: Group = Group::Images;

/// Most names in one line.
const MOST: usize = 5;

/// One image that a run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Needed {
    name: String,
    state: ImageState,
    size: Option<u64>,
    /// Podbay can build it.
    is_ours: bool,
}

/// Looks at the images that a run with these settings needs.
pub(super) async fn images(
    engine: &Engine,
    config: &Config,
    provision: &Provision,
    cancel: &CancellationToken,
) -> Result<Vec<Check>, engine::Error> {
    let mut names = vec![(
        "sandbox",
        config
            .sandbox
            .image
            .clone()
            .unwrap_or_else(|| sandbox::DEFAULT_IMAGE.to_owned()),
    )];
    if config.llm.endpoint.is_none() {
        names.push(("model server", config.inference.image_name().to_owned()));
    }
    let ours = provision.list(cancel).await?;
    let mut checks = Vec::new();
    for (what, name) in names {
        let listed = ours
            .iter()
            .find(|image| image.name == name.strip_suffix(":latest").unwrap_or(&name));
        let needed = match listed {
            Some(listed) => Needed {
                name,
                state: listed.state,
                size: listed.facts.as_ref().map(|facts| facts.size),
                is_ours: true,
            },
            None if !sandbox::is_image_name(&name) => {
                let remedy =
                    "give a name such as debian:13; `docker images` shows those that are here";
                checks.push(Check::fail(
                    GROUP,
                    what,
                    format!("`{name}` is not the name of an image"),
                    remedy,
                ));
                continue;
            }
            None => {
                let facts = engine.image(&name, cancel).await?;
                let state = if facts.is_some() {
                    ImageState::Present
                } else {
                    ImageState::Absent
                };
                Needed {
                    name,
                    state,
                    size: facts.map(|facts| facts.size),
                    is_ours: false,
                }
            }
        };
        checks.push(judge(what, &needed, config.engine.pull));
    }
    Ok(checks)
}

fn judge(what: &str, image: &Needed, pull: bool) -> Check {
    let name = &image.name;
    let bytes = image.size.map_or_else(String::new, |bytes| {
        format!(", {}", ByteSize::new(bytes).rounded())
    });
    match (image.state, image.is_ours) {
        (ImageState::Present, _) => Check::ok(GROUP, what, format!("{name}{bytes}")),
        (ImageState::Outdated, _) => Check::warn(
            GROUP,
            what,
            format!("{name} was made from other files than this Podbay brings along"),
            format!("the next run makes it anew; `podbay images build {name}` does so now"),
        ),
        (ImageState::Absent, true) => Check::warn(
            GROUP,
            what,
            format!("{name} is not here"),
            format!(
                "the first run builds it, which takes minutes; `podbay images build {name}` does so now"
            ),
        ),
        (ImageState::Absent, false) if pull => Check::warn(
            GROUP,
            what,
            format!("{name} is not here"),
            format!("the first run pulls it; `docker pull {name}` does so now"),
        ),
        (ImageState::Absent, false) => Check::fail(
            GROUP,
            what,
            format!("{name} is not here, and `engine.pull` is off"),
            format!(
                "bring it here (`docker load`), or let it be pulled: engine.pull = true, or `docker pull {name}`"
            ),
        ),
    }
}

/// Returns what can be said without an engine, and why that is not more.
pub(super) fn not_looked_at(why: &str, is_static: bool) -> Vec<Check> {
    let mut checks = vec![Check::ok(GROUP, "images", why)];
    if !is_static {
        checks.push(guest(&[], is_static));
    }
    checks
}

/// Judges the program that serves in sandboxes, which is this very one.
pub(super) fn guest(volumes: &[Leftover], is_static: bool) -> Check {
    if !is_static {
        let detail = "this program was not linked statically, so it cannot run in a sandbox";
        return Check::fail(
            GROUP,
            "guest",
            detail,
            "build it as the repository does: `cargo build --release`, without RUSTFLAGS of your own",
        );
    }
    let name = sandbox::guest_volume_name();
    if volumes.iter().any(|volume| volume.name() == name) {
        return Check::ok(GROUP, "guest", format!("in the volume {name}"));
    }
    Check::ok(
        GROUP,
        "guest",
        "not in its volume yet; the first run puts it there",
    )
}

pub(super) fn is_static() -> bool {
    guest::is_static()
}

/// Judges what earlier runs and earlier builds left behind.
pub(super) fn leftovers(containers: &[Leftover], volumes: &[Leftover], age: Duration) -> Check {
    let volume = sandbox::guest_volume_name();
    let of = |found: &[Leftover]| {
        found
            .iter()
            .filter(|found| found.is_orphan(&volume, age))
            .map(|found| found.name().to_owned())
            .collect::<Vec<_>>()
    };
    let (names, n_builds) = (of(containers), of(volumes).len());
    let mut parts = Vec::new();
    if !names.is_empty() {
        let more = names.len().saturating_sub(MOST);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        parts.push(format!(
            "{}{more}, whose controller has ended",
            names[..names.len().min(MOST)].join(", ")
        ));
    }
    if n_builds > 0 {
        parts.push(format!("the guest of other builds, volumes: {n_builds}"));
    }
    if parts.is_empty() {
        return Check::ok(GROUP, "leftovers", "none");
    }
    Check::warn(
        GROUP,
        "leftovers",
        parts.join("; "),
        "remove what is not in use: `podbay gc`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use podbay_engine::ContainerId;
    use podbay_engine::Labels;
    use podbay_engine::Owner;
    use podbay_engine::Role;

    #[track_caller]
    fn check(state: ImageState, is_ours: bool, pull: bool, status: Status, words: &str) {
        let needed = Needed {
            name: "an/image".to_owned(),
            state,
            size: Some(300 << 20),
            is_ours,
        };
        let found = judge("sandbox", &needed, pull);
        assert_eq!(
            (found.status, found.remedy.is_some()),
            (status, status != Status::Ok),
            "{found:?}"
        );
        assert!(
            format!("{} {:?}", found.detail, found.remedy).contains(words),
            "{found:?}"
        );
    }

    #[test]
    fn an_image_that_is_missing_says_how_it_comes() {
        check(ImageState::Present, true, true, Status::Ok, "300.0 MiB");
        check(
            ImageState::Outdated,
            true,
            true,
            Status::Warn,
            "podbay images build an/image",
        );
        check(
            ImageState::Absent,
            true,
            false,
            Status::Warn,
            "podbay images build an/image",
        );
        check(
            ImageState::Absent,
            false,
            true,
            Status::Warn,
            "docker pull an/image",
        );
        check(
            ImageState::Absent,
            false,
            false,
            Status::Fail,
            "`engine.pull` is off",
        );
    }

    fn volume(name: &str) -> Leftover {
        Leftover::Volume {
            name: name.to_owned(),
            labels: Labels::new(Role::Guest),
            created: None,
        }
    }

    #[test]
    fn a_program_that_cannot_run_in_a_sandbox_fails() {
        assert_eq!(guest(&[], false).status, Status::Fail);
        assert_eq!(
            not_looked_at("no engine", false)
                .iter()
                .map(|check| check.status)
                .collect::<Vec<_>>(),
            [Status::Ok, Status::Fail]
        );
        assert_eq!(not_looked_at("no engine", true).len(), 1);
        assert!(guest(&[], true).detail.contains("first run"));
        assert!(
            guest(&[volume(&sandbox::guest_volume_name())], true)
                .detail
                .contains("in the volume")
        );
    }

    #[test]
    fn leftovers_are_named_and_what_is_in_use_is_not() {
        let container = |name: &str, role, owner| Leftover::Container {
            id: ContainerId("x".to_owned()),
            name: name.to_owned(),
            labels: Labels {
                owner,
                ..Labels::new(role)
            },
            running: true,
        };
        let own = volume(&sandbox::guest_volume_name());
        let used = [
            container("a", Role::Workspace, Some(Owner::current())),
            container("b", Role::ModelServer, None),
            container("c", Role::Environment, None),
            // Whose it is nobody knows.
            container("d", Role::Workspace, None),
        ];
        assert_eq!(
            leftovers(&used, std::slice::from_ref(&own), Duration::ZERO).status,
            Status::Ok
        );
        let mut many: Vec<Leftover> = (0..7)
            .map(|at| {
                container(
                    &format!("sandbox-{at}"),
                    Role::Workspace,
                    Some(Owner::ended()),
                )
            })
            .collect();
        many.extend(used);
        let found = leftovers(&many, &[own, volume("podbay-guest-old")], Duration::ZERO);
        assert!(
            found.detail.starts_with("sandbox-0, sandbox-1") && found.detail.contains("and 2 more"),
            "{found:?}"
        );
        assert!(found.detail.ends_with("volumes: 1"), "{found:?}");
        assert_eq!(found.status, Status::Warn);
    }
}
