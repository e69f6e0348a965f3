//! A host to be counted: launches a program so many times, one after the other.
//!
//! `repeated ROOT MARK COUNT RUNNER PROGRAM [ARGUMENT…]`. After each launch is cleaned up it tries to
//! remove MARK, a file that is not there: whoever traces it sees where one launch ends. RUNNER may be
//! this program itself.

use placement::{Launch, Placement};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    placement::runner::enter();
    let mut arguments = std::env::args().skip(1);
    let usage = "repeated ROOT MARK COUNT RUNNER PROGRAM [ARGUMENT...]";
    let root = arguments.next().ok_or(usage)?;
    let mark = arguments.next().ok_or(usage)?;
    let count: usize = arguments.next().ok_or(usage)?.parse()?;
    let runner = arguments.next().ok_or(usage)?;
    let program = arguments.next().ok_or(usage)?;
    let rest: Vec<String> = arguments.collect();

    let host = Placement::builder().root(&root).runner_at(runner).open()?;
    for _ in 0..count {
        let end = host.launch(Launch::program(&program).args(&rest).write("."))?.finish()?;
        if !end.is_success() {
            return Err(end.to_string().into());
        }
        if std::fs::remove_file(&mark).is_ok() {
            return Err("the mark was there".into());
        }
    }
    Ok(())
}
