"""What was measured, as a table in the terminal, pictures and RESULTS.md: losses first."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from peers import pictures, results
from peers.extras import (
    anatomy_section,
    bandwidth_section,
    cold_section,
    growth_section,
    kappa_section,
    largest_section,
    threads_section,
)
from peers.text import mb, ms, table, times
from tightrope.kernels import team

#: The ratio every class is to reach, and the geometric mean over all models.
TARGET, MEAN = 2.0, 4.0


def best(records, peer=None):
    """The fastest successful record by processor time, of one peer or of all peers."""
    found = [r for r in records if r.status == "ok" and (r.peer == peer if peer else r.peer != "tightrope")]
    return min(found, key=lambda r: r.cpu, default=None)


def by_model(records):
    return {name: list(group) for name, group in groupby(records, key=lambda r: r.model)}


def ratio(records):
    """The processor time of the best peer over ours, one thread each; infinite where no peer succeeded."""
    rival = best(records)
    return rival.cpu / records[0].cpu if rival else np.inf


def line(records, seconds):
    """One line while it runs."""
    ours, rival = records[0], best(records)
    begin = f"{ours.model:30s} ours {ms(ours.cpu):>7s} ms (wall {ms(ours.wall):>7s})"
    if rival is None:
        return f"{begin}   no peer reached the goal   [{seconds:.0f} s]"
    other = f"{rival.peer}, {rival.method}: {ms(rival.cpu):>7s} ms (wall {ms(rival.wall):>7s})"
    return f"{begin}   {other}   {ratio(records):6.2f}x {'LOSS' if ratio(records) < 1 else ''}   [{seconds:.0f} s]"


def write(folder):
    """Print the table, draw the pictures, write RESULTS.md."""
    found = results.load(folder)
    contests = by_model(found["records"])
    _print_table(contests)
    pictures.draw(found, contests, folder)
    (folder / "RESULTS.md").write_text(markdown(found, contests) + "\n")
    print(f"wrote {folder / 'RESULTS.md'}")


def _print_table(contests):
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "ours", "best peer", "its time", "ratio", title="milliseconds of processor time, one thread")
    for name, records in contests.items():
        rival, ahead = best(records), ratio(records)
        colour = "red" if ahead < 1 else "yellow" if ahead < TARGET else "green"
        what = f"{rival.peer}, {rival.method}" if rival else "none reached the goal"
        table.add_row(name, ms(records[0].cpu), what, ms(rival.cpu) if rival else "", f"[{colour}]{times(ahead)}")
    Console(width=130).print(table)


def markdown(found, contests):
    about, models, more = found["about"], {model["name"]: model for model in found["models"]}, found["extras"]
    fresh = _set_up_anew(contests, more.get("anatomy", {}).get("anew", {}))
    sections = [
        _heading(about),
        _losses(contests, models, fresh),
        _summary(contests, fresh),
        _pictures(),
        _table(contests, models),
        _errors(contests, models),
        _memory(contests, models),
        _methods(contests),
    ]
    if more:
        sections[4:4] = [
            threads_section(more["scaling"]["threads"], more["scaling"]["apart"]),
            bandwidth_section(more["bandwidth"]),
            kappa_section(more["scaling"]["kappa"]),
            anatomy_section(more["anatomy"]),
            growth_section(more["scaling"]["growth"]),
            largest_section(more["scaling"]["largest"]),
            cold_section(more["cold"]),
        ]
    return "\n\n".join(sections)


def _heading(about):
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    again = "".join(f" Measured again after that: {told}." for told in about.get("again", []))
    short = " This is the short form (`make bench QUICK=1`)." if about["quick"] else ""
    return f"""# Us against our peers

Written by `make bench` on {about["date"]}.{short} Machine: {about["machine"]}; load average {about["load"][0]} before, \
{about["load"][1]} after (above 1 others were using the machine too). Python {about["python"]}; {versions}.{again}"""


def _on_two(contests, models):
    """Where the second thread, which users have unless they say otherwise, is in the way of the first."""
    slower = []
    for name, records in contests.items():
        one, two = (record.wall for record in records if record.peer == "tightrope")
        if two > 1.1 * one and team.team_size(2, models[name]["transitions"]) > 1:
            slower.append(f"{name} ({ms(two)} ms against {ms(one)})")
    if not slower:
        return "Two threads never take longer than one by more than a tenth."
    return f"Two threads take longer than one, by more than a tenth, on {', '.join(slower)}."


def _of_budget(ours, model):
    """The share of 1.5 times the model's arrays and 8 vectors that a solve takes, the model included; rough below a megabyte."""
    room = 1.5 * model["bytes"] + 8 * 8 * model["states"]
    return (model["bytes"] + ours.solve_bytes) / room if model["bytes"] > 1e6 else None


def _over_budget(contests, models):
    """Where a solve takes more memory than it is to."""
    shares = {name: _of_budget(records[0], models[name]) for name, records in contests.items()}
    over = [f"{name} ({share:.2f} of it)" for name, share in shares.items() if share is not None and share > 1.0]
    return f"The budget for memory is exceeded on {', '.join(over)}." if over else "Memory is within its budget everywhere."


def _set_up_anew(contests, anew):
    """The ratio on every model if no solve begins as the last one of it did; nothing where that was not measured."""
    known = {name: records for name, records in contests.items() if anew and best(records)}
    return {name: best(records).cpu / anew.get(name, records[0].cpu) for name, records in known.items()}


def _losses(contests, models, fresh):
    lost = [(name, ratio(records), records) for name, records in contests.items() if ratio(records) < TARGET]
    more = f"{_on_two(contests, models)} {_over_budget(contests, models)}"
    slower = [f"{name} ({times(ahead)})" for name, ahead in sorted(fresh.items(), key=lambda x: x[1]) if ahead < 1.0]
    if slower:
        more += f" Solved again and set up anew, which the table below does not do, we are slower on {', '.join(slower)}."
    if not lost:
        text = f"Nowhere: at least {TARGET:g}x faster than the best method of every peer on every model."
        return f"## Where we lose\n\n{text} {more}"
    rows = [
        (name, ms(records[0].cpu), f"{best(records).peer}, {best(records).method}", ms(best(records).cpu), times(ahead))
        for name, ahead, records in sorted(lost, key=lambda x: x[1])
    ]
    n = sum(ahead < 1 for _, ahead, _ in lost)
    verdict = f"Slower than the best peer on {n} of {len(contests)} models" if n else "Never slower than the best peer"
    text = f"{verdict}; ahead by less than the {TARGET:g}x we are after on {len(lost) - n}. {more}"
    head = ("model", "ours, ms of processor time", "best peer", "its time", "ratio")
    return f"## Where we lose\n\n{text}\n\n" + table(head, rows)


def _summary(contests, fresh):
    ratios = np.array([ratio(records) for records in contests.values()])
    finite = ratios[np.isfinite(ratios)]
    walls = np.array([best(records).wall / records[0].wall for records in contests.values() if best(records)])
    rest = f" On {len(ratios) - len(finite)} no peer reached the goal in time." if len(finite) < len(ratios) else ""
    if fresh:
        rest += f"""
Where every solve is set up anew, and none begins as the last one of the same model did: \
{np.exp(np.log(list(fresh.values())).mean()):.2f}x."""
    return f"""## In one line

Geometric mean of the ratios over {len(finite)} models: **{np.exp(np.log(finite).mean()):.2f}x** (we are after {MEAN:g}x); \
least {finite.min():.2f}x, largest {finite.max():.1f}x; of wall times {np.exp(np.log(walls).mean()):.2f}x.{rest}

How it was done: default `tightrope.solve(mdp, threads=1)` to a *certified* relative gap of 1e-6, against every method of every
peer at the loosest of its own tolerances (half-decade ladder) whose true sup-norm error is at most 1e-6 of the value scale,
chosen after the fact by looking at the answer. So peers are given what no user of theirs has, and prove nothing; we prove it.
One thread for everybody, the same arrays, conversion not counted (ours includes what a model finds out about itself at its
first solve and keeps: row widths, sinks, its band, which rows are alike, an order of states, where it is cut; a small model
also keeps the arrays that a solve works in and, if one round was enough, the arguments of that round, but no values), minimum
of repeats, one right after the other; the two best peer methods and ours are measured a second time, one after the other.
Reading values out of a result is not timed for anybody. Ratios are of processor time, which other people's load disturbs less
than wall time; both are in the tables. A peer's method is stopped when a single try needs four times what the best peer needed
or ten times what we did (at least 1.5 s; 0.4 s in the short form), or all its tries together six times that: "slow" below."""


def _pictures():
    return "![time against size](img/size.png)\n\n![performance profile](img/profile.png)"


def _table(contests, models):
    rows = []
    for name, records in contests.items():
        ours, two, rival = records[0], records[1], best(records)
        cells = [name, f"{models[name]['transitions']:,}", ms(ours.cpu), ms(ours.wall), ms(two.wall)]
        for peer in ("stormpy", "quantecon", "mdpsolver", "mdptoolbox"):
            found = best(records, peer)
            cells.append((f"**{ms(found.cpu)}**" if found is rival else ms(found.cpu)) if found else _why(records, peer))
        rows.append((*cells, times(ratio(records))))
    head = ("model", "transitions", "ours", "wall", "2 threads, wall", "stormpy", "quantecon", "mdpsolver", "mdptoolbox", "ratio")
    return "## Every model\n\nMilliseconds of processor time, one thread; each peer's best method; bold the best.\n\n" + table(
        head, rows
    )


def _why(records, peer):
    """Why a peer has no time: the best that can be said of its methods."""
    found = {r.status for r in records if r.peer == peer}
    return next((status for status in ("slow", "missed", "failed", "refused") if status in found), "")


def _errors(contests, models):
    worst = max(records[0].error for records in contests.values())
    proof = max(models[name]["reference"] for name in contests)
    return f"""## Who checks the answers

The reference of each model is our solve to 1e-12, certified again by plain SciPy and NumPy (|v - v*| <= |Tv - v|/(1-γ)):
at most {proof:.0e} of the value scale from v*, over all models. Every peer that succeeded agrees with it to 1e-6 by
construction of the test. Our own true error was at most {worst:.0e}."""


def _memory(contests, models):
    rows = []
    for name, records in contests.items():
        ours, rival, model = records[0], best(records), models[name]
        share = _of_budget(ours, model)
        other = (
            (f"{rival.peer}", f"{rival.convert_seconds:.3f}", mb(rival.convert_bytes), mb(rival.solve_bytes))
            if rival
            else ("",) * 4
        )
        rows.append(
            (
                name,
                mb(model["bytes"]),
                f"{ours.convert_seconds:.3f}",
                mb(ours.solve_bytes),
                "" if share is None else f"{share:.2f}",
                *other,
            )
        )
    head = (
        "model",
        "arrays MB",
        "ours: convert s",
        "solve MB",
        "of budget",
        "best peer",
        "its convert s",
        "its model MB",
        "its solve MB",
    )
    text = """Growth of the process's resident memory, so small numbers are rough; for our solves at least what the arrays of a
first solve take, with all that the model keeps, which does not show where the process has memory to spare. Our conversion
is validation: the SciPy arrays are shared. The budget is 1.5 times the model's arrays plus 8 vectors; at most 1 is within
it (left out where the arrays take less than 1 MB)."""
    return f"## Conversion and memory\n\n{text}\n\n" + table(head, rows)


def _methods(contests):
    rows = []
    for name, records in contests.items():
        for r in records:
            done = r.status == "ok"
            numbers = (ms(r.cpu), ms(r.wall), f"{r.error:.0e}") if done else ("", "", "")
            tolerance = f"{r.tolerance:.0e}" if done and np.isfinite(r.tolerance) else ""
            rows.append((f"{name}: {r.peer}, {r.method}", *numbers, tolerance, r.status if done else f"{r.status}: {r.note}"))
    text = "<details><summary>All of them, successful or not</summary>\n\n"
    head = ("model, peer, method", "cpu ms", "wall ms", "true error", "its tolerance / scale", "status")
    return "## Every method\n\n" + text + table(head, rows) + "\n\n</details>"
