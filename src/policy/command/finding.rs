//! `find` that takes away all it comes by, or names it to others: no test certainly chooses among it.

use super::blocked::is_nothing;
use super::ground::Ground;
use super::place;
use super::taking;
use crate::glob;
use podbay_code::shell::Command;
use podbay_code::shell::Word;

/// Tests and options that a value follows.
const VALUED: [&str; 36] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-lname",
    "-ilname",
    "-size",
    "-mtime",
    "-ctime",
    "-atime",
    "-mmin",
    "-cmin",
    "-amin",
    "-used",
    "-perm",
    "-user",
    "-uid",
    "-group",
    "-gid",
    "-type",
    "-xtype",
    "-links",
    "-inum",
    "-samefile",
    "-fstype",
    "-context",
    "-maxdepth",
    "-mindepth",
    "-regextype",
    "-files0-from",
    "-since",
    "-D",
];
/// More bytes than most files have.
const ORDINARY_SIZE: u64 = 64 << 10;
/// How many words of one that starts another one are looked at for it.
const STARTED_MAX: usize = 16;
/// Longest pattern of a name that is looked at, in bytes.
const PATTERN_MAX: usize = 1024;
/// Most places that are looked at for a test.
const PLACES_MAX: usize = 16;
/// How deep brackets and negations are followed.
const DEPTH_MAX: usize = 64;
/// Paths of which a pattern that takes all of them chooses nothing.
const ORDINARY: [&str; 5] = ["./README.md", "./src/main.rs", "./lib/index.js", "./Makefile", "./a_b.txt"];

/// Returns why `find` is blocked, if it takes away all that lies in a place that is precious.
pub(super) fn reason(arguments: &[Word], ground: &Ground) -> Option<String> {
    let expression = Expression::read(arguments, ground);
    if !expression.takes {
        return None;
    }
    let what = precious(&expression.places, ground, !expression.takes_all)?;
    Some(format!("it takes away files all over {what}, and no test certainly chooses among them; choose by `-name`, or begin in a folder"))
}

/// Returns whether the names that `find` prints were chosen, or lie in a place that is not precious.
pub(super) fn chooses(arguments: &[Word], ground: &Ground) -> bool {
    let expression = Expression::read(arguments, ground);
    !expression.prints_all || precious(&expression.places, ground, false).is_none()
}

/// Returns what is precious among the places where `find` begins. Of the root and of the home folder nothing is ever meant; in the project, and in a
/// folder within one of the system, a test may choose.
fn precious(places: &[&str], ground: &Ground, is_chosen: bool) -> Option<String> {
    places.iter().find_map(|path| {
        // What it removes is what lies in there: of the folder for what is temporary too that is everyday.
        let found = place::precious(&format!("{path}/*"), ground)?;
        // The project by another name, such as `../workspace`.
        let is_project = found == place::PROJECT || place::whole(path, ground).is_some();
        let is_chosen_from = is_project || found == place::COMMITS || place::is_within_system(&found);
        let may_choose = path.starts_with("..") || is_chosen_from;
        (!is_chosen || !may_choose).then(|| if is_project { place::PROJECT.to_owned() } else { found })
    })
}

/// What the words behind the places say, read as `find` does: tests bind what follows them, up to an `-o` or a comma.
struct Expression<'a> {
    ground: &'a Ground,
    words: &'a [Word],
    at: usize,
    places: Vec<&'a str>,
    /// Something in it takes files away; it does so to all that is come by.
    takes: bool,
    takes_all: bool,
    prints: bool,
    prints_all: bool,
}

impl<'a> Expression<'a> {
    fn read(arguments: &'a [Word], ground: &'a Ground) -> Self {
        let is_option = |word: &&Word| matches!(word.text.as_str(), "-H" | "-L" | "-P") || word.text.starts_with("-O");
        let n_options = arguments.iter().take_while(is_option).count();
        let arguments = &arguments[n_options..];
        let n_places = arguments.iter().take_while(|word| !word.text.starts_with(['-', '(', '!'])).count();
        let (places, words) = arguments.split_at(n_places);
        let places = if places.is_empty() { vec!["."] } else { places.iter().map(|word| word.text.as_str()).collect() };
        let mut read = Self { ground, words, at: 0, places, takes: false, takes_all: false, prints: false, prints_all: false };
        let mut is_chosen = false;
        // What is left over, such as a bracket that nothing opened, is read as if it stood alone.
        while read.at < words.len() {
            is_chosen = read.list(false, 0);
            read.at += usize::from(read.at < words.len());
        }
        // Without an action it prints.
        read.prints_all |= !read.takes && !read.prints && !is_chosen;
        read
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).map(|word| word.text.as_str())
    }

    /// Reads what commas divide; returns whether what is true of the whole was chosen.
    fn list(&mut self, is_chosen: bool, depth: usize) -> bool {
        loop {
            let last = self.any(is_chosen, depth);
            if self.peek() != Some(",") {
                return last;
            }
            self.at += 1;
        }
    }

    fn any(&mut self, is_chosen: bool, depth: usize) -> bool {
        let mut all = self.each(is_chosen, depth);
        while matches!(self.peek(), Some("-o" | "-or")) {
            self.at += 1;
            all &= self.each(is_chosen, depth);
        }
        all
    }

    fn each(&mut self, is_chosen: bool, depth: usize) -> bool {
        let mut chooses = false;
        loop {
            match self.peek() {
                None | Some(")" | "," | "-o" | "-or") => return chooses,
                Some("-a" | "-and") => self.at += 1,
                Some(_) => chooses |= self.term(is_chosen || chooses, depth),
            }
        }
    }

    /// Reads a test, an action or what stands in brackets; returns whether it chooses.
    fn term(&mut self, is_chosen: bool, depth: usize) -> bool {
        let Some(text) = self.peek() else { return false };
        self.at += 1;
        match text {
            // Nobody writes so deep: all of it counts as what is done to everything.
            "(" | "!" | "-not" if depth >= DEPTH_MAX => {
                self.at = self.words.len();
                (self.takes, self.takes_all, self.prints_all) = (true, true, true);
                false
            }
            "(" => {
                let chooses = self.list(is_chosen, depth + 1);
                self.at += usize::from(self.peek() == Some(")"));
                chooses
            }
            // What is passed by leaves all the rest.
            "!" | "-not" => {
                self.term(is_chosen, depth + 1);
                false
            }
            "-delete" => {
                self.take(is_chosen);
                false
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                self.started(is_chosen);
                false
            }
            "-fprintf" => {
                self.at += 2;
                false
            }
            "-print" | "-print0" | "-printf" | "-ls" | "-fprint" | "-fprint0" | "-fls" => {
                self.at += usize::from(matches!(text, "-printf" | "-fprint" | "-fprint0" | "-fls"));
                self.prints = true;
                self.prints_all |= !is_chosen;
                false
            }
            "-empty" | "-false" => true,
            _ if VALUED.contains(&text) || text.starts_with("-newer") || matches!(text, "-anewer" | "-cnewer") => {
                let value = self.peek().unwrap_or_default();
                self.at += 1;
                narrows(text, value) && !self.finds_project(text, value)
            }
            _ => false,
        }
    }

    /// Returns whether a pattern for names takes that of the project's own folder, which lies in a place where it begins: `find .. -name workspace`.
    fn finds_project(&self, test: &str, pattern: &str) -> bool {
        let by_path = matches!(test, "-path" | "-ipath" | "-wholename" | "-iwholename");
        if !by_path && !matches!(test, "-name" | "-iname") {
            return false;
        }
        // Nobody names so many, and to look at each for each test would take long.
        self.places.len() > PLACES_MAX
            || self.places.iter().any(|path| {
                let Some(place) = place::resolve(path, self.ground.here.as_deref()).filter(|place| place::Place::project().is_below(place))
                else {
                    return false;
                };
                // It is called by the name that its place is written with.
                let name = match place.parts.last() {
                    None => "workspace",
                    Some(_) => path.trim_end_matches('/').rsplit('/').next().unwrap_or(path),
                };
                let found = if place.parts.is_empty() { format!("{}/{name}", path.trim_end_matches('/')) } else { (*path).to_owned() };
                fits(pattern, if by_path { &found } else { name })
            })
    }

    fn take(&mut self, is_chosen: bool) {
        self.takes = true;
        self.takes_all |= !is_chosen;
    }

    /// Reads the program that is started for what is found.
    fn started(&mut self, is_chosen: bool) {
        let rest = &self.words[self.at..];
        let is_end = |(n, word): (usize, &Word)| word.text == ";" || (word.text == "+" && n > 0 && rest[n - 1].text == "{}");
        let end = rest.iter().enumerate().position(is_end).unwrap_or(rest.len());
        self.at += (end + 1).min(rest.len());
        let inner = Command { words: rest[..end].to_vec(), ..Command::default() };
        if taking::takes(&inner, self.ground) || taking::in_a_shell(&inner, self.ground) || behind_others(&inner, self.ground) {
            self.take(is_chosen);
        }
    }
}

/// Returns whether a program that starts another one, such as `env`, starts one that takes away.
fn behind_others(command: &Command, ground: &Ground) -> bool {
    const STARTING: [&str; 10] = ["env", "nice", "nohup", "timeout", "time", "command", "xargs", "sudo", "busybox", "stdbuf"];
    if !command.name().is_some_and(|name| STARTING.contains(&name)) {
        return false;
    }
    // Further on nobody writes it, and to look there would take long.
    (1..command.words.len().min(STARTED_MAX)).any(|at| {
        let inner = Command { words: command.words[at..].to_vec(), ..Command::default() };
        // Where the copy of nothing stands further on it is seen at its own name.
        !is_nothing(&command.words[at]) && (taking::takes(&inner, ground) || taking::in_a_shell(&inner, ground))
    })
}

/// Returns whether a test with this value certainly lets no more pass than some of the files.
fn narrows(test: &str, value: &str) -> bool {
    match test {
        "-name" | "-iname" | "-lname" | "-ilname" => !takes_all(value),
        "-path" | "-ipath" | "-wholename" | "-iwholename" => !value.split('/').all(takes_all),
        "-regex" | "-iregex" => !finds_all(value),
        "-size" => !passes_most(value),
        // After a fresh checkout all files are younger than a day.
        "-mtime" | "-ctime" | "-atime" | "-mmin" | "-cmin" | "-amin" | "-used" => {
            !value.starts_with('-') && !matches!(value, "0" | "+0") && !value.starts_with("+-")
        }
        "-type" | "-xtype" => !value.is_empty() && !value.contains(['f', 'd']),
        // Less or more than a number is nearly every file.
        "-inum" => value.starts_with(|sign: char| sign.is_ascii_digit()),
        "-samefile" => true,
        _ => false,
    }
}

/// Returns whether a pattern for names stands for one.
fn fits(pattern: &str, name: &str) -> bool {
    // Nobody names a file so.
    if pattern.len() > PATTERN_MAX {
        return true;
    }
    if !pattern.contains(['[', '\\']) {
        return glob::matches(&pattern.to_lowercase(), name, true);
    }
    globset::Glob::new(pattern).map_or(true, |pattern| pattern.compile_matcher().is_match(name))
}

fn takes_all(part: &str) -> bool {
    part.chars().all(|c| "./*?".contains(c)) || place::takes_any(part)
}

/// Returns whether a regular expression is that of whatever a path may be; one that cannot be read is taken for such.
fn finds_all(pattern: &str) -> bool {
    let regex = expression(&format!("^(?:{})$", plain(pattern)));
    regex.is_none_or(|regex| ORDINARY.iter().all(|path| regex.is_match(path)))
}

/// Returns whether a regular expression is found in the name of whatever file, as `grep` looks for it.
pub(super) fn is_found_in_all(pattern: &str) -> bool {
    let regex = expression(&plain(pattern));
    regex.is_some_and(|regex| ORDINARY.iter().all(|path| regex.is_match(path.trim_start_matches("./"))))
}

/// `find` and `grep` write brackets and bars with a backslash in front.
fn plain(pattern: &str) -> String {
    pattern.replace("\\(", "(").replace("\\)", ")").replace("\\|", "|")
}

fn expression(text: &str) -> Option<regex::Regex> {
    regex::RegexBuilder::new(text).case_insensitive(true).size_limit(1 << 18).build().ok()
}

/// Returns whether nearly every file has this size: `-100M`, `-1000000c`, `+0`.
fn passes_most(size: &str) -> bool {
    let is_large = |size: &str| {
        let (number, unit) = size.split_at(size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len()));
        let bytes = match unit {
            "c" => 1,
            "w" => 2,
            "k" => 1 << 10,
            "M" | "G" => return true,
            _ => 512,
        };
        number.parse::<u64>().map_or(!number.is_empty(), |number| number.saturating_mul(bytes) >= ORDINARY_SIZE)
    };
    size.strip_prefix('-').is_some_and(is_large) || size.strip_prefix('+').is_some_and(|size| size.starts_with('0'))
}
