//! `tet verify`: checks for damage.

use std::io::{self, Write};
use std::path::Path;

use hyperslab::verify::{Record, Verified, verify_path};
use hyperslab::{Depth, Error, Result, Severity};

use crate::args::VerifyArgs;
use crate::{Answer, output, paint};

pub(crate) fn run(args: &VerifyArgs) -> Result<Answer> {
    let depth = if args.deep { Depth::Deep } else { Depth::Quick };
    // Everything is read once, so mapping would take longer than reading.
    let options = super::open_options(&args.open)?.with_mapped(false);
    let mut verified = verify_path(&args.open.path, &options, depth)?;
    if let Some(file) = &args.against {
        verified.compare(&options, &Record::read_at(file, &options)?)?;
    }
    if let Some(file) = &args.record {
        if !verified.report.ok() {
            return Err(Error::invalid(format!("{} is damaged, so nothing was recorded", verified.path)));
        }
        if is_inside(file, &args.open.path) {
            return Err(Error::invalid(format!("{} is inside the store", hyperslab::location_name(file))));
        }
        let record = Record::of(&hyperslab::open_with(&args.open.path, &options)?)?;
        super::write_at(file, true, &args.open, |file, _| record.write(file))?;
    }
    if args.json {
        output::print_json(&verified.to_json())?;
    } else {
        output::print(|out| show(&verified, args.quiet, out))?;
    }
    Ok(if verified.report.ok() { Answer::Yes } else { Answer::No })
}

/// Returns true if a file is inside a store, or is the store.
fn is_inside(file: &Path, store: &Path) -> bool {
    if hyperslab::is_remote(file) || hyperslab::is_remote(store) {
        return file.starts_with(store);
    }
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(store.canonicalize().ok()).is_some_and(|(folder, store)| folder.starts_with(store))
}

pub(crate) fn show(verified: &Verified, quiet: bool, out: &mut dyn Write) -> io::Result<()> {
    if !quiet {
        for finding in &verified.report.findings {
            let mark = match (finding.ok, finding.severity) {
                (true, _) => paint::good("✓").to_string(),
                (false, Severity::Info) => paint::dim("·").to_string(),
                (false, Severity::Error) => paint::bad("✗").to_string(),
                (false, _) => paint::doubtful("!").to_string(),
            };
            let detail = finding.detail.as_deref().unwrap_or_default();
            let node = finding.node.as_ref().map(|node| format!("{node} ")).unwrap_or_default();
            writeln!(out, "  {mark} {:<22} {node}{}", finding.check, paint::dim(detail))?;
        }
    }
    let verdict = if verified.report.ok() { paint::good("whole") } else { paint::bad("damaged") };
    writeln!(out, "{}  {verdict}  {}", paint::strong(&verified.path), paint::dim(verified.summary()))?;
    if !quiet {
        for recommendation in &verified.report.recommendations {
            writeln!(out, "  {} {}", paint::dim("→"), recommendation.message)?;
            if let Some(fix) = &recommendation.fix {
                writeln!(out, "    {}", paint::command(fix))?;
            }
        }
    }
    Ok(())
}
