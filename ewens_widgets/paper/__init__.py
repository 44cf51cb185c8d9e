"""The paper's experiments as code: run again with its algorithm and with ours, beside two standard methods.

``run_paper("results")``, or ``ewens-widgets paper`` on the command line, writes a Markdown table and figures.
"""

from ewens_widgets.paper.experiments import EXPERIMENTS, Experiment, Settings
from ewens_widgets.paper.reproduction import run_paper

__all__ = ["EXPERIMENTS", "Experiment", "Settings", "run_paper"]
