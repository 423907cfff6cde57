use std::process::ExitCode;

fn main() -> ExitCode {
    streamt::cli::main()
}
