//! The report of a check.

use std::borrow::Cow;

use serde::Serialize;

/// The findings of a check, in the order in which they were made.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The findings: each names one check and its result.
    pub findings: Vec<Finding>,
    /// The recommended remedies.
    pub recommendations: Vec<Recommendation>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable name of the check: `payload_offsets`.
    pub check: Cow<'static, str>,
    /// How serious a failure of this check is.
    pub severity: Severity,
    /// Whether the check passed.
    pub ok: bool,
    /// The details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The affected node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The affected byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information.
    Info,
    /// Readable, but not as it should be.
    Warning,
    /// Damage: values are lost or wrong.
    Error,
}

/// A recommended remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    /// A stable name of the remedy, as accepted by `tet repair`.
    pub code: Cow<'static, str>,
    /// The problem, and the effect of the fix.
    pub message: String,
    /// The command to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Report {
    /// Returns true if no check found an error. Warnings do not count.
    #[must_use]
    pub fn ok(&self) -> bool {
        !self.findings.iter().any(|finding| !finding.ok && finding.severity == Severity::Error)
    }

    /// Adds a check that passed.
    pub fn passed(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Severity::Info, true, detail);
    }

    /// Adds information that is neither good nor bad.
    pub fn note(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Severity::Info, false, detail);
    }

    /// Adds a warning: something is not as it should be, but nothing is lost.
    pub fn warning(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Severity::Warning, false, detail);
    }

    /// Adds damage.
    pub fn error(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Severity::Error, false, detail);
    }

    /// Adds an error as a finding, with the byte that it names.
    pub fn failure(&mut self, check: &'static str, error: &crate::Error) {
        let offset = if let crate::Error::Corrupt(corrupt) = error { corrupt.offset } else { None };
        // An unsupported feature is not damage.
        let severity = if error.is_unsupported() { Severity::Warning } else { Severity::Error };
        let detail = Some(error.to_string());
        self.findings.push(Finding { check: check.into(), severity, ok: false, detail, node: None, offset });
    }

    /// Sets the node that the last finding concerns.
    pub fn at_node(&mut self, node: &str) {
        if let Some(last) = self.findings.last_mut() {
            last.node = Some(node.to_owned());
        }
    }

    /// Adds a remedy.
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
