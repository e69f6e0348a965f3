//! `measure`: one program, as a start would measure it.

use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::progress::Awaiting;
use crate::render;
use camino::Utf8Path;

pub(crate) fn run(path: &Utf8Path, context: &Context) -> Result<u8, Failure> {
    let host = context.open()?;
    let awaited = Awaiting::start(format!("hashing {path}"));
    let measured = host.measure(path)?;
    drop(awaited);
    if context.style().json {
        render::json(&measured)?;
        return Ok(exit_code::SUCCESS);
    }
    let row = |name: &str, value: String| vec![format!("{name}:"), value];
    let mut rows = vec![
        row("revision", measured.revision),
        row("path", measured.path.into_string()),
        row("kind", measured.kind.to_string()),
        row("size", format!("{} bytes", measured.size)),
        row("digest", measured.digest.to_string()),
    ];
    if let Some(interpreter) = measured.interpreter {
        rows.push(row("interpreter", interpreter.line));
        rows.push(row("its digest", interpreter.digest.to_string()));
    }
    let plain = crate::context::Style { no_color: true, ..context.style() };
    render::table(&rows, plain)?;
    Ok(exit_code::SUCCESS)
}
