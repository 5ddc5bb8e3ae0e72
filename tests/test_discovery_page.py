"""What docs/discovery.md shows works as it stands there, and what it says of rehearsals is what they do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "discovery.md").read_text(encoding="utf-8")


def test_the_example_recognises_the_known_and_finds_the_others():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict = {}
    exec(compile(code, "discovery.md", "exec"), names)
    stream, now = names["stream"], names["now"]
    assert (now[stream < 8] == stream[stream < 8]).all()
    assert len(np.unique(now)) == 12


def test_every_file_that_it_points_to_is_there():
    for target in re.findall(r"\]\((?!http)([^)#]+)", PAGE):
        assert (DOCS / target).exists(), target


def test_what_is_rehearsed_is_what_it_lists():
    from newfound import presets
    from newfound.method._deciding import ByEvidence

    deciding = ByEvidence(presets.resolve("ltc", "default", short=True, overrides={}))
    cuts, trials = deciding.cuts(), deciding.trials()
    (step,) = set(np.diff(cuts))
    told = {"threshold": f"the best of {cuts[0]:g} to {cuts[-1]:g}, in steps of {step:g}"}
    for name, values in trials.items():
        *some, last = (f"{value:g}" for value in sorted(values))
        told[f"`{name}`"] = f"{', '.join(some)} or {last}"
    for name, text in told.items():
        (row,) = re.findall(rf"^\| {name} \| (.*) \|$", PAGE, flags=re.MULTILINE)
        assert text in row
    start = "".join(f", `{name}` {values[0]:g}" for name, values in trials.items())
    assert f"The threshold is then {deciding.own_cut()[0]:g}{start}," in " ".join(PAGE.split())
