//! Parts of NetCDF and Zarr data sets: xarray reads the same as it would have selected itself.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{Selection, format_named};

/// The output of a script.
fn python(arguments: &[&str]) -> String {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with xarray");
    let output = Command::new(python).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn script(command: &str, folder: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/subset.py");
    python(&[script.to_str().unwrap(), command, folder.to_str().unwrap()])
}

#[test]
fn subsets_match_xarray_selections() {
    let folder = tempfile::tempdir().unwrap();
    let made: serde_json::Value = serde_json::from_str(&script("make", folder.path())).unwrap();
    std::fs::create_dir(folder.path().join("x")).unwrap();
    for source in made["sources"].as_array().unwrap() {
        let name = source.as_str().unwrap();
        let source = hyperslab::open(folder.path().join(name)).unwrap();
        for (case, what) in made["cases"].as_object().unwrap() {
            let mut selection = Selection::all();
            for text in what["select"].as_array().unwrap() {
                selection = selection.and(text.as_str().unwrap().parse().unwrap());
            }
            for (kind, to) in [("nc", "netcdf4"), ("nc3", "netcdf3"), ("zarr2", "zarr2"), ("zarr3", "zarr3")]
            {
                let target = folder.path().join(format!("x/{name}~{case}.{kind}"));
                let (format, variant) = format_named(to).unwrap();
                let options = ConvertOptions::default()
                    .with_node(what["node"].as_str().map(str::to_owned))
                    .with_selection(selection.clone())
                    .with_variant(variant);
                let report = convert(&source, &target, format, &options, &Progress::default());
                let report = report.unwrap_or_else(|why| panic!("{name}, {case} to {to}: {why}"));
                assert_eq!(report.dropped().count(), 0, "{name}, {case} to {to}: {:?}", report.losses);
            }
        }
    }
    let differences = script("compare", folder.path());
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn selections_that_no_array_has_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    script("make", folder.path());
    let source = hyperslab::open(folder.path().join("climate.nc")).unwrap();
    let target = folder.path().join("t.nc");
    let (format, variant) = format_named("netcdf4").unwrap();
    let refusal = |selection: &str, unlimited: &[&str], chunk_shape: Option<Vec<u64>>| {
        let options = ConvertOptions::default()
            .with_selection(
                selection.split(' ').fold(Selection::all(), |all, text| all.and(text.parse().unwrap())),
            )
            .with_unlimited(unlimited.iter().map(|name| (*name).to_owned()).collect())
            .with_chunk_shape(chunk_shape)
            .with_variant(variant);
        let why = convert(&source, &target, format, &options, &Progress::default()).unwrap_err().to_string();
        assert!(!target.exists());
        why
    };
    assert!(refusal("depth[0]", &[], None).contains("no dimension depth; there are bnds, lat, lon, time"));
    assert!(refusal("[0]", &[], None).contains("name the dimensions"));
    assert!(refusal("time[9]", &[], None).contains("index 9 is out of bounds"));
    assert!(refusal("time[0:1]", &["depth"], None).contains("no axis depth"));
    assert!(refusal("time[0:1]", &[], Some(vec![1; 7])).contains("have 7 axes"));
    assert!(refusal("time[0:1] time[1]", &[], None).contains("selected twice"));
}

#[test]
fn named_axes_of_several_arrays_become_unlimited() {
    let folder = tempfile::tempdir().unwrap();
    script("make", folder.path());
    let source = hyperslab::open(folder.path().join("climate.zarr3")).unwrap();
    for (name, to, unlimited) in [("t.nc", "netcdf4", "time,lat"), ("t.nc3", "netcdf3", "time")] {
        let target = folder.path().join(name);
        let (format, variant) = format_named(to).unwrap();
        let options = ConvertOptions::default()
            .with_unlimited(unlimited.split(',').map(str::to_owned).collect())
            .with_chunk_shape(Some(vec![2, 3, 2]).filter(|_| to == "netcdf4"))
            .with_variant(variant);
        convert(&source, &target, format, &options, &Progress::default()).unwrap();
        let code = "import netCDF4, sys\n\
            f = netCDF4.Dataset(sys.argv[1])\n\
            assert {n for n, d in f.dimensions.items() if d.isunlimited()} == set(sys.argv[2].split(',')), f\n\
            assert f['tas'].shape == (5, 3, 4) and f['lat'][:].tolist() == [10, 20, 30]\n\
            assert f.data_model != 'NETCDF4' or f['tas'].chunking() == [2, 3, 2]";
        python(&["-c", code, target.to_str().unwrap(), unlimited]);
    }
}
