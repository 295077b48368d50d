//! Text from outside, made fit to be shown: in errors, logs and JSON.

/// Replaces control characters by their escapes, as `\n` and `\u{1b}`, and cuts the text after `most` characters of the
/// original. The marks that change the direction of text count as control characters: they could make a message read as
/// another.
pub(crate) fn printable(text: String, most: usize) -> String {
    // No character is shorter than a byte: a short text needs no count.
    if text.len() <= most && !text.chars().any(is_unprintable) {
        return text;
    }
    let mut shown = String::with_capacity(text.len().min(most) + 16);
    let mut characters = text.chars();
    for character in characters.by_ref().take(most) {
        if is_unprintable(character) { shown.extend(character.escape_default()) } else { shown.push(character) }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

fn is_unprintable(character: char) -> bool {
    let is_mark = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    );
    character.is_control() || is_mark
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_are_escaped_and_length_is_bounded() {
        assert_eq!(printable("plain é \\ \"quoted\"".into(), 100), "plain é \\ \"quoted\"");
        assert_eq!(printable("a\nb\u{1b}[2J\u{9b}m\u{7f}".into(), 100), "a\\nb\\u{1b}[2J\\u{9b}m\\u{7f}");
        assert_eq!(printable("\u{202e}txt.exe".into(), 100), "\\u{202e}txt.exe");
        assert_eq!(printable("éééé".into(), 3), "ééé…");
        assert_eq!(printable("ééé".into(), 3), "ééé");
        assert_eq!(printable("\n".repeat(1000), 2), "\\n\\n…");
    }

    proptest! {
        #[test]
        fn what_is_shown_holds_no_command_and_is_bounded(text in any::<String>(), most in 0usize..40) {
            let shown = printable(text, most);
            prop_assert!(!shown.chars().any(is_unprintable));
            // The longest escape has ten characters.
            prop_assert!(shown.chars().count() <= 10 * most + 1);
            prop_assert_eq!(printable(shown.clone(), usize::MAX), shown);
        }
    }
}
