//! Provenance: a line in an attribute of the root, for formats that keep no history of their own.

use hyperslab_core::{Attributes, TimeUnit, time_text};

use crate::{Format, OpenStore};

/// The attribute that records where a store came from, one line per conversion. Comparisons ignore it.
pub const PROVENANCE: &str = "hyperslab_provenance";

/// The root's attributes with one more line; those of other nodes unchanged.
pub(super) fn noted(attributes: &Attributes, path: &str, source: &OpenStore, format: Format) -> Attributes {
    let mut noted = attributes.clone();
    if path != "/" || !keeps_attributes(format) {
        return noted;
    }
    let name = source.path().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let line = format!("{} hyperslab {}: {} {name}", now(), env!("CARGO_PKG_VERSION"), source.format());
    let before = attributes.get(PROVENANCE).and_then(|before| before.as_text());
    noted.set(PROVENANCE, before.map_or(line.clone(), |before| format!("{before}\n{line}")).as_str());
    noted
}

/// Returns true if the format has attributes but no history of its own.
fn keeps_attributes(format: Format) -> bool {
    let capabilities = format.info().capabilities;
    capabilities.attributes && !capabilities.history
}

fn now() -> String {
    let seconds = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let text = time_text(i64::try_from(seconds).unwrap_or(0), TimeUnit::Second);
    text.map_or_else(String::new, |text| text + "Z")
}
