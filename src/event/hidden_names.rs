/// Returns the paths that are hidden from commands as they are told: those of which git has a
/// version that can be read come first, and say so.
pub fn hidden_names(hidden: &[String], tracked: &[String]) -> Vec<String> {
    let (known, others): (Vec<&String>, Vec<&String>) =
        hidden.iter().partition(|path| tracked.contains(path));
    let known = known
        .into_iter()
        .map(|path| format!("{path} (its committed version can be read)"));
    known.chain(others.into_iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_has_of_a_hidden_file_is_said() {
        let [a, b] = ["a.pem", ".env"].map(str::to_owned);
        assert_eq!(
            hidden_names(&[a.clone(), b.clone()], std::slice::from_ref(&b)),
            [".env (its committed version can be read)", "a.pem"]
        );
        assert_eq!(hidden_names(&[a.clone(), b], &[]), ["a.pem", ".env"]);
    }
}
