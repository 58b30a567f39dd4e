//! What each rank runs of a workload: the words of `--ranks`.

wml_text::named! {
    /// What each rank runs of a workload.
    #[derive(Default)]
    pub enum Division {
        #[default]
        Copy = "copy", "every rank runs the whole workload";
        Split = "split", "each process instance runs on one rank";
    }
}
