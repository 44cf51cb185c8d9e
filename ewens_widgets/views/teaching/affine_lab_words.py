"""What a comparison of the original and the transformed data shows, in words."""

from html import escape

from ewens_widgets.model.checks import ModelName
from ewens_widgets.views.teaching.affine_lab_comparison import Comparison, ModelPair

__all__ = ["SAME", "difference_text", "verdict"]

SAME = 1e-6
"""Similarities that differ by less are the same."""


def difference_text(pair: ModelPair) -> str:
    """The largest difference and what it means, as HTML."""
    if pair.problem:
        return f'<span class="ew-problem">{escape(pair.problem)}</span>'
    difference = pair.difference()
    if difference is None:
        return "waiting for the first draws"
    meaning = "✓ the same" if difference < SAME else "✗ changed"
    return f'largest difference <b class="ew-difference">{difference:.6f}</b> · {meaning}'


def verdict(comparison: Comparison, expected: tuple[ModelName, ...]) -> str:
    """Which models survived the transformation, in plain text.

    Parameters
    ----------
    comparison
        The chains.
    expected
        Models that survive it by theory.
    """
    pairs = comparison.models.values()
    if not comparison.is_done:
        done = min((pair.done for pair in pairs if not pair.problem), default=0)
        if done == 0:
            return "Preparing the sampler. Its first use compiles it, which can take some seconds."
        return f"Sampling both versions with the same seed: iteration {done} of {comparison.run.iterations}."
    same, changed, astray = _sorted_out(comparison, expected)
    sentences = []
    if same:
        sentences.append(f"{_listed(same)} survived: the same answer before and after.")
    if changed:
        sentences.append(f"{_listed(changed)} did not: the answer depends on the coordinates.")
    if astray:
        sentences.append(
            f"{_listed(astray)} should have survived, but rounding sent the two chains different ways; "
            "try another seed."
        )
    return " ".join(sentences)


def _sorted_out(
    comparison: Comparison, expected: tuple[ModelName, ...]
) -> tuple[list[str], list[str], list[str]]:
    """Methods whose answer is the same, changed as it must, and changed although it should not."""
    same: list[str] = []
    changed: list[str] = []
    astray: list[str] = []
    for model, pair in comparison.models.items():
        difference = pair.difference()
        if difference is not None:
            group = same if difference < SAME else astray if model in expected else changed
            group.append(f"model {model}")
    agreement = comparison.k_means.agreement
    if agreement is not None:
        (same if agreement > 1.0 - SAME else changed).append("k-means")
    return same, changed, astray


def _listed(names: list[str]) -> str:
    """Model I, model II and k-means; with a capital letter."""
    models = [name.removeprefix("model ") for name in names if name.startswith("model ")]
    others = [name for name in names if not name.startswith("model ")]
    parts = (
        [f"{'model' if len(models) == 1 else 'models'} {models[0]}", *models[1:]] if models else []
    ) + others
    text = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return text if text.startswith("k-means") else text[0].upper() + text[1:]
