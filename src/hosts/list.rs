//! A list of hosts with their numbers of ranks, as on the command line.

/// The hosts of a run, each with its number of ranks. It has at least one host, and each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostList(Vec<(String, u64)>);

impl HostList {
    /// Reads `HOST[:RANKS],…`. The ranks of a host that is named several times are added.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut hosts: Vec<(String, u64)> = Vec::new();
        for word in text.split(',') {
            let (name, ranks) = word.split_once(':').unwrap_or((word, "1"));
            // A name with another beginning would be an option of the launcher or of ssh.
            let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            if !is_name {
                return Err(format!("`{word}` is not a host; write `a:4,b:4`"));
            }
            let ranks = ranks.parse().ok().filter(|ranks| (1..=MAX_RANKS).contains(ranks));
            let ranks = ranks.ok_or_else(|| format!("`{word}` has no number of ranks from 1 to {MAX_RANKS}"))?;
            match hosts.iter_mut().find(|(known, _)| known == name) {
                Some((_, all)) => *all += ranks,
                None => hosts.push((name.to_owned(), ranks)),
            }
        }
        Ok(Self(hosts))
    }

    /// The names of the hosts.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The number of ranks on all hosts.
    pub(super) fn ranks(&self) -> u64 {
        self.0.iter().map(|(_, ranks)| ranks).sum()
    }

    /// The same hosts with one rank each.
    pub(super) fn one_each(&self) -> Self {
        Self(self.names().map(|name| (name.to_owned(), 1)).collect())
    }

    /// Each host alone, with one rank.
    pub(super) fn each_alone(&self) -> Vec<Self> {
        self.names().map(|name| Self(vec![(name.to_owned(), 1)])).collect()
    }

    /// The list as text, with this character before the number of ranks.
    pub(super) fn text(&self, before_ranks: char) -> String {
        let of = |(name, ranks): &(String, u64)| format!("{name}{before_ranks}{ranks}");
        self.0.iter().map(of).collect::<Vec<_>>().join(",")
    }
}

/// The most ranks of a host.
const MAX_RANKS: u64 = 10_000;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::HostList;

    #[test]
    fn hosts_have_a_number_of_ranks() {
        let hosts = HostList::parse("a:4,b-1.x:2,c,a").unwrap();
        assert_eq!((hosts.text(':'), hosts.ranks()), ("a:5,b-1.x:2,c:1".to_owned(), 8));
        assert_eq!(hosts.one_each().text('*'), "a*1,b-1.x*1,c*1");
        assert_eq!(hosts.each_alone().iter().map(|one| one.text(':')).collect::<Vec<_>>(), ["a:1", "b-1.x:1", "c:1"]);
    }

    #[test]
    fn other_texts_are_no_hosts() {
        for text in ["", "a,", "a:0", "a:-1", "a:x", "a:4:4", "a:10001", "-oProxyCommand=x", "a b", "a;b", "$(x)"] {
            assert!(HostList::parse(text).is_err(), "{text}");
        }
    }
}
