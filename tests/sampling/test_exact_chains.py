"""Long chains against the whole posterior of a few objects: every family, prior, centre, schedule and model.

The posterior is found by enumeration, for own shapes by quadrature over the common variance (and the centre).
These have one column, for which all three models are the same, but their kernels are not. A chain has to fit
its own posterior, and must not fit another one that differs in a single setting.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import oracle
import pytest
from numpy.typing import NDArray
from sampling.exact import FIVE, MODELS, PRIORS, SIX, Floats, Labels, canonical, log_urn, make_space, mixed
from sampling.goodness import LEVEL, batch_error, batch_score, chi_square, explain, limit, partition_names
from sampling.test_exact_moves import DUPLICATES, TIES
from scipy import stats
from scipy.special import gammaln

import ewens_widgets as ew
from ewens_widgets.partition import all_partitions
from ewens_widgets.sampling.moves import SplitMerge

Law = dict[Labels, Floats]  # Probabilities of θ × ν with each partition.
Settings = dict[str, Any]
LAWS = {
    **PRIORS,
    "less": ew.priors.Ewens(0.8),
    "Gamma": ew.priors.Ewens(ew.Gamma(2.0, 1.0)),
    "its mean": ew.priors.Ewens(2.0),
}
RNG = np.random.default_rng(3)
DATA: dict[str, Floats] = {
    "six": SIX,
    "five": FIVE,
    "first column": FIVE[:, :1],
    # Close together on one side, far apart on the other: shapes of their own matter.
    "column": np.array([[-2.0], [-1.9], [-1.7], [0.6], [3.1]]),
    "six of a column": np.array([[-2.0], [-1.9], [-1.7], [0.6], [3.1], [4.3]]),
    "two rows": np.array([[0.0], [1.0]]),
    "a square": np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 0.0], [1.0, 1.0]]),
    "d + 2 rows": RNG.normal(size=(4, 2)),
    "one column": RNG.normal(size=(5, 1)),
    "ties": TIES,
    "duplicates": DUPLICATES,
}
GRID, THETAS, NUS = (0.25, 1.0, 8.0), (0.5, 16.0), (2.0, 24.0)
STEPS = np.linspace(-7.0, 7.0, 211)  # Of the centre m = sinh(u), in standard deviations.


@functools.cache
def law_of(
    key: str,
    model: str = "II",
    shapes: str = "common",
    prior: str = "Ewens",
    theta_grid: tuple[float, ...] = GRID,
    centre: str = "mean",
    has_categories: bool = False,
    power: float = 0.0,
) -> Law:
    """The posterior of a few objects; own shapes with another `power` of the common variance have another."""
    if shapes == "common":
        space = make_space(DATA[key], model, theta_grid=theta_grid, prior=LAWS[prior], centre=centre)
        joint = [row[:, None] for row in space.exact.joint]
        law = dict(zip(space.labels, joint, strict=True))
        if has_categories:  # not by the package's likelihood of them
            law = {labels: row * math.exp(log_urn(labels)) for labels, row in law.items()}
            whole = sum(row.sum() for row in law.values())
            law = {labels: row / whole for labels, row in law.items()}
        return law
    if centre == "unknown":
        return about_an_unknown_centre(key, prior)

    def log_prior(labels: Sequence[int]) -> float:
        return LAWS[prior].log_pmf(labels) + (log_urn(labels) if has_categories else 0.0)

    return oracle.exact_own_posterior(DATA[key], log_prior, 1.0, THETAS, NUS, power)


def about_an_unknown_centre(key: str, prior: str) -> Law:
    """The posterior of own shapes with the centre m and the common variance summed out."""
    y = (DATA[key][:, 0] - DATA[key].mean()) / DATA[key].std()
    weights, log_joint = np.log(oracle.theta_weights(THETAS, 1.0)), {}
    base = np.exp(oracle.LOG_VARIANCES[::4])
    for labels in map(tuple, all_partitions(len(y)).tolist()):
        values = np.zeros((2, 2))
        for (g, theta), (v, nu) in itertools.product(enumerate(THETAS), enumerate(NUS)):
            total = np.log(np.cosh(STEPS))[:, None] + np.zeros(base.size)
            for cluster in range(max(labels) + 1):
                members = y[np.array(labels) == cluster] - np.sinh(STEPS)[:, None]
                size, degrees = members.shape[1], nu + 2.0
                rest = np.sum(members**2, axis=1) - members.sum(axis=1) ** 2 / (1.0 / theta + size)
                total += math.lgamma((degrees + size) / 2.0) - math.lgamma(degrees / 2.0)
                total += degrees / 2.0 * np.log(nu * base) - 0.5 * math.log1p(theta * size)
                total -= (degrees + size) / 2.0 * np.log(nu * base + rest[:, None])
            values[g, v] = np.logaddexp.reduce(total.ravel())
        log_joint[labels] = LAWS[prior].log_pmf(labels) + weights[:, None] + values
    return oracle.normalised(log_joint)


MIXED = ["split-merge", "gibbs", (SplitMerge(within="minimum", between="hausdorff"), 2), "reassign"]
SHORT: list[Any] = [
    [("informed-split-merge", 3), "gibbs"],
    [("reassign", 8), (SplitMerge(core_jump=0.1), 8)],
]
PAPERS = ("paper-1", "paper-2")  # Some 40 iterations until a draw is as good as independent.
Case = tuple[str, Any, tuple[int, int, int], Settings, Settings]


def in_turn(cases: list[Case], turn: int) -> list[Any]:
    """Cases of a model, of which every third is run each time: with all models these are all."""
    is_now = [place % len(MODELS) == turn for place in range(len(cases))]
    return [
        pytest.param(case, marks=[] if now else pytest.mark.nightly)
        for case, now in zip(cases, is_now, strict=True)
    ]


def cases() -> list[Any]:
    """Data, schedule, (draws, burn-in, thinning), settings, and settings that are not those of the chain.

    What `test_exact_moves` proves for all models, priors and kinds of columns, chains of one model show.
    """
    found: list[Any] = []
    wrong: dict[str, Settings] = {
        "I": {"prior": "less"},
        "II": {"theta_grid": (1.0, 8.0, 32.0)},
        "III": {"model": "II"},
    }
    for model in MODELS:
        own, priors = {"model": model, "shapes": "own", "theta_grid": THETAS}, list(LAWS)
        found += [
            ("six", "default", (6000, 50, 2), {"model": model}, wrong[model]),
            ("five", MIXED, (1500, 50, 2), {"model": model}, wrong[model]),
            *(("five", moves, (4000, 2000, 40), {"model": model}, wrong[model]) for moves in PAPERS),
            *(
                (key, moves, (6000, 500, thin), {"model": model, "centre": "unknown"}, {"centre": "mean"})
                for key, moves, thin in (("six", "default", 2), ("five", "paper-2", 40))
            ),
            ("column", SHORT[0], (5000, 100, 10), {**own, "centre": "unknown"}, {"centre": "mean"}),
        ]
        several: list[Case] = [
            ("column", SHORT[0], (5000, 100, 10), {**own, "prior": prior}, {"prior": other})
            for prior, other in zip(PRIORS, [*priors[1:4], "Ewens"], strict=True)
        ]
        for (shapes, key), moves in itertools.product((("common", "five"), ("own", "first column")), SHORT):
            settings = own | {"has_categories": True, "shapes": shapes, "prior": priors[MODELS.index(model)]}
            several.append((key, moves, (8000, 200, 10), settings, {"has_categories": False}))
        found += in_turn(several, MODELS.index(model))
    for model, moves, thin in (("I", "default", 3), ("III", "default", 3), ("II", "paper-2", 40)):
        found.append(
            ("five", moves, (5000, 500, thin), {"model": model, "prior": "Gamma"}, {"prior": "its mean"})
        )
    # Small tables, with the largest model that they allow. The distances of duplicates are all but zero, so
    # the paper's move all but never parts them: exact in the limit (`test_exact_moves`), but of no use.
    for key, moves in itertools.product(list(DATA)[5:], ("default", *PAPERS)):
        model = "III" if len(DATA[key]) > DATA[key].shape[1] + 1 else "II"
        if moves != "paper-2" or key not in {"ties", "duplicates"}:
            run = (2000, 500, 40 if moves in PAPERS else 3)
            found.append((key, moves, run, {"model": model}, {"prior": "its mean"}))
    for model, moves in (("I", "default"), ("II", ["gibbs"]), ("III", "paper-1"), ("III", "paper-2")):
        settings = {"model": model, "shapes": "own", "theta_grid": THETAS}
        found.append(("two rows", moves, (6000, 50, 6), settings, {"prior": "its mean"}))
    return found


def sample(
    key: str, moves: object, run: tuple[int, int, int], settings: Settings, **options: str
) -> ew.Trace:
    given = {"theta_grid": GRID, **settings, "prior": LAWS[settings.get("prior", "Ewens")]}
    X: Any = mixed(DATA[key]) if given.pop("has_categories", False) else DATA[key]
    if given.get("shapes") == "own":
        given["nu_grid"] = NUS
    return ew.Sampler(X, moves=moves, seed=22, **given, **options).sample(*run, progress=False)


def misfits(law: Law, trace: ew.Trace) -> tuple[float, str]:
    """Smallest p-value of the partitions, of θ and of ν, alone and with the number of clusters."""
    rows, places = np.unique(trace.labels, axis=0, return_inverse=True)
    seen = dict(zip(map(canonical, rows), np.bincount(places.ravel()).tolist(), strict=True))
    counts = np.array([seen.get(labels, 0) for labels in law])
    joint = np.array(list(law.values()))
    expected = len(trace) * joint.sum(axis=(1, 2))
    found = [chi_square(counts, expected).p_value if sum(seen.values()) == counts.sum() else 0.0]
    clusters = np.array([max(labels) + 1 for labels in law])
    scores = []
    for g, v in itertools.product(range(joint.shape[1]), range(joint.shape[2])):
        here = (trace.theta_index == g) & ((trace.nu_index == v) | (joint.shape[2] == 1))
        scores.append(batch_score(here, joint[:, g, v].sum()))
        scores.append(batch_score(here * trace.n_clusters, joint[:, g, v] @ clusters))
    worst = float(np.abs(scores).max())
    if trace.posterior.shapes == "common":  # the probabilities that θ was drawn from have the same mean
        exact = joint.sum(axis=(0, 2))
        worst = max(abs(batch_score(trace.theta_weights[:, g], p)) for g, p in enumerate(exact))
    found.append(2.0 * float(stats.t.sf(worst, 59)))
    return min(found), explain(partition_names(list(law)), counts, expected) + f"\nscores {scores}"


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(), ids=lambda case: " ".join(map(str, (case[0], case[1], case[3]))))
def test_a_chain_samples_its_posterior_and_no_other(case: Case) -> None:
    key, moves, run, settings, wrong = case
    trace = sample(key, moves, run, settings)
    p_value, table = misfits(law_of(key, **settings), trace)
    assert p_value > LEVEL, table
    assert misfits(law_of(key, **{**settings, **wrong}), trace)[0] < LEVEL
    for event in trace[:20]:
        own = (int(event.nu_index), event.sigma) if settings.get("shapes") == "own" else ()
        value = event.concentration if settings.get("prior") == "Gamma" else None
        expected = trace.posterior.log_density(event.labels, event.theta_index, value, *own)
        assert event.log_posterior == pytest.approx(expected, abs=1e-8)
    if settings.get("prior") == "Gamma":
        assert_law_of_concentration(trace, law_of(key, **settings))


def assert_law_of_concentration(trace: ew.Trace, law: Law) -> None:
    """λ has the mixture over the number of clusters of its conditionals, by quadrature."""
    prior: Any = trace.posterior.concentration
    log_value = np.linspace(-40.0, 6.0, 100_001)
    value, distribution = np.exp(log_value), np.zeros_like(log_value)
    for labels, probability in law.items():
        log_density = (prior.shape + max(labels) + 1) * log_value - prior.rate * value
        log_density += gammaln(value) - gammaln(trace.n_objects + value)
        weights = np.exp(log_density - log_density.max())
        distribution += probability.sum() * np.cumsum(weights) / weights.sum()
    for probability in (0.1, 0.3, 0.5, 0.7, 0.9):
        place = np.searchsorted(distribution, probability)
        assert abs(batch_score(trace.concentration <= value[place], distribution[place])) < limit()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The acceptance ratio")
def test_the_printed_ratio_samples_something_else() -> None:
    trace = sample("five", "paper-2", (4000, 2000, 40), {}, acceptance="as-printed")
    assert misfits(law_of("five"), trace)[0] < 1e-3 * LEVEL


@pytest.mark.nightly
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("moves", ["default", *SHORT[1:]], ids=str)
def test_long_chains_of_own_shapes_have_the_posterior_of_quadrature(
    model: str, prior: str, moves: object
) -> None:
    settings = {"model": model, "shapes": "own", "prior": prior, "theta_grid": THETAS}
    trace = sample("six of a column", moves, (200_000, 100, 1), settings)
    rows, places = np.unique(trace.labels, axis=0, return_inverse=True)
    seen = np.zeros((len(rows), 2, 2))
    np.add.at(seen, (places.ravel(), trace.theta_index, trace.nu_index), 1.0 / len(trace))
    counts = dict(zip(map(canonical, rows), seen, strict=True))

    def distance(law: Law) -> float:
        return 0.5 * sum(
            float(np.abs(counts.get(labels, np.zeros((2, 2))) - due).sum()) for labels, due in law.items()
        )

    key = "six of a column"
    assert distance(law_of(key, **settings)) < 0.04
    # Another prior of the common variance, even in itself, not in its logarithm, is told apart.
    assert distance(law_of(key, **settings, power=1.0)) > 0.06


@pytest.mark.nightly
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("moves", PAPERS)
def test_long_chains_of_the_papers_moves_on_six_points(model: str, moves: str) -> None:
    p_value, table = misfits(law_of("six", model), sample("six", moves, (12_000, 2000, 60), {"model": model}))
    assert p_value > LEVEL, table


# Exact draws stay exact: with θ next to nothing the target is the prior, and every start is independent


SCHEDULES: dict[str, Any] = {
    "default": "default",
    "paper-1": ["reassign"] * 3,
    "paper-2": [(SplitMerge(core_jump=0.1), 3)],
    "mixed": MIXED,
}


def spread(moves: object, prior: ew.Gamma, believed: ew.Gamma, starts: int = 1000, **settings: Any) -> Floats:  # noqa: ANN401
    """After three iterations from draws of λ and partition: K as a uniform number given λ, and λ itself."""
    n_objects, rng = 12, np.random.default_rng(17)
    X = rng.normal(size=(n_objects, 2))
    sampler = ew.Sampler(X, concentration=believed, theta_grid=[1e-9], moves=moves, seed=7, **settings)
    found = []
    for _ in range(starts):
        concentration = rng.gamma(prior.shape, 1.0 / prior.rate)
        labels: NDArray[np.int64] = ew.ewens.sample(n_objects, concentration, rng).astype(np.int64)
        # Only the generator goes on.
        sampler.first_state = dataclasses.replace(
            sampler.state, labels=labels, log_concentration=float(np.log(concentration))
        )
        sampler.reset()
        *_, event = sampler.events(3, block=3)
        pmf = ew.ewens.cluster_count_pmf(n_objects, event.concentration)
        below = pmf[: event.n_clusters].sum() + rng.random() * pmf[event.n_clusters]
        found.append((below, stats.gamma.cdf(event.concentration, prior.shape, scale=1.0 / prior.rate)))
    return np.array(found).T


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["default", "mixed", *(pytest.param(name, marks=pytest.mark.nightly) for name in PAPERS)]
)
def test_joint_draws_of_partition_and_concentration_stay_so(name: str) -> None:
    prior = ew.Gamma(2.0, 1.5)
    clusters, drawn = spread(SCHEDULES[name], prior, prior)
    assert stats.kstest(clusters, "uniform").pvalue > LEVEL
    assert stats.kstest(drawn, "uniform").pvalue > LEVEL
    assert abs(stats.spearmanr(clusters, drawn).statistic) < 5.0 / np.sqrt(len(drawn))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The acceptance ratio")
@pytest.mark.parametrize("fault", ["another prior", "the printed ratio"])
def test_a_sampler_that_is_wrong_changes_them(fault: str) -> None:
    prior = ew.Gamma(2.0, 1.5)
    if fault == "another prior":
        found = spread("default", prior, ew.Gamma(2.0, 0.6), 600)
    else:
        found = spread(SCHEDULES["paper-2"], prior, prior, 600, acceptance="as-printed")
    assert min(stats.kstest(values, "uniform").pvalue for values in found) < LEVEL


# Real data


@pytest.mark.slow
def test_chains_from_dispersed_starts_agree_on_wine() -> None:
    arviz = pytest.importorskip("arviz")
    chains = ew.sample_chains(ew.datasets.wine(), model="II", draws=2000, burn_in=500, seed=0, progress=False)
    counts = np.array([trace.n_clusters for trace in chains], dtype=float)
    assert float(arviz.rhat(counts)) < 1.03
    assert float(arviz.rhat(np.array([trace.log_posterior for trace in chains]))) < 1.01
    # Short pieces of two chains do not agree so well: the figure is not small by itself.
    assert float(arviz.rhat(counts[:2, :30])) > 1.03


@pytest.mark.nightly
def test_a_million_iterations_of_the_papers_schedule_find_what_the_default_finds() -> None:
    square = ew.datasets.unit_square(seed=0)
    ours, other = (
        ew.Sampler(square, model="I", seed=1, concentration=value).sample(4000, 500, progress=False)
        for value in (1.0, 2.5)
    )
    trace = ew.Sampler(square, model="I", moves="paper-2", seed=2).sample(7000, 300_000, 100, progress=False)
    error = np.hypot(batch_error(ours.n_clusters, batches=30), batch_error(trace.n_clusters, batches=30))
    assert error < 0.3
    assert abs(trace.n_clusters.mean() - ours.n_clusters.mean()) < 4.0 * error
    # Another concentration is told apart, so the comparison has some power.
    assert abs(trace.n_clusters.mean() - other.n_clusters.mean()) > 4.0 * error


def test_the_papers_iterations_are_too_few() -> None:
    """The paper's 1500 iterations from singletons end at values of θ that the posterior all but excludes."""
    square = ew.datasets.unit_square(seed=0)
    ours = ew.Sampler(square, model="I", seed=1).sample(300, burn_in=100, progress=False)
    papers = ew.Sampler(square, model="I", moves="paper-2", seed=2).sample(500, burn_in=1000, progress=False)
    assert np.mean(ours.theta_weights[:, ours.posterior.theta_grid >= 2.0].sum(axis=1)) > 0.95
    assert np.all(papers.theta < 2.0)
