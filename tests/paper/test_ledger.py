"""Every row of docs/paper.md: its targets exist, and the numbers of its corrections are computed here."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from sampling.by_hand import split_merge_proposals as proposals_by_hand
from sampling.exact import FIVE, make_space, metropolis, split_merge_proposals
from scipy.stats import norm

import ewens_widgets as ew
from ewens_widgets.paper.moves.distances import WITHIN
from ewens_widgets.partition import all_partitions

SQUARE = ew.datasets.unit_square(seed=0)
ONE = np.zeros(80, dtype=int)
GRID = 2.0 ** np.arange(-3, 11)
ONLY_SPLITS = {"probabilities": (1.0, 0.0, 0.0)}


@pytest.fixture(scope="module")
def rows(repository: Path) -> list[list[str]]:
    text = (repository / "docs" / "paper.md").read_text(encoding="utf-8")
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    found = [[cell.strip() for cell in cells] for cells in lines]
    return [cells for cells in found if cells[0] not in ("paper", "printed")]


def resolve(name: str) -> object:
    """The object of a dotted name; the package may be called ew."""
    first, *rest = name.split(".")
    found: object = importlib.import_module("ewens_widgets" if first == "ew" else first)
    path = "ewens_widgets"
    for part in rest:
        path += f".{part}"
        found = getattr(found, part) if hasattr(found, part) else importlib.import_module(path)
    return found


def faults(cells: list[str], repository: Path) -> list[str]:
    """What a row names that is not there, and what it should name."""
    text, wrong = " | ".join(cells), []
    for name in re.findall(r"`((?:ew|ewens_widgets)\.[\w.]+)`", text):
        try:
            resolve(name)
        except (AttributeError, ImportError):
            wrong.append(name)
    tests = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", cells[-1])
    tests += [("tests/paper/test_ledger.py", name) for name in re.findall(r"`(test_\w+)`", cells[-1])]
    for file, name in tests:
        path = repository / file
        if not path.is_file() or (name and f"def {name}(" not in path.read_text(encoding="utf-8")):
            wrong.append(f"{file} {name}")
    return wrong if tests else [*wrong, "no test"]


def test_every_row_names_what_exists(rows: list[list[str]], repository: Path) -> None:
    assert len(rows) >= 40
    assert {len(cells) for cells in rows} == {3, 4, 5}
    assert [(cells[0], faults(cells, repository)) for cells in rows if faults(cells, repository)] == []


@pytest.mark.parametrize(
    "cells",
    [["a", "`ew.nothing`", "`test_two_paths_lead_to_a_core_jump`"], ["a", "`test_no_such`"], ["a", "b"]],
)
def test_a_row_that_leads_nowhere_is_seen(cells: list[str], repository: Path) -> None:
    assert len(faults(cells, repository)) == 1


def gain(X: np.ndarray, labels: np.ndarray, model: str, theta: float = 16.0) -> float:
    """Log likelihood of a partition over that of one cluster."""
    return ew.log_likelihood(X, labels, theta, model) - ew.log_likelihood(X, ONE, theta, model)


def test_the_printed_ratio_fails_in_both_directions() -> None:
    stays = ew.paper.run("unit-square-1", "as-printed", seeds=1)
    assert stays.n_clusters[0] > 79.9
    merges = ew.paper.run("half-moons-2", "as-printed", seeds=4)
    corrected = ew.paper.run("half-moons-2", "metropolis-hastings", seeds=4)
    assert merges.n_clusters.max() < 10
    assert corrected.n_clusters.min() > 20
    assert merges.errors.mean() < corrected.errors.mean()


def test_the_printed_chain_has_another_limit() -> None:
    space = make_space(FIVE, "I", 1.0, [16.0])
    target, proposals = space.target(0), split_merge_proposals(space, ew.moves.SplitMerge())
    distances = {}
    for acceptance in ("right", "printed"):
        matrix = metropolis(proposals, target, acceptance)
        values, vectors = np.linalg.eig(matrix.T)
        limit = np.real(vectors[:, np.argmax(values.real)])
        limit /= limit.sum()
        distances[acceptance] = np.abs(limit - target).sum() / 2
    assert distances["right"] < 1e-9
    assert distances["printed"] == pytest.approx(0.55, abs=0.005)


def test_members_favour_the_nearer_core() -> None:
    # Cores at 0 and 10, and a member at 1.
    line = np.array([[0.0], [10.0], [1.0]])
    side = {
        favour: proposals_by_hand(line, (0, 0, 0), core_jump=0.0, favour=favour, **ONLY_SPLITS)
        for favour in ("nearer", "farther")
    }
    assert side["nearer"][0, 1, 0] == pytest.approx(0.9)
    assert side["farther"][0, 1, 0] == pytest.approx(0.1)


def test_two_paths_lead_to_a_core_jump() -> None:
    whole = (0,) * 5
    for paths in (1, 2):
        total = sum(proposals_by_hand(FIVE, whole, core_jump=0.3, paths=paths).values())
        assert (abs(total - 1.0) < 1e-12) == (paths == 2)
        assert total <= 1.0 + 1e-12


def test_a_core_jump_keeps_a_pair_together() -> None:
    proposals = proposals_by_hand(FIVE[:2], (0, 0), **ONLY_SPLITS)
    assert proposals == pytest.approx({(0, 1): 0.99, (0, 0): 0.01})
    space = make_space(FIVE[:2], "I")
    found = split_merge_proposals(space, ew.moves.SplitMerge())
    assert found[space.index[0, 0], space.index[0, 1]] == pytest.approx(0.475 * 0.99)
    assert found[space.index[0, 1], space.index[0, 0]] == pytest.approx(0.475)


def test_a_quarter_is_a_standard_deviation() -> None:
    for deviation, share in ((0.25, 0.045), (0.5, 0.292)):
        assert 1 - norm.cdf(0.5 / deviation) ** 2 == pytest.approx(share, abs=5e-4)


def test_model_two_is_not_invariant_to_rotations() -> None:
    A = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2.0)
    np.testing.assert_allclose(A.T @ A, np.eye(2), atol=1e-15)
    left = (SQUARE.labels >= 2).astype(int)
    assert gain(SQUARE.X @ A, left, "II") - gain(SQUARE.X, left, "II") == pytest.approx(-25.7, abs=0.05)
    swapped = np.array([[0.0, 3.0], [0.5, 0.0]])
    assert gain(SQUARE.X @ swapped, left, "II") == pytest.approx(gain(SQUARE.X, left, "II"), abs=1e-9)


def mahalanobis(X: np.ndarray) -> np.ndarray:
    gaps = X[:, None] - X[None]
    return np.einsum("ijr,rs,ijs->ij", gaps, np.linalg.inv(np.cov(X.T)), gaps)


def test_mahalanobis_distances_do_not_determine_model_one() -> None:
    sheared = ew.datasets.unit_square("III", seed=0)
    np.testing.assert_allclose(mahalanobis(sheared.X), mahalanobis(SQUARE.X), rtol=1e-9, atol=1e-9)
    gains = [gain(data.X, data.labels, "I") for data in (SQUARE, sheared)]
    np.testing.assert_allclose(gains, [115.3, 111.5], atol=0.05)
    assert gain(sheared.X, SQUARE.labels, "III") == pytest.approx(gain(SQUARE.X, SQUARE.labels, "III"))


def test_the_masses_of_theta_are_no_discrete_symmetric_f(tmp_path: Path) -> None:
    printed = 1.0 / (1.0 + GRID) ** 2
    widths = GRID * printed
    for masses, share in ((printed, 0.82), (widths, 0.36)):
        assert masses[GRID <= 0.5].sum() / masses.sum() == pytest.approx(share, abs=0.005)
    for kind, masses in (("as-printed", printed), ("symmetric-F", widths)):
        sampler = ew.Sampler(SQUARE, model="I", theta_prior=kind)
        np.testing.assert_allclose(np.exp(sampler.posterior.log_theta_prior), masses / masses.sum())
        exact = ew.exact_posterior(SQUARE.X[:5], model="I", theta_prior=kind)
        np.testing.assert_array_equal(exact.posterior.log_theta_prior, sampler.posterior.log_theta_prior)
    sampler.save(tmp_path / "chain")
    loaded = ew.Sampler.load(tmp_path / "chain")
    assert (loaded.posterior.theta_prior, ew.Sampler(SQUARE).posterior.theta_prior) == (kind, "as-printed")


def residual(X: np.ndarray, labels: np.ndarray, theta: float) -> float:
    """Log density of the orbit under model III, with shift and scale integrated out, up to a constant."""
    n, d = X.shape
    joined = labels[:, None] == labels[None]
    inverse = np.linalg.inv(np.eye(n) + theta * joined)
    weight = inverse.sum()
    S = X.T @ (inverse - np.outer(inverse.sum(0), inverse.sum(0)) / weight) @ X
    log_det = -np.linalg.slogdet(inverse)[1]
    return -d / 2 * (log_det + np.log(weight)) - (n - 1) / 2 * np.linalg.slogdet(S)[1]


def test_the_centre_costs_three_nats() -> None:
    assert gain(SQUARE.X, SQUARE.labels, "III") == pytest.approx(115.9, abs=0.05)
    exact = residual(SQUARE.X, SQUARE.labels, 16.0) - residual(SQUARE.X, ONE, 16.0)
    assert exact == pytest.approx(112.9, abs=0.05)
    values = [ew.log_likelihood(SQUARE.X, ONE, theta, "III") for theta in GRID]
    assert values[0] - values[-1] == pytest.approx(8.9, abs=0.05)
    assert np.ptp([residual(SQUARE.X, ONE, theta) for theta in GRID]) < 1e-6
    given = [
        ew.log_likelihood(SQUARE.X, labels, 16.0, "III", centre="unknown") for labels in (SQUARE.labels, ONE)
    ]
    assert given[0] - given[1] == pytest.approx(exact, abs=1e-6)


def test_minimum_within_is_our_reading() -> None:
    assert set(WITHIN) == {"average", "maximum", "minimum"}
    line = np.array([[0.0], [1.0], [1.5], [9.0], [9.9]])
    proposals = proposals_by_hand(line, (0, 0, 0, 1, 1), within="minimum", core_jump=0.0, **ONLY_SPLITS)
    second = sum(value for labels, value in proposals.items() if labels[3] != labels[4])
    assert second == pytest.approx(0.9 / (0.5 + 0.9))
    assert sum(entry.within == "minimum" for entry in ew.paper.experiments.values()) == 4


def test_both_versions_are_run() -> None:
    options = {key: (entry.within, entry.between) for key, entry in ew.paper.experiments.items()}
    assert options["half-moons-3"] == ("maximum", "minimum")
    assert options["half-moons-3-discussion"] == ("minimum", "maximum")
    assert [ew.paper.experiments[key].model for key in ("wine-1", "wine-2")] == ["I", "II"]


def test_the_printed_inverse_is_right() -> None:
    labels, theta = np.array([0, 0, 1, 0, 2, 1]), 2.5
    B = (labels[:, None] == labels[None]).astype(float)
    W = np.diag(1.0 / (1.0 + theta * B.sum(axis=1)))
    np.testing.assert_allclose((np.eye(6) + theta * B) @ (np.eye(6) - theta * W @ B), np.eye(6), atol=1e-14)


def test_the_printed_priors_are_right() -> None:
    from scipy.special import factorial, gamma

    lam, k, n = 1.3, 4, 5

    def printed(labels: np.ndarray) -> float:
        sizes = np.bincount(labels)
        if len(sizes) > k:
            return 0.0
        ways = factorial(k) / factorial(k - len(sizes)) * gamma(lam) / gamma(n + lam)
        return float(ways * np.prod(gamma(sizes + lam / k)) / gamma(lam / k) ** len(sizes))

    partitions = list(all_partitions(n))
    values = [printed(np.asarray(labels)) for labels in partitions]
    assert sum(values) == pytest.approx(1.0)
    prior, limit = ew.priors.DirichletMultinomial(k, lam), ew.priors.DirichletMultinomial(10**7, lam)
    for labels, value in zip(partitions, values, strict=True):
        assert np.exp(prior.log_pmf(labels)) == pytest.approx(value)
        assert limit.log_pmf(labels) == pytest.approx(ew.priors.Ewens(lam).log_pmf(labels), abs=1e-5)
    # A sixth object does not change the distribution of the first five, in whatever order they come.
    for labels in partitions:
        alone = np.exp(ew.ewens.log_pmf(labels, lam))
        seated = [np.append(labels, seat) for seat in range(max(labels) + 2)]
        assert sum(np.exp(ew.ewens.log_pmf(each, lam)) for each in seated) == pytest.approx(alone)
        assert np.exp(ew.ewens.log_pmf(np.asarray(labels)[::-1], lam)) == pytest.approx(alone)
