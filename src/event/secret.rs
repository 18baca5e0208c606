use std::fmt;

/// A key or a password. It has no `Display` and no serde, and its `Debug` is `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns a text with the value blotted out. A secret of a few characters would blot out ordinary text and hides nothing worth it.
    pub fn hide_in(&self, text: String) -> String {
        if self.hides() && text.contains(&self.0) { text.replace(&self.0, "***") } else { text }
    }

    /// Returns whether it is long enough to be blotted out.
    pub fn hides(&self) -> bool {
        self.0.len() >= 6
    }

    /// Returns the value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn it_is_blotted_out_where_it_is_long_enough_to_be_one() {
        assert_eq!(Secret::new("sk-123").hide_in("a sk-123 b".to_owned()), "a *** b");
        assert_eq!(Secret::new("a").hide_in("a sk-123 b".to_owned()), "a sk-123 b");
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("sk-123")), "***");
    }
}
