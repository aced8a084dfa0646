//! `knotless-emulator`: see docs/emulator-protocol.md.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use emulator::config::Config;
use emulator::daemon::Daemon;
use emulator::error::{environment, Error};
use emulator::log::Log;

/// Emulate the links of a fabric: rates, delays, buffers, PAUSE and PFC.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: knotless-emulator --config emulator.json --socket emulator.sock"
)]
struct Arguments {
    /// Configuration, one JSON object.
    #[arg(long)]
    config: PathBuf,
    /// Control socket to listen on.
    #[arg(long)]
    socket: PathBuf,
    /// File to write the process id to.
    #[arg(long)]
    pid_file: Option<PathBuf>,
    /// File to log to, instead of standard error.
    #[arg(long)]
    log: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("knotless-emulator: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let config = Config::read(&arguments.config)?;
    let log = environment(Log::open(arguments.log.as_deref()), || "log file".into())?;
    let daemon = Daemon::open(&config, &arguments.socket, log)?;
    if let Some(path) = &arguments.pid_file {
        let written = std::fs::write(path, format!("{}\n", std::process::id()));
        environment(written, || path.display().to_string())?;
    }
    let result = daemon.run();
    if let Some(path) = &arguments.pid_file {
        let _ = std::fs::remove_file(path);
    }
    result
}
