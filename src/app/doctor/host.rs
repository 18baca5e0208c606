//! This machine, beside its engine: the terminal and the clock.

use jiff::Timestamp;

use super::check::Check;
use super::check::Group;
use crate::holes;

const GROUP: Group = Group::Host;

/// Below this, lines of a diff or a call are cut more than they can be read.
const NARROW: u16 = 60;

/// How far two clocks of one machine may be apart, in seconds; a virtual machine that slept is
/// further.
const APART: i64 = 60;

/// What is known of the terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// The standard input is one.
    pub input: bool,
    /// The standard output is one.
    pub output: bool,
    pub columns: Option<u16>,
    /// What `TERM` says.
    pub kind: Option<String>,
    pub colours: bool,
    /// What decides on the characters: `LC_ALL`, else `LC_CTYPE`, else `LANG`.
    pub locale: Option<String>,
}

pub(super) fn terminal(terminal: &Terminal) -> Check {
    let name = "terminal";
    if !terminal.output || !terminal.input {
        let which = if terminal.input { "output" } else { "input" };
        return Check::ok(
            GROUP,
            name,
            format!("the standard {which} is none: nothing can be asked, and no colours are used"),
        );
    }
    if terminal
        .kind
        .as_deref()
        .is_none_or(|kind| kind.is_empty() || kind == "dumb")
    {
        return Check::warn(
            GROUP,
            name,
            "TERM is not set or says `dumb`: no colours, no bars",
            "set it to what this terminal is: export TERM=xterm-256color",
        );
    }
    if let Some(columns) = terminal.columns.filter(|columns| *columns < NARROW) {
        return Check::warn(
            GROUP,
            name,
            format!("only {columns} columns wide"),
            "make the window wider: 80 columns or more read well",
        );
    }
    let locale = terminal.locale.as_deref().unwrap_or_default();
    let folded = locale.to_ascii_lowercase().replace('-', "");
    if !folded.contains("utf8") {
        let detail = if locale.is_empty() {
            "no locale is set: letters beyond ASCII may not show".to_owned()
        } else {
            format!("its locale, {locale}, is not UTF-8")
        };
        return Check::warn(GROUP, name, detail, "set one that is: export LANG=C.UTF-8");
    }
    let colours = if terminal.colours {
        "colours"
    } else {
        "no colours"
    };
    let columns = terminal
        .columns
        .map_or_else(String::new, |columns| format!(", {columns} columns"));
    Check::ok(GROUP, name, format!("{colours}{columns}, UTF-8"))
}

/// Judges the clock: it must not be before this program's table was made, nor far from the
/// engine's.
pub(super) fn clock(now: Timestamp, engine: Option<&str>) -> Check {
    let made = format!("{}T00:00:00Z", holes::table().date).parse::<Timestamp>();
    if made.is_ok_and(|made| now < made) {
        let detail = format!(
            "it is {} here, which is before this Podbay was made: secure connections may fail",
            now.strftime("%Y-%m-%d")
        );
        return Check::warn(
            GROUP,
            "clock",
            detail,
            "set the clock: `sudo timedatectl set-ntp true`",
        );
    }
    if let Some(theirs) = engine.and_then(|text| text.parse::<Timestamp>().ok()) {
        let apart = now.as_second() - theirs.as_second();
        if apart.abs() > APART {
            let way = if apart > 0 { "behind" } else { "ahead of" };
            let detail = format!(
                "the engine's clock is {} s {way} this machine's",
                apart.abs()
            );
            return Check::warn(
                GROUP,
                "clock",
                detail,
                "set both clocks; an engine in a virtual machine gets its own right when it is restarted",
            );
        }
    }
    Check::ok(
        GROUP,
        "clock",
        now.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    fn good() -> Terminal {
        Terminal {
            input: true,
            output: true,
            columns: Some(100),
            kind: Some("xterm".to_owned()),
            colours: true,
            locale: Some("de_DE.UTF-8".to_owned()),
        }
    }

    #[track_caller]
    fn check(found: &Check, status: Status, words: &str) {
        assert_eq!(
            (found.status, found.remedy.is_some()),
            (status, status != Status::Ok),
            "{found:?}"
        );
        assert!(found.detail.contains(words), "{found:?}");
    }

    #[test]
    fn terminals_are_judged_by_what_would_look_bad() {
        check(
            &terminal(&good()),
            Status::Ok,
            "colours, 100 columns, UTF-8",
        );
        check(
            &terminal(&Terminal {
                output: false,
                ..good()
            }),
            Status::Ok,
            "standard output is none",
        );
        check(
            &terminal(&Terminal::default()),
            Status::Ok,
            "standard input is none",
        );
        check(
            &terminal(&Terminal {
                kind: Some("dumb".to_owned()),
                ..good()
            }),
            Status::Warn,
            "dumb",
        );
        check(
            &terminal(&Terminal {
                columns: Some(40),
                ..good()
            }),
            Status::Warn,
            "40 columns",
        );
        check(
            &terminal(&Terminal {
                locale: Some("C".to_owned()),
                ..good()
            }),
            Status::Warn,
            "C, is not UTF-8",
        );
        check(
            &terminal(&Terminal {
                locale: None,
                ..good()
            }),
            Status::Warn,
            "no locale",
        );
        check(
            &terminal(&Terminal {
                locale: Some("C.utf8".to_owned()),
                columns: None,
                ..good()
            }),
            Status::Ok,
            "UTF-8",
        );
    }

    #[test]
    fn a_clock_that_is_off_is_told_of() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        check(
            &clock(at("2030-01-01T00:00:00Z"), Some("2030-01-01T00:00:30.5Z")),
            Status::Ok,
            "2030-01-01",
        );
        check(
            &clock(
                at("2030-01-01T00:00:00Z"),
                Some("2030-01-01T01:00:00+00:00"),
            ),
            Status::Warn,
            "3600 s ahead of",
        );
        check(
            &clock(at("2030-01-01T00:00:00Z"), Some("2029-12-31T23:00:00Z")),
            Status::Warn,
            "3600 s behind",
        );
        check(
            &clock(at("2030-01-01T00:00:00Z"), Some("nonsense")),
            Status::Ok,
            "2030",
        );
        check(
            &clock(at("1970-01-01T00:00:10Z"), None),
            Status::Warn,
            "1970-01-01",
        );
    }
}
