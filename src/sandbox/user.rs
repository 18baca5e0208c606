use super::Error;
use super::Options;
use super::Project;
use podbay_engine as engine;

/// Who commands run as in a sandbox, and what a user should know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) warning: Option<String>,
}

impl User {
    /// Chooses the project's owner, so that what a sandbox writes belongs to the user.
    pub(super) fn choose(
        project: &Project,
        engine: &engine::Facts,
        options: &Options,
    ) -> Result<Self, Error> {
        let (uid, gid) = project.owner();
        let refuse = |problem: &str, hint: &str| Error::Project {
            path: project.path().to_owned(),
            problem: problem.to_owned(),
            hint: Some(hint.to_owned()),
        };
        if engine.userns {
            // Shifted ids cannot write a bind mount, and switching the shift off would loosen the
            // engine's own protection.
            return Err(refuse(
                "the engine shifts user ids (userns-remap), so nothing in the sandbox could write there",
                "use a rootless engine or one without userns-remap",
            ));
        }
        if engine.rootless {
            // In a rootless engine uid 0 is the user; every other id is one that owns nothing of
            // theirs.
            return Ok(Self {
                uid: 0,
                gid: 0,
                warning: None,
            });
        }
        if uid == 0 {
            if options.strict {
                return Err(refuse(
                    "it belongs to root, and --strict refuses that",
                    "give it to a user: `chown -R USER DIR`",
                ));
            }
            let warning = "the project belongs to root, so commands run as uid 0 (without any capability); give it to a user to avoid that";
            return Ok(Self {
                uid,
                gid,
                warning: Some(warning.to_owned()),
            });
        }
        Ok(Self {
            uid,
            gid,
            warning: None,
        })
    }
}
