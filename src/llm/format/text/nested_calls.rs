//! Detects calls within an argument of a call: a truncated text may end with the end of an inner
//! call, which looks like the end of the outer one.

use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;

/// The syntax of calls whose arguments are between tags.
pub(super) struct TagSyntax {
    /// Pairs of a call's opening tag and an argument's opening tag.
    forms: &'static [(&'static str, &'static str)],
    closer: &'static str,
}

pub(super) const FUNCTION: TagSyntax = TagSyntax {
    forms: &[
        ("<function=", "<parameter="),
        ("<function name=", "<parameter name="),
    ],
    closer: "</function>",
};
/// Its tags may have a prefix.
pub(super) const INVOKE: TagSyntax = TagSyntax {
    forms: &[("invoke name=", "parameter name=")],
    closer: "invoke>",
};

/// Fails where the end of the call, read from `begin` to here, may be that of a call within it:
/// more inner calls begin than end. Only needed where elements are not matched. A closing tag of
/// the enclosing element settles it, unless that element too begins within a value.
pub(super) fn check(c: &mut Cursor, begin: usize, kind: &TagSyntax, around: &[&str]) -> Read<()> {
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
            return Err(Stop::NeedsMore);
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
    if is_ended {
        Ok(())
    } else {
        Err(Stop::NeedsMore)
    }
}

fn count(text: &str, token: &str) -> usize {
    memchr::memmem::find_iter(text.as_bytes(), token).count()
}

/// Counts occurrences of a token that continue like a call.
fn begun(text: &str, token: &str, goes_on: impl Fn(&str) -> bool) -> usize {
    memchr::memmem::find_iter(text.as_bytes(), token)
        .filter(|at| goes_on(text[at + token.len()..].trim_start()))
        .count()
}

fn calls(rest: &str, text: &str, kind: &TagSyntax) -> bool {
    kind.forms.iter().any(|(opener, argument)| {
        stripped(rest, opener).is_some_and(|rest| has_argument(rest, text, argument))
    })
}

/// Returns whether the text continues like a call of GLM.
fn is_pairs(rest: &str) -> bool {
    rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        .trim_start()
        .starts_with("<arg_key>")
}

fn stripped<'t>(rest: &'t str, token: &str) -> Option<&'t str> {
    rest.strip_prefix(token)
        .or_else(|| rest.strip_prefix('<')?.strip_prefix(token))
}

/// Returns whether a name and an argument follow, on their own lines where the outer call's
/// arguments have them: anything else is only mentioned.
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
