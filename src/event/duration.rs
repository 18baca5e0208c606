use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use schemars::Schema;
use schemars::SchemaGenerator;
use schemars::json_schema;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Visitor;

/// A length of time that a user writes as `120s`, `5m`, `1h30m` or `90`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(u64);

impl Seconds {
    pub const fn new(seconds: u64) -> Self {
        Self(seconds)
    }

    pub const fn minutes(n: u64) -> Self {
        Self(n * 60)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut left = self.0;
        for (unit, length) in UNITS {
            if left >= length {
                write!(f, "{}{unit}", left / length)?;
                left %= length;
            }
        }
        Ok(())
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let no_time = || {
            format!(
                "`{text}` is no length of time: write `120s`, `5m`, `1h30m` or a number of seconds"
            )
        };
        let mut rest = text.trim();
        if let Ok(seconds) = rest.parse::<u64>()
            && !rest.starts_with('+')
        {
            return Ok(Self(seconds));
        }
        let mut sum = 0_u64;
        // The units come from large to small, each at most once; so `5m1h` is a slip and not
        // sixty-five minutes.
        let mut units = UNITS.into_iter();
        while !rest.is_empty() {
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .ok_or_else(no_time)?;
            let number: u64 = rest[..digits].parse().map_err(|_| no_time())?;
            let unit = rest[digits..]
                .chars()
                .next()
                .expect("find gave a char's place")
                .to_ascii_lowercase();
            let (_, length) = units.find(|(name, _)| *name == unit).ok_or_else(no_time)?;
            sum = number
                .checked_mul(length)
                .and_then(|seconds| sum.checked_add(seconds))
                .ok_or_else(no_time)?;
            rest = &rest[digits + 1..];
        }
        if text.trim().is_empty() {
            Err(no_time())
        } else {
            Ok(Self(sum))
        }
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Time;
        impl Visitor<'_> for Time {
            type Value = Seconds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a length of time such as \"120s\", \"5m\", \"1h30m\" or a number of seconds",
                )
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Seconds, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Seconds, E> {
                Ok(Seconds(seconds))
            }

            fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Seconds, E> {
                u64::try_from(seconds)
                    .map(Seconds)
                    .map_err(|_| E::custom("a length of time is not below 0"))
            }
        }
        deserializer.deserialize_any(Time)
    }
}

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "format": "duration" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::proptest;

    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: u64, shown: &str) {
        let time: Seconds = text.parse().expect("a length of time");
        assert_eq!((time.get(), time.to_string().as_str()), (seconds, shown));
    }

    #[test]
    fn times_are_written_in_many_ways() {
        check("120s", 120, "2m");
        check("5m", 300, "5m");
        check("1h30m", 5400, "1h30m");
        check("90", 90, "1m30s");
        check("1D", 86_400, "1d");
        check("0", 0, "0s");
    }

    #[test]
    fn what_is_no_time_says_what_is() {
        let error = "soon".parse::<Seconds>().expect_err("no time");
        assert_eq!(
            error,
            "`soon` is no length of time: write `120s`, `5m`, `1h30m` or a number of seconds"
        );
        for bad in [
            "",
            " ",
            "+5",
            "-5s",
            "5m1h",
            "1h1h",
            "5x",
            "s",
            "1.5h",
            "5m3",
            "99999999999999999999d",
            "5é",
        ] {
            assert!(bad.parse::<Seconds>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_time_reads_back_as_it_was_shown(seconds: u64) {
            assert_eq!(Seconds::new(seconds).to_string().parse(), Ok(Seconds::new(seconds)));
        }

        #[test]
        fn no_text_makes_the_time_parser_panic(text in "\\PC{0,20}") {
            let _ = text.parse::<Seconds>();
        }
    }
}
