"""The examples in docstrings, run without taking the standard output from whatever else prints."""

from __future__ import annotations

import doctest
from types import ModuleType


def check_examples(module: ModuleType) -> None:
    """Each example in the docstrings of a module gives what stands below it, and there are some."""
    examples = [(dict(test.globs), test.examples) for test in doctest.DocTestFinder().find(module) if test.examples]
    assert examples
    for names, lines in examples:
        for line in lines:
            if line.options.get(doctest.SKIP):
                continue
            if line.want:
                assert repr(eval(line.source, names)) == line.want.rstrip("\n"), line.source
            else:
                exec(line.source, names)
