import json
import os
from pathlib import Path
from typing import Any

import pytest

from ewens_widgets import app
from ewens_widgets.paper import run_paper
from ewens_widgets.paper.published import ALL
from ewens_widgets.paper.reproduction import METHODS, comparison_table, markdown_page, published_table


def outcomes(key: str, rhat: float | None = 1.01) -> dict[str, Any]:
    chain = {"errors": [0.0, 0.1], "n_clusters": [4.0, 5.0], "rhat": rhat, "iterations": 1500}
    found = dict.fromkeys(("as printed", "corrected", "default"), chain)
    found["converged"] = {**chain, "iterations": 100_000}
    found |= {
        "k-means": {"errors": [0.2, 0.2]},
        "our answer": {"adjusted_rand": 0.6, "groups": [3, 4]},
        "mclust": {},
    }
    return {"seeds": 2, "experiments": {key: {"settings": ALL[key].settings(), **found}}}


def cells(table: str) -> list[str]:
    head, _, row = table.splitlines()
    assert row.count("|") == head.count("|")
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_the_tables_have_errors_clusters_and_convergence() -> None:
    one = "0.050 (0.000–0.100); K 4.5; R-hat 1.01"
    longer = f"{one}, 100 000 iterations"
    row = ["`half-moons-2`", "error 0.115", one, one, longer, one]
    assert cells(published_table(outcomes("half-moons-2"))) == row
    assert "R-hat ∞" in published_table(outcomes("wine-2", rhat=None))
    compared = cells(comparison_table(outcomes("half-moons-2")))
    assert compared == ["half-moons", "II", "0.050 (0.000–0.100)", "0.23", "0.200", "–", "0.60 (3–4)", "–"]


def test_the_page_says_what_was_done_and_shows_figures() -> None:
    page = markdown_page(outcomes("wine-2"), {"wine-2": [("a.png", "a caption")]})
    assert "over 2 seeds" in page
    assert "![a caption](a.png)" in page
    assert "stand-in" not in page


@pytest.mark.slow
def test_a_run_writes_numbers_a_page_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "new" / "results"
    page = run_paper(folder, fast=True, only=["roads-3"], jobs=1)
    text = page.read_text(encoding="utf-8")
    names = {path.name for path in folder.glob("*.png")}
    kinds = ("default", "as-printed", "metropolis-hastings", "clusters", "theta")
    assert names == {f"roads-3-{kind}.png" for kind in kinds}
    assert all(f"]({name})" in text for name in names)
    assert "The real Denmark roads were not at hand" in text
    assert "100%" in capsys.readouterr().err
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert set(found["experiments"]["roads-3"]) == {"settings", *METHODS}
    assert found["experiments"]["roads-3"]["default"]["iterations"] == 100
    # Another run of a single method on two processes keeps the other numbers, and gives the same ones.
    again = run_paper(folder, fast=True, only=["roads-3"], methods=["k-means"], jobs=2)
    assert json.loads((folder / "results.json").read_text(encoding="utf-8")) == found
    assert published_table(found) in again.read_text(encoding="utf-8")


def test_refusals(tmp_path: Path) -> None:
    for choice in ({"only": []}, {"methods": ["magic"]}):
        with pytest.raises(ValueError, match="choose experiments from unit-square-1"):
            run_paper(tmp_path, **choice)
    with pytest.raises(ValueError, match="at least 1; got 0"):
        run_paper(tmp_path, jobs=0)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, object] = {}

    def record(folder: Path, **options: object) -> Path:
        given.update(options, folder=folder)
        return folder / "results.md"

    monkeypatch.setattr("ewens_widgets.paper.run_paper", record)
    monkeypatch.setenv("EWENS_WIDGETS_ROADS", "")
    command = ["paper", "--output", str(tmp_path), "--fast", "--only", "wine-3", "--jobs", "2"]
    assert app.main([*command, "--roads", str(tmp_path / "roads.txt")]) == 0
    assert os.environ["EWENS_WIDGETS_ROADS"] == str(tmp_path.resolve() / "roads.txt")
    assert given == {"folder": tmp_path, "fast": True, "only": ["wine-3"], "jobs": 2}
    assert "Wrote" in capsys.readouterr().out
    monkeypatch.undo()
    assert app.main(["paper", "--output", str(tmp_path), "--only", "iris"]) == 1
    assert "no experiment 'iris'" in capsys.readouterr().err
