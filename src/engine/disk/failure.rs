//! The error of a file set as the failure of a command. Not here: its texts (`error`).

use super::Error;
use wml_language::diag::{Failure, Reason, Status};

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        let (code, message) = (Some(e.code().to_owned()), e.to_string());
        let reason = Reason::Stated { code, message, help: e.help().into_iter().collect() };
        Self { status: Status::Refused, reasons: vec![reason] }
    }
}
