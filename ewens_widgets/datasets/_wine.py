"""The wine data, from scikit-learn's copy."""

from ewens_widgets.datasets._dataset import Dataset

__all__ = ["wine"]


def wine() -> Dataset:
    """Return 178 wines of three cultivars with 13 chemical measurements, in their raw units.

    Raw units are the point: proline is in the hundreds and hue about one, so that a method which depends on
    units sees little but proline. Models II and III do not mind.
    """
    # scikit-learn takes most of a second to import, and nothing else here needs it.
    from sklearn.datasets import load_wine

    bunch = load_wine()
    return Dataset(
        X=bunch.data,
        labels=bunch.target,
        name="wine",
        feature_names=tuple(str(name) for name in bunch.feature_names),
        description=(
            "Chemical analysis of 178 wines of one region of Italy from three cultivars (59, 71 and 48), "
            "in raw units; Forina et al., UCI Machine Learning Repository, scikit-learn's copy (load_wine). "
            "The paper clusters them with model I and reports that most wines are put with their cultivar."
        ),
        label_names=("cultivar 1", "cultivar 2", "cultivar 3"),
    )
