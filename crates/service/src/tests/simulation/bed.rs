//! What a life happens on: one root, its hosts, a clock that is set, strangers, and the truth about
//! each attempt.

use super::life::Lie;
use super::processes::Stubborn;
use super::runner::{Living, Runner};
use crate::Service;
use crate::testing::{open_with_clock, report};
use placement_contract::{
    AttemptId, Clock, Digest, Generation, LaunchRequest, Mechanism, OwnerId, Timestamp,
};
use placement_store::{Role, Store, StorePaths};
use placement_testkit::{FakeTime, TempRoot};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a host waits for a store in which nobody writes: here only a fault keeps it.
const LOCK_WAIT: Duration = Duration::from_millis(4);

/// Whose attempts there are; the first two hosts are of one owner.
pub(super) const OWNERS: [&str; 3] = ["local:test", "local:test", "local:other"];

/// A clock that stands until it is set.
#[derive(Debug)]
pub(super) struct SetClock(pub(super) FakeTime);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.0.unix_ms())
    }
}

/// The truth about one attempt.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that hold or not, each by itself")]
pub(super) struct Truth {
    pub(super) id: AttemptId,
    pub(super) owner: usize,
    pub(super) request: LaunchRequest,
    /// Runners that were started for it and have not claimed it yet, each by its attachment.
    pub(super) waiting: Vec<Generation>,
    pub(super) claims: u64,
    pub(super) runner: Option<Arc<Mutex<Option<Runner>>>>,
    /// It was claimed where nobody here can look.
    pub(super) elsewhere: bool,
    /// Its runner lives.
    pub(super) supervised: bool,
    /// The gate of its child was opened.
    pub(super) ran: bool,
    /// The leader lives, or may for all that anybody here can know.
    pub(super) leader_lives: bool,
    /// Something that left the leader's group lives.
    pub(super) escapee_lives: bool,
    /// The machine was started again since it was claimed.
    pub(super) rebooted: bool,
    pub(super) home: Option<camino::Utf8PathBuf>,
    /// What its child wrote, by sequence from 1; nothing for the end of a stream.
    pub(super) output: Vec<Vec<u8>>,
    pub(super) acknowledged: u64,
    /// What was seen of its evidence: how many rows, and the value of the last.
    pub(super) seen: Option<(u64, Digest)>,
    pub(super) pruned: bool,
}

/// Everything of one life.
pub(super) struct Bed {
    pub(super) hosts: RefCell<Vec<Service>>,
    /// Shared by the runners: what they write is told from what hosts write by the role.
    pub(super) runners: Arc<Store>,
    pub(super) truths: RefCell<BTreeMap<AttemptId, Truth>>,
    pub(super) random: RefCell<fastrand::Rng>,
    pub(super) trace: RefCell<Vec<String>>,
    pub(super) clock: Arc<SetClock>,
    /// How long the log of the store was when everything was looked at.
    pub(super) looked_at: Cell<u64>,
    /// A process of nobody's attempt whose number stands in some of them.
    pub(super) stranger: RefCell<Stubborn>,
    pub(super) lie: Lie,
    /// The machine has still to be started again.
    pub(super) earlier_boot: Cell<bool>,
    /// The runners that live, as whoever answers for them sees them.
    pub(super) living: Living,
    /// What a recipient got and must not have, told by the step that saw it.
    pub(super) broken: RefCell<Option<String>>,
    /// Goes last, with everything below it.
    pub(super) root: TempRoot,
}

impl Bed {
    pub(super) fn new(seed: u64, lie: Lie) -> Self {
        let root = TempRoot::new();
        let clock = Arc::new(SetClock(FakeTime::at(1_800_000_000_000)));
        let hosts = (0..OWNERS.len()).map(|host| open_host(&root, &clock, host)).collect();
        let runners = Store::open_ready(&StorePaths::below(root.path()), clock.clone()).unwrap();
        Self {
            hosts: RefCell::new(hosts),
            runners: Arc::new(runners.with_lock_wait(LOCK_WAIT)),
            truths: RefCell::default(),
            random: RefCell::new(fastrand::Rng::with_seed(seed)),
            trace: RefCell::default(),
            clock,
            stranger: RefCell::new(Stubborn::start()),
            looked_at: Cell::new(0),
            lie,
            earlier_boot: Cell::new(false),
            living: Living::default(),
            broken: RefCell::default(),
            root,
        }
    }

    pub(super) fn host(&self, host: usize) -> Service {
        self.hosts.borrow()[host].clone()
    }

    /// Opens a host again, as a new process would.
    pub(super) fn restart(&self, host: usize) {
        let opened = open_host(&self.root, &self.clock, host);
        self.hosts.borrow_mut()[host] = opened;
    }

    /// Keeps every writer from the store as long as it is held.
    pub(super) fn keep_store(&self) -> File {
        let lock = File::open(StorePaths::below(self.root.path()).lock).unwrap();
        lock.lock().unwrap();
        lock
    }

    pub(super) fn chance(&self, of: u32) -> bool {
        self.random.borrow_mut().u32(..of) == 0
    }

    pub(super) fn below(&self, end: usize) -> usize {
        self.random.borrow_mut().usize(..end)
    }

    pub(super) fn note(&self, line: impl Into<String>) {
        self.trace.borrow_mut().push(line.into());
    }

    pub(super) fn broke(&self, rule: String) {
        self.broken.borrow_mut().get_or_insert(rule);
    }

    /// Changes the truth about an attempt.
    pub(super) fn truth<T>(&self, id: &AttemptId, change: impl FnOnce(&mut Truth) -> T) -> T {
        change(self.truths.borrow_mut().get_mut(id).expect("it was prepared"))
    }

    /// Picks an attempt, the newer ones more often: an old one has come to rest.
    pub(super) fn pick(&self) -> Option<AttemptId> {
        let truths = self.truths.borrow();
        let count = truths.len();
        if count == 0 {
            return None;
        }
        let recent = count.saturating_sub(3);
        let at =
            if self.chance(4) { self.below(count) } else { recent + self.below(count - recent) };
        truths.keys().nth(at).cloned()
    }
}

fn open_host(root: &TempRoot, clock: &Arc<SetClock>, host: usize) -> Service {
    let owner = OwnerId::parse(OWNERS[host]).unwrap();
    // A program that ends at once: a runner that dies before its claim.
    let mut service = open_with_clock(root, owner, "/bin/true", clock.clone());
    let inner = Arc::get_mut(&mut service.inner).expect("nobody else has it yet");
    let paths = StorePaths::below(root.path());
    let store = Store::open(&paths, Role::Service, clock.clone()).unwrap();
    inner.store = store.with_lock_wait(LOCK_WAIT);
    inner.capability = Mutex::new(Some(report(Mechanism::ALL)));
    // A look of its thread would come whenever the machine has time for it: a life goes by its seed.
    inner.warden.silence();
    service
}
