"""The table of what is recorded, the class that holds it, and traces."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sampling.exact import PRIORS
from traces import altered, blob_trace, events_of, own_trace

import ewens_widgets as ew
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.draws import (
    SCHEMA,
    BlockSizer,
    Column,
    DrawTable,
    Event,
    StepReport,
    draw_bytes,
    saved_columns,
)
from ewens_widgets.sampling.trace import Trace

DATA = ew.datasets.unit_square(per_cluster=5, seed=1)


def largest_cluster(draws: DrawTable) -> NDArray[np.int64]:
    return np.array([np.bincount(row).max() for row in draws.labels], dtype=np.int64)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Column:
    """One more quantity, added in one place."""
    meaning = "Size of the largest cluster."
    column = Column("largest", meaning, kept=np.int64, make=largest_cluster, arviz="posterior")
    monkeypatch.setitem(SCHEMA, column.name, column)
    return column


def expected(labels: NDArray[np.integer]) -> list[int]:
    return [max(row.count(label) for label in row) for row in labels.tolist()]


def assert_same_event(first: Event, second: Event) -> None:
    for name, one, other in zip(Event._fields, first, second, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


def assert_same_draws(first: DrawTable, second: DrawTable) -> None:
    for entry in saved_columns():
        np.testing.assert_array_equal(first.column(entry.name), second.column(entry.name))
        assert first.column(entry.name).dtype == second.column(entry.name).dtype
    assert first.move_names == second.move_names


@pytest.mark.usefixtures("toy")
def test_a_quantity_added_in_one_place_is_told_kept_saved_and_exported(tmp_path: Path) -> None:
    events = list(ew.Sampler(DATA, seed=3).events(20))
    assert [event.largest for event in events] == expected(np.array([event.labels for event in events]))
    assert type(events[0].largest) is int
    assert ew.Sampler(DATA, seed=3).snapshot().largest == 1

    sampler = ew.Sampler(DATA, seed=3)
    draws = ew.DrawTable(sampler.posterior, sampler.move_names)
    draws.extend(sampler.advance(15))
    draws.extend(sampler.advance(5))
    np.testing.assert_array_equal(draws.largest, [event.largest for event in events])
    assert draws[7].largest == events[7].largest
    assert "largest" in dir(draws)

    trace = draws.trace()
    np.testing.assert_array_equal(trace.largest, expected(trace.labels))
    np.testing.assert_array_equal(trace[4:].thin(2).largest, expected(trace[4:].thin(2).labels))
    np.testing.assert_array_equal(ew.Trace.concatenate([trace, trace]).largest, [*trace.largest] * 2)
    np.testing.assert_array_equal(copy.deepcopy(trace).largest, trace.largest)

    trace.save(tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz") as file:
        np.testing.assert_array_equal(file["largest"], trace.largest)
    assert "largest" in ew.Trace.load(tmp_path / "trace.npz").held()
    trace.to_csv(tmp_path / "trace.csv")
    header, first = (tmp_path / "trace.csv").read_text().splitlines()[:2]
    assert first.split(",")[header.split(",").index("largest")] == str(trace.largest[0])

    pytest.importorskip("arviz")
    np.testing.assert_array_equal(trace.to_arviz().posterior["largest"].values[0], trace.largest)

    chains = ew.sample_chains(DATA, chains=2, draws=10, seed=1, progress=False)
    np.testing.assert_array_equal(chains[1].largest, expected(chains[1].labels))


def test_what_is_not_known_of_a_quantity(toy: Column, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = ew.Sampler(DATA, seed=3).sample(5, progress=False)
    columns = {**trace.columns(), "largest": trace.column(toy.name)}
    # Without its entry, nothing.
    monkeypatch.delitem(SCHEMA, toy.name)
    plain = ew.Sampler(DATA, seed=3).sample(5, progress=False)
    for thing in (next(ew.Sampler(DATA, seed=3).events(1)), plain, ew.DrawTable(plain.posterior)):
        with pytest.raises(AttributeError, match="largest"):
            _ = thing.largest
    with pytest.raises(ValueError, match="nothing is known of largest"):
        Trace(plain.posterior, trace.move_names, columns)
    # One that only the chain knows is required.
    monkeypatch.setitem(SCHEMA, "depth", Column("depth", "Known only to the chain."))
    with pytest.raises(KeyError, match="depth"):
        _ = plain.depth
    with pytest.raises(KeyError, match="depth"):
        Trace(plain.posterior, plain.move_names, plain.held())


def test_every_typed_attribute_is_in_the_table() -> None:
    others = {"moves", "proposed_labels", "accepted", "log_ratio", "more"}
    told = {"iterations" if name == "iteration" else name for name in Event._fields if name not in others}
    further = {"imputed_cells"}  # of `more`
    assert told | {"proposals", "acceptances"} | further == set(SCHEMA)
    assert set(SCHEMA) - further == set(DrawTable.__annotations__) - {"posterior", "reports"}
    assert all(column.meaning.endswith((".", ").")) for column in SCHEMA.values())


@pytest.fixture(scope="module")
def block() -> DrawTable:
    return ew.Sampler(DATA, moves="paper-2", seed=3).advance(12)


def test_a_block_is_a_sequence_of_events_that_are_views(block: DrawTable) -> None:
    events = list(block)
    assert len(block) == len(events) == 12
    for row, event in enumerate(events):
        assert_same_event(block[row], event)
    assert_same_event(block[-1], events[-1])
    assert [event.iteration for event in block[3:9:2]] == [4, 6, 8]
    assert len(block[12:]) == 0 == len(list(block[12:]))
    assert [event.iteration for event in reversed(block)] == list(range(12, 0, -1))
    for row in (12, -13):
        with pytest.raises(IndexError, match="12 are recorded"):
            block[row]
    assert np.shares_memory(events[4].labels, block.labels)
    for array in (block.labels, block.log_posterior, events[4].labels, events[4].theta_weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_block_computes_what_it_was_not_given(block: DrawTable) -> None:
    given = {name: np.array(block.column(name)) for name in ("iterations", "labels", "theta_index")}
    bare = DrawTable(block.posterior, block.move_names, given)
    np.testing.assert_array_equal(bare.theta, block.theta)
    np.testing.assert_array_equal(bare.n_clusters, block.n_clusters)
    assert bare.proposals.shape == (12, 1)
    assert not bare.acceptances.any()
    with pytest.raises(KeyError, match="log_posterior"):
        _ = bare.log_posterior


def test_a_report_belongs_to_its_event_in_slices_and_records_too(block: DrawTable) -> None:
    report = StepReport(np.zeros(20, dtype=np.intp), accepted=False, log_ratio=-2.0)
    told = DrawTable(block.posterior, block.move_names, {name: block.column(name) for name in SCHEMA}, report)
    assert [event.accepted for event in told] == [None] * 11 + [False]
    assert told[-1].log_ratio == told[8:][-1].log_ratio == -2.0
    assert told[:11][-1].accepted is None
    kept = DrawTable(block.posterior)
    kept.extend(told)
    kept.extend(told[-1:])
    for event in (kept[11], kept[12], kept[10:][1]):
        assert (event.accepted, event.log_ratio) == (False, -2.0)
        np.testing.assert_array_equal(event.proposed_labels, np.zeros(20))
        assert event.proposed_labels.dtype == np.intp
        assert not event.proposed_labels.flags.writeable
    assert kept[10].proposed_labels is None


def test_the_memory_of_a_draw_is_that_of_its_columns(block: DrawTable) -> None:
    written = [entry.name for entry in SCHEMA.values() if entry.written is not None]
    assert draw_bytes(block.posterior, 1, written=True) == sum(
        block.column(name)[0].nbytes for name in written
    )
    trace = ew.Sampler(DATA, moves="paper-2", seed=3).sample(1, progress=False)
    assert draw_bytes(block.posterior, 1) == sum(values.nbytes for values in trace.columns().values())


# Growing


@pytest.fixture(scope="module")
def trace() -> Trace:
    return blob_trace(n_draws=40)


@pytest.fixture(scope="module")
def events(trace: Trace) -> list[Event]:
    return events_of(trace)


def recorded(trace: Trace) -> DrawTable:
    draws = DrawTable(trace.posterior)
    for row in range(len(trace)):
        draws.extend(trace[row : row + 1])
    return draws


def test_rows_and_blocks_record_the_same(trace: Trace, events: list[Event]) -> None:
    one_by_one, in_blocks = recorded(trace), DrawTable(trace.posterior, trace.move_names)
    for start, stop in ((0, 3), (3, 3), (3, 25), (25, 40)):
        in_blocks.extend(trace[start:stop])
    for draws in (one_by_one, in_blocks):
        assert_same_draws(draws.trace(), trace)
        np.testing.assert_array_equal(draws.n_clusters, trace.n_clusters)
        for row in (0, 1, 31, 32, -1):
            assert_same_event(draws[row], events[row])
            assert not draws[row].labels.flags.writeable
            assert draws[row].labels.dtype == np.int32
            assert draws[row].theta_weights.dtype == np.float64


def test_what_was_given_out_stays_while_the_draws_grow(trace: Trace, events: list[Event]) -> None:
    draws = recorded(trace[:20])
    early, labels, part, similarity = draws.log_posterior, draws.labels, draws[5:15], draws.trace()
    assert not labels.flags.writeable
    assert draws.theta is draws.theta
    draws.extend(trace[20:])
    np.testing.assert_array_equal(early, trace.log_posterior[:20])
    np.testing.assert_array_equal(labels, trace.labels[:20])
    np.testing.assert_array_equal(similarity.theta, trace.theta[:20])
    np.testing.assert_array_equal(draws.theta, trace.theta)
    part.extend(trace[30:])  # a slice grows on its own
    np.testing.assert_array_equal(part.iterations, [*range(6, 16), *range(31, 41)])
    np.testing.assert_array_equal(draws.labels, trace.labels)
    before = draws.trace()
    draws.clear()
    assert len(draws) == len(draws.trace()) == 0
    draws.extend(trace[30:])
    assert_same_draws(before, trace)
    assert draws[0].iteration == 31


def test_a_long_record_is_not_copied_quadratically(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    draws, rooms = DrawTable(trace.posterior, trace.move_names), []
    room = DrawTable._room
    monkeypatch.setattr(
        DrawTable, "_room", lambda self, rows: (rooms.append(rows) if rows else None, room(self, rows))[1]
    )
    for _ in range(100):
        draws.extend(trace)
    assert rooms == [40 * 2**k for k in range(8)]
    assert np.shares_memory(draws.trace().labels, draws.labels)
    assert np.shares_memory(draws[100:].labels, draws.labels)


def test_a_growing_trace_forgets_its_summaries(trace: Trace) -> None:
    growing = trace[:20]
    before = growing.similarity()
    growing.extend(trace[20:])
    assert_same_draws(growing, trace)
    np.testing.assert_array_equal(growing.similarity(), trace.similarity())
    assert not np.array_equal(before, growing.similarity())


def test_burn_in_and_thinning(trace: Trace, events: list[Event]) -> None:
    kept = recorded(trace).trace(burn_in=10, thin=7)
    np.testing.assert_array_equal(kept.iterations, [17, 24, 31, 38])
    # Nothing proposed after the burn-in is lost but what follows the last draw.
    assert np.sum(kept.move_counts["gibbs"][0]) == trace.move_counts["gibbs"][0][10:38].sum()


def test_refused_blocks_change_nothing(trace: Trace, events: list[Event]) -> None:
    draws = recorded(trace[:3])
    with pytest.raises(ValueError, match="burn_in must not be negative"):
        draws.trace(burn_in=-1)
    with pytest.raises(ValueError, match="at least 1"):
        draws.trace(thin=0)
    block = {name: trace.column(name)[3:4] for name in SCHEMA}
    fewer = {name: block[name][:, :1] for name in ("proposals", "acceptances")}
    with pytest.raises(ValueError, match="a column for each move"):
        draws.extend(DrawTable(trace.posterior, ("gibbs",), {**block, **fewer}))
    with pytest.raises(ValueError, match="shape"):
        draws.extend(DrawTable(trace.posterior, trace.move_names, {**block, "labels": np.zeros((1, 5), int)}))
    assert len(draws) == 3
    draws.extend(trace[3:4])
    assert_same_event(draws[3], events[3])


# Traces


def test_storage_is_compact_and_read_only_and_the_rest_is_derived(trace: Trace) -> None:
    assert trace.labels.dtype == trace.theta_index.dtype == np.uint8
    assert trace.theta_weights.dtype == np.float32
    assert blob_trace(n_objects=257, n_draws=2).labels.dtype == np.uint16
    for array in trace.columns().values():
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    labels = trace.labels.copy()
    altered(trace, labels=labels)
    assert labels.flags.writeable
    np.testing.assert_array_equal(trace.theta, trace.posterior.theta_grid[trace.theta_index])
    np.testing.assert_array_equal(trace.n_clusters, [len(set(row)) for row in trace.labels.tolist()])
    many = blob_trace(n_objects=256, n_draws=1)
    assert altered(many, labels=np.arange(256)[None]).n_clusters[0] == 256
    made, taken = trace.move_counts["gibbs"]
    assert trace.acceptance["gibbs"] == np.sum(taken) / np.sum(made)
    assert trace.theta is trace.theta
    np.testing.assert_allclose(trace.theta_posterior(), trace.theta_weights.mean(axis=0), rtol=1e-5)
    assert trace.theta_posterior().sum() == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(trace.theta_histogram(), [np.mean(trace.theta_index == k) for k in range(14)])
    idle = altered(trace, proposals=np.zeros_like(trace.proposals))
    assert np.isnan(idle.acceptance["gibbs"])


def test_best_is_the_first_of_the_highest(trace: Trace) -> None:
    values = np.zeros(len(trace))
    values[[7, 20]] = 3.0
    flat = altered(trace, log_posterior=values)
    assert flat.best_index == 7
    np.testing.assert_array_equal(flat.best, trace.labels[7])
    assert flat.best.dtype == np.intp


def test_slices_are_traces(trace: Trace) -> None:
    part = trace[10:31:4]
    assert isinstance(part, Trace)
    np.testing.assert_array_equal(part.labels, trace.labels[10:31:4])
    np.testing.assert_array_equal(part.iterations, trace.iterations[10:31:4])
    assert (len(part), len(trace[-5:]), len(trace[40:])) == (6, 5, 0)
    np.testing.assert_array_equal(trace.thin(7).iterations, [7, 14, 21, 28, 35])
    assert len(trace.thin(1)) == len(trace)
    # A draw carries the proposals since the draw kept before it.
    made = trace.move_counts["gibbs"][0]
    np.testing.assert_array_equal(trace[10:].move_counts["gibbs"][0], made[10:])
    thinned = part.move_counts["gibbs"][0]
    assert (thinned[0], thinned[1]) == (made[10], made[11:15].sum())
    assert np.sum(trace.thin(5).move_counts["gibbs"][0]) == made[:40].sum()
    assert np.sum(trace[40:].move_counts["gibbs"][0]) == 0


def test_concatenate(trace: Trace) -> None:
    assert_same_draws(Trace.concatenate([trace[:10], trace[10:]]), trace)
    other = altered(
        trace,
        ("gibbs", "reassign", "gibbs"),
        **dict.fromkeys(("proposals", "acceptances"), np.ones((40, 3), int)),
    )
    pooled = Trace.concatenate([trace, other])
    assert list(pooled.move_counts) == ["gibbs", "split-merge", "reassign"]
    for name, (made, taken) in pooled.move_counts.items():
        nothing = np.zeros((2, 40), dtype=int)
        parts = [one.move_counts.get(name, nothing) for one in (trace, other)]
        np.testing.assert_array_equal(made, np.concatenate([part[0] for part in parts]))
        np.testing.assert_array_equal(taken, np.concatenate([part[1] for part in parts]))
    for wrong in (blob_trace(seed=1), blob_trace(concentration=2.0)):
        with pytest.raises(ValueError, match="same data, model and prior"):
            Trace.concatenate([trace, wrong])
    with pytest.raises(ValueError, match="no traces"):
        Trace.concatenate([])


@pytest.mark.parametrize("model", ["I", "II", "III"])
@pytest.mark.parametrize("prior", ["number", "Gamma", *PRIORS])
def test_save_and_load(tmp_path: Path, model: str, prior: str) -> None:
    if prior in PRIORS:
        X = np.random.default_rng(3).normal(size=(12, 2))
        sampler = ew.Sampler(X, model=model, shapes="own", prior=PRIORS[prior], nu_grid=[2.0, 5.0])
        trace = sampler.sample(20, progress=False)
    else:
        trace = blob_trace(model=model, concentration=1.5 if prior == "number" else Gamma(2.0, 0.5))
    trace.save(tmp_path / "trace.npz")
    loaded = Trace.load(tmp_path / "trace.npz")
    assert_same_draws(loaded, trace)
    assert not loaded.labels.flags.writeable
    assert loaded.acceptance == pytest.approx(trace.acceptance, nan_ok=True)
    for name in ("coordinates", "theta_grid", "nu_grid"):
        np.testing.assert_array_equal(getattr(loaded.posterior, name), getattr(trace.posterior, name))
    for name in ("model", "prior", "concentration"):
        assert getattr(loaded.posterior, name) == getattr(trace.posterior, name)
    np.testing.assert_array_equal(loaded.evidence_tree().linkage, trace.evidence_tree().linkage)
    assert len(Trace.concatenate([trace, loaded])) == 2 * len(trace)


def test_pickled_copies_are_read_only(trace: Trace) -> None:
    trace.similarity()
    for given in (trace, trace[3:9]):
        copied = pickle.loads(pickle.dumps(given))  # noqa: S301 - made here
        assert isinstance(copied, Trace)
        assert_same_draws(copied, given)
        assert not copied.labels.flags.writeable
        assert not copied._computed


def test_summaries_are_computed_once(trace: Trace) -> None:
    assert trace.similarity() is trace.similarity()
    assert trace.similarity(dtype=np.float32) is not trace.similarity()
    assert not trace.similarity().flags.writeable
    assert trace.similarity_tree() is trace.similarity_tree("single")
    assert trace.evidence_tree() is trace.evidence_tree()
    assert trace.point_estimate("binder") is trace.point_estimate("binder")
    np.testing.assert_array_equal(trace.distance(), 1 - trace.similarity())
    np.testing.assert_array_equal(trace.similarity(rows=[3, 5]), trace.similarity()[np.ix_([3, 5], [3, 5])])
    np.testing.assert_array_equal(trace.linkage("average"), trace.similarity_tree("average").linkage)
    np.testing.assert_array_equal(trace.cut(3, method="single"), trace.similarity_tree().cut(n_clusters=3))


def test_representations(trace: Trace, tmp_path: Path) -> None:
    for text in (repr(trace), trace._repr_html_()):
        assert "30 objects × 3 features" in text
        assert "40" in text
        assert "points moved by gibbs" in text
    assert "draws: 0" in repr(trace[40:])
    assert "shapes" not in repr(trace)
    with pytest.raises(ValueError, match='shapes="own"'):
        trace.nu_posterior()
    rng, prior = np.random.default_rng(0), ew.priors.FiniteMixture()
    own = own_trace(Posterior.from_data(rng.normal(size=(20, 2)), "III", shapes="own", prior=prior), rng, 30)
    for part in ("shapes: own", f"prior: {prior}", "nu: "):
        assert part in repr(own)
    assert "concentration" not in repr(own)
    average = own.nu_weights.astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(own.nu_posterior(), average / average.sum())
    own.save(tmp_path / "own.npz")
    loaded = Trace.load(tmp_path / "own.npz")
    np.testing.assert_array_equal(loaded.evidence_tree().linkage, own.evidence_tree().linkage)
    assert repr(loaded) == repr(own)


def test_an_empty_trace_says_so(trace: Trace) -> None:
    names = ("similarity", "theta_posterior", "theta_histogram", "evidence_tree", "point_estimate", "cut")
    for name in names:
        with pytest.raises(ValueError, match="holds no draws"):
            getattr(trace[40:], name)()
    with pytest.raises(ValueError, match="holds no draws"):
        _ = trace[40:].best


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"labels": np.ones((40, 30), dtype=int)}, ValueError, "canonical"),
        ({"labels": np.full((40, 30), 0.5)}, TypeError, "integers"),
        ({"labels": np.full((40, 30), -1)}, ValueError, "between 0 and"),
        ({"labels": np.zeros((40, 29), dtype=int)}, ValueError, "shape"),
        ({"theta_index": np.full(40, 14)}, ValueError, "between 0 and 13"),
        ({"theta_weights": np.ones((40, 13))}, ValueError, "shape"),
        ({"log_posterior": np.zeros(39)}, ValueError, "shape"),
        ({"proposals": np.zeros((40, 1), dtype=int)}, ValueError, "shape"),
        ({"acceptances": np.zeros((40, 2))}, TypeError, "integers"),
    ],
)
def test_refusals(trace: Trace, changed: dict[str, np.ndarray], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        altered(trace, **changed)
    with pytest.raises(ValueError, match="step"):
        trace[::-1]


def test_blocks_double_until_they_fill_the_time_and_are_never_empty_nor_huge() -> None:
    def sizes(sizer: BlockSizer, count: int, seconds: float, each: float) -> list[int]:
        found = []
        for _ in range(count):
            found.append(sizer.size(seconds))
            sizer.measured(found[-1], found[-1] * each)
        return found

    sizer = BlockSizer()
    assert sizes(sizer, 10, 0.010, 0.0001) == [1, 2, 4, 8, 16, 32, 64, 100, 100, 100]
    sizer.measured(100, 0.100)  # they shrink at once
    assert sizer.size(0.010) <= 20
    sizer = BlockSizer(largest=64)
    sizer.measured(1, 3.0)
    assert sizer.size(0.010) == 1
    assert sizes(sizer, 30, 1e9, 0.0)[-1] == 64
    sizer.restart()
    assert sizer.size(0.010) == 1
