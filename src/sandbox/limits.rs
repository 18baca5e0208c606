//! Which values of the settings a sandbox can be made with.

use super::Backend;
use super::Error;
use super::Options;
use super::is_image_name;
use podbay_event::ByteSize;
use podbay_event::Seconds;

/// Processes that the kernel can count at most.
const MOST_PROCESSES: u32 = 1 << 22;

/// Open files of one process that the kernel allows at most, unless it was told otherwise
/// (`fs.nr_open`).
const MOST_OPEN_FILES: u32 = 1 << 20;

/// More memory than any machine has.
const MOST_MEMORY: ByteSize = ByteSize::gib(64 << 10);

/// More than any disk holds. What is far beyond it counts as no limit at all in the kernel.
const MOST_DISK: ByteSize = ByteSize::gib(1 << 20);

/// Less room than this for what a project gains in a session would stop every command that writes:
/// what others take on that disk counts until somebody looks.
const LEAST_DISK: u64 = 4 << 20;
const LEAST_FILES: u64 = 100;

/// Longer than anything here lasts. The clock cannot count to the end of time.
const LONGEST: Seconds = Seconds::new(366 * 86_400);

impl Options {
    /// Returns what sandboxes are made of, if they can be made with these settings; asks nobody.
    pub fn check(&self) -> Result<Backend, Error> {
        self.mistakes()
            .into_iter()
            .next()
            .map_or(Ok(self.backend), Err)
    }

    /// Returns everything that is wrong with these settings, an error for each.
    pub fn mistakes(&self) -> Vec<Error> {
        let mut mistakes = Vec::new();
        let mut judge = |key: &'static str, is_good: bool, problem: &dyn Fn() -> String| {
            if !is_good {
                mistakes.push(Error::Setting {
                    key,
                    problem: problem(),
                });
            }
        };
        judge("sandbox.backend", self.backend != Backend::Native, &|| {
            "the native backend is not built yet; `docker` is the one that makes sandboxes"
                .to_owned()
        });
        let times = [
            ("sandbox.lease", self.lease),
            ("sandbox.grace", self.grace),
            ("sandbox.restart_window", self.restart_window),
        ];
        for (key, time) in times {
            judge(key, time <= LONGEST, &|| {
                format!("{time} is longer than a year")
            });
        }
        let (start, a_second) = (self.start_timeout, Seconds::new(1));
        judge(
            "sandbox.start_timeout",
            (a_second..=LONGEST).contains(&start),
            &|| format!("{start} is not between 1 s and a year"),
        );
        // What a sandbox of somebody else's is like was decided by whoever made it.
        if self.backend == Backend::Attach {
            return mistakes;
        }
        judge(
            "sandbox.image",
            self.image.as_deref().is_none_or(is_image_name),
            &|| {
                format!(
                    "`{}` is not the name of an image",
                    self.image.as_deref().unwrap_or_default()
                )
            },
        );
        judge(
            "sandbox.cpus",
            (0.01..=1024.0).contains(&self.cpus),
            &|| format!("{} is not between 0.01 and 1024 cores", self.cpus),
        );
        let sizes = [
            (
                "sandbox.memory",
                self.memory,
                ByteSize::mib(32),
                MOST_MEMORY,
            ),
            (
                "sandbox.file_size",
                self.file_size,
                ByteSize::kib(4),
                MOST_DISK,
            ),
            ("sandbox.shm", self.shm, ByteSize::new(4096), MOST_MEMORY),
            ("sandbox.disk", self.disk, ByteSize::new(0), MOST_DISK),
            (
                "sandbox.disk_floor",
                self.disk_floor,
                ByteSize::new(0),
                MOST_DISK,
            ),
        ];
        for (key, size, least, most) in sizes {
            judge(key, size >= least, &|| {
                format!("{size} is less than the {least} that a sandbox needs")
            });
            judge(key, size <= most, &|| {
                format!("{size} is more than the {most} that can be given")
            });
        }
        let growth = [
            (
                "sandbox.disk",
                self.disk.bytes(),
                LEAST_DISK,
                format!("0 (no limit) or at least {}", ByteSize::new(LEAST_DISK)),
            ),
            (
                "sandbox.disk_files",
                self.disk_files,
                LEAST_FILES,
                format!("0 (no limit) or at least {LEAST_FILES}"),
            ),
        ];
        for (key, value, least, good) in growth {
            judge(key, value == 0 || value >= least, &|| {
                format!("{value} is too little for any work: write {good}")
            });
        }
        let counts = [
            ("sandbox.pids", self.pids, 16, MOST_PROCESSES, "processes"),
            (
                "sandbox.open_files",
                self.open_files,
                64,
                MOST_OPEN_FILES,
                "files",
            ),
        ];
        for (key, count, least, most, what) in counts {
            judge(key, count >= least, &|| {
                format!("{count} is less than the {least} {what} that a sandbox needs")
            });
            judge(key, count <= most, &|| {
                format!("{count} is more than the {most} {what} that the kernel can count")
            });
        }
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Options), wrong: &[&str]) {
        let mut options = Options::default();
        change(&mut options);
        let keys: Vec<&str> = options
            .mistakes()
            .iter()
            .map(|error| {
                if let Error::Setting { key, .. } = error {
                    key
                } else {
                    ""
                }
            })
            .collect();
        assert_eq!(
            (keys.as_slice(), options.check().is_ok()),
            (wrong, wrong.is_empty())
        );
    }

    #[test]
    fn every_limit_has_a_least_and_a_most() {
        check(|_| {}, &[]);
        for bad in [0.0, -1.0, 0.001, 1024.5, f64::INFINITY, f64::NAN] {
            check(|options| options.cpus = bad, &["sandbox.cpus"]);
        }
        for bad in [
            ByteSize::new(0),
            ByteSize::mib(31),
            ByteSize::gib((64 << 10) + 1),
            ByteSize::new(u64::MAX),
        ] {
            check(|options| options.memory = bad, &["sandbox.memory"]);
        }
        check(|options| options.memory = MOST_MEMORY, &[]);
        for bad in [0, 15, MOST_PROCESSES + 1, u32::MAX] {
            check(|options| options.pids = bad, &["sandbox.pids"]);
        }
        for bad in [0, 63, MOST_OPEN_FILES + 1, u32::MAX] {
            check(|options| options.open_files = bad, &["sandbox.open_files"]);
        }
        for bad in [ByteSize::new(0), ByteSize::kib(1), ByteSize::new(u64::MAX)] {
            check(|options| options.file_size = bad, &["sandbox.file_size"]);
        }
        for (good, bad) in [
            (ByteSize::new(0), ByteSize::new(u64::MAX)),
            (MOST_DISK, ByteSize::gib((1 << 20) + 1)),
        ] {
            check(
                |options| (options.disk, options.disk_floor) = (good, good),
                &[],
            );
            check(
                |options| (options.disk, options.disk_floor) = (bad, bad),
                &["sandbox.disk", "sandbox.disk_floor"],
            );
        }
        for bad in [1, LEAST_DISK - 1] {
            check(
                |options| options.disk = ByteSize::new(bad),
                &["sandbox.disk"],
            );
        }
        for bad in [1, LEAST_FILES - 1] {
            check(|options| options.disk_files = bad, &["sandbox.disk_files"]);
        }
        check(
            |options| (options.disk, options.disk_files) = (ByteSize::new(LEAST_DISK), LEAST_FILES),
            &[],
        );
        check(
            |options| (options.disk, options.disk_files) = (ByteSize::new(0), 0),
            &[],
        );
        for bad in [0, LONGEST.get() + 1, u64::MAX] {
            check(
                |options| options.start_timeout = Seconds::new(bad),
                &["sandbox.start_timeout"],
            );
        }
        let all_times = ["sandbox.lease", "sandbox.grace", "sandbox.restart_window"];
        let bad = Seconds::new(u64::MAX);
        check(
            |options| (options.lease, options.grace, options.restart_window) = (bad, bad, bad),
            &all_times,
        );
        check(
            |options| options.image = Some("No Image".to_owned()),
            &["sandbox.image"],
        );
    }

    #[test]
    fn what_makes_a_box_is_not_asked_of_one_that_is_somebody_else_s() {
        check(
            |options| (options.backend, options.pids) = (Backend::Attach, 0),
            &[],
        );
        check(
            |options| (options.backend, options.start_timeout) = (Backend::Attach, Seconds::new(0)),
            &["sandbox.start_timeout"],
        );
        check(
            |options| options.backend = Backend::Native,
            &["sandbox.backend"],
        );
    }
}
