"""Playing a chain: play, pause, step, seek, at a chosen speed, with frames for views. No widgets here."""

from ewens_widgets.playback.display import Screen
from ewens_widgets.playback.frame import Frame, PlayerState, PlayerStatus, Tick
from ewens_widgets.playback.pacing import Pacing
from ewens_widgets.playback.player import Player, Worker
from ewens_widgets.playback.summaries import RunningSummaries, Summary
from ewens_widgets.playback.work import EventRecorder, Source, Work

__all__ = [
    "EventRecorder",
    "Frame",
    "Pacing",
    "Player",
    "PlayerState",
    "PlayerStatus",
    "RunningSummaries",
    "Screen",
    "Source",
    "Summary",
    "Tick",
    "Work",
    "Worker",
]
