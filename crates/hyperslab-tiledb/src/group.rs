//! Groups: named members, each an array or another group.

use std::collections::{BTreeMap, HashMap};

use hyperslab_core::{Fields, Place, Result, Storage};

use crate::OpenOptions;
use crate::generic;
use crate::names::TimedName;

/// The type of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberKind {
    Group,
    Array,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) kind: MemberKind,
    pub(crate) uri: String,
    /// Whether the address is relative to the group.
    pub(crate) relative: bool,
    deleted: bool,
}

/// An opened group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) prefix: String,
    /// Sorted by name; names are unique.
    pub(crate) members: Vec<Member>,
}

impl Group {
    pub(crate) fn open(directory: &dyn Storage, prefix: String, options: &OpenOptions) -> Result<Self> {
        let entries = directory.list(&format!("{prefix}__group"))?;
        let mut names: Vec<TimedName> = entries
            .iter()
            .filter_map(|entry| TimedName::parse(&entry.name))
            .filter(|name| name.ending.is_empty() && name.inside(options.at))
            .collect();
        names.sort_by(|a, b| a.order().cmp(&b.order()));
        let mut members = Members::default();
        for name in names {
            let key = format!("{prefix}__group/{}", name.stem);
            let Some(bytes) = directory.read(&key)? else { continue };
            let label = format!("{}/{key}", directory.name());
            let place = Place::new(&label, "group", 0);
            let payload = generic::decode_whole(&bytes, options.key.as_ref(), place)?;
            let (version, listed) = parse(&payload, place)?;
            if version < 2 {
                // Each file holds the complete list, so it replaces the earlier ones.
                members = Members::default();
            }
            listed.into_iter().for_each(|member| members.put(member));
        }
        Ok(Self { prefix, members: members.by_name.into_values().collect() })
    }

    /// The member with this name.
    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        let at = self.members.binary_search_by(|member| member.name.as_str().cmp(name)).ok()?;
        self.members.get(at)
    }
}

/// Members by name and by address. A new member replaces those with the same name or the same address.
#[derive(Debug, Default)]
struct Members {
    by_name: BTreeMap<String, Member>,
    /// Address to name.
    names: HashMap<String, String>,
}

impl Members {
    fn put(&mut self, member: Member) {
        if let Some(old) = self.by_name.remove(&member.name) {
            self.names.remove(&old.uri);
        }
        if let Some(old) = self.names.remove(&member.uri) {
            self.by_name.remove(&old);
        }
        if !member.deleted {
            self.names.insert(member.uri.clone(), member.name.clone());
            self.by_name.insert(member.name.clone(), member);
        }
    }
}

/// Parses `u32 version, u64 members`, per member `u32 version, u8 type, u8 relative, u64 len, uri, u8 has_name, [u64
/// len, name], u8 deleted (version 2)`.
pub(crate) fn parse(bytes: &[u8], place: Place<'_>) -> Result<(u32, Vec<Member>)> {
    let mut fields = Fields::new(bytes, place);
    let version = fields.u32()?;
    if !(1..=2).contains(&version) {
        return Err(place.unsupported(format!("group version {version}")));
    }
    let count = fields.count_u64(15)?;
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        members.push(parse_member(&mut fields)?);
    }
    Ok((version, members))
}

fn parse_member(fields: &mut Fields<'_>) -> Result<Member> {
    let place = fields.place();
    let version = fields.u32()?;
    let kind = match fields.u8()? {
        1 => MemberKind::Group,
        2 => MemberKind::Array,
        other => return Err(place.corrupt(format!("member type {other}, expected 1 or 2"))),
    };
    let relative = fields.u8()? != 0;
    let text = |fields: &mut Fields<'_>| -> Result<String> {
        let length = fields.count_u64(1)?;
        Ok(String::from_utf8_lossy(fields.bytes(length)?).into_owned())
    };
    let uri = text(fields)?;
    let name = if fields.u8()? != 0 { text(fields)? } else { String::new() };
    let deleted = version >= 2 && fields.u8()? != 0;
    // A node's name cannot contain slashes. A member without a name is identified by its address.
    let name = if name.is_empty() {
        uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
    } else {
        name.replace('/', "_")
    };
    Ok(Member { name, kind, uri, relative, deleted })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, uri: &str, deleted: bool) -> Member {
        Member {
            name: name.to_owned(),
            kind: MemberKind::Array,
            uri: uri.to_owned(),
            relative: true,
            deleted,
        }
    }

    #[test]
    fn a_later_member_replaces_those_of_its_name_and_its_address() {
        let mut members = Members::default();
        for (name, uri, deleted) in [
            ("b", "1", false),
            ("a", "2", false),
            ("c", "3", false),
            // It shares the name of one and the address of another, so both are replaced.
            ("a", "3", false),
            ("b", "4", true),
            ("d", "5", false),
            ("x", "5", true),
            ("e", "6", false),
            ("e", "7", false),
            ("f", "6", false),
        ] {
            members.put(member(name, uri, deleted));
        }
        let left: Vec<(&str, &str)> =
            members.by_name.values().map(|own| (own.name.as_str(), own.uri.as_str())).collect();
        assert_eq!(left, [("a", "3"), ("e", "7"), ("f", "6")]);
        assert_eq!(members.names.len(), 3);
    }
}
