"""The demo as pictures and one page: what `experiments.tour` found, in the words of tour.html."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from tightrope import archive
from tightrope.solution import count
from tightrope.views import plot, style
from tightrope.views.page import page, picture, table

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from tightrope.experiments.tour import Lookahead, Tour
    from tightrope.solution import Solution

#: What each picture shows, for who cannot see it.
_SEEN = {
    "world": "A map of rooms coloured by value, brightest at the large prize, with arrows that lead through the doors",
    "lookahead": "Bars of iterations and of backups against h and against kappa",
    "convergence": "Lines of the certified gap against iterations, backups and seconds",
    "dip": "Curves of the value after a step, below zero for small steps, crossing zero at the predicted step sizes",
    "map": "A map over step size and kappa: worse where alpha is below kappa, better elsewhere",
}
#: Where the page leads, if there is a report and if there is none.
_LEADS = (
    '<p class="law">One map and one rope prove little. <b><a href="{report}">Does it hold elsewhere?</a></b> Eight questions put '
    "to many models, made just now in their quick form: what the paper claims, whether it held, and when to use κ &gt; 0.</p>"
)
_LEFT_OUT = (
    "<p>One map and one rope prove little. The evaluation puts eight questions to many models, and the report says what held:</p>"
    "<pre><code>tightrope experiment run --quick\ntightrope report</code></pre>"
)


def write_tour(tour: Tour, folder: str | os.PathLike[str], *, done: Callable[[str], None] = lambda _: None) -> Path:
    """Write the pictures (PNG) and the page (index.html) of a tour into a folder; the path of the page."""
    return write_page(tour, write_pictures(tour, folder, done=done), folder)


def write_pictures(tour: Tour, folder: str | os.PathLike[str], *, done: Callable[[str], None] = lambda _: None) -> dict[str, str]:
    """Write the pictures of a tour into a folder; each of them as HTML, light and dark, by name."""
    to = Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    pictures = {}
    for name, draw in _drawings(tour).items():
        light = style.png(draw())
        with style.dark():
            dark = style.png(draw())
        pictures[name] = picture(light, dark, _SEEN[name])
        _write(to / f"{name}.png", light)
        done(name)
    return pictures


def write_page(tour: Tour, pictures: Mapping[str, str], folder: str | os.PathLike[str], *, report: str = "") -> Path:
    """Write the page around the pictures; `report` is the name of a report beside it that it leads to."""
    words = Template(files("tightrope.views").joinpath("tour.html").read_text(encoding="utf-8"))
    leads = _LEADS.format(report=report) if report else _LEFT_OUT
    index = Path(folder) / "index.html"
    _write(index, page("Walking further ahead", words.substitute(_numbers(tour), leads=leads, **pictures)).encode())
    return index


def _write(path: Path, content: bytes) -> None:
    with archive.replacing(path) as file:
        file.write(content)


def _drawings(tour: Tour) -> dict[str, Callable[[], Any]]:
    return {
        "world": lambda: plot.gridworld(tour.world.grid, tour.world.solution, path=tour.world.path),
        "lookahead": lambda: plot.lookahead(tour.lookahead),
        "convergence": lambda: _convergence(tour.lookahead),
        "dip": lambda: plot.dip(tour.dips),
        "map": lambda: plot.improvement_map(tour.improvement),
    }


def _convergence(runs: Lookahead) -> Any:
    """A few of the runs: more lines than this cannot be told apart."""
    h, kappas = [h for h in runs.h if h > 1][1::2], [k for k in runs.kappa if k > 0][1::2]
    named = {"PI": (runs.h[1], style.h_colour(1))}
    named |= {_h_name(x): (runs.h[x], style.h_colour(x)) for x in h}
    named |= {_kappa_name(x): (runs.kappa[x], style.kappa_colour(x)) for x in kappas}
    return plot.convergence({n: s for n, (s, _) in named.items()}, colours={n: c for n, (_, c) in named.items()})


def _h_name(h: int) -> str:
    return f"h-PI (h = {h})"


def _kappa_name(kappa: float) -> str:
    return f"κ-PI (κ = {kappa:g})"


def _runs(runs: Lookahead) -> dict[str, Solution]:
    """Every run by name, policy iteration once."""
    far = {_h_name(h): s for h, s in runs.h.items() if h > 1}
    return {"PI": runs.h[1]} | far | {_kappa_name(k): s for k, s in runs.kappa.items() if k > 0}


def _times(n: int) -> str:
    return "1 iteration" if n == 1 else f"{n} iterations"


def _numbers(tour: Tour) -> dict[str, str]:
    """What the words of the page leave open."""
    mdp, solution = tour.world.mdp, tour.world.solution
    prizes = sorted(reward for reward in tour.world.grid.goals.values() if reward > 0)
    named, updates = _runs(tour.lookahead), tour.improvement
    quickest, few = min(named.items(), key=lambda item: item[1].iterations)
    least = min(range(len(named)), key=lambda i: list(named.values())[i].backups)
    rows = [
        [name, f"{s.iterations}", count(s.backups), f"{s.seconds:.2g}", f"{s.gap:.1e}{'' if s.converged else ', stopped'}"]
        for name, s in named.items()
    ]
    return {
        "states": f"{mdp.n_states:,}",
        "small": f"{prizes[0]:g}",
        "large": f"{prizes[-1]:g}",
        "gamma": f"{mdp.gamma:g}",
        "gap": f"{solution.gap:.1e}",
        "start": f"{float(mdp.start @ solution.value):.4f}",
        "backups": count(solution.backups),
        "seconds": f"{solution.seconds:.2g}",
        "quickest": quickest,
        "few": _times(few.iterations),
        "many": f"{named['PI'].iterations}",
        "updates": f"{updates.change.size:,}",
        "against": f"{updates.disagreements}",
        "runs": table(["algorithm", "iterations", "backups", "seconds", "certified gap"], rows, least),
        "verdict": _verdict(named),
    }


def _verdict(named: Mapping[str, Solution]) -> str:
    """What the total work came to; the sentence follows the numbers, whichever way they fall."""
    rule = "Looking further improves the rate that theory guarantees; it promises nothing about the total work."
    plain = named["PI"]
    thrifty, fewest = min(named.items(), key=lambda item: item[1].backups)
    fast, least = min(named.items(), key=lambda item: item[1].seconds)
    work = f"PI spent {count(plain.backups)} backups" + (
        ", the fewest of all" if fewest is plain else f", {thrifty} only {count(fewest.backups)}, the fewest of all"
    )
    clock = (
        "PI was also the fastest"
        if least is plain
        else f"by the clock {fast} was the fastest, {least.seconds:.2g} s against {plain.seconds:.2g} s"
    )
    return f"{rule} Here {work}; {clock}. Where the best point lies depends on the model, so measure it on your own."
