"""Several chains on any executor: run in chunks, started again after faults, kept in checkpoints.

A chain is cut into chunks. A task takes the state of a chain to a worker, advances it, and brings back the
new state and the draws; nothing else is remembered between chunks. A state determines all that follows bit
for bit, so the draws depend neither on the executor nor on the size of the chunks nor on who finishes first,
and a chunk that got lost is simply made again.
"""
