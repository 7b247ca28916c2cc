//! The report of a check.

use std::borrow::Cow;

use serde::Serialize;

/// The findings of a check, in the order in which they were made.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// One thing that was checked, and the result.
    pub findings: Vec<Finding>,
    /// What to do about it.
    pub recommendations: Vec<Recommendation>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable name of the check: `payload_offsets`.
    pub check: Cow<'static, str>,
    /// How bad it is when it is not well.
    pub severity: Severity,
    /// Is it well?
    pub ok: bool,
    /// The observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The node that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The byte that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Readable, but not as it should be.
    Warning,
    /// Damage: values are lost or wrong.
    Error,
}

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    /// A stable name of the remedy, as `tet repair` knows it.
    pub code: Cow<'static, str>,
    /// The problem and the effect of the fix.
    pub message: String,
    /// The command to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Report {
    /// Is everything well? Warnings do not count against it.
    #[must_use]
    pub fn ok(&self) -> bool {
        !self.findings.iter().any(|finding| !finding.ok && finding.severity == Severity::Error)
    }

    /// A check that went well.
    pub fn passed(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Severity::Info, true, detail);
    }

    /// Something that is good to know, and neither good nor bad.
    pub fn note(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Severity::Info, false, detail);
    }

    /// Something that is not as it should be, though nothing is lost.
    pub fn warning(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Severity::Warning, false, detail);
    }

    /// Damage.
    pub fn error(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Severity::Error, false, detail);
    }

    /// An error as a finding, with the byte that it names.
    pub fn failure(&mut self, check: &'static str, error: &crate::Error) {
        let offset = if let crate::Error::Corrupt(corrupt) = error { corrupt.offset } else { None };
        // What we do not read yet is not damage.
        let severity = if error.is_unsupported() { Severity::Warning } else { Severity::Error };
        let detail = Some(error.to_string());
        self.findings.push(Finding { check: check.into(), severity, ok: false, detail, node: None, offset });
    }

    /// Says of the last finding which node it concerns.
    pub fn at_node(&mut self, node: &str) {
        if let Some(last) = self.findings.last_mut() {
            last.node = Some(node.to_owned());
        }
    }

    /// A remedy.
    pub fn recommend(&mut self, code: &'static str, message: impl Into<String>, fix: Option<String>) {
        let recommendation = Recommendation { code: code.into(), message: message.into(), fix };
        if !self.recommendations.contains(&recommendation) {
            self.recommendations.push(recommendation);
        }
    }

    fn push(&mut self, check: &'static str, severity: Severity, ok: bool, detail: impl Into<String>) {
        let detail = Some(detail.into()).filter(|detail| !detail.is_empty());
        self.findings.push(Finding { check: check.into(), severity, ok, detail, node: None, offset: None });
    }
}
