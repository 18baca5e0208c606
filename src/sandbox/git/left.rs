use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use podbay_engine as engine;
use podbay_engine::Engine;
use podbay_engine::Leftover;
use podbay_engine::Owner;
use podbay_engine::Role;

/// The git folder of an ended session, which stays because not all of it was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftGit {
    pub volume: String,
    /// The path of the project; volumes of older versions lack it.
    pub path: Option<String>,
}

/// Lists them. The folder of a pending review belongs to the review, and volumes of another machine
/// cannot be judged.
#[boxed]
pub async fn left(
    engine: &Engine,
    cancel: &CancellationToken,
) -> Result<Vec<LeftGit>, engine::Error> {
    Ok(left_of(&engine.volumes(cancel).await?))
}

fn left_of(volumes: &[Leftover]) -> Vec<LeftGit> {
    let of_role = |wanted: Role| {
        volumes.iter().filter_map(move |found| match found {
            Leftover::Volume { name, labels, .. } if labels.role == wanted => Some((name, labels)),
            _ => None,
        })
    };
    let waits = |session| {
        of_role(Role::Review)
            .any(|(_, labels)| labels.session.is_some() && labels.session == session)
    };
    of_role(Role::Git)
        .filter(|(_, labels)| {
            labels.owner.as_ref().is_some_and(Owner::is_gone) && !waits(labels.session.clone())
        })
        .map(|(name, labels)| LeftGit {
            volume: name.clone(),
            path: labels.path.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_engine::Labels;
    use podbay_event::SessionId;

    #[test]
    fn only_git_folders_without_a_pending_review_are_left() {
        let [over, reviewed, running] = [(); 3].map(|()| SessionId::random());
        let volume =
            |name: &str, role, session: &SessionId, owner: Option<Owner>| Leftover::Volume {
                name: name.to_owned(),
                labels: Labels {
                    session: Some(session.clone()),
                    owner,
                    path: Some("/p".to_owned()),
                    ..Labels::new(role)
                },
                created: None,
            };
        let gone = || Some(Owner::ended());
        let volumes = [
            volume("over", Role::Git, &over, gone()),
            volume("reviewed", Role::Git, &reviewed, gone()),
            volume("over-below", Role::Git, &over, gone()),
            volume("reviewed-below", Role::Git, &reviewed, gone()),
            volume("running", Role::Git, &running, Some(Owner::current())),
            volume("nobody-knows", Role::Git, &over, None),
            volume("changes", Role::Review, &reviewed, gone()),
            volume("snapshots", Role::Keep, &over, gone()),
        ];
        let left = |volume: &str| LeftGit {
            volume: volume.to_owned(),
            path: Some("/p".to_owned()),
        };
        assert_eq!(left_of(&volumes), [left("over"), left("over-below")]);
        assert_eq!(left_of(&volumes[..4]).len(), 4, "nothing waits there");
    }
}
