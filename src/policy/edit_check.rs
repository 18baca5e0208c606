//! Checks of edits: whether one fits is found out before the user is asked about it.

use super::Action;
use super::Approved;
use super::Policy;
use super::Verdict;
use super::paths::paths;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::ReadFile;

impl Policy {
    /// Returns the check of an edit. What it says may quote the files that the edit names, so there
    /// is none where the model may not read each of them without a question, by the rules for
    /// `read_file` too.
    pub fn check_of(&self, action: &Action) -> Option<Approved<Action>> {
        let Action::Box(call) = action else {
            return None;
        };
        if !call.can_be_checked() {
            return None;
        }
        let mut is_by_name = false;
        for path in paths(action) {
            match self.judge(read(path)) {
                Verdict::Allow { action, .. } => is_by_name |= action.is_by_name(),
                Verdict::Ask(_) | Verdict::Deny { .. } => return None,
            }
        }
        let check = Action::Box(Call::Check {
            call: Box::new(call.clone()),
        });
        Some(if is_by_name {
            Approved::by_name(check)
        } else {
            self.approved(check)
        })
    }
}

fn read(path: &BytesPath) -> Action {
    Action::Box(Call::ReadFile(ReadFile {
        path: Some(path.clone()),
        offset: 1,
        limit: 1,
        max_bytes: 1,
        cursor: None,
        max_files: 1,
        images: false,
        protected: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;
    use crate::Options;
    use podbay_wire::EditFile;
    use podbay_wire::Replacement;

    fn edit(path: &str) -> Action {
        Action::Box(Call::EditFile(EditFile {
            path: path.into(),
            edits: vec![Replacement {
                old_string: "a".to_owned(),
                new_string: "b".to_owned(),
                replace_all: false,
            }],
            create_if_missing: false,
            protected: false,
            known: None,
        }))
    }

    #[track_caller]
    fn check(options: &Options, path: &str, expected: Option<bool>) {
        let policy = Policy::new(Mode::Ask, options).expect("good rules");
        let check = policy.check_of(&edit(path));
        let is_by_name = check.as_ref().map(Approved::is_by_name);
        assert_eq!(is_by_name, expected, "{path}");
        if let Some(check) = check {
            let Action::Box(Call::Check { call }) = check.get() else {
                panic!("{check:?}");
            };
            let Call::EditFile(edit) = &**call else {
                panic!("{call:?}");
            };
            assert!(!edit.protected, "nothing was approved");
        }
    }

    #[test]
    fn only_an_edit_of_what_may_be_read_is_checked() {
        check(&Options::default(), "a.txt", Some(false));
        check(&Options::default(), ".env", None);
        let denied = Options {
            deny: vec!["read_file(secret/**)".into()],
            ..Options::default()
        };
        check(&denied, "secret/a", None);
        // A link could lead there.
        check(&denied, "a.txt", Some(true));
        let asked = Options {
            ask: vec!["read_file(private/**)".into()],
            ..Options::default()
        };
        check(&asked, "private/a", None);
        let policy = Policy::new(Mode::Ask, &Options::default()).expect("no rules");
        let other = Action::Box(Call::Mkdir(podbay_wire::Mkdir {
            path: "a".into(),
            protected: false,
        }));
        assert!(policy.check_of(&other).is_none());
    }
}
