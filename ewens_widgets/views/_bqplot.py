"""Imports bqplot once, quietly: its traits use what traitlets announces to drop, which is no news here."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import bqplot  # noqa: F401 - later imports find it loaded
