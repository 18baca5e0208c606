use super::super::Word;
use super::table::Wrapper;

/// The words in front of the program that another one starts.
pub(super) struct Scan<'a> {
    /// Letters of the options that were given.
    pub(super) flags: String,
    /// An option names a file that is written.
    pub(super) writes: bool,
    /// What `xargs` puts the names in place of.
    pub(super) placeholder: Option<String>,
    pub(super) assignments: Vec<&'a Word>,
    /// The program and its words.
    pub(super) rest: &'a [Word],
    /// There is an option that the table does not know, or a word that is not known.
    pub(super) has_doubt: bool,
}

impl<'a> Scan<'a> {
    pub(super) fn new(arguments: &'a [Word], wrapper: &Wrapper) -> Self {
        let mut scan =
            Self { flags: String::new(), writes: false, placeholder: None, assignments: Vec::new(), rest: &[], has_doubt: false };
        let mut n_operands = wrapper.n_operands;
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            let text = word.text.as_str();
            if word.known().is_none() {
                // Perhaps the program, perhaps an option in front of it, perhaps several words.
                scan.has_doubt = true;
                at += n_operands;
                break;
            }
            if text == "--" {
                at += 1 + n_operands;
                break;
            }
            if let Some(option) = text.strip_prefix("--") {
                at += scan.long(option, arguments.get(at + 1), wrapper);
            } else if text.len() > 1 && text.starts_with('-') {
                at += scan.short(&text[1..], arguments.get(at + 1), wrapper);
            } else if n_operands > 0 {
                n_operands -= 1;
                at += 1;
            } else {
                break;
            }
        }
        // `env -` is `env -i`, also behind `--`; and variables may stand there as well.
        at += usize::from(wrapper.name == "env" && arguments.get(at).is_some_and(|word| word.text == "-"));
        while let Some(word) = arguments.get(at).filter(|word| wrapper.takes_assignments && word.text.contains('=')) {
            scan.assignments.push(word);
            at += 1;
        }
        scan.rest = arguments.get(at..).unwrap_or_default();
        scan
    }

    /// Takes a long option; returns how many words it takes.
    fn long(&mut self, option: &str, next: Option<&Word>, wrapper: &Wrapper) -> usize {
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        if wrapper.long.contains(&name) {
            if name == "null" {
                self.flags.push('0');
            }
            return 1;
        }
        if !wrapper.long_valued.contains(&name) {
            self.has_doubt = true;
            return 1;
        }
        if name == "replace" {
            self.placeholder = Some(value.unwrap_or("{}").to_owned());
            return 1;
        }
        self.value(wrapper, if name == "output" { 'o' } else { '-' }, value, next);
        if value.is_some() { 1 } else { 2 }
    }

    fn short(&mut self, letters: &str, next: Option<&Word>, wrapper: &Wrapper) -> usize {
        for (at, letter) in letters.char_indices() {
            if wrapper.valued.contains(letter) {
                let attached = &letters[at + letter.len_utf8()..];
                let value = (!attached.is_empty()).then_some(attached);
                self.value(wrapper, letter, value, next);
                return if value.is_some() { 1 } else { 2 };
            }
            if !wrapper.flags.contains(letter) {
                self.has_doubt = true;
                return 1;
            }
            self.flags.push(letter);
        }
        1
    }

    fn value(&mut self, wrapper: &Wrapper, letter: char, value: Option<&str>, next: Option<&Word>) {
        match (wrapper.name, letter) {
            ("xargs" | "parallel", 'I') => self.placeholder = value.map(str::to_owned).or_else(|| next.map(|word| word.text.clone())),
            ("time" | "strace", 'o') => self.writes = true,
            _ => {}
        }
        // Without quotes it may become several words.
        self.has_doubt |= value.is_none() && next.is_some_and(|word| word.known().is_none());
    }
}
