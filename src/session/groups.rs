//! The groups of the shipped personalities, in the order of `wmlrun list` and of docs/personalities.md.
//!
//! To add a personality, add its name to one of them.

crate::util::named! {
    /// What a group of personalities is for, in the order of the list. Its name selects all of its groups.
    pub enum GroupKind {
        Applications = "applications", "what servers and databases do";
        Micro = "micro", "one kind of operation each";
        Tools = "tools", "what other tools measure";
        Historical = "historical", "measurements that were published, to repeat them";
    }
}

/// Personalities that belong together.
#[derive(Debug)]
pub struct PersonalityGroup {
    /// The word that selects it.
    pub name: &'static str,
    pub kind: GroupKind,
    /// Its personalities, the best known first.
    pub names: &'static [&'static str],
}

const fn group(name: &'static str, kind: GroupKind, names: &'static [&'static str]) -> PersonalityGroup {
    PersonalityGroup { name, kind, names }
}

use GroupKind::{Applications, Historical, Micro, Tools};

/// The group of every shipped personality.
#[rustfmt::skip]
pub static GROUPS: &[PersonalityGroup] = &[
    group("programs", Applications, &["sqlite_delete", "sqlite_wal", "pg", "git_status", "tar_extract",
        "npm_install", "git_clone", "rsync_copy", "notmuch_new", "mail_deliver", "lsm_store"]),
    group("publications", Applications, &["container_start", "train_unet3d", "train_resnet50", "checkpoint"]),
    group("servers", Applications, &["varmail", "maildir", "qmail", "webserver", "webproxy", "fileserver", "netsfs",
        "networkfs", "videoserver", "imagestore", "randomfileaccess"]),
    group("databases", Applications, &["oltp", "oltp_sync", "tpcso",
        "randomwrite_oltp_ager", "randomwrite_ager", "seqwrite"]),
    group("streams", Micro, &["randomread", "randomwrite", "randomrw", "singlestreamread", "singlestreamreaddirect",
        "singlestreamwrite", "singlestreamwritedirect", "multistreamread", "multistreamreaddirect", "multistreamwrite",
        "multistreamwritedirect", "fivestreamread", "fivestreamreaddirect", "fivestreamwrite",
        "fivestreamwritedirect"]),
    group("trees", Micro, &["createfiles", "openfiles", "deletefiles", "makedirs", "listdirs", "removedirs",
        "copyfiles", "ratelimcopyfiles", "bringover", "createdelete-swing", "mongo"]),
    group("filemicro", Micro, &["filemicro_create", "filemicro_createfiles", "filemicro_createrand", "filemicro_delete",
        "filemicro_rread", "filemicro_rwrite", "filemicro_rwritedsync", "filemicro_rwritefsync", "filemicro_seqread",
        "filemicro_seqwrite", "filemicro_seqwriterand", "filemicro_seqwriterandvargam", "filemicro_seqwriterandvartab",
        "filemicro_statfile", "filemicro_writefsync", "compflow_demo", "cvar_example"]),
    group("postmark", Tools, &["postmark"]),
    group("iozone", Tools, &["iozone_write", "iozone_rewrite", "iozone_read", "iozone_reread", "iozone_randread",
        "iozone_randwrite", "iozone_backread", "iozone_recordrewrite", "iozone_strideread", "iozone_fwrite",
        "iozone_frewrite", "iozone_fread", "iozone_freread", "iozone_auto"]),
    group("bonnie", Tools, &["bonnie_putc", "bonnie_write", "bonnie_rewrite", "bonnie_getc", "bonnie_read",
        "bonnie_seeks", "bonnie_create_seq", "bonnie_stat_seq", "bonnie_delete_seq", "bonnie_create_rand",
        "bonnie_stat_rand", "bonnie_delete_rand"]),
    group("io500", Tools, &["ior_easy", "ior_hard", "mdtest_easy", "mdtest_hard"]),
    group("nfs", Historical, &["specsfs97", "laddis_100g", "laddis_1t", "vxbench_read", "vxbench_write", "mkfile",
        "touch_files", "cp", "untar"]),
    group("unit", Historical, &["unit01", "unit02", "unit03", "unit04", "unit05", "unit06", "unit07", "unit08",
        "unit09", "unit10", "unit11", "unit12", "unit13", "unit14"]),
];

/// The names of all personalities, group by group.
pub fn all() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|group| group.names).copied()
}

#[cfg(test)]
mod tests {
    use super::super::library::PERSONALITIES;
    use super::{GROUPS, GroupKind, all};
    use std::collections::BTreeSet;

    #[test]
    fn each_personality_has_one_group() {
        let shipped: Vec<&str> = PERSONALITIES.iter().map(|(name, _)| *name).collect();
        let mut grouped: Vec<&str> = all().collect();
        grouped.sort_unstable();
        assert_eq!(grouped, shipped);
    }

    /// A word selects one thing.
    #[test]
    fn groups_have_names_of_their_own() {
        let words: Vec<&str> = GROUPS.iter().map(|group| group.name).chain(GroupKind::WORDS.iter().copied()).collect();
        let distinct: BTreeSet<&str> = words.iter().copied().collect();
        assert_eq!(distinct.len(), words.len(), "{words:?}");
    }
}
