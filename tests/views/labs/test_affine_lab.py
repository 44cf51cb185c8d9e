"""The affine lab without a browser: maps, what its controls do, what it computes, and what it says."""

import asyncio
import time
from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playback.fakes import empty_turns
from views.chains import Wire

import ewens_widgets as ew
from ewens_widgets.analysis.plots.palette import GREY
from ewens_widgets.playback.invariance import (
    PAPER_MATRICES,
    ChainSettings,
    Comparison,
    KMeansPair,
    invariant_models,
    mapped,
    verdict,
)
from ewens_widgets.views.labs.affine_lab import AffineLab, Steps, format_matrix, parse_matrix

pytestmark = pytest.mark.usefixtures("wire")

SAME = 1e-6


@pytest.fixture
def lab() -> AffineLab:
    return AffineLab(matrix=np.eye(2), draws=100, burn_in=50)


def finished(lab: AffineLab) -> dict[str, bool]:
    """Which models gave the same answer."""
    lab.run_sync()
    differences = lab.differences()
    assert all(value is not None for value in differences.values())
    return {model: value < SAME for model, value in differences.items() if value is not None}


def test_the_paper_s_matrix_iii_on_which_it_opens() -> None:
    lab = AffineLab(draws=100, burn_in=50)
    np.testing.assert_array_equal(lab.matrix, PAPER_MATRICES["III"])
    assert finished(lab) == {"I": False, "II": False, "III": True}
    differences = lab.differences()
    assert differences["I"] > 0.1
    assert differences["III"] < SAME
    assert lab.sentence.value == (
        "Model III is invariant: same result before and after. "
        "Models I, II and k-means changed: the result depends on the coordinates."
    )
    assert "✗ changed" in lab.models["I"].result.value
    assert "0.000000</b> · ✓ invariant" in lab.models["III"].result.value
    assert "26</b> of 80 objects change" in lab.k_means.result.value


@pytest.mark.parametrize(
    ("steps", "invariant"),
    [
        (Steps(scale_x=4.0), ["II", "III"]),
        (Steps(scale_x=4.0, scale_y=4.0, rotation=-70.0, mirrored=True), ["I", "III"]),
    ],
)
def test_models_are_invariant_to_their_maps(lab: AffineLab, steps: Steps, invariant: list[str]) -> None:
    lab.transform(steps.matrix(), (30.0, -7.0))
    assert [model for model, same in finished(lab).items() if same] == invariant


def test_the_answers_are_the_sampler_s_and_k_means_fails_when_stretched(lab: AffineLab) -> None:
    assert repr(lab).startswith("AffineLab('unit square': Preparing")
    lab.run_sync()
    assert repr(lab) == (
        "AffineLab('unit square': Models I, II, III and k-means are invariant: same result before and after.)"
    )
    assert lab._comparison.k_means.agreement == pytest.approx(1.0)
    assert '<b class="ew-moved">0</b>' in lab.k_means.result.value
    lab.controls.choose("II")
    lab.run_sync()
    assert lab._comparison.k_means.agreement < 0.9
    assert lab.transformed.moved.x.size == lab._comparison.k_means.moved.size > 5
    X = lab.dataset.X
    for model, pair in lab._comparison.models.items():
        for data, similarity in zip((X, X @ PAPER_MATRICES["II"]), pair.similarity(), strict=True):
            trace = ew.Sampler(data, model=model, seed=0).sample(100, burn_in=50, progress=False)
            np.testing.assert_allclose(similarity, trace.similarity(), atol=1e-12)
    lab.k_means.show(KMeansPair((X,) * 2, 4, 0, (np.zeros(80, dtype=np.intp),) * 2, agreement=-0.0004))
    assert "<b>0.000</b>" in lab.k_means.result.value, "an index of nearly zero has no sign"


def test_sliders_and_the_typed_matrix_follow_each_other(lab: AffineLab) -> None:
    controls = lab.controls
    controls.sliders["rotation"].value = 90.0
    controls.sliders["scale_x"].value = 2.0
    np.testing.assert_allclose(lab.matrix, [[0.0, 2.0], [-1.0, 0.0]], atol=1e-12)
    assert controls.field.control.value == "0 2; -1 0"
    controls.sliders["shift_x"].value = 4.0
    np.testing.assert_allclose(lab.transformed.points.x, -lab.original.points.y + 4.0)
    controls.field.control.value = "40 0; 0 -2"
    assert controls.sliders["scale_x"].value == pytest.approx(40.0)
    assert controls.sliders["scale_x"].max == 2.0
    assert controls.mirror.value
    np.testing.assert_array_equal(lab.matrix, [[40.0, 0.0], [0.0, -2.0]])
    controls.choose("I")
    assert controls.sliders["scale_x"].max == 1.0
    assert not controls.mirror.value


def test_ends_of_a_slider_are_sent_apart_from_its_value_and_never_exclude_it(
    lab: AffineLab, wire: Wire
) -> None:
    """Otherwise a page clips the value that it shows, and sends that back as if somebody had moved it."""
    names = {slider.comm.comm_id: name for name, slider in lab.controls.sliders.items()}
    states = {name: slider.get_state() for name, slider in lab.controls.sliders.items()}
    for matrix in ("III", "I", "II", "III", "I"):
        wire.clear()
        lab.controls.choose(matrix)
        for sender, data in wire.messages:
            if (name := names.get(sender)) is not None:
                new = data["state"]
                assert "value" not in new or not {"min", "max"} & set(new)
                state = states[name] = {**states[name], **new}
                place = np.log10(state["value"]) if "scale" in name else state["value"]
                assert state["min"] <= place <= state["max"]
    assert states["shear"]["max"] == 5.0


def test_what_is_wrong_is_explained_and_changes_nothing(lab: AffineLab) -> None:
    lab.controls.choose("III")
    before = lab._comparison
    lab.controls.field.control.value = "1 2; 2 4"
    assert "singular" in lab.controls.field.problem
    lab.seed.control.value = "-3"
    lab.k.control.value = "many"
    assert "seed must lie between" in lab.seed.problem
    assert lab._comparison is before
    np.testing.assert_array_equal(lab.matrix, PAPER_MATRICES["III"])
    lab.controls.field.control.value = "4.1 1.1; 2.1 1.1"
    assert lab.controls.field.problem == ""


def test_what_the_page_rounds_never_replaces_the_exact_matrix(lab: AffineLab) -> None:
    lab.controls.sliders["rotation"].value = 30.0
    exact = lab.matrix
    lab.controls._take_matrix()
    assert lab.matrix is exact
    lab.controls.choose("III")
    sliders, steps = lab.controls.sliders, Steps.of(PAPER_MATRICES["III"])
    sliders["scale_x"].value = 10 ** round(np.log10(steps.scale_x), 2)
    sliders["shear"].value = round(20 * steps.shear) / 20
    sliders["rotation"].value = round(steps.rotation)
    np.testing.assert_array_equal(lab.matrix, PAPER_MATRICES["III"])
    sliders["rotation"].value = 16.0
    np.testing.assert_allclose(lab.matrix, replace(steps, rotation=16.0).matrix(), rtol=1e-12)


def test_chains_of_the_original_data_are_used_again(lab: AffineLab) -> None:
    lab.run_sync()
    before = {model: pair.original for model, pair in lab._comparison.models.items()}
    lab.controls.choose("III")
    lab.run_sync()
    assert {model: pair.original for model, pair in lab._comparison.models.items()} == before
    lab.seed.control.value = "5"
    lab.run_sync()
    assert all(lab._comparison.models[model].original is not chain for model, chain in before.items())


def test_another_data_set(lab: AffineLab) -> None:
    lab.data.value = "wine"
    assert lab.dataset.n_features == 13
    assert lab.k.control.value == "3"
    assert lab.feature_box.layout.display == ""
    lab.features[1].value = lab.features[0].value
    assert "two different columns" in lab.feature_field.problem
    lab.features[1].value = lab.dataset.feature_names[12]
    assert lab.columns == (0, 12)
    lab.controls.choose("II")
    np.testing.assert_allclose(lab.transformed.points.x, 3.0 * lab.dataset.X[:, 0])
    assert "Preparing" in lab.caption()


def test_colours(lab: AffineLab) -> None:
    lab.controls.choose("III")
    lab.run_sync()
    for colouring in ("known classes", "model I", "k-means"):
        lab.colouring.value = colouring
        assert len(lab.original.points.colors) == 80
        assert len(set(lab.original.points.colors)) > 1
        assert (lab.transformed.moved.x.size > 0) == (colouring == "k-means")
        same = lab.original.points.colors == lab.transformed.points.colors
        assert same == (colouring == "known classes")


def test_sampling_runs_by_itself_and_the_latest_settings_win() -> None:
    async def use() -> None:
        lab = AffineLab(matrix=np.eye(2), draws=100, burn_in=50)
        assert lab._worker.status.is_running
        lab.controls.sliders["rotation"].value = 30.0
        await empty_turns()
        for value in (1.0, 2.0, 3.0):
            lab.controls.sliders["scale_x"].value = value
        await lab.wait()
        assert lab._comparison.is_done
        np.testing.assert_allclose(lab.matrix, Steps(scale_x=3.0, rotation=30.0).matrix())
        differences = lab.differences()
        assert differences["I"] > 0.1
        assert differences["II"] > 0.1
        assert differences["III"] < SAME
        lab.controls.choose("I")
        lab.close()
        assert not lab._worker.status.is_running

    asyncio.run(use())


@pytest.mark.timing
def test_the_kernel_is_never_blocked_for_long() -> None:
    async def use() -> float:
        lab = AffineLab()
        await lab.wait()  # compiled, or read from the cache, by now
        lab.controls.choose("III")
        longest = 0.0
        while lab._worker.status.is_running:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)
        return longest

    assert asyncio.run(use()) < 0.5


def test_arrays_are_data_too(rng: np.random.Generator) -> None:
    lab = AffineLab(rng.normal(size=(30, 3)), draws=20, burn_in=0, n_clusters=2)
    lab.controls.choose("III")
    assert finished(lab)["III"]
    assert lab.k.control.value == "2"
    lab.colouring.value = "known classes"
    assert set(lab.original.points.colors) == {GREY}


def test_a_model_that_cannot_be_used_says_so_and_the_others_go_on(rng: np.random.Generator) -> None:
    lab = AffineLab(rng.normal(size=(5, 6)), matrix=np.eye(2), draws=20, burn_in=5)
    lab.run_sync()
    assert "needs more than d + 1 = 7 objects" in lab.models["III"].result.value
    assert lab.differences()["III"] is None
    assert lab.differences()["I"] == 0.0
    assert "III" not in lab.caption()


scales = st.floats(0.05, 20.0)


@given(scales, scales, st.floats(-8, 8), st.floats(-179.0, 179.0), st.booleans())
def test_steps_are_found_again_from_their_matrix(
    scale_x: float, scale_y: float, shear: float, rotation: float, mirrored: bool
) -> None:
    steps = Steps(scale_x, scale_y, shear, rotation, mirrored)
    found = Steps.of(steps.matrix())
    np.testing.assert_allclose(astuple(found), astuple(steps), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.matrix(), steps.matrix(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("step", "image"),
    [
        ({"scale_x": 3.0}, [3.0, 2.0]),
        ({"scale_y": 3.0}, [1.0, 6.0]),
        ({"shear": 0.5}, [2.0, 2.0]),
        ({"rotation": 90.0}, [-2.0, 1.0]),
        ({"mirrored": True}, [1.0, -2.0]),
    ],
)
def test_each_step_does_what_its_name_says(step: dict[str, float], image: list[float]) -> None:
    np.testing.assert_allclose(np.array([1.0, 2.0]) @ Steps(**step).matrix(), image, atol=1e-15)


@pytest.mark.parametrize(
    "text", ["4.1 2.1; 1.9 1.1", "[[4.1, 2.1], [1.9, 1.1]]", " 4.1,2.1 , 1.9,1.1 ", "4.1 2.1\n1.9 1.1"]
)
def test_matrices_are_read_in_several_ways_and_as_they_are_written(text: str) -> None:
    np.testing.assert_array_equal(parse_matrix(text), PAPER_MATRICES["III"])
    for matrix in PAPER_MATRICES.values():
        np.testing.assert_allclose(parse_matrix(format_matrix(matrix)), np.round(matrix, 3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2; 2 4", "singular"),
        ("0 0 0 0", "singular"),
        ("1 1; 1 1.0000001", "singular"),
        ("1 2 3", "has 4 numbers, got 3"),
        ("", "has 4 numbers, got 0"),
        ("1 a 2 3", "'a' is not a number"),
        ("1 nan 2 3", "finite"),
        ("1 inf 2 3", "finite"),
        ("1e9 0 0 1", "at most 1e"),
    ],
)
def test_what_is_no_invertible_matrix_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_matrix(text)


@pytest.mark.parametrize(
    ("steps", "n_features", "models"),
    [
        (Steps(), 2, ("I", "II", "III")),
        (Steps(rotation=30.0), 2, ("I", "III")),
        (Steps(rotation=90.0), 2, ("I", "II", "III")),
        (Steps(scale_x=2.0, scale_y=2.0), 2, ("I", "II", "III")),
        (Steps(scale_x=3.0), 2, ("II", "III")),
        (Steps(mirrored=True), 2, ("I", "II", "III")),
        (Steps(shear=0.5), 2, ("III",)),
        (Steps.of(PAPER_MATRICES["III"]), 2, ("III",)),
        (Steps(scale_x=2.0, scale_y=2.0), 3, ("II", "III")),  # no common scale of three columns
        (Steps(rotation=30.0), 3, ("I", "III")),
    ],
)
def test_theory_says_which_models_are_invariant(
    steps: Steps, n_features: int, models: tuple[str, ...]
) -> None:
    assert invariant_models(steps.matrix(), n_features) == models


def test_columns_are_mapped_as_in_the_data_sets_and_others_stay(rng: np.random.Generator) -> None:
    for transform, name in ((None, "I"), ("II", "II"), ("III", "III")):
        plain, changed = (ew.datasets.unit_square(one, seed=3).X for one in (None, transform))
        np.testing.assert_allclose(mapped(plain, (0, 1), PAPER_MATRICES[name], (0.0, 0.0)), changed)
    X = rng.normal(size=(6, 4))
    result = mapped(X, (3, 1), PAPER_MATRICES["III"], (5.0, -1.0))
    np.testing.assert_array_equal(result[:, [0, 2]], X[:, [0, 2]])
    np.testing.assert_allclose(result[:, [3, 1]], X[:, [3, 1]] @ PAPER_MATRICES["III"] + [5.0, -1.0])


def test_progress_is_said_and_chains_that_rounding_separated_are_told_apart() -> None:
    X = ew.datasets.unit_square(per_cluster=5, seed=0).X
    comparison = Comparison(X, X @ PAPER_MATRICES["III"], ChainSettings(draws=30, burn_in=100), 4)
    assert verdict(comparison, ()).startswith("Preparing")
    comparison.advance(4)
    assert verdict(comparison, ()) == "Sampling both versions with the same seed: iteration 80 of 130."
    while not comparison.is_done:
        comparison.advance(5)
    assert "rounding" not in verdict(comparison, ("III",))
    # If model I is invariant in theory, the difference must have another cause.
    assert "Model I is invariant in theory, but rounding" in verdict(comparison, ("I", "III"))
