"""The parts of a report: elements whose text is always escaped, and drawings without a library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from mosaic.analytics import scales
from mosaic.analytics.headline import EVALUATION_RETURN, TRAINING_RETURN
from mosaic.analytics.report_data import Axis, Floats, GroupCurve
from mosaic.analytics.statistics import Interval
from mosaic.contract import words
from mosaic.contract.plain import plain

EVALUATED = "eval/mean_return"
"""What evaluations earn that a run makes while it trains."""
COLOURS = 8
"""Lines after these have the same colours again, dashed."""
_NAMES = {TRAINING_RETURN: "episodic return", EVALUATION_RETURN: "episodic return", EVALUATED: "mean return"}
_EMPTY = frozenset({"img", "line", "path", "circle", "rect", "meta"})


class Markup(str):
    """Text that is part of a page as it stands; all other text is escaped."""


def el(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element. `cls` is its class; attributes that are None are left out, `_` in names stands for `-`."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-").replace("cls", "class")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY:
        return Markup(f"<{name}{told}{'/' if name != 'meta' else ''}>")
    return Markup(f"<{name}{told}>{join(children)}</{name}>")


def join(children: Sequence[Any]) -> Markup:
    """Several children one after the other; those that are None are left out."""
    return Markup(
        "".join(
            one if isinstance(one, Markup) else join(one) if isinstance(one, list | tuple) else text(one)
            for one in children
            if one is not None
        )
    )


def text(value: Any) -> Markup:
    """What others have written, as letters: nothing in it is obeyed, turned around or left half."""
    shown = plain(str(value)).encode("utf-8", "replace").decode()
    return Markup(escape(shown, quote=True))


def key(number: int) -> Markup:
    """The colour of a group, before its name."""
    return el(
        "svg",
        el("rect", width=18, height=10, rx=3, cls=f"f{number % COLOURS}"),
        cls="key",
        viewBox="0 0 18 10",
    )


def number_cell(value: str) -> Markup:
    """A cell of a table with a number."""
    return el("td", value, cls="num")


@dataclass(frozen=True)
class Line:
    """A curve with its number, which gives its colour; `beside` is drawn thin and dashed."""

    number: int
    label: str
    curve: GroupCurve
    beside: GroupCurve | None = None


@dataclass(frozen=True)
class _Frame:
    """The area of a chart, and where values lie in it."""

    left: float
    top: float
    right: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, value: float) -> float:
        return self.left + (value - self.x[0]) / (self.x[1] - self.x[0]) * (self.right - self.left)

    def down(self, value: float) -> float:
        return self.bottom - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.bottom - self.top)

    def path(self, places: Floats, values: Floats) -> str:
        return " ".join(
            f"{'L' if number else 'M'}{self.across(x):.1f} {self.down(y):.1f}"
            for number, (x, y) in enumerate(zip(places.tolist(), values.tolist(), strict=True))
        )

    def area(self, curve: GroupCurve) -> str:
        back = self.path(curve.places[::-1], curve.low[::-1])
        return f"{self.path(curve.places, curve.high)} L{back[1:]} Z"


def line_chart(
    lines: Sequence[Line], title: str, y_name: str, axis: Axis | str, size: tuple[int, int] = (1016, 360)
) -> Markup:
    """Curves with their bands. Colours come from the page, which knows whether it is dark."""
    width, height = size
    curves = [line.curve for line in lines]
    low = min(float(curve.low.min()) for curve in curves)
    high = max(float(curve.high.max()) for curve in curves)
    pad = (high - low) * 0.04 or max(abs(high), 1.0) * 0.04
    y = low - pad, high + pad
    x = min(float(one.places.min()) for one in curves), max(float(one.places.max()) for one in curves)
    x = x if x[1] > x[0] else (x[0] - 0.5, x[0] + 0.5)
    spacing, marks = scales.nice_ticks(*y, 6)
    words = scales.value_ticks(marks, spacing)
    frame = _Frame(28 + 7.6 * max(map(len, words), default=1), 12, width - 16, height - 42, x, y)
    drawn: list[Markup] = []
    for mark, word in zip(marks, words, strict=True):
        at = frame.down(mark)
        drawn.append(el("line", x1=frame.left, x2=frame.right, y1=f"{at:.1f}", y2=f"{at:.1f}", cls="grid"))
        drawn.append(el("text", word, x=frame.left - 8, y=f"{at + 4:.1f}", cls="tick end"))
    for mark, word in zip(*_across_ticks(x, axis), strict=True):
        at = frame.across(mark)
        drawn.append(
            el("line", x1=f"{at:.1f}", x2=f"{at:.1f}", y1=frame.bottom, y2=frame.bottom + 4, cls="mark")
        )
        drawn.append(el("text", word, x=f"{at:.1f}", y=frame.bottom + 18, cls="tick middle"))
    for line in lines:
        if line.curve.runs > 1:
            drawn.append(el("path", d=frame.area(line.curve), cls=f"band f{line.number % COLOURS}"))
    for line in lines:
        style = f"s{line.number % COLOURS}{' dashed' * (line.number >= COLOURS)}"
        if line.beside is not None:
            d = frame.path(line.beside.places, line.beside.value)
            drawn.append(el("path", d=d, cls=f"beside {style}"))
        d = frame.path(line.curve.places, line.curve.value)
        drawn.append(Markup(f'<path d="{d}" class="line {style}">{el("title", line.label)}</path>'))
    drawn.append(el("line", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom, cls="mark"))
    named = {"steps": "environment steps", "time": "time"}.get(axis, axis)
    middle = (frame.left + frame.right) / 2
    drawn.append(el("text", named, x=f"{middle:.1f}", y=height - 6, cls="name middle"))
    turned = f"rotate(-90 12 {(frame.top + frame.bottom) / 2:.1f})"
    drawn.append(
        el(
            "text",
            y_name,
            x=12,
            y=f"{(frame.top + frame.bottom) / 2:.1f}",
            cls="name middle",
            transform=turned,
        )
    )
    return el(
        "svg",
        el("title", title),
        drawn,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        role="img",
        cls="chart",
    )


def _across_ticks(x: tuple[float, float], axis: Axis | str) -> tuple[list[float], list[str]]:
    if axis == "steps":
        spacing, marks = scales.nice_steps(*x, 7)
        return marks, scales.step_ticks(marks, spacing)
    if axis == "time":
        spacing, marks = scales.nice_times(*x, 7)
        return marks, scales.time_ticks(marks, spacing)
    spacing, marks = scales.nice_ticks(*x, 7)
    return marks, scales.value_ticks(marks, spacing)


def figure(lines: Sequence[Line], title: str, y_name: str, axis: Axis | str) -> Markup:
    """A chart under its legend."""
    legend = el(
        "ul",
        [
            el(
                "li",
                key(line.number),
                line.label,
                f" ({words.count(line.curve.runs, 'seed')})" if axis == "steps" else "",
            )
            for line in lines
        ],
        cls="legend",
    )
    return el("figure", legend, line_chart(lines, title, _NAMES.get(y_name, y_name), axis))


_STRIP = (260, 26)
_MARGIN = 18
"""Beside the ends of a strip: half of a number."""


def strip(
    points: Sequence[float], found: Interval | None, ends: tuple[float, float], number: int, seeds: int
) -> Markup:
    """A row of a table as a drawing: a point for each seed, and the mean within its interval."""
    width, height = _STRIP
    middle = height / 2

    def at(value: float) -> str:
        share = (value - ends[0]) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.5
        return f"{_MARGIN + min(max(share, 0.0), 1.0) * (width - 2 * _MARGIN):.1f}"

    colour = number % COLOURS
    drawn: list[Markup] = [el("line", x1=0, x2=width, y1=middle, y2=middle, cls="grid")]
    if found is not None and seeds > 1:
        drawn.append(
            el("line", x1=at(found.low), x2=at(found.high), y1=middle, y2=middle, cls=f"span s{colour}")
        )
    for value in points:
        drawn.append(
            Markup(
                f'<circle cx="{at(value)}" cy="{middle}" r="3.6" class="dot f{colour}">'
                f"{el('title', f'{value:,.6g}')}</circle>"
            )
        )
    if found is not None:
        drawn.append(
            el("line", x1=at(found.value), x2=at(found.value), y1=4, y2=height - 4, cls=f"mean s{colour}")
        )
    return el("svg", drawn, viewBox=f"0 0 {width} {height}", cls="strip", aria_hidden="true")


def strip_axis(ends: tuple[float, float]) -> Markup:
    """The scale under strips."""
    width, _ = _STRIP
    if not math.isfinite(ends[1] - ends[0]) or ends[1] <= ends[0]:
        return Markup()
    spacing, marks = scales.nice_ticks(*ends, 4)
    words = scales.value_ticks(marks, spacing)
    drawn = [
        el(
            "text",
            word,
            x=f"{_MARGIN + (mark - ends[0]) / (ends[1] - ends[0]) * (width - 2 * _MARGIN):.1f}",
            y=12,
            cls="tick middle",
        )
        for mark, word in zip(marks, words, strict=True)
    ]
    return el("svg", drawn, viewBox=f"0 0 {width} 16", cls="strip", aria_hidden="true")


STYLE = """
:root{color-scheme:light dark;--bg:#fff;--text:#1b1f24;--dim:#5b6470;--line:#d9dee4;--soft:#f4f6f8;
--good:#1a7f37;
--bad:#b3261e;--warn:#8a5a00;--s0:#0072b2;--s1:#d55e00;--s2:#009e73;--s3:#a6559d;--s4:#b88200;--s5:#3a9fd0;
--s6:#7a4a2b;--s7:#5a6270}
@media screen and (prefers-color-scheme:dark){:root{--bg:#14171b;--text:#e6e9ed;--dim:#9aa4b0;
--line:#323943;
--soft:#1c2127;--good:#56c271;--bad:#ff8a80;--warn:#e3b341;--s0:#58b0e3;--s1:#ff9248;--s2:#3ecba5;--s3:#dd93d5;
--s4:#e8bf4d;--s5:#9bdcff;--s6:#cf9b76;--s7:#b4bcc6}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,"Segoe UI",Roboto,
"Helvetica Neue",
"DejaVu Sans",sans-serif;overflow-wrap:break-word}
main{max-width:1080px;margin:0 auto;padding:40px 32px 64px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:19px;margin:44px 0 12px;padding-bottom:6px;border-bottom:1px solid var(--line)}
h3{font-size:15px;margin:24px 0 6px}
p{margin:6px 0}.lead,.note,figcaption,footer{color:var(--dim)}.note,figcaption,footer{font-size:13px}
ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 22px;padding:0;margin:4px 0 8px;
font-size:13px}
ul.plain{padding-left:18px;margin:6px 0}
.key{display:inline-block;width:18px;height:10px;margin-right:7px;vertical-align:0}
figure{margin:10px 0 4px}svg.chart{width:100%;height:auto;display:block}svg.strip{width:100%;
min-width:150px;
height:auto;display:block}
.grid{stroke:var(--line);stroke-width:1}.mark{stroke:var(--dim);stroke-width:1}
.tick{font-size:12px;fill:var(--dim)}.name{font-size:13px;fill:var(--dim)}.middle{text-anchor:middle}
.end{text-anchor:end}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.beside{fill:none;stroke-width:1.2;
stroke-dasharray:2 3}
.dashed{stroke-dasharray:7 4}.band{opacity:.17;stroke:none}.span{stroke-width:9;opacity:.3;
stroke-linecap:round}
.dot{opacity:.85}.mean{stroke-width:2.5}
table{border-collapse:collapse;width:100%;font-size:13.5px;margin:8px 0}
th{text-align:left;font-weight:600;color:var(--dim);font-size:12px;vertical-align:bottom}
th,td{padding:6px 12px 6px 0;border-bottom:1px solid var(--line);vertical-align:middle}
td.num,th.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.wide{width:26%}td:first-child,.loose,dd,pre,.tag,h1,h3,li{overflow-wrap:anywhere}
td:first-child{min-width:150px}tr.axis td{border:0;padding-top:2px}td.usual{color:var(--dim)}
code,pre{font:12.5px/1.55 ui-monospace,"SF Mono",Consolas,"DejaVu Sans Mono",monospace}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:10px 12px;
white-space:pre-wrap;
margin:6px 0}
.whole{white-space:nowrap}
details{margin:8px 0}summary{cursor:pointer;color:var(--dim);font-size:13.5px}
.tag{display:inline-block;background:var(--soft);border:1px solid var(--line);border-radius:9px;
padding:0 8px;
margin:0 5px 3px 0;font-size:12px}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:4px 20px;font-size:13.5px}
.facts dt{color:var(--dim)}
.facts dd{margin:0}.said{white-space:pre-wrap}.facts dt .note{display:block}
.frames{display:grid;grid-template-columns:repeat(6,1fr);gap:8px}
.frames img{width:100%;border-radius:4px;border:1px solid var(--line)}
footer{margin-top:56px;border-top:1px solid var(--line);padding-top:12px}
.f0{fill:var(--s0)}.f1{fill:var(--s1)}.f2{fill:var(--s2)}.f3{fill:var(--s3)}.f4{fill:var(--s4)}.f5{fill:var(--s5)}
.f6{fill:var(--s6)}.f7{fill:var(--s7)}
.s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}.s4{stroke:var(--s4)}
.s5{stroke:var(--s5)}.s6{stroke:var(--s6)}.s7{stroke:var(--s7)}
@page{margin:16mm}
@media print{body{font-size:10.5pt}main{max-width:none;padding:0}h2{margin-top:24px}h2,h3{break-after:avoid}
figure,table,.frames,pre,tr{break-inside:avoid}table.long{break-inside:auto}details:not([open]){display:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
