"""Priors on partitions, one a file."""

__all__: list[str] = []
