"""Static pictures with matplotlib, ready for a page: one kind a file.

Every function returns the figure that it drew in: ``plot_theta(trace).savefig("theta.pdf")``. With ``ax=`` it
draws there, into a figure of yours. Figures are made without pyplot, so that none stays open; a notebook
shows them all the same. `use_style` gives figures of your own the same look.
"""

from ewens_widgets.analysis.plots.animation import animate_partitions
from ewens_widgets.analysis.plots.charts import plot_boxplots, plot_theta, plot_traces, plot_tree
from ewens_widgets.analysis.plots.heatmap_plot import plot_heatmap
from ewens_widgets.analysis.plots.palette import OKABE_ITO, SINGLETON, cluster_colours, use_style
from ewens_widgets.analysis.plots.scatter_plot import plot_scatter

__all__ = [
    "OKABE_ITO",
    "SINGLETON",
    "animate_partitions",
    "cluster_colours",
    "plot_boxplots",
    "plot_heatmap",
    "plot_scatter",
    "plot_theta",
    "plot_traces",
    "plot_tree",
    "use_style",
]
