//! `df`: lists the file systems on which the defined file sets lie, for the choice of a directory and of sizes.
//!
//! Creates no directory and reads no file of a set. A set whose directory does not exist yet is on the file system of the
//! nearest directory above it; one in the fresh directory, on that of the current directory.

use super::Prompt;
use super::command::{Argument, PromptCommand};
use crate::diag::Failure;
use crate::fileset::FilesetSpec;
use crate::measure::mount;
use crate::result::environment::MountInfo;
use crate::session::Front;
use crate::util::size;
use crate::util::table::{Align, Table};

pub(super) const DF: PromptCommand = PromptCommand::new(
    ["df", "df", "lists the file systems of the file sets: path, type, device, total and free space", "df"],
    Argument::Nothing,
    |prompt, _, front| Ok(prompt.file_systems(front)?),
);

impl Prompt {
    /// Executes `df`.
    fn file_systems(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        if self.session.definitions.filesets.is_empty() {
            front.note("no file set is defined");
            return Ok(());
        }
        let plan = self.session.plan(front)?;
        let rows = plan.filesets.iter().map(|spec| (spec, mount(&spec.root())));
        front.line(table_of(rows).render_fitted(front.columns()).trim_end());
        Ok(())
    }
}

fn table_of<'a>(rows: impl Iterator<Item = (&'a FilesetSpec, Option<MountInfo>)>) -> Table {
    let words = ["file set", "path", "type", "device"].map(|name| (name, Align::Left));
    let mut table = Table::new(words.into_iter().chain(["total", "free"].map(|name| (name, Align::Right))));
    for (spec, mount) in rows {
        let mount = mount.unwrap_or_default();
        // A file system without a size, such as procfs, has no space either.
        let space = |bytes| if mount.total == 0 { String::new() } else { size::format(bytes) };
        let cells = [mount.kind.clone(), mount.source.clone(), space(mount.total), space(mount.free)];
        let cells = cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { cell });
        table.row([spec.name.clone(), spec.root().display().to_string()].into_iter().chain(cells));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::table_of;
    use crate::fileset::FilesetSpec;
    use crate::result::environment::MountInfo;

    #[test]
    fn each_set_has_a_line_and_an_unknown_figure_is_a_dash() {
        let sets = [
            FilesetSpec::new("data", "/mnt/a", 1, 1),
            FilesetSpec::new("log\n1", "/mnt/b", 1, 1),
            FilesetSpec::new("info", "/proc", 1, 1),
        ];
        let disk = MountInfo {
            kind: "xfs".to_owned(),
            source: "/dev/sda1".to_owned(),
            total: 10 << 30,
            free: 3 << 30,
            ..MountInfo::default()
        };
        let proc = MountInfo { kind: "proc".to_owned(), source: "proc".to_owned(), ..MountInfo::default() };
        let text = table_of(sets.iter().zip([Some(disk), None, Some(proc)])).render();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["file", "set", "path", "type", "device", "total", "free"], "{text}");
        assert!(
            lines.contains(&vec!["data", "/mnt/a/data", "xfs", "/dev/sda1", "10.0", "GiB", "3.0", "GiB"]),
            "{text}"
        );
        assert!(lines.contains(&vec![r"log\n1", r"/mnt/b/log\n1", "-", "-", "-", "-"]), "{text}");
        assert!(lines.contains(&vec!["info", "/proc/info", "proc", "proc", "-", "-"]), "{text}");
    }
}
