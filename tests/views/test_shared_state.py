"""The tree that views share."""

from views.chains import Chain

from ewens_widgets.playback import PlayerState
from ewens_widgets.views.shared_state import LiveTree


class TestLiveTree:
    def test_a_running_chain_gets_a_new_tree_now_and_then(self, chain: Chain) -> None:
        now = 0.0
        live = LiveTree(rest=1.0, clock=lambda: now)
        live.prepare(chain.posterior)
        first = live.tree(chain.frame(5, PlayerState.PLAYING))
        assert live.tree(chain.frame(6, PlayerState.PLAYING)) is first
        now = 1.1
        second = live.tree(chain.frame(7, PlayerState.PLAYING))
        assert second is not first
        paused = chain.frame(9)
        third = live.tree(paused)
        assert third is not second, "where the chain rests the tree is up to date"
        assert live.tree(paused) is third

    def test_before_the_first_draw_there_is_none(self, chain: Chain) -> None:
        live = LiveTree()
        live.prepare(chain.posterior)
        assert live.tree(chain.frame(0)) is None
        assert "no draws yet" in live.reason
