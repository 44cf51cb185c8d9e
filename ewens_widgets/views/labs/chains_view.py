"""Several chains from different starts side by side, and whether they agree.

A lecturer presses Play: the chains start apart, their traces run together or do not, and a sentence says in
plain words what the numbers mean. The slider looks back at what was known earlier, when it was too early to
say.

All chains are played as one, an `Ensemble`, so that no chain is ever ahead of the others on display; whether
they agree is the verdict of `analysis.convergence`, the same as that of `report()`.

What the view was given is made into chains here as well: data into samplers from dispersed starts, traces
into replays. That needs no widget, but it is how this view reads its own arguments, with its own limits and
its own words for what it cannot compare.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, cast

import numpy as np
from ipywidgets import HBox
from numpy.typing import ArrayLike

from ewens_widgets.analysis.convergence import Diagnostics
from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.playback import Frame, Player, Source
from ewens_widgets.playback.ensemble import ChainsRecord, Ensemble, TraceReplay
from ewens_widgets.sampling.archive import same_posterior
from ewens_widgets.sampling.chains.sample import chain_seeds, chain_starts, start_name
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace
from ewens_widgets.views.base import Panel, View, assign, note, show_if
from ewens_widgets.views.labs.chain_panels import (
    ChainDiagnostics,
    ChainSimilarities,
    ChainsState,
    ChainTraces,
)
from ewens_widgets.views.page import PROGRESS, STATUS, Dashboard, in_columns
from ewens_widgets.views.transport import Transport

__all__ = ["ChainsView"]

MOST_CHAINS = 8


class _ChainsTransport(Transport):
    """Says where all chains are, and nothing of the first one alone."""

    def show(self, frame: Frame) -> None:
        """Show where the chains are."""
        super().show(replace(frame, event=None))


class ChainsView(Dashboard):
    """Several chains side by side: traces, R-hat, effective sample size, similarity, and a plain sentence.

    Given data, it runs the chains itself, in the background of the notebook. Given chains that were sampled,
    it shows them finished; the slider goes through their draws, and Reset and Play show the run again.

    Parameters
    ----------
    source
        A `Dataset` or an array; what `sample_chains` returned; or a list of traces. By default the unit
        square.
    chains
        Number of chains to run, from 2 to 8.
    iterations
        Iterations of each chain.
    burn_in
        First iterations that do not count. Until the run is twice as long, the later half counts.
    initial
        None for dispersed starts in turn (singletons, one cluster, k-means, prior), one start for all chains,
        or a list with one for each.
    seed
        Seed of all chains; each gets its own stream of random numbers.
    speed
        Iterations a frame, or None for as fast as it goes.
    settings
        Settings of the `Sampler`, such as ``model`` and ``moves``.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> view = ew.ChainsView(ew.datasets.unit_square(seed=0), model="III", iterations=400, burn_in=100)
    >>> view.player.run_to_end_sync()
    >>> view
    ChainsView('unit square', 4 chains, iteration 400 of 400)
    >>> view.agreement.verdict
    'agree'
    """

    css_class = "ew-chains-view ew-fills"
    stylesheet = Path(__file__).with_name("chains_view.css")

    def __init__(
        self,
        source: Any = None,  # noqa: ANN401 - data, chains or traces
        *,
        chains: int | None = None,
        iterations: int | None = None,
        burn_in: int | None = None,
        initial: Any = None,  # noqa: ANN401 - as for the sampler
        seed: int | None = 0,
        speed: float | None = 5.0,
        **settings: Any,  # noqa: ANN401 - passed on
    ) -> None:
        traces = _traces_of(source)
        if traces is None:
            data = cast("Dataset | ArrayLike | None", source)
            self._source = _running_chains(data, 4 if chains is None else chains, initial, seed, settings)
            target = 1000 if iterations is None else iterations
            first = min(200, target // 4) if burn_in is None else burn_in
        else:
            given = {"chains": chains, "iterations": iterations, "initial": initial, **settings}
            _refuse({name: value for name, value in given.items() if value is not None})
            self._source = _recorded_chains(traces, getattr(source, "starts", ()))
            target, first = min(len(trace) for trace in traces), 0 if burn_in is None else burn_in
        self.is_recorded = traces is not None
        ensemble = Ensemble(self._source.chains, self._source.recorders)
        self.record = ChainsRecord(ensemble, self._source.names, target, first)
        self.player = Player(
            ensemble,
            self._source.recorders[0],
            target_iterations=target,
            speed=speed,
            burn_in=first,
        )
        if self.is_recorded:
            self.player.run_to_end_sync()
        super().__init__(self.player)
        shared = ChainsState(self.record)
        self.views: dict[str, View] = {
            "traces": ChainTraces(shared),
            "diagnostics": ChainDiagnostics(shared),
            "similarities": ChainSimilarities(shared),
        }
        self.transport = _ChainsTransport(self.player, on_more=self._run_on)
        if self.is_recorded:
            show_if(self.transport.more, False)
        self.sentence = note("ew-sentence")
        names = {".ew-sentence": STATUS, ".ew-progress": PROGRESS}
        self.lay_out(self.transport, self.sentence, self._columns(), names=names)
        for view in self.views.values():
            view.prepare(self._source.dataset, self._source.posterior)
        self.attach(*self.views.values(), self, self.transport)

    def _run_on(self, iterations: int) -> None:
        """Go on after the end, for so many iterations."""
        self.player.extend(iterations)
        self.record.target += iterations
        self.player.play()

    def _columns(self) -> HBox:
        return in_columns(
            {
                "ew-column-traces": (self.views["traces"],),
                "ew-column-agreement": (self.views["diagnostics"],),
                "ew-column-pictures": (self.views["similarities"],),
            }
        )

    def show(self, frame: Frame) -> None:
        """Say whether the chains agree at the iteration on display."""
        length = len(frame.summary)
        known = cast("ChainDiagnostics", self.views["diagnostics"]).drawn
        # While the chains run, the sentence is about the numbers on display, which are renewed less often.
        if frame.status.is_running and 0 < known < length:
            length = known
        assign(self.sentence, value=escape(self._sentence(length)))

    def _sentence(self, length: int) -> str:
        if length == 0:
            return "Press Play: the chains start from different partitions. Will they come to agree?"
        return self._agreement(length).sentence(self.record.names)

    def _agreement(self, length: int) -> Diagnostics:
        gap = cast("ChainSimilarities", self.views["similarities"]).gap
        return replace(self.record.agreement(length), similarity_gap=gap)

    @property
    def agreement(self) -> Diagnostics:
        """How well the chains agree at the iteration on display."""
        self.player.refresh()
        return self._agreement(len(self.player.current_frame().summary))

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The draws so far, without the burn-in; within it, all of them."""
        length = min(len(recorder) for recorder in self.record.recorders)
        start = self.player.burn_in if length > self.player.burn_in else 0
        return tuple(recorder.trace()[start:length] for recorder in self.record.recorders)

    @property
    def dataset(self) -> Dataset:
        """The data that are being clustered."""
        return self._source.dataset

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Traces, diagnostics and similarities."""
        return tuple(self.views.values())

    def caption(self) -> str:
        """Heading of the still picture: whether the chains agree."""
        return f"{self.dataset.name} · {self._sentence(len(self.player.current_frame().summary))}"

    def __repr__(self) -> str:
        status = self.player.status
        return (
            f"ChainsView({self.dataset.name!r}, {self.record.n_chains} chains, "
            f"iteration {status.iteration} of {status.target})"
        )


def _refuse(given: dict[str, Any]) -> None:
    if given:
        raise TypeError(
            f"these chains have been run; leave out {', '.join(sorted(given))}, or give data instead of "
            "chains."
        )


@dataclass(frozen=True, eq=False)
class _ChainsSource:
    """Chains with a recorder and a name each.

    Attributes
    ----------
    dataset
        Name and columns of the data.
    posterior
        What is sampled.
    chains, recorders, names
        One a chain.
    """

    dataset: Dataset
    posterior: Posterior
    chains: tuple[Source, ...]
    recorders: tuple[DrawTable, ...]
    names: tuple[str, ...]


def _traces_of(source: object) -> tuple[Trace, ...] | None:
    """Traces, if that is what was given: several in a list, or in something that has them as ``traces``."""
    given = getattr(source, "traces", source)
    if isinstance(given, Trace):
        raise TypeError("one chain cannot be compared with others; give several traces.")
    if not isinstance(given, list | tuple) or not given or not all(isinstance(one, Trace) for one in given):
        return None
    return tuple(given)


def _recorded_chains(traces: Sequence[Trace], starts: Sequence[str] = ()) -> _ChainsSource:
    """Chains to be looked at again; longer ones are cut to the last draws, as many as the shortest has."""
    _check_number(len(traces))
    posterior = traces[0].posterior
    if not all(same_posterior(posterior, other.posterior) for other in traces[1:]):
        raise ValueError("only chains on the same data, model and prior can be compared.")
    shortest = min(len(trace) for trace in traces)
    if shortest == 0:
        raise ValueError("one of the chains has no draws; sample some first.")
    replays = tuple(TraceReplay(trace[len(trace) - shortest :]) for trace in traces)
    return _ChainsSource(
        dataset=Dataset(X=np.array(posterior.coordinates), name="recorded chains"),
        posterior=posterior,
        chains=replays,
        recorders=tuple(DrawTable(posterior, replay.move_names) for replay in replays),
        names=_names(starts if len(starts) == len(replays) else [""] * len(replays)),
    )


def _running_chains(
    data: Dataset | ArrayLike | None,
    chains: int,
    initial: Any,  # noqa: ANN401 - as for the sampler
    seed: int | None,
    settings: dict[str, Any],
) -> _ChainsSource:
    """Chains to be run, each from its own start with its own random numbers."""
    count = check_count("chains", chains, 1)
    _check_number(count)
    dataset = as_dataset(data)
    prior = settings.get("prior")
    allows_singletons = not isinstance(prior, PartitionPrior) or prior.most_clusters >= dataset.n_objects
    starts = chain_starts(initial, count, allows_singletons)
    seeds = chain_seeds(seed, count)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        samplers = tuple(
            Sampler(dataset, initial=start, seed=own, **settings)
            for start, own in zip(starts, seeds, strict=True)
        )
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        warnings.warn(message, stacklevel=4)  # once, not for each chain
    return _ChainsSource(
        dataset=dataset,
        posterior=samplers[0].posterior,
        chains=samplers,
        recorders=tuple(DrawTable(sampler.posterior, sampler.move_names) for sampler in samplers),
        names=_names([start_name(start) for start in starts]),
    )


def _check_number(count: int) -> None:
    if not 2 <= count <= MOST_CHAINS:
        raise ValueError(f"from 2 to {MOST_CHAINS} chains can be compared; got {count}.")


def _names(starts: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        f"chain {place}, {start}" if start else f"chain {place}"
        for place, start in enumerate(starts, start=1)
    )
