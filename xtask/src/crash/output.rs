//! Nothing acknowledged comes again, nothing unacknowledged is lost.

use super::case::Job;
use super::facts::Facts;
use super::scenario::Scenario;
use serde::Deserialize;

/// How many pieces may be in flight without an acknowledgment: so many come again where a killed
/// runner had not read what its host acknowledged.
const WINDOW: u64 = 4;

/// One line of `--json` output; other lines are other answers.
#[derive(Debug, Deserialize)]
struct Piece {
    stream: String,
    sequence: u64,
    offset: u64,
    text: String,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.text.len() as u64
    }
}

/// Returns every rule of the delivery that is broken.
pub(super) fn broken(job: &Job, facts: &Facts) -> Vec<String> {
    let (first, second) = (pieces(&facts.host_said), pieces(&facts.attached));
    let whole = job.scenario.text();
    let mut broken = Vec::new();
    for piece in first.iter().chain(&second) {
        let from = usize::try_from(piece.offset).unwrap_or(usize::MAX);
        let to = usize::try_from(piece.end()).unwrap_or(usize::MAX);
        if whole.get(from..to) != Some(piece.text.as_str()) {
            broken.push(format!("piece {} is not what the child printed there", piece.sequence));
        }
    }
    for pieces in [&first, &second] {
        if pieces.windows(2).any(|pair| pair[0].end() != pair[1].offset) {
            broken.push("the output has a gap or a repetition".to_owned());
        }
    }
    if first.first().is_some_and(|piece| piece.offset != 0) {
        broken.push("the beginning of the output did not come".to_owned());
    }
    let told = first.last().map_or(0, Piece::end);
    let (again, through) =
        second.first().map_or((told, told), |piece| (piece.offset, second[second.len() - 1].end()));
    if again > told {
        broken.push(format!("{} bytes that nobody acknowledged are lost", again - told));
    }
    let acknowledged = facts
        .passed
        .iter()
        .filter(|one| one.pid == facts.host && one.point == "service.output.acknowledged");
    let acknowledged = acknowledged.count() as u64;
    let in_flight = if facts.runner_killed { WINDOW } else { 0 };
    if let Some(piece) = second.first()
        && piece.sequence + in_flight <= acknowledged
    {
        let sequence = piece.sequence;
        broken.push(format!(
            "piece {sequence} was acknowledged (through {acknowledged}) and came again"
        ));
    }
    if is_let_to_its_end(job, facts) && through.max(told) != whole.len() as u64 {
        broken.push(format!("{} of {} bytes came", through.max(told), whole.len()));
    }
    broken
}

/// Says whether nobody has ended the child, so that everything that it prints must come.
fn is_let_to_its_end(job: &Job, facts: &Facts) -> bool {
    let outlives = match job.scenario {
        Scenario::Ends | Scenario::Twins | Scenario::Aftermath => true,
        Scenario::Leaves => job.kill.is_none(),
        Scenario::Stopped | Scenario::Lost | Scenario::Refused => false,
    };
    outlives && !facts.runner_killed && facts.last().is_some_and(|look| look.runs > 0)
}

fn pieces(said: &str) -> Vec<Piece> {
    let pieces = said.lines().filter_map(|line| serde_json::from_str::<Piece>(line).ok());
    pieces.filter(|piece| piece.stream == "stdout").collect()
}
