//! The codes of notes: what a run reports that its figures alone do not show. Not here: warnings that are derived from
//! the figures (`warnings`).

use super::Note;

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteCode {
    /// A note of the script's author.
    ScriptNote,
    /// Threads found no usable file.
    Exhausted,
    /// Threads never passed a flowop.
    WaitedToTheEnd,
    /// The run ended before it was measured.
    EndedInWarmup,
    /// The warm-up was too short.
    WarmupNotSteady,
    /// The warm-up filled the caches.
    WarmedUp,
    /// A file set did not begin in the requested cache state.
    OtherCacheState,
    /// The program was stopped.
    Stopped,
    /// The file system did not answer.
    NotLookedAt,
    /// A file set is in a directory that was created where file systems are mounted.
    NotMounted,
}

impl NoteCode {
    /// All codes, in the order of the documents.
    pub const ALL: [Self; 10] = [
        Self::ScriptNote,
        Self::Exhausted,
        Self::WaitedToTheEnd,
        Self::EndedInWarmup,
        Self::WarmupNotSteady,
        Self::WarmedUp,
        Self::OtherCacheState,
        Self::Stopped,
        Self::NotLookedAt,
        Self::NotMounted,
    ];

    /// Returns the name, which is stable, and the explanation, a sentence without its capital and its full stop.
    const fn entry(self) -> (&'static str, &'static str) {
        match self {
            Self::ScriptNote => ("script_note", "a line `# note:` of the script"),
            Self::Exhausted => (
                "exhausted",
                "threads ended early, because a flowop found no usable file and is not declared to (`maystarve`)",
            ),
            Self::WaitedToTheEnd => {
                ("waited_to_the_end", "threads waited in a flowop to the end of the run and never passed it")
            }
            Self::EndedInWarmup => {
                ("ended_in_warmup", "the run ended during the warm-up; the figures cover the warm-up")
            }
            Self::WarmupNotSteady => {
                ("warmup_not_steady", "the rate was not steady at the time limit of the warm-up (`--warmup auto`)")
            }
            Self::WarmedUp => ("warmed_up", "the caches were cold before the warm-up, not when the measurement began"),
            Self::OtherCacheState => (
                "other_cache_state",
                "a file set was not in the requested cache state (`cached=`, `--cold`) when the run began, such as files that \
                 do not fit in memory",
            ),
            Self::Stopped => ("stopped", "the program was stopped (`SIGSTOP`) for a part of the measured time"),
            Self::NotLookedAt => (
                "not_looked_at",
                "the file system did not answer in time, as a busy one may, and the free space or the page cache was not \
                 checked; the measured figures are not affected, but whether the run began cold is unknown",
            ),
            Self::NotMounted => (
                "not_mounted",
                "a directory directly in `/`, `/mnt` or `/media` was missing and was created, so that the run measured the \
                 file system above it; mount the one that you mean first",
            ),
        }
    }

    /// Returns the name, for programs.
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// Returns the explanation.
    pub const fn about(self) -> &'static str {
        self.entry().1
    }

    /// True if threads did not do what the script asks for.
    pub const fn is_unfulfilled(self) -> bool {
        matches!(self, Self::Exhausted | Self::WaitedToTheEnd | Self::EndedInWarmup)
    }

    /// Returns the code of a note, if it is one of these.
    pub fn of(note: &Note) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == note.code)
    }

    pub fn note(self, message: impl Into<String>) -> Note {
        Note { code: self.name().to_owned(), message: message.into() }
    }
}
