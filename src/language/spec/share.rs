//! The ranks that share the tree of a file set: the words of `share=` and `--share`.

wml_text::named! {
    /// The ranks that share the tree of a file set. In each case every rank has a part of its files.
    #[derive(Hash, Default)]
    pub enum Sharing {
        #[default]
        Host = "host", "the ranks of each host share a tree on it";
        All = "all", "all ranks share one tree";
        Neighbour = "neighbour", "all ranks share one tree, and each uses the files that the next rank has created";
    }
}
