"""The probability model: prior, likelihood, canonical coordinates, posterior and its exact enumeration.

Everything here is a pure function or a frozen value; nothing draws random numbers but `ewens.sample`.
"""
