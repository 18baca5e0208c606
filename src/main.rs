//! One program, several roles: in a sandbox it is the guest, before the network the egress gateway,
//! everywhere else the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    match arguments.nth(1) {
        Some(role) if role == "guest" => podbay::guest::main(arguments),
        Some(role) if role == "egress" => podbay::egress::main(arguments),
        Some(role) if role == "web" => podbay::web::main(arguments),
        _ => front_end(),
    }
}

#[cfg(feature = "host")]
fn front_end() -> ExitCode {
    podbay::cli::main()
}

#[cfg(not(feature = "host"))]
fn front_end() -> ExitCode {
    use std::io::Write;
    let _ = writeln!(
        std::io::stderr(),
        "error: this podbay was built for the inside of a sandbox alone\nhint: build it with its default features"
    );
    ExitCode::from(2)
}
