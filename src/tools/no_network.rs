//! What programs say when they find no network, which none of them says in these words.

/// What resolvers and package managers say.
const SIGNS: [&str; 14] = [
    "Could not resolve host",
    "could not resolve host",
    "Could not resolve proxy",
    "Temporary failure in name resolution",
    "Temporary failure resolving",
    "Name or service not known",
    "failed to lookup address information",
    "getaddrinfo EAI_AGAIN",
    "getaddrinfo ENOTFOUND",
    "ENETUNREACH",
    "Network is unreachable",
    "Unknown host",
    "no such host",
    // pip, where it does not try again, says nothing else.
    "(from versions: none)",
];

const REASON: &str = "the sandbox has no network: use what is installed or lies in the project, or say in your answer what is missing; dependencies of \
                      the project come with install_dependencies, or by its user's `podbay install`";

/// Looks at what a command printed that failed.
pub(super) fn hint(printed: &str) -> Option<&'static str> {
    SIGNS
        .iter()
        .any(|sign| printed.contains(sign))
        .then_some(REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_finds_no_network_is_explained() {
        for printed in [
            "curl: (6) Could not resolve host: example.org\n",
            "npm error code EAI_AGAIN\nnpm error errno EAI_AGAIN\nnpm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org\n",
            "ERROR: Could not find a version that satisfies the requirement x (from versions: none)\nERROR: No matching distribution found for x\n",
            "error: failed to get `x`\n\nCaused by:\n  [6] Could not resolve hostname (Could not resolve host: index.crates.io)\n",
            "Err:1 http://deb.debian.org/debian trixie InRelease\n  Temporary failure resolving 'deb.debian.org'\n",
        ] {
            assert_eq!(hint(printed), Some(REASON), "{printed}");
        }
        for printed in [
            "error: test failed\n",
            "ERROR: Could not find a version that satisfies the requirement x==9 (from versions: 1, 2)\n",
        ] {
            assert_eq!(hint(printed), None, "{printed}");
        }
    }
}
