import io
import urllib.request
import zipfile
from collections.abc import Iterator
from http.client import IncompleteRead
from pathlib import Path

import numpy as np
import pytest

from ewens_widgets.datasets import denmark_roads
from ewens_widgets.paper import denmark

FILE_NAME = "3D_spatial_network.txt"
# Made-up roads: (OSM id, number of points, cluster). Roads of one to three points must be passed over, and
# what follows the tenth long one must not be taken.
ROADS = [
    (501, 19, 0), (502, 3, 0), (17, 8, 0), (18, 4, 0), (503, 1, 1), (19, 11, 0), (20, 7, 0), (21, 7, 0),
    (22, 6, 0), (900, 13, 1), (901, 6, 1), (23, 6, 0), (504, 2, 0), (24, 30, 1), (25, 30, 0),
]  # fmt: skip
CENTRES = ((15.0, 56.95, 8.75), (70.0, 56.63, 9.99))


def road_lines() -> list[str]:
    rng = np.random.default_rng(7)
    lines = []
    for road, points, cluster in ROADS:
        points_of_road = CENTRES[cluster] + rng.normal(size=(points, 3)) * (3.0, 0.02, 0.05)
        lines += [f"{road},{east:.7f},{north:.7f},{up:.12f}" for up, north, east in points_of_road]
    return lines


def chosen_lines() -> list[str]:
    chosen = [road for road, points, _ in ROADS if points >= 4][:10]
    return [line for line in road_lines() if int(line.split(",")[0]) in chosen]


def file_content() -> bytes:
    return "".join(line + "\n" for line in road_lines()).encode()


def archive_content(name: str = FILE_NAME, content: bytes | None = None) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("readme.txt", "not this one")
        archive.writestr(name, file_content() if content is None else content)
    return stream.getvalue()


def damaged(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give each test an empty cache, and a network that must not be reached."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("EWENS_WIDGETS_DATA", str(folder))
    monkeypatch.setattr(denmark, "DOWNLOAD_ADDRESS", (tmp_path / "nothing.zip").as_uri())
    yield folder
    # Whatever happened, no temporary file stays behind.
    assert not folder.is_dir() or [path.name for path in folder.iterdir()] in ([], [FILE_NAME])


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a path whose content is what a download gets."""
    path = tmp_path / "served.zip"
    path.write_bytes(archive_content())
    monkeypatch.setattr(denmark, "DOWNLOAD_ADDRESS", path.as_uri())
    return path


@pytest.fixture
def road_file(tmp_path: Path) -> Path:
    path = tmp_path / "roads.txt"
    path.write_bytes(file_content())
    return path


def test_the_paper_s_rule_picks_the_first_ten_long_roads(road_file: Path) -> None:
    data = denmark_roads(road_file)
    expected = [line.split(",")[:0:-1] for line in chosen_lines()]
    assert data.X.shape == (87, 3)
    assert np.array_equal(data.X, np.array(expected, dtype=float))
    assert data.feature_names == ("altitude", "latitude", "longitude")
    assert "501, 17, 18, 19, 20, 21, 22, 900, 901, 23" in data.description
    assert "paper" in data.description
    assert "Note:" not in data.description
    # Roads get the cluster of the nearest published mean.
    assert np.bincount(data.labels).tolist() == [68, 19]
    clusters = {str(road): cluster for road, _, cluster in ROADS}
    assert data.labels.tolist() == [clusters[line.split(",")[0]] for line in chosen_lines()]


def test_other_files_are_read_by_the_same_rule(road_file: Path, tmp_path: Path) -> None:
    lines = road_lines()
    # A road counts all its points, wherever they are; here one more road has four of them.
    road_file.write_text("\n".join([*lines, *(line for line in lines if line.startswith("502,"))]))
    data = denmark_roads(str(road_file))
    assert "OSM ids 501, 502, 17," in data.description
    assert "901, 23." not in data.description
    assert len(data.X) == 87 + 6 - 6
    road_file.write_text("\n".join(lines[1:]))
    other = denmark_roads(road_file).description
    assert "Note: the paper has 68 and 19 points, this file 67 and 19." in other
    # Line ends, blank lines and archives do not matter.
    road_file.write_bytes(file_content())
    windows, archive = tmp_path / "windows.txt", tmp_path / "roads.zip"
    windows.write_bytes(file_content().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    archive.write_bytes(archive_content(f"folder/{FILE_NAME}"))
    for path in (windows, archive):
        assert np.array_equal(denmark_roads(path).X, denmark_roads(road_file).X)


@pytest.mark.parametrize("number", [1, 42])
@pytest.mark.parametrize(
    "line",
    [
        *(
            "501,9.3,56.7",
            "501,9.3,56.7,17.0,1",
            "501,9.3,56.7,17.0,1,2",
            "OSM_ID,LONGITUDE,LATITUDE,ALTITUDE",
        ),
        *("5.5,9.3,56.7,17.0", "501,9.3,,17.0", "501,9.3,nan,17.0", "501,inf,56.7,17.0", "501 9.3 56.7 17.0"),
        *("501,9.3,56.7,17.0ø", "x" * 5000),
    ],
)
def test_malformed_line_is_named(tmp_path: Path, line: str, number: int) -> None:
    lines = road_lines()
    lines.insert(number - 1, line)
    path = tmp_path / "bad.txt"
    path.write_text("\n".join(lines), encoding="latin-1")
    with pytest.raises(ValueError, match=f"line {number}: expected OSM_ID") as caught:
        denmark_roads(path)
    assert f"got '{line[:60]}'".replace("ø", r"\\xf8") in str(caught.value)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "has 0 roads .* first 10 of these; is the file cut short"),
        (b"\n\n", "has 0 roads"),
        (b"1,9.3,56.7,17.0\n" * 40, "has 1 roads .* is the file cut short"),
        (archive_content("something else.txt"), r"bad holds no 3D_spatial_network\.txt"),
        (damaged(archive_content()), "bad cannot be unpacked"),
    ],
    ids=["empty", "blank", "one road", "another archive", "damaged archive"],
)
def test_what_is_not_the_file_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=complaint):
        denmark_roads(path)


@pytest.mark.usefixtures("served")
def test_missing_path_is_named_and_nothing_else_is_tried(tmp_path: Path) -> None:
    for missing in (tmp_path / "no such file.txt", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"name 3D_spatial_network\.txt.*standin") as caught:
            denmark_roads(missing)
        assert str(missing) in str(caught.value)


def test_a_download_is_kept_and_not_repeated(served: Path, cache: Path, road_file: Path) -> None:
    with pytest.raises(FileNotFoundError, match="not tried, since download=False"):
        denmark_roads(download=False)
    first = denmark_roads()
    assert np.array_equal(first.X, denmark_roads(road_file).X)
    assert (cache / FILE_NAME).read_bytes() == file_content()
    served.unlink()
    for again in (denmark_roads(), denmark_roads(download=False)):
        assert np.array_equal(again.X, first.X)


def test_a_path_goes_before_what_was_put_into_the_cache(cache: Path, road_file: Path) -> None:
    cache.mkdir()
    (cache / FILE_NAME).write_text("rubbish", encoding="ascii")
    assert denmark_roads(road_file).X.shape == (87, 3)
    with pytest.raises(ValueError, match="line 1"):
        denmark_roads()


def test_without_file_and_network_the_error_tells_what_to_do(cache: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        denmark_roads()
    for told in (str(cache / FILE_NAME), "failed with URLError", "standin(seed)", "archive.ics.uci.edu"):
        assert told in str(caught.value)


@pytest.mark.parametrize(
    "fault",
    [TimeoutError("timed out"), ConnectionResetError("gone"), IncompleteRead(b"", 10), OSError("no route")],
)
def test_every_network_fault_gives_that_error(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, cache: Path
) -> None:
    def broken(request: urllib.request.Request, timeout: float) -> None:
        assert timeout > 0
        raise fault

    monkeypatch.setattr(denmark, "urlopen", broken)
    with pytest.raises(FileNotFoundError, match=f"{type(fault).__name__}.*denmark_roads_standin"):
        denmark_roads()
    assert not cache.exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>not found</html>", "cannot be unpacked"),
        (archive_content()[:-30], "cannot be unpacked"),
        (archive_content("other.txt"), "holds no"),
        (archive_content(content=b"1,2,3\n"), "line 1"),
    ],
)
def test_wrong_answers_are_told_and_never_kept(
    served: Path, cache: Path, content: bytes, reason: str
) -> None:
    served.write_bytes(content)
    with pytest.raises(FileNotFoundError, match=f"{reason}.*denmark_roads_standin"):
        denmark_roads()
    assert not cache.exists()


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("limit", ["_LARGEST_DOWNLOAD", "_LARGEST_FILE"])
def test_oversized_answers_are_refused(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(denmark, limit, 100)
    with pytest.raises(FileNotFoundError, match="larger than 100 bytes"):
        denmark_roads()


@pytest.mark.usefixtures("served")
def test_cache_that_cannot_be_written_only_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EWENS_WIDGETS_DATA", str(tmp_path / "file" / "below"))
    with pytest.warns(UserWarning, match="could not be kept.*EWENS_WIDGETS_DATA") as caught:
        data = denmark_roads()
    assert data.X.shape == (87, 3)
    assert caught[0].filename == __file__
    monkeypatch.undo()
    assert denmark.DOWNLOAD_ADDRESS.startswith("https://archive.ics.uci.edu/static/public/246/")
