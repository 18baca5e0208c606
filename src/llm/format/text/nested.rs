//! Calls within the value of a call: a text that was cut off may end with the end of one of them,
//! which looks like the end of the call around it.

use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;

/// How calls are written whose arguments stand between tags.
pub(super) struct Kind {
    /// What begins a call, and what begins an argument of it.
    forms: &'static [(&'static str, &'static str)],
    closer: &'static str,
}

pub(super) const FUNCTION: Kind = Kind {
    forms: &[
        ("<function=", "<parameter="),
        ("<function name=", "<parameter name="),
    ],
    closer: "</function>",
};
/// Its tags may have a prefix.
pub(super) const INVOKE: Kind = Kind {
    forms: &[("invoke name=", "parameter name=")],
    closer: "invoke>",
};

/// Refuses a call, read from `begin` to here, whose end may be that of a call within it: more of
/// those begin in its values than end there. Only where elements are not followed; else each has
/// its own end. An end of what is around the call settles it, unless that too begins within a
/// value.
pub(super) fn check(c: &mut Cursor, begin: usize, kind: &Kind, around: &[&str]) -> Read<()> {
    if !c.is_flat() {
        return Ok(());
    }
    let text = c.since(begin);
    let ends_itself = text.ends_with(kind.closer);
    let n_ends = count(text, kind.closer).saturating_sub(usize::from(ends_itself));
    if let Some(end) = around.first() {
        let opener = end.replacen("</", "<", 1);
        if begun(text, &opener, |rest| {
            rest.starts_with(['{', '[']) || is_pairs(rest) || calls(rest, text, kind)
        }) > count(text, end)
        {
            return Err(Stop::More);
        }
    }
    let of_form = |(opener, argument): &(&str, &str)| {
        begun(text, opener, |rest| has_argument(rest, text, argument))
    };
    if kind.forms.iter().map(of_form).sum::<usize>() <= n_ends {
        return Ok(());
    }
    let at = c.at();
    c.spaces();
    let is_ended = c.take_any(around)?;
    c.go(at);
    if is_ended { Ok(()) } else { Err(Stop::More) }
}

fn count(text: &str, token: &str) -> usize {
    memchr::memmem::find_iter(text.as_bytes(), token).count()
}

/// Counts what begins with a token and goes on like a call.
fn begun(text: &str, token: &str, goes_on: impl Fn(&str) -> bool) -> usize {
    memchr::memmem::find_iter(text.as_bytes(), token)
        .filter(|at| goes_on(text[at + token.len()..].trim_start()))
        .count()
}

fn calls(rest: &str, text: &str, kind: &Kind) -> bool {
    kind.forms.iter().any(|(opener, argument)| {
        stripped(rest, opener).is_some_and(|rest| has_argument(rest, text, argument))
    })
}

/// Returns whether a call of GLM goes on so.
fn is_pairs(rest: &str) -> bool {
    rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        .trim_start()
        .starts_with("<arg_key>")
}

fn stripped<'t>(rest: &'t str, token: &str) -> Option<&'t str> {
    rest.strip_prefix(token)
        .or_else(|| rest.strip_prefix('<')?.strip_prefix(token))
}

/// Returns whether a name and an argument follow, with lines of its own where the arguments of the
/// call around it have them: what is written otherwise is only mentioned.
fn has_argument(rest: &str, text: &str, argument: &str) -> bool {
    let Some((name, rest)) = rest
        .split_once('>')
        .filter(|(name, _)| !name.contains(['<', '\n']))
    else {
        return false;
    };
    let rest = rest.trim_start();
    if name.is_empty() || rest.starts_with('{') {
        return rest.starts_with('{');
    }
    let Some((_, rest)) = stripped(rest, argument).and_then(|rest| rest.split_once('>')) else {
        return false;
    };
    let own_lines = text
        .rfind("</parameter>")
        .is_none_or(|at| text[..at].ends_with('\n'));
    own_lines == rest.starts_with(['\n', '\r'])
}
