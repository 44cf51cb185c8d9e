"""The one table of what is recorded, and blocks made after it."""

import copy
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import ewens_widgets as ew
from ewens_widgets.sampling.draws import (
    SCHEMA,
    Block,
    BlockSizer,
    Column,
    StepReport,
    draw_bytes,
    saved_columns,
)
from ewens_widgets.sampling.event import Event

DATA = ew.datasets.unit_square(per_cluster=5, seed=1)


def largest_cluster(block: Block) -> NDArray[np.int64]:
    return np.array([np.bincount(row).max() for row in block.labels], dtype=np.int64)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Column:
    """A quantity more, added in one place."""
    column = Column(
        name="largest",
        meaning="Size of the largest cluster.",
        kept=np.int64,
        make=largest_cluster,
        arviz="posterior",
    )
    monkeypatch.setitem(SCHEMA, column.name, column)
    return column


def expected(labels: NDArray[np.integer]) -> list[int]:
    return [max(row.count(label) for label in row) for row in labels.tolist()]


@pytest.mark.usefixtures("toy")
def test_a_quantity_added_in_one_place_is_told_kept_saved_and_exported(tmp_path: Path) -> None:
    events = list(ew.Sampler(DATA, seed=3).events(20))
    assert [event.largest for event in events] == expected(np.array([event.labels for event in events]))
    assert type(events[0].largest) is int
    assert ew.Sampler(DATA, seed=3).snapshot().largest == 1

    sampler = ew.Sampler(DATA, seed=3)
    recorder = ew.Recorder(sampler.posterior, sampler.move_names)
    recorder.extend(sampler.advance(15))
    for event in sampler.events(5):
        recorder.append(event)
    np.testing.assert_array_equal(recorder.largest, [event.largest for event in events])
    assert recorder.event(7).largest == events[7].largest
    assert "largest" in dir(recorder)

    trace = recorder.trace()
    np.testing.assert_array_equal(trace.largest, expected(trace.labels))
    np.testing.assert_array_equal(trace[4:].thin(2).largest, expected(trace[4:].thin(2).labels))
    np.testing.assert_array_equal(ew.Trace.concatenate([trace, trace]).largest, [*trace.largest] * 2)
    np.testing.assert_array_equal(copy.deepcopy(trace).largest, trace.largest)

    trace.save(tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz") as file:
        np.testing.assert_array_equal(file["largest"], trace.largest)
    np.testing.assert_array_equal(ew.Trace.load(tmp_path / "trace.npz").more["largest"], trace.largest)
    trace.to_csv(tmp_path / "trace.csv")
    header, first = (tmp_path / "trace.csv").read_text().splitlines()[:2]
    assert first.split(",")[header.split(",").index("largest")] == str(trace.largest[0])

    pytest.importorskip("arviz")
    np.testing.assert_array_equal(trace.to_arviz().posterior["largest"].values[0], trace.largest)

    chains = ew.sample_chains(DATA, chains=2, draws=10, seed=1, progress=False)
    np.testing.assert_array_equal(chains[1].largest, expected(chains[1].labels))


def test_draws_saved_before_a_quantity_was_recorded_still_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.npz"
    ew.Sampler(DATA, seed=3).sample(5, progress=False).save(path)
    made = Column(name="largest", meaning="Size of the largest cluster.", make=largest_cluster)
    unknown = Column(name="warmth", meaning="Known only to the chain.", absent=float("nan"))
    required = Column(name="depth", meaning="Known only to the chain, and needed.")
    for column in (made, unknown):
        monkeypatch.setitem(SCHEMA, column.name, column)
    trace = ew.Trace.load(path)
    np.testing.assert_array_equal(trace.largest, expected(trace.labels))
    assert np.isnan(trace.warmth).all()
    trace.save(tmp_path / "new.npz")
    assert np.isnan(ew.Trace.load(tmp_path / "new.npz").warmth).all()
    monkeypatch.setitem(SCHEMA, required.name, required)
    with pytest.raises(KeyError, match="depth"):
        _ = trace.depth


def test_without_it_nothing_is_known_of_a_quantity(toy: Column, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = ew.Sampler(DATA, seed=3).sample(5, progress=False)
    with_more = {**trace.columns(), "largest": trace.column(toy.name)}
    monkeypatch.delitem(SCHEMA, toy.name)
    event = next(ew.Sampler(DATA, seed=3).events(1))
    plain = ew.Sampler(DATA, seed=3).sample(5, progress=False)
    for thing in (event, plain, ew.Recorder(plain.posterior), plain.block()):
        with pytest.raises(AttributeError, match="largest"):
            _ = thing.largest
    with pytest.raises(ValueError, match="nothing is known of largest"):
        ew.Trace.of_columns(with_more, {}, plain.posterior)


def test_every_typed_attribute_is_in_the_table() -> None:
    told = {"iteration": "iterations"}
    others = {"moves", "proposed_labels", "accepted", "log_ratio", "more"}
    assert {told.get(name, name) for name in Event._fields if name not in others} | {
        "proposals",
        "acceptances",
    } == set(SCHEMA)
    trace = ew.Sampler(DATA, seed=3).sample(2, progress=False)
    assert not trace.more
    assert list(trace.columns()) == [column.name for column in saved_columns()]
    assert all(column.meaning.endswith(".") for column in SCHEMA.values())


@pytest.fixture(scope="module")
def block() -> Block:
    return ew.Sampler(DATA, moves="paper-2", seed=3).advance(12)


def same(first: Event, second: Event) -> bool:
    pairs = zip(first, second, strict=True)
    return all(np.array_equal(one, other) if np.ndim(one) else one == other for one, other in pairs)


def test_a_block_is_a_sequence_of_events_that_are_views(block: Block) -> None:
    events = list(block)
    assert len(block) == len(events) == 12
    assert all(same(block[place], event) for place, event in enumerate(events))
    assert same(block[-1], events[-1])
    assert [event.iteration for event in block[3:9:2]] == [4, 6, 8]
    assert len(block[12:]) == 0 == len(list(block[12:]))
    assert [event.iteration for event in reversed(block)] == list(range(12, 0, -1))
    for place in (12, -13):
        with pytest.raises(IndexError):
            block[place]
    assert np.shares_memory(events[4].labels, block.labels)
    for array in (block.labels, block.log_posterior, events[4].labels, events[4].theta_weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_block_computes_what_it_was_not_given(block: Block) -> None:
    given = {name: np.array(block.column(name)) for name in ("iterations", "labels", "theta_index")}
    bare = Block(block.posterior, block.move_names, given)
    np.testing.assert_array_equal(bare.theta, block.theta)
    np.testing.assert_array_equal(bare.n_clusters, block.n_clusters)
    assert bare.proposals.shape == (12, 1)
    assert not bare.acceptances.any()
    with pytest.raises(KeyError, match="log_posterior"):
        _ = bare.log_posterior


def test_a_report_belongs_to_the_last_event(block: Block) -> None:
    report = StepReport(np.zeros(20, dtype=np.intp), accepted=False, log_ratio=-2.0)
    columns = {name: block.column(name) for name in SCHEMA}
    told = Block(block.posterior, block.move_names, columns, report)
    assert [event.accepted for event in told] == [None] * 11 + [False]
    assert told[-1].log_ratio == told[8:][-1].log_ratio == -2.0
    assert told[:11][-1].accepted is None
    event = Block.of_event(block.posterior, told[-1])[0]
    assert same(event, told[-1])


def test_the_memory_of_a_draw_is_that_of_its_columns(block: Block) -> None:
    columns = [entry for entry in SCHEMA.values() if entry.written is not None]
    assert draw_bytes(block.posterior, 1, written=True) == sum(
        block.column(entry.name)[0].nbytes for entry in columns
    )
    trace = ew.Sampler(DATA, seed=3).sample(1, progress=False)
    assert draw_bytes(block.posterior) == sum(values.nbytes for values in trace.columns().values())


def test_blocks_grow_by_doubling_until_they_fill_the_time() -> None:
    sizer = BlockSizer()
    sizes = []
    for _ in range(12):
        sizes.append(sizer.size(0.010))
        sizer.measured(sizes[-1], sizes[-1] * 0.0001)
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 100, 100, 100, 100, 100]


def test_blocks_shrink_at_once() -> None:
    sizer = BlockSizer()
    for _ in range(10):
        sizer.measured(sizer.size(0.010), sizer.size(0.010) * 0.0001)
    sizer.measured(100, 0.100)
    assert sizer.size(0.010) <= 20


def test_block_is_never_empty_and_never_huge() -> None:
    sizer = BlockSizer(largest=64)
    sizer.measured(1, 3.0)
    assert sizer.size(0.010) == 1
    for _ in range(30):
        sizer.measured(sizer.size(1e9), 0.0)
    assert sizer.size(1e9) == 64


def test_sizer_forgets() -> None:
    sizer = BlockSizer()
    for _ in range(10):
        sizer.measured(sizer.size(0.010), 0.0)
    sizer.restart()
    assert sizer.size(0.010) == 1


def test_chunks_begin_long_and_grow_fast() -> None:
    sizer = BlockSizer(largest=10**6, first=64, growth=4, newest=1.0)
    sizes = []
    for _ in range(6):
        sizes.append(sizer.size(1.0))
        # The first one includes loading compiled code, and says little.
        sizer.measured(sizes[-1], 2.0 if len(sizes) == 1 else sizes[-1] * 0.001)
    assert sizes == [64, 32, 256, 1000, 1000, 1000]
