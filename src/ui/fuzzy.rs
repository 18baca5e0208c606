//! Finds names by some of their letters, in their order.

/// Returns at most so many names that hold these letters, the best first: whole runs count for
/// more, as do beginnings of words, the file's own name, and short paths.
pub(super) fn best<'a>(letters: &str, names: &'a [String], most: usize) -> Vec<&'a String> {
    let letters: Vec<char> = letters.to_lowercase().chars().collect();
    let mut found: Vec<(i64, &String)> = names
        .iter()
        .filter_map(|name| Some((score(&letters, name)?, name)))
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    found.truncate(most);
    found.into_iter().map(|(_, name)| name).collect()
}

fn score(letters: &[char], name: &str) -> Option<i64> {
    let chars: Vec<char> = name.chars().collect();
    let base = chars.iter().rposition(|c| *c == '/').map_or(0, |at| at + 1);
    // From the last letters on, the file's own name is met before its folders.
    let mut at = chars.len();
    let mut sum = -(chars.len() as i64) / 4;
    let mut last = None;
    for letter in letters.iter().rev() {
        let found = chars[..at]
            .iter()
            .rposition(|c| c.to_lowercase().eq(letter.to_lowercase()))?;
        let is_begin = found == 0 || !chars[found - 1].is_alphanumeric();
        sum += 1;
        if is_begin {
            sum += 8;
        }
        if last == Some(found + 1) {
            sum += 5;
        }
        if found >= base {
            sum += 3;
        }
        last = Some(found);
        at = found;
    }
    // A whole run in the file's own name is most likely what is meant; then the shortest is.
    let name: String = chars[base..].iter().collect::<String>().to_lowercase();
    let run: String = letters.iter().collect();
    if !run.is_empty()
        && let Some(at) = name.find(&run)
    {
        let begin = if at == 0 { 50 } else { 0 };
        return Some(1000 + begin - chars.len() as i64);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(letters: &str, expected: &[&str]) {
        let names = [
            "README.md",
            "src/app.py",
            "src/application/mod.rs",
            "tests/app_test.py",
        ]
        .map(str::to_owned);
        assert_eq!(best(letters, &names, 3), expected);
    }

    #[test]
    fn the_files_own_name_and_whole_runs_come_first() {
        check(
            "app",
            &["src/app.py", "tests/app_test.py", "src/application/mod.rs"],
        );
        check("apte", &["tests/app_test.py"]);
        check("rdme", &["README.md"]);
        check("zz", &[]);
        check("", &["README.md", "src/app.py", "tests/app_test.py"]);
    }
}
