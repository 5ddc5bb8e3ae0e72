"""The closed-set control: the baseline's features, and never anything new."""

from __future__ import annotations

from newfound.method.baseline import Baseline


class Closed(Baseline):
    """Gives every image to the nearest known class. A method that cannot beat it discovers nothing."""

    name = "closed"
    about = "the control: trained like the baseline, gives every image to a known class"
    discovers = False
