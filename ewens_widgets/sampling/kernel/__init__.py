"""Compiled core of the sampler: the arrays of a chain, and the operations that all moves share.

Everything here runs under numba, or interpreted where numba is missing, with the same result.
"""
