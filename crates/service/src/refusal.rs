//! Refusals that several operations word alike.

use placement_contract::{AttemptId, Code, Refusal};
use placement_process::StartError;

/// Answers alike for an attempt that nobody has and one that somebody else has.
pub(crate) fn unknown_attempt(attempt_id: &AttemptId) -> Refusal {
    Refusal::new(Code::NotFound, format!("this owner has no attempt {attempt_id}"))
}

/// Answers for an attempt of which only a receipt is left.
pub(crate) fn pruned_attempt(attempt_id: &AttemptId) -> Refusal {
    let message = format!("attempt {attempt_id} was pruned, and only its receipt is left");
    let hint = "`placement show ATTEMPT` tells how it ended";
    Refusal::new(Code::NotFound, message).with_hint(hint)
}

/// Words that no runner could be started.
pub(crate) fn not_started(error: StartError) -> Refusal {
    let (message, hint) = match error {
        StartError::Program(errno) => (
            format!("the runner program cannot be started ({errno})"),
            "check that placement-runner lies beside the host, or name it by its path",
        ),
        StartError::Descriptor(errno) => (
            format!("no descriptor of the runner could be had ({errno})"),
            "check the limit of open files and try again",
        ),
    };
    Refusal::new(Code::Unavailable, message).with_hint(hint)
}

/// Words a conflict about one attempt.
pub(crate) fn conflict(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::Conflict, message)
}

/// Words that something did not answer; a retry may succeed.
pub(crate) fn unavailable(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::Unavailable, message)
}

/// Words that a living runner did not answer within the fence.
pub(crate) fn runner_silent() -> Refusal {
    unavailable("the runner lives and does not answer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_process::Errno;

    #[test]
    fn a_runner_that_is_not_there_is_named_and_retryable() {
        let refusal = not_started(StartError::Program(Errno::from_raw(2)));
        assert_eq!(refusal.message, "the runner program cannot be started (ENOENT)");
        assert!(refusal.code.is_retryable());
        assert!(refusal.hint().contains("placement-runner"));
    }
}
