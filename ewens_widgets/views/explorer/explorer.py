"""The Explorer: choose data and model, run the chain, and watch it.

Handlers of browser messages post to the event loop (see `shared_state`). New settings take effect at once
before the first iteration; later they wait for "Restart with these settings", so that draws
are kept until then. Settings
that cannot be used are explained next to their control, and the running chain is left alone.

The front door shows three settings and three pictures. The panels of the other settings and of exports are
made when they are first opened, or first needed: `run_panel` and `files` make theirs.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, cast

import numpy as np
from ipywidgets import Accordion, Dropdown, HBox, ToggleButton, Widget
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.datasets._frames import is_frame
from ewens_widgets.files import write_atomically
from ewens_widgets.model.posterior import resolve_prior
from ewens_widgets.model.priors.ewens import Concentration, Ewens
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.playback import Player
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.sampling.moves.schedule import SCHEDULES, resolve_schedule
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import Session, pack_session, unpack_session
from ewens_widgets.tables import read_table
from ewens_widgets.views.base import Panel, View, assign, button, look, make, note
from ewens_widgets.views.explorer.data_panel import DataPanel
from ewens_widgets.views.explorer.files_panel import FilesPanel
from ewens_widgets.views.explorer.presets import (
    PAPER_SCHEDULES,
    PRESETS,
    Shown,
    Tour,
    parse_state,
    short_name,
    state_text,
)
from ewens_widgets.views.explorer.settings import (
    INVARIANCES,
    Later,
    RunPanel,
    SamplerSettings,
    SettingsPanel,
)
from ewens_widgets.views.explorer.transform_panel import TransformPanel
from ewens_widgets.views.headline_view import Headline
from ewens_widgets.views.page import Room, in_columns, live_address
from ewens_widgets.views.partition_view import PartitionView
from ewens_widgets.views.programmed import Programmed
from ewens_widgets.views.quantity_views import CountView, ThetaView, TracesView
from ewens_widgets.views.shared_state import HALF, MOST_OBJECTS, Cut, SharedState
from ewens_widgets.views.similarity_views import HeatmapView, TreeView
from ewens_widgets.views.transport import (
    RISING,
    Speed,
    Transport,
    present_button,
    risen_speed,
    status_text,
)


def _code_of(value: object) -> str:
    """The code of an argument; priors are under their public names."""
    return re.sub(r"\b([A-Z]\w+)\(", r"ew.priors.\1(", repr(value)).replace("ew.priors.Gamma(", "ew.Gamma(")


_EXAMPLES = [("choose an example", ""), *((name, name) for name in PRESETS)]
_FRONT = ("partition", "heatmap", "counts")
_RUN = {"iterations": 3000, "burn_in": 500}

Chain = tuple[Dataset, SamplerSettings, Sampler, DrawTable]
"""Data, settings, sampler and draws."""


class Explorer(Programmed):
    """Run a chain and watch it.

    Parameters
    ----------
    data
        A `Dataset`, an array, n objects by d features, or a DataFrame, the columns of which are sorted as by
        `read_table`; the unit square by default.
    model, concentration, alpha, theta_grid, moves, initial, metric, acceptance, seed, shapes, prior, nu_grid
        As for `Sampler`; the page can change them.
    centre
        As for `Sampler`.
    iterations
        Iterations at which playing stops.
    burn_in
        First iterations that averages leave out.
    speed
        Iterations per frame, or None for as fast as possible; ``"rising"`` starts at one and ends at twenty.
    autoplay
        ``"visible"``: play when the Explorer is first seen on a page.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> explorer = ew.Explorer(ew.datasets.unit_square(seed=0), model="I")
    >>> explorer.player.step_sync(10)
    >>> explorer
    Explorer('unit square', model I, iteration 10 of 3000)
    """

    css_class = "ew-fills"

    shared: SharedState
    """What the views share."""

    player: Player
    """Plays the chain."""

    transform: TransformPanel
    """Transforms the data while the chain goes on."""

    def __init__(
        self,
        data: Dataset | ArrayLike | None = None,
        *,
        model: str = "II",
        concentration: Concentration = 1.0,
        alpha: float = 1.0,
        theta_grid: ArrayLike | None = None,
        moves: Any = "default",  # noqa: ANN401 - as for the sampler
        initial: Any = None,  # noqa: ANN401 - as for the sampler
        metric: str = "canonical",
        acceptance: str = "metropolis-hastings",
        seed: int | None = 0,
        shapes: str = "common",
        prior: PartitionPrior | None = None,
        nu_grid: ArrayLike | None = None,
        centre: str = "mean",
        iterations: int = _RUN["iterations"],
        burn_in: int = _RUN["burn_in"],
        speed: Speed = RISING,
        autoplay: str | None = None,
    ) -> None:
        if autoplay not in {None, "visible"}:
            raise ValueError(f'autoplay must be None or "visible"; got {autoplay!r}')
        given = {
            name: value for name, value in locals().items() if name in SamplerSettings.__dataclass_fields__
        }
        settings = SamplerSettings(**{**given, "prior": resolve_prior(prior, concentration)})
        # A frame may have columns of other kinds than numbers: the reader sorts them, and the panel says how.
        dataset = read_table(data) if is_frame(data) else as_dataset(data)
        sampler, notice = settings.make_sampler(dataset)
        self._dataset, self._settings = dataset, settings
        self._is_warm = False
        self.shared = SharedState()
        self.player = Player(
            sampler,
            DrawTable(sampler.posterior, sampler.move_names),
            target_iterations=iterations,
            speed=None if speed is None else risen_speed(0) if speed == RISING else cast("float", speed),
            burn_in=burn_in,
            wants_answer=self.shared.wants_answer,
        )
        self.shared.renew = self.player.refresh
        super().__init__(self.player, self.shared.post)
        self.views: dict[str, View] = {
            "partition": PartitionView(self.shared),
            "tree": TreeView(self.shared),
            "heatmap": HeatmapView(self.shared),
            "counts": CountView(self.shared),
            "theta": ThetaView(self.shared),
            "traces": TracesView(self.shared),
        }
        self._build(settings, dataset, data if is_frame(data) else None)
        self.transport.choose_speed(speed)
        self.panel.say(notice)
        self._prepare_views()
        self.attach(self.shared, *self.views.values(), self.headline, self.transport)
        if autoplay == "visible":
            self.page.on_seen = lambda: self.post(self._begin)
            assign(self.page, announces=True)

    def _make_room(self, room: Room, answer: Callable[[], None]) -> None:
        super()._make_room(room, answer)
        if not self._is_warm and self._dataset.n_objects <= MOST_OBJECTS:
            # A first iteration loads machine code for 0.3 s: while the page is looked at, and not after Play.
            self._is_warm = True
            other, _ = self._settings.make_sampler(self._dataset)
            if other.prepare():
                other.advance(1)

    def _begin(self) -> None:
        """Play, unless somebody has done something before."""
        if self.player.status.iteration == 0:
            self.player.play()

    def _build(self, settings: SamplerSettings, dataset: Dataset, table: Any) -> None:  # noqa: ANN401 - a DataFrame
        post = self.post
        self.title = note("ew-title")
        self.example = make(
            Dropdown,
            "ew-example ew-chooser ew-hides-in-room",
            options=_EXAMPLES,
            tooltip="Data and settings that demonstrate one point; replaces the current chain",
        )
        self.example.observe(
            lambda change: change["new"] and post(lambda: self._show_example(change["new"])), "value"
        )
        self.tour = Tour(self)
        tooltip = "Explains the Explorer in seven captions; your chain comes back when you leave it"
        names = "ew-tour-begin ew-hides-in-room"
        self.tour_button = button("Tour", names, tooltip, lambda: post(self.tour.begin), icon="map-signs")
        toggles = (
            ("ew-pictures", False, "More pictures", "th-large", "Tree, variance ratio, traces and moves"),
            ("ew-hides-in-room", True, "Settings", "sliders", "Show or hide the settings"),
        )
        self.pictures_shown, self.settings_shown = (
            make(ToggleButton, css_class, value=value, description=name, icon=icon, tooltip=tooltip)
            for css_class, value, name, icon, tooltip in toggles
        )
        for toggle in (self.pictures_shown, self.settings_shown):
            toggle.observe(lambda _: post(self._arrange), "value")
        plane = self._partition.plane
        self.transform = TransformPanel(plane, post, self._use_data)
        for chooser in plane.choosers:
            chooser.observe(lambda _: post(self.transform.reset), "value")
        self.transport = Transport(self.player, on_more=lambda more: post(lambda: self._run_on(more)))
        self.headline = Headline(self.shared)
        self.panel = SettingsPanel(
            settings, lambda: post(self._settings_changed), lambda: post(self.apply_settings)
        )
        self.data_panel = DataPanel(dataset, post, self._use_data, table)
        player, panel = self.player, self.panel
        self._run = Later(
            lambda: RunPanel(player.target_iterations, player.burn_in, lambda: post(self._run_changed))
        )
        self._files = Later(lambda: FilesPanel(self, self._load))
        more = {"Moves": panel.moves_box, "Run": self._run, "Shapes and grids": panel.model_box.more}
        self.more = Later(lambda: self._sections(more))
        self.sections = self._sections({"More settings": self.more, "Save and export": self._files})
        settings_column = self.data_panel, panel.model_box, panel.apply, panel.notice, self.sections
        pictures = {f"ew-column-{name}": () for name in ("partition", "similarity", "chain")}
        self.columns = in_columns({"ew-settings": settings_column, **pictures}, "ew-explorer-columns")
        others = self.example, self.tour_button, self.pictures_shown, self.settings_shown, present_button()
        front = HBox((self.title, *others), **look("ew-title-row"))
        self._arrange()
        self.lay_out(front, self.tour, self.transport, self.headline, self.columns)

    def _sections(self, boxes: Mapping[str, Widget]) -> Accordion:
        """Closed sections; the content of some is made when they are opened."""
        made = Accordion(tuple(boxes.values()), titles=tuple(boxes), selected_index=None, **look())

        def open_section(change: dict[str, Any]) -> None:
            if change["new"] is not None and isinstance(box := made.children[change["new"]], Later):
                self.post(lambda: box.content)

        made.observe(open_section, "selected_index")
        return made

    @property
    def run_panel(self) -> RunPanel:
        """Iterations and burn-in."""
        return self._run.content

    @property
    def files(self) -> FilesPanel:
        """Saving, loading and exporting."""
        return self._files.content

    def _show_example(self, name: str) -> None:
        """Change to an example; the menu returns to its start, so that the same one can be chosen again."""
        self.use_preset(name)
        self._name(f"example: {name}", PRESETS[name].sentence)

    def _name(self, example: str = _EXAMPLES[0][0], sentence: str = "") -> None:
        """Write the title: data, model, invariance, and what to look for in an example."""
        assign(self.example, options=[(example, ""), *_EXAMPLES[1:]], value="")
        data, settings = self._dataset, self._settings
        model = f"model {settings.model}{', own shapes' if settings.shapes == 'own' else ''}"
        parts = f"{data.counted(data.n_objects)}", model, f"invariant to {INVARIANCES[settings.model]}"
        aside = f'<div class="ew-aside">{escape(sentence)}</div>' if sentence else ""
        assign(self.title, value=f"<b>{escape(data.name)}</b> · {escape(' · '.join(parts))}{aside}")

    def _run_on(self, iterations: int) -> None:
        """Continue a finished run for some more iterations."""
        target = self.player.target_iterations + iterations
        self.run_panel.show(target, self.player.burn_in)
        self.player.target_iterations = target
        self.player.play()

    def _arrange(self) -> None:
        """Show or hide the settings, and the pictures beyond the first three."""
        all_shown, views = self.pictures_shown.value, self.views
        hidden = {"ew-closed": not self.settings_shown.value, "ew-plain": not all_shown}
        for name, is_so in hidden.items():
            (self.add_class if is_so else self.remove_class)(name)
        # What is not seen is not on the page: bqplot cannot draw a figure without a size.
        shown = {1: ("partition",), 2: ("tree", "heatmap"), 3: ("counts", "theta", "traces")}
        for place, names in shown.items():
            chosen = names if all_shown else [name for name in names if name in _FRONT]
            # Where there is room: beside three pictures below the bars, otherwise below the points.
            more = (self.transform,) if place == (1 if all_shown else 3) else ()
            assign(self.columns.children[place], children=(*(views[name] for name in chosen), *more))
            for name in names:
                views[name].is_seen = name in chosen
                views[name].redraw()

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The views."""
        return tuple(self.views.values())

    @property
    def settings(self) -> SamplerSettings:
        """The settings of the chain."""
        return self._settings

    @property
    def sampler(self) -> Sampler:
        """The sampler; do not call it while the chain runs."""
        return cast("Sampler", self.player.source)

    @property
    def recorder(self) -> DrawTable:
        """Keeps every iteration."""
        return self.player.recorder

    @property
    def labels(self) -> NDArray[np.intp]:
        """Labels of the last iteration."""
        recorder = self.recorder
        return recorder.labels[-1].astype(np.intp) if len(recorder) else self.sampler.labels

    @classmethod
    def from_preset(
        cls,
        preset: str,
        data: Dataset | ArrayLike | None = None,
        **arguments: Any,  # noqa: ANN401 - as for the constructor
    ) -> "Explorer":
        """Make an Explorer from the name of an example, or from a short text.

        Parameters
        ----------
        preset
            A name, such as ``"the moons"``, or a text like ``"data=moons&model=II&seed=0&cut=2"``.
        data
            The data, where the text does not name any.
        arguments
            Arguments of the constructor; they replace those of the preset.
        """
        given, shown = parse_state(preset)
        explorer = cls(**{"data": data, **given, **arguments})
        explorer.show_state(shown)
        return explorer

    def use_preset(self, preset: str) -> None:
        """Change to an example, or to a state given as a short text; this replaces the current chain."""
        given, shown = parse_state(preset)
        data = given.pop("data", self._dataset)
        run = {name: given.pop(name, length) for name, length in _RUN.items()}
        speed = given.pop("speed", self.transport.speed.value)
        settings = SamplerSettings(**given)
        sampler, notice = settings.make_sampler(data)
        draws = DrawTable(sampler.posterior, sampler.move_names)
        self._show_chain((data, settings, sampler, draws), (run["iterations"], run["burn_in"]), shown)
        self.panel.say(notice)
        self.transport.choose_speed(speed)

    def _show_chain(self, chain: Chain, run: tuple[int, int], shown: Shown) -> None:
        """Show another chain, its data and settings, and its iterations and burn-in, in this way."""
        # The burn-in first: the answer of these draws depends on it.
        self.run_panel.show(*run)
        self._run_changed()
        self._change(*chain)
        dataset, settings, *_ = chain
        self.panel.show(settings)
        self.data_panel.show(dataset)
        self.show_state(shown)

    @property
    def shown(self) -> Shown:
        """What is on display."""
        shared, cut = self.shared, self.shared.cut
        x, y = (str(chooser.value) for chooser in self._partition.plane.choosers)
        return Shown(
            colours=shared.colouring,
            tree=shared.live_tree.method,
            cut=cut.n_clusters,
            height=None if cut.height == HALF else cut.height,
            least=cut.min_size,
            x=x,
            y=y,
            heatmap=cast("HeatmapView", self.views["heatmap"]).colours.value,
            numbers=shared.numbers,
            ringed=self._partition.follows,
            ellipses=self._partition.ellipses.value,
        )

    def remember(self) -> Callable[[], None]:
        """Keep what is there now; return a function that brings it back."""
        self.player.pause()
        before = self._dataset, self._settings, self.sampler, self.recorder
        shown, speed, pictures = self.shown, self.transport.speed.value, self.pictures_shown.value
        run = self.player.target_iterations, self.player.burn_in

        def restore() -> None:
            self.player.pause()
            self.transport.choose_speed(speed)
            self.pictures_shown.value = pictures
            self._show_chain(before, run, shown)

        return restore

    def show_state(self, shown: Shown) -> None:
        """Show the chain in this way; axes that the data do not have are ignored."""
        height = HALF if shown.cut is None and shown.height is None else shown.height
        cut = Cut(n_clusters=shown.cut, height=height, min_size=shown.least)
        iteration = self.player.status.iteration
        self.shared.restore(shown.colours, shown.tree, cut, shown.numbers, iteration)
        if shown.ringed:
            self._partition.follow(iteration)
        self._partition.ellipses.value = shown.ellipses
        self._partition.plane.choose(shown.x, shown.y)
        heatmap = cast("HeatmapView", self.views["heatmap"])
        if shown.heatmap in heatmap.colours.options:
            heatmap.colours.value = shown.heatmap
        if self.shared.wants_answer():
            self.player.refresh()
        else:
            self.shared.changed()

    @property
    def _partition(self) -> PartitionView:
        return cast("PartitionView", self.views["partition"])

    def _arguments(self) -> dict[str, Any]:
        """Arguments that differ from the defaults, by name; data and moves by their short names."""
        default, settings = SamplerSettings(), self._settings
        names = ("model", "shapes", "prior", "alpha", "initial", "metric", "acceptance", "seed", "centre")
        values = {name: getattr(settings, name) for name in names}
        given = {name: value for name, value in values.items() if value != getattr(default, name)}
        if isinstance(given.get("prior"), Ewens):
            given["concentration"] = given.pop("prior").concentration
        given["model"] = settings.model
        data = short_name(self._dataset)
        known = {name: resolve_schedule(name, settings.shapes) for name in SCHEDULES}
        known |= PAPER_SCHEDULES if data else {}
        moves = next((name for name, schedule in known.items() if schedule == settings.moves), None)
        extra = {"data": data} | ({} if moves in {None, "default"} else {"moves": moves})
        run = {"iterations": self.player.target_iterations, "burn_in": self.player.burn_in}
        given |= {name: value for name, value in run.items() if value != _RUN[name]}
        return {**{name: value for name, value in extra.items() if value is not None}, **given}

    @property
    def state(self) -> str:
        """The state as a short text, like ``"data=moons&model=II&cut=2"``."""
        return state_text(self._arguments(), replace(self.shown, x=None, y=None))

    @property
    def python(self) -> str:
        """Code that makes this explorer again; data of your own are called ``data`` there."""
        lines = ["import ewens_widgets as ew", ""]
        arguments = self._arguments()
        if "data" in arguments:
            lines.append(f"explorer = ew.Explorer.from_preset({self.state!r})")
        else:
            text = "".join(f", {name}={_code_of(value)}" for name, value in arguments.items())
            lines.append(f"explorer = ew.Explorer(data{text})")
        return "\n".join([*lines, "explorer", ""])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save data, settings, sampler and draws in one file."""
        write_atomically(path, self.packed())

    def packed(self) -> bytes:
        """Content of the file that `save` writes."""
        self.player.pause(wait=True)
        run = {"iterations": self.player.target_iterations, "burn_in": self.player.burn_in}
        chosen = {"initial": self._settings.initial, "seed": self._settings.seed}
        settings = {**run, **chosen, "shown": self.shown.plain()}
        return pack_session(Session(self._dataset, self.sampler, self.recorder, settings))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue from a file that `save` wrote."""
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
            assign(self.panel.apply, disabled=True)
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
            self.panel.blame(str(error))

    def _use_data(self, dataset: Dataset) -> None:
        try:
            settings = self.panel.read()
        except ValueError:
            settings = self._settings
        self._start(dataset, settings)

    def _start(self, dataset: Dataset, settings: SamplerSettings) -> None:
        """Change to a new chain; if it cannot be made, the current one stays."""
        sampler, notice = settings.make_sampler(dataset)
        self._change(dataset, settings, sampler, DrawTable(sampler.posterior, sampler.move_names))
        self.panel.say(notice)

    def _change(
        self, dataset: Dataset, settings: SamplerSettings, sampler: Sampler, recorder: DrawTable
    ) -> None:
        self._dataset, self._settings = dataset, settings
        self.panel.blame("")
        self.panel.offer(False)
        self.player.replace_source(sampler, recorder)
        self._prepare_views()
        self.player.detach(self.page)  # so that it stays the last one
        # One that was switched off by a fault comes back.
        self.attach(self.shared, *self.views.values(), self.headline)
        self.player.refresh()

    def _prepare_views(self) -> None:
        posterior = self.sampler.posterior
        self.shared.burn_in = self.player.burn_in
        self.shared.prepare(posterior, self._dataset.labels)
        self.headline.prepare(self._dataset)
        self._name()
        for view in self.views.values():
            view.prepare(self._dataset, posterior)
        self.transform.prepare(self._dataset, self._settings)

    def _run_changed(self) -> None:
        try:
            iterations, burn_in = self.run_panel.read()
        except ValueError:
            return
        self.shared.burn_in = burn_in
        self.player.target_iterations = iterations
        self.player.burn_in = burn_in
        self.player.refresh()

    def _load(self, content: bytes) -> None:
        session = unpack_session(content)
        shown = Shown.of_plain(session.settings.get("shown"))
        sampler, posterior = session.sampler, session.sampler.posterior
        kept = ("model", "shapes", "prior", "alpha", "theta_grid", "centre")
        settings = SamplerSettings(
            **{name: getattr(posterior, name) for name in kept},
            nu_grid=posterior.nu_grid if posterior.shapes == "own" else None,
            moves=sampler.schedule,
            metric=sampler.metric,
            acceptance=sampler.acceptance,
            **{name: session.settings[name] for name in ("initial", "seed")},
        )
        run = session.settings["iterations"], session.settings["burn_in"]
        self._show_chain((session.dataset, settings, sampler, session.draws), run, shown)

    def picture(self, kind: str = "png") -> bytes:
        """Static picture of what is on display, with the answer if it is on its way."""
        self.player.complete()
        return super().picture(kind)

    def status_line(self) -> str:
        """Where the chain is, in words."""
        return status_text(self.player.current_frame())

    def elsewhere(self) -> str:
        """Say where it can be seen alive, in the same state if that has a short text."""
        if "data" not in self._arguments():  # data of your own have no short name
            return super().elsewhere()
        address = escape(live_address(self.state))
        return f'<a href="{address}">Open it in this state in your browser</a>, or use JupyterLab.'

    def caption(self) -> str:
        """Heading of the still picture."""
        frame = self.player.current_frame()
        parts = self.headline.text(frame), self.headline.aside(frame), self.status_line()
        return "\n".join([f"{self._dataset.name} · {parts[0]}", *filter(None, parts[1:])])

    def close(self) -> None:
        """Stop the chain and the comparison, and close the page."""
        if hasattr(self, "transform"):
            self.transform.worker.close()
        super().close()

    def __repr__(self) -> str:
        status = self.player.status
        return (
            f"Explorer({self._dataset.name!r}, model {self._settings.model}, "
            f"iteration {status.iteration} of {status.target})"
        )
