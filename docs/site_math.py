"""Formulas of the pages as MathML, which browsers show by themselves: no script, nothing to fetch.

Only the part of TeX that these pages use is known here; anything else stops the build with its name.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

_TOKEN = re.compile(r"\\(?:mathrm|text)\{[^}]*\}|\\[a-zA-Z]+|\\.|[a-zA-Z]+|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
_WORDS = re.compile(r"\\(?:mathrm|text)\{([^}]*)\}")
_CODE = r"^ *```.*?^ *```$|`[^`\n]+`"  # where a dollar is a dollar
_FORMULA = re.compile(rf"(?P<code>{_CODE})|\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^$`\n]+)\$", re.DOTALL | re.MULTILINE)

_LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "varepsilon": "ε", "eta": "η", "theta": "θ", "lambda": "λ",
    "rho": "ρ", "sigma": "σ", "tau": "τ", "psi": "ψ", "ell": "ℓ", "top": "⊤",
}  # fmt: skip
_SIGNS = {
    "sum": "∑", "nabla": "∇", "lVert": "‖", "rVert": "‖", "mid": "∣", "in": "∈", "ne": "≠", "le": "≤", "ge": "≥",
    "sim": "∼", "leftarrow": "←", "odot": "⊙", "cdot": "⋅",
}  # fmt: skip
_FUNCTIONS = frozenset({"log", "exp", "cos", "tanh", "arg", "max", "min"})
_SPACES = {"quad": "1em", "qquad": "2em", ",": "0.17em"}
_ACCENTS = {"hat": "^", "tilde": "~"}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Every formula of a page, but none in code, as MathML."""

    def put(found: re.Match[str]) -> str:
        if found["code"] is not None:
            return found[0]
        return mathml(found["display"] or found["inline"], display=found["display"] is not None)

    return _FORMULA.sub(put, markdown)


def mathml(tex: str, *, display: bool = False) -> str:
    """A formula as a `math` element. Raises ValueError for what is not known here."""
    reader = _Reader(tex)
    row = reader.row()
    if reader.left:
        raise ValueError(f"a brace too many in {tex!r}")
    block = ' display="block"' if display else ""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML"{block}>{row}</math>'


class _Reader:
    """Reads tokens from left to right; `left` holds those to come, the next one last."""

    def __init__(self, tex: str) -> None:
        self.tex = tex
        self.left = [token for token in _TOKEN.findall(tex) if not token.isspace()][::-1]

    def row(self) -> str:
        """All up to a closing brace, a \\right, or the end."""
        parts = []
        while self.left and self.left[-1] not in ("}", "\\right"):
            parts.append(self.scripted())
        return f"<mrow>{''.join(parts)}</mrow>"

    def scripted(self) -> str:
        """An atom with what hangs below and above it."""
        sign = self.left[-1]
        base, below, above = self.atom(), "", ""
        while self.left and self.left[-1] in ("_", "^", "'"):
            kind = self.left.pop()
            if kind == "_":
                below = self.argument()
            else:
                above += "<mo>′</mo>" if kind == "'" else self.argument()
        above = f"<mrow>{above}</mrow>" if above else ""
        if sign == "\\sum" and below:
            return f"<munder>{base}{below}</munder>"
        if below and above:
            return f"<msubsup>{base}{below}{above}</msubsup>"
        if below or above:
            base = f"<msub>{base}{below}</msub>" if below else f"<msup>{base}{above}</msup>"
        return f'{base}<mspace width="0.17em"/>' if sign[1:] in _FUNCTIONS else base

    def argument(self) -> str:
        """What a command or a script takes: a group, or one token, and of a number one digit."""
        token = self.left[-1] if self.left else ""
        if token.isdigit() and len(token) > 1:
            self.left[-1:] = [token[1:], token[0]]
        return self.atom()

    def atom(self) -> str:
        if not self.left:
            raise ValueError(f"{self.tex!r} ends too early")
        token = self.left.pop()
        if token == "{":
            row = self.row()
            self.expect("}")
            return row
        if words := _WORDS.fullmatch(token):
            return f"<mtext>{escape(words[1]).replace(' ', '&#160;')}</mtext>"
        if token[0] == "\\":
            return self.command(token[1:])
        if token[0].isalpha():
            return f"<mi>{token}</mi>"
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        return _operator("−" if token == "-" else token)

    def command(self, name: str) -> str:
        if name in _LETTERS:
            return f"<mi>{_LETTERS[name]}</mi>"
        if name in _SIGNS:
            return _operator(_SIGNS[name])
        if name in _FUNCTIONS:
            return f"<mi>{name}</mi>"
        if name in _SPACES:
            return f'<mspace width="{_SPACES[name]}"/>'
        if name in _ACCENTS:
            return f'<mover accent="true">{self.argument()}{_operator(_ACCENTS[name])}</mover>'
        if name in ("frac", "tfrac"):
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if name == "binom":
            stack = f'<mfrac linethickness="0">{self.argument()}{self.argument()}</mfrac>'
            return f"<mrow><mo>(</mo>{stack}<mo>)</mo></mrow>"
        if name == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if name == "left":
            opening, row = self.left.pop(), self.row()
            self.expect("\\right")
            return f"<mrow><mo>{opening}</mo>{row}<mo>{self.left.pop()}</mo></mrow>"
        raise ValueError(f"\\{name} in {self.tex!r} is not known to {__file__}")

    def expect(self, token: str) -> None:
        if not self.left or self.left.pop() != token:
            raise ValueError(f"{token} is missing in {self.tex!r}")


def _operator(sign: str) -> str:
    fixed = ' stretchy="false"' if sign in "()[]|‖" else ""  # only those of \left and \right grow with what they hold
    return f"<mo{fixed}>{'&#124;' if sign == '|' else escape(sign)}</mo>"  # a bar would end a table's cell
