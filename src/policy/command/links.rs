//! Links that a script makes to the project, or to what it lies in, and the paths that lead through them.

use super::blocked;
use super::place;
use super::place::Place;
use super::words;
use podbay_code::shell::Command;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Most links that are kept in mind.
const LINKS_MAX: usize = 16;
/// How many links in a row are followed.
const CHAIN_MAX: usize = 4;

/// Links, each with the place that it leads to.
#[derive(Default)]
pub(super) struct Links(Vec<(Place, Place)>);

impl Links {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes the links that a command makes or gives another name: `ln -s /workspace /tmp/w`, `mv l m`.
    pub(super) fn note(&mut self, command: &Command, here: Option<&Place>) {
        let arguments = command.arguments();
        let makes = match command.name() {
            Some("ln") if words::has(arguments, "s", &["--symbolic"]) => true,
            Some("mv") => false,
            Some("cp") if words::has(arguments, "adPRr", &["--archive", "--recursive", "--no-dereference"]) => false,
            _ => return,
        };
        if !makes && self.is_empty() {
            return;
        }
        let folder = blocked::target_folder(arguments);
        let mut operands: Vec<&Word> = words::operands(arguments).collect();
        let (to, is_folder) = match folder {
            Some(folder) => {
                operands.retain(|word| word.text != folder);
                (folder, true)
            }
            // With nothing behind it, the link lies here.
            None if operands.len() == 1 => (".".to_owned(), true),
            None => match operands.pop() {
                Some(to) if to.kind == WordKind::Known => {
                    let is_folder = operands.len() > 1 || to.text.ends_with(['/', '.']) || to.text == "/tmp";
                    (to.text.clone(), is_folder)
                }
                _ => return,
            },
        };
        let Some(to) = place::resolve(&to, here).filter(|to| !to.is_home) else { return };
        for target in operands {
            let lies_in = if is_folder { to.clone() } else { to.above() };
            // A link says where it leads from where it lies.
            let led = match target.kind {
                WordKind::Known if makes => place::resolve(&target.text, Some(&lies_in)),
                _ if makes => place::resolve(&target.text, here).filter(|_| place::is_folder_here(&target.text)),
                WordKind::Known => place::resolve(&target.text, here).filter(|old| self.0.iter().any(|(name, _)| name == old)),
                _ => None,
            };
            let Some(name) = place::resolve(&target.text, here).filter(|_| is_folder).and_then(|target| target.parts.last().cloned())
            else {
                self.add(to.clone(), led);
                continue;
            };
            let mut to = to.clone();
            to.parts.push(name);
            self.add(to, led);
        }
    }

    fn add(&mut self, name: Place, led: Option<Place>) {
        let led = led.and_then(|led| self.through(&led, true).or(Some(led)));
        if let Some(led) = led.filter(|led| Place::project().is_below(led) && *led != name && self.0.len() < LINKS_MAX) {
            self.0.push((name, led));
        }
    }

    /// Returns where a place lies that a link is on the way to; that the link itself is, too, if all of it is gone through.
    pub(super) fn through(&self, place: &Place, is_whole: bool) -> Option<Place> {
        let mut found: Option<Place> = None;
        for _ in 0..CHAIN_MAX {
            let now = found.as_ref().unwrap_or(place);
            let is_meant = |name: &Place| now.is_below(name) && (is_whole || now.parts.len() > name.parts.len());
            let Some((name, led)) = self.0.iter().find(|(name, _)| is_meant(name)) else { break };
            let rest = &now.parts[name.parts.len()..];
            found = Some(Place { is_home: false, parts: [led.parts.as_slice(), rest].concat() });
        }
        found
    }
}
