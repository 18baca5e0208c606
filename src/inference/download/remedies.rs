//! Remedies for errors that no retry can fix. Errors that a retry may fix have one remedy, with the
//! error itself.

/// The URL leads to something else.
pub(super) const NOT_IT: &str =
    "look at the address: it has to be the file's own, not that of a page about it";

/// Something on the network answers instead of the source.
pub(super) const LOGIN: &str = "something on the network may require a login: open the address in a browser; it has to be the file's own, not that of a page \
                                about it";

/// The source cannot be used.
pub(super) const ELSEWHERE: &str = "load it from somewhere else: a mirror of the hub (`inference.hub`), another address, or a file that is here by \
                                    its path";

/// The source redirects to a forbidden URL.
pub(super) const UNENCRYPTED: &str = "only encrypted addresses are followed: name the https:// address that the file lies at, or another mirror with \
                                      `inference.hub`";

/// The file has changed.
pub(super) const CHANGED: &str =
    "run the command again: it begins anew with the file that is there now";

/// The list has another hash for the file.
pub(super) const UNLISTED: &str = "the file was replaced since it was listed: name it by itself, as hf:OWNER/REPOSITORY/FILE.gguf or by its address";

/// Something on the network changes the data.
pub(super) const PROXY: &str = "look for a proxy on the way that changes what passes through it; `inference.proxy` or HTTPS_PROXY names another";

/// The source refuses without a reason.
pub(super) const REFUSED: &str = "open the address in a browser, which may say why; another source is named by `inference.hub`, an address or a path";
