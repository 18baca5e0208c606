//! The variables by which programs know of the proxy.

use podbay_wire::PROXY_PORT;

const TABLE: &str = include_str!("variables.txt");

const HOST: &str = "127.0.0.1";

/// Returns an environment with the proxy in it.
pub(super) fn with_proxy(own: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let ours: Vec<(&str, String)> = pairs().collect();
    let is_ours = |pair: &[u8]| {
        let name = pair.split(|&byte| byte == b'=').next().unwrap_or(pair);
        ours.iter().any(|(known, _)| known.as_bytes() == name)
    };
    let kept = own.iter().filter(|pair| !is_ours(pair)).cloned();
    let added = ours
        .iter()
        .map(|(name, value)| format!("{name}={value}").into_bytes());
    kept.chain(added).collect()
}

fn pairs() -> impl Iterator<Item = (&'static str, String)> {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| {
            let value = value
                .replace("{proxy}", &format!("http://{HOST}:{PROXY_PORT}"))
                .replace("{host}", HOST)
                .replace("{port}", &PROXY_PORT.to_string());
            (name, value)
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_line_of_the_table_sets_a_variable_of_its_own() {
        let lines = TABLE
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let names: BTreeSet<&str> = pairs().map(|(name, _)| name).collect();
        assert_eq!(names.len(), lines.count());
        for (name, value) in pairs() {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            assert!(!name.is_empty() && name.chars().all(is_of_name), "{name}");
            assert!(!value.is_empty() && !value.contains('{'), "{name}={value}");
        }
    }

    #[test]
    fn the_proxy_takes_the_place_of_what_an_image_sets() {
        let own = ["A=b", "HTTP_PROXY=http://image:1", "HTTP_PROXY_X=c"]
            .map(|pair| pair.as_bytes().to_vec());
        let all = with_proxy(&own);
        let text: Vec<String> = all
            .into_iter()
            .map(|pair| String::from_utf8(pair).expect("text"))
            .collect();
        assert_eq!(text[..2], ["A=b", "HTTP_PROXY_X=c"]);
        assert!(text.contains(&"HTTP_PROXY=http://127.0.0.1:3128".to_owned()));
        assert!(!text.iter().any(|pair| pair.contains("image")));
    }
}
