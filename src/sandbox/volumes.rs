//! What becomes of the volumes that an image declares.
//!
//! The engine would mount a writable folder of the host's disk for each, without any limit, even
//! under a read-only root. So each gets a small file system in memory in its place, and an image
//! that has one where it would open something is refused.

use std::path::Path;

/// Places in which no volume may lie, and why: `it declares a volume at PATH, and …`.
pub struct Closed<'a> {
    pub place: &'a str,
    pub why: String,
}

/// The kernel's own places.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What all of an image's volumes may take together, and one at the most.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub bytes: u64,
    pub most_bytes: u64,
    pub files: u64,
    pub most_files: u64,
    /// Whether programs may be run from them.
    pub exec: bool,
}

/// A page, and a few files: with none at all the kernel would set no limit.
const LEAST_BYTES: u64 = 4096;
const LEAST_FILES: u64 = 16;

impl<'a> Closed<'a> {
    /// Closes a place because of what is mounted there.
    pub fn mounted(place: &'a str) -> Self {
        Self {
            place,
            why: format!("what is mounted at or below {place} keeps a container closed"),
        }
    }
}

/// Returns a file system in memory, path and options, for each volume; the error is what is wrong
/// with the image.
pub fn cover(
    volumes: &[String],
    closed: &[Closed<'_>],
    share: Share,
) -> Result<Vec<(String, String)>, String> {
    let n_volumes = volumes.len().max(1) as u64;
    let bytes = (share.bytes / n_volumes).clamp(LEAST_BYTES, share.most_bytes);
    let files = (share.files / n_volumes).clamp(LEAST_FILES, share.most_files);
    let exec = if share.exec { "exec" } else { "noexec" };
    let options = format!("rw,{exec},nosuid,nodev,size={bytes},nr_inodes={files},mode=1777");
    let kernel = KERNEL.map(Closed::mounted);
    let mut covers: Vec<(String, String)> = Vec::new();
    for volume in volumes {
        // As the engine reads it.
        let path = clean(volume);
        if path.is_empty() {
            return Err(format!(
                "it declares its root as a volume (`{volume}`), which the engine would copy to its disk for each container"
            ));
        }
        if let Some(Closed { why, .. }) = closed
            .iter()
            .chain(&kernel)
            .find(|closed| Path::new(&path).starts_with(closed.place))
        {
            return Err(format!("it declares a volume at {path}, and {why}"));
        }
        if !covers.iter().any(|(covered, _)| *covered == path) {
            covers.push((path, options.clone()));
        }
    }
    Ok(covers)
}

/// Returns a path without `.`, `..` and doubled slashes, looking at the text alone; empty for the
/// root.
pub fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.iter().map(|part| format!("/{part}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: Share = Share {
        bytes: 1 << 20,
        most_bytes: 1 << 18,
        files: 1000,
        most_files: 400,
        exec: false,
    };

    fn covered(volumes: &[&str]) -> Result<Vec<(String, String)>, String> {
        let volumes: Vec<String> = volumes.iter().map(|&volume| volume.to_owned()).collect();
        cover(
            &volumes,
            &[Closed {
                place: "/own",
                why: "that is ours".to_owned(),
            }],
            SHARE,
        )
    }

    #[test]
    fn each_volume_is_covered_once_with_its_part_of_what_all_may_take() {
        let found = covered(&["/data", "//data/./", "/srv/../srv/more"]).expect("good ones");
        let options = "rw,noexec,nosuid,nodev,size=262144,nr_inodes=333,mode=1777";
        assert_eq!(
            found,
            [
                ("/data".to_owned(), options.to_owned()),
                ("/srv/more".to_owned(), options.to_owned())
            ]
        );
        let many: Vec<String> = (0..1000).map(|n| format!("/v/{n}")).collect();
        let found = cover(
            &many,
            &[],
            Share {
                exec: true,
                ..SHARE
            },
        )
        .expect("good ones");
        assert!(
            found.len() == 1000
                && found[0].1 == "rw,exec,nosuid,nodev,size=4096,nr_inodes=16,mode=1777",
            "{:?}",
            found[0]
        );
        assert_eq!(covered(&[]), Ok(Vec::new()));
    }

    #[test]
    fn what_would_open_something_is_refused_however_it_is_written() {
        for (volume, words) in [
            ("/", "its root as a volume (`/`)"),
            ("/srv/..", "its root as a volume"),
            ("/own", "at /own, and that is ours"),
            ("/srv/../own/made", "at /own/made, and that is ours"),
            ("/proc/made", "what is mounted at or below /proc"),
            ("//sys", "what is mounted at or below /sys"),
            ("/dev/shm", "what is mounted at or below /dev"),
        ] {
            let said = covered(&["/data", volume]).expect_err(volume);
            assert!(said.contains(words), "{volume}: {said}");
        }
        assert!(covered(&["/owned", "/process"]).is_ok());
    }
}
