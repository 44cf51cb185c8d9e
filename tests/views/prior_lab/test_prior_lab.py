"""The prior lab without a browser: what its controls do, what it shows, and what it says."""

import asyncio
import base64
import re
import threading

import numpy as np
import pytest
from ipywidgets import Widget
from views.chains import Wire, widgets_below

import ewens_widgets as ew
from ewens_widgets import ewens
from ewens_widgets.model.priors.dirichlet_multinomial import expected_sizes, finite_count_pmf
from ewens_widgets.model.priors.partition_prior import total_variation
from ewens_widgets.views.prior_lab.prior_charts import size_bins
from ewens_widgets.views.prior_lab.prior_controls import PARTITION
from ewens_widgets.views.prior_lab.prior_lab import PriorLab

pytestmark = pytest.mark.usefixtures("wire")


@pytest.fixture
def lab() -> PriorLab:
    return PriorLab(concentration=2.0, n=30, n_components=10)


def number(html: str, name: str) -> float:
    return float(re.search(rf'class="ew-{name}">([^<]*)<', html)[1])


class TestLaw:
    def test_the_exact_laws_are_shown(self, lab: PriorLab) -> None:
        law = ewens.cluster_count_pmf(30, 2.0)
        np.testing.assert_allclose(lab.law.exact.y, law[lab.law.exact.x.astype(int)])
        finite = finite_count_pmf(30, 2.0, 10)
        np.testing.assert_allclose(lab.law.finite.y, finite[lab.law.finite.x.astype(int)])
        html = lab.law.result.value
        assert number(html, "mean") == pytest.approx(ewens.expected_clusters(30, 2.0), abs=5e-4)
        assert number(html, "distance") == pytest.approx(total_variation(law, finite), abs=5e-5)
        assert "λ log n = 6.80" in html

    def test_draws_are_shown_against_it(self, lab: PriorLab) -> None:
        lab.draw(2000)
        places = lab.law.draws.x.astype(int)
        np.testing.assert_allclose(lab.law.draws.y, lab.tally.counts[places] / 2000, atol=1e-6)
        assert np.abs(lab.law.draws.y - lab.law.exact.y).max() < 0.04
        assert number(lab.law.result.value, "draws-mean") == pytest.approx(
            lab.tally.mean_clusters(), abs=5e-4
        )
        assert number(lab.law.result.value, "draws-distance") < 0.06

    def test_more_components_come_closer(self, lab: PriorLab) -> None:
        distances = []
        for components in (2, 10, 100, 10_000):
            lab.settings.components.value = components
            lab._worker.refresh()
            distances.append(number(lab.law.result.value, "distance"))
        assert distances == sorted(distances, reverse=True)
        assert distances[0] > 0.9
        assert distances[-1] < 0.002
        assert lab.tally.n_draws == 0

    def test_another_component_number_joins_the_slider(self) -> None:
        assert PriorLab(n_components=7).n_components == 7

    def test_sizes_are_expected_and_drawn(self, lab: PriorLab) -> None:
        names, bins = size_bins(30)
        assert names == ["1", "2", "3–4", "5–8", "9–16", "17–30"]
        np.testing.assert_allclose(lab.sizes.exact.y, bins @ expected_sizes(30, 2.0))
        lab.draw(3000)
        np.testing.assert_allclose(lab.sizes.draws.y, lab.sizes.exact.y, atol=0.1)

    @pytest.mark.parametrize("n", [2, 3, 4, 5, 1000])
    def test_bins_hold_every_size_once(self, n: int) -> None:
        names, bins = size_bins(n)
        assert len(names) == len(bins)
        assert bins.sum(axis=0).tolist() == [0.0] + [1.0] * n

    def test_growth_follows_this_restaurant(self, lab: PriorLab) -> None:
        assert lab.growth.exact.y[-1] == pytest.approx(ewens.expected_clusters(30, 2.0))
        assert lab.growth.limit.y[-1] == pytest.approx(2.0 * np.log(30))
        lab.step(20)
        path = lab._seating.path
        assert lab.growth.path.y[-1] == path[-1]
        assert lab.growth.path.x[-1] == 20.0
        for guests, clusters in zip(lab.growth.path.x, lab.growth.path.y, strict=True):
            assert path[int(guests) - 1] == clusters

    def test_a_thousand_guests_are_no_problem(self) -> None:
        lab = PriorLab(concentration=50.0, n=1000, n_components=1000)
        lab.draw(100)
        assert lab.law.exact.y.sum() == pytest.approx(1.0, abs=0.01)
        assert lab.restaurant.guests.x.size == 0, "tables only"
        assert lab.restaurant.tables.x.size == len(lab._seating.sizes)


class TestRestaurant:
    def test_guests_are_shown_as_they_come(self, lab: PriorLab) -> None:
        assert "empty" in lab.chance.value
        lab.step()
        assert lab.transport.status.value == (
            "guest 1 of 30 opens table 1 (chance 1.00) · 1 table · 0 partitions drawn"
        )
        lab.step(11)
        assert lab.restaurant.guests.x.size == 12
        assert lab.restaurant.tables.x.size == len(lab._seating.sizes)
        assert lab.restaurant.newest.x[0] == lab.restaurant.guests.x[11]
        texts = lab.restaurant.texts.text.tolist()
        assert texts[-1] == "new · 14%"
        assert len(texts) == len(lab._seating.sizes) + 1

    def test_areas_are_in_proportion_to_the_guests(self, lab: PriorLab) -> None:
        lab.show_partition([0] * 9 + [1] * 4)
        radii = np.sqrt(lab.restaurant.tables.size)
        assert radii[0] / radii[1] == pytest.approx(3.5 / 2.5)

    def test_a_new_prior_begins_anew(self, lab: PriorLab) -> None:
        lab.draw(10)
        lab.settings.concentration.value = 5.0
        assert (lab.concentration, lab.tally.n_draws, lab.labels.size) == (5.0, 0, 0)
        lab.settings.n.value = 12
        lab.step(12)
        assert lab.tally.n_draws == 1

    def test_the_probability_of_the_guests_so_far_is_printed(self, lab: PriorLab) -> None:
        lab.step(5)
        expected = np.exp(ewens.log_pmf(lab.labels, 2.0))
        assert number(lab.chance.value, "probability") == pytest.approx(expected, rel=1e-5)
        finite = np.exp(ewens.dirichlet_multinomial_log_pmf(lab.labels, 2.0, 10))
        assert number(lab.chance.value, "finite-probability") == pytest.approx(finite, rel=1e-5)


class TestOwnPartition:
    def test_a_typed_partition_is_shown_with_its_probability(self, lab: PriorLab) -> None:
        lab.step(7)
        lab.field.control.value = "1 2 | 3"
        assert lab.labels.tolist() == [0, 0, 1]
        assert number(lab.chance.value, "probability") == pytest.approx(1 / 6, rel=1e-5)
        assert "λ/λ · 1/(λ+1) · λ/(λ+2) with λ = 2" in lab.chance.value
        assert lab.restaurant.guests.x.size == 3
        assert lab.back.layout.display == ""
        lab.settings.concentration.value = 1.0
        lab._worker.refresh()
        assert number(lab.chance.value, "probability") == pytest.approx(1 / 6, rel=1e-5)
        lab.settings.concentration.value = 4.0
        lab._worker.refresh()
        assert number(lab.chance.value, "probability") == pytest.approx(1 / 5 * 4 / 6, rel=1e-5)

    def test_what_is_wrong_with_it_is_explained(self, lab: PriorLab) -> None:
        lab.field.control.value = "1 2 | 2"
        assert "twice" in lab.field.problem
        assert lab.labels.size == 0
        lab.field.control.value = ""
        assert lab.field.problem == ""

    def test_a_dragged_guest_changes_the_partition_and_the_text(self, lab: PriorLab) -> None:
        lab.field.control.value = "1 2 | 3"
        to_second = {"index": 0, "point": dict(zip("xy", lab.restaurant._plan.centres[1], strict=True))}
        lab.restaurant._on_dragged(None, to_second)
        assert lab.labels.tolist() == [0, 1, 0]
        assert lab.field.control.value == "1 3 | 2"
        to_new = {"index": 2, "point": dict(zip("xy", lab.restaurant._plan.centres[2], strict=True))}
        lab.restaurant._on_dragged(None, to_new)
        assert lab.labels.tolist() == [0, 1, 2]
        assert number(lab.chance.value, "probability") == pytest.approx(2 / 3 * 2 / 4, rel=1e-5)
        lab.restaurant.move(99, 0.0, 0.0)
        assert lab.labels.tolist() == [0, 1, 2]

    def test_a_guest_that_is_dropped_where_it_was_goes_back_to_its_seat(self, lab: PriorLab) -> None:
        lab.field.control.value = "1 2 | 3"
        seat = lab.restaurant.guests.x.copy()
        moved = seat.copy()
        moved[0] += 3.0
        y = lab.restaurant.guests.y[0]
        lab.restaurant._on_dragged(None, {"index": 0, "point": {"x": moved[0], "y": y}})
        assert lab.labels.tolist() == [0, 0, 1]
        lab.restaurant.guests.x = moved  # the page tells of it after the end of the drag
        np.testing.assert_array_equal(lab.restaurant.guests.x, seat)

    def test_it_is_no_draw_and_the_next_guest_puts_it_away(self, lab: PriorLab) -> None:
        lab.step(3)
        drawn = lab.labels.tolist()
        lab.restaurant._on_dragged(None, {"index": 1, "point": {"x": 460.0, "y": 5.0}})
        assert lab.labels.tolist() != drawn or len(set(drawn)) == 3
        lab.back.click()
        assert lab.labels.tolist() == drawn
        assert lab.field.control.value == ""
        lab.show_partition([0, 1])
        lab.step()
        assert lab.labels[:3].tolist() == drawn
        assert lab.labels.size == 4
        assert lab.back.layout.display == "none"

    def test_log_probabilities(self, lab: PriorLab) -> None:
        assert lab.log_probability("1 2 | 3") == pytest.approx(np.log(1 / 6))
        assert lab.log_probability([5, 5, 7]) == pytest.approx(np.log(1 / 6))


class TestTransport:
    def test_buttons_work_on_the_event_loop(self) -> None:
        async def use() -> None:
            lab = PriorLab(n=20)
            click = {name: button.click for name, button in lab.transport.buttons.items()}
            click["Step"]()
            await lab._worker.wait(30)
            assert lab.labels.size == 1
            click["Fill"]()
            await lab._worker.wait(30)
            assert (lab.labels.size, lab.tally.n_draws) == (20, 1)
            click["Fill"]()
            await lab._worker.wait(30)
            assert lab.tally.n_draws == 2
            click["Draw 1000"]()
            assert lab.tally.n_draws == 1002
            lab.transport.speed.value = float("inf")
            click["Play"]()
            while lab.tally.n_draws < 1100:
                await asyncio.sleep(0.001)
            click["Pause"]()
            drawn, seated = lab.tally.n_draws, lab.labels.size
            await asyncio.sleep(0.05)
            assert (lab.tally.n_draws, lab.labels.size) == (drawn, seated)
            click["Reset"]()
            assert (lab.tally.n_draws, lab.labels.size) == (0, 0)
            lab.close()

        asyncio.run(use())

    def test_a_partition_a_frame_follows_the_number_of_guests(self, lab: PriorLab) -> None:
        lab.transport.speed.value = PARTITION
        assert lab._worker.speed == 30.0
        lab.settings.n.value = 44
        assert lab._worker.speed == 44.0
        lab.transport.speed.value = float("inf")
        assert lab._worker.speed is None

    def test_messages_on_another_thread_are_handed_over(self) -> None:
        async def use() -> None:
            lab = PriorLab(n=20)
            thread = threading.Thread(target=lab.transport.buttons["Step"].click)
            thread.start()
            thread.join()
            assert lab.labels.size == 0
            await asyncio.sleep(0.05)
            await lab._worker.wait(30)
            assert lab.labels.size == 1

        asyncio.run(use())


class TestDisplay:
    def test_a_static_picture_comes_along(self, lab: PriorLab) -> None:
        lab.draw(100)
        bundle = lab._repr_mimebundle_()
        assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
        assert bundle["text/plain"].startswith("PriorLab(λ = 2: 30 of 30 guests seated · ")
        assert "application/vnd.jupyter.widget-view+json" in bundle

    def test_an_empty_restaurant_can_be_painted(self, lab: PriorLab) -> None:
        assert lab.picture().startswith(b"\x89PNG")

    def test_a_frame_makes_no_widget_and_the_same_one_sends_nothing(self, lab: PriorLab, wire: Wire) -> None:
        lab.step()
        before = len(Widget.get_manager_state()["state"])
        for _ in range(40):
            lab._worker.run_sync(1)
            wire.clear()
            lab._worker.refresh()
            assert max(wire.updates().values()) == 1
        assert len(Widget.get_manager_state()["state"]) == before
        wire.clear()
        lab._show_partition()
        lab.law.show(lab.tally)
        lab.sizes.show(lab.tally)
        lab.growth.show(lab._seating.path)
        assert wire.messages == []

    def test_every_control_has_a_name_and_a_hint(self, lab: PriorLab) -> None:
        for widget in widgets_below(lab):
            if hasattr(widget, "tooltip") and hasattr(widget, "description") and widget.has_trait("disabled"):
                assert widget.tooltip, widget
                assert widget.description, widget


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"concentration": 0}, ValueError, "concentration must be positive"),
        ({"concentration": 1e9}, ValueError, "at most 10000"),
        ({"n": 1}, ValueError, "n must be at least 2"),
        ({"n": 1001}, ValueError, "room for 1000 guests"),
        ({"n": 2.5}, TypeError, "n must be a whole number"),
        ({"n_components": 0}, ValueError, "n_components must be at least 1"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
def test_wrong_arguments_raise(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PriorLab(**arguments)


def test_the_names_are_public() -> None:
    assert ew.PriorLab is PriorLab
