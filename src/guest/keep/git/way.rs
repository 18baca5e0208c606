//! Where symbolic links lead in a project, as the kernel of the person's machine would follow them.

use super::folder::Folder;

/// How many links the kernel follows on one way.
const MAX_LINKS: usize = 40;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The links of the project that are followed.
    pub(crate) links: Vec<Vec<u8>>,
    /// What the path says after each of them, by its letters, where that is in the project.
    pub(crate) spelled: Vec<Vec<u8>>,
    pub(crate) end: End,
}

/// Where a way ends, whether something is there or not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In the project, from its folder.
    Inside(Vec<u8>),
    /// By the letters of a whole path, or of a link where nobody knows where the project is: no
    /// link out there can be seen from here.
    Outside(Vec<u8>),
    /// The links have no end.
    Nowhere,
}

impl Way {
    /// Follows a path from the project's folder. `place` is where that is on the person's machine;
    /// empty: nobody knows.
    pub(crate) fn of(project: &Folder, place: &[u8], path: &[u8]) -> Self {
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
                        end: End::Outside(rest.into_iter().rev().collect::<Vec<_>>().join(&b'/')),
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
                    end: End::Nowhere,
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
                        end: End::Outside(whole(rest.into_iter().rev())),
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
        let end =
            inside(&at, &top).map_or_else(|| End::Outside(whole(at.into_iter())), End::Inside);
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
    fn links_are_followed_out_of_the_project_and_in_again() {
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
        let project = Folder::open(&sample.path("")).expect("opens");
        let end =
            |place: &str, path: &str| Way::of(&project, place.as_bytes(), path.as_bytes()).end;
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
                End::Inside(b"real/not/there".to_vec()),
                "{way}"
            );
        }
        assert_eq!(
            Way::of(&project, place.as_bytes(), b"up/deep/x").links,
            [b"up".to_vec()]
        );
        assert_eq!(end(&place, "loop"), End::Nowhere);
        assert!(
            matches!(end(&place, "out/x"), End::Outside(path) if path.ends_with(b"/beside/x") && path.starts_with(b"/"))
        );
        // Where nobody knows where the project is.
        assert_eq!(
            (end("", "by"), end("", "out/x")),
            (
                End::Inside(b"real".to_vec()),
                End::Outside(b"../../beside/x".to_vec())
            )
        );
        assert_eq!(
            end("", "whole/x"),
            End::Outside(format!("{place}real/x").into_bytes())
        );
        assert_eq!(end("", "by/../.."), End::Outside(b"..".to_vec()));
    }
}
