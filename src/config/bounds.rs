//! Which values of the settings can be meant, beside those of `sandbox`, which has bounds of its own.

use super::Config;
use super::Error;
use super::Loaded;
use crate::event::Seconds;

/// Longer than anything here lasts. The clock cannot count to the end of time.
const LONGEST: Seconds = Seconds::new(366 * 86_400);

/// Refuses the first value that nothing can be done with, and says where it stands.
pub(super) fn check(loaded: &Loaded<Config>) -> Result<(), Error> {
    match mistakes(&loaded.config).into_iter().next() {
        Some((key, what)) => Err(Error::Value { origin: loaded.origins.of(key).clone(), key: key.to_owned(), what }),
        None => Ok(()),
    }
}

fn mistakes(config: &Config) -> Vec<(&'static str, String)> {
    let mut mistakes = Vec::new();
    let (agent, tools, llm) = (&config.agent, &config.tools, &config.llm);
    let times = [
        ("agent.timeout", agent.timeout, 0),
        ("agent.last_answer", agent.last_answer, 0),
        ("tools.bash_timeout", tools.bash_timeout, 1),
        ("tools.bash_timeout_max", tools.bash_timeout_max, 1),
        ("tools.bash_grace", tools.bash_grace, 0),
        ("tools.search_timeout", tools.search_timeout, 1),
        ("tools.file_timeout", tools.file_timeout, 1),
    ];
    for (key, time, least) in times {
        if time > LONGEST {
            mistakes.push((key, format!("{time} is longer than a year")));
        } else if time.get() < least {
            mistakes.push((key, format!("{time} leaves no time: give it at least {least} s")));
        }
    }
    let spans = [
        ("llm.idle_timeout_s", llm.idle_timeout_s),
        ("llm.connect_timeout_s", llm.connect_timeout_s),
        ("llm.probe_timeout_s", llm.probe_timeout_s),
        ("llm.request_timeout_s", llm.request_timeout_s),
    ];
    for (key, seconds) in spans {
        if !(seconds > 0.0 && seconds <= LONGEST.get() as f64) {
            mistakes.push((key, format!("{seconds} is not between 0 and a year, in seconds; 0 is too little")));
        }
    }
    if llm.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        mistakes.push(("llm.temperature", format!("{} is not between 0 and 2", llm.temperature.unwrap_or_default())));
    }
    if agent.wrap_up_percent > 100 {
        mistakes.push(("agent.wrap_up_percent", format!("{} is more than 100 percent", agent.wrap_up_percent)));
    }
    if tools.read_lines == 0 {
        mistakes.push(("tools.read_lines", "0 lines are none: give it at least 1".to_owned()));
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[track_caller]
    fn check(text: &str, key: &str, line: usize) {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("config.toml");
        std::fs::write(&path, text).expect("written");
        let error = Config::load(&Sources { user: Some(path), ..Sources::default() }).expect_err(text).to_string();
        assert!(error.contains(&format!("config.toml:{line}: `{key}`: ")), "{error}");
    }

    #[test]
    fn what_nothing_can_be_done_with_is_refused_with_key_and_line() {
        assert_eq!(mistakes(&Config::default()), vec![]);
        for time in ["bash_timeout", "bash_timeout_max", "bash_grace", "search_timeout", "file_timeout"] {
            check(&format!("[tools]\n\n{time} = \"99999999999999h\"\n"), &format!("tools.{time}"), 3);
        }
        for zero in ["bash_timeout", "bash_timeout_max", "search_timeout", "file_timeout", "read_lines"] {
            check(&format!("[tools]\n{zero} = 0\n"), &format!("tools.{zero}"), 2);
        }
        for nonsense in ["0", "-1", "nan", "inf", "1e300"] {
            check(&format!("[llm]\nidle_timeout_s = {nonsense}\n"), "llm.idle_timeout_s", 2);
        }
        for nonsense in ["-0.1", "2.1", "nan"] {
            check(&format!("[llm]\ntemperature = {nonsense}\n"), "llm.temperature", 2);
        }
        check("[agent]\nwrap_up_percent = 101\n", "agent.wrap_up_percent", 2);
        check("[agent]\ntimeout = \"400d\"\n", "agent.timeout", 2);
    }
}
