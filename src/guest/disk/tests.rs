use super::*;
use podbay_wire::message::DiskBegan;

const LIMITS: DiskLimits = DiskLimits {
    bytes: 10 << 30,
    files: 1_000_000,
    floor: 1 << 30,
    began: None,
};

fn room(mib: u64, files: u64) -> FreeSpace {
    FreeSpace {
        bytes: mib << 20,
        least: mib << 20,
        least_files: Some((files, 10_000_000)),
        files: Some(files),
        all_bytes: 1 << 40,
        all_files: 10_000_000,
    }
}

#[track_caller]
fn check(before: FreeSpace, start: FreeSpace, now: FreeSpace, expected: Option<Limit>) {
    assert_eq!(judge(LIMITS, before, OwnShare::Some(start), now), expected);
}

#[test]
fn growth_and_free_space_are_judged_by_session_and_by_command() {
    let (plenty, many) = (100 << 10, 9_000_000);
    let before = room(plenty, many);
    check(before, before, room(plenty - 9000, many), None);
    check(
        before,
        before,
        room(plenty - 10_300, many),
        Some(Limit::Disk { bytes: 10 << 30 }),
    );
    // The command before this one did it; this one may clean up.
    check(
        before,
        room(plenty - 10_230, many),
        room(plenty - 10_245, many),
        None,
    );
    check(
        before,
        room(plenty - 10_300, many),
        room(plenty - 10_301, many),
        None,
    );
    // But many small ones together must not continue forever.
    check(
        before,
        room(plenty - 10_300, many),
        room(plenty - 10_302, many),
        Some(Limit::Disk { bytes: 10 << 30 }),
    );
    check(
        before,
        room(plenty - 10_300, many),
        room(plenty - 10_330, many),
        Some(Limit::Disk { bytes: 10 << 30 }),
    );
    let small = room(3000, many);
    check(
        small,
        small,
        room(1000, many),
        Some(Limit::FreeSpace { bytes: 1 << 30 }),
    );
    check(small, room(1030, many), room(1020, many), None);
    check(small, room(900, many), room(899, many), None);
    // It was nearly full already.
    check(room(600, many), room(600, many), room(500, many), None);
    check(
        room(600, many),
        room(600, many),
        room(200, many),
        Some(Limit::FreeSpace { bytes: 300 << 20 }),
    );
    check(
        before,
        before,
        room(plenty, many - 1_000_001),
        Some(Limit::Files { count: 1_000_000 }),
    );
    check(
        room(plenty, 900_000),
        room(plenty, 900_000),
        room(plenty, 440_000),
        Some(Limit::FreeFiles { count: 450_000 }),
    );
    let none = FreeSpace {
        bytes: plenty << 20,
        least: plenty << 20,
        least_files: None,
        files: None,
        all_bytes: 1 << 40,
        all_files: 0,
    };
    check(none, none, none, None);
    let off = DiskLimits::default();
    assert_eq!(
        judge(off, before, OwnShare::None, room(0, 0)),
        None,
        "nothing is watched where no limit is set"
    );
}

#[test]
fn a_command_that_cannot_write_is_not_ended_for_others_writes() {
    let (plenty, many) = (100 << 10, 9_000_000);
    let before = room(plenty, many);
    let check = |part: OwnShare, now: FreeSpace, expected: Option<Limit>| {
        assert_eq!(judge(LIMITS, before, part, now), expected, "{part:?}");
    };
    let disk = Some(Limit::Disk { bytes: 10 << 30 });
    let over = room(plenty - 10_245, many);
    check(OwnShare::None, room(plenty - 10_200, many), None);
    check(OwnShare::None, over, disk);
    check(OwnShare::Some(room(plenty - 10_235, many)), over, None);
    check(
        OwnShare::WriteBlock(room(plenty - 10_235, many)),
        over,
        None,
    );
    check(OwnShare::WriteBlock(over), over, None);
    // All slack is used up: two more are too much from a command that can write.
    let far = room(plenty - 10_302, many);
    check(OwnShare::Some(room(plenty - 10_300, many)), far, disk);
    check(OwnShare::WriteBlock(room(plenty - 10_300, many)), far, None);
    check(OwnShare::WriteBlock(room(plenty - 10_280, many)), far, disk);
    let full = room(1000, many);
    check(OwnShare::None, full, disk);
    let floor = DiskLimits { bytes: 0, ..LIMITS };
    assert_eq!(
        judge(floor, before, OwnShare::None, full),
        Some(Limit::FreeSpace { bytes: 1 << 30 })
    );
    let files = room(plenty, many - 1_000_100);
    check(
        OwnShare::None,
        files,
        Some(Limit::Files { count: 1_000_000 }),
    );
    check(OwnShare::Some(room(plenty, many - 1_000_000)), files, None);
    check(
        OwnShare::WriteBlock(room(plenty, many - 999_000)),
        files,
        Some(Limit::Files { count: 1_000_000 }),
    );
}

#[test]
fn a_sandbox_that_replaces_another_continues_counting() {
    let mut disk = Disk::watch(vec![std::env::temp_dir()]);
    let began = DiskBegan {
        at: 1_000_000_000,
        bytes: 100 << 30,
        files: Some(9_000_000),
    };
    disk.limit(DiskLimits {
        began: Some(began),
        ..LIMITS
    });
    let before = (*disk.before()).expect("a file system");
    assert_eq!(before.bytes, 100 << 30);
    let (start, now) = (
        FreeSpace {
            bytes: 95 << 30,
            ..before
        },
        FreeSpace {
            bytes: 89 << 30,
            ..before
        },
    );
    assert_eq!(
        disk.crossed(OwnShare::Some(start), now),
        Some(Limit::Disk { bytes: 10 << 30 }),
        "six here and five in the sandbox before"
    );
    let (_, since) = disk.place();
    assert_eq!(
        since,
        UNIX_EPOCH + Duration::from_secs(1_000_000_000),
        "what the sandbox before wrote counts too"
    );
    disk.limit(DiskLimits {
        began: Some(began),
        ..DiskLimits::default()
    });
    assert_eq!(
        disk.room(),
        None,
        "nothing is watched where no limit is set"
    );
}

#[test]
fn rel_09_setting_the_clock_hides_no_growth() {
    let disk = Disk::watch(vec![std::env::temp_dir()]);
    let hour = Duration::from_secs(3600);
    let close = |found: SystemTime, expected: SystemTime| {
        let apart = found
            .duration_since(expected)
            .or_else(|_| expected.duration_since(found))
            .expect("one is later");
        assert!(
            apart < Duration::from_secs(60),
            "{found:?}, not {expected:?}"
        );
    };
    let began = disk.began;
    close(disk.since(began), began);
    // Set back: files written now have times before the original start.
    close(disk.since(began - hour), began - hour);
    // Set forward: files from before it was set still count.
    close(disk.since(began + hour), began);
}

#[test]
fn space_that_others_took_does_not_count_as_the_projects() {
    let mut disk = Disk::watch(vec![std::env::temp_dir()]);
    disk.limit(LIMITS);
    let before = room(100 << 10, 9_000_000);
    *disk.before() = Some(before);
    let now = room(80 << 10, 9_000_000);
    assert_eq!(
        disk.crossed(OwnShare::Some(before), now),
        Some(Limit::Disk { bytes: 10 << 30 }),
        "it looks like it"
    );
    let seen = ProjectGrowth {
        bytes: 1 << 20,
        files: 2,
        whole: true,
        most: None,
    };
    let limit = Limit::Disk { bytes: 10 << 30 };
    assert!(!disk.is_ours(&seen, now, limit));
    assert_eq!(
        disk.crossed(OwnShare::None, now),
        None,
        "it is not looked at again and again"
    );
    assert!(
        disk.is_ours(
            &ProjectGrowth {
                whole: false,
                ..seen
            },
            room(0, 0),
            limit
        ),
        "what is too large to be seen is not let off"
    );
}

#[test]
fn two_disks_count_together_and_each_keeps_its_floor() {
    let project = room(50 << 10, 100);
    let engine = FreeSpace {
        all_bytes: 1 << 41,
        ..room(20 << 10, 200)
    };
    let before = project.and(engine);
    assert_eq!(
        (before.bytes, before.least, before.files),
        (70 << 30, 20 << 30, Some(300))
    );
    let now = |project: u64, engine: u64| FreeSpace {
        bytes: (project + engine) << 20,
        least: project.min(engine) << 20,
        ..before
    };
    check(before, before, now(45 << 10, 16 << 10), None);
    check(
        before,
        before,
        now(45 << 10, 14 << 10),
        Some(Limit::Disk { bytes: 10 << 30 }),
    );
    let floor = DiskLimits { bytes: 0, ..LIMITS };
    assert_eq!(
        judge(floor, before, OwnShare::Some(before), now(50 << 10, 1000)),
        Some(Limit::FreeSpace { bytes: 1 << 30 }),
        "the engine's disk is nearly full"
    );
}

#[test]
fn folders_of_one_file_system_are_counted_once() {
    let place = tempfile::tempdir().expect("a folder");
    let (one, two) = (place.path().join("one"), place.path().join("two"));
    for folder in [&one, &two] {
        std::fs::create_dir(folder).expect("made");
    }
    let both = FreeSpace::of_each(&[one.clone(), two.clone()]).expect("a file system");
    assert_eq!(both.len(), 1);
    let missing = place.path().join("missing");
    let folders = folders_on_disk(&one, &[one.join("below"), missing, "/dev/shm".into()]);
    assert_eq!(folders, [one], "what is within, missing, or in memory");
}

#[test]
fn what_others_free_on_one_disk_hides_no_growth_on_another() {
    let (project, engine) = (room(64, 60_000), room(20 << 10, 1_000_000));
    let sum = |project: FreeSpace, engine: FreeSpace| project.and(engine);
    let now = sum(
        room(24, 54_000).at_most(project),
        room(25 << 10, 1_500_000).at_most(engine),
    );
    let before = sum(project, engine);
    assert_eq!(before.bytes - now.bytes, 40 << 20);
    assert_eq!(
        before
            .files
            .zip(now.files)
            .map(|(before, now)| before - now),
        Some(6000)
    );
    let unbounded = FreeSpace {
        files: None,
        ..project
    };
    assert_eq!(unbounded.at_most(project).files, None);
}
