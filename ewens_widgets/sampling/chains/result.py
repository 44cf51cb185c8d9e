"""The draws of several chains, the rule that stops them, and the one file that they are saved in."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from ewens_widgets.arguments import check_count
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling import archive
from ewens_widgets.sampling.trace import Trace, facts_table, pack_draws, trace_facts, unpack_draws

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ewens_widgets.analysis.convergence import Diagnostics
    from ewens_widgets.analysis.report import Report
    from ewens_widgets.datasets import Dataset


_KIND = "chains"
_FEWEST = 8  # Draws; below that R-hat is not defined.


@dataclass(frozen=True)
class Check:
    """A check of a stopping rule: draws of each chain, largest R-hat, smallest effective sample size."""

    draws: int
    rhat: float
    ess: float
    reached: bool


@dataclass(frozen=True)
class Until:
    """A stopping rule; made by `until`."""

    rhat: float
    ess: float
    most: int
    first: int
    drop_half: bool = False

    def counts(self) -> Iterator[int]:
        """Draws of each chain at which to check: each half as many again as the last, and `most` in the end.

        They depend on the rule alone, so the run stops at the same draw wherever and however it is run.
        """
        count = self.first
        while count < self.most:
            yield count
            count += max(1, count // 2)
        yield self.most


def until(
    rhat: float = 1.01, ess: float = 400.0, most: int = 10_000, first: int = 200, drop_half: bool = False
) -> Until:
    """Stop when the chains agree and their effective sample size is large enough.

    Give it to `sample_chains` instead of a number of draws. The chains are checked at fixed numbers of draws:
    `first`, then each time half as many again. The rule follows the number of clusters, θ, the log posterior
    and the size of the largest cluster, and λ and ν where they are sampled.

    Parameters
    ----------
    rhat
        The largest R-hat that is good enough.
    ess
        The smallest effective sample size that is good enough, of all chains together, bulk and tail.
    most
        Draws of each chain at which to stop in any case; the result says whether the rule was met.
    first
        Draws of each chain at the first check.
    drop_half
        Drop the first half of the draws at each check and at the end: a burn-in as long as the run needs.
        `most` and `first` count these draws too. Use it with ``burn_in=0``.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> rule = ew.until(rhat=1.05, ess=100, most=2000)
    >>> list(rule.counts())
    [200, 300, 450, 675, 1012, 1518, 2000]
    """
    if not 1.0 < rhat < inf:
        raise ValueError(f"rhat must be above 1, as chains never agree completely; got {rhat!r}.")
    if not (ess > 0.0 and isfinite(ess)):
        raise ValueError(f"ess must be a positive number; got {ess!r}.")
    fewest = 2 * _FEWEST if drop_half else _FEWEST
    largest, start = check_count("most", most, fewest), check_count("first", first, fewest)
    return Until(float(rhat), float(ess), largest, min(start, largest), bool(drop_half))


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Traces of several chains on one posterior.

    ``len(chains)`` is their number, ``chains[0]`` the trace of the first, and a loop goes over the traces.

    Attributes
    ----------
    traces
        One trace a chain.
    starts
        What each chain started from, e.g. ``"singletons"``; empty where it is not known.
    reached
        Whether the stopping rule was met; None where a number of draws was asked for.
    checks
        What the stopping rule saw, check by check.
    """

    traces: tuple[Trace, ...]
    starts: tuple[str, ...] = ()
    reached: bool | None = None
    checks: tuple[Check, ...] = ()
    _diagnostics: "dict[bool, Diagnostics]" = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Take any sequence of traces."""
        object.__setattr__(self, "traces", tuple(self.traces))
        if not all(isinstance(trace, Trace) for trace in self.traces):
            raise TypeError("chains are made of traces, one a chain.")

    def __len__(self) -> int:
        return len(self.traces)

    def __getitem__(self, number: SupportsIndex) -> Trace:
        wanted: object = number
        if not isinstance(wanted, SupportsIndex):
            raise TypeError(
                f"chains are taken one by one, as in chains[0], not by {wanted!r}; to drop draws, cut each "
                "trace: [trace[500:] for trace in chains]."
            )
        return self.traces[number]

    def __iter__(self) -> Iterator[Trace]:
        return iter(self.traces)

    @property
    def posterior(self) -> Posterior:
        """The posterior that was sampled."""
        return self._present()[0].posterior

    @property
    def draws(self) -> int:
        """Draws of each chain; of the shortest, where a run was interrupted."""
        return min((len(trace) for trace in self.traces), default=0)

    def diagnostics(self, similarity: bool = True) -> "Diagnostics":
        """R-hat, effective sample sizes, acceptance and, unless left out, how far similarities differ."""
        from ewens_widgets.analysis.convergence import diagnose

        if similarity not in self._diagnostics:
            self._diagnostics[similarity] = diagnose(self._present(), similarity=similarity)
        return self._diagnostics[similarity]

    def rhat(self) -> Mapping[str, float]:
        """R-hat by quantity: near 1 where the chains agree; NaN for a quantity that never changes."""
        return self.diagnostics(similarity=False).rhat

    def ess(self, kind: str = "bulk") -> Mapping[str, float]:
        """Effective sample size by quantity, of all chains together: ``"bulk"`` or ``"tail"``."""
        if kind not in {"bulk", "tail"}:
            raise ValueError(f'kind must be "bulk" or "tail"; got {kind!r}.')
        numbers = self.diagnostics(similarity=False)
        return numbers.ess_bulk if kind == "bulk" else numbers.ess_tail

    def pooled(self) -> Trace:
        """All draws in one trace, chain after chain."""
        return self._pooled

    def report(self, data: "ArrayLike | Dataset | None" = None) -> "Report":
        """Say in plain words whether to trust this run and its clusters, and what to change.

        Given the `data` that were clustered, it says more about their columns; see `Trace.check`.
        """
        return self.pooled().report(data)

    def to_arviz(self, data: Any = None) -> Any:  # noqa: ANN401 - its type depends on the version of ArviZ
        """Export to ArviZ, a chain each: `InferenceData` before ArviZ 1.0, a `DataTree` from then on."""
        from ewens_widgets.analysis.export import to_arviz

        return to_arviz(self.traces, data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save all chains in one checked file, without pickle."""
        settings, arrays = archive.pack_posterior(self.posterior)
        stored = archive.prefixed("posterior", arrays)
        for number, trace in enumerate(self):
            stored |= archive.prefixed(str(number), pack_draws(trace)[1])
        # R-hat may be infinite, which JSON does not know.
        checks = [
            {**asdict(check), "rhat": check.rhat.hex(), "ess": check.ess.hex()} for check in self.checks
        ]
        metadata = {
            "posterior": settings,
            "moves": [list(trace.move_names) for trace in self],
            "starts": list(self.starts),
            "reached": self.reached,
            "checks": checks,
        }
        archive.write_archive(path, _KIND, metadata, stored)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Chains":
        """Load what `save` wrote, or what a checkpoint holds so far; a damaged file is refused."""
        if Path(path).is_dir():
            from ewens_widgets.sampling.chains.checkpoint import Checkpoint

            return Checkpoint.open(path).chains()
        metadata, arrays = archive.read_archive(path, _KIND)
        with archive.refused(f"{str(path)!r} does not hold complete chains"):
            posterior = archive.unpack_posterior(metadata["posterior"], archive.under("posterior", arrays))
            traces = [
                unpack_draws({"moves": moves}, archive.under(str(number), arrays), posterior)
                for number, moves in enumerate(metadata["moves"])
            ]
            checks = [
                Check(**{**each, "rhat": float.fromhex(each["rhat"]), "ess": float.fromhex(each["ess"])})
                for each in metadata["checks"]
            ]
            return cls(tuple(traces), tuple(metadata["starts"]), metadata["reached"], tuple(checks))

    def __repr__(self) -> str:
        return "Chains(" + ", ".join(f"{name}: {value}" for name, value in self._facts()) + ")"

    def _repr_html_(self) -> str:
        return facts_table("Chains", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        lengths = {len(trace) for trace in self.traces}
        each = str(self.draws) if len(lengths) < 2 else f"{min(lengths)} to {max(lengths)}"
        facts = [("chains", str(len(self))), ("draws of each", each)]
        if self.starts:
            facts.append(("starts", ", ".join(dict.fromkeys(self.starts))))
        if self.reached is not None:
            facts.append(("stopping rule", "met" if self.reached else "not met"))
        if self.traces:
            about = dict(trace_facts(self.pooled()))
            facts += [(name, value) for name, value in about.items() if name not in {"draws", "iterations"}]
        return facts

    @cached_property
    def _pooled(self) -> Trace:
        traces = self._present()
        return traces[0] if len(traces) == 1 else Trace.concatenate(traces)

    def _present(self) -> tuple[Trace, ...]:
        if not self.traces:
            raise ValueError("there are no chains; sample some.")
        return self.traces


class ChainsError(RuntimeError):
    """A run of several chains could not be finished; `chains` has the draws of all chains so far."""

    def __init__(self, message: str, chains: Chains | None = None) -> None:
        super().__init__(message)
        self.chains = chains
