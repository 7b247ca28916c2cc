//! The profile files of the AWS tools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hyperslab_core::{Error, Result};

/// The settings of a profile: the given one, that of `AWS_PROFILE`, or `default`.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the given profile is in neither file.
pub(crate) fn read(name: Option<&str>) -> Result<BTreeMap<String, String>> {
    let variable = std::env::var("AWS_PROFILE").ok();
    let asked = name.or(variable.as_deref());
    let profile = asked.unwrap_or("default");
    let mut settings = BTreeMap::new();
    let mut found = false;
    for (variable, file) in [("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")] {
        let path =
            std::env::var_os(variable).map(PathBuf::from).or_else(|| Some(home()?.join(".aws").join(file)));
        let Some(text) = path.and_then(|path| std::fs::read_to_string(path).ok()) else { continue };
        if let Some(own) = section(&text, profile) {
            found = true;
            settings.extend(own);
        }
    }
    match asked {
        Some(asked) if !found => Err(Error::invalid(format!("there is no AWS profile {asked:?}"))),
        _ => Ok(settings),
    }
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE")).map(PathBuf::from)
}

/// The settings in the section `[profile NAME]` or `[NAME]`.
fn section(text: &str, profile: &str) -> Option<BTreeMap<String, String>> {
    let mut settings = None;
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(title) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let title = title.trim();
            inside = title.strip_prefix("profile ").map_or(title, str::trim) == profile;
            if inside {
                settings.get_or_insert_with(BTreeMap::new);
            }
        } else if inside
            && !line.starts_with(['#', ';'])
            && let Some((name, value)) = line.split_once('=')
        {
            settings
                .get_or_insert_with(BTreeMap::new)
                .insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found() {
        let text = "[default]\nregion = a\n# aws_access_key_id = no\n[profile two]\nregion=b\naws_access_key_id = K\n";
        assert_eq!(section(text, "default").unwrap(), BTreeMap::from([("region".into(), "a".into())]));
        assert_eq!(section(text, "two").unwrap()["aws_access_key_id"], "K");
        assert!(section(text, "three").is_none());
    }
}
