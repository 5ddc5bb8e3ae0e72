"""`newfound categories RUN name`: names for what was discovered, from a list of words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newfound._words import counted
from newfound.cli._common import AsJson, print_json, print_table, say, watcher

if TYPE_CHECKING:
    from newfound.naming import Proposal


def name(
    ctx: typer.Context,
    vocabulary: Annotated[Path, typer.Option(metavar="FILE", help="The words to choose among, one a line.")],
    categories: Annotated[
        list[int] | None,
        typer.Argument(metavar="ID...", help="Of categories.", show_default="discovered ones without a name"),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Give the names; without this, show them.")] = False,
    bar: Annotated[
        float, typer.Option(min=0, max=1, metavar="P", help="--apply: only names at least this probable.")
    ] = 0.5,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Show so many names of each.")] = 5,
    images: Annotated[int, typer.Option(min=1, metavar="N", help="Look at so many images of each.")] = 32,
    at_least: Annotated[int, typer.Option(min=1, metavar="N", help="Leave out categories of fewer images.")] = 1,
    template: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", show_default="photos of all kinds",
            help="A sentence with {} for the name, such as 'a photo of a {}, a bird.'; can be given several times.",
        ),
    ] = None,
    clip: Annotated[
        str | None,
        typer.Option(metavar="MODEL/TAG", show_default="the backbone's", help="Of open_clip, such as ViT-B-16/openai."),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A file with both towers of it.", show_default="the hub's")
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Propose names for discovered categories, by CLIP.

    \bnewfound categories runs/birds name --vocabulary birds.txt
    newfound categories runs/birds name --vocabulary birds.txt --apply --bar 0.8

    A name that was given is never replaced, and none is given twice: where two
    categories look like the same word, a person says whether to merge them.
    `newfound categories RUN undo` takes names back, the last one first.
    """
    from newfound.naming import ACTOR, TEMPLATES, give_names

    with ctx.obj.open(looking=not apply) as curator:
        proposals = curator.propose_names(
            vocabulary, categories=categories, top=top, images=images, at_least=at_least,
            templates=template or TEMPLATES, clip=clip, weights=weights, reporter=watcher(),
        )  # fmt: skip
        given = give_names(curator, proposals, bar=bar, actor=ctx.obj.by or ACTOR) if apply else {}
    if as_json:
        print_json([proposal.as_dict() | {"given": given.get(proposal.category)} for proposal in proposals])
    else:
        print_table(_rows(proposals, given), left=5)
    if not proposals:
        say("every discovered category has a name, is ignored, or has too few images")
    elif apply:
        say(f"{counted(len(given), 'category is', 'categories are')} named now, of {len(proposals)}")


def _rows(proposals: list[Proposal], given: dict[int, str]) -> list[tuple[str, ...]]:
    """A header, and for each category a row a name; what belongs to the category stands in the first."""
    rows: list[tuple[str, ...]] = [("id", "name", "images", "", "proposed", "probability", "cosine")]
    for proposal in proposals:
        remark = "given" if proposal.category in given else "has a name" if proposal.named else ""
        front = (str(proposal.category), given.get(proposal.category, proposal.called), str(proposal.count), remark)
        if not proposal.suggestions:
            rows.append((*front, "no image of it can be read", "", ""))
        for suggestion in proposal.suggestions:
            rows.append((*front, suggestion.name, f"{suggestion.probability:.3f}", f"{suggestion.cosine:.3f}"))
            front = ("", "", "", "")
    return rows
