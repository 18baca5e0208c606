//! The folder of the user's own files: settings, agents and prompts.

use std::path::PathBuf;

/// Returns the folder; `None` where the environment names none. A relative path would be one of
/// the project.
pub fn user_folder() -> Option<PathBuf> {
    folder_of(|name| std::env::var_os(name).map(PathBuf::from))
}

/// The same with the values that `variable` returns.
pub(super) fn folder_of(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(base.join("podbay"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_absolute_path_is_a_users_folder() {
        let folder = |xdg: Option<&'static str>, home: Option<&'static str>| {
            folder_of(|name| {
                let value = if name == "HOME" { home } else { xdg };
                value.map(PathBuf::from)
            })
        };
        let is = |path: &str| Some(PathBuf::from(path));
        assert_eq!(folder(Some("/x"), Some("/home/u")), is("/x/podbay"));
        for relative in [None, Some(""), Some("x")] {
            assert_eq!(
                folder(relative, Some("/home/u")),
                is("/home/u/.config/podbay")
            );
            assert_eq!(folder(relative, Some("project")), None);
        }
        assert_eq!(folder(None, None), None);
    }
}
