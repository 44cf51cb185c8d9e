r"""R-hat and effective sample size without ArviZ: quick enough to follow a run while it is going on.

Both follow Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021): chains are split into halves, all values are
replaced by normal scores of their ranks, and then, with m half chains of n draws each, within-chain variance
W and variance of the chain means B/n,

.. math::

    \hat R = \sqrt{\frac{(n-1)/n \cdot W + B/n}{W}}, \qquad
    \text{ESS} = \frac{mn}{-1 + 2 \sum_k P_k}, \qquad P_k = \rho_{2k} + \rho_{2k+1} .

R-hat is the larger of those of the values and of their distances from the median. The pairs :math:`P_k` of
autocorrelations of all chains together are summed as long as they are positive, none larger than the one
before it (Geyer's initial monotone sequence). `analysis.diagnostics` has more, and takes it from ArviZ.
"""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from ewens_widgets.model.checks import FloatArray

__all__ = ["FEWEST_DRAWS", "bulk_ess", "rhat"]

FEWEST_DRAWS = 10
"""Draws of each chain below which nothing can be said: half chains need some."""


def rhat(values: FloatArray) -> float:
    """R-hat of several chains, one a row: NaN where nothing changes, infinite where all are stuck apart."""
    if np.ptp(values) == 0.0:
        return float("nan")
    if np.all(np.ptp(values, axis=1) == 0.0):
        return float("inf")
    halves = _halves(values)
    found = max(_plain_rhat(_scores(halves)), _plain_rhat(_scores(np.abs(halves - np.median(halves)))))
    if not np.isfinite(found):
        found = _plain_rhat(halves)
    return found if np.isfinite(found) else float("inf")


def bulk_ess(values: FloatArray) -> float:
    """Effective sample size of several chains together, one a row; all draws where nothing ever changes."""
    if np.ptp(values) == 0.0:
        return float(values.size)
    scores = _scores(_halves(values))
    n_chains, n_draws = scores.shape
    covariances = _autocovariances(scores).mean(axis=0)
    within = covariances[0] * n_draws / (n_draws - 1.0)
    pooled = covariances[0] + float(np.var(scores.mean(axis=1), ddof=1))
    correlations = 1.0 - (within - covariances) / pooled
    correlations[0] = 1.0
    pairs = correlations[: 2 * (n_draws // 2)].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    # The last lags rest on too few products; ArviZ leaves out as many.
    end = min(int(ends[0]) if ends.size else pairs.size, (n_draws - 3) // 2)
    kept = np.minimum.accumulate(pairs[:end])
    # Of the first pair that is left out, the even half counts once; a negative one only if the pair is not.
    rest = float(correlations[2 * end])
    if pairs[end] < 0.0:
        rest = max(rest, 0.0)
    time = -1.0 + 2.0 * float(kept.sum()) + rest
    most = n_chains * n_draws
    return float(most / max(time, 1.0 / np.log10(most)))


def _halves(values: FloatArray) -> FloatArray:
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _scores(values: FloatArray) -> FloatArray:
    """Normal scores of the ranks of all values together."""
    ranks = rankdata(values).reshape(values.shape)
    return np.asarray(ndtri((ranks - 0.375) / (values.size + 0.25)), dtype=np.float64)


def _plain_rhat(values: FloatArray) -> float:
    n_draws = values.shape[1]
    within = float(values.var(axis=1, ddof=1).mean())
    between = float(values.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return float("nan")
    return float(np.sqrt((n_draws - 1.0) / n_draws + between / within))


def _autocovariances(values: FloatArray) -> FloatArray:
    """Autocovariances of each chain at all lags, by Fourier transform."""
    n_draws = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    size = 1 << (2 * n_draws - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    products = np.fft.irfft(spectrum * np.conj(spectrum), size, axis=1)[:, :n_draws]
    return np.asarray(products / n_draws, dtype=np.float64)
