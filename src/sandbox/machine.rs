//! Whether an image is for the engine's kind of machine.

use std::path::Path;

use podbay_engine::Facts;
use podbay_engine::ImageFacts;

/// Where this machine's kernel lists the programs that it has others run.
const FORMATS: &str = "/proc/sys/fs/binfmt_misc";

/// Says what is wrong with an image whose programs nothing here could run.
///
/// What is known only on another machine, or emulated by a virtual one, is left to the engine.
pub fn misfit(image: &ImageFacts, engine: &Facts) -> Option<String> {
    if !engine.local
        || engine.desktop
        || runs(
            &image.architecture,
            &engine.architecture,
            Path::new(FORMATS),
        )
    {
        return None;
    }
    Some(format!(
        "it is made for another kind of machine, {}, and this engine runs on {}",
        image.architecture, engine.architecture
    ))
}

/// Returns whether a machine runs programs made for another, by itself or because its kernel hands
/// them to an emulator.
fn runs(theirs: &str, ours: &str, formats: &Path) -> bool {
    // Nobody says, or the processor has an older mode of its kind.
    let is_kin = theirs.is_empty()
        || ours.is_empty()
        || theirs == ours
        || matches!((theirs, ours), ("386", "amd64") | ("arm", "arm64"));
    let name = match theirs {
        "arm64" => "aarch64",
        "amd64" => "x86_64",
        "386" => "i386",
        other => other,
    };
    // Not a path: the engine's word comes from a file that anybody may have made.
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_kin
        || (is_plain
            && std::fs::read(formats.join(format!("qemu-{name}")))
                .is_ok_and(|text| text.starts_with(b"enabled")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machines_image_runs_where_it_is_emulated_alone() {
        let formats = tempfile::tempdir().expect("a folder");
        std::fs::write(
            formats.path().join("qemu-aarch64"),
            "enabled\ninterpreter /usr/bin/qemu-aarch64\n",
        )
        .expect("written");
        std::fs::write(formats.path().join("qemu-s390x"), "disabled\n").expect("written");
        let check = |theirs: &str| runs(theirs, "amd64", formats.path());
        assert!(
            ["amd64", "", "386", "arm64"]
                .map(check)
                .into_iter()
                .all(|runs| runs)
        );
        assert!(
            !["s390x", "riscv64", "../qemu-aarch64", "mips64le"]
                .map(check)
                .into_iter()
                .any(|runs| runs)
        );
        assert!(
            runs("arm", "arm64", Path::new("/nonexistent"))
                && !runs("amd64", "arm64", Path::new("/nonexistent"))
        );
    }

    #[test]
    fn what_only_another_machine_knows_is_left_to_the_engine() {
        let image = |architecture: &str| ImageFacts {
            id: "sha256:1".to_owned(),
            tags: vec!["theirs:latest".to_owned()],
            labels: None,
            volumes: Vec::new(),
            env: Vec::new(),
            architecture: architecture.to_owned(),
            size: 0,
        };
        let refused = misfit(&image("riscv99"), &Facts::plain()).expect("nothing runs it");
        assert!(
            refused.contains("riscv99") && refused.contains("amd64"),
            "{refused}"
        );
        for engine in [
            Facts {
                local: false,
                ..Facts::plain()
            },
            Facts {
                desktop: true,
                ..Facts::plain()
            },
        ] {
            assert_eq!(misfit(&image("riscv99"), &engine), None);
        }
        assert_eq!(misfit(&image("amd64"), &Facts::plain()), None);
    }
}
