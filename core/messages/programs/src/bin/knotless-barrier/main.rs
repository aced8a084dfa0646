//! `knotless-barrier`: the process that a host of a running fabric runs, for barriers and for the
//! measurement of LogP's parameters.
//!
//! Standard input has its job, one line of JSON ([`job::Job`]), and, once all processes have said
//! `ready`, a line `go`. Its result is one line of JSON. After that it goes on answering the others
//! until its standard input ends, so that who missed its last message can ask for it.

mod job;
mod logp;
mod rounds;

use std::io::{stdin, Write};
use std::process::ExitCode;

use job::{Job, Work};
use programs::real::Networks;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("knotless-barrier: {text}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let job: Job = serde_json::from_str(&line()?).map_err(|error| format!("job: {error}"))?;
    job.check()?;
    let networks = Networks::open(job.port, &job.networks, job.faults.clone());
    let mut networks = networks.map_err(|error| error.to_string())?;
    if networks.rank() != job.rank {
        let (own, named) = (networks.rank(), job.rank);
        return Err(format!("job: by the MAC of its interface, process {named} is process {own}"));
    }
    say("ready")?;
    if line()?.trim() != "go" {
        return Err("wanted the line `go` on standard input".into());
    }
    match &job.work {
        Work::Barrier(work) => {
            let (outcome, member) = rounds::run(&job, work, networks)?;
            say(&text(&outcome)?)?;
            rounds::answer(member)
        }
        Work::Logp(work) if job.rank == 0 => {
            let outcome = logp::measure(&job, work, &mut networks)?;
            say(&text(&outcome)?)
        }
        Work::Logp(_) => logp::echo(&mut networks),
    }
}

fn text(outcome: &impl serde::Serialize) -> Result<String, String> {
    serde_json::to_string(outcome).map_err(|error| error.to_string())
}

fn line() -> Result<String, String> {
    let mut line = String::new();
    match stdin().read_line(&mut line) {
        Ok(0) => Err("standard input has ended".into()),
        Ok(_) => Ok(line),
        Err(error) => Err(format!("standard input: {error}")),
    }
}

fn say(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}
