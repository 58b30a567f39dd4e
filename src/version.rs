//! The version of the program.

use crate::result::Tool;

/// The version, followed in a release build by the commit that it was built from: `0.2.0 (a1b2c3d4e)`.
pub(crate) const VERSION: &str = env!("WMLRUN_VERSION");

/// The commit of a release build. `None` in a debug build, or if the source is not in a git repository.
const COMMIT: Option<&str> = option_env!("WMLRUN_COMMIT");

/// The program, as results name it.
pub(crate) fn tool() -> Tool {
    Tool { commit: COMMIT.map(str::to_owned), ..Tool::default() }
}
