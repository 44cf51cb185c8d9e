"""Several chains side by side: run by joblib in rounds, kept in checkpoints, and their result.

A task takes the state of a chain, advances it for about a second, and brings back the new state and the draws
(`sample`). The state determines everything that follows, bit for bit. The draws therefore depend neither on
the place where a task ran nor on its length, and a run can go on from what its checkpoint holds.
"""
