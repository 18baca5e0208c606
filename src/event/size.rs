use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use schemars::Schema;
use schemars::SchemaGenerator;
use schemars::json_schema;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Visitor;

use podbay_wire::size;

/// A number of bytes that a user writes as `2GiB`, `512m` or `1073741824`.
///
/// Every unit is a power of 1024, as Docker has it: `2g`, `2G`, `2GB` and `2GiB` are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Returns by how much it is more than another.
    #[must_use]
    pub const fn beyond(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Shows it as people read it, to one decimal: `23.5 GiB`, `512 bytes`. Whatever is said to a
    /// person is said so; [`Display`](fmt::Display) is for what can be typed again.
    pub fn rounded(self) -> String {
        size(self.0)
    }
}

const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("", 0)];

impl fmt::Display for ByteSize {
    /// Writes the largest unit that says it exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |shift: u32| self.0 != 0 && self.0.trailing_zeros() >= shift;
        let (unit, shift) = UNITS
            .into_iter()
            .find(|(_, shift)| exact(*shift))
            .unwrap_or(("", 0));
        write!(f, "{}{unit}", self.0 >> shift)
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let no_size = || format!("`{text}` is no size: write `2GiB`, `512m` or a number of bytes");
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let shift = match unit.trim_start().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(no_size()),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // Nine digits are exact enough for any unit, and keep the arithmetic in whole numbers.
        let digits_fit = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty()
            || !digits_fit
            || number.ends_with('.')
            || (shift == 0 && !fraction.is_empty())
        {
            return Err(no_size());
        }
        let whole: u64 = whole.parse().map_err(|_| no_size())?;
        let scale = 10_u128.pow(fraction.len() as u32);
        let part: u128 = if fraction.is_empty() {
            0
        } else {
            fraction.parse().map_err(|_| no_size())?
        };
        let bytes = (u128::from(whole) << shift) + (part << shift) / scale;
        u64::try_from(bytes).map(Self).map_err(|_| {
            format!(
                "`{text}` is too large a size: at most {} bytes can be counted",
                u64::MAX
            )
        })
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Size;
        impl Visitor<'_> for Size {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"2GiB\", \"512m\" or a number of bytes")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(bytes))
            }

            fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
                u64::try_from(bytes)
                    .map(ByteSize)
                    .map_err(|_| E::custom("a size is not below 0"))
            }
        }
        deserializer.deserialize_any(Size)
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "format": "size" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::proptest;

    use super::*;

    #[track_caller]
    fn check(text: &str, bytes: u64, shown: &str) {
        let size: ByteSize = text.parse().expect("a size");
        assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, shown));
    }

    #[test]
    fn people_read_one_decimal() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (64 << 20, "64.0 MiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(ByteSize::new(bytes).rounded(), shown);
        }
    }

    #[test]
    fn sizes_are_written_in_many_ways() {
        check("2GiB", 2 << 30, "2GiB");
        check("2 gb", 2 << 30, "2GiB");
        check("512m", 512 << 20, "512MiB");
        check("1.5g", 1536 << 20, "1536MiB");
        check("1073741824", 1 << 30, "1GiB");
        check("1000", 1000, "1000");
        check("0", 0, "0");
    }

    #[test]
    fn what_is_no_size_says_what_is() {
        let error = "lots".parse::<ByteSize>().expect_err("no size");
        assert_eq!(
            error,
            "`lots` is no size: write `2GiB`, `512m` or a number of bytes"
        );
        for bad in [
            "",
            "-1",
            "2 GiBs",
            "1.",
            ".5g",
            "1.5",
            "g",
            "1e3",
            "99999999999999999999",
            "99999999999t",
        ] {
            assert!(bad.parse::<ByteSize>().is_err(), "{bad}");
        }
    }

    #[test]
    fn json_takes_a_string_or_a_number() {
        assert_eq!(
            serde_json::from_str::<ByteSize>(r#""1k""#).expect("reads"),
            ByteSize::kib(1)
        );
        assert_eq!(
            serde_json::from_str::<ByteSize>("77").expect("reads"),
            ByteSize::new(77)
        );
        assert!(serde_json::from_str::<ByteSize>("-1").is_err());
        assert_eq!(
            serde_json::to_string(&ByteSize::gib(4)).expect("writes"),
            r#""4GiB""#
        );
    }

    proptest! {
        #[test]
        fn a_size_reads_back_as_it_was_shown(bytes: u64) {
            assert_eq!(ByteSize::new(bytes).to_string().parse(), Ok(ByteSize::new(bytes)));
        }

        #[test]
        fn no_text_makes_the_size_parser_panic(text in "\\PC{0,20}") {
            let _ = text.parse::<ByteSize>();
        }
    }
}
