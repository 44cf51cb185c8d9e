r"""Pack the leukemia data into the file that the package bundles.

    python scripts/build_leukemia.py golub.csv ewens_widgets/data/leukemia.npz

The input is a table (plain or gzip) with a header, a first column ``label`` (ALL or AML) and one column a
gene, one row a sample, values with five decimals: the transposed matrix ``golub`` of the Bioconductor package
multtest with its ``golub.cl`` as labels and the second column of ``golub.gnames`` as header. The values are
stored as whole numbers of hundred-thousandths, so that nothing is lost; more decimals are refused.
"""

import argparse
import csv
import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CLASSES = ("ALL", "AML")


def read_table(path: Path) -> tuple[NDArray[np.float64], list[str], list[str]]:
    """Return the values, the class of each row and the gene of each column."""
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    return np.array([row[1:] for row in rows], dtype=np.float64), [row[0] for row in rows], header[1:]


def pack(values: NDArray[np.float64], classes: list[str], genes: list[str]) -> dict[str, NDArray[np.generic]]:
    """Return the arrays to be stored, after checking that they give back every value exactly."""
    whole = np.rint(values * 100_000.0).astype(np.int32)
    if not np.array_equal(whole / 100_000.0, values):
        raise ValueError("some value has more than five decimals, so it would be changed by packing")
    return {
        "expression_times_100000": whole,
        "labels": np.array([CLASSES.index(name) for name in classes], dtype=np.uint8),
        "genes": np.array([gene.encode("ascii") for gene in genes]),
    }


def main() -> None:
    """Read the arguments, pack, write, and say how large the result is."""
    parser = argparse.ArgumentParser(description="Pack the leukemia data for bundling.")
    parser.add_argument("table", type=Path, help="input table, .csv or .csv.gz")
    parser.add_argument("archive", type=Path, help="output, .npz")
    arguments = parser.parse_args()
    arrays = pack(*read_table(arguments.table))
    np.savez_compressed(arguments.archive, allow_pickle=False, **arrays)
    print(f"{arguments.archive}: {arguments.archive.stat().st_size} bytes")


if __name__ == "__main__":
    main()
