"""The probability model: prior, likelihood, canonical coordinates, posterior and its exact enumeration.

Everything here is a pure function or a frozen value; only a prior draws random numbers.
"""
