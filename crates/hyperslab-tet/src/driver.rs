//! `.tet` as a format of the engine.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    Capabilities, Content, CreateOptions, DType, Depth, Fix, FormatDriver, FormatInfo, Glimpse, OpenContext,
    Recognition, Repairs, Result, Sink, Store, StoreForm, Variant,
};

use crate::{HistoryRow, TetAppend, TetOptions, TetSink};

/// Single files, and packages of them.
#[derive(Debug)]
pub struct TetDriver;

static INFO: FormatInfo = FormatInfo {
    extensions: &["tet"],
    forms: &[StoreForm::File, StoreForm::Directory],
    capabilities: Capabilities {
        create: true,
        append: true,
        grow: true,
        several_arrays: true,
        attributes: true,
        json_attributes: true,
        history: true,
        label_texts: true,
        no_scalars: true,
        ..Capabilities::NONE
    },
    filters: &["zstd"],
    probe_keys: &["PROTOCOL", "CURRENT"],
    ..FormatInfo::new("tet")
};

impl FormatDriver for TetDriver {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        Ok(match (glimpse.blob(), glimpse.directory()) {
            (Some(blob), _) => crate::probe(blob)?.into(),
            (_, Some(directory)) => crate::probe_package(directory)?.into(),
            _ => Recognition::No,
        })
    }

    fn open(&self, content: Content, context: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        match content {
            Content::File(blob) => Ok(Arc::new(match context.path {
                Some(path) => crate::package::open_file(blob, path, context.mapped)?,
                None => crate::open(blob)?,
            })),
            Content::Directory(directory) => Ok(Arc::new(crate::open_package(&*directory)?)),
        }
    }

    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        let mut own = tet_options(options);
        if options.rewrite {
            own.history = crate::open_path(target)?.history().to_vec();
            own.history.push(HistoryRow::now("edit", &own.tool));
        }
        Ok(Box::new(TetSink::create(target, own)?))
    }

    fn append(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        if target.is_dir() {
            return Err(self.unsupported(target, "adding to packages of"));
        }
        Ok(Box::new(TetAppend::open(target, tet_options(options))?))
    }

    fn holds(&self, dtype: &DType, _: Option<Variant>) -> bool {
        crate::dataset::code_of_dtype(dtype).is_some()
    }

    fn repair(&self, path: &Path, _: &OpenContext<'_>, dry_run: bool) -> Result<Repairs> {
        let plan = crate::plan_repair(path, Depth::Quick)?;
        if !dry_run {
            plan.apply()?;
        }
        let fix = |fix: crate::Fix| Fix { code: fix.code.to_owned(), message: fix.message };
        Ok(Repairs { fixes: plan.fixes.into_iter().map(fix).collect(), remaining: Some(plan.left) })
    }
}

fn tet_options(options: &CreateOptions) -> TetOptions {
    let converted = |source: &String| HistoryRow::now("convert", source);
    TetOptions {
        overwrite: options.replace,
        sync: options.sync,
        tool: concat!("hyperslab ", env!("CARGO_PKG_VERSION")).to_owned(),
        history: options.source.iter().map(converted).collect(),
        ..TetOptions::default()
    }
}
