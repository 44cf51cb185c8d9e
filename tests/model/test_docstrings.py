"""The examples in the docstrings of the model run as they are printed."""

import doctest
import pkgutil
from importlib import import_module
from types import FunctionType

import pytest

import ewens_widgets.model

MODULES = ["ewens_widgets.partition"] + [
    module.name for module in pkgutil.walk_packages(ewens_widgets.model.__path__, "ewens_widgets.model.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    assert sum(len(test.examples) for name in MODULES for test in finder.find(import_module(name))) >= 3


@pytest.mark.parametrize("name", MODULES)
def test_public_names_exist_and_are_documented(name: str) -> None:
    module = import_module(name)
    for public in module.__all__:
        value = getattr(module, public)
        if isinstance(value, type | FunctionType):
            assert value.__doc__, public
