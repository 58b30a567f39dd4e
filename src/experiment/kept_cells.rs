//! The cells of an experiment file that `--only` keeps.

use super::file::{ExperimentFile, FileFactor, FileLevel};

impl ExperimentFile {
    /// Keeps the cell with this name, or those with the level of this name, which one factor has. Returns false if there is
    /// none.
    pub(crate) fn keep_cells(&mut self, name: &str) -> bool {
        let all = self.factors.clone();
        if self.keep_cell(name) {
            return true;
        }
        self.factors = all;
        let level = |factor: &FileFactor| {
            let of_factor = name.strip_prefix(factor.name.node.as_str()).and_then(|rest| rest.strip_prefix('='));
            factor.levels.iter().position(|level| level.name.node == of_factor.unwrap_or(name))
        };
        let mut found = self.factors.iter_mut().filter_map(|factor| level(factor).map(|n| (factor, n)));
        let (Some((factor, n)), None) = (found.next(), found.next()) else { return false };
        factor.levels = vec![factor.levels.swap_remove(n)];
        true
    }

    /// Keeps one cell: of each factor the level that its name has, with or without the name of the factor.
    fn keep_cell(&mut self, cell: &str) -> bool {
        let mut rest = cell;
        for factor in &mut self.factors {
            let level_on = rest.strip_prefix(factor.name.node.as_str()).and_then(|rest| rest.strip_prefix('='));
            let text = level_on.unwrap_or(rest);
            let after = |level: &FileLevel| {
                let after = text.strip_prefix(level.name.node.as_str())?;
                if after.is_empty() { Some(after) } else { after.strip_prefix(',') }
            };
            let levels = factor.levels.iter().enumerate().filter_map(|(n, level)| Some((n, after(level)?)));
            // A name may have a comma.
            let Some((n, after)) = levels.min_by_key(|(_, after)| after.len()) else { return false };
            rest = after;
            factor.levels = vec![factor.levels.swap_remove(n)];
        }
        rest.is_empty()
    }
}
