use super::args::InitArgs;
use super::delivery::deliver;
use podbay_app as app;
use podbay_app::Initialised;
use podbay_app::exit_code;
use podbay_ui::text;

pub(super) fn init(args: &InitArgs) -> Result<u8, app::Error> {
    if let Some(folder) = &args.misplaced {
        let folder = text::line(&folder.to_string_lossy());
        let problem = format!("`{folder}` stands where no folder is expected");
        return Err(app::Error::usage(
            problem,
            format!("name the project folder with -C: podbay init -C '{folder}'"),
        ));
    }
    let state = app::find_state(|name| std::env::var_os(name))?;
    let done = app::init(&super::setup::folder(args.path.as_deref())?, &state)?;
    deliver(&words(&done))?;
    for note in &done.notes {
        super::say(&format!("note: {}\n", text::line(note)));
    }
    Ok(exit_code::DONE)
}

fn words(done: &Initialised) -> String {
    let mut out: String = done
        .made
        .iter()
        .map(|name| format!("made {}\n", text::line(name)))
        .collect();
    out.extend(
        done.kept
            .iter()
            .map(|name| format!("left {} as it was\n", text::line(name))),
    );
    if !done.to_add.is_empty() {
        out.push_str(&format!(
            "for compose, add to {}:\n",
            text::line(&done.dotenv)
        ));
        out.extend(
            done.to_add
                .iter()
                .map(|line| format!("{}\n", text::line(line))),
        );
    }
    if done.made.is_empty() && done.to_add.is_empty() {
        out.push_str("nothing to do\n");
    }
    out
}
