"""Where downloaded data are kept, and how a file gets there whole or not at all."""

import os
import sys
import tempfile
from pathlib import Path

__all__ = ["cache_directory", "write_atomically"]

_APPLICATION = "ewens_widgets"


def cache_directory() -> Path:
    r"""Return the folder in which downloaded data are kept; it need not exist yet.

    The environment variable ``EWENS_WIDGETS_DATA`` decides when it is set. Otherwise it is the platform's
    place for caches: ``%LOCALAPPDATA%\ewens_widgets\Cache``, ``~/Library/Caches/ewens_widgets``, or
    ``$XDG_CACHE_HOME/ewens_widgets`` (``~/.cache/ewens_widgets``).
    """
    chosen = os.environ.get("EWENS_WIDGETS_DATA")
    if chosen:
        return Path(chosen).expanduser()
    home = Path("~").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / _APPLICATION / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / _APPLICATION
    # The XDG specification says to ignore relative paths.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else home / ".cache") / _APPLICATION


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``; other readers see what was there before or all of it, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
