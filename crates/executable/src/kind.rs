//! What kind of program a file is, and which interpreter the kernel would take for a script.

use crate::limits::SCRIPT_HEAD_BYTES;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::ExecutableKind;

/// The interpreter line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterpreterLine {
    /// The line after `#!`, without surrounding blanks.
    pub(crate) line: String,
    /// The interpreter.
    pub(crate) path: Utf8PathBuf,
}

/// Why an interpreter line is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineError {
    /// It names nothing, is cut off, is not text or names a relative path.
    Unusable,
    /// It ends with a carriage return, which the kernel takes for a part of the name.
    CarriageReturn,
}

/// Tells what kind of program a file is from its first bytes.
pub(crate) fn kind_of(head: &[u8]) -> ExecutableKind {
    if head.starts_with(b"\x7fELF") {
        ExecutableKind::Elf
    } else if head.starts_with(b"#!") {
        ExecutableKind::Script
    } else {
        ExecutableKind::Other
    }
}

/// Reads the interpreter line as the kernel does: <https://man7.org/linux/man-pages/man2/execve.2.html>.
///
/// The kernel looks at the first 256 bytes only, ends the line at a newline or a NUL, and takes
/// what stands before the first blank as the path. A path that the 256 bytes cut off is refused
/// there too.
pub(crate) fn interpreter_line(head: &[u8]) -> Result<InterpreterLine, LineError> {
    let head = &head[..head.len().min(SCRIPT_HEAD_BYTES)];
    let rest = head.strip_prefix(b"#!").ok_or(LineError::Unusable)?;
    let end = rest.iter().position(|byte| matches!(byte, b'\n' | 0));
    let cut_off = end.is_none() && head.len() == SCRIPT_HEAD_BYTES;
    let line = std::str::from_utf8(&rest[..end.unwrap_or(rest.len())])
        .map_err(|_| LineError::Unusable)?
        .trim_matches([' ', '\t']);
    let (path, argument) =
        line.split_once([' ', '\t']).map_or((line, None), |(path, rest)| (path, Some(rest)));
    if cut_off && argument.is_none() {
        return Err(LineError::Unusable);
    }
    if path.ends_with('\r') {
        return Err(LineError::CarriageReturn);
    }
    if !Utf8Path::new(path).is_absolute() {
        return Err(LineError::Unusable);
    }
    Ok(InterpreterLine { line: line.to_owned(), path: path.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(head: &[u8]) -> Result<String, LineError> {
        interpreter_line(head).map(|line| line.path.into_string())
    }

    #[test]
    fn the_magic_bytes_tell_the_kind() {
        assert_eq!(kind_of(b"\x7fELF\x02\x01"), ExecutableKind::Elf);
        assert_eq!(kind_of(b"#!/bin/sh\n"), ExecutableKind::Script);
        assert_eq!(kind_of(b"echo hi\n"), ExecutableKind::Other);
        assert_eq!(kind_of(b""), ExecutableKind::Other);
    }

    #[test]
    fn the_path_ends_at_the_first_blank() {
        assert_eq!(path_of(b"#!/bin/sh\necho"), Ok("/bin/sh".into()));
        assert_eq!(path_of(b"#! \t/usr/bin/env  node\n"), Ok("/usr/bin/env".into()));
        assert_eq!(path_of(b"#!/bin/sh"), Ok("/bin/sh".into()));
        let line = interpreter_line(b"#! /usr/bin/env -S node --x \n").map(|line| line.line);
        assert_eq!(line, Ok("/usr/bin/env -S node --x".into()));
    }

    #[test]
    fn a_line_without_an_absolute_path_is_unusable() {
        for head in
            [&b"#!\n"[..], b"#!sh\n", b"#!./sh\n", b"#! \t \n", b"#!\0/bin/sh\n", b"#!\xff\n"]
        {
            assert_eq!(path_of(head), Err(LineError::Unusable), "{head:?}");
        }
    }

    #[test]
    fn a_path_that_the_head_cuts_off_is_unusable() {
        let long = format!("#!/{}\n", "x".repeat(400));
        assert_eq!(path_of(long.as_bytes()), Err(LineError::Unusable));
        let argument = format!("#!/bin/sh {}\n", "x".repeat(400));
        assert_eq!(path_of(argument.as_bytes()), Ok("/bin/sh".into()));
    }

    #[test]
    fn a_carriage_return_is_named() {
        assert_eq!(path_of(b"#!/bin/sh\r\n"), Err(LineError::CarriageReturn));
    }
}
