"""The dashboard: choose data and model, play the chain, and watch.

Everything that browser messages cause is posted to the event loop (see `stage`). New settings take effect at
once while nothing has been run; otherwise they wait for "Start anew", so that no draws are lost by accident.
Settings that cannot be used are explained beside their control, and the running chain is left alone.
"""

import os
from pathlib import Path
from typing import Any, cast

import numpy as np
from ipywidgets import Accordion, HBox
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.datasets._frames import is_frame
from ewens_widgets.model.priors.ewens import Concentration
from ewens_widgets.playback import Player
from ewens_widgets.playback.frame import status_text
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.session import Session, pack_session, unpack_session
from ewens_widgets.sampling.trace import Trace
from ewens_widgets.tables import read_table
from ewens_widgets.views.base import Panel, View
from ewens_widgets.views.explorer.data_panel import DataPanel
from ewens_widgets.views.explorer.files_panel import Exports, FilesPanel
from ewens_widgets.views.explorer.settings import RunPanel, SamplerSettings, SettingsPanel
from ewens_widgets.views.heatmap_view import HeatmapView
from ewens_widgets.views.page import Dashboard, in_columns
from ewens_widgets.views.partition_view import PartitionView
from ewens_widgets.views.stage import Stage
from ewens_widgets.views.theta_view import ThetaView
from ewens_widgets.views.traces_view import TracesView
from ewens_widgets.views.transport import Transport
from ewens_widgets.views.tree_view import TreeView

__all__ = ["Explorer"]


class Explorer(Dashboard):
    """Play a chain and watch it.

    Parameters
    ----------
    data
        A `Dataset`, an array, n objects by d features, or a DataFrame, the columns of which are sorted as by
        `read_table`; the unit square by default.
    model, concentration, alpha, theta_grid, moves, initial, metric, acceptance, seed
        As for `Sampler`; the page can change them.
    iterations
        Iterations at which playing stops.
    burn_in
        First iterations that averages leave out.
    speed
        Iterations a frame, or None for as fast as it goes.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> explorer = ew.Explorer(ew.datasets.unit_square(seed=0), model="I")
    >>> explorer.player.step_sync(10)
    >>> explorer
    Explorer('unit square', model I, iteration 10 of 3000)
    """

    def __init__(
        self,
        data: Dataset | ArrayLike | None = None,
        *,
        model: str = "II",
        concentration: Concentration = 1.0,
        alpha: float = 1.0,
        theta_grid: ArrayLike | None = None,
        moves: Any = "default",  # noqa: ANN401 - as for the sampler
        initial: Any = "singletons",  # noqa: ANN401 - as for the sampler
        metric: str = "canonical",
        acceptance: str = "metropolis-hastings",
        seed: int | None = 0,
        iterations: int = 3000,
        burn_in: int = 500,
        speed: float | None = 1.0,
    ) -> None:
        settings = SamplerSettings(
            model=model,
            concentration=concentration,
            alpha=alpha,
            theta_grid=theta_grid,
            moves=moves,
            initial=initial,
            metric=metric,
            acceptance=acceptance,
            seed=seed,
        )
        # A frame may have columns of other kinds than numbers: the reader sorts them, and the panel says how.
        dataset = read_table(data) if is_frame(data) else as_dataset(data)
        sampler, notice = settings.make_sampler(dataset)
        self._dataset, self._settings = dataset, settings
        self.stage = Stage()
        self.player = Player(
            sampler,
            Recorder(sampler.posterior, sampler.move_names),
            target_iterations=iterations,
            speed=speed,
            burn_in=burn_in,
        )
        super().__init__(self.player, self.stage.post)
        self.views: dict[str, View] = {
            "partition": PartitionView(self.stage),
            "tree": TreeView(self.stage),
            "heatmap": HeatmapView(self.stage),
            "theta": ThetaView(self.stage),
            "traces": TracesView(self.stage),
        }
        self.transport = Transport(self.player)
        self._build_panels(iterations, burn_in, data if is_frame(data) else None)
        self.lay_out(
            self.transport, self._columns(), names={".ew-progress": {"aria-label": "iterations done"}}
        )
        self.panel.say(notice)
        self._prepare_views()
        self.attach(*self.views.values(), self.transport)

    def _build_panels(self, iterations: int, burn_in: int, table: Any) -> None:  # noqa: ANN401 - a DataFrame
        post = self.post
        self.panel = SettingsPanel(
            self._settings, lambda: post(self._settings_changed), lambda: post(self.apply_settings)
        )
        self.data_panel = DataPanel(self._dataset, post, self._use_data, table)
        self.run_panel = RunPanel(iterations, burn_in, lambda: post(self._run_changed))
        self.files = FilesPanel(Exports(self).makers(), self.page, post, self._load)

    def _columns(self) -> HBox:
        sections = {
            "Data": self.data_panel,
            "Model": self.panel.model_box,
            "Moves": self.panel.moves_box,
            "Run": self.run_panel,
            "Save and export": self.files,
        }
        accordion = Accordion(tuple(sections.values()), titles=tuple(sections), selected_index=1)
        return in_columns(
            {
                "ew-settings": (self.panel.apply, self.panel.notice, accordion),
                "ew-column-partition": (self.views["partition"],),
                "ew-column-similarity": (self.views["tree"], self.views["heatmap"]),
                "ew-column-chain": (self.views["theta"], self.views["traces"]),
            }
        )

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The views."""
        return tuple(self.views.values())

    @property
    def dataset(self) -> Dataset:
        """The data that are being clustered."""
        return self._dataset

    @property
    def settings(self) -> SamplerSettings:
        """The settings of the chain."""
        return self._settings

    @property
    def sampler(self) -> Sampler:
        """The sampler; do not move it while the chain is playing."""
        return cast("Sampler", self.player.source)

    @property
    def recorder(self) -> Recorder:
        """Keeps every iteration."""
        return cast("Recorder", self.player.recorder)

    @property
    def trace(self) -> Trace:
        """The draws so far, without the burn-in; within it, all of them."""
        burn_in = self.player.burn_in
        return self.recorder.trace(burn_in=burn_in if len(self.recorder) > burn_in else 0)

    @property
    def labels(self) -> NDArray[np.intp]:
        """Labels of the last iteration."""
        recorder = self.recorder
        return recorder.labels[-1].astype(np.intp) if len(recorder) else self.sampler.labels

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save data, settings, sampler and draws in one file."""
        Path(path).write_bytes(self.packed())

    def packed(self) -> bytes:
        """Content of the file that `save` writes."""
        self.player.pause()
        self.player.catch_up()  # Where this is a command itself, the pause comes after it.
        settings = {"iterations": self.player.target_iterations, "burn_in": self.player.burn_in}
        return pack_session(Session(self._dataset, self.sampler, self.recorder, settings))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on with what `save` wrote."""
        self._load(Path(path).read_bytes())

    def apply_settings(self) -> None:
        """Start a new chain with the settings that the page shows."""
        try:
            settings = self.panel.read()
        except ValueError:
            return
        self._try_settings(settings)

    def _settings_changed(self) -> None:
        self.panel.arrange()
        try:
            settings = self.panel.read()
        except ValueError:
            return
        if settings == self._settings:
            self.panel.offer(False)
        elif self.player.status.iteration == 0 and not self.player.status.is_running:
            self._try_settings(settings)
        else:
            self.panel.offer(True)

    def _try_settings(self, settings: SamplerSettings) -> None:
        try:
            self._start(self._dataset, settings)
        except (ValueError, TypeError, MemoryError) as error:
            self.panel.fields["model"].problem = str(error)

    def _use_data(self, dataset: Dataset) -> None:
        try:
            settings = self.panel.read()
        except ValueError:
            settings = self._settings
        self._start(dataset, settings)

    def _start(self, dataset: Dataset, settings: SamplerSettings) -> None:
        """Change to a new chain; if it cannot be made, nothing has changed."""
        sampler, notice = settings.make_sampler(dataset)
        self._change(dataset, settings, sampler, Recorder(sampler.posterior, sampler.move_names))
        self.panel.say(notice)

    def _change(
        self, dataset: Dataset, settings: SamplerSettings, sampler: Sampler, recorder: Recorder
    ) -> None:
        self._dataset, self._settings = dataset, settings
        self.panel.fields["model"].problem = ""
        self.panel.offer(False)
        self.player.replace_source(sampler, recorder)
        self._prepare_views()
        self.player.detach(self.page)  # so that it stays the last one
        self.attach(*self.views.values())  # one that was switched off by a fault comes back
        self.player.refresh()

    def _prepare_views(self) -> None:
        posterior = self.sampler.posterior
        self.stage.burn_in = self.player.burn_in
        self.stage.prepare(posterior)
        for view in self.views.values():
            view.prepare(self._dataset, posterior)

    def _run_changed(self) -> None:
        try:
            iterations, burn_in = self.run_panel.read()
        except ValueError:
            return
        self.stage.burn_in = burn_in
        self.player.target_iterations = iterations
        self.player.burn_in = burn_in
        self.player.refresh()

    def _load(self, content: bytes) -> None:
        session = unpack_session(content)
        posterior = session.sampler.posterior
        settings = SamplerSettings(
            model=posterior.model,
            concentration=posterior.concentration,
            alpha=posterior.alpha,
            theta_grid=tuple(posterior.theta_grid.tolist()),
            moves=session.sampler.schedule,
            initial=self._settings.initial,
            metric=session.sampler.metric,
            acceptance=session.sampler.acceptance,
            seed=self._settings.seed,
        )
        self.panel.show(settings)
        self.data_panel.show(session.dataset)
        self.run_panel.show(session.settings["iterations"], session.settings["burn_in"])
        self._run_changed()
        self._change(session.dataset, settings, session.sampler, session.recorder)

    def status_line(self) -> str:
        """Where the chain is, in words."""
        return status_text(self.player.current_frame())

    def caption(self) -> str:
        """Heading of the still picture."""
        return f"{self._dataset.name} · {self.status_line()}"

    def __repr__(self) -> str:
        status = self.player.status
        return (
            f"Explorer({self._dataset.name!r}, model {self._settings.model}, "
            f"iteration {status.iteration} of {status.target})"
        )
