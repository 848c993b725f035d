//! The `ic` command.

fn main() -> std::process::ExitCode {
    ic::main()
}
