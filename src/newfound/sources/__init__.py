"""Where a stream of images comes from: files, folders that are watched, lines on standard input, videos and cameras.

Every source gives batches of items. Whoever decides on them finishes a batch before asking for the next: a watched
folder, a pipe or a camera has none yet, and its sender may be waiting for answers.
"""

from newfound.sources.items import Item, chunks, from_paths
from newfound.sources.lines import from_lines
from newfound.sources.megadetector import from_megadetector
from newfound.sources.stopping import Stop
from newfound.sources.video import from_video, is_live
from newfound.sources.watching import FolderWatch, watch

__all__ = [
    "FolderWatch", "Item", "Stop", "chunks", "from_lines", "from_megadetector", "from_paths", "from_video", "is_live",
    "watch",
]  # fmt: skip
