//! Follows symbolic links in a project as the kernel of the user's machine would.

use super::untrusted_folder::UntrustedFolder;

/// The kernel's limit of links on one path.
const MAX_LINKS: usize = 40;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LinkPath {
    /// The links of the project that are followed.
    pub(crate) links: Vec<Vec<u8>>,
    /// The text of the path after each of them, where that is in the project.
    pub(crate) spelled: Vec<Vec<u8>>,
    pub(crate) end: PathEnd,
}

/// Where a path ends, whether the entry exists or not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PathEnd {
    /// In the project, relative to its folder.
    Inside(Vec<u8>),
    /// The text of an absolute path, or of a link if the project's path is unknown: links outside
    /// are not visible here.
    Outside(Vec<u8>),
    /// The links form a loop.
    Nowhere,
}

impl LinkPath {
    /// Follows a path relative to the project's folder. `place` is its path on the user's machine;
    /// empty: unknown.
    pub(crate) fn of(project: &UntrustedFolder, place: &[u8], path: &[u8]) -> Self {
        let top: Vec<Vec<u8>> = parts(place).collect();
        let mut at = top.clone();
        let mut rest: Vec<Vec<u8>> = parts(path).rev().collect();
        let (mut links, mut spelled) = (Vec::new(), Vec::new());
        while let Some(part) = rest.pop() {
            if part == b".." {
                if at.pop().is_none() && place.is_empty() {
                    rest.push(part);
                    return Self {
                        links,
                        spelled,
                        end: PathEnd::Outside(
                            rest.into_iter().rev().collect::<Vec<_>>().join(&b'/'),
                        ),
                    };
                }
                continue;
            }
            at.push(part);
            let Some(link) = inside(&at, &top).filter(|link| !link.is_empty()) else {
                continue;
            };
            let Ok(target) = project.link_target(&link) else {
                continue;
            };
            links.push(link);
            if links.len() > MAX_LINKS {
                return Self {
                    links,
                    spelled,
                    end: PathEnd::Nowhere,
                };
            }
            at.pop();
            rest.extend(parts(&target).rev());
            if target.starts_with(b"/") {
                at.clear();
                if place.is_empty() {
                    return Self {
                        links,
                        spelled,
                        end: PathEnd::Outside(whole(rest.into_iter().rev())),
                    };
                }
            }
            let mut letters = at.clone();
            for part in rest.iter().rev() {
                if part == b".." {
                    drop(letters.pop());
                } else {
                    letters.push(part.clone());
                }
            }
            spelled.extend(inside(&letters, &top).filter(|path| !path.is_empty()));
        }
        let end = inside(&at, &top)
            .map_or_else(|| PathEnd::Outside(whole(at.into_iter())), PathEnd::Inside);
        Self {
            links,
            spelled,
            end,
        }
    }
}

fn parts(path: &[u8]) -> impl DoubleEndedIterator<Item = Vec<u8>> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !matches!(*part, b"" | b"."))
        .map(<[u8]>::to_vec)
}

fn whole(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    parts.fold(Vec::new(), |whole, part| {
        [whole.as_slice(), b"/", &part].concat()
    })
}

fn inside(at: &[Vec<u8>], top: &[Vec<u8>]) -> Option<Vec<u8>> {
    at.strip_prefix(top).map(|inside| inside.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::sample::Sample;
    use super::*;

    #[test]
    fn links_out_of_the_project_and_back_in_are_followed() {
        let sample = Sample::without_git();
        sample.write("real/deep/x", "x");
        let place = sample.path("").display().to_string();
        let links = [
            ("real", "by"),
            ("real/deep/..", "up"),
            ("../project/real", "again"),
            (&format!("{place}/real"), "whole"),
            ("../../beside", "out"),
            ("loop", "loop"),
        ];
        for (target, link) in links {
            symlink(target, sample.path(link)).expect("linked");
        }
        let project = UntrustedFolder::open(&sample.path("")).expect("opens");
        let end =
            |place: &str, path: &str| LinkPath::of(&project, place.as_bytes(), path.as_bytes()).end;
        for way in [
            "by",
            "./by//",
            "up",
            "again",
            "whole",
            "real",
            "by/deep/../../real",
        ] {
            assert_eq!(
                end(&place, &format!("{way}/not/there")),
                PathEnd::Inside(b"real/not/there".to_vec()),
                "{way}"
            );
        }
        assert_eq!(
            LinkPath::of(&project, place.as_bytes(), b"up/deep/x").links,
            [b"up".to_vec()]
        );
        assert_eq!(end(&place, "loop"), PathEnd::Nowhere);
        assert!(
            matches!(end(&place, "out/x"), PathEnd::Outside(path) if path.ends_with(b"/beside/x") && path.starts_with(b"/"))
        );
        // With an unknown project path.
        assert_eq!(
            (end("", "by"), end("", "out/x")),
            (
                PathEnd::Inside(b"real".to_vec()),
                PathEnd::Outside(b"../../beside/x".to_vec())
            )
        );
        assert_eq!(
            end("", "whole/x"),
            PathEnd::Outside(format!("{place}real/x").into_bytes())
        );
        assert_eq!(end("", "by/../.."), PathEnd::Outside(b"..".to_vec()));
    }
}
