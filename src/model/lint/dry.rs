//! File sets that must run dry: files are taken from them, or made in them, and nothing turns that round.
//!
//! Scripts that end by what was done (`finishoncount`, `set mode quit`) do so on purpose, and are left in peace.

use super::{Subject, Use};
use crate::diag::{Code, Diagnostic};
use crate::model::FilesetDef;

/// What flowops do to the files of a set, or to its empty directories.
struct Trade {
    makes: &'static [&'static str],
    removes: &'static [&'static str],
    needs: &'static [&'static str],
    thing: &'static str,
    /// The attribute that says how many a set has.
    counted: &'static str,
}

const FILES: Trade = Trade {
    makes: &["createfile", "link", "symlink"],
    removes: &["deletefile"],
    needs: &[
        "openfile",
        "read",
        "readwholefile",
        "write",
        "writewholefile",
        "appendfile",
        "appendfilerand",
        "statfile",
        "aioread",
        "aiowrite",
        "bufread",
        "bufwrite",
        "mmapread",
        "mmapwrite",
        "access",
        "setattr",
        "readlink",
        "rename",
        "link",
        "truncate",
        "fallocate",
        "punchhole",
    ],
    thing: "file",
    counted: "entries",
};

const DIRECTORIES: Trade =
    Trade { makes: &["makedir"], removes: &["removedir"], needs: &[], thing: "leaf directory", counted: "leafdirs" };

pub(super) fn dry(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.loads {
        return;
    }
    let bodies: Vec<(bool, Vec<Use<'_>>)> =
        subject.threads().map(|(_, t)| (t.attrs.get("mix").is_some(), subject.body(t))).collect();
    // A set that can't be told may be any.
    let unknown = |u: &Use<'_>| u.has("filesetname") && u.text("filesetname").is_none();
    if bodies.iter().any(|(_, body)| body.iter().any(unknown)) {
        return;
    }
    for set in &subject.filesets {
        let Some(name) = super::text(&set.attrs, "name", &subject.scope) else { continue };
        for trade in [&FILES, &DIRECTORIES] {
            one(subject, set, &name, trade, &bodies, found);
        }
    }
}

fn one(
    subject: &Subject<'_>,
    set: &FilesetDef,
    name: &str,
    trade: &Trade,
    bodies: &[(bool, Vec<Use<'_>>)],
    found: &mut Vec<Diagnostic>,
) {
    let of = |kinds: &'static [&'static str]| {
        bodies.iter().flat_map(|(_, body)| body).find(move |u| kinds.contains(&u.kind()) && works_on(u, name))
    };
    let (maker, remover, needer) = (of(trade.makes), of(trade.removes), of(trade.needs));
    let warn = |used: &Use<'_>, message: String, help: &str| {
        Diagnostic::warning(Code::DryFileset, used.flowop.span, message).help(help)
    };
    let thing = trade.thing;
    // Whose files a `deletefile` by slot removes can't be told: it may be the cure, and is never the culprit.
    let culprit = remover.filter(|u| u.has("filesetname"));
    if let Some(used) = needer.or(maker).or(culprit)
        && has_room_for_none(subject, set, trade)
    {
        let message = format!("`{}` works on a {thing} of `{name}`, which has 0 `{}`", used.label(), trade.counted);
        let help = format!("say how many it has: `{}=1000`; a set without is empty", trade.counted);
        found.push(warn(used, message, &help));
        return;
    }
    if let (None, Some(used)) = (maker, needer.or(culprit))
        && nothing_there(subject, set)
    {
        let message = format!("`{}` needs a {thing} of `{name}`, which has none, and nothing makes one", used.label());
        found.push(warn(used, message, "add `prealloc` to the file set, or a flowop that makes its files"));
        return;
    }
    // A thread that has nothing left to do is done; the run goes on while there are others.
    let trades = |u: &Use<'_>| trade.makes.contains(&u.kind()) || trade.removes.contains(&u.kind());
    let others = bodies.iter().any(|(_, body)| !body.iter().any(|u| trades(u) && works_on(u, name)));
    if subject.ends_by_itself() || others {
        return;
    }
    match (maker, culprit) {
        (Some(used), None) if remover.is_none() => {
            let message = format!("`{}` makes one {thing} of `{name}` after another until all are there", used.label());
            let help = "add a flowop that removes them, or end the run by `finishoncount` or `set mode quit alldone`";
            found.push(warn(used, message, help));
        }
        (None, Some(used)) => {
            let message =
                format!("`{}` removes one {thing} of `{name}` after another until none is left", used.label());
            let help = "add a flowop that makes them, or end the run by `finishoncount` or `set mode quit alldone`";
            found.push(warn(used, message, help));
        }
        (Some(_), _) => uneven(name, trade, bodies, found),
        (None, None) => {}
    }
}

/// One thread alone makes and removes, and not as many of the one as of the other.
fn uneven(name: &str, trade: &Trade, bodies: &[(bool, Vec<Use<'_>>)], found: &mut Vec<Diagnostic>) {
    let trades =
        |u: &&Use<'_>| (trade.makes.contains(&u.kind()) || trade.removes.contains(&u.kind())) && works_on(u, name);
    let mut at_work = bodies.iter().filter(|(_, body)| body.iter().any(|u| trades(&u)));
    let (Some((false, body)), None) = (at_work.next(), at_work.next()) else { return };
    let count = |kinds: &[&str]| {
        body.iter().filter(trades).filter(|u| kinds.contains(&u.kind())).map(|u| u.times).sum::<Option<u64>>()
    };
    if body.iter().any(|u| u.kind() == "deletefile" && !u.has("filesetname")) {
        return;
    }
    let (Some(made), Some(removed)) = (count(trade.makes), count(trade.removes)) else { return };
    if made == removed {
        return;
    }
    let (more, kinds) = if made > removed { ("makes", trade.makes) } else { ("removes", trade.removes) };
    if let Some(used) = body.iter().filter(trades).find(|u| kinds.contains(&u.kind())) {
        found.push(
            Diagnostic::warning(
                Code::DryFileset,
                used.flowop.span,
                format!("each round makes {made} and removes {removed} of the files of `{name}`: it {more} more"),
            )
            .help("make as many as are removed, or end the run by `finishoncount` or `set mode quit alldone`"),
        );
    }
}

/// Whether a flowop works on that set. A `deletefile` that names only a slot may.
fn works_on(used: &Use<'_>, name: &str) -> bool {
    match used.text("filesetname") {
        Some(set) => set == name,
        None => used.kind() == "deletefile",
    }
}

/// Whether no file of the set is there when a run starts. Trees of other runs are kept with `reuse`.
fn nothing_there(subject: &Subject<'_>, set: &FilesetDef) -> bool {
    let prealloc = match set.attrs.get("prealloc") {
        None => Some(0),
        Some(used) => crate::model::eval(&used.value, &subject.scope).ok().as_ref().and_then(super::whole),
    };
    prealloc == Some(0)
}

/// Whether a set has none of what is counted, now or ever.
fn has_room_for_none(subject: &Subject<'_>, set: &FilesetDef, trade: &Trade) -> bool {
    if set.single || set.attrs.get("sizetable").is_some() {
        // `define file` is one file; one without leaf directories has none.
        return set.single && trade.counted == "leafdirs";
    }
    match set.attrs.get(trade.counted) {
        None => true,
        Some(_) => super::int(&set.attrs, trade.counted, &subject.scope) == Some(0),
    }
}
