"""Playing a chain: play, pause, step, seek, at a chosen speed, with frames for views. No widgets here."""

from ewens_widgets.playback.frame import Frame
from ewens_widgets.playback.interfaces import EventRecorder, SelfRecording, Snapshots, Source, View
from ewens_widgets.playback.pacing import Pacing
from ewens_widgets.playback.player import Player
from ewens_widgets.playback.status import PlayerState, PlayerStatus
from ewens_widgets.playback.summaries import RunningSummaries, Summary

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
