//! What to do where no other try would do better. What can be tried again has one remedy for all,
//! with the error itself.

/// The address leads to something else.
pub(super) const NOT_IT: &str =
    "look at the address: it has to be the file's own, not that of a page about it";

/// The network answers in the source's stead.
pub(super) const LOGIN: &str = "something on the way may want a login: open the address in a browser; it has to be the file's own, not that of a page \
                                about it";

/// The source itself is no good.
pub(super) const ELSEWHERE: &str = "load it from somewhere else: a mirror of the hub (`inference.hub`), another address, or a file that is here by \
                                    its path";

/// The source leads away from where it may lead.
pub(super) const UNENCRYPTED: &str = "only encrypted addresses are followed: name the https:// address that the file lies at, or another mirror with \
                                      `inference.hub`";

/// The file is another one than it was.
pub(super) const CHANGED: &str =
    "run the command again: it begins anew with the file that is there now";

/// The list knows the file otherwise.
pub(super) const UNLISTED: &str = "the file was replaced since it was listed: name it by itself, as hf:OWNER/REPOSITORY/FILE.gguf or by its address";

/// Something changes what passes through.
pub(super) const PROXY: &str = "look for a proxy on the way that changes what passes through it; `inference.proxy` or HTTPS_PROXY names another";

/// The source wants something that it does not say.
pub(super) const REFUSED: &str = "open the address in a browser, which may say why; another source is named by `inference.hub`, an address or a path";
