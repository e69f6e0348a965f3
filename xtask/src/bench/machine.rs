//! The facts that figures depend on.

use crate::command::{Failure, capture, program};
use placement_testkit::{TempRoot, is_root};
use serde::Serialize;

/// The facts that figures depend on.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Machine {
    /// Processors that this process may use.
    pub(super) cores: usize,
    /// The release of the kernel.
    pub(super) kernel: String,
    /// The compiler.
    pub(super) rustc: String,
    /// The type of the file system on which the roots lie: what a sync costs.
    pub(super) file_system: String,
    /// Whether it ran as root.
    pub(super) root: bool,
    /// The commit, and whether there was more than it.
    pub(super) revision: String,
}

impl Machine {
    /// Looks at this machine and this checkout.
    pub(super) fn look() -> Result<Self, Failure> {
        let kernel = crate::workspace::read("/proc/sys/kernel/osrelease".into())?;
        let directory = TempRoot::new();
        let mut stat = program("stat");
        stat.args(["-f", "-c", "%T"]).arg(directory.path());
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
            rustc: capture(program("rustc").arg("--version"))?.trim().to_owned(),
            file_system: capture(&mut stat).map_or_else(|_| "unknown".into(), |t| t.trim().into()),
            root: is_root(),
            revision: revision(),
        })
    }

    /// Tells it in one line.
    pub(super) fn told(&self) -> String {
        format!(
            "{} cores, Linux {}, {}, roots on {}, {}, revision {}",
            self.cores,
            self.kernel,
            self.rustc,
            self.file_system,
            if self.root { "as root" } else { "as an ordinary user" },
            self.revision
        )
    }
}

/// A tree without history has no revision, which is no reason not to measure it.
fn revision() -> String {
    let mut git = program("git");
    git.args(["describe", "--always", "--dirty"]).stderr(std::process::Stdio::null());
    match git.output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        Ok(_) | Err(_) => "unknown".to_owned(),
    }
}
