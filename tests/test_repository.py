"""What a stranger looks for in a repository: workflows, citation, releases, one name of the account."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

Script = Callable[[str], ModuleType]
WORKFLOWS = ["ci", "docs", "nightly", "release"]


def workflow(repository: Path, name: str) -> dict[str, Any]:
    path = repository / ".github" / "workflows" / f"{name}.yml"
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def steps(repository: Path, name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(repository, name)["jobs"].values() for step in job["steps"]]


def targets(repository: Path) -> set[str]:
    text = (repository / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):.*## ", text, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.github-workflows", ".github/workflows/*.yml"),
        ("custom.github-workflows-require-timeout", ".github/workflows/*.yml"),
        ("vendor.dependabot", ".github/dependabot.yml"),
        ("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.citation-file-format", "CITATION.cff"),
    ],
)
def test_files_follow_their_schemas(repository: Path, schema: str, pattern: str) -> None:
    files = [str(path) for path in repository.glob(pattern)]
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_call_targets_that_exist_and_pinned_actions(repository: Path, name: str) -> None:
    known, called = targets(repository), set()
    for step in steps(repository, name):
        if "uses" in step:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", step["uses"]), step["uses"]
        for words in re.findall(r"\bmake ([^\n]*)", re.sub(r"\$\{\{.*?\}\}", "", step.get("run", ""))):
            called |= {word for word in words.split() if "=" not in word}
    assert called
    assert called <= known
    permissions = workflow(repository, name)["permissions"]
    assert permissions == {"contents": "read"}  # jobs ask for more, one by one
    text = (repository / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    pins = re.findall(r"uses: (\S+)(.*)", text)
    assert pins
    assert all(re.fullmatch(r" # v\d+\.\d+\.\d+", comment) for _, comment in pins)
    assert sorted(path.stem for path in (repository / ".github/workflows").iterdir()) == WORKFLOWS


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed")
def test_actionlint_is_content(repository: Path) -> None:
    result = subprocess.run(["actionlint"], cwd=repository, capture_output=True, text=True, check=False)  # noqa: S607
    assert result.returncode == 0, result.stdout


def test_the_supported_versions_are_the_tested_ones(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    jobs = workflow(repository, "ci")["jobs"]
    for python in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {python}" in project["classifiers"]
        assert python in {one["python"] for one in jobs["tests"]["strategy"]["matrix"]["include"]}
        assert python in jobs["packages"]["strategy"]["matrix"]["python"]


def test_the_account_has_one_name_everywhere(repository: Path, script: Script) -> None:
    address = script("address")
    name = address.owner((repository / "pyproject.toml").read_text(encoding="utf-8"))
    named = {
        str(path.relative_to(repository)): address.owners(path.read_text(encoding="utf-8"))
        for path in address.files(repository)
        if path.suffix != ".py"
    }
    named = {path: owners for path, owners in named.items() if owners}
    assert {"README.md", "pyproject.toml", "CITATION.cff", ".github/CODEOWNERS", "recipe/meta.yaml"} <= set(
        named
    )
    assert all(owners == {name} for owners in named.values()), named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://github.com/OWNER/ewens_widgets/issues", "https://github.com/me-too/ewens_widgets/issues"),
        ("https://OWNER.github.io/ewens_widgets/", "https://me-too.github.io/ewens_widgets/"),
        (
            "https://mybinder.org/v2/gh/OWNER/ewens_widgets/HEAD",
            "https://mybinder.org/v2/gh/me-too/ewens_widgets/HEAD",
        ),
        ("* @OWNER", "* @me-too"),
        ("https://github.com/somebody/else", "https://github.com/somebody/else"),
    ],
)
def test_an_address_is_set_where_it_stands(script: Script, text: str, expected: str) -> None:
    assert script("address").renamed(text, "me-too") == expected


@pytest.fixture
def project(repository: Path, tmp_path: Path) -> Path:
    """A copy of the files that a release changes."""
    for name in (
        "ewens_widgets/_version.py",
        "CHANGELOG.md",
        "CITATION.cff",
        ".zenodo.json",
        "recipe/meta.yaml",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(repository / name, tmp_path / name)
    return tmp_path


def test_a_release_writes_version_and_date_everywhere(project: Path, script: Script) -> None:
    release = script("release")
    changes = (project / "CHANGELOG.md").read_text(encoding="utf-8")
    (project / "CHANGELOG.md").write_text(
        re.sub(r"^## .*", "## 9.8.7 (not released yet)", changes, count=1, flags=re.MULTILINE)
    )
    with pytest.raises(SystemExit, match="the package is"):
        release.check_tag(project, "v9.8.7")
    for _ in range(2):  # the same release, prepared again
        release.prepare(project, "9.8.7", "2031-02-03")
    release.check_tag(project, "v9.8.7")
    citation = YAML(typ="safe").load((project / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], str(citation["date-released"])) == ("9.8.7", "2031-02-03")
    assert json.loads((project / ".zenodo.json").read_text(encoding="utf-8"))["version"] == "9.8.7"
    assert release.notes(project).startswith("###")
    with pytest.raises(SystemExit, match="what is new"):
        release.prepare(project, "9.8.8", "2031-02-04")


def test_citations_agree(repository: Path, script: Script) -> None:
    citation = YAML(typ="safe").load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    zenodo = json.loads((repository / ".zenodo.json").read_text(encoding="utf-8"))
    version = script("release").current(repository)
    assert citation["version"] == zenodo["version"] == version
    assert citation["title"] in zenodo["title"]
    assert citation["license"] == zenodo["license"] == "BSD-3-Clause"
    assert citation["references"][0]["doi"] in {one["identifier"] for one in zenodo["related_identifiers"]}


def test_the_recipe_asks_for_what_the_package_needs(repository: Path, script: Script) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {text.partition(";")[0].strip().replace(">=", " >=", 1) for text in project["dependencies"]}
    text = (repository / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    plain = re.sub(r"\{\{.*?\}\}", "0", re.sub(r"\{%.*?%\}", "", text))
    recipe = YAML(typ="safe").load(plain)
    asked = {text.replace("matplotlib-base", "matplotlib") for text in recipe["requirements"]["run"]}
    assert asked == needed | {"python >=0"}
    assert f'version = "{script("release").current(repository)}"' in text


def test_the_image_copies_what_exists_and_compiles(repository: Path) -> None:
    """Building it is not possible everywhere; names of files and commands are checked."""
    lines = (repository / "binder" / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in lines.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    assert {line.split()[0] for line in lines} <= {"FROM", "USER", "COPY", "RUN", "WORKDIR"}
    assert re.fullmatch(r"FROM [\w./-]+:[\w.-]+", lines[0])
    for name in re.findall(r"/opt/ewens_widgets/([\w./-]+)", "\n".join(lines)):
        assert (repository / name).exists(), name
    assert "ewens-widgets compile" in " ".join(lines)
    assert lines.index("USER ${NB_UID}") > lines.index("USER root")


def test_every_reference_of_the_paper_is_there(repository: Path) -> None:
    paper = (repository / "joss" / "paper.md").read_text(encoding="utf-8")
    known = set(
        re.findall(r"^@\w+\{(\w+),", (repository / "joss" / "paper.bib").read_text("utf-8"), re.MULTILINE)
    )
    assert set(re.findall(r"@([a-z_0-9]+)", paper)) == known
    headings = re.findall(r"^# (.*)", paper, re.MULTILINE)
    wanted = ["Summary", "Statement of need", "State of the field", "Software design", "Research impact"]
    assert headings[:6] == [*wanted, "AI usage disclosure"]
    assert 500 < len(paper.split()) < 1750
