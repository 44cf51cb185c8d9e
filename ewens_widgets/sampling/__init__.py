"""The Markov chain over partitions: states, moves, the sampler with its events, and the trace of draws."""
