from pathlib import Path

import numpy as np
import pytest

from ewens_widgets import app
from ewens_widgets.paper import Settings, run_paper
from ewens_widgets.paper.experiments import MCLUST, METHODS, Trial, TrialResult, experiment_named, run_trial
from ewens_widgets.paper.reproduction import markdown_page, markdown_table

TINY = Settings(
    seeds=2,
    paper_iterations=60,
    paper_burn_in=20,
    draws=40,
    burn_in=20,
    chains=2,
    simulations=1,
    answer={"draws": 30, "burn_in": 30, "n_chains": 2},
)


def outcomes(key: str, rhat: float = 1.01) -> list[TrialResult]:
    found = [
        TrialResult(Trial(key, method, seed), error=0.1 * seed) for method in METHODS for seed in range(2)
    ]
    return [
        *found,
        TrialResult(Trial(key, "paper", None), rhat=3.2),
        TrialResult(Trial(key, "default", None), rhat=rhat),
    ]


@pytest.mark.slow
def test_one_piece_of_work_is_reproducible() -> None:
    for method in METHODS:
        first, second = (run_trial(Trial("leukemia-1", method, 1), TINY) for _ in range(2))
        assert first.adjusted_rand == second.adjusted_rand
        assert first.n_clusters == second.n_clusters
        assert 0.0 <= first.error <= 1.0 or method == MCLUST
        assert np.isnan(first.rhat)
    judged = run_trial(Trial("leukemia-1", "default", None), TINY)
    assert judged.rhat >= 1.0
    assert np.isnan(judged.error)


def test_the_table_says_what_has_not_converged() -> None:
    experiment = experiment_named("wine-2")
    header, _, row = markdown_table([experiment], outcomes("wine-2")).splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == header.count("|") - 1
    assert cells[:5] == ["wine, raw units", "178 × 13", "II", "3", "most objects right"]
    assert cells[5:9] == ["0.050 (0.000–0.100)", "3.20, not converged", "**0.050 (0.000–0.100)**", "1.01"]
    stuck = markdown_table([experiment], outcomes("wine-2", rhat=float("inf")))
    assert "∞, not converged" in stuck


def test_the_page_names_what_has_converged_and_what_has_not() -> None:
    experiment = experiment_named("wine-2")
    figures = {"wine-2": [("a.png", "a caption")]}
    page = markdown_page([experiment], outcomes("wine-2"), Settings(), figures, "made today")
    assert (
        "The paper's Algorithm 2 has converged in 0 of 1 experiments; not in wine, raw units II (3.20)."
        in page
    )
    assert "Our default has converged in 1 of 1 experiments." in page
    assert "![a caption](a.png)" in page
    assert "Not the paper's number" not in page
    assert "stand-in" not in page
    short = markdown_page([experiment], outcomes("wine-2"), TINY, {}, "made today")
    assert "Not the paper's number, which is 1500" in short


@pytest.mark.slow
def test_a_run_writes_a_page_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = run_paper(tmp_path / "new" / "results", settings=TINY, only=["roads-3"], jobs=1)
    text = page.read_text(encoding="utf-8")
    names = {path.name for path in page.parent.glob("*.png")}
    assert names == {f"roads-3-{kind}.png" for kind in ("heatmap", "clusters", "theta", "traces")}
    assert all(f"]({name})" in text for name in names)
    assert "The real Denmark roads were not at hand" in text
    assert "Denmark roads (stand-in)" in text
    assert "100%" in capsys.readouterr().err


@pytest.mark.slow
def test_several_processes_give_the_same_table(tmp_path: Path) -> None:
    pages = [
        run_paper(
            tmp_path / str(jobs), settings=TINY, only=["leukemia-1"], jobs=jobs, figures=False, progress=False
        ).read_text(encoding="utf-8")
        for jobs in (1, 2)
    ]
    tables = [[line for line in page.splitlines() if line.startswith("|")] for page in pages]
    assert tables[0] == tables[1]


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no experiment was chosen"):
        run_paper(tmp_path, only=[])
    with pytest.raises(ValueError, match="at least 1; got 0"):
        run_paper(tmp_path, jobs=0)
    with pytest.raises(FileNotFoundError, match="road network"):
        run_paper(tmp_path, roads=tmp_path / "none.txt")


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, object] = {}

    def record(folder: Path, **options: object) -> Path:
        given.update(options, folder=folder)
        return folder / "results.md"

    monkeypatch.setattr("ewens_widgets.paper.run_paper", record)
    assert app.main(["paper", "--output", str(tmp_path), "--fast", "--only", "wine-3", "--jobs", "2"]) == 0
    assert given == {"folder": tmp_path, "fast": True, "only": ["wine-3"], "roads": None, "jobs": 2}
    assert "Wrote" in capsys.readouterr().out


def test_the_command_explains_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["paper", "--output", str(tmp_path), "--only", "iris"]) == 1
    assert "no experiment 'iris'" in capsys.readouterr().err
