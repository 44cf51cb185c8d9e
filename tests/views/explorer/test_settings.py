"""Controls of model, moves and run, and what they do to the chain."""

import re
from pathlib import Path

import numpy as np
import pytest
from views.explorer.small_explorer import html_of, set_text, square, step

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
        assert explorer.settings.prior == ew.priors.Ewens(2.0)
        assert html_of(explorer) == "iteration 0 of 200"

    @pytest.mark.parametrize(
        ("kind", "field", "text", "complaint"),
        [
            ("", "concentration", "-1", "must be positive"),
            ("", "alpha", "0", "α must be positive"),
            ("", "grid", "1, -1", "positive"),
            ("", "seed", "-3", "between"),
            ("", "splits", "1.5", "whole number"),
            ("pitman-yor", "discount", "1.5", "less than 1"),
            ("finite-geometric", "nu", "1, -1", "grid of nu"),
        ],
    )
    def test_a_wrong_one_is_explained_and_the_chain_left_alone(
        self, explorer: Explorer, kind: str, field: str, text: str, complaint: str
    ) -> None:
        fields = explorer.panel.fields
        if kind:
            fields["shapes"].control.value = "own"
            fields["kind"].control.value = kind
        step(explorer, 3)
        sampler = explorer.sampler
        set_text(fields[field], text)
        assert complaint in fields[field].problem
        explorer.panel.apply.click()
        assert explorer.sampler is sampler
        assert explorer.player.status.iteration == 3

    def test_what_the_data_do_not_allow_is_explained_too(self, rng: np.random.Generator) -> None:
        explorer = Explorer(rng.normal(size=(5, 6)), model="I")
        sampler = explorer.sampler
        explorer.panel.fields["model"].control.value = "III"
        assert "needs more than" in explorer.panel.fields["model"].problem
        assert explorer.sampler is sampler

    def test_no_move_at_all_is_refused(self, explorer: Explorer) -> None:
        set_text(explorer.panel.fields["sweeps"], "0")
        set_text(explorer.panel.fields["splits"], "0")
        assert "never changes" in explorer.panel.fields["splits"].problem

    def test_learning_the_concentration_and_a_wrong_value_that_is_not_asked_for(
        self, explorer: Explorer
    ) -> None:
        set_text(explorer.panel.fields["concentration"], "-1")
        explorer.panel.fields["kind"].control.value = "ewens-gamma"
        assert explorer.sampler.posterior.concentration == ew.Gamma(1.0, 1.0)
        assert explorer.panel.fields["concentration"].layout.display == "none"
        assert explorer.panel.fields["shape"].layout.display == ""
        step(explorer, 5)
        assert "λ:" in explorer.views["traces"].acceptance.value
        explorer.panel.apply.click()
        assert explorer.settings.prior == ew.priors.Ewens(ew.Gamma(1.0, 1.0))

    def test_the_paper_s_moves_their_options_and_the_warning_about_its_ratio(
        self, explorer: Explorer
    ) -> None:
        explorer.panel.fields["schedule"].control.value = "paper-2"
        explorer.panel.fields["between"].control.value = "hausdorff"
        explorer.panel.fields["metric"].control.value = "euclidean"
        set_text(explorer.panel.fields["repeats"], "3")
        (entry,) = explorer.sampler.schedule
        assert (entry.repeats, entry.move.between, explorer.sampler.metric) == (3, "hausdorff", "euclidean")
        explorer.panel.fields["acceptance"].control.value = "as-printed"
        assert "does not sample the posterior" in explorer.panel.notice.value

    def test_stepping_the_paper_s_move_tells_its_proposal(self, explorer: Explorer) -> None:
        explorer.panel.fields["schedule"].control.value = "paper-2"
        texts = set()
        for _ in range(12):
            step(explorer, 1)
            texts.add(html_of(explorer).rpartition(" · ")[2])
        assert "merge accepted" in texts
        assert all(
            re.fullmatch("(split|merge|move) (accepted|rejected)|nothing proposed", it) for it in texts
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
        powers = 2.0 ** np.arange(1, 9)
        assert SamplerSettings(shapes="own") == SamplerSettings(shapes="own", nu_grid=powers)
        assert SamplerSettings(shapes="own") != SamplerSettings(shapes="own", nu_grid=powers[1:])
        assert SamplerSettings(shapes="own") != SamplerSettings()

    def test_every_control_has_a_help_text(self, explorer: Explorer) -> None:
        for field in (
            *explorer.panel.fields.values(),
            explorer.run_panel.iterations,
            explorer.run_panel.burn_in,
            explorer.data_panel.field,
        ):
            assert field.control.tooltip
        for button in explorer.transport.buttons.values():
            assert button.tooltip


class TestShapesAndPriors:
    def test_a_preset_sets_shapes_and_prior_at_once(self, explorer: Explorer) -> None:
        fields = explorer.panel.fields
        assert fields["preset"].control.value == "paper"
        assert fields["nu"].layout.display == "none"
        fields["preset"].control.value = "own"
        posterior = explorer.sampler.posterior
        assert (posterior.shapes, posterior.prior) == ("own", ew.priors.FiniteMixture())
        assert (fields["shapes"].control.value, fields["kind"].control.value) == ("own", "finite-geometric")
        assert fields["nu"].layout.display == ""
        assert "its own covariance" in fields["preset"].help_text
        fields["preset"].control.value = "paper"
        posterior = explorer.sampler.posterior
        assert (posterior.shapes, posterior.prior) == ("common", ew.priors.Ewens(1.0))

    def test_the_preset_tells_what_was_chosen_by_hand(self, explorer: Explorer) -> None:
        fields = explorer.panel.fields
        fields["shapes"].control.value = "own"
        assert fields["preset"].control.value == "mixed"
        fields["kind"].control.value = "finite-geometric"
        assert fields["preset"].control.value == "own"
        set_text(fields["gamma"], "2")
        assert fields["preset"].control.value == "own"
        assert explorer.sampler.posterior.prior == ew.priors.FiniteMixture(2.0)

    def test_a_preset_waits_for_a_restart_and_can_be_taken_back(self, explorer: Explorer) -> None:
        set_text(explorer.panel.fields["concentration"], "2")
        step(explorer, 5)
        sampler = explorer.sampler
        explorer.panel.fields["preset"].control.value = "own"
        assert explorer.sampler is sampler
        assert explorer.panel.apply.layout.display == ""
        explorer.panel.fields["preset"].control.value = "paper"
        set_text(explorer.panel.fields["concentration"], "2")
        assert explorer.panel.apply.layout.display == "none"
        explorer.panel.fields["preset"].control.value = "own"
        explorer.panel.apply.click()
        assert explorer.sampler.posterior.shapes == "own"
        assert explorer.player.status.iteration == 0

    def test_the_usual_start_goes_with_the_shapes(self, explorer: Explorer) -> None:
        assert explorer.sampler.labels.max() == explorer.dataset.n_objects - 1
        explorer.panel.fields["preset"].control.value = "own"
        assert explorer.sampler.labels.max() == 0
        assert explorer.settings.initial is None
        explorer.panel.fields["initial"].control.value = "singletons"
        assert explorer.sampler.labels.max() == explorer.dataset.n_objects - 1

    def test_a_start_that_the_prior_forbids_is_explained_beside_the_start(self, explorer: Explorer) -> None:
        fields = explorer.panel.fields
        fields["initial"].control.value = "singletons"
        sampler = explorer.sampler
        fields["kind"].control.value = "dirichlet-multinomial"
        set_text(fields["components"], "3")
        assert explorer.sampler is sampler
        assert "at most 3 clusters" in fields["initial"].problem
        assert fields["model"].problem == ""
        fields["initial"].control.value = "one-cluster"
        assert fields["initial"].problem == ""
        assert explorer.sampler.posterior.prior == ew.priors.DirichletMultinomial(3, 1.0)

    def test_they_can_be_given_in_code(self) -> None:
        prior = ew.priors.PitmanYor(1.0, 0.25)
        explorer = Explorer(square(), model="III", shapes="own", prior=prior, nu_grid=[4.0, 16.0])
        fields = explorer.panel.fields
        assert explorer.sampler.posterior.prior == prior
        assert fields["preset"].control.value == "mixed"
        assert (fields["kind"].control.value, fields["discount"].control.value) == ("pitman-yor", "0.25")
        assert fields["nu"].control.value == "4.0, 16.0"
        assert explorer.panel.read() == explorer.settings

    def test_what_goes_not_together_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not both"):
            Explorer(square(), concentration=2.0, prior=ew.priors.FiniteMixture())
        with pytest.raises(ValueError, match='"common"'):
            Explorer(square(), shapes="round")
        with pytest.raises(ValueError, match="nu_grid goes with"):
            Explorer(square(), nu_grid=[1.0, 2.0])

    def test_a_saved_explorer_keeps_them(self, explorer: Explorer, tmp_path: Path) -> None:
        prior = ew.priors.FiniteMixture(2.0, ew.priors.Poisson(4.0))
        saved = Explorer(square(), model="III", shapes="own", prior=prior, nu_grid=[4.0, 16.0])
        step(saved, 4)
        saved.save(tmp_path / "own.ewens")
        explorer.load(tmp_path / "own.ewens")
        assert explorer.settings == saved.settings
        assert explorer.panel.read() == saved.settings
        assert explorer.panel.apply.layout.display == "none"
        step(explorer, 3)
        step(saved, 3)
        assert explorer.labels.tolist() == saved.labels.tolist()
        assert explorer.recorder.log_posterior[-1] == saved.recorder.log_posterior[-1]
        explorer.panel.fields["model"].control.value = "I"
        explorer.panel.apply.click()
        assert explorer.sampler.posterior.prior == prior
        assert explorer.sampler.posterior.shapes == "own"

    def test_the_page_of_the_state_names_shapes_and_prior(self) -> None:
        explorer = Explorer(square(), shapes="own", prior=ew.priors.FiniteMixture())
        _, content, _ = explorer.files._makers["web page of the current state (HTML)"]()
        text = content.decode()
        assert "one per cluster" in text
        assert "Finite mixture, γ = 1" in text
        assert "λ" not in text

    def test_own_shapes_are_drawn_and_their_pooling_shown(self) -> None:
        explorer = Explorer(
            ew.datasets.unit_square(per_cluster=20, seed=0),
            shapes="own",
            prior=ew.priors.FiniteMixture(),
            initial=np.repeat(np.arange(4), 20),
        )
        explorer.views["partition"].ellipses.value = True
        mark = explorer.views["partition"].outlines.mark
        explorer.player.refresh()
        assert len(mark.x) == 4
        sizes = np.nanmax(mark.x, axis=1) - np.nanmin(mark.x, axis=1)
        assert len(set(np.round(sizes, 9))) == 4  # one per cluster
        before = np.array(mark.x)
        step(explorer, 5)
        assert before.shape != mark.x.shape or not np.array_equal(before, mark.x, equal_nan=True)
        text = explorer.views["traces"].acceptance.value
        now = explorer.recorder.nu[-1]
        assert f"pooling ν: {now:g} in this draw" in text
        assert text.count("height:") == explorer.sampler.posterior.nu_grid.size
        assert "λ" not in text
        assert all(not view._error.value for view in explorer.views.values())
