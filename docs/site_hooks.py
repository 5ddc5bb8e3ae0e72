"""What `make docs` does to pages that are also read where they lie, in the repository.

Figures stay where benchmarks write them, outside of docs/. The site has its own copies.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).resolve().parent.parent
_FIGURE = re.compile(r"(?<=\]\()\.\./(benchmarks/results/[^)\s]+)(?=\))")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the figures that pages show."""
    pages = [Path(file.abs_src_path).read_text(encoding="utf-8") for file in files.documentation_pages()]
    for name in sorted({name for page in pages for name in _FIGURE.findall(page)}):
        files.append(File.generated(config, f"images/{name}", abs_src_path=str(_ROOT / name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show the site's copies of figures."""
    return _FIGURE.sub(r"images/\1", markdown)
