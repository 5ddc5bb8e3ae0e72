"""Where answers go: JSON lines, CSV or Parquet, and folders of images by category."""

from newfound.outputs.answers import Answers, Tally
from newfound.outputs.opening import FORMATS, open_output
from newfound.outputs.sorting import LINKS, Sorter
from newfound.outputs.tables import COLUMNS
from newfound.outputs.writers import Writer

__all__ = ["COLUMNS", "FORMATS", "LINKS", "Answers", "Sorter", "Tally", "Writer", "open_output"]
