import runpy
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from ewens_widgets.datasets import leukemia, wine


def test_wine_is_the_raw_data_and_leukemia_has_components() -> None:
    assert {"alcohol", "proline"} < set(wine().feature_names)
    # The largest proline is 1680, where standardised data would stay below ten.
    assert wine().X[:, -1].max() == 1680.0
    assert leukemia().feature_names == tuple(f"PC{k}" for k in range(1, 21))
    for data, source in ((wine(), "scikit-learn"), (leukemia(), "Golub")):
        assert source in data.description
        assert "paper" in data.description


def test_leukemia_genes_are_as_published() -> None:
    data = leukemia(n_components=None)
    assert data.X.shape == (38, 3051)
    assert len(set(data.feature_names)) == 3051
    assert data.feature_names[0] == "AFFX-HUMISGF3A/M97935_MA_at"
    # First values of the table in multtest, to its last digit: packing lost nothing.
    assert data.X[0, :6].tolist() == [-1.45769, -0.75161, 0.45695, 3.13533, 2.76569, 2.64342]
    assert data.X[1, :3].tolist() == [-1.3942, -1.26278, -0.09654]
    assert np.abs(data.X.mean(axis=1)).max() < 1e-5
    assert np.abs(data.X.std(axis=1, ddof=1) - 1).max() < 1e-5


def test_leukemia_components_agree_with_the_eigenvectors_of_the_gram_matrix() -> None:
    genes = leukemia(n_components=None).X
    centred = genes - genes.mean(axis=0)
    gram = centred @ centred.T
    eigenvalues = np.linalg.eigvalsh(gram)[::-1]
    scores = leukemia(n_components=37).X
    assert np.allclose(scores.T @ scores, np.diag(eigenvalues[:37]), atol=1e-9 * eigenvalues[0])
    # All 37 together reproduce every distance between samples.
    assert np.allclose(scores @ scores.T, gram, atol=1e-9 * eigenvalues[0])
    assert eigenvalues[37] < 1e-9 * eigenvalues[0]
    # Fewer components are the first ones, and signs are fixed.
    assert np.array_equal(leukemia(n_components=3).X, scores[:, :3])
    assert leukemia(n_components=1).X.shape == (38, 1)
    assert (scores[np.abs(scores).argmax(axis=0), np.arange(37)] > 0).all()


def test_bundled_file_is_small_needs_no_pickle_and_names_its_source() -> None:
    folder = files("ewens_widgets").joinpath("data")
    content = folder.joinpath("leukemia.npz").read_bytes()
    assert len(content) < 300_000
    with folder.joinpath("leukemia.npz").open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        assert not any(archive[name].dtype.hasobject for name in archive.files)
    readme = folder.joinpath("README.md").read_text(encoding="utf-8")
    for word in ("Golub", "multtest", "Lesser General Public License"):
        assert word in readme


def test_packing_script_gives_back_every_value(repository: Path, tmp_path: Path) -> None:
    script = runpy.run_path(str(repository / "scripts" / "build_leukemia.py"))
    table = tmp_path / "table.csv"
    table.write_text("label,g1,g2\nALL,-1.45769,0.00001\nAML,3.89822,-0.10000\n", encoding="ascii")
    values, classes, genes = script["read_table"](table)
    arrays = script["pack"](values, classes, genes)
    assert np.array_equal(arrays["expression_times_100000"] / 100_000.0, [[-1.45769, 1e-5], [3.89822, -0.1]])
    assert arrays["labels"].tolist() == [0, 1]
    assert arrays["genes"].tolist() == [b"g1", b"g2"]
    with pytest.raises(ValueError, match="more than five decimals"):
        script["pack"](values + 1e-7, classes, genes)
