//! S3 operations: listings, and objects that are put, copied, removed and uploaded in parts.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use super::http::{Answer, Request, entity_tag, percent_decoded};
use super::{Shared, held};

/// The metadata headers of an object.
type Metadata = Vec<(String, String)>;

/// Incomplete uploads in parts, and metadata of objects.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    /// The metadata and the parts of each upload.
    open: HashMap<String, (Metadata, BTreeMap<u64, Vec<u8>>)>,
    made: u64,
    metadata: HashMap<PathBuf, Metadata>,
}

impl Uploads {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// The metadata headers with which the object was written.
    pub(super) fn metadata_of(&self, path: &Path) -> Vec<(&'static str, String)> {
        let own = self.metadata.get(path).map_or(&[][..], Vec::as_slice);
        own.iter().filter(|(name, _)| name == WRITER).map(|(_, value)| (WRITER, value.clone())).collect()
    }
}

/// The only metadata header that is kept.
const WRITER: &str = "x-amz-meta-hyperslabwrite";

/// The value of a query parameter; `None` if it is missing.
fn parameter(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (own, value) = pair.split_once('=').unwrap_or((pair, ""));
        (own == name).then(|| percent_decoded(value))
    })
}

impl Shared {
    /// Answers a request that changes something.
    pub(super) fn write(&self, key: &str, query: &str, request: &Request) -> io::Result<Answer> {
        let path = self.root.join(key);
        let upload = parameter(query, "uploadId");
        match (request.method.as_str(), upload) {
            ("POST", None) if parameter(query, "delete").is_some() => self.remove_many(key, request),
            ("POST", None) if parameter(query, "uploads").is_some() => {
                let mut uploads = held(&self.uploads);
                uploads.made += 1;
                let id = format!("upload{}", uploads.made);
                uploads.open.insert(id.clone(), (request.metadata.clone(), BTreeMap::new()));
                Ok(Answer::document(
                    200,
                    format!(
                        "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
                    ),
                ))
            }
            ("PUT", Some(id)) => {
                let number = parameter(query, "partNumber").and_then(|number| number.parse().ok());
                let mut uploads = held(&self.uploads);
                let (Some(number), Some((_, parts))) = (number, uploads.open.get_mut(&id)) else {
                    return Ok(Answer::error(404, "NoSuchUpload"));
                };
                parts.insert(number, request.body.clone());
                let mut answer = Answer::plain(200);
                answer.headers.push(("ETag", format!("\"part{number}\"")));
                Ok(answer)
            }
            ("POST", Some(id)) => {
                let Some((metadata, parts)) = held(&self.uploads).open.get(&id).cloned() else {
                    return Ok(Answer::error(404, "NoSuchUpload"));
                };
                let bytes = parts.into_values().collect::<Vec<_>>().concat();
                let answer = self.put(&path, request, &metadata, &bytes)?;
                if answer.status != 200 {
                    return Ok(answer);
                }
                held(&self.uploads).open.remove(&id);
                let tag =
                    answer.headers.first().map(|(_, tag)| tag.replace('"', "&quot;")).unwrap_or_default();
                Ok(Answer::document(
                    200,
                    format!(
                        "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
                    ),
                ))
            }
            ("DELETE", Some(id)) => {
                held(&self.uploads).open.remove(&id);
                Ok(Answer::plain(204))
            }
            ("DELETE", None) => {
                self.remove(&path);
                Ok(Answer::plain(204))
            }
            ("PUT", None) => match &request.copy_source {
                Some(source) => {
                    let from = self.root.join(percent_decoded(source.trim_start_matches('/')));
                    let Ok(bytes) = std::fs::read(&from) else { return Ok(Answer::error(404, "NoSuchKey")) };
                    let metadata = held(&self.uploads).metadata.get(&from).cloned().unwrap_or_default();
                    let answer = self.put(&path, request, &metadata, &bytes)?;
                    let tag = answer.headers.first().map(|(_, tag)| tag.clone()).unwrap_or_default();
                    Ok(Answer::document(
                        answer.status,
                        format!("<CopyObjectResult><ETag>{tag}</ETag></CopyObjectResult>"),
                    ))
                }
                None => self.put(&path, request, &request.metadata, &request.body),
            },
            _ => Ok(Answer::plain(405)),
        }
    }

    /// Puts an object if the conditions of the request hold. Requests are serialised, so that the check and the
    /// change are one step.
    fn put(&self, path: &Path, request: &Request, metadata: &Metadata, bytes: &[u8]) -> io::Result<Answer> {
        let mut uploads = held(&self.uploads);
        let tag =
            std::fs::metadata(path).ok().filter(|found| found.is_file()).map(|found| entity_tag(&found));
        if request.if_none_match.as_deref() == Some("*") && tag.is_some() {
            return Ok(Answer::error(412, "PreconditionFailed"));
        }
        if let Some(wanted) = &request.if_match {
            match tag {
                None => return Ok(Answer::error(404, "NoSuchKey")),
                Some(tag) if tag != *wanted => return Ok(Answer::error(412, "PreconditionFailed")),
                Some(_) => {}
            }
        }
        let folder = path.parent().unwrap_or(&self.root);
        std::fs::create_dir_all(folder)?;
        uploads.made += 1;
        // Outside the buckets.
        let staged = self.root.join(format!(".put{}", uploads.made));
        std::fs::write(&staged, bytes)?;
        std::fs::rename(&staged, path)?;
        uploads.metadata.insert(path.to_owned(), metadata.clone());
        let mut answer = Answer::plain(200);
        answer.headers.push(("ETag", entity_tag(&std::fs::metadata(path)?)));
        Ok(answer)
    }

    fn remove(&self, path: &Path) {
        held(&self.uploads).metadata.remove(path);
        let _ = std::fs::remove_file(path);
        // A bucket has no folders, so empty ones are removed.
        for folder in path.ancestors().skip(1).take_while(|folder| folder.parent() != Some(&self.root)) {
            if std::fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }

    fn remove_many(&self, bucket: &str, request: &Request) -> io::Result<Answer> {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        let mut document = String::from("<DeleteResult>");
        for part in text.split("<Key>").skip(1) {
            let key = part.split("</Key>").next().unwrap_or_default();
            self.remove(&self.root.join(bucket.trim_end_matches('/')).join(key));
            document.push_str(&format!("<Deleted><Key>{key}</Key></Deleted>"));
        }
        document.push_str("</DeleteResult>");
        Ok(Answer::document(200, document))
    }

    /// A listing as an S3 document.
    pub(super) fn listing(&self, bucket: &str, query: &str) -> io::Result<Answer> {
        let value = |name: &str| parameter(query, name).unwrap_or_default();
        let (prefix, delimiter) = (value("prefix"), value("delimiter"));
        let root = self.root.join(bucket.trim_end_matches('/'));
        if !root.is_dir() {
            return Ok(Answer::error(404, "NoSuchBucket"));
        }
        let mut keys = Vec::new();
        collect(&root, "", &mut keys)?;
        keys.sort();
        let mut folders: Vec<String> = Vec::new();
        let mut xml =
            String::from("<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated>");
        for (key, size, tag) in keys.iter().filter(|(key, ..)| key.starts_with(&prefix)) {
            if !delimiter.is_empty()
                && let Some(end) = key[prefix.len()..].find(&delimiter)
            {
                let folder = key[..prefix.len() + end + delimiter.len()].to_owned();
                if folders.last() != Some(&folder) {
                    folders.push(folder);
                }
                continue;
            }
            let tag = tag.replace('"', "&quot;");
            xml.push_str(&format!(
                "<Contents><Key>{key}</Key><LastModified>2026-11-18T00:00:00.000Z</LastModified><ETag>{tag}</ETag>\
                 <Size>{size}</Size></Contents>"
            ));
        }
        for folder in folders {
            xml.push_str(&format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"));
        }
        xml.push_str("</ListBucketResult>");
        Ok(Answer::document(200, xml))
    }
}

/// All objects below a folder: key, size and tag.
fn collect(folder: &Path, prefix: &str, keys: &mut Vec<(String, u64, String)>) -> io::Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let key = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{key}/"), keys)?;
        } else if let Ok(metadata) = entry.metadata() {
            keys.push((key, metadata.len(), entity_tag(&metadata)));
        }
    }
    Ok(())
}
