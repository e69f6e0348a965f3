//! A root with one attempt, and short ways to write and read its log.

use std::fs;
use std::path::PathBuf;

use camino::Utf8PathBuf;
use placement_contract::{
    AttemptId, CleanupScope, ExecutionState, ExitSource, OwnerId, StreamName,
};
use placement_homes::{
    AttemptDir, HomeKey, LogItem, LogLimits, LogReader, LogWriter, ReadLogError, Record, Root,
};
use placement_testkit::TempRoot;
use placement_transitions::{ScopeFacts, ScopeGone, prove_scope};

pub(crate) const STDOUT: StreamName = StreamName::Stdout;
pub(crate) const STDERR: StreamName = StreamName::Stderr;

pub(crate) struct World {
    pub(crate) scratch: TempRoot,
    pub(crate) root: Root,
    pub(crate) attempt: AttemptDir,
}

pub(crate) fn key(attempt: &str) -> HomeKey {
    HomeKey::of(&OwnerId::parse("ci").unwrap(), &AttemptId::parse(attempt).unwrap())
}

/// The proof for an attempt whose only process was observed to exit.
pub(crate) fn proof() -> ScopeGone {
    let facts = ScopeFacts::of(ExecutionState::Exited, Some(ExitSource::Runner));
    prove_scope(CleanupScope::DirectProcess, &facts).unwrap()
}

pub(crate) fn limits(spool_bytes_max: u64, transcript_bytes_max: u64) -> LogLimits {
    LogLimits { spool_bytes_max, transcript_bytes_max }
}

impl World {
    pub(crate) fn new() -> Self {
        let scratch = TempRoot::new();
        let root = Root::open(scratch.join("root")).unwrap();
        let attempt = root.create_attempt(&key("a-1")).unwrap();
        Self { scratch, root, attempt }
    }

    pub(crate) fn attempt_path(&self) -> Utf8PathBuf {
        self.root.path().join("attempts").join(self.attempt.key().as_str())
    }

    pub(crate) fn writer(&self, limits: LogLimits) -> LogWriter {
        LogWriter::create(&self.attempt, limits).unwrap()
    }

    pub(crate) fn reader(&self) -> LogReader {
        LogReader::open(&self.attempt).unwrap()
    }

    /// Paths of the segments, oldest first.
    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = fs::read_dir(self.attempt_path().join("log"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "seg"))
            .collect();
        paths.sort();
        paths
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segments().iter().map(|path| fs::metadata(path).unwrap().len()).sum()
    }
}

/// Everything a reader finds now.
pub(crate) fn items(reader: &mut LogReader) -> Result<Vec<LogItem>, ReadLogError> {
    let mut items = Vec::new();
    while let Some(item) = reader.next_item()? {
        items.push(item);
    }
    Ok(items)
}

/// Everything a reader finds now, which must be records only.
pub(crate) fn records(reader: &mut LogReader) -> Vec<Record> {
    items(reader)
        .unwrap()
        .into_iter()
        .map(|item| match item {
            LogItem::Record(record) => record,
            LogItem::Gap(gap) => panic!("an unexpected gap: {gap:?}"),
        })
        .collect()
}

pub(crate) fn sequences(reader: &mut LogReader) -> Vec<u64> {
    records(reader).iter().map(|record| record.sequence).collect()
}
