//! The codes of notes: what a run reports that its figures alone do not show. Not here: warnings that are derived from
//! the figures (`warnings`).

use super::Note;

wml_text::named! {
    /// What a note is about: the name, which is stable, and the explanation, a sentence without its capital and its full
    /// stop.
    pub enum NoteCode {
        ScriptNote = "script_note", "a line `# note:` of the script";
        NotCompared = "not_compared",
            "a variable has another value than when the script was compared with its program (`wmlrun fidelity`)";
        Exhausted = "exhausted",
            "threads ended early, because a flowop found no usable file, and is not declared to (`maystarve`) or has a rate";
        WaitedToTheEnd = "waited_to_the_end", "threads waited in a flowop to the end of the run and never passed it";
        PhaseNotComplete = "phase_not_complete", "the run ended before the time of a phase (`for=`) was over";
        EndedInWarmup = "ended_in_warmup", "the run ended during the warm-up; the figures cover the warm-up";
        WarmupNotSteady = "warmup_not_steady",
            "the rate was not steady at the time limit of the warm-up (`--warmup auto`)";
        WarmedUp = "warmed_up", "the caches were cold before the warm-up, not when the measurement began";
        OtherCacheState = "other_cache_state",
            "a file set was not in the requested cache state (`cached=`, `--cold`) when the run began, such as files \
             that do not fit in memory";
        Stopped = "stopped", "the program was stopped (`SIGSTOP`) for a part of the measured time";
        NotLookedAt = "not_looked_at",
            "the file system did not answer in time, as a busy one may, and the free space or the page cache was not \
             checked; the measured figures are not affected, but whether the run began cold is unknown";
        NotMounted = "not_mounted",
            "a directory directly in `/`, `/mnt` or `/media` was missing and was created, so that the run measured the \
             file system above it; mount the one that you mean first";
    }
}

impl NoteCode {
    /// True if threads did not do what the script asks for.
    pub const fn is_unfulfilled(self) -> bool {
        matches!(self, Self::Exhausted | Self::WaitedToTheEnd | Self::PhaseNotComplete | Self::EndedInWarmup)
    }

    /// Returns the code of a note, if it is one of these.
    pub fn of(note: &Note) -> Option<Self> {
        Self::find(&note.code)
    }

    pub fn note(self, message: impl Into<String>) -> Note {
        Note { code: self.name().to_owned(), message: message.into() }
    }
}
