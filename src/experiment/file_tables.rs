//! The tables of an experiment file besides that of its cells.

use super::file::{FileFactor, FileParser};
use super::file_reader::FileTable;
use crate::analysis::ResponseMethod;
use crate::comparison::{DrawRule, FactorialTables, ImprovementForm};
use crate::diag::{Code, did_you_mean, nearest};
use crate::source::Spanned;
use crate::util::{printable, size};

impl FileParser<'_> {
    /// Reads the tables of the result.
    pub(super) fn tables(&mut self, root: &FileTable<'_>, factors: &[FileFactor]) -> FactorialTables {
        let factor = |parser: &mut Self, key: &str| {
            let name = parser.text(root, key)?;
            parser.factor_index(&name, factors).map(|_| name.node)
        };
        let effects = root.value("effects", self.errors).map(|value| {
            let texts = value.list("effects", self.errors);
            let names: Vec<_> =
                texts.iter().filter_map(|value| value.scalar("an element of `effects`", self.errors)).collect();
            names.into_iter().filter(|name| self.factor_index(name, factors).is_some()).map(|name| name.node).collect()
        });
        let names = self.one_or_several(root, "columns");
        let over = self.levels(root, "over", factors, &names);
        let bound = self.levels(root, "bound", factors, &names).pop();
        let mut beside: Vec<String> = Vec::new();
        for name in &names {
            if beside.contains(&name.node) {
                self.wrong(name, format!("`columns` has `{}` twice", name.node), "remove one");
            } else if self.factor_index(name, factors).is_some() {
                beside.push(name.node.clone());
            }
        }
        let columns = beside.pop();
        let (study, curve) = (factor(self, "study"), factor(self, "curve"));
        let groups = factor(self, "groups");
        if let Some(name) = names.first().filter(|_| !beside.is_empty() && root.value("over", self.errors).is_none()) {
            let help = "leave the factor whose levels are compared, or add `over = \"…\"`, the level to compare with";
            self.wrong(name, "several factors side by side, and no improvement".to_owned(), help);
        }
        let needed = ("over", "a form of improvements without `over`", "add `over = \"…\"`, the level to compare with");
        let names = ImprovementForm::ALL.map(ImprovementForm::name);
        let improvement = self.chosen(root, "improvement", "form of an improvement", &names, needed);
        let needed =
            ("curve", "a method without a load curve", "add `curve = \"…\"`, the factor whose levels are loads");
        let method = self.chosen(root, "method", "method", &ResponseMethod::ALL.map(ResponseMethod::name), needed);
        let needed = ("columns", "", "");
        let lines = self.chosen(root, "lines", "kind of lines", &["metrics"], needed);
        let draw = self.chosen(root, "draw", "rule of a draw", &[DrawRule::PRINTED], needed);
        let draw = if draw.is_some() { DrawRule::Printed } else { DrawRule::default() };
        let lines_are_metrics = lines.is_some();
        let improvement = improvement.and_then(|name| ImprovementForm::find(&name));
        let method = method.and_then(|name| ResponseMethod::find(&name));
        let variation = self.variation(root);
        let tables = FactorialTables {
            effects,
            columns,
            beside,
            over,
            bound,
            improvement,
            study,
            curve,
            method,
            variation,
            ..FactorialTables::default()
        };
        FactorialTables { lines_are_metrics, groups, draw, ..tables }
    }

    /// Reads the levels with which others are compared, or are not: those of the last factor of `columns`.
    fn levels(
        &mut self,
        root: &FileTable<'_>,
        key: &'static str,
        factors: &[FileFactor],
        columns: &[Spanned<String>],
    ) -> Vec<String> {
        let names = self.one_or_several(root, key);
        let Some(first) = names.first() else { return Vec::new() };
        let Some(compared) = columns.last() else {
            let help = "add `columns = \"…\"`, the factor whose levels are compared";
            self.wrong(first, format!("`{key}` names a level, and there are no columns"), help);
            return Vec::new();
        };
        let Some(factor) = factors.iter().find(|factor| factor.name.node == compared.node) else { return Vec::new() };
        let levels = || factor.levels.iter().map(|level| level.name.node.as_str());
        for name in names.iter().filter(|name| !levels().any(|level| level == name.node)) {
            let help = did_you_mean(nearest(&name.node, levels()), || {
                format!("its levels are `{}`", levels().collect::<Vec<_>>().join("`, `"))
            });
            let message = format!("no level `{}` of `{}`", printable::line(&name.node), compared.node);
            self.wrong(name, message, &help);
        }
        let over: Vec<String> = names.iter().map(|name| name.node.clone()).collect();
        if levels().all(|level| over.iter().any(|name| name == level)) {
            let help = "omit the level whose improvement is shown";
            self.wrong(first, format!("`{key}` has all levels of `{}`", compared.node), help);
        }
        over
    }

    /// Reads the variables that `--scale` multiplies.
    pub(super) fn scale(&mut self, root: &FileTable<'_>) -> Vec<String> {
        let names = self.one_or_several(root, "scale");
        for name in &names {
            if let Some((_, least)) = name.node.split_once(">=").filter(|(_, least)| size::parse(least).is_err()) {
                let message = format!("`{}` is no least value", printable::line(least));
                self.wrong(name, message, "write a number or a size, such as `\"nfiles>=100\"`");
            } else if name.node.starts_with("1/") && name.node.contains(">=") {
                let message = format!("`{}` grows, so that it needs no least value", printable::line(&name.node));
                self.wrong(name, message, "omit `>=` and what follows");
            }
        }
        names.into_iter().map(|name| name.node).collect()
    }

    /// Reads whether the variation is shown.
    fn variation(&mut self, root: &FileTable<'_>) -> bool {
        let names = self.one_or_several(root, "show");
        for name in names.iter().filter(|name| name.node != "variation") {
            self.wrong(name, format!("no table `{}`", printable::line(&name.node)), "write `show = [\"variation\"]`");
        }
        !names.is_empty()
    }

    /// Reads one of several names, of which another key has to make use.
    fn chosen(
        &mut self,
        root: &FileTable<'_>,
        key: &str,
        what: &str,
        names: &[&str],
        (needed, message, help): (&str, &str, &str),
    ) -> Option<String> {
        let name = self.text(root, key)?;
        if !names.contains(&name.node.as_str()) {
            let names = names.iter().map(|name| format!("`\"{name}\"`")).collect::<Vec<_>>().join(" or ");
            self.wrong(&name, format!("no {what} `{}`", printable::line(&name.node)), &format!("write {names}"));
        } else if !message.is_empty() && root.value(needed, self.errors).is_none() {
            self.wrong(&name, message.to_owned(), help);
        }
        Some(name.node)
    }

    fn wrong(&mut self, at: &Spanned<String>, message: String, help: &str) {
        self.errors.add(Code::WrongValue, at.span, message, help);
    }

    /// Reads a text or a list of texts.
    fn one_or_several(&mut self, root: &FileTable<'_>, key: &'static str) -> Vec<Spanned<String>> {
        let Some(value) = root.value(key, self.errors) else { return Vec::new() };
        if !value.is_list() {
            return self.text(root, key).into_iter().collect();
        }
        let (what, values) = (format!("an element of `{key}`"), value.list(key, self.errors));
        values.iter().filter_map(|value| value.scalar(&what, self.errors)).collect()
    }
}
