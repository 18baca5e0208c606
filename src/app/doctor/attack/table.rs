//! The rows of `attacks.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

/// One attack: what is tried, what must happen, and what to do where something else does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) group: String,
    pub(super) tried: String,
    pub(super) expected: String,
    pub(super) remedy: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(rename = "attack")]
    rows: Vec<Row>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("attacks.toml"))
        .expect("the file is part of the program and a test reads it")
});

pub(super) fn rows() -> &'static [Row] {
    &TABLE.rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::attack::frames;
    use crate::doctor::attack::limits;
    use crate::doctor::attack::paths;
    use podbay_guest::attack::ATTACKS;

    #[test]
    fn every_row_is_carried_out_by_somebody_and_nobody_is_without_a_row() {
        let mut able: Vec<&str> = ATTACKS.iter().map(|(id, _)| *id).collect();
        able.extend([frames::IDS, limits::IDS, paths::IDS].concat());
        able.sort_unstable();
        able.dedup();
        let mut rows: Vec<&str> = rows().iter().map(|row| row.id.as_str()).collect();
        rows.sort_unstable();
        assert_eq!(rows, able);
        assert!(rows.len() >= 25);
    }

    #[test]
    fn rows_of_a_group_stand_together_and_say_all_they_should() {
        let mut groups: Vec<&str> = rows().iter().map(|row| row.group.as_str()).collect();
        groups.dedup();
        let n_groups = groups.len();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), n_groups);
        for row in rows() {
            assert!(
                [&row.tried, &row.expected, &row.remedy]
                    .iter()
                    .all(|text| text.len() > 4),
                "{row:?}"
            );
        }
    }
}
