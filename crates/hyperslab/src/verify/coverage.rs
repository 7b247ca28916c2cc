//! Reports chunks that do not exist and chunks without a checksum, which a check of the bytes cannot see.

use hyperslab_core::{ArraySchema, Fill, Node, Report, Result, counted};

use crate::OpenStore;

/// The maximum number of nodes that one finding names.
const MOST_NAMED: usize = 8;
/// Filters whose streams include a checksum, or are one.
const CHECKED: [&str; 13] = [
    "fletcher32",
    "crc32c",
    "crc32",
    "adler32",
    "checksum_md5",
    "checksum_sha256",
    "aes256gcm",
    "gzip",
    "zlib",
    "deflate",
    "bz2",
    "bzip2",
    "jenkins_lookup3",
];

/// Notes arrays with fewer chunks than their grid, and arrays whose chunks have no checksum. Neither is damage: a chunk that was
/// never written reads as the fill value.
pub(crate) fn note_coverage(store: &OpenStore, report: &mut Report) -> Result<()> {
    let kept = store.inner().keeps_checksums();
    let (mut unprotected, mut arrays) = (Vec::new(), 0_usize);
    store.walk(&mut |path, node| {
        // The format's own check has reported unreadable nodes.
        let Ok(Node::Array(array)) = node else { return Ok(()) };
        let schema = array.schema();
        if schema.is_dimension {
            return Ok(());
        }
        arrays += 1;
        if !kept && !is_checked(schema) {
            unprotected.push(path.to_owned());
        }
        let complete = !schema.chunked || schema.fill == Fill::Undefined || !array.visits_every_chunk();
        let (Some(all), false) = (schema.grid.chunks(), complete) else { return Ok(()) };
        if let Ok(usage) = array.usage()
            && usage.chunks < all
        {
            let missing = all - usage.chunks;
            let verb = if missing == 1 { "was never written or is" } else { "were never written or are" };
            report.note("missing_chunks", format!("{missing} of {all} chunks {verb} missing"));
            report.at_node(path);
        }
        Ok(())
    })?;
    if !unprotected.is_empty() {
        let more = unprotected.len().saturating_sub(MOST_NAMED);
        let mut names = unprotected.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
        if more > 0 {
            names.push_str(&format!(" and {more} more"));
        }
        report.note(
            "no_checksum",
            format!(
                "of {}, {} {} chunks without a checksum: {names}",
                counted(arrays as u64, "array"),
                unprotected.len(),
                if unprotected.len() == 1 { "has" } else { "have" }
            ),
        );
    }
    Ok(())
}

fn is_checked(schema: &ArraySchema) -> bool {
    schema.filters.iter().any(|filter| {
        CHECKED.contains(&filter.name.as_str())
            || filter.parameters.get("checksum").is_some_and(|on| on.as_bool() == Some(true))
    })
}
