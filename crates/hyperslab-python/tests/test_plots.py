"""Plots through matplotlib: the drawn values, their coordinates, axis labels and titles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import hyperslab
from fields import field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hyperslab._native import Array


@pytest.fixture(autouse=True)
def without_windows() -> Iterator[None]:
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("agg")
    yield
    pyplot.close("all")


def test_plots_have_axes_labels_and_gaps(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    import xarray as xr

    values = np.arange(60, dtype="float32").reshape(2, 5, 6)
    values[0, 2, 3] = np.nan
    data = xr.Dataset(
        {"t": (("time", "lat", "lon"), values, {"units": "K", "long_name": "temperature"})},
        coords={"lat": ("lat", np.linspace(-40, 40, 5), {"units": "degrees_north"}), "lon": np.arange(6.0) * 10, "time": [0, 1]},
    )
    data.to_netcdf(path, encoding={"t": {"_FillValue": -999.0}})
    t = hyperslab.open(path)["t"]
    ax = t.plot(0)
    image = ax.images[0]
    drawn = np.asarray(np.ma.filled(image.get_array(), np.nan))
    assert np.array_equal(drawn, values[0], equal_nan=True)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lon", "lat [degrees_north]")
    assert image.get_extent() == [-5.0, 55.0, -50.0, 50.0] or tuple(image.get_extent()) == (-5.0, 55.0, -50.0, 50.0)
    assert any(other.get_ylabel() == "temperature [K]" for other in ax.figure.axes)
    line = t.plot(1, 2).lines[0]
    assert np.array_equal(line.get_ydata(), values[1, 2]) and np.array_equal(line.get_xdata(), np.arange(6.0) * 10)
    assert t.plot("lat=0", "time=1").lines
    # The title names the slice as in `tet plot`, even if it was chosen by default.
    assert t.plot().get_title() == "time = 0"
    assert t.plot(1, 2).get_title() == "time = 1, lat = 0"
    assert t.plot("lat=0", "time=1").get_title() == "time = 1, lat = 0"
    with pytest.raises(hyperslab.InvalidError, match="cannot be drawn"):
        t.plot(0, 0, 0)


def test_plots_show_dates_and_magnitudes(tmp_path: Path) -> None:
    import xarray as xr

    times = np.array(["2020-01-08", "2020-01-09T06:00"], "M8[ns]")
    data = xr.Dataset({"t": (("time", "y", "x"), np.zeros((2, 3, 4)))}, coords={"time": times})
    data.to_netcdf(tmp_path / "x.nc")
    t = hyperslab.open(tmp_path / "x.nc")["t"]
    assert [t.plot().get_title(), t.plot(1).get_title()] == ["time = 2020-01-08", "time = 2020-01-09T06:00"]
    np.save(tmp_path / "c.npy", np.array([3 + 4j, 1j]))
    line = hyperslab.open(tmp_path / "c.npy")["/"].plot()
    assert line.get_ylabel().startswith("magnitude of ")
    assert list(line.lines[0].get_ydata()) == [5.0, 1.0]


def test_plot_without_matplotlib_says_what_to_install(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", field())
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import hyperslab\n"
        f"array = hyperslab.open({str(tmp_path / 'x.npy')!r})['/']\n"
        "try: array.plot()\nexcept ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install matplotlib" in done.stdout


def climate(tmp_path: Path) -> Array:
    """Values that are the position in time, over time, latitude and longitude."""
    import xarray as xr

    values = np.broadcast_to(np.arange(100, dtype="f4")[:, None, None], (100, 40, 60))
    coords = {"lat": np.arange(-78.0, 80, 4), "lon": np.arange(0.0, 360, 6), "time": np.arange("2020-01-01", "2020-04-10", dtype="M8[D]").astype("M8[ns]")}
    data = xr.Dataset({"v": (("time", "lat", "lon"), values)}, coords=coords)
    data.to_netcdf(tmp_path / "x.nc", encoding={"time": {"units": "days since 2020-01-01", "dtype": "f8"}})
    return hyperslab.open(tmp_path / "x.nc")["v"]


@pytest.mark.parametrize(
    ("selection", "first", "last"),
    [
        ((slice(50, 60), 0, 0), 50, 59),
        ((slice(20, 50), 0, 0), 20, 49),
        ((slice(10, 50, 7), 0, 0), 10, 45),
        ((slice(None, None, -1), 0, 0), 99, 0),
        (("time=2020-02-10..2020-02-19", "lat[0]", "lon[0]"), 40, 49),
        (("time[5:9]", "lat~0", "lon=6"), 5, 8),
        (("[30:35, 0, 0]",), 30, 34),
        (([3, 8, 9], 0, 0), 3, 9),
    ],
)
def test_a_part_of_a_line_is_drawn_at_its_own_coordinates(tmp_path: Path, selection: tuple[object, ...], first: int, last: int) -> None:
    line = climate(tmp_path).plot(*selection).lines[0]
    assert (line.get_xdata()[0], line.get_xdata()[-1]) == (first, last)
    # The values are the positions in time, and so are the labels.
    assert np.array_equal(line.get_xdata(), line.get_ydata())


def test_a_part_of_an_image_is_drawn_at_its_own_coordinates(tmp_path: Path) -> None:
    v = climate(tmp_path)
    extent = v.plot(0, slice(10, 20), slice(30, 60)).images[0].get_extent()
    assert list(extent) == [177, 357, -40, 0]
    ax = v.plot("time[0]", "lat=0..40")
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("lon", "lat", "time = 2020-01-01")
    assert list(ax.images[0].get_extent()) == [-3, 357, 0, 40]
    ax = v.plot("lon~33", "time[0:5]")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lat", "time [days since 2020-01-01]")
    assert list(ax.images[0].get_extent()) == [-80, 80, -0.5, 4.5]
    ax = v.plot(0, slice(None, None, -1))
    assert list(ax.images[0].get_extent()) == [-3, 357, -80, 80]


def test_cells_of_irregular_coordinates_lie_at_their_labels(tmp_path: Path) -> None:
    import xarray as xr

    xr.Dataset({"v": (("y", "x"), np.arange(12.0).reshape(2, 6))}, coords={"x": [0, 1, 2, 10, 20, 100]}).to_netcdf(tmp_path / "x.nc")
    ax = hyperslab.open(tmp_path / "x.nc")["v"].plot()
    mesh = ax.collections[0]
    assert mesh.get_coordinates()[0, :, 0].tolist() == [-0.5, 0.5, 1.5, 6.0, 15.0, 60.0, 140.0]
    assert np.array_equal(mesh.get_array(), np.arange(12.0).reshape(2, 6))
    assert ax.yaxis_inverted()


@pytest.mark.parametrize("step", [1, -1])
def test_long_lines_keep_their_extremes(tmp_path: Path, step: int) -> None:
    values = np.sin(np.arange(5_000_001) / 1e5)
    values[1_234_567], values[4_999_998], values[10:20] = 50, -50, np.nan
    np.save(tmp_path / "x.npy", values)
    line = hyperslab.open(tmp_path / "x.npy")["/"].plot(slice(None, None, step)).lines[0]
    x, y = line.get_xdata(), line.get_ydata()
    assert len(x) < 20_000 and (y.max(), y.min()) == (50, -50)
    assert np.array_equal(y, values[x], equal_nan=True) and np.all(np.diff(x) * step > 0)


def test_dates_are_drawn_as_dates(tmp_path: Path) -> None:
    from matplotlib.dates import num2date

    days = np.array(["2020-01-01", "NaT", "2020-03-01", "2020-03-02"], dtype="M8[D]")
    np.save(tmp_path / "d.npy", days)
    ax = hyperslab.open(tmp_path / "d.npy")["/"].plot()
    drawn = ax.lines[0].get_ydata()
    assert np.isnan(drawn[1]) and num2date(drawn[2]).date().isoformat() == "2020-03-01"
    ax.figure.canvas.draw()
    assert any("2020" in label.get_text() for label in ax.get_yticklabels())
    np.save(tmp_path / "d2.npy", days.reshape(2, 2))
    ax = hyperslab.open(tmp_path / "d2.npy")["/"].plot()
    ax.figure.canvas.draw()
    assert any("2020" in label.get_text() for other in ax.figure.axes[1:] for label in other.get_yticklabels())
    # A long line keeps the extremes of each part, and the whole range.
    long = np.datetime64("2000-01-01", "s") + np.arange(500_000).astype("m8[s]")
    np.save(tmp_path / "long.npy", long)
    drawn = hyperslab.open(tmp_path / "long.npy")["/"].plot().lines[0].get_ydata()
    assert num2date(drawn[-1]).replace(tzinfo=None) == long[-1].item() and len(drawn) < len(long)
    np.save(tmp_path / "m.npy", np.array([1, "NaT", 3], dtype="m8[h]"))
    ax = hyperslab.open(tmp_path / "m.npy")["/"].plot()
    assert ax.get_ylabel().endswith("[h]") and np.array_equal(ax.lines[0].get_ydata(), [1, np.nan, 3], equal_nan=True)
