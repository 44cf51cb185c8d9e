import warnings

import numpy as np
import pytest
from traces import blob_trace, blobs, own_trace

import ewens_widgets as ew
from ewens_widgets.analysis.export import draws_csv, labels_csv, to_arviz
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.trace import Trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return blob_trace(n_draws=50, concentration=Gamma(2.0, 1.0))


def test_labels_as_a_table() -> None:
    assert labels_csv([2, 2, -1]) == "object,cluster\n0,2\n1,2\n2,-1\n"
    text = labels_csv(["a", "b"], names=["x, y", 'the "best"'], columns={"p": np.array([0.5, 1.0])})
    assert text == 'object,cluster,p\n"x, y",a,0.5\n"the ""best""",b,1.0\n'
    with pytest.raises(ValueError, match="column 'object' has 1 entries for 2 objects"):
        labels_csv([0, 1], names=["only"])


def test_draws_as_a_table(trace: Trace) -> None:
    lines = draws_csv(trace).splitlines()
    assert len(lines) == 51
    assert lines[0].startswith("iteration,theta,concentration,log_posterior,n_clusters,object_0,object_1")
    assert [float(entry) for entry in lines[1].split(",")][5:] == trace.labels[0].tolist()
    names = [f"row {item}" for item in range(trace.n_objects)]
    assert draws_csv(trace, names).splitlines()[0].endswith(",".join(names))
    with pytest.raises(ValueError, match=f"1 names for {trace.n_objects} objects"):
        draws_csv(trace, ["only"])


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_own_shapes_are_exported(model: str) -> None:
    rng = np.random.default_rng(0)
    own = own_trace(Posterior.from_data(blobs(rng)[0], model, shapes="own"), rng, 20)
    header, first, *_ = draws_csv(own).splitlines()
    assert header.startswith("iteration,theta,concentration,log_posterior,n_clusters,nu,object_0")
    assert float(first.split(",")[5]) == own.nu[0]
    exported = to_arviz([own])
    np.testing.assert_array_equal(exported.posterior["nu"].values[0], own.nu)
    np.testing.assert_array_equal(exported.sample_stats["sigma"].values[0], own.sigma)
    assert exported.sample_stats["sigma"].dims[-1] == "scale"


def test_arviz_groups_and_coordinates(trace: Trace) -> None:
    exported = trace.to_arviz()
    assert exported.posterior["theta"].dims == ("chain", "draw")
    assert set(exported.posterior.data_vars) == {"n_clusters", "theta", "concentration"}
    np.testing.assert_array_equal(exported.posterior["n_clusters"].values[0], trace.n_clusters)
    np.testing.assert_array_equal(exported.posterior["draw"].values, trace.iterations)
    assert exported.sample_stats["labels"].dims == ("chain", "draw", "object")
    np.testing.assert_array_equal(exported.sample_stats["labels"].values[0], trace.labels)
    np.testing.assert_array_equal(exported.sample_stats["log_posterior"].values[0], trace.log_posterior)
    acceptance = exported.sample_stats["acceptance"].sel(move="gibbs").values[0]
    np.testing.assert_allclose(acceptance, trace.move_counts["gibbs"][1] / trace.move_counts["gibbs"][0])
    assert exported.observed_data["coordinates"].dims == ("object", "feature")
    np.testing.assert_array_equal(exported.observed_data["coordinates"].values, trace.posterior.coordinates)


def test_chains_and_diagnostics(trace: Trace) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

    exported = to_arviz([trace[:25], trace[25:]])
    assert exported.posterior.sizes["chain"] == 2
    assert float(arviz.rhat(exported)["theta"]) == pytest.approx(1.0, abs=0.2)
    with warnings.catch_warnings():
        # Of ArviZ itself, with today's pandas and matplotlib.
        warnings.simplefilter("ignore")
        assert set(arviz.summary(exported).index) == {"n_clusters", "theta", "concentration"}
        arviz.plot_trace(exported)
    import matplotlib.pyplot as plt

    plt.close("all")


def test_refusals(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="chains of one length"):
        to_arviz([trace, trace[1:]])
    with pytest.raises(ValueError, match="chains of one length"):
        to_arviz([])
    with pytest.raises(ValueError, match="same data"):
        to_arviz([trace, blob_trace(n_draws=50, seed=1)])
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        trace.to_arviz()


def test_names_are_coordinates_of_arviz() -> None:
    trace = blob_trace(n_draws=10)
    shape = trace.posterior.coordinates.shape
    rows, columns = [f"row {k}" for k in range(shape[0])], [f"column {k}" for k in range(shape[1])]
    data = Dataset(np.array(trace.posterior.coordinates), feature_names=columns, row_names=rows)
    exported = trace.to_arviz(data)
    assert "concentration" not in exported.posterior.data_vars  # It is fixed.
    assert exported.sample_stats["object"].values.tolist() == rows
    assert exported.observed_data["feature"].values.tolist() == (
        columns if trace.posterior.model != "III" else list(range(shape[1]))
    )
    assert to_arviz([trace]).sample_stats["object"].values.tolist() == list(range(shape[0]))
    with pytest.raises(ValueError, match=rf"run on {shape[0]} rows .* got data with 2 and 2"):
        trace.to_arviz(np.eye(2))
    twice = Dataset(data.X, feature_names=columns, row_names=["same"] * shape[0])
    assert trace.to_arviz(twice).sample_stats["object"].values.tolist() == list(range(shape[0]))


def test_names_that_a_spreadsheet_would_run_are_guarded_in_files_and_read_back() -> None:
    names = ["=cmd|' /C calc'!A0", "+1", "@SUM(A1)", "plain"]
    text = labels_csv([0, 0, 1, 1], names=names, columns={"=x": np.array([1.5, -2.5, 3.5, 4.5])})
    assert text.splitlines()[0] == "object,cluster,'=x"
    assert "'=cmd" in text
    assert ",-2.5" in text
    data = ew.read_table(text.encode(), "labels.csv", names="object")
    assert list(data.row_names) == names
    assert "=x" in data.feature_names
