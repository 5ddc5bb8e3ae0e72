"""What the commands share: errors in one line, exit codes, and output for people and for machines."""

from __future__ import annotations

import io
import math
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from newfound.errors import NewfoundError, SettingsError
from newfound.files import json_text, write_text
from newfound.progress import BarReporter, Reporter

FAILED, MISUSED, PARTLY, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 130, 141
_SAY_EVERY = 60.0  # seconds
# What would move the cursor, colour the rest, or cannot be encoded: names of files may hold all of these.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def finite(parameter: typer.CallbackParam, value: float | None) -> float | None:
    """A number as it was given. Raises SettingsError for nan and inf, which the command line takes for numbers."""
    if value is not None and not math.isfinite(value):
        raise SettingsError(f"{parameter.opts[0]} {value}: give a finite number.")
    return value


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, for machines.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same result.")]
Labelled = Annotated[
    str, typer.Argument(metavar="DATA", help="A folder with one folder a class, or a CSV of path,label.")
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `newfound train --out` wrote.")]
Threshold = Annotated[
    float | None,
    typer.Option(metavar="X", callback=finite, help="Another cut than the run's own: a log ratio, or a cosine."),
]
Runtime = Annotated[
    str,
    typer.Option(
        metavar="torch|onnx|openvino|auto|DIR", help="What the encoder runs on; DIR: what `newfound export` wrote."
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="auto|cpu|cuda|cuda:1|mps", help="Where PyTorch computes; auto: the first GPU of CUDA if there is one."
    ),
]
TrunkWeights = Annotated[
    str | None, typer.Option(metavar="PATH", help="Where the backbone's weight file is now, if it has moved.")
]


class CarefulGroup(TyperGroup):
    """Turns what can go wrong into one line on standard error and an exit code, for every command below it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            make_streams_usable()
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe is still handled
            return result
        except KeyboardInterrupt:
            say("newfound: interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader, such as `head`, has seen enough
            raise typer.Exit(PIPE_CLOSED) from None
        except Exception as error:
            if _is_typers(error) or debugging():
                raise
            say(f"newfound: {in_one_line(error)}")
            raise typer.Exit(MISUSED if isinstance(error, SettingsError) else FAILED) from None


def _is_typers(error: Exception) -> bool:
    """Whether this is how typer itself ends a command, such as a usage error; older versions leave that to click."""
    return type(error).__module__.partition(".")[0] in ("typer", "click")


def debugging() -> bool:
    """Whether tracebacks are asked for."""
    return os.environ.get("NEWFOUND_DEBUG") == "1"


def in_one_line(error: Exception) -> str:
    """What went wrong, for a person; of what nobody foresaw, how to see more."""
    if isinstance(error, (NewfoundError, OSError)):
        return str(error)
    what = f"{type(error).__name__}: {error}".replace("\n", " ")
    return f"unexpected {what} (NEWFOUND_DEBUG=1 shows where; please report it)"


def make_streams_usable() -> None:
    """Let no command fail over its streams: a closed one leads nowhere, and what cannot be encoded is written escaped.

    Names of files need not be text. In UTF-8 their very bytes are written, so that a reader can open the file.
    """
    if sys.stdin is None:  # as after <&-; the number must not go to a file that is opened later
        sys.stdin = open(os.devnull)  # noqa: SIM115  (for as long as the process lives)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        is_utf8 = sys.stdout.encoding.replace("-", "").lower() == "utf8"
        sys.stdout.reconfigure(errors="surrogateescape" if is_utf8 else "backslashreplace")


def flush_quietly() -> None:
    """Flush standard output; if that fails, let Python's own flush at exit find nothing to complain of.

    Its reader may have gone, or its disk be full: the command has said so, and ended with an exit code.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def use_threads(count: int) -> None:
    """Limit PyTorch, and the BLAS that NumPy has yet to load, to so many threads."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(count)
    import torch

    torch.set_num_threads(count)


def say(message: str) -> None:
    """A line for the person, on standard error: standard output is for results."""
    typer.echo("\n".join(map(visible, message.split("\n"))), err=True)


def visible(text: str) -> str:
    """Text that a terminal shows as it is: control characters, and bytes that are no text, as Python writes them."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def warn(message: str) -> None:
    say(f"newfound: warning: {message}")


class _LineReporter(Reporter):
    """Says what a person should see, and of long work once a minute how far it is; bars would only litter a log."""

    def say(self, message: str) -> None:
        say(message)

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        done, told = 0, time.monotonic()

        def progress(count: int) -> None:
            nonlocal done, told
            done += count
            if time.monotonic() - told >= _SAY_EVERY:
                told = time.monotonic()
                say(f"{title}: {done:,} of {total:,}" if total else f"{title}: {done:,}")

        yield progress


def watcher() -> Reporter:
    """The reporter for long work: bars where someone may be watching standard error."""
    return BarReporter() if sys.stderr.isatty() else _LineReporter()


def print_json(value: Any) -> None:
    typer.echo(json_text(value, encoding=sys.stdout.encoding, indent=2))


def write_json(path: Path, value: Any) -> None:
    """Write a result to a file. Raises DataError if it cannot be written."""
    write_text(path, json_text(value, indent=2) + "\n")


def print_table(rows: Iterable[Sequence[str]], *, left: int = 1, header: bool = True) -> None:
    """Print rows, the first of them as a header if there is one; the first `left` columns are aligned left, the others
    right."""
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    def shown(text: str) -> Text:  # Text: a class name may look like markup
        return Text(visible(text))

    first, *others = rows
    table = Table(box=box.SIMPLE, pad_edge=False, show_header=header)
    for index, name in enumerate(first):
        table.add_column(Text(name), justify="left" if index < left else "right", overflow="fold")
    for row in others if header else (first, *others):
        table.add_row(*map(shown, row))
    console = Console(file=sys.stdout)
    if not sys.stdout.isatty():  # into a file or a pipe a row stays on one line, however long it is
        console.width = max(400, Measurement.get(console, console.options.update(width=1 << 20), table).maximum)
    console.print(table)


def command(*words: object) -> str:
    """A command as it can be pasted into a shell."""
    return "  newfound " + shlex.join(str(word) for word in words)
