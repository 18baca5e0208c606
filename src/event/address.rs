/// Returns an address as it may be shown: without what stands before an `@` and behind a `?` or
/// `#`, which may be a password or a key.
///
/// It need not be a right address: a user's slip may hold a password all the same.
pub fn shown_address(text: &str) -> String {
    if let Some(at) = text.find(['?', '#']) {
        // A password may hold either of them; then nothing tells where the host is.
        let is_clear = !text[at..].contains('@');
        return if is_clear {
            format!("{}{}***", shown_address(&text[..at]), &text[at..=at])
        } else {
            "***".to_owned()
        };
    }
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://***@{host}"),
        (None, Some((_, host))) => format!("***@{host}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shown_address;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        assert_eq!(shown_address(text), shown);
    }

    #[test]
    fn what_may_be_a_password_is_left_out() {
        check("http://h:1/v1", "http://h:1/v1");
        check("http://user:sesame@h/v1", "http://***@h/v1");
        check("user:sesame@h", "***@h");
        check("http://h/v1?key=1#x", "http://h/v1?***");
        check("http://h/v1#sesame", "http://h/v1#***");
        check("http://u:ses?ame@h/", "***");
        check("unix:/run/m.sock", "unix:/run/m.sock");
    }
}
