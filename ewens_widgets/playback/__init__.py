"""Playing a chain: play, pause, step, seek, at a chosen speed, with frames for views. No widgets here."""

from ewens_widgets.playback.frame import Frame, PlayerState, PlayerStatus
from ewens_widgets.playback.pacing import Pacing
from ewens_widgets.playback.player import Player
from ewens_widgets.playback.summaries import RunningSummaries, Summary
from ewens_widgets.playback.work import EventRecorder, SelfRecording, Snapshots, Source, View

__all__ = [
    "EventRecorder",
    "Frame",
    "Pacing",
    "Player",
    "PlayerState",
    "PlayerStatus",
    "RunningSummaries",
    "SelfRecording",
    "Snapshots",
    "Source",
    "Summary",
    "View",
]
