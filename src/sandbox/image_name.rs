/// Returns whether a text can be the name of an image: `[HOST[:PORT]/]PATH[:TAG][@DIGEST]`, or an
/// id.
///
/// Only the form is looked at. What passes here may still not exist; what does not pass no engine
/// takes.
pub fn is_image_name(text: &str) -> bool {
    let (name, digest) = text
        .split_once('@')
        .map_or((text, None), |(name, digest)| (name, Some(digest)));
    let is_digest = |digest: &str| {
        digest
            .split_once(':')
            .is_some_and(|(kind, hex)| is_part(kind, false) && hex.len() >= 32 && is_word(hex))
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return false;
    }
    let (host, path) = match name.split_once('/') {
        Some((first, rest)) if first == "localhost" || first.contains(['.', ':']) => {
            (Some(first), rest)
        }
        _ => (None, name),
    };
    let is_host = |host: &str| {
        let (name, port) = host
            .rsplit_once(':')
            .map_or((host, "0"), |(name, port)| (name, port));
        let is_address = name.starts_with('[') && name.ends_with(']');
        (is_address || is_part(name, true)) && port.parse::<u16>().is_ok()
    };
    let (path, tag) = path
        .rsplit_once(':')
        .map_or((path, None), |(path, tag)| (path, Some(tag)));
    let is_tag = |tag: &str| tag.len() <= 128 && !tag.starts_with(['.', '-']) && is_word(tag);
    host.is_none_or(is_host)
        && tag.is_none_or(is_tag)
        && path.split('/').all(|part| is_part(part, false))
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn is_part(text: &str, upper: bool) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    is_word(text)
        && (upper || text == text.to_ascii_lowercase())
        && is_end(text.chars().next())
        && is_end(text.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::is_image_name;

    #[test]
    fn names_and_ids_pass_and_nothing_else_does() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for name in [
            "debian",
            "debian:13",
            "podbay/python",
            "localhost:5000/a/b__c:v1",
            "ghcr.io/Owner".to_lowercase().as_str(),
            &digest,
        ] {
            assert!(is_image_name(name), "{name}");
        }
        assert!(
            is_image_name(&format!("h.example:5000/a:1@{digest}")) && is_image_name("[::1]:5000/a")
        );
        for name in [
            "",
            " ",
            "no such",
            "Debian",
            "a//b",
            "/a",
            "a/",
            "a:",
            "a:b c",
            "-a",
            "a@x",
            "a\nb",
            "a:b:c",
            "http://h/a",
        ] {
            assert!(!is_image_name(name), "{name:?}");
        }
    }
}
