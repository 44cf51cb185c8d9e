"""Run until the chains agree, instead of for a number of draws."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf, isfinite

from ewens_widgets.model.checks import check_count

__all__ = ["Check", "Until", "until"]

_FEWEST = 8  # Below that R-hat is not defined.


@dataclass(frozen=True)
class Check:
    """What the chains looked like when they were checked.

    Attributes
    ----------
    draws
        Draws of each chain at that time.
    rhat
        The largest R-hat of the quantities that are followed.
    ess
        The smallest effective sample size, of all chains together.
    reached
        Whether both were as wanted.
    """

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

    def counts(self) -> Iterator[int]:
        """Draws of each chain at which to check: each half as many again as the last, and `most` in the end.

        They depend on the rule alone, so the run stops at the same draw wherever and however it is run.
        """
        count = self.first
        while count < self.most:
            yield count
            count += max(1, count // 2)
        yield self.most

    def judge(self, draws: int, rhat: float, ess: float) -> Check:
        """Compare what was found with what is wanted."""
        return Check(draws, rhat, ess, rhat <= self.rhat and ess >= self.ess)


def until(rhat: float = 1.01, ess: float = 400.0, most: int = 10_000, first: int = 200) -> Until:
    """Stop when the chains agree and their draws are worth enough independent ones.

    Give it to `sample_chains` instead of a number of draws. The chains are checked at fixed numbers of draws:
    `first`, then each time half as many again. Number of clusters, θ, log posterior and size of the largest
    cluster are followed. Needs ArviZ.

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
    largest, start = check_count("most", most, _FEWEST), check_count("first", first, _FEWEST)
    if find_spec("arviz") is None:
        raise ImportError(
            'a stopping rule needs the package arviz: python -m pip install "ewens-widgets[arviz]".'
        )
    return Until(float(rhat), float(ess), largest, min(start, largest))
