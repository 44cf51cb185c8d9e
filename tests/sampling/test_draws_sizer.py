"""How many iterations are run in one go: blocks grow by steps, and shrink at once."""

from ewens_widgets.sampling.draws import BlockSizer


def test_blocks_grow_by_doubling_until_they_fill_the_time() -> None:
    sizer = BlockSizer()
    sizes = []
    for _ in range(12):
        sizes.append(sizer.size(0.010))
        sizer.measured(sizes[-1], sizes[-1] * 0.0001)
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 100, 100, 100, 100, 100]


def test_blocks_shrink_at_once() -> None:
    sizer = BlockSizer()
    for _ in range(10):
        sizer.measured(sizer.size(0.010), sizer.size(0.010) * 0.0001)
    sizer.measured(100, 0.100)
    assert sizer.size(0.010) <= 20


def test_block_is_never_empty_and_never_huge() -> None:
    sizer = BlockSizer(largest=64)
    sizer.measured(1, 3.0)
    assert sizer.size(0.010) == 1
    for _ in range(30):
        sizer.measured(sizer.size(1e9), 0.0)
    assert sizer.size(1e9) == 64


def test_sizer_forgets() -> None:
    sizer = BlockSizer()
    for _ in range(10):
        sizer.measured(sizer.size(0.010), 0.0)
    sizer.restart()
    assert sizer.size(0.010) == 1


def test_chunks_begin_long_and_grow_fast() -> None:
    sizer = BlockSizer(largest=10**6, first=64, growth=4, newest=1.0)
    sizes = []
    for _ in range(6):
        sizes.append(sizer.size(1.0))
        # The first one includes loading compiled code, and says little.
        sizer.measured(sizes[-1], 2.0 if len(sizes) == 1 else sizes[-1] * 0.001)
    assert sizes == [64, 32, 256, 1000, 1000, 1000]
