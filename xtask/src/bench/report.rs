//! The table, and the files with every figure.

use super::machine::Machine;
use super::row::{Line, Row};
use super::samples::Series;
use crate::command::Failure;
use camino::Utf8PathBuf;
use serde::Serialize;
use std::fs;

const HEADS: [&str; 7] = ["row", "what", "floor", "ours", "ratio", "must", "met"];

/// Gathers rows.
#[derive(Debug)]
pub(super) struct Report {
    machine: Machine,
    quick: bool,
    directory: Utf8PathBuf,
    rows: Vec<(&'static str, Row)>,
}

/// One row with everything that its figures depend on.
#[derive(Debug, Serialize)]
struct Stored<'a> {
    row: &'a str,
    quick: bool,
    machine: &'a Machine,
    #[serde(flatten)]
    found: &'a Row,
}

impl Report {
    /// Begins a report whose files go into a directory.
    pub(super) const fn new(machine: Machine, quick: bool, directory: Utf8PathBuf) -> Self {
        Self { machine, quick, directory, rows: Vec::new() }
    }

    /// Takes a row in and writes its file.
    pub(super) fn add(&mut self, name: &'static str, row: Row) -> Result<(), Failure> {
        let directory = &self.directory;
        fs::create_dir_all(directory).map_err(|error| Failure::io("make", directory, &error))?;
        let stored = Stored { row: name, quick: self.quick, machine: &self.machine, found: &row };
        let text = serde_json::to_string_pretty(&stored)
            .map_err(|error| Failure::new(format!("cannot render the row {name}: {error}")))?;
        let path = directory.join(format!("{name}.json"));
        fs::write(&path, text + "\n").map_err(|error| Failure::io("write", &path, &error))?;
        self.rows.push((name, row));
        Ok(())
    }

    /// Prints the table with aligned columns.
    pub(super) fn print(&self) {
        println!("{}", self.machine.told());
        let cells = self.cells();
        let width = |column: usize| {
            cells.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
        for line in &cells {
            let padded: Vec<String> =
                line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            println!("{}", padded.join("  ").trim_end());
        }
        self.notes().iter().for_each(|note| println!("{note}"));
    }

    /// Prints the table as a document holds it.
    pub(super) fn print_markdown(&self) {
        println!("{}\n", self.machine.told());
        for (number, line) in self.cells().iter().enumerate() {
            println!("| {} |", line.join(" | "));
            if number == 0 {
                println!("|{}", "---|".repeat(HEADS.len()));
            }
        }
        println!();
        self.notes().iter().for_each(|note| println!("* {note}"));
    }

    fn cells(&self) -> Vec<[String; 7]> {
        let mut cells = vec![HEADS.map(str::to_owned)];
        for (name, row) in &self.rows {
            cells.extend(row.lines.iter().map(|line| cells_of(name, line)));
        }
        cells
    }

    /// Tells what else was beside a figure, and what was not measured.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (name, row) in &self.rows {
            for line in &row.lines {
                notes.extend(line.beside.iter().skip(1).map(|rival| {
                    let figure = line.unit.shown(rival.median());
                    format!("{name}, {}: {} took {figure}", line.what, rival.name)
                }));
            }
            notes.extend(row.skipped.iter().map(|reason| format!("{name}: skipped: {reason}")));
        }
        notes
    }
}

fn cells_of(name: &str, line: &Line) -> [String; 7] {
    let floor = |series: &Series| format!("{} ({})", line.unit.shown(series.median()), series.name);
    let met = line.must.as_ref().map_or("", |must| if must.met { "yes" } else { "NO" });
    [
        name.to_owned(),
        line.what.clone(),
        line.beside.first().map(floor).unwrap_or_default(),
        line.unit.shown(line.ours.median()),
        line.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        line.must.as_ref().map(|must| must.text.clone()).unwrap_or_default(),
        met.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::Unit;

    #[test]
    fn a_line_shows_its_floor_and_whether_its_bound_is_met() {
        let line = Line::new("a child", Unit::Milliseconds, Series::new("ours", vec![6.0]))
            .beside(Series::new("raw", vec![2.0]))
            .at_most(5.0);
        let cells = cells_of("launch", &line);
        assert_eq!(
            cells,
            ["launch", "a child", "2.00 ms (raw)", "6.00 ms", "3.00", "≤ 5 ms", "NO"]
        );
    }
}
