//! Results as text, JSON, CSV, and in the words of Filebench.
