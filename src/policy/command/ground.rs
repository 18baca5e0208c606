//! Where each command of a script stands: what `cd` and its like lead to.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::rc::Rc;

use super::links::Links;
use super::place::HOMES;
use super::place::Place;
use super::place::resolve;
use super::setting::Setting;
use super::setting::Settings;
use super::unset;
use super::unset::Given;
use super::words;
use podbay_code::shell::Command;
use podbay_code::shell::Guard;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;
use podbay_code::shell::is_folder;
use podbay_wire::BytesPath;
use podbay_wire::protected_name;

/// Where a command stands, as far as that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    /// How many folders below the project's top it may be at the most.
    pub(super) depth: usize,
    /// The folder itself, where every change of folders up to there is known.
    pub(super) here: Option<Rc<Place>>,
    /// Where it may stand besides.
    pub(super) others: Vec<Other>,
    /// Where its shell was before: `$OLDPWD`.
    pub(super) before: Option<Rc<Place>>,
    /// A variable without a value ends its shell.
    pub(super) ends_on_unset: bool,
}

/// A place where a command may stand besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Other {
    pub(super) place: Rc<Place>,
    /// It stands there where a change of folders fails.
    pub(super) is_failed: bool,
    /// From this command of the script on.
    from: usize,
    /// Up to this one.
    until: usize,
}

impl Ground {
    /// Returns the protected folder that it lies in, if it does.
    pub(super) fn secret(&self) -> Option<String> {
        let path = self.here.as_ref()?.parts.join("/");
        protected_name(&BytesPath::from_text(&path)).filter(|protected| protected.is_secret).map(|protected| protected.name)
    }

    /// Returns the ground of a command that stands in one of the other places.
    pub(super) fn other(&self, other: &Other) -> Self {
        Self { here: Some(Rc::clone(&other.place)), others: Vec::new(), ..self.clone() }
    }
}

/// Where a shell stands.
#[derive(Clone, Default)]
struct Stand {
    here: Option<Rc<Place>>,
    others: Vec<Other>,
}

impl Stand {
    fn at(here: Option<Place>) -> Self {
        Self { here: here.map(Rc::new), others: Vec::new() }
    }

    /// Adds places where it may stand besides, but for those that are none of the project's: what a path there would name is seldom anything.
    fn add(&mut self, others: impl IntoIterator<Item = Other>) {
        for other in others {
            // Where no change of folders fails it stands there in any case.
            let is_same = |known: &&Other| known.place == other.place && known.is_failed == other.is_failed;
            let is_new = || self.others.iter().filter(is_same).all(|known| known.from > other.from || known.until < other.until);
            let is_top = other.place.is_home || other.place.parts.is_empty();
            let is_ours = other.place.is_in_project() || (is_top && !other.is_failed);
            let counts = is_ours && other.place.parts.len() <= PARTS_MAX;
            if self.others.len() < OTHERS_MAX && counts && self.here.as_ref() != Some(&other.place) && is_new() {
                self.others.push(other);
            }
        }
    }
}

/// Most folders that are kept in mind as there.
const FOLDERS_MAX: usize = 256;
/// How deep a folder may lie that is kept in mind.
const PARTS_MAX: usize = 64;
/// Most places that one command may stand in besides.
const OTHERS_MAX: usize = 8;

/// Returns where each command of a script stands, one after the other; a shell within another begins where that one is.
pub(super) fn grounds(script: &Script, working_directory: Option<&str>) -> Vec<Ground> {
    let depth = depth(script, working_directory);
    let mut begin = Place::project();
    match working_directory {
        Some(path) if path.starts_with('/') => begin = resolve(path, None).unwrap_or(begin),
        Some(path) => begin.follow(path),
        None => {}
    }
    let mut there = There::new(script, &begin);
    let mut stands: HashMap<usize, Stand> = HashMap::from([(0, Stand::at(Some(begin)))]);
    // What `env -C` starts, it starts elsewhere; and so does what that starts in its turn.
    let mut only_next: Option<Option<Rc<Place>>> = None;
    // Where each shell was before, and where `pushd` came from.
    let mut before: HashMap<usize, Stand> = HashMap::new();
    let mut pushed: HashMap<usize, Vec<Stand>> = HashMap::new();
    // Where the last change of folders began, which stands in the list once more with the values of its variables.
    let mut moved_from: Option<Stand> = None;
    let mut grounds = Vec::with_capacity(script.commands.len());
    // Where a function ends, and where its shell stood in front of it: what it does it does when it is called.
    let mut bodies: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
    for function in &script.functions {
        bodies.entry(function.body.start).or_default().push((function.body.end, function.shell));
    }
    let mut in_front: BTreeMap<usize, Vec<(usize, Rc<Place>)>> = BTreeMap::new();
    // Behind a program that starts another one, `cd` would be a program of its own, which takes nobody along.
    let mut takes_along = true;
    for (at, command) in script.commands.iter().enumerate() {
        let placed = with_folders(command, &grounds);
        let command = placed.as_ref().unwrap_or(command);
        // The first command of a text that a shell is given is none of them: that shell carries it out itself.
        let goes_along = std::mem::replace(&mut takes_along, !command.starts_another || goes_along(command));
        let takes_along = goes_along || !command.is_started;
        while let Some(ended) = in_front.first_entry().filter(|body| *body.key() <= at) {
            for (shell, place) in ended.remove() {
                stands.entry(shell).or_default().add([Other { place, is_failed: false, from: at, until: usize::MAX }]);
            }
        }
        for (end, shell) in bodies.remove(&at).unwrap_or_default() {
            let here = stands.get(&shell).and_then(|stand| stand.here.clone());
            in_front.entry(end).or_default().extend(here.map(|here| (shell, here)));
        }
        let mut shell = command.shell;
        while !stands.contains_key(&shell) {
            shell = shell.checked_sub(1).and_then(|at| script.shells.get(at)).copied().unwrap_or_default();
        }
        let mut stand = stands.get(&shell).cloned().unwrap_or_default();
        // A shell that is started elsewhere begins there, too: whether it is that one which begins here is not certain.
        if let Some(Some(place)) = only_next.take_if(|_| shell != command.shell) {
            stand.add([Other { place, is_failed: false, from: at, until: usize::MAX }]);
        }
        if command.again
            && matches!(command.name(), Some("cd" | "pushd"))
            && let Some(from) = moved_from.take()
        {
            stand = from;
        }
        let elsewhere = only_next.take();
        let here = elsewhere.clone().unwrap_or_else(|| stand.here.clone());
        let is_next_started = |next: &Command| next.is_started || (next.shell != command.shell && !stands.contains_key(&next.shell));
        only_next = elsewhere.filter(|_| command.name() != Some("env") && script.commands.get(at + 1).is_some_and(is_next_started));
        let others = if here == stand.here {
            stand.others.iter().filter(|other| (other.from..other.until).contains(&at)).cloned().collect()
        } else {
            Vec::new()
        };
        there.note(command, here.as_deref());
        let ends_on_unset = there.settings.ends(Setting::OnUnset, command, script);
        let gone = before.get(&command.shell).or_else(|| before.get(&shell)).and_then(|stand| stand.here.clone());
        grounds.push(Ground { depth, here: here.clone(), others, before: gone, ends_on_unset });
        let after = match command.name() {
            Some("cd" | "pushd" | "popd") if !takes_along => stand,
            Some("cd") if command.arguments().first().is_some_and(goes_back) => {
                let gone = before.remove(&command.shell).or_else(|| before.get(&shell).cloned());
                before.insert(command.shell, stand.clone());
                // Where it was nowhere before it stays.
                gone.unwrap_or(stand)
            }
            Some(name @ ("cd" | "pushd")) => {
                if name == "pushd" && !command.again {
                    pushed.entry(shell).or_default().push(stand.clone());
                }
                before.insert(command.shell, stand.clone());
                moved_from = Some(stand.clone());
                there.moved(at, command, script, &stand)
            }
            // Without a folder to go back to it fails.
            Some("popd") => {
                before.insert(command.shell, stand.clone());
                pushed.get_mut(&shell).and_then(Vec::pop).unwrap_or(stand)
            }
            Some("env") => {
                let to = chdir(command.arguments()).map(|to| to.known().and_then(|path| resolve(path, here.as_deref())).map(Rc::new));
                // Without a folder of its own it starts where it stands itself.
                only_next = to.or_else(|| (here != stand.here).then(|| here.clone()));
                stand
            }
            _ => stand,
        };
        stands.insert(command.shell, after);
    }
    grounds
}

/// Returns a script with the folders in it that its variables hold, each as where it was given to them; `None` where there is none.
pub(super) fn placed(script: &Script, grounds: &[Ground]) -> Option<Script> {
    let mut placed = None;
    for (at, command) in script.commands.iter().enumerate() {
        if let Some(command) = with_folders(command, grounds) {
            placed.get_or_insert_with(|| script.clone()).commands[at] = command;
        }
    }
    placed
}

/// The same for one command, from where those in front of it stand.
fn with_folders(command: &Command, grounds: &[Ground]) -> Option<Command> {
    command.with_folders(|at, folder| {
        let Ground { here, others, .. } = grounds.get(at)?;
        // Where a function may have led it elsewhere, what is most to lose counts.
        let stayed = others.iter().find(|other| !other.is_failed && *other.place == Place::project()).map(|other| &other.place);
        let here = stayed.or(here.as_ref()).or(others.first().map(|other| &other.place));
        let place = here.and_then(|here| resolve(folder, Some(here)));
        // One that is not known is not that of another command.
        Some(place.map_or_else(|| "${FOLDER:?}".to_owned(), |place| place.path()))
    })
}

/// Returns the variables that hold the name of a folder which `mktemp` made where nothing else is, and nothing but that.
pub(super) fn made(script: &Script) -> BTreeSet<&str> {
    const MAKING: [&str; 3] = ["$(mktemp -d)", "`mktemp -d`", "$(mktemp -d -t "];
    let is_making =
        |text: &str| MAKING[..2].contains(&text) || text.strip_prefix(MAKING[2]).is_some_and(|rest| !rest.contains(['/', '$', '`']));
    let sets = || script.commands.iter().flat_map(|command| &command.assignments);
    let is_made = |value: Option<&Word>| value.is_some_and(|value| is_making(&value.text));
    let mut made: BTreeSet<&str> = sets().filter(|set| is_made(set.value.as_ref())).map(|set| set.name.as_str()).collect();
    for set in sets().filter(|set| set.name == "TMPDIR" || !is_made(set.value.as_ref())) {
        if set.name == "TMPDIR" {
            return BTreeSet::new();
        }
        made.remove(set.name.as_str());
    }
    for value in &script.values {
        made.remove(value.variable.as_str());
    }
    let giving = script.commands.iter().filter(|command| command.name().is_some_and(unset::gives));
    for word in giving.flat_map(Command::arguments) {
        // What is not known may be any name.
        let Some(text) = word.known() else { return BTreeSet::new() };
        made.remove(text);
    }
    made
}

/// Returns a command with a folder for passing in the places of such variables, where one is all of a word: `cd / && rm -rf "$TMP"`.
pub(super) fn with_made<'c>(command: &'c Command, made: &BTreeSet<&str>) -> Cow<'c, Command> {
    let is_made = |word: &Word| {
        let name = word.text.strip_prefix('$').map(|rest| rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest));
        name.is_some_and(|name| made.contains(name))
    };
    if !command.words.iter().any(is_made) {
        return Cow::Borrowed(command);
    }
    let mut command = command.clone();
    for word in command.words.iter_mut().filter(|word| is_made(word)) {
        *word = Word { text: "/tmp/made".to_owned(), kind: WordKind::Known, ..word.clone() };
    }
    Cow::Owned(command)
}

/// Returns the folder of such a variable, or one in it, as a place.
pub(super) fn in_made(word: &Word, made: &BTreeSet<&str>) -> Option<Place> {
    let rest = word.text.strip_prefix('$')?;
    let (name, behind) = match rest.strip_prefix('{') {
        Some(inside) => inside.split_once('}')?,
        None => rest.split_at(rest.find('/').unwrap_or(rest.len())),
    };
    let is_path = behind.is_empty() || (behind.starts_with('/') && !behind.contains(['$', '`', '*', '?']) && !behind.contains(".."));
    let mut place = Place { is_home: false, parts: vec!["tmp".to_owned(), name.to_owned()] };
    place.follow(behind);
    (made.contains(name) && is_path).then_some(place)
}

/// Folders that certainly are there, and what else decides whether a change of folders works.
struct There {
    folders: Vec<Place>,
    /// Variables that hold the name of a folder that was made.
    made: Vec<String>,
    /// Variables that hold one that was made where nothing else is.
    fresh: BTreeSet<String>,
    /// Names that something gives a value.
    given: Given,
    /// Shells that are left when a command fails.
    settings: Settings,
    links: Links,
}

impl There {
    fn new(script: &Script, begin: &Place) -> Self {
        Self {
            folders: vec![begin.clone()],
            made: Vec::new(),
            fresh: made(script).into_iter().map(ToOwned::to_owned).collect(),
            given: Given::of(script),
            settings: Settings::default(),
            links: Links::default(),
        }
    }

    /// Notes the folders that a command makes, and `set -e`.
    fn note(&mut self, command: &Command, here: Option<&Place>) {
        for set in &command.assignments {
            self.made.retain(|made| *made != set.name);
            if set.value.as_ref().is_some_and(|value| value.text.starts_with("$(mktemp")) && self.made.len() < FOLDERS_MAX {
                self.made.push(set.name.clone());
            }
        }
        self.links.note(command, here);
        let arguments = command.arguments();
        let verb = arguments.first().map_or("", |word| &word.text);
        let makes = match command.name() {
            Some("mkdir") => arguments,
            Some("git") if matches!(verb, "clone" | "init" | "worktree") => &arguments[1..],
            Some("cargo" | "npm" | "cmake" | "python3" | "python") if arguments.len() > 1 => &arguments[1..],
            Some("set" | "shopt") => return self.settings.note(command),
            _ => return,
        };
        let names = words::operands(makes).filter(|word| word.kind == WordKind::Known);
        self.folders.extend(names.filter_map(|word| resolve(&word.text, here)).take(FOLDERS_MAX.saturating_sub(self.folders.len())));
    }

    /// Returns where a shell stands after `cd` or `pushd`.
    fn moved(&self, at: usize, command: &Command, script: &Script, stand: &Stand) -> Stand {
        let arguments = command.arguments();
        let here = stand.here.as_deref();
        let fresh: BTreeSet<&str> = self.fresh.iter().map(String::as_str).collect();
        let into_fresh = || arguments.first().and_then(|word| in_made(word, &fresh));
        let mut after = Stand::at(moved(arguments, here).or_else(into_fresh).filter(|place| place.parts.len() <= PARTS_MAX));
        // Through a link the shell stands where that leads.
        if let Some(led) = after.here.as_ref().and_then(|place| self.links.through(place, true)) {
            after.here = Some(Rc::new(led));
        }
        let made = |others: &mut Vec<Other>, place: Option<Place>| {
            others.extend(place.map(|place| Other { place: Rc::new(place), is_failed: false, from: at + 1, until: usize::MAX }));
        };
        let mut others = Vec::new();
        if let Some(word) = arguments.iter().find(|word| word.kind == WordKind::Unknown) {
            // What a loop or a list may put there.
            for value in script.values.iter().take(OTHERS_MAX).filter_map(|value| value.put_in(command)) {
                made(&mut others, moved(value.arguments(), here));
            }
            // A variable without a value stays where it is, or goes home.
            let is_given = self.settings.ends(Setting::OnUnset, command, script);
            if let Some(emptied) = unset::emptied(&word.text, command, &self.given, at).filter(|_| !is_given) {
                let place = if emptied.is_empty() && !word.quoted { Some(Place { is_home: true, parts: Vec::new() }) } else { None };
                let to = resolve(&emptied, here).filter(|_| !emptied.is_empty());
                made(&mut others, place.or(to).or_else(|| here.cloned()));
            }
        }
        let Guard { from, until, until_on_error, passed, .. } = command.guard;
        let ends = self.settings.ends(Setting::OnError, command, script);
        let until = until.max(if ends { until_on_error } else { 0 }).max(at + 1);
        let fails = !self.is_there(arguments, here, after.here.as_deref());
        // In front of what is not carried out, and behind it.
        let failed = if fails { [(at + 1, from), (until, usize::MAX)] } else { [(0, 0); 2] };
        let stays = |place: &Rc<Place>, since: usize| -> Vec<Other> {
            let parts = failed.into_iter().filter(|(from, until)| from < until);
            parts.map(|(from, until)| Other { place: Rc::clone(place), is_failed: true, from: from.max(since), until }).collect()
        };
        for other in &stand.others {
            if other.from > at {
                others.push(other.clone());
            } else if at < other.until {
                let place = moved(arguments, Some(&other.place));
                others.extend(place.map(|place| Other { place: Rc::new(place), ..other.clone() }));
                others.extend(stays(&other.place, other.from));
            }
        }
        if let Some(place) = &stand.here {
            others.extend(stays(place, 0));
            // Where `||` stands in front of it what failed there is behind it: `cd a || { mkdir a && cd a; }`.
            others.extend((passed > 0).then(|| Other { place: Rc::clone(place), is_failed: true, from: passed, until: usize::MAX }));
        }
        after.add(others);
        after
    }

    /// Returns whether a folder is there for certain.
    fn is_there(&self, arguments: &[Word], here: Option<&Place>, to: Option<&Place>) -> bool {
        let word = arguments.iter().find(|word| !word.text.starts_with('-'));
        let is_made = |word: &Word| {
            let name = word.text.strip_prefix('$').unwrap_or_default();
            let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
            word.text.starts_with("$(mktemp") || self.made.iter().any(|made| made == name)
        };
        let Some(to) = to else { return word.is_none_or(is_made) };
        if word.is_some_and(is_made) {
            return true;
        }
        // One above a folder that is there, too.
        let leads_to = |folder: &Place| folder.is_home == to.is_home && folder.parts.starts_with(&to.parts);
        to.parts.len() < 2 || here.is_some_and(leads_to) || self.folders.iter().any(leads_to)
    }
}

/// Returns whether what a command starts is done by the shell itself.
fn goes_along(command: &Command) -> bool {
    matches!(command.name(), Some("command" | "builtin" | "eval" | "time" | "trap" | "alias"))
}

/// Returns whether a word is where the shell was before.
fn goes_back(word: &Word) -> bool {
    matches!(word.text.trim_end_matches('/'), "-" | "~-" | "$OLDPWD" | "${OLDPWD}")
}

/// Returns where `cd` leads.
fn moved(arguments: &[Word], here: Option<&Place>) -> Option<Place> {
    match arguments.iter().find(|word| word.text == "-" || !word.text.starts_with('-')) {
        None => Some(Place { is_home: true, parts: Vec::new() }),
        Some(word) if word.text == "-" => None,
        Some(word) if is_folder(&word.text) => resolve(&word.text, here),
        // The home folder is known however it is written.
        Some(word) if word.kind == WordKind::Known || HOMES.contains(&word.text.trim_end_matches('/')) => resolve(&word.text, here),
        Some(_) => None,
    }
}

/// Returns the folder that `env -C` names: behind it, in one word with it, or by its long name, which may be shortened.
fn chdir(arguments: &[Word]) -> Option<Word> {
    let mut words = arguments.iter();
    let mut found = None;
    // A word that is not known may be an option, or none at all.
    let is_in_front = |word: &&Word| (word.text.starts_with('-') && word.text != "--") || word.kind == WordKind::Unknown;
    while let Some(word) = words.next().filter(is_in_front) {
        let text = word.text.as_str();
        let part = |value: &str| Word { text: value.to_owned(), ..word.clone() };
        if let Some(long) = text.strip_prefix("--") {
            let (option, value) = long.split_once('=').map_or((long, None), |(option, value)| (option, Some(value)));
            let is_chdir = !option.is_empty() && "chdir".starts_with(option);
            let takes_next = value.is_none() && (is_chdir || ["unset", "split-string"].iter().any(|known| known.starts_with(option)));
            let next = if takes_next { words.next().cloned() } else { value.map(part) };
            found = if is_chdir { next } else { found };
        } else if let Some(at) = text.find(['C', 'u', 'S']).filter(|_| text.starts_with('-')) {
            let (letter, attached) = text[at..].split_at(1);
            let next = if attached.is_empty() { words.next().cloned() } else { Some(part(attached)) };
            found = if letter == "C" { next } else { found };
        }
    }
    found
}

/// Returns how many folders below the project's top a command may be when it names a path with `..`.
///
/// The working directory and every `cd` of the script are counted together: that is the deepest it can be.
fn depth(script: &Script, working_directory: Option<&str>) -> usize {
    let below = |path: &str| {
        let parts = path.strip_prefix("/workspace").unwrap_or(path).split('/');
        parts.filter(|part| !part.is_empty() && *part != "." && *part != "..").count()
    };
    let changes = script.commands.iter().filter(|command: &&Command| matches!(command.name(), Some("cd" | "pushd")));
    let depths = changes.filter_map(|command| command.arguments().first()).map(|word| match word.kind {
        WordKind::Known => below(&word.text),
        // Anywhere.
        WordKind::Pattern | WordKind::Unknown => 100,
    });
    depths.sum::<usize>() + working_directory.map_or(0, below)
}
