import pickle
from pathlib import Path

import numpy as np
import pytest
from sampling.exact import PRIORS
from traces import blob_trace, own_trace

import ewens_widgets as ew
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.archive import ArchiveError, write_archive
from ewens_widgets.sampling.trace import Trace

COLUMNS = ("labels", "theta_index", "theta_weights", "log_posterior", "concentration", "iterations")


@pytest.fixture(scope="module")
def trace() -> Trace:
    return blob_trace()


def columns_of(trace: Trace) -> dict[str, np.ndarray]:
    return {name: getattr(trace, name) for name in COLUMNS}


def test_storage_is_compact_and_read_only(trace: Trace) -> None:
    assert trace.labels.dtype == np.uint8
    assert trace.theta_index.dtype == np.uint8
    assert trace.theta_weights.dtype == np.float32
    for array in columns_of(trace).values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_larger_problems_take_larger_integers() -> None:
    assert blob_trace(n_objects=257, n_draws=2).labels.dtype == np.uint16


def test_the_given_arrays_stay_writable(trace: Trace) -> None:
    labels = trace.labels.copy()
    Trace(**(columns_of(trace) | {"labels": labels}), move_counts={}, posterior=trace.posterior)
    assert labels.flags.writeable


def test_derived_columns(trace: Trace) -> None:
    np.testing.assert_array_equal(trace.theta, trace.posterior.theta_grid[trace.theta_index])
    np.testing.assert_array_equal(trace.n_clusters, [len(set(row)) for row in trace.labels.tolist()])
    made, taken = trace.move_counts["gibbs"]
    assert trace.acceptance["gibbs"] == np.sum(taken) / np.sum(made)
    assert trace.theta is trace.theta


def test_theta_summaries(trace: Trace) -> None:
    np.testing.assert_allclose(trace.theta_posterior(), trace.theta_weights.mean(axis=0), rtol=1e-5)
    assert trace.theta_posterior().sum() == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(trace.theta_histogram(), [np.mean(trace.theta_index == k) for k in range(14)])


def test_best_is_the_first_of_the_highest(trace: Trace) -> None:
    lp = np.zeros(len(trace))
    lp[[7, 20]] = 3.0
    flat = Trace(**(columns_of(trace) | {"log_posterior": lp}), move_counts={}, posterior=trace.posterior)
    assert flat.best_index == 7
    np.testing.assert_array_equal(flat.best, trace.labels[7])
    assert flat.best.dtype == np.intp


def test_slices_are_traces(trace: Trace) -> None:
    part = trace[10:31:4]
    assert isinstance(part, Trace)
    assert len(part) == 6
    np.testing.assert_array_equal(part.labels, trace.labels[10:31:4])
    np.testing.assert_array_equal(part.iterations, trace.iterations[10:31:4])
    assert len(trace[-5:]) == 5
    assert len(trace[40:]) == 0
    assert part.labels.base is not None


def test_counts_of_slices(trace: Trace) -> None:
    made = np.asarray(trace.move_counts["gibbs"][0])
    np.testing.assert_array_equal(trace[10:].move_counts["gibbs"][0], made[10:])
    # A draw carries the proposals since the draw kept before it.
    part = trace[10:31:4].move_counts["gibbs"][0]
    assert part[0] == made[10]
    assert part[1] == made[11:15].sum()
    assert np.sum(trace.thin(5).move_counts["gibbs"][0]) == made[:40].sum()
    assert np.sum(trace[40:].move_counts["gibbs"][0]) == 0


def test_totals_are_accepted_as_counts(trace: Trace) -> None:
    totals = Trace(**columns_of(trace), move_counts={"gibbs": (100, 25)}, posterior=trace.posterior)
    assert totals.acceptance == {"gibbs": 0.25}
    assert totals[10:].acceptance == {"gibbs": 0.25}
    idle = Trace(**columns_of(trace), move_counts={"gibbs": (0, 0)}, posterior=trace.posterior)
    assert np.isnan(idle.acceptance["gibbs"])
    assert Trace.concatenate([totals, trace]).acceptance["gibbs"] == pytest.approx(
        (25 + np.sum(trace.move_counts["gibbs"][1])) / (100 + np.sum(trace.move_counts["gibbs"][0]))
    )


def test_thin_keeps_the_last_of_each_window(trace: Trace) -> None:
    np.testing.assert_array_equal(trace.thin(7).iterations, [7, 14, 21, 28, 35])
    assert len(trace.thin(1)) == len(trace)


def test_concatenate(trace: Trace) -> None:
    pooled = Trace.concatenate([trace[:10], trace[10:]])
    for name, array in columns_of(trace).items():
        np.testing.assert_array_equal(getattr(pooled, name), array)
    assert pooled.acceptance == trace.acceptance
    with pytest.raises(ValueError, match="same data, model and prior"):
        Trace.concatenate([trace, blob_trace(seed=1)])
    with pytest.raises(ValueError, match="same data, model and prior"):
        Trace.concatenate([trace, blob_trace(concentration=2.0)])
    with pytest.raises(ValueError, match="no traces"):
        Trace.concatenate([])


@pytest.mark.parametrize("model", ["I", "II", "III"])
@pytest.mark.parametrize("concentration", [1.5, Gamma(2.0, 0.5)])
def test_save_and_load(tmp_path: Path, model: str, concentration: float | Gamma) -> None:
    trace = blob_trace(model=model, concentration=concentration)
    trace.save(tmp_path / "trace.npz")
    loaded = Trace.load(tmp_path / "trace.npz")
    for name, array in columns_of(trace).items():
        np.testing.assert_array_equal(getattr(loaded, name), array)
        assert not getattr(loaded, name).flags.writeable
    assert loaded.acceptance == trace.acceptance
    posterior = loaded.posterior
    np.testing.assert_array_equal(posterior.coordinates, trace.posterior.coordinates)
    np.testing.assert_array_equal(posterior.theta_grid, trace.posterior.theta_grid)
    assert (posterior.model, posterior.concentration) == (model, concentration)
    assert posterior.log_marginal(trace.best) == trace.posterior.log_marginal(trace.best)
    np.testing.assert_array_equal(loaded.evidence_tree().linkage, trace.evidence_tree().linkage)


@pytest.mark.parametrize("model", ["I", "II", "III"])
@pytest.mark.parametrize("prior", PRIORS)
def test_traces_of_own_shapes_are_saved_and_loaded(tmp_path: Path, model: str, prior: str) -> None:
    X = np.random.default_rng(3).normal(size=(12, 2))
    sampler = ew.Sampler(X, model=model, shapes="own", prior=PRIORS[prior], nu_grid=[2.0, 5.0])
    trace = sampler.sample(20, progress=False)
    trace.save(tmp_path / "trace.npz")
    loaded = Trace.load(tmp_path / "trace.npz")
    columns = trace.columns()
    assert {"nu_index", "sigma"} <= set(columns)
    for name, array in columns.items():
        np.testing.assert_array_equal(getattr(loaded, name), array)
    assert loaded.posterior.prior == PRIORS[prior]
    np.testing.assert_array_equal(loaded.posterior.nu_grid, [2.0, 5.0])
    parameters = int(trace.nu_index[3]), trace.sigma[3]
    assert loaded.posterior.log_marginal(trace.labels[3], *parameters) == trace.posterior.log_marginal(
        trace.labels[3], *parameters
    )
    pooled = Trace.concatenate([trace, loaded])
    np.testing.assert_array_equal(pooled.sigma[20:], trace.sigma)


def test_loaded_traces_pool_with_their_originals(tmp_path: Path, trace: Trace) -> None:
    trace.save(tmp_path / "trace.npz")
    assert len(Trace.concatenate([trace, Trace.load(tmp_path / "trace.npz")])) == 2 * len(trace)


def test_damaged_and_foreign_files_are_refused(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "trace.npz"
    trace.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ArchiveError, match="damaged"):
        Trace.load(path)
    np.savez(path, labels=trace.labels)
    with pytest.raises(ArchiveError, match="was not saved by ewens_widgets"):
        Trace.load(path)


def test_an_incomplete_file_is_refused(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "trace.npz"
    write_archive(path, "trace", {"moves": []}, {"labels": trace.labels})
    with pytest.raises(ArchiveError, match="is not a complete trace"):
        Trace.load(path)


def test_csv_of_the_draws(tmp_path: Path, trace: Trace) -> None:
    trace.to_csv(tmp_path / "draws.csv")
    table = np.genfromtxt(tmp_path / "draws.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(table["iteration"], trace.iterations)
    np.testing.assert_array_equal(table["theta"], trace.theta)
    np.testing.assert_array_equal(table["log_posterior"], trace.log_posterior)
    np.testing.assert_array_equal(table["n_clusters"], trace.n_clusters)
    np.testing.assert_array_equal(table["object_29"], trace.labels[:, 29])


def test_pickled_copies_are_read_only(trace: Trace) -> None:
    trace.similarity()
    copy = pickle.loads(pickle.dumps(trace))  # noqa: S301 - made one line above
    np.testing.assert_array_equal(copy.labels, trace.labels)
    assert not copy.labels.flags.writeable
    assert not copy._summaries


def test_summaries_are_computed_once(trace: Trace) -> None:
    assert trace.similarity() is trace.similarity()
    assert trace.similarity(dtype=np.float32) is not trace.similarity()
    assert not trace.similarity().flags.writeable
    assert trace.similarity_tree() is trace.similarity_tree("single")
    assert trace.evidence_tree() is trace.evidence_tree()
    assert trace.point_estimate("binder") is trace.point_estimate("binder")


def test_facade(trace: Trace) -> None:
    np.testing.assert_array_equal(trace.distance(), 1 - trace.similarity())
    np.testing.assert_array_equal(trace.similarity(rows=[3, 5]), trace.similarity()[np.ix_([3, 5], [3, 5])])
    np.testing.assert_array_equal(trace.linkage("average"), trace.similarity_tree("average").linkage)
    np.testing.assert_array_equal(trace.cut(3, method="single"), trace.similarity_tree().cut(n_clusters=3))


def test_representations(trace: Trace) -> None:
    for text in (repr(trace), trace._repr_html_()):
        assert "30 objects × 3 features" in text
        assert "40" in text
        assert "acceptance of gibbs" in text
    assert "draws: 0" in repr(trace[40:])


def test_own_shapes_and_other_priors_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    prior = ew.priors.FiniteMixture()
    posterior = Posterior.from_data(rng.normal(size=(20, 2)), "III", shapes="own", prior=prior)
    own = own_trace(posterior, rng, 30)
    text = repr(own)
    assert "shapes: own" in text
    assert f"prior: {prior}" in text
    assert "concentration" not in text
    assert "nu: " in text
    average = own.nu_weights.astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(own.nu_posterior(), average / average.sum())
    own.save(tmp_path / "own.npz")
    loaded = Trace.load(tmp_path / "own.npz")
    np.testing.assert_array_equal(loaded.evidence_tree().linkage, own.evidence_tree().linkage)
    assert repr(loaded) == text


def test_there_is_no_likeness_of_common_shapes(trace: Trace) -> None:
    assert "shapes" not in repr(trace)
    with pytest.raises(ValueError, match='shapes="own"'):
        trace.nu_posterior()


def test_an_empty_trace_says_so(trace: Trace) -> None:
    empty = trace[40:]
    asked = (
        empty.similarity,
        empty.theta_posterior,
        empty.theta_histogram,
        empty.evidence_tree,
        empty.point_estimate,
        empty.cut,
    )
    for ask in asked:
        with pytest.raises(ValueError, match="holds no draws"):
            ask()
    with pytest.raises(ValueError, match="holds no draws"):
        _ = empty.best


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"labels": np.ones((40, 30), dtype=int)}, ValueError, "canonical"),
        ({"labels": np.full((40, 30), 0.5)}, TypeError, "integers"),
        ({"labels": np.full((40, 30), -1)}, ValueError, "between 0 and"),
        ({"labels": np.zeros((40, 29), dtype=int)}, ValueError, "shape"),
        ({"theta_index": np.full(40, 14)}, ValueError, "below 14"),
        ({"theta_weights": np.ones((40, 13))}, ValueError, "shape"),
        ({"log_posterior": np.zeros(39)}, ValueError, "shape"),
    ],
)
def test_refusals(trace: Trace, changed: dict[str, np.ndarray], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Trace(**(columns_of(trace) | changed), move_counts={}, posterior=trace.posterior)


def test_refused_counts_and_indices(trace: Trace) -> None:
    with pytest.raises(ValueError, match="one a draw"):
        Trace(**columns_of(trace), move_counts={"gibbs": ([1, 2], [1, 2])}, posterior=trace.posterior)
    with pytest.raises(TypeError, match=r"trace\.labels\[k\]"):
        trace[3]  # type: ignore[index]
    with pytest.raises(ValueError, match="step"):
        trace[::-1]
    with pytest.raises(ValueError, match="at least 1"):
        trace.thin(0)
