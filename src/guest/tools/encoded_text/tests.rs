use proptest::prelude::*;

use super::*;

fn bytes(encoding: &str, text: &str) -> Vec<u8> {
    let encoding = Encoding::for_label(encoding.as_bytes()).expect("known");
    let (bytes, _, lost) = encoding.encode(text);
    assert!(!lost, "{text}");
    bytes.into_owned()
}

/// Lines in each encoding, of which one is edited.
const TEXTS: [(&str, &str, &str, &str); 8] = [
    ("gbk", "菜单\n价格: 5\n结束\n", "5", "6"),
    ("shift_jis", "メニュー\nprice: 5\n", "price: 5", "price: 6"),
    ("euc-kr", "메뉴판입니다\n가격: 5\n", "5", "[6]"),
    ("big5", "菜單與價格一覽\n價格: 5\n", ": 5", " = 6"),
    ("euc-jp", "メニューの一覧です\n値段: 5\n", "5", "6"),
    ("windows-1251", "Меню на сегодня\nцена: 5\n", "5", "6"),
    (
        "windows-1252",
        "# Carte du café\r\nprice: 5\r\nend\r\n",
        "5",
        "6",
    ),
    (
        "windows-1250",
        "Příliš žluťoučký kůň úpěl\nmenu: 5\n",
        "5",
        "6",
    ),
];

#[test]
fn guessed_encodings_are_shown_and_an_edit_keeps_all_other_bytes() {
    for (encoding, text, old, new) in TEXTS {
        let before = bytes(encoding, text);
        let encoded_text = EncodedText::of(&before);
        assert_eq!(
            encoded_text.text,
            text,
            "{encoding} {:?}",
            encoded_text.name()
        );
        let guess = encoded_text.name().expect("it is not UTF-8").to_lowercase();
        assert!(guess.starts_with(encoding), "{guess}");
        let after = text.replace(old, new);
        assert_eq!(
            encoded_text.with(&after),
            Ok(bytes(encoding, &after)),
            "{encoding}"
        );
    }
}

#[test]
fn characters_of_the_file_reuse_their_bytes_and_others_are_refused() {
    for (encoding, text, _, _) in TEXTS {
        let before = bytes(encoding, text);
        let encoded_text = EncodedText::of(&before);
        let letters: String = text
            .chars()
            .filter(|letter| !letter.is_ascii())
            .rev()
            .collect();
        let after = format!("{text}{letters}\n{letters}+");
        assert_eq!(
            encoded_text.with(&after),
            Ok(bytes(encoding, &after)),
            "{encoding}"
        );
        assert_eq!(
            encoded_text.with(&format!("{text}€☃")),
            Err(Unwritable::Letter('€')),
            "{encoding}"
        );
    }
}

/// The control: in Latin-1 and Latin-2 the same bytes are different characters, and no file
/// tells them apart for certain.
#[test]
fn a_wrong_guess_still_writes_the_right_bytes() {
    let text = "cena: 5 zł\n";
    let before = bytes("windows-1250", text);
    let encoded_text = EncodedText::of(&before);
    let shown = encoded_text.text.replace('5', "6");
    let shown = format!("{shown}{}", encoded_text.text);
    assert_eq!(
        encoded_text.with(&shown),
        Ok(bytes("windows-1250", "cena: 6 zł\ncena: 5 zł\n"))
    );
}

/// A short file fits many encodings: a backslash may be half of a character.
#[test]
fn a_byte_that_may_be_half_of_a_character_is_not_changed() {
    for word in ["表示", "十分", "能力", "構成", "予定"] {
        let before = bytes("shift_jis", &format!("print(\"{word}\")\nX\n"));
        let encoded_text = EncodedText::of(&before);
        for ascii in ('!'..='~')
            .filter(|ascii| !"print(\")X".contains(*ascii) && encoded_text.text.contains(*ascii))
        {
            assert_eq!(
                encoded_text.with(&encoded_text.text.replace(ascii, "/")),
                Err(Unwritable::Letter(ascii)),
                "{word}"
            );
        }
        assert_eq!(
            encoded_text.with(&encoded_text.text.replace('X', "Y")),
            Ok(bytes("shift_jis", &format!("print(\"{word}\")\nY\n"))),
            "{word}"
        );
    }
}

#[test]
fn broken_bytes_in_utf_8_are_kept_and_new_text_is_utf_8() {
    let before = b"caf\xc3\xa9 d\xc3\xa9j\xc3\xa0\nbroken \xff here\nand \xfe\n";
    let encoded_text = EncodedText::of(before);
    assert_eq!(
        (encoded_text.text.as_ref(), encoded_text.name()),
        ("café déjà\nbroken \\xff here\nand \\xfe\n", None)
    );
    let after = encoded_text
        .text
        .replace("here", "hère")
        .replace("café", "thé");
    assert_eq!(
        encoded_text.with(&after),
        Ok(b"th\xc3\xa9 d\xc3\xa9j\xc3\xa0\nbroken \xff h\xc3\xa8re\nand \xfe\n".to_vec())
    );
    // A byte is removed as a whole, and a typed escape is refused.
    assert_eq!(
        encoded_text.with(&encoded_text.text.replace(r"\xff", r"\n")),
        Ok(b"caf\xc3\xa9 d\xc3\xa9j\xc3\xa0\nbroken \\n here\nand \xfe\n".to_vec())
    );
    assert_eq!(
        encoded_text.with(&format!("{}\\xff", encoded_text.text)),
        Err(Unwritable::Letter('\\'))
    );
}

#[test]
fn certain_encodings_take_any_character_and_keep_broken_bytes() {
    let wide = |text: &str| {
        text.encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    let before = wide("\u{feff}price: 5\r\n");
    let encoded_text = EncodedText::of(&before);
    assert_eq!(
        (encoded_text.text.as_ref(), encoded_text.name().as_deref()),
        ("\u{feff}price: 5\r\n", Some("UTF-16LE"))
    );
    assert_eq!(
        encoded_text.with(&encoded_text.text.replace('5', "☕")),
        Ok(wide("\u{feff}price: ☕\r\n"))
    );
    let broken = [wide("\u{feff}a"), vec![0, 0xd8], wide("b\n")].concat();
    assert_eq!(
        EncodedText::of(&broken).with("new"),
        Err(Unwritable::Broken)
    );
    let japanese = bytes("iso-2022-jp", "メニュー\nprice: 5\n");
    let encoded_text = EncodedText::of(&japanese);
    assert_eq!(
        encoded_text.with(&encoded_text.text.replace('5', "六")),
        Ok(bytes("iso-2022-jp", "メニュー\nprice: 六\n"))
    );
    assert_eq!(
        encoded_text.with(&encoded_text.text.replace('5', "☃")),
        Err(Unwritable::Letter('☃'))
    );
}

#[test]
fn lone_carriage_returns_end_lines_and_are_kept() {
    for (before, text) in [
        ("a\rb\rc", "a\nb\nc"),
        ("one\r", "one\n"),
        ("é\rü\r", "é\nü\n"),
    ] {
        let encoded_text = EncodedText::of(before.as_bytes());
        assert_eq!(encoded_text.text, text);
        assert_eq!(encoded_text.with(text), Ok(before.as_bytes().to_vec()));
        assert_eq!(
            encoded_text.with(&format!("{text}x\n")),
            Ok(format!("{before}x\r").into_bytes())
        );
    }
    let latin = EncodedText::of(b"caf\xe9\rtea\r");
    assert_eq!(
        latin.with("caf\u{e9}\nmilk\ntea\n"),
        Ok(b"caf\xe9\rmilk\rtea\r".to_vec())
    );
    // With a line feed anywhere it is not such a file.
    assert_eq!(EncodedText::of(b"a\rb\n").text, "a\rb\n");
}

proptest! {
    #[test]
    fn whatever_the_bytes_are_the_text_as_it_is_gives_them_back(before in proptest::collection::vec(any::<u8>(), 0..64), more in "[ -~\n]{0,8}") {
        let encoded_text = EncodedText::of(&before);
        prop_assume!(!encoded_text.is_certain());
        prop_assert_eq!(encoded_text.with(&encoded_text.text), Ok(before.clone()));
        let after = format!("{more}{}", encoded_text.text);
        let more = if encoded_text.has_returns_alone { more.replace('\n', "\r") } else { more };
        prop_assert_eq!(encoded_text.with(&after), Ok([more.as_bytes(), &before].concat()));
    }
}
