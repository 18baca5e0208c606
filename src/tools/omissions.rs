//! Summary of the files and folders that a search skipped.

use podbay_wire::LeftOut;

/// Returns how much was skipped, with the names of some folders; `None` if nothing was.
pub(super) fn summary(left_out: &LeftOut) -> Option<String> {
    let LeftOut {
        hidden_files,
        ignored_files,
        hidden_folders,
        ignored_folders,
        folders,
    } = left_out;
    let counts = [
        (hidden_files, "hidden file"),
        (ignored_files, "ignored file"),
        (hidden_folders, "hidden folder"),
        (ignored_folders, "ignored folder"),
    ];
    let counted: Vec<String> = counts
        .into_iter()
        .filter(|(n, _)| **n > 0)
        .map(|(n, what)| several(*n, what))
        .collect();
    if counted.is_empty() {
        return None;
    }
    let n_folders = hidden_folders.saturating_add(*ignored_folders);
    let more = if n_folders > folders.len() as u64 {
        ", …"
    } else {
        ""
    };
    let named: Vec<String> = folders.iter().map(|folder| format!("{folder}/")).collect();
    let named = if named.is_empty() {
        String::new()
    } else {
        format!(" ({}{more})", named.join(", "))
    };
    Some(format!("{}{named}", counted.join(", ")))
}

fn several(n: u64, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_files_are_counted() {
        let all = LeftOut {
            hidden_files: 1,
            ignored_files: 2,
            hidden_folders: 1,
            ignored_folders: 3,
            folders: vec![".cache".into(), "dist".into(), "target".into()],
        };
        let said = "1 hidden file, 2 ignored files, 1 hidden folder, 3 ignored folders (.cache/, dist/, target/, …)";
        assert_eq!(summary(&all).as_deref(), Some(said));
        let few = LeftOut {
            ignored_folders: 1,
            folders: vec!["target".into()],
            ..LeftOut::default()
        };
        assert_eq!(summary(&few).as_deref(), Some("1 ignored folder (target/)"));
        assert_eq!(
            summary(&LeftOut {
                hidden_files: 2,
                ..LeftOut::default()
            })
            .as_deref(),
            Some("2 hidden files")
        );
        assert_eq!(summary(&LeftOut::default()), None);
    }
}
