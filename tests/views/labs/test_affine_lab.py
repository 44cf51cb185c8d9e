"""The affine lab without a browser: what its controls do, what it computes, and what it says."""

import asyncio
import time
from dataclasses import replace

import numpy as np
import pytest
from playback.fakes import empty_turns

import ewens_widgets as ew
from ewens_widgets.analysis.plots.palette import GREY
from ewens_widgets.playback.invariance import PAPER_MATRICES, KMeansPair
from ewens_widgets.views.labs.affine_controls import Steps
from ewens_widgets.views.labs.affine_lab import AffineLab

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


class TestLesson:
    def test_the_paper_s_matrix_iii(self) -> None:
        lab = AffineLab()  # opens on it
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
            (Steps(), ["I", "II", "III"]),
            (Steps(rotation=30.0), ["I", "III"]),
            (Steps(scale_x=4.0), ["II", "III"]),
            (Steps(scale_x=4.0, scale_y=4.0, rotation=-70.0, mirrored=True), ["I", "III"]),
            (Steps(shear=2.0), ["III"]),
        ],
    )
    def test_models_are_invariant_to_their_maps(
        self, lab: AffineLab, steps: Steps, invariant: list[str]
    ) -> None:
        lab.transform(steps.matrix(), (30.0, -7.0))
        assert [model for model, same in finished(lab).items() if same] == invariant

    def test_the_answers_are_the_sampler_s(self, lab: AffineLab) -> None:
        lab.controls.choose("II")
        lab.run_sync()
        X = lab.dataset.X
        for model, pair in lab._comparison.models.items():
            for data, similarity in zip((X, X @ PAPER_MATRICES["II"]), pair.similarity(), strict=True):
                trace = ew.Sampler(data, model=model, seed=0).sample(100, burn_in=50, progress=False)
                np.testing.assert_allclose(similarity, trace.similarity(), atol=1e-12)

    def test_an_index_of_nearly_zero_has_no_sign(self, lab: AffineLab) -> None:
        labels = (np.zeros(80, dtype=np.intp),) * 2
        lab.k_means.show(KMeansPair((lab.dataset.X,) * 2, 4, 0, labels, agreement=-0.0004))
        assert "<b>0.000</b>" in lab.k_means.result.value

    def test_k_means_fails_when_stretched(self, lab: AffineLab) -> None:
        lab.run_sync()
        assert lab.k_means_agreement == pytest.approx(1.0)
        assert '<b class="ew-moved">0</b>' in lab.k_means.result.value
        lab.controls.choose("II")
        lab.run_sync()
        assert lab.k_means_agreement < 0.9
        assert lab.transformed.moved.x.size == lab._comparison.k_means.moved.size > 5


class TestControls:
    def test_sliders_change_the_matrix_and_its_text(self, lab: AffineLab) -> None:
        lab.controls.sliders["rotation"].value = 90.0
        lab.controls.sliders["scale_x"].value = 2.0
        np.testing.assert_allclose(lab.matrix, [[0.0, 2.0], [-1.0, 0.0]], atol=1e-12)
        assert lab.controls.field.control.value == "0 2; -1 0"
        lab.controls.sliders["shift_x"].value = 4.0
        np.testing.assert_allclose(lab.transformed.points.x, -lab.original.points.y + 4.0)

    def test_a_typed_matrix_moves_the_sliders(self, lab: AffineLab) -> None:
        lab.controls.field.control.value = "40 0; 0 -2"
        assert lab.controls.sliders["scale_x"].value == pytest.approx(40.0)
        assert lab.controls.sliders["scale_x"].max == 2.0
        assert lab.controls.mirror.value
        np.testing.assert_array_equal(lab.matrix, [[40.0, 0.0], [0.0, -2.0]])
        lab.controls.choose("I")
        assert lab.controls.sliders["scale_x"].max == 1.0
        assert not lab.controls.mirror.value

    def test_a_bad_matrix_is_explained_and_changes_nothing(self, lab: AffineLab) -> None:
        lab.controls.choose("III")
        lab.run_sync()
        before = lab._comparison
        lab.controls.field.control.value = "1 2; 2 4"
        assert "singular" in lab.controls.field.problem
        assert lab._comparison is before
        np.testing.assert_array_equal(lab.matrix, PAPER_MATRICES["III"])
        lab.controls.field.control.value = "4.1 1.1; 2.1 1.1"
        assert lab.controls.field.problem == ""

    def test_the_rounded_text_never_replaces_the_exact_matrix(self, lab: AffineLab) -> None:
        lab.controls.sliders["rotation"].value = 30.0
        exact = lab.matrix
        lab.controls._take_matrix()
        assert lab.matrix is exact

    def test_sliders_rounded_by_the_page_leave_the_matrix_alone(self, lab: AffineLab) -> None:
        lab.controls.choose("III")
        sliders = lab.controls.sliders
        exact = Steps.of(PAPER_MATRICES["III"])
        sliders["scale_x"].value = 10 ** round(np.log10(exact.scale_x), 2)
        sliders["shear"].value = round(20 * exact.shear) / 20
        sliders["rotation"].value = round(exact.rotation)
        np.testing.assert_array_equal(lab.matrix, PAPER_MATRICES["III"])
        sliders["rotation"].value = 16.0
        exact = replace(exact, rotation=16.0)
        np.testing.assert_allclose(lab.matrix, exact.matrix(), rtol=1e-12)

    def test_chains_of_the_original_data_are_used_again(self, lab: AffineLab) -> None:
        lab.run_sync()
        before = {model: pair.original for model, pair in lab._comparison.models.items()}
        lab.controls.choose("III")
        lab.run_sync()
        assert {model: pair.original for model, pair in lab._comparison.models.items()} == before
        lab.seed.control.value = "5"
        lab.run_sync()
        assert all(lab._comparison.models[model].original is not chain for model, chain in before.items())

    def test_bad_numbers_are_explained(self, lab: AffineLab) -> None:
        before = lab._comparison
        lab.seed.control.value = "-3"
        lab.k.control.value = "many"
        assert "seed must lie between" in lab.seed.problem
        assert lab._comparison is before

    def test_another_data_set(self, lab: AffineLab) -> None:
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
        assert "Preparing" in lab.status_line()

    @pytest.mark.parametrize("colouring", ["known classes", "model I", "k-means"])
    def test_colours(self, lab: AffineLab, colouring: str) -> None:
        lab.colouring.value = colouring
        lab.controls.choose("III")
        lab.run_sync()
        assert len(lab.original.points.colors) == 80
        assert len(set(lab.original.points.colors)) > 1
        assert (lab.transformed.moved.x.size > 0) == (colouring == "k-means")
        if colouring == "known classes":
            assert lab.original.points.colors == lab.transformed.points.colors


class TestBackground:
    def test_sampling_runs_by_itself_and_the_latest_settings_win(self) -> None:
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

        asyncio.run(use())

    @pytest.mark.timing
    def test_the_kernel_is_never_blocked_for_long(self) -> None:
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


class TestInput:
    def test_arrays_are_data_too(self, rng: np.random.Generator) -> None:
        lab = AffineLab(rng.normal(size=(30, 3)), draws=20, burn_in=0, n_clusters=2)
        lab.controls.choose("III")
        assert finished(lab)["III"]
        assert lab.k.control.value == "2"
        lab.colouring.value = "known classes"
        assert set(lab.original.points.colors) == {GREY}

    def test_a_model_that_cannot_be_used_says_so_and_the_others_go_on(self) -> None:
        rng = np.random.default_rng(0)
        lab = AffineLab(rng.normal(size=(5, 6)), matrix=np.eye(2), draws=20, burn_in=5)
        lab.run_sync()
        assert "needs more than d + 1 = 7 objects" in lab.models["III"].result.value
        assert lab.differences()["III"] is None
        assert lab.differences()["I"] == 0.0
        assert "III" not in lab.status_line()


class TestDisplay:
    def test_its_name_in_a_notebook_is_the_verdict(self, lab: AffineLab) -> None:
        assert repr(lab).startswith("AffineLab('unit square': Preparing")
        lab.run_sync()
        assert repr(lab) == (
            "AffineLab('unit square': Models I, II, III and k-means are invariant: same result before and "
            "after.)"
        )

    def test_a_closed_lab_stops(self, lab: AffineLab) -> None:
        lab.close()
        assert not lab._worker.status.is_running
