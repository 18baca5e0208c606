//! The package index that the user configured for pip.
//!
//! Where a mirror is configured, the public index is often unreachable. The package is verified by
//! its known hash, so any source will do.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Client;
use reqwest::Url;
use reqwest::header;

/// Most bytes of an index page.
const MOST: usize = 4 << 20;

/// Returns the mirror's URL of a package's file; `None` if there is no mirror, or it does not have
/// it.
pub(super) async fn find(
    client: &Client,
    package: &str,
    file: &str,
    within: Duration,
) -> Option<Url> {
    let index = configured()?;
    let page = Url::parse(&format!("{}/{package}/", index.trim_end_matches('/'))).ok()?;
    let read = async {
        let accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5";
        let mut response = client
            .get(page.clone())
            .header(header::ACCEPT, accept)
            .send()
            .await
            .ok()?;
        if !response.status().is_success() {
            tracing::info!(status = %response.status(), "the mirror of PyPI does not have the package");
            return None;
        }
        let mut text = Vec::new();
        while let Some(bytes) = response.chunk().await.ok()? {
            text.extend_from_slice(&bytes);
            if text.len() > MOST {
                return None;
            }
        }
        String::from_utf8(text).ok()
    };
    let text = tokio::time::timeout(within, read).await.ok()??;
    let found = link(&text, file).and_then(|link| page.join(&link).ok())?;
    matches!(found.scheme(), "http" | "https").then_some(found)
}

/// Finds the link to a file in either format of the page.
fn link(page: &str, file: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct IndexPage {
        files: Vec<IndexFile>,
    }
    #[derive(serde::Deserialize)]
    struct IndexFile {
        filename: String,
        url: String,
    }
    let link = if let Ok(page) = serde_json::from_str::<IndexPage>(page) {
        page.files
            .into_iter()
            .find(|listed| listed.filename == file)?
            .url
    } else {
        let named = |link: &&str| {
            link.split(['#', '?'])
                .next()
                .and_then(|path| path.rsplit('/').next())
                == Some(file)
        };
        let mut links = page.split("href=").skip(1).filter_map(|rest| {
            let quote = rest
                .chars()
                .next()
                .filter(|quote| matches!(quote, '"' | '\''))?;
            rest[1..].split(quote).next()
        });
        links.find(named)?.replace("&amp;", "&")
    };
    Some(link.split('#').next().unwrap_or_default().to_owned())
}

/// Returns the index that pip uses here, unless it is the public one.
fn configured() -> Option<String> {
    let mut files: Vec<PathBuf> = env::var_os("PIP_CONFIG_FILE")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    if let Some(home) = env::var_os("HOME").map(PathBuf::from) {
        files.extend([
            home.join(".config/pip/pip.conf"),
            home.join(".pip/pip.conf"),
        ]);
    }
    files.push(PathBuf::from("/etc/pip.conf"));
    let from_files = || {
        files
            .iter()
            .find_map(|file| index_of(&fs::read_to_string(file).ok()?))
    };
    let index = env::var("PIP_INDEX_URL")
        .ok()
        .filter(|index| !index.trim().is_empty())
        .or_else(from_files)?;
    let index = index.trim().to_owned();
    (!index.starts_with("https://pypi.org/")).then_some(index)
}

fn index_of(config: &str) -> Option<String> {
    config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        matches!(name.trim(), "index-url" | "index_url").then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_of_an_index_page_are_parsed() {
        let html = r#"<a href="../../a-1.whl#sha256=00">a-1.whl</a> <a data-x='1' href='/f/b-1.whl?a=1&amp;b=2#sha256=11'>b</a>"#;
        assert_eq!(link(html, "a-1.whl").as_deref(), Some("../../a-1.whl"));
        assert_eq!(link(html, "b-1.whl").as_deref(), Some("/f/b-1.whl?a=1&b=2"));
        assert_eq!(link(html, "c-1.whl"), None);
        let json = r#"{"files":[{"filename":"a-1.whl","url":"https://f/a-1.whl","hashes":{}}]}"#;
        assert_eq!(link(json, "a-1.whl").as_deref(), Some("https://f/a-1.whl"));
        assert_eq!(link(json, "b-1.whl"), None);
        assert_eq!(link("<a href=", "a-1.whl"), None);
    }

    #[test]
    fn the_index_is_read_from_pips_configuration() {
        assert_eq!(
            index_of("[global]\n# index-url = no\nindex-url = https://m/simple\n").as_deref(),
            Some("https://m/simple")
        );
        assert_eq!(
            index_of("[global]\nextra-index-url = https://m/simple\n"),
            None
        );
    }
}
