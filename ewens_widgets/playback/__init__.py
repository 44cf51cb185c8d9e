"""Playing a chain: play, pause, step, seek, at a chosen speed, with frames for views. No widgets here."""

from ewens_widgets.playback.display import Pacing, Screen
from ewens_widgets.playback.frame import (
    ChainAnswer,
    Frame,
    PlayerState,
    PlayerStatus,
    RunningSummaries,
    Status,
    Summary,
    Tick,
)
from ewens_widgets.playback.loop import Work, Worker
from ewens_widgets.playback.player import Player, Source

__all__ = [
    "ChainAnswer",
    "Frame",
    "Pacing",
    "Player",
    "PlayerState",
    "PlayerStatus",
    "RunningSummaries",
    "Screen",
    "Source",
    "Status",
    "Summary",
    "Tick",
    "Work",
    "Worker",
]
