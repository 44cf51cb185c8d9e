"""Controls of model, moves and run, and what they do to the chain."""

import numpy as np
import pytest
from views.explorer.small_explorer import html_of, set_text, step

import ewens_widgets as ew
from ewens_widgets.views.explorer.explorer import Explorer
from ewens_widgets.views.explorer.settings import SamplerSettings

pytestmark = pytest.mark.usefixtures("wire")


class TestSettings:
    def test_at_the_start_they_take_effect_at_once(self, explorer: Explorer) -> None:
        explorer.panel.fields["model"].control.value = "III"
        set_text(explorer.panel.fields["concentration"], "2,5")
        assert explorer.sampler.posterior.model == "III"
        assert explorer.sampler.posterior.concentration == 2.5
        assert explorer.panel.apply.layout.display == "none"

    def test_a_chain_that_has_run_is_kept_until_the_user_agrees(self, explorer: Explorer) -> None:
        step(explorer, 10)
        set_text(explorer.panel.fields["concentration"], "2")
        assert explorer.player.status.iteration == 10
        assert explorer.panel.apply.layout.display == ""
        set_text(explorer.panel.fields["concentration"], "1")
        assert explorer.panel.apply.layout.display == "none"
        set_text(explorer.panel.fields["concentration"], "2")
        explorer.panel.apply.click()
        assert explorer.player.status.iteration == 0
        assert explorer.settings.concentration == 2.0
        assert html_of(explorer) == "iteration 0 of 200 · 20 clusters"

    @pytest.mark.parametrize(
        ("field", "text", "complaint"),
        [
            ("concentration", "-1", "λ must be positive"),
            ("concentration", "many", "not a number"),
            ("alpha", "0", "α must be positive"),
            ("grid", "1, -1", "positive"),
            ("seed", "-3", "between"),
            ("splits", "1.5", "whole number"),
        ],
    )
    def test_a_wrong_one_is_explained_and_the_chain_left_alone(
        self, explorer: Explorer, field: str, text: str, complaint: str
    ) -> None:
        step(explorer, 10)
        sampler = explorer.sampler
        set_text(explorer.panel.fields[field], text)
        assert complaint in explorer.panel.fields[field].problem
        explorer.panel.apply.click()
        assert explorer.sampler is sampler
        assert explorer.player.status.iteration == 10

    def test_what_the_data_do_not_allow_is_explained_too(self, rng: np.random.Generator) -> None:
        explorer = Explorer(rng.normal(size=(5, 6)), model="I")
        sampler = explorer.sampler
        explorer.panel.fields["model"].control.value = "III"
        assert "needs more than" in explorer.panel.fields["model"].problem
        assert explorer.sampler is sampler

    def test_no_move_at_all_is_refused(self, explorer: Explorer) -> None:
        set_text(explorer.panel.fields["sweeps"], "0")
        set_text(explorer.panel.fields["splits"], "0")
        assert "would never change" in explorer.panel.fields["splits"].problem

    def test_learning_the_concentration(self, explorer: Explorer) -> None:
        explorer.panel.fields["learn"].control.value = True
        assert explorer.sampler.posterior.concentration == ew.Gamma(1.0, 1.0)
        assert explorer.panel.fields["concentration"].layout.display == "none"
        assert explorer.panel.fields["shape"].layout.display == ""
        step(explorer, 5)
        assert "λ:" in explorer.views["traces"].acceptance.value

    def test_a_wrong_value_that_is_not_asked_for_does_no_harm(self, explorer: Explorer) -> None:
        step(explorer, 1)
        set_text(explorer.panel.fields["concentration"], "-1")
        explorer.panel.fields["learn"].control.value = True
        explorer.panel.apply.click()
        assert explorer.settings.concentration == ew.Gamma(1.0, 1.0)

    def test_the_paper_s_moves_and_their_options(self, explorer: Explorer) -> None:
        explorer.panel.fields["schedule"].control.value = "paper-2"
        explorer.panel.fields["between"].control.value = "hausdorff"
        explorer.panel.fields["metric"].control.value = "euclidean"
        set_text(explorer.panel.fields["repeats"], "3")
        (entry,) = explorer.sampler.schedule
        assert (entry.repeats, entry.move.between, explorer.sampler.metric) == (3, "hausdorff", "euclidean")

    def test_the_printed_ratio_warns_on_the_page(self, explorer: Explorer) -> None:
        explorer.panel.fields["schedule"].control.value = "paper-2"
        explorer.panel.fields["acceptance"].control.value = "as-printed"
        assert "does not sample the posterior" in explorer.panel.notice.value

    def test_stepping_the_paper_s_move_tells_its_proposal(self, explorer: Explorer) -> None:
        explorer.panel.fields["schedule"].control.value = "paper-2"
        texts = []
        for _ in range(12):
            step(explorer, 1)
            texts.append(html_of(explorer).rsplit(" · ", maxsplit=1)[-1])
        assert (
            {"merge accepted"}
            <= set(texts)
            <= {
                f"{kind} {decision}"
                for kind in ("split", "merge", "move")
                for decision in ("accepted", "rejected")
            }
            | {"nothing proposed"}
        )

    def test_iterations_and_burn_in_do_not_restart(self, explorer: Explorer) -> None:
        step(explorer, 30)
        set_text(explorer.run_panel.iterations, "500")
        set_text(explorer.run_panel.burn_in, "10")
        assert explorer.player.target_iterations == 500
        assert len(explorer.trace) == 20
        assert "of 500" in html_of(explorer)
        set_text(explorer.run_panel.burn_in, "500")
        assert "below the 500 iterations" in explorer.run_panel.burn_in.problem
        assert explorer.player.burn_in == 10

    def test_settings_are_equal_when_they_mean_the_same(self) -> None:
        assert SamplerSettings() == SamplerSettings(moves="default")
        assert SamplerSettings(theta_grid=np.array([1.0, 2.0])) == SamplerSettings(theta_grid=(1, 2))

    def test_every_control_has_a_help_text(self, explorer: Explorer) -> None:
        fields = (*explorer.panel.model_box.children, *explorer.panel.moves_box.children)
        for field in (
            *fields,
            explorer.run_panel.iterations,
            explorer.run_panel.burn_in,
            explorer.data_panel.field,
        ):
            assert field.control.tooltip
        for button in explorer.transport.buttons.values():
            assert button.tooltip
