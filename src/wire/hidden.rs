/// Returns whether a character moves the cursor, reorders text or is invisible.
///
/// Control characters (newline and tab among them), bidi controls, joiners, zero-width and filler
/// characters, noncharacters, the tag block, and the supplementary variation selectors, which can
/// carry a hidden message.
pub const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{16fe4}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d159}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    ) || c as u32 & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_hidden_and_visible_ones_are_not() {
        for c in [
            '\u{7}',
            '\u{85}',
            '\u{200b}',
            '\u{202e}',
            '\u{2066}',
            '\u{2800}',
            '\u{3164}',
            '\u{fdd0}',
            '\u{fffe}',
            '\u{13430}',
            '\u{13438}',
            '\u{16fe4}',
            '\u{1d159}',
            '\u{1fffe}',
            '\u{e0041}',
            '\u{10ffff}',
        ] {
            assert!(is_hidden(c), "{c:?}");
        }
        for c in [
            'a',
            ' ',
            'é',
            '\u{301}',
            'д',
            '語',
            '\u{5d0}',
            '\u{fffd}',
            '\u{fe0f}',
            '\u{1f600}',
            '\u{13000}',
            '\u{13440}',
        ] {
            assert!(!is_hidden(c), "{c:?}");
        }
    }
}
