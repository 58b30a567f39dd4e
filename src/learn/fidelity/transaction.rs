//! What ends a transaction, as the header of a script says it.

use crate::action::CallAction;
use crate::cut::AnchorCall;
use std::fmt;

/// How the line of the header begins.
const BEGINS: &str = "# Transaction: ";
/// What is before the flowop if it is the last of several in a row.
const LAST: &str = "the last ";

/// The call that ends a transaction of the program, and of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionEnd {
    /// The flowop that makes it, with the attributes that tell it from others.
    pub(crate) flowop: String,
    /// The file set.
    pub(crate) set: String,
    /// True if it is the last of several in a row.
    pub(crate) of_runs: bool,
}

impl TransactionEnd {
    pub(crate) fn new(anchor: AnchorCall, set: &str) -> Self {
        Self { flowop: flowop_of(anchor.symbol.action), set: set.to_owned(), of_runs: anchor.of_runs }
    }

    /// What the header of a script says.
    pub fn in_script(text: &str) -> Option<Self> {
        let mut header = text.lines().take_while(|line| line.starts_with('#'));
        let line = header.find_map(|line| line.strip_prefix(BEGINS))?;
        let (_, rest) = line.split_once("ends with ")?;
        let last = rest.strip_prefix(LAST);
        let (flowop, set) = last.unwrap_or(rest).strip_prefix('`')?.split_once("` of ")?;
        let set = set.trim_end_matches('.').to_owned();
        Some(Self { flowop: flowop.to_owned(), set, of_runs: last.is_some() })
    }

    /// The line of the header, for the loop of this name.
    pub(crate) fn line(&self, of: &str) -> String {
        format!("{BEGINS}{of}, ends with {self}.")
    }

    pub(crate) fn is(&self, action: CallAction) -> bool {
        flowop_of(action) == self.flowop
    }
}

impl fmt::Display for TransactionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}`{}` of {}", if self.of_runs { LAST } else { "" }, self.flowop, self.set)
    }
}

fn flowop_of(action: CallAction) -> String {
    let row = action.row();
    [row.flowop, row.more].join(" ").trim_end().to_owned()
}
