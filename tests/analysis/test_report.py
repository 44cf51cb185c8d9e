from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from traces import altered, blobs, random_partitions, synthetic_trace

import ewens_widgets as ew
from ewens_widgets import datasets
from ewens_widgets.analysis import report as report_module
from ewens_widgets.analysis.groups import Level
from ewens_widgets.analysis.report import Report, report, visible_distance
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace

pytestmark = pytest.mark.usefixtures("chains_alone")


@pytest.fixture
def chains_alone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Most tests are about chains: nothing is said about groups."""
    if "groups" not in request.node.name:
        monkeypatch.setattr(report_module, "_about_groups", lambda _: iter(()))


POSTERIOR = Posterior.from_data(blobs(np.random.default_rng(0), 20)[0], model="II")


def chain(
    seed: int, n_draws: int = 400, n_clusters: int = 4, repeats: int = 1, moves: tuple[str, ...] = ("gibbs",)
) -> Trace:
    rng = np.random.default_rng(seed)
    labels = np.repeat(random_partitions(rng, n_draws // repeats, 20, n_clusters), repeats, axis=0)
    return synthetic_trace(labels, POSTERIOR, rng, moves)


def with_log_posterior(trace: Trace, values: np.ndarray) -> Trace:
    return altered(trace, log_posterior=values)


def test_chains_that_agree_are_trusted() -> None:
    found = report([chain(seed) for seed in range(3)])
    assert found.verdict == "trust"
    assert found.advice == ()
    assert "3 chains of 400 draws" in found.summary
    assert "the largest R-hat is" in found.reasons[0]


def test_one_chain_is_never_called_converged() -> None:
    found = report(chain(0))
    assert found.verdict == "unconfirmed"
    assert "cannot show" in found.headline
    assert "other starts" in found.advice[0]
    assert "trust this run" not in str(found).lower()


def test_one_verdict_wherever_it_is_asked(tmp_path: Path) -> None:
    traces = [chain(seed) for seed in range(3)]
    alone, pooled = report(traces), Trace.concatenate(traces)
    pooled.save(tmp_path / "pooled.npz")
    for trace in (pooled, Trace.load(tmp_path / "pooled.npz"), pooled[:], pooled.thin(1)):
        found = trace.report()
        assert (found.verdict, found.reasons, found.summary) == (alone.verdict, alone.reasons, alone.summary)
    assert [len(each) for each in pooled[100:].chains] == [300, 400, 400]
    # What a single chain drew in two runs, one after the other, stays one chain.
    assert len(Trace.concatenate([traces[0][:200], traces[0][200:]]).chains) == 1


@pytest.mark.slow
def test_an_estimator_has_one_verdict() -> None:
    X, _ = blobs(np.random.default_rng(0), 60)
    found = ew.AffineClustering(model="I", n_chains=2, draws=300, burn_in=100, random_state=0).fit(X)
    reports = found.report(), found.trace_.report(), found.chains_.report()
    assert len({(one.verdict, one.reasons, one.summary) for one in reports}) == 1


def test_few_effective_draws_ask_for_more() -> None:
    found = report([chain(seed, repeats=10) for seed in range(2)])
    assert found.verdict == "run longer"
    assert any("at least 100 recommended" in reason for reason in found.reasons)
    assert any(step.startswith("Take about") for step in found.advice)


def test_chains_that_disagree_are_not_trusted() -> None:
    found = report([chain(0, n_clusters=3), chain(1, n_clusters=8)])
    assert found.verdict == "do not trust"
    assert "do not agree" in found.reasons[0]
    assert any("cluster the objects differently" in reason for reason in found.reasons)


def test_stuck_chains() -> None:
    rng = np.random.default_rng(0)
    labels = [np.tile(random_partitions(rng, 1, 20, count), (100, 1)) for count in (3, 9)]
    chains = []
    for rows in labels:
        trace = synthetic_trace(rows, POSTERIOR, rng, ("split-merge",))
        chains.append(altered(trace, acceptances=np.zeros_like(trace.acceptances)))
    found = report(chains)
    assert found.verdict == "do not trust"
    assert "infinite" in found.reasons[0]
    assert any("not moved" in reason for reason in found.reasons)
    assert "default" in found.advice[0]
    assert "constant" not in str(found).split("log posterior")[0].split("number of clusters")[1]
    alone = report(chains[0])
    assert alone.verdict == "do not trust"
    assert "constant" in str(alone)


def resting(labels: np.ndarray, seed: int, moves: tuple[str, ...], taken: tuple[int, ...]) -> Trace:
    """A chain that stays at one partition; each move was accepted so many times."""
    rng = np.random.default_rng(seed)
    trace = synthetic_trace(np.tile(labels, (200, 1)), POSTERIOR, rng, moves)
    made, accepted = np.full(trace.proposals.shape, 10), np.zeros_like(trace.acceptances)
    accepted[0] = taken
    return altered(trace, proposals=made, acceptances=accepted)


DEFAULT = ("informed-split-merge", "gibbs")
THIRDS, OTHERS = np.repeat([0, 1, 2], [7, 7, 6]), np.repeat([0, 1, 2], [6, 7, 7])


def stuck(kind: str, n_chains: int) -> list[Trace]:
    """Chains that did not move, or by a rule that is wrong."""
    singletons, taken = np.arange(20), (1,) if kind == "nearly" else (0,)
    moves = {"printed": ("split-merge as printed",), "sweeps": ("gibbs",)}.get(kind, ("split-merge",))
    if kind == "printed":
        return [chain(seed, moves=moves) for seed in range(n_chains)]
    kinds = {"thirds": [THIRDS] * 4, "different": [THIRDS, OTHERS, THIRDS, singletons]}
    each = kinds.get(kind, [singletons] * 4)
    return [resting(each[seed], seed, moves, taken) for seed in range(n_chains)]


@pytest.mark.parametrize("n_chains", [1, 2, 4])
@pytest.mark.parametrize("kind", ["singletons", "thirds", "different", "sweeps", "nearly", "printed"])
def test_no_praise_for_chains_that_did_not_move(kind: str, n_chains: int) -> None:
    found = report(stuck(kind, n_chains))
    assert found.verdict in {"unconfirmed", "do not trust"}
    assert found.diagnostics.verdict in {"not yet", "apart"}
    assert not found.diagnostics.sentence().startswith(("The chains agree", "Both halves"))
    assert "trust this run:" not in str(found).lower()
    wrong = "the ratio that the paper prints" if kind == "printed" else "not left one partition", "not moved"
    assert any(text in reason for text in wrong for reason in found.reasons)
    assert any("acceptance=" in step or "start" in step.lower() for step in found.advice)


def creeping(kind: str, seed: int) -> Trace:
    """A chain that moves, but by far too little."""
    rng, spans = np.random.default_rng(seed), {"late": 100, "slow": 25, "one object": 20}
    if kind == "climbing":
        return with_log_posterior(chain(seed), np.linspace(-500.0, -300.0, 400) + rng.normal(size=400))
    labels = np.tile(THIRDS, (200, 1))
    moved = np.arange(200) // spans[kind] % 2 == 1
    labels[moved] = np.where(np.arange(20) == 19, 0, THIRDS) if kind == "one object" else OTHERS
    return synthetic_trace(labels, POSTERIOR, rng, DEFAULT)


@pytest.mark.parametrize("n_chains", [1, 2, 4])
@pytest.mark.parametrize("kind", ["late", "slow", "one object", "climbing"])
def test_no_praise_for_chains_that_hardly_moved(kind: str, n_chains: int) -> None:
    found = report([creeping(kind, seed) for seed in range(n_chains)])
    assert found.verdict in {"unconfirmed", "run longer", "do not trust"}
    assert found.diagnostics.verdict in {"not yet", "apart"}
    assert not found.diagnostics.sentence().startswith(("The chains agree", "Both halves"))
    assert "trust this run:" not in str(found).lower()
    assert found.advice


def test_chains_that_rest_at_different_partitions_do_not_agree() -> None:
    # Equally many clusters of equal sizes: only the similarity gap can tell.
    found = report([resting(labels, 0, DEFAULT, (0, 0)) for labels in (THIRDS, OTHERS)])
    assert found.verdict == "do not trust"
    assert any("not moved" in reason for reason in found.reasons)


def test_a_single_chain_that_rests_is_not_confirmed() -> None:
    found = report(resting(THIRDS, 0, DEFAULT, (0, 0)))
    assert found.verdict == "unconfirmed"
    assert any("not left one partition" in reason for reason in found.reasons)
    assert any("other starts" in step for step in found.advice)
    assert report(resting(THIRDS, 0, ("split-merge",), (0,))).verdict == "do not trust"


def test_sweeps_that_moved_objects_have_moved() -> None:
    found = report([resting(THIRDS, seed, DEFAULT, (0, 12)) for seed in range(2)])
    assert found.verdict == "trust"
    assert not any("roposal was accepted" in reason for reason in found.reasons)


def test_rounding_does_not_keep_chains_apart() -> None:
    chains = [
        with_log_posterior(resting(THIRDS, seed, DEFAULT, (0, 0)), np.full(200, value))
        for seed, value in enumerate((-123456.0, -123456.0 * (1 + 1e-13)))
    ]
    found = report(chains)
    assert np.isnan(found.diagnostics.rhat["log_posterior"])
    assert found.verdict == "unconfirmed"


def test_six_well_separated_clusters_are_not_confirmed_as_no_chain_moved() -> None:
    rng = np.random.default_rng(0)
    true = np.arange(300) % 6
    X = 300.0 * rng.normal(size=(6, 3))[true] + rng.normal(size=(300, 3))
    chains = [Sampler(X, initial=true, seed=seed).sample(100, progress=False) for seed in range(2)]
    assert max(chains[0].acceptance.values()) == 0.0, "nothing to see here"
    assert report(chains).verdict == "unconfirmed"


LEVEL = Level(0.1, 2, 0.9, 0.95)


@pytest.mark.parametrize(
    ("changed", "verdict", "kind"),
    [
        ({}, "trust", ""),
        ({"probability": 0.6, "probabilities": {2: 0.6, 3: 0.4}}, "uncertain", "2 (0.60), 3 (0.40)"),
        ({"level": LEVEL._replace(stability=0.5)}, "uncertain", "2 from 10.0 %"),
        ({"agreement": [1.0, 0.7]}, "do not trust", "chain 2 with the answer is 0.70"),
        ({"n_clusters": 1}, "uncertain", "standard deviations apart"),
    ],
)
def test_groups_are_trusted_only_if_the_draws_determine_them(
    changed: dict[str, object], verdict: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = [chain(seed) for seed in range(2)]
    given = {"level": LEVEL, "probability": 0.9, "probabilities": {2: 0.9}, "n_clusters": 2} | changed
    answer = SimpleNamespace(
        **given,
        levels=(given["level"],),
        curve=lambda: (LEVEL,),
        labels=THIRDS.copy(),
        small_clusters=np.empty(0, dtype=int),
        chain_agreement=lambda: np.array(changed.get("agreement", [1.0])),
    )
    monkeypatch.setattr(Trace, "answer", lambda _: answer)
    found = report(traces)
    assert found.verdict == verdict
    assert any(kind in reason for reason in found.reasons)


@pytest.mark.parametrize(("n", "free", "distance"), [(30, 5, 4.9), (300, 9, 3.8), (201, 495, 2700.0)])
def test_what_could_have_been_seen(n: int, free: int, distance: float) -> None:
    found = visible_distance(n, free)
    gain = n / 2 * np.log1p(found**2 / 4) - n * np.log(2.0)
    assert gain == pytest.approx(free / 2 * np.log(n))
    assert found > distance - 0.1


def test_a_rising_log_posterior_asks_for_burn_in() -> None:
    noise = np.random.default_rng(1).normal(size=400)
    rising = with_log_posterior(chain(0), noise + np.where(np.arange(400) < 90, -10.0, 0.0))
    found = report([rising, chain(1)])
    assert any("the burn-in is too short" in reason for reason in found.reasons)
    assert any("trace[100:]" in step for step in found.advice)


@pytest.mark.parametrize(("end", "side", "value"), [(-1, "largest", "2048"), (0, "smallest", "0.0625")])
def test_a_grid_that_is_too_short(end: int, side: str, value: str) -> None:
    chains = [chain(seed) for seed in range(2)]
    weights = np.zeros_like(chains[0].theta_weights)
    weights[:, end] = 1.0
    found = report([altered(trace, theta_weights=weights) for trace in chains])
    assert found.verdict == "trust"
    assert any(side in reason for reason in found.reasons)
    assert any(value in step for step in found.advice)


def test_text_and_html_say_the_same() -> None:
    found = report([chain(0, n_clusters=3), chain(1, n_clusters=8)])
    text, html = str(found), found._repr_html_()
    assert isinstance(found, Report)
    for part in (found.headline, found.summary, "R-hat", "number of clusters", "Points moved: gibbs"):
        assert part in text
        assert part in html
    assert html.count("<tr>") == 1 + len(found.diagnostics.rhat)
    assert "<script" not in html


@pytest.mark.slow
def test_chains_of_the_paper_moves_do_not_agree_and_those_of_the_default_do() -> None:
    data = datasets.denmark_roads_standin(seed=0)
    starts = ("singletons", "one-cluster", "k-means")

    def verdict(moves: str, draws: int, burn_in: int) -> str:
        chains = [
            Sampler(data, model="III", moves=moves, initial=start, seed=seed).sample(
                draws, burn_in, progress=False
            )
            for seed, start in enumerate(starts)
        ]
        return report(chains).verdict

    assert verdict("paper-2", 1000, 500) == "do not trust"
    # These chains agree; but the two regions differ in shape, which one shape for all does not allow.
    assert verdict("default", 2000, 500) == "model misfit"
