//! Numbers of the command line. The parser's own words for one that does not fit speak of the
//! program's types.

use std::str::FromStr;

/// Reads a whole number that is not below 0.
pub(super) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| match text.parse::<u128>() {
        Ok(_) => "that is too many".to_owned(),
        Err(_) => "write a whole number, such as 25".to_owned(),
    })
}

/// Reads a number that may have a fraction.
pub(super) fn fraction(text: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| "write a number, such as 2 or 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said_without_the_names_of_types() {
        assert_eq!(
            (whole::<u32>("25"), whole::<u64>("0"), fraction("0.5")),
            (Ok(25), Ok(0), Ok(0.5))
        );
        for bad in ["-1", "x", "1.5", ""] {
            assert_eq!(
                whole::<u32>(bad),
                Err("write a whole number, such as 25".to_owned()),
                "{bad}"
            );
        }
        assert_eq!(
            whole::<u32>("4294967296"),
            Err("that is too many".to_owned())
        );
        assert_eq!(
            fraction("x"),
            Err("write a number, such as 2 or 0.5".to_owned())
        );
    }
}
