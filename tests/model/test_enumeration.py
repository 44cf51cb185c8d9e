"""The enumerated posterior against the oracle's."""

import math

import numpy as np
import oracle
import pytest

import ewens_widgets as ew

GRID = [0.25, 1.0, 4.0, 32.0]


@pytest.fixture
def data(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(6, 2)) + np.outer([0, 0, 0, 1, 1, 1], [5.0, -2.0])


@pytest.mark.parametrize("model", oracle.MODELS)
@pytest.mark.parametrize(("concentration", "alpha"), [(1.0, 1.0), (0.3, 2.5)])
def test_equals_the_oracle(data: np.ndarray, model: str, concentration: float, alpha: float) -> None:
    found = ew.exact_posterior(data, model=model, concentration=concentration, alpha=alpha, theta_grid=GRID)
    expected = oracle.exact_posterior(data, model, concentration, alpha, GRID)
    assert found.labels.shape == (203, 6)
    assert set(map(tuple, found.labels.tolist())) == set(expected)
    table = np.array([expected[tuple(row)] for row in found.labels.tolist()])
    np.testing.assert_allclose(found.joint, table, rtol=1e-9)
    np.testing.assert_allclose(found.probabilities, table.sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(found.theta_probabilities, table.sum(axis=0), rtol=1e-9)
    similarity = sum(values.sum() * oracle.same_cluster(labels) for labels, values in expected.items())
    np.testing.assert_allclose(found.similarity(), similarity, rtol=1e-9)
    counts = np.zeros(7)
    for labels, values in expected.items():
        counts[len(set(labels))] += values.sum()
    np.testing.assert_allclose(found.cluster_count_probabilities, counts, rtol=1e-9, atol=1e-300)


def test_the_comparison_notices_another_prior(data: np.ndarray) -> None:
    found = ew.exact_posterior(data, concentration=1.001, theta_grid=GRID)
    expected = oracle.exact_posterior(data, "II", 1.0, 1.0, GRID)
    table = np.array([expected[tuple(row)] for row in found.labels.tolist()])
    assert np.max(np.abs(found.joint / table - 1)) > 1e-4


def test_each_row_is_the_posterior_of_its_partition(data: np.ndarray) -> None:
    found = ew.exact_posterior(data, model="III", concentration=ew.Gamma(2.0, 1.0))
    for row in (0, 17, 100, 202):
        labels = found.labels[row]
        log_joint = [found.posterior.log_density(labels, index) for index in range(14)]
        np.testing.assert_allclose(np.log(found.joint[row]) + found.log_evidence, log_joint, atol=1e-10)
        conditional = found.joint[row] / found.joint[row].sum()
        np.testing.assert_allclose(conditional, found.posterior.theta_conditional(labels), rtol=1e-10)


def test_separated_groups_are_the_most_probable_partition(rng: np.random.Generator) -> None:
    truth = [0, 0, 0, 0, 1, 1, 1, 1]
    X = rng.normal(size=(8, 2)) + 30.0 * np.outer(truth, [1.0, -1.0])
    for model in oracle.MODELS:
        found = ew.exact_posterior(X, model=model, concentration=0.1)
        pairs = found.labels.max(axis=1) == 1
        assert found.labels[pairs][found.probabilities[pairs].argmax()].tolist() == truth
        if model == "III":
            # Eight points can hardly afford a full covariance: one cluster is more probable than two.
            continue
        listed = found.most_probable(3)
        assert listed[0][0].tolist() == truth
        assert listed[0][1] == found.probabilities.max()
        assert [value for _, value in listed] == sorted(found.probabilities, reverse=True)[:3]


def test_more_objects_than_can_be_enumerated_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=r"at most 9 objects; 10 have 1.16e\+05 partitions.*Sampler"):
        ew.exact_posterior(rng.normal(size=(10, 2)))
    with pytest.raises(ValueError, match="at most 9 objects; 500 have too many partitions"):
        ew.exact_posterior(rng.normal(size=(500, 2)))


def test_nine_objects_are_handled_in_blocks(rng: np.random.Generator) -> None:
    found = ew.exact_posterior(rng.normal(size=(9, 1)), model="I", theta_grid=[1.0, 4.0])
    assert found.labels.shape == (21147, 9)
    assert math.fsum(found.probabilities) == pytest.approx(1.0, abs=1e-12)
    for row in (0, 4095, 4096, 21146):
        log_joint = math.log(found.probabilities[row]) + found.log_evidence
        assert log_joint == pytest.approx(found.posterior.log_marginal(found.labels[row]), abs=1e-10)
