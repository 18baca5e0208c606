use nix::errno::Errno;

/// Makes a system call from numbers alone.
///
/// Only for calls that a box must refuse, and with arguments that make the kernel find fault before
/// it touches memory of ours.
#[expect(
    unsafe_code,
    reason = "these calls have no safe form, and it is their refusal that is looked for"
)]
pub(super) fn call(number: i64, arguments: [i64; 6]) -> Result<(), Errno> {
    // SAFETY: the addresses among the arguments are null or lead nowhere, so the kernel answers
    // EFAULT where it lets the call through; none of the calls of the tables below changes memory,
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

/// Returns whether the answer is a filter's or the kernel's "no", and not a fault found with the
/// arguments.
pub(super) fn is_refused(answer: Result<(), Errno>) -> bool {
    matches!(answer, Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS))
}
