"""Several chains from different starts side by side, and whether they agree.

A lecturer presses Play: the chains start from different partitions, their traces overlap after a while or do
not, and a sentence says what the numbers mean. The slider looks back at what was known earlier.

All chains are played as one, an `Ensemble`, so every frame shows the same iteration of each. Whether they
agree is the verdict of `analysis.convergence`, the same as that of `report()`.
"""

import warnings
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from ewens_widgets.analysis.convergence import Diagnostics
from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.playback import Frame, Player
from ewens_widgets.playback.player import Replay
from ewens_widgets.sampling.archive import same_posterior
from ewens_widgets.sampling.chains.sample import chain_seeds, chain_starts, start_name
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace
from ewens_widgets.views.base import View, assign, note
from ewens_widgets.views.labs.chain_panels import (
    ChainDiagnostics,
    ChainSimilarities,
    ChainsState,
    ChainTraces,
    Ensemble,
)
from ewens_widgets.views.page import STATUS, Dashboard, in_columns
from ewens_widgets.views.transport import Transport, present_button

MOST_CHAINS = 8
_WRONG_NUMBER = f"from 2 to {MOST_CHAINS} chains can be compared; got {{}}."

_Chains = tuple[Dataset, Posterior, tuple[Sampler, ...] | tuple[Replay, ...], list[str]]
"""Data, what is sampled, the chains, and what each started from."""


class _ChainsTransport(Transport):
    """Shows where all chains are, without the last move of the first one."""

    def show(self, frame: Frame) -> None:
        """Show where the chains are."""
        super().show(replace(frame, event=None))


class ChainsView(Dashboard):
    """Several chains side by side: traces, R-hat, effective sample size, similarity, and a plain sentence.

    Given data, it runs the chains in the background of the notebook. Given chains that were sampled, it shows
    them finished; the slider goes through their draws, and Reset and Play show the run again.

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
        First iterations that are dropped. Until the run is twice as long, the first half is dropped.
    initial
        None for dispersed starts in turn (singletons, one cluster, k-means, prior), one start for all chains,
        or a list with one for each.
    seed
        Seed of all chains; each gets its own stream of random numbers.
    speed
        Iterations per frame, or None for full speed.
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
            chosen = _running_chains(source, 4 if chains is None else chains, initial, seed, settings)
            target = 1000 if iterations is None else iterations
            first = min(200, target // 4) if burn_in is None else burn_in
        else:
            options = {"chains": chains, "iterations": iterations, "initial": initial, **settings}
            given = sorted(name for name, value in options.items() if value is not None)
            if given:
                raise TypeError(
                    f"these chains have been run; leave out {', '.join(given)}, or give data instead."
                )
            chosen = _recorded_chains(traces, getattr(source, "starts", ()))
            target, first = min(len(trace) for trace in traces), 0 if burn_in is None else burn_in
        self.dataset, posterior, sources, starts = chosen
        recorders = tuple(DrawTable(posterior, chain.move_names) for chain in sources)
        names = tuple(f"chain {place}{start and f', {start}'}" for place, start in enumerate(starts, start=1))
        self.is_recorded = traces is not None
        self.record = Ensemble(sources, names, recorders, target, first)
        self.player = Player(self.record, recorders[0], target_iterations=target, speed=speed, burn_in=first)
        if self.is_recorded:
            self.player.run_to_end_sync()
        super().__init__(self.player)
        shared = ChainsState(self.record)
        self._diagnostics, self._similarities = ChainDiagnostics(shared), ChainSimilarities(shared)
        self.views: dict[str, View] = {
            "traces": ChainTraces(shared),
            "diagnostics": self._diagnostics,
            "similarities": self._similarities,
        }
        on_more = None if self.is_recorded else self._run_on
        self.transport = _ChainsTransport(self.player, (present_button(),), on_more)
        self.sentence = note("ew-sentence")
        places = ("ew-column-traces", "ew-column-agreement", "ew-column-pictures")
        columns = in_columns({place: (view,) for place, view in zip(places, self.panels, strict=True)})
        self.lay_out(self.transport, self.sentence, columns, names={".ew-sentence": STATUS})
        for view in self.panels:
            view.prepare(self.dataset, posterior)
        self.attach(*self.panels, self, self.transport)

    def _run_on(self, iterations: int) -> None:
        """Go on after the end."""
        self.player.extend(iterations)
        self.record.target += iterations
        self.player.play()

    def show(self, frame: Frame) -> None:
        """Say whether the chains agree at the iteration on display."""
        length, known = len(frame.summary), self._diagnostics.drawn
        # While the chains run, the sentence is about the numbers on display, which are renewed less often.
        if frame.status.is_running and 0 < known < length:
            length = known
        assign(self.sentence, value=escape(self._sentence(length)))

    def _sentence(self, length: int) -> str:
        if length == 0:
            return "Press Play: the chains start from different partitions. Will they agree?"
        return self._agreement(length).sentence(self.record.names)

    def _agreement(self, length: int) -> Diagnostics:
        return replace(self.record.agreement(length), similarity_gap=self._similarities.gap)

    @property
    def agreement(self) -> Diagnostics:
        """How well the chains agree at the iteration on display."""
        self.player.refresh()
        return self._agreement(len(self.player.current_frame().summary))

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The draws so far, without the burn-in; within it, all of them."""
        length = min(map(len, self.record.recorders))
        start = self.player.burn_in if length > self.player.burn_in else 0
        return tuple(recorder.trace()[start:length] for recorder in self.record.recorders)

    def caption(self) -> str:
        """Heading of the still picture: whether the chains agree."""
        return f"{self.dataset.name} · {self._sentence(len(self.player.current_frame().summary))}"

    def __repr__(self) -> str:
        status = self.player.status
        return (
            f"ChainsView({self.dataset.name!r}, {len(self.record.names)} chains, "
            f"iteration {status.iteration} of {status.target})"
        )


def _traces_of(source: Any) -> tuple[Trace, ...] | None:  # noqa: ANN401 - data, chains or traces
    """Traces, if that is what was given: several in a list, or in an object that has them as ``traces``."""
    given = getattr(source, "traces", source)
    if isinstance(given, Trace):
        raise TypeError("one chain cannot be compared with others; give several traces.")
    if not isinstance(given, list | tuple) or not given or not all(isinstance(one, Trace) for one in given):
        return None
    return tuple(given)


def _recorded_chains(traces: tuple[Trace, ...], starts: tuple[str, ...]) -> _Chains:
    """Chains to be looked at again; longer ones are cut to the last draws, as many as the shortest has."""
    if not 2 <= len(traces) <= MOST_CHAINS:
        raise ValueError(_WRONG_NUMBER.format(len(traces)))
    posterior = traces[0].posterior
    if not all(same_posterior(posterior, other.posterior) for other in traces[1:]):
        raise ValueError("only chains on the same data, model and prior can be compared.")
    shortest = min(len(trace) for trace in traces)
    if shortest == 0:
        raise ValueError("one of the chains has no draws; sample some first.")
    dataset = Dataset(X=np.array(posterior.coordinates), name="recorded chains")
    numbers = np.arange(1, shortest + 1)
    columns = [{**trace[len(trace) - shortest :].columns(), "iterations": numbers} for trace in traces]
    replays = tuple(Replay(DrawTable(posterior, traces[0].move_names, each)) for each in columns)
    return dataset, posterior, replays, list(starts if len(starts) == len(traces) else [""] * len(traces))


def _running_chains(
    data: Any,  # noqa: ANN401 - whatever `as_dataset` takes
    chains: int,
    initial: Any,  # noqa: ANN401 - as for the sampler
    seed: int | None,
    settings: dict[str, Any],
) -> _Chains:
    """Chains to be run, each from its own start with its own random numbers."""
    count = check_count("chains", chains, 1)
    if not 2 <= count <= MOST_CHAINS:
        raise ValueError(_WRONG_NUMBER.format(count))
    dataset = as_dataset(data)
    prior = settings.get("prior")
    allows_singletons = not isinstance(prior, PartitionPrior) or prior.most_clusters >= dataset.n_objects
    starts = chain_starts(initial, count, allows_singletons)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        samplers = tuple(
            Sampler(dataset, initial=start, seed=own, **settings)
            for start, own in zip(starts, chain_seeds(seed, count), strict=True)
        )
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        warnings.warn(message, stacklevel=4)  # once, not for each chain
    return dataset, samplers[0].posterior, samplers, [start_name(start) for start in starts]
