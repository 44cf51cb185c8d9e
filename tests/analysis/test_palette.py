"""Colours follow clusters, and people who see fewer colours can tell them apart."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from traces import wandering_partitions

from ewens_widgets.analysis.plots import (
    OKABE_ITO,
    SINGLETON,
)
from ewens_widgets.analysis.plots.palette import (
    ALONE,
    CLUSTER_COLOURS,
    COLOUR_MAPS,
    GREY,
    N_DISTINCT,
    SELECTED,
    ClusterColours,
    best_match,
    changed_objects,
    class_colours,
    cluster_colours,
    cluster_markers,
    colour_map,
    colour_of,
    matching_colours,
    rgb,
    shape_of,
)
from ewens_widgets.partition import canonical_labels

# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}


def cielab(colour: str, deficiency: str) -> NDArray[np.float64]:
    """Colour as somebody sees it, in a space where distances mean something."""
    share = np.array(rgb(colour)) / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    seen = np.clip(DEFICIENCIES[deficiency] @ linear, 0.0, 1.0)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratio = to_xyz @ seen / np.array([0.95047, 1.0, 1.08883])
    root = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def least_difference(colours: tuple[str, ...], deficiency: str) -> float:
    seen = [cielab(colour, deficiency) for colour in colours]
    return min(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(seen, 2))


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_the_first_colours_stay_apart(deficiency: str) -> None:
    assert least_difference((*CLUSTER_COLOURS[:N_DISTINCT], GREY), deficiency) > 20
    assert least_difference(OKABE_ITO, deficiency) > 5
    assert (least_difference(("#d62728", "#2ca02c"), deficiency) < 26) == (deficiency == "deutan")


def luminance(colour: str) -> float:
    """Relative luminance after WCAG 2."""
    share = np.array(rgb(colour)) / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("background", ["#ffffff", "#212121", "#111111"])
def test_the_first_colours_stand_out_from_light_and_dark(background: str) -> None:
    for colour in (*CLUSTER_COLOURS[:N_DISTINCT], GREY, SELECTED):
        dark, light = sorted((luminance(colour), luminance(background)))
        assert (light + 0.05) / (dark + 0.05) >= 3.0, colour


def test_shapes_change_where_colours_are_no_longer_distinct() -> None:
    shapes = [shape_of(number) for number in range(2 * N_DISTINCT)]
    assert shapes == [0] * N_DISTINCT + [1] * N_DISTINCT
    assert shape_of(ALONE) == 0
    assert shape_of(len(CLUSTER_COLOURS)) == 0


def test_all_colours_differ() -> None:
    assert len(set(CLUSTER_COLOURS)) == len(CLUSTER_COLOURS) == 4 * N_DISTINCT
    assert colour_of(len(CLUSTER_COLOURS)) == colour_of(0)
    assert colour_of(ALONE) == GREY


def test_most_objects_keep_their_colour_while_a_chain_wanders(rng: np.random.Generator) -> None:
    colours = ClusterColours()
    draws = wandering_partitions(rng, 200, 80, 5, 2)
    numbers = [colours.assign(draw) for draw in draws]
    changes = [float(np.mean(one != other)) for one, other in itertools.pairwise(numbers)]
    # Two objects of 80 move at a time; a cluster that becomes a singleton or comes from one changes a few.
    assert max(changes) <= 0.06
    assert max(float(np.mean(one != other)) for one, other in itertools.pairwise(draws)) > 0.2
    last = canonical_labels(draws[-1])
    renamed = rng.permutation(int(last.max()) + 1)[last]
    np.testing.assert_array_equal(colours.assign(renamed), colours.assign(last))
    assert colours.assign(np.zeros(3, dtype=int)).tolist() == [0, 0, 0]  # other objects


def test_a_split_keeps_the_colour_of_the_larger_part() -> None:
    colours = ClusterColours()
    before = colours.assign(np.array([0] * 10 + [1] * 4))
    after = colours.assign(np.array([0] * 7 + [1] * 3 + [2] * 4))
    assert set(after[:7]) == set(before[:7])
    assert set(after[10:]) == set(before[10:])
    assert not set(after[7:10]) & set(before)


def test_groups_that_were_mixed_up_for_a_while_return_in_their_colours(rng: np.random.Generator) -> None:
    colours, groups = ClusterColours(), np.repeat(np.arange(4), 20)
    for _ in range(5):
        before = colours.assign(groups)
    for other in (rng.permutation(groups), groups // 2, 3 - groups // 2):
        colours.assign(other)
    np.testing.assert_array_equal(colours.assign(groups), before)


def test_singletons_and_unassigned_objects_are_grey() -> None:
    numbers = ClusterColours().assign(np.array([0, 0, 1, -1, 2, 2, -1]))
    np.testing.assert_array_equal(numbers, [0, 0, ALONE, ALONE, 1, 1, ALONE])
    numbers = ClusterColours().assign(np.array([0, 0, 1, 1, 1, 2, 2, 2, 2]))
    np.testing.assert_array_equal(numbers, [2, 2, 1, 1, 1, 0, 0, 0, 0])  # the largest first


def test_live_and_static_pictures_of_a_partition_have_the_same_colours(rng: np.random.Generator) -> None:
    labels = canonical_labels(rng.integers(0, 40, 100))
    live = [colour_of(number) for number in ClusterColours().assign(labels).tolist()]
    assert live == [cluster_colours(labels)[label] for label in labels]
    assert GREY in live


def test_few_clusters_get_distinct_colours_after_many() -> None:
    colours = ClusterColours()
    colours.assign(np.repeat(np.arange(20), 3))
    numbers = colours.assign(np.repeat([0, 1, 2], 20))
    assert len(set(numbers)) == 3
    assert max(numbers) < N_DISTINCT


def test_matching_maximises_the_total_overlap() -> None:
    # Label 0 shares most with 0, but giving it 1 keeps more objects in all.
    before = np.array([0] * 5 + [1] * 4 + [0] * 4)
    after = np.array([0] * 9 + [1] * 4)
    assert best_match(before, after) == {0: 1, 1: 0}
    assert best_match(np.array([-1, -1]), np.array([0, 0])) == {}


def test_what_a_proposal_changes() -> None:
    whole = np.array([0, 0, 0, 0, 0, 1, 1])
    split = np.array([0, 0, 0, 2, 2, 1, 1])
    np.testing.assert_array_equal(changed_objects(whole, split), [3, 4])
    np.testing.assert_array_equal(changed_objects(split, whole), [3, 4])
    np.testing.assert_array_equal(changed_objects(whole, whole), [])


def test_colour_maps_run_from_near_to_far() -> None:
    for name in COLOUR_MAPS:
        table = colour_map(name, 200)
        assert table.shape == (200, 3)
        assert table[-1].astype(int).sum() > table[0].astype(int).sum()
    dark = colour_map("greys", 11, dark=True)
    assert colour_map("greys", 11)[[0, -1], 0].tolist() == [0, 255]
    assert dark[0].tolist() == [255, 255, 255]
    assert dark[-1].max() < 40
    with pytest.raises(ValueError, match="no colour map 'jet'"):
        colour_map("jet", 10)


def test_classes_have_the_colours_of_their_clusters() -> None:
    true = np.array([0] * 5 + [1] * 6 + [2] * 4 + [3])
    # Classes 0 and 1 are found with another number, class 2 but for one object; class 3 is lost in it.
    found = np.array([0] * 5 + [1] * 6 + [0] + [2] * 3 + [2])
    colours = cluster_colours(found)
    matched = matching_colours(true, found)
    assert matched[:3] == colours
    assert matched[3] not in colours
    assert matched[3] in CLUSTER_COLOURS[:N_DISTINCT]
    alone = matching_colours([0, 0, 1, 1], [0, 1, 2, 3])
    assert len(set(alone)) == 2
    assert set(alone) <= set(CLUSTER_COLOURS[:N_DISTINCT])


def test_colours_go_by_size_and_singletons_are_grey() -> None:
    colours = cluster_colours([0, 1, 1, 2, 2, 2, 3])
    assert colours == [SINGLETON, CLUSTER_COLOURS[1], CLUSTER_COLOURS[0], SINGLETON]
    assert len(set(class_colours(28))) == 28
    many = np.repeat(np.arange(20), 2)
    pairs = set(zip(cluster_colours(many), cluster_markers(many), strict=True))
    assert len(pairs) == 20
    assert cluster_markers([0, 0, 1, 1]) == ["o", "o"]
