//! What was measured on this machine, and the bounds that a caller can rely on.

use crate::Service;
use placement_contract::limits::{
    CHUNK_BYTES_MAX, EVIDENCE_PAGE_MAX, MEMORY_SPOOL_BYTES_MAX, OUTSTANDING_CHUNKS_MAX,
    SPOOL_BYTES_DEFAULT, SPOOL_BYTES_LIMIT, SWEEP_ATTEMPTS_MAX, SWEEP_DELAY_MS, SWEEP_RECONCILE_MS,
    TRANSCRIPT_BYTES_DEFAULT, WRITE_BYTES_MAX,
};
use placement_contract::{CapabilityReport, Refusal};
use serde::Serialize;

/// What this host offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// What was measured of containment.
    #[serde(flatten)]
    pub report: CapabilityReport,
    /// Whether a child's input can be closed while it runs.
    pub stdin_close: bool,
    /// How programs are measured.
    pub executable_measurement: MeasuringPrograms,
    /// Who grants directories.
    pub resource_authority: &'static str,
    /// Whether an authority outside this host is asked for grants.
    pub delegated_resource_grants: bool,
    /// Whether a credential broker is configured.
    pub credential_broker: bool,
    /// Kinds of credential projections.
    pub credential_projections: &'static [&'static str],
    /// How soon a lost runner is noticed; grants are not asked again, since no authority outside the
    /// host gives any.
    pub revocation_enforcement: RevocationEnforcement,
    /// What a running attempt outlives.
    pub survives_host: SurvivesHost,
    /// Largest output chunk, in bytes.
    pub max_chunk_bytes: usize,
    /// Largest single write to a child's input, in bytes.
    pub max_write_bytes: usize,
    /// Most chunks that are sent and not acknowledged.
    pub max_outstanding_chunks: usize,
    /// Unacknowledged bytes that a spool file holds by default.
    pub spool_bytes: u64,
    /// Largest spool file that a launch may ask for, in bytes.
    pub max_spool_bytes: u64,
    /// Unacknowledged bytes kept in memory where no spool file is used.
    pub memory_spool_bytes: u64,
    /// Acknowledged bytes that a transcript keeps by default.
    pub transcript_bytes: u64,
    /// Most evidence rows in one page.
    pub max_evidence_page: u32,
}

/// How programs are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MeasuringPrograms {
    /// Whether a file of any size is hashed in pieces.
    pub streaming: bool,
    /// Which file is executed.
    pub detail: &'static str,
}

/// How soon what is lost is noticed by a host that sweeps, and whether it asks again for grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RevocationEnforcement {
    /// Whether a sweep asks for grants; `not_checked` where no authority outside the host gives any.
    pub mode: &'static str,
    /// Time between two sweeps, in milliseconds.
    pub scheduling_delay_ms: u64,
    /// Longest that a sweep waits for one attempt, in milliseconds.
    pub reconcile_timeout_ms: u64,
    /// Time between the cooperative stop of an attempt and SIGKILL.
    pub stop_grace_ms: &'static str,
    /// Most attempts in one sweep.
    pub sweep_bound: u32,
}

/// What a running attempt outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SurvivesHost {
    /// The end of the host's process, where the launch keeps it on host loss.
    pub host_process: bool,
    /// The end of everything in the host's control group.
    pub control_group: bool,
    /// Both in one sentence.
    pub detail: &'static str,
}

impl Service {
    /// Returns what was measured here and the bounds; measures once per service.
    ///
    /// # Errors
    /// UNAVAILABLE where the probe did not answer.
    pub fn capabilities(&self) -> Result<Capabilities, Refusal> {
        Ok(Capabilities {
            report: self.measured()?,
            stdin_close: true,
            executable_measurement: MeasuringPrograms {
                streaming: true,
                detail: "measured on an open descriptor right before it is executed",
            },
            resource_authority: "host_configured",
            delegated_resource_grants: false,
            credential_broker: false,
            credential_projections: &[],
            revocation_enforcement: RevocationEnforcement {
                mode: "not_checked",
                scheduling_delay_ms: SWEEP_DELAY_MS,
                reconcile_timeout_ms: SWEEP_RECONCILE_MS,
                stop_grace_ms: "per attempt",
                sweep_bound: SWEEP_ATTEMPTS_MAX,
            },
            survives_host: SurvivesHost {
                host_process: true,
                control_group: false,
                detail: "a kept attempt outlives its host's process, and nothing that ends the \
                         whole control group: a systemd unit with its default KillMode, a \
                         container whose first process ends",
            },
            max_chunk_bytes: CHUNK_BYTES_MAX,
            max_write_bytes: WRITE_BYTES_MAX,
            max_outstanding_chunks: OUTSTANDING_CHUNKS_MAX,
            spool_bytes: SPOOL_BYTES_DEFAULT,
            max_spool_bytes: SPOOL_BYTES_LIMIT,
            memory_spool_bytes: MEMORY_SPOOL_BYTES_MAX,
            transcript_bytes: TRANSCRIPT_BYTES_DEFAULT,
            max_evidence_page: EVIDENCE_PAGE_MAX,
        })
    }
}
