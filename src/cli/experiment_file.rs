//! `wmlrun experiment`: makes the runs of an experiment file.
//!
//! Not in here: reading the file and deciding on the runs (`experiment`), and the result (`comparison`).

use super::arms::{self, PlannedArm, first_error, hiding_scripts, is_same, within};
use super::console::{self, Console, Verbosity};
use super::experiment_args::{ExperimentArgs, FileArgs};
use super::experiment_host::study;
use super::experiment_permission::hook_lines;
use super::experiment_scale::{self, CellNeeds};
use super::experiments::{describe, print_text};
use super::scaled_names::{ScaledVariable, distinct, level_name};
use super::script_input;
use super::script_input::is_profile;
use super::shell_text::{set_option, split};
use super::unit;
use super::usage::near_path;
use crate::batch;
use crate::diag::{Code, Diagnostic, Failure, Status, did_you_mean, nearest};
use crate::experiment::{
    Arm, Experiment, ExperimentFile, ExperimentKind, FileFactor, FileLevel, Hooks, RuleWanted, SUITES, ScopeHook,
    SetVariable, WantedFactor, precision, read_file, suite,
};
use crate::import::Metric;
use crate::report;
use crate::session::library;
use crate::source::{SHIPPED, SourceMap, Spanned};
use crate::util::count::count;
use crate::util::table::{Align, Table};
use crate::util::wrap::wrapped;
use crate::util::{duration, printable, size};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs `wmlrun experiment`. Returns the exit status.
pub(super) fn experiment(args: &FileArgs) -> Result<u8, Failure> {
    let common = &ExperimentArgs { extended: args.repeats, ..args.experiment.clone() };
    if let Some(folder) = &args.print_unit {
        return unit::print(folder, args.experiment.words.allow_system());
    }
    if args.plan {
        let planned = Planned::read(args)?;
        print_text(&planned.text());
        return Ok(0);
    }
    let wanted = || {
        let planned = Planned::read(args)?;
        planned.check_commands()?;
        if let Some((_, full)) = planned.smaller.as_ref().filter(|_| !args.experiment.quiet) {
            console::notice(&format!("note: {full}"));
        }
        planned.description(args)
    };
    study(common, ExperimentKind::Factorial, None, wanted, |_| ())
}

/// A text of an experiment file: a file, or a shipped one.
struct FoundFile {
    /// The name in messages.
    name: String,
    /// The default name of the experiment.
    stem: String,
    text: String,
    /// The directory in which scripts are looked for first.
    beside: Option<PathBuf>,
}

impl FoundFile {
    fn find(name: &str) -> Result<Self, Failure> {
        let path = Path::new(name);
        let stem = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
        let is_path = name.contains('/') || path.exists() || path.extension().is_some();
        // A directory is no experiment, and its name may be that of one whose results it has. A pipe may be one.
        let is_there = path.exists() && !path.is_dir();
        let shipped = suite(name).filter(|_| !is_there);
        if let Some((name, text)) = shipped {
            let (shown, text) = (format!("{name}{SHIPPED}"), text.to_owned());
            return Ok(Self { name: shown, stem: name.to_owned(), text, beside: None });
        }
        if is_there && is_profile(path) {
            let mut console = Console::new(report::TABLE[0], Verbosity::Normal);
            let text = batch::experiment_file(path, &mut console)?;
            return Ok(Self { name: name.to_owned(), stem, text, beside: path.parent().map(Path::to_path_buf) });
        }
        let is_script = !is_there && library::personality(name).is_some()
            || is_there && path.extension().is_some_and(|extension| extension == "wml" || extension == "f");
        if is_script {
            let help = format!("`wmlrun {name}` runs it; the key `script` of an experiment file names it");
            return Err(Failure::wrong(format!("`{name}` is a script, not an experiment"), help));
        }
        if !is_path {
            let help = did_you_mean(nearest(name, SUITES.iter().map(|(name, _)| *name)), || {
                "`wmlrun list experiments` lists the shipped experiments".to_owned()
            });
            return Err(Failure::wrong(format!("no file or experiment is named `{name}`"), help));
        }
        let bytes = script_input::read(path).map_err(|e| {
            let help = near_path(path);
            let help = help.unwrap_or_else(|| "give an experiment file, or the name of a shipped one".to_owned());
            Failure::new(script_input::unread_status(), format!("{name} can't be read: {e}"), help)
        })?;
        let text = library::text(bytes);
        let beside = path.parent().map(Path::to_path_buf);
        Ok(Self { name: name.to_owned(), stem, text, beside })
    }
}

/// Words of a command line, each group with the text in the file that it comes from.
type PlacedWords = Vec<Spanned<Vec<String>>>;

/// A cell: an arm, with the levels that it has.
struct FileCell<'a> {
    arm: Arm,
    levels: Vec<&'a FileLevel>,
}

/// An experiment file that has been read and checked, with all its cells.
struct Planned {
    map: SourceMap,
    file: ExperimentFile,
    /// The name of the file in messages.
    file_name: String,
    name: String,
    arms: Vec<Arm>,
    cells: Vec<PlannedArm>,
    /// What `--scale` has made smaller, and the full size.
    smaller: Option<((f64, Vec<String>), String)>,
    /// The names of the levels of each factor with `--scale`.
    level_names: Vec<Vec<String>>,
    is_allowed: bool,
    budget: Option<Duration>,
}

impl Planned {
    /// Reads the file, and reads and plans the script of each cell with its options.
    fn read(args: &FileArgs) -> Result<Self, Failure> {
        let found = FoundFile::find(args.file.as_deref().unwrap_or_default())?;
        let mut map = SourceMap::new();
        let id = map.add(&found.name, &found.text);
        let mut file = read_file(&map, id).map_err(|errors| Failure::in_script(Status::Script, &map, errors))?;
        file.add_sides(&mut map, &args.side, &args.over)?;
        if let Some(cell) = &args.only
            && !file.keep_cells(cell)
        {
            let text = format!("{} has no cell or level `{}`", found.name, printable::line(cell));
            return Err(Failure::wrong(
                text,
                "`--plan` lists the cells; if several factors have the level, write `FACTOR=LEVEL`",
            ));
        }
        if args.method.is_some() && file.tables.curve.is_none() {
            return Err(Failure::wrong("`--method`: the experiment has no load curve", "omit it"));
        }
        file.tables.method = args.method.or(file.tables.method);
        let (full_repeats, scales) = (args.repeats.unwrap_or(file.repeats), args.scale.is_some());
        // Small runs vary too much to wait until their intervals are narrow.
        if let Some(repeats) = args.repeats.or(scales.then_some((file.repeats.0, file.repeats.0))) {
            (file.repeats, file.until_ci) = (repeats, precision(repeats, file.until_ci));
        }
        let reader = CellReader { beside: found.beside, file: &file, given: &args.experiment.words.0 };
        let mut cells = reader.cells().map_err(|error| Failure::in_script(Status::Script, &map, vec![*error]))?;
        let own: Vec<Vec<String>> = cells
            .iter()
            .map(|cell| {
                let words =
                    |level: &&FileLevel| flat(placed(&level.options, &level.set, reader.given).unwrap_or_default());
                cell.levels.iter().flat_map(words).collect()
            })
            .collect();
        if let Some(word) = arms::without_effect(&args.experiment.words, &own) {
            let text = format!("`{word}` has no effect: the levels of {} set the same", found.name);
            return Err(Failure::wrong(text, "omit it, or change the levels in a copy of the file"));
        }
        let plan = |cell: &FileCell<'_>, metrics: &[Metric]| {
            PlannedArm::checked(&cell.arm.words, metrics, file.hooks.is_empty()).map_err(|failure| {
                let (text, help, is_in_script) = first_error(&failure);
                if is_in_script {
                    let name = &cell.arm.name;
                    if !reader.is_elsewhere(cell) {
                        return within(&format!("in cell `{name}`: "), failure);
                    }
                    // What is in backquotes is left out, as a quotation.
                    return hiding_scripts(within(&format!("in cell {name}: "), failure));
                }
                if reader.is_of_command_line(cell, &failure) {
                    return Failure::wrong(text, help);
                }
                Failure::in_script(Status::Script, &map, vec![reader.diagnose(cell, &failure)])
            })
        };
        let mut planned: Vec<PlannedArm> = cells.iter().map(|cell| plan(cell, &[])).collect::<Result<_, _>>()?;
        // A metric of one of the scripts need not be one of the others, but it is one of the level that names it.
        let is_of_any = |metric: &Metric| planned.iter().any(|arm| !arm.lacks(metric));
        for (cell, arm) in cells.iter().zip(&planned) {
            let has_own = cell.arm.metric.is_some();
            let lacking = reader.metrics(&cell.levels).map(|metric| &metric.node).enumerate();
            let lacking = lacking.filter(|(_, metric)| arm.lacks(metric));
            let wrong = lacking.filter(|(n, metric)| *n == 0 && has_own || !is_of_any(metric));
            let wrong: Vec<Metric> = wrong.map(|(_, metric)| metric.clone()).collect();
            if !wrong.is_empty() {
                plan(cell, &wrong)?;
            }
        }
        let mut level_names = Vec::new();
        let smaller = match args.scale {
            None => None,
            Some(factor) => {
                let full = full_size(&planned, full_repeats, image_bytes(&file));
                let (mut names, variables) = reader.scaled(&mut cells, &planned, factor)?;
                level_names = reader.scaled_names(&cells, &variables);
                reader.rename(&mut cells, &level_names);
                names.extend((file.repeats != full_repeats).then(|| "the number of runs".to_owned()));
                planned = cells.iter().map(|cell| plan(cell, &[])).collect::<Result<_, _>>()?;
                Some(((factor, names), full))
            }
        };
        let arms: Vec<Arm> = cells.into_iter().map(|cell| cell.arm).collect();
        let is_allowed = args.experiment.words.allow_system();
        let name = file.name.clone().unwrap_or(found.stem);
        let budget = args.experiment.budget;
        Ok(Self {
            map,
            file,
            file_name: found.name,
            name,
            arms,
            cells: planned,
            smaller,
            level_names,
            is_allowed,
            budget,
        })
    }

    /// Returns an error with all commands of the file unless they are permitted.
    fn check_commands(&self) -> Result<(), Failure> {
        let commands = &self.file.commands;
        let (Some((first, rest)), false) = (commands.split_first(), self.is_allowed) else { return Ok(()) };
        let n = count(commands.len() as u64, "command");
        let message = format!("the experiment executes {n}, which are not permitted");
        let help = "if you trust the file, permit them with `--allow-system`";
        let error = Diagnostic::error(Code::Refused, *first, message).help(help);
        let error = rest.iter().fold(error, |error, span| error.also(*span, ""));
        Err(Failure::in_script(Status::Refused, &self.map, vec![error]))
    }

    /// Builds the description of the experiment.
    fn description(self, args: &FileArgs) -> Result<(Experiment, Vec<PlannedArm>), Failure> {
        let (min_runs, max_runs) = self.file.repeats;
        let factor = |factor: &FileFactor| WantedFactor {
            name: factor.name.node.clone(),
            levels: factor.levels.iter().map(|level| level.name.node.clone()).collect(),
        };
        let mut rule = RuleWanted::Factorial {
            factors: self.file.factors.iter().map(factor).collect(),
            min_runs,
            max_runs,
            until_ci: self.file.until_ci,
            stop: self.file.stop,
            order: self.file.order,
            tables: self.file.tables,
        };
        if let RuleWanted::Factorial { factors, tables, .. } = &mut rule {
            let scaled =
                factors.iter().zip(&self.level_names).find(|(of, _)| tables.columns.as_ref() == Some(&of.name));
            for name in &mut tables.over {
                let at = scaled.and_then(|(of, names)| names.get(of.levels.iter().position(|level| level == name)?));
                at.into_iter().for_each(|scaled| name.clone_from(scaled));
            }
        }
        let metrics: Vec<Metric> = self.file.metrics.iter().map(|metric| metric.node.clone()).collect();
        let scopes: Vec<ScopeHook> = self.file.hooks.into_iter().map(|hook| hook.node).collect();
        let mut common = args.experiment.clone();
        common.command_timeout = common.command_timeout.or(self.file.time_limit);
        common.retry_disturbed = common.retry_disturbed.or(self.file.retry_disturbed);
        let described = describe(&common, &self.name, (self.arms, &self.cells), &metrics, rule, Hooks::default())?;
        let records = self.file.records.into_iter().map(|record| record.node).collect();
        let (record_space, file) = (self.file.record_space, self.file_name);
        let (scale, scaled_names) = (self.smaller.map(|(scale, _)| scale), self.level_names);
        Ok((Experiment { file, records, record_space, scale, scaled_names, scopes, ..described }, self.cells))
    }

    /// Formats the plan: the cells with their runs and measured times, the commands, and the whole time.
    fn text(&self) -> String {
        let (min, max) = self.file.repeats;
        let runs = if min == max { min.to_string() } else { format!("{min} to {max}") };
        let total = |arm: &PlannedArm| arm.lengths().iter().copied().sum::<Option<Duration>>();
        let time = |length: Option<Duration>| length.map_or_else(|| "no limit".to_owned(), duration::format);
        let columns = [("cell", Align::Left), ("runs", Align::Right), ("each", Align::Right)];
        let mut table = Table::new(columns.into_iter().chain([("file sets", Align::Right)]));
        for (arm, planned) in self.arms.iter().zip(&self.cells) {
            table.row([arm.name.clone(), runs.clone(), time(total(planned)), size::format(planned.bytes())]);
        }
        let mut text = format!("{}\n\n", self.name);
        // The arguments are below the cell, because few terminals have columns enough for them.
        let words = std::iter::once(String::new()).chain(self.arms.iter().map(|arm| arm.words.join(" ")));
        for (line, words) in table.render().lines().zip(words) {
            text += &format!("{line}\n");
            if !words.is_empty() {
                text += &format!("{}\n", wrapped(&format!("  {}", printable::line(&words)), "    "));
            }
        }
        // A command may have lines of its own.
        let narrow = |command: &str| {
            let lines = printable::lines(command);
            lines.lines().map(|line| wrapped(line, "  ")).collect::<Vec<_>>().join("\n")
        };
        for line in self.file.hooks.iter().flat_map(|hook| hook_lines(&hook.node)) {
            text += &format!("\n{}", narrow(&line));
        }
        for record in &self.file.records {
            text += &format!("\n{}", narrow(&format!("`record` runs `{}` after each run", record.node)));
        }
        let cells = self.arms.len() as u64;
        let order = self.file.order.about();
        let each = self.cells.iter().map(total).sum::<Option<Duration>>();
        let whole = |n: u64| each.and_then(|each| each.checked_mul(u32::try_from(n).ok()?));
        let measured = match (min == max, whole(min), whole(max)) {
            (true, _, Some(time)) => format!("measured for {} in all", duration::format(time)),
            (false, Some(least), Some(most)) => {
                format!("measured for {} to {} in all", duration::format(least), duration::format(most))
            }
            _ => "which end by themselves".to_owned(),
        };
        let all =
            if min == max { count(cells * min, "run") } else { format!("{} to {} runs", cells * min, cells * max) };
        let budget = self.budget.map_or_else(String::new, |budget| self.budget_text(budget, each, max));
        let runs = wrapped(&format!("{all}, {order}, {measured};"), "");
        let printed = printable::lines(&text).into_owned();
        let rest = "the creation of file sets, writeback and commands take additional time";
        let images = experiment_scale::images_text(image_bytes(&self.file));
        let images = if images.is_empty() || self.smaller.is_some() { String::new() } else { images + "\n" };
        let full = self.smaller.as_ref().map_or_else(String::new, |((_, names), full)| {
            format!(
                "{}\n{}\n",
                wrapped(full, "  "),
                wrapped(&format!("`--scale` makes smaller: {}", names.join(", ")), "  ")
            )
        });
        format!("{}\n\n{runs}\n{rest}\n{images}{budget}{full}", printed.trim_end())
    }

    /// Says how many runs the budget allows. `each` is the measured time of one run of each cell.
    fn budget_text(&self, budget: Duration, each: Option<Duration>, max_runs: u64) -> String {
        let shown = duration::format(budget);
        let Some(each) = each.filter(|each| !each.is_zero()) else {
            return format!("the budget of {shown} ends the experiment when it is spent\n");
        };
        let fits = u64::try_from(budget.as_nanos() / each.as_nanos()).unwrap_or(u64::MAX);
        match fits {
            fits if fits >= max_runs => format!("the budget of {shown} is longer than the measured time of all runs\n"),
            _ if !self.file.order.has_blocks() => {
                format!("the budget of {shown} is shorter than the measured time: the last cells may have no run\n")
            }
            0 => format!("the budget of {shown} is shorter than one run of each cell, which is made nevertheless\n"),
            fits => format!("the budget of {shown} is enough for at most {} of each cell\n", count(fits, "run")),
        }
    }
}

/// Says what the full size of an experiment needs.
fn full_size(cells: &[PlannedArm], repeats: (u64, u64), images: u64) -> String {
    let of = cells.iter().map(|cell| CellNeeds {
        dirs: &cell.places.dirs,
        bytes: cell.whole_bytes(),
        length: cell.lengths().iter().copied().sum(),
    });
    experiment_scale::full_size(&of.collect::<Vec<_>>(), repeats, images)
}

/// The room of the images that the commands of a file make.
fn image_bytes(file: &ExperimentFile) -> u64 {
    experiment_scale::image_bytes(file.hooks.iter().flat_map(|hook| hook.node.commands().map(|(_, command)| command)))
}

struct CellReader<'a> {
    beside: Option<PathBuf>,
    file: &'a ExperimentFile,
    /// The options of the command line.
    given: &'a [String],
}

impl<'a> CellReader<'a> {
    /// Returns all combinations of the levels, of which the level of the last factor changes first.
    fn cells(&self) -> Result<Vec<FileCell<'a>>, Box<Diagnostic>> {
        let mut all: Vec<Vec<&FileLevel>> = vec![Vec::new()];
        for factor in &self.file.factors {
            let with = |levels: Vec<&'a FileLevel>| {
                factor.levels.iter().map(move |level| {
                    let mut levels = levels.clone();
                    levels.push(level);
                    levels
                })
            };
            all = all.into_iter().flat_map(with).collect();
        }
        all.into_iter().map(|levels| self.cell(levels)).collect()
    }

    /// Names the cells by these levels of each factor.
    fn rename(&self, cells: &mut [FileCell<'a>], names: &[Vec<String>]) {
        for cell in cells {
            let name = |(n, factor): (usize, &FileFactor)| {
                let level = factor.levels.iter().position(|level| level.name.node == cell.levels[n].name.node)?;
                Some(format!("{}={}", factor.name.node, names.get(n)?.get(level)?))
            };
            let named: Vec<String> = self.file.factors.iter().enumerate().filter_map(name).collect();
            if !named.is_empty() {
                cell.arm.name = named.join(",");
            }
        }
    }

    fn cell(&self, levels: Vec<&'a FileLevel>) -> Result<FileCell<'a>, Box<Diagnostic>> {
        let mut words = flat(self.common()?);
        words.extend(self.given.iter().cloned());
        for level in &levels {
            words.extend(flat(placed(&level.options, &level.set, self.given)?));
        }
        words.extend(self.script(&levels).map(|script| self.script_word(script)));
        let named = self.file.factors.iter().zip(&levels);
        let name: Vec<String> =
            named.map(|(factor, level)| format!("{}={}", factor.name.node, level.name.node)).collect();
        let name = if name.is_empty() { "all".to_owned() } else { name.join(",") };
        let metric = levels.iter().find_map(|level| level.metric.as_ref()).map(|metric| metric.node.to_string());
        Ok(FileCell { arm: Arm { name, words, metric }, levels })
    }

    /// Returns the metrics of a cell: those of the experiment, of which a level may replace the first.
    fn metrics(&self, levels: &[&'a FileLevel]) -> impl Iterator<Item = &'a Spanned<Metric>> {
        let own = levels.iter().find_map(|level| level.metric.as_ref());
        own.into_iter().chain(self.file.metrics.iter().skip(usize::from(own.is_some())))
    }

    /// Returns the options and variables of all cells.
    fn common(&self) -> Result<PlacedWords, Box<Diagnostic>> {
        placed(&self.file.options, &self.file.set, self.given)
    }

    /// Makes the cells smaller. Returns what has changed, and the variables of each cell.
    fn scaled(
        &self,
        cells: &mut [FileCell<'a>],
        planned: &[PlannedArm],
        factor: f64,
    ) -> Result<(Vec<String>, Vec<Vec<ScaledVariable>>), Failure> {
        let (mut all, mut variables_of_cells): (Vec<String>, Vec<Vec<ScaledVariable>>) = (Vec::new(), Vec::new());
        for (cell, planned) in cells.iter_mut().zip(planned) {
            let own = cell.levels.iter().rev().map(|level| &level.scale).find(|names| !names.is_empty());
            let variables = own.unwrap_or(&self.file.scale);
            let names = experiment_scale::names(variables);
            let values = arms::values(&cell.arm.words, &names)?;
            let settings = &planned.line.settings.0;
            let of = (variables.as_slice(), values);
            let changed = experiment_scale::scale(&mut cell.arm.words, of, factor, settings, self.given);
            let (changed, scaled) = changed.ok_or_else(|| {
                let (script, names) = (planned.line.script().unwrap_or_default(), names.join("`, `$"));
                let text = format!("`--scale` would change nothing of `{script}`: it has no variable `${names}`");
                Failure::wrong(text, "name its sizes and counts in `scale` of a copy of the experiment file")
            })?;
            for what in changed {
                if !all.contains(&what) {
                    all.push(what);
                }
            }
            variables_of_cells.push(scaled);
        }
        Ok((all, variables_of_cells))
    }

    /// The names of the levels of each factor once these variables of each cell are smaller. Numbers of factors that are
    /// more than names, such as loads, stay.
    fn scaled_names(&self, cells: &[FileCell<'a>], variables: &[Vec<ScaledVariable>]) -> Vec<Vec<String>> {
        let tables = &self.file.tables;
        let kept = [&tables.curve, &tables.study];
        let of_factor = |(n, factor): (usize, &FileFactor)| {
            let is_kept = kept.iter().any(|name| name.as_ref() == Some(&factor.name.node));
            let of_level = |level: &FileLevel| {
                let full = level.name.node.clone();
                let cell = cells.iter().position(|cell| cell.levels[n].name.node == full).filter(|_| !is_kept);
                let is_set = |name: &str| level.set.iter().any(|(set, _)| set.node == name);
                let of = cell.and_then(|cell| variables.get(cell)).map_or(&[][..], Vec::as_slice);
                let name = level_name(&full, of, &is_set);
                (full, name)
            };
            distinct(&factor.levels.iter().map(of_level).collect::<Vec<_>>())
        };
        self.file.factors.iter().enumerate().map(of_factor).collect()
    }

    fn script<'b>(&'b self, levels: &[&'b FileLevel]) -> Option<&'b Spanned<String>> {
        levels.iter().rev().find_map(|level| level.script.as_ref()).or(self.file.script.as_ref())
    }

    /// True if the script of a cell is outside of the folder of the experiment file, so that messages quote nothing of it.
    fn is_elsewhere(&self, cell: &FileCell<'_>) -> bool {
        let (Some(script), Some(dir)) = (self.script(&cell.levels), self.beside.as_deref()) else { return false };
        library::find(&script.node, Some(dir)).is_ok_and(|found| library::is_elsewhere(&found, Some(dir)))
    }

    /// Returns the script as an argument: a file beside the experiment file, or the name as it is.
    fn script_word(&self, script: &Spanned<String>) -> String {
        let found = self.beside.as_deref().and_then(|dir| library::find(&script.node, Some(dir)).ok());
        let path = found.and_then(|found| found.path).map(|path| path.to_string_lossy().into_owned());
        path.unwrap_or_else(|| script.node.clone())
    }

    /// True if the options of the command line cause the error of a cell. It then has no position in the file.
    fn is_of_command_line(&self, cell: &FileCell<'_>, failure: &Failure) -> bool {
        let script = self.script(&cell.levels).map(|script| self.script_word(script));
        let has_error = |words: &[String]| {
            let words: Vec<String> = words.iter().chain(&script).cloned().collect();
            has_failure(&words, &[], failure)
        };
        !has_error(&[]) && has_error(self.given)
    }

    /// Finds the text of the file that causes the error of a cell.
    fn diagnose(&self, cell: &FileCell<'a>, failure: &Failure) -> Diagnostic {
        let span = self.cause(cell, failure);
        let (text, help, _) = first_error(failure);
        let place = match self.file.factors.is_empty() {
            true => String::new(),
            false => format!("in cell `{}`: ", cell.arm.name),
        };
        Diagnostic::error(Code::BadCell, span, format!("{place}{text}")).help(help)
    }

    fn cause(&self, cell: &FileCell<'a>, failure: &Failure) -> crate::source::Span {
        let has_error = |words: &[String], metrics: &[Metric]| has_failure(words, metrics, failure);
        let script = self.script(&cell.levels);
        let with_script = |words: &[String]| {
            let mut words = words.to_vec();
            words.extend(script.map(|script| self.script_word(script)));
            words
        };
        // A metric that the script does not have.
        if PlannedArm::checked(&cell.arm.words, &[], false).is_ok() {
            let is_cause =
                |metric: &&'a Spanned<Metric>| has_error(&cell.arm.words, std::slice::from_ref(&metric.node));
            if let Some(metric) = self.metrics(&cell.levels).find(is_cause) {
                return metric.span;
            }
        }
        // The script alone, or an option or a variable alone.
        if let Some(script) = script.filter(|_| has_error(&with_script(&[]), &[])) {
            return script.span;
        }
        let own =
            cell.levels.iter().flat_map(|level| placed(&level.options, &level.set, self.given).unwrap_or_default());
        let parts = self.common().unwrap_or_default().into_iter().chain(own);
        for part in parts {
            if has_error(&with_script(&part.node), &[]) {
                return part.span;
            }
        }
        // Several together: a level with the common ones, else all levels.
        let common = flat(self.common().unwrap_or_default());
        for level in &cell.levels {
            let own = flat(placed(&level.options, &level.set, self.given).unwrap_or_default());
            if has_error(&with_script(&[common.clone(), own].concat()), &[]) {
                return level.name.span;
            }
        }
        let last = cell.levels.last().map(|level| level.name.span);
        last.or(script.map(|script| script.span)).unwrap_or_default()
    }
}

/// True if these words and metrics alone cause a failure.
fn has_failure(words: &[String], metrics: &[Metric], failure: &Failure) -> bool {
    PlannedArm::checked(words, metrics, false).is_err_and(|other| is_same(&other, failure))
}

/// Returns the words of options and variables, each with its position. An error is a text that can't be split into
/// words, or an option that a file can't give. `given` has the words of the command line.
fn placed(options: &[Spanned<String>], set: &[SetVariable], given: &[String]) -> Result<PlacedWords, Box<Diagnostic>> {
    let mut placed = Vec::new();
    for text in options {
        let words = split(&text.node).map_err(|e| {
            let error = Diagnostic::error(Code::WrongValue, text.span, format!("`options` {e}"));
            Box::new(error.help("use the quoting rules of a shell"))
        })?;
        let refused = words.iter().find_map(|word| Some((word, arms::refused_option(word, given)?)));
        if let Some((word, help)) = refused {
            let message = format!("an experiment file can't give the option `{word}`");
            return Err(Box::new(Diagnostic::error(Code::Refused, text.span, message).help(help)));
        }
        placed.push(Spanned::new(words, text.span));
    }
    for (name, value) in set {
        let words = split(&set_option(&format!("{}={value}", name.node))).unwrap_or_default();
        placed.push(Spanned::new(words, name.span));
    }
    Ok(placed)
}

fn flat(words: PlacedWords) -> Vec<String> {
    words.into_iter().flat_map(|words| words.node).collect()
}
