//! From where a process was seen, and whether that place is here.

use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

use crate::errno::Errno;
use crate::machine::{self, MachineError};
use crate::presence::{AbsenceProof, UnknownWhy};
use crate::process::IdentityError;

/// Says from where an identity was measured: process numbers and start stamps mean something else
/// in another PID or time namespace and on another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observer {
    /// The machine id, where the machine has one.
    pub machine_id: Option<String>,
    /// Inode of the PID namespace.
    #[serde(with = "crate::decimal")]
    pub pid_namespace: u64,
    /// Inode of the time namespace, where the kernel has them.
    #[serde(with = "crate::decimal::option")]
    pub time_namespace: Option<u64>,
    /// Inode of the cgroup namespace, where the kernel has them.
    #[serde(with = "crate::decimal::option")]
    pub cgroup_namespace: Option<u64>,
}

/// Says where a recorded fact belongs, seen from the calling process.
#[derive(Debug)]
pub enum Place {
    /// The same boot and the same namespaces: it can be looked up.
    Here,
    /// An earlier boot of this machine: nothing of it lives.
    EarlierBoot(AbsenceProof),
    /// Somewhere that cannot be seen from here.
    Elsewhere(UnknownWhy),
}

impl Observer {
    /// Reads the place of the calling process.
    ///
    /// # Errors
    /// [`IdentityError::Namespace`] when the PID namespace cannot be read.
    pub fn here() -> Result<Self, IdentityError> {
        Ok(Self {
            machine_id: machine::machine_id(),
            pid_namespace: namespace("/proc/self/ns/pid")?.ok_or(IdentityError::Namespace {
                errno: Errno::from_raw(rustix::io::Errno::NOENT.raw_os_error()),
            })?,
            time_namespace: namespace("/proc/self/ns/time")?,
            cgroup_namespace: namespace("/proc/self/ns/cgroup")?,
        })
    }
}

/// The place of the calling process, read once to compare many records with.
#[derive(Clone, Debug)]
pub struct Here(Result<(String, Observer), UnknownWhy>);

impl Here {
    /// Reads boot, machine and namespaces; what cannot be read makes every answer unknown.
    pub fn read() -> Self {
        let boot_id = machine::boot_id().map_err(|error| match error {
            MachineError::Unreadable(_) | MachineError::Malformed => UnknownWhy::NoBootId,
        });
        Self(boot_id.and_then(|boot_id| {
            let here = Observer::here().map_err(|_| UnknownWhy::NoNamespaces)?;
            Ok((boot_id, here))
        }))
    }

    /// Compares where and when something was recorded with this place.
    ///
    /// Another boot id proves absence only on a machine that is known to be the same one; without a
    /// machine id the boot id alone says which machine it is.
    pub fn place(&self, boot_id: &str, observer: &Observer) -> Place {
        match &self.0 {
            Ok((now, here)) => compare(boot_id, observer, now, here),
            Err(why) => Place::Elsewhere(*why),
        }
    }
}

/// Compares where and when something was recorded with the calling process's own place, by
/// [`Here::place`].
pub fn place(boot_id: &str, observer: &Observer) -> Place {
    Here::read().place(boot_id, observer)
}

fn compare(boot_id: &str, then: &Observer, now: &str, here: &Observer) -> Place {
    if let (Some(recorded), Some(own)) = (&then.machine_id, &here.machine_id) {
        if recorded != own {
            return Place::Elsewhere(UnknownWhy::OtherMachine);
        }
        if boot_id != now {
            return Place::EarlierBoot(AbsenceProof::earlier_boot());
        }
    } else if boot_id != now {
        return Place::Elsewhere(UnknownWhy::MachineNotKnown);
    }
    if then.pid_namespace != here.pid_namespace {
        return Place::Elsewhere(UnknownWhy::OtherPidNamespace);
    }
    if then.time_namespace != here.time_namespace {
        return Place::Elsewhere(UnknownWhy::OtherTimeNamespace);
    }
    Place::Here
}

fn namespace(path: &str) -> Result<Option<u64>, IdentityError> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(IdentityError::Namespace { errno: Errno::from(&error) }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Observer, Place, compare};
    use crate::presence::UnknownWhy;

    fn observer(machine: Option<&str>) -> Observer {
        Observer {
            machine_id: machine.map(str::to_owned),
            pid_namespace: 1,
            time_namespace: Some(2),
            cgroup_namespace: Some(3),
        }
    }

    #[test]
    fn an_earlier_boot_of_the_same_machine_proves_absence() {
        let at = observer(Some("a"));
        assert!(matches!(compare("boot-1", &at, "boot-2", &at), Place::EarlierBoot(_)));
    }

    #[test]
    fn another_boot_without_a_machine_id_proves_nothing() {
        let at = observer(None);
        let seen = compare("boot-1", &at, "boot-2", &at);
        assert!(matches!(seen, Place::Elsewhere(UnknownWhy::MachineNotKnown)));
    }

    #[test]
    fn another_boot_proves_nothing_when_only_one_side_has_a_machine_id() {
        let seen = compare("boot-1", &observer(None), "boot-2", &observer(Some("a")));
        assert!(matches!(seen, Place::Elsewhere(UnknownWhy::MachineNotKnown)));
    }

    #[test]
    fn another_machine_is_unknown_in_every_boot() {
        for now in ["boot-1", "boot-2"] {
            let seen = compare("boot-1", &observer(Some("a")), now, &observer(Some("b")));
            assert!(matches!(seen, Place::Elsewhere(UnknownWhy::OtherMachine)));
        }
    }

    #[test]
    fn the_same_boot_without_machine_ids_is_here() {
        let at = observer(None);
        assert!(matches!(compare("boot-1", &at, "boot-1", &at), Place::Here));
    }

    #[test]
    fn another_pid_namespace_is_unknown() {
        let other = Observer { pid_namespace: 9, ..observer(Some("a")) };
        let seen = compare("boot-1", &other, "boot-1", &observer(Some("a")));
        assert!(matches!(seen, Place::Elsewhere(UnknownWhy::OtherPidNamespace)));
    }

    #[test]
    fn another_time_namespace_is_unknown() {
        let other = Observer { time_namespace: None, ..observer(Some("a")) };
        let seen = compare("boot-1", &other, "boot-1", &observer(Some("a")));
        assert!(matches!(seen, Place::Elsewhere(UnknownWhy::OtherTimeNamespace)));
    }
}
