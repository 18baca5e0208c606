use nix::errno::Errno;

/// Makes a system call from raw numbers.
///
/// Only for calls that a sandbox must refuse, with arguments that make the kernel fail before it
/// touches our memory.
#[expect(
    unsafe_code,
    reason = "these calls have no safe form, and only their refusal matters"
)]
pub(super) fn call(number: i64, arguments: [i64; 6]) -> Result<(), Errno> {
    // SAFETY: the addresses among the arguments are null or invalid, so the kernel answers EFAULT
    // where it lets the call through; none of the calls of the tables below changes memory,
    // descriptors or signals of this process behind Rust's back.
    let result = unsafe {
        libc::syscall(
            number,
            arguments[0],
            arguments[1],
            arguments[2],
            arguments[3],
            arguments[4],
            arguments[5],
        )
    };
    Errno::result(result).map(|_| ())
}

/// Returns whether the filter or the kernel refused the call, as opposed to an error about its
/// arguments.
pub(super) fn is_refused(answer: Result<(), Errno>) -> bool {
    matches!(answer, Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS))
}
