"""Storm reads what we write and finds the same optimal values; we read what Storm writes.

python benchmarks/storm_roundtrip.py PYTHON_WITH_STORMPY

The second Python needs stormpy 2 only; the models travel as files.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from tightrope.errors import NotStored, RowsRenormalised
from tightrope.model import files
from tightrope.model.locate import locate
from tightrope.planning import solve

#: Storm computes to 1e-6 relative to the largest value by default.
PRECISION = 1e-5

#: Run by the other Python: read every file, find the values, write the model back as DRN and UMB.
PEER = """
import json, sys
import stormpy
folder, jobs = sys.argv[1], json.loads(sys.argv[2])
answers = {}
for job in jobs:
    name, gamma = job["file"], job["gamma"]
    path = folder + "/" + name
    if name.endswith(".prism"):
        options = stormpy.BuilderOptions()
        options.set_build_all_labels()
        options.set_build_all_reward_models()
        options.set_build_choice_labels()
        options.set_build_state_valuations()
        model = stormpy.build_model(stormpy.parse_prism_program(path), options=options)
    elif name.endswith(".drn"):
        model = stormpy.build_model_from_drn(path)
    elif name.endswith(".umb"):
        model = stormpy.build_model_from_umb(path)
    else:
        model = stormpy.build_model_from_explicit(path, path[:-3] + "lab", transition_rewards=path[:-3] + "trew")
    values = {}
    for reward in model.reward_models:
        which = '{"%s"}' % reward if reward else ""
        formula = stormpy.parse_property("R%smax=? [Cdiscount=%r]" % (which, gamma))
        values[reward] = list(stormpy.model_checking(model, formula).get_value_vector())
    answers[name] = values
    stormpy.io.export_to_drn(model, path + ".back.drn")
    stormpy.io.export_to_umb(model, path + ".back.umb")
print(json.dumps(answers))
"""

#: A program with two reward models, an unnamed action and probabilities that are no binary fractions.
PROGRAM = """mdp
module m
  x : [0..4] init 0;
  [a] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);
  [b] x=0 -> 1:(x'=3);
  [] x=1 -> 1/3:(x'=0) + 2/3:(x'=3);
  [a] x=2 -> 0.1:(x'=2) + 0.9:(x'=3);
  [c] x=3 -> 1:(x'=3);
endmodule
rewards "cost"
  x=1 : 2.5;
  [a] true : 1;
endrewards
rewards "time"
  true : 1;
endrewards
label "goal" = x=3;
"""

PROBLEMS = ["gridworld:height=20,width=20,slip=0.2", "garnet:n_states=300,seed=1", "tightrope", "queue", "forest", "sysadmin"]


def jobs(folder):
    """Every problem in every format Storm reads; .tra only where rewards are not negative, because Storm wants that."""
    for i, name in enumerate(PROBLEMS):
        mdp = locate(name, 0.9)
        endings = [".drn", ".umb", *([".tra"] if mdp.reward_range[0] >= 0 else [])]
        for ending in endings:
            files.write(mdp, folder / f"m{i}{ending}", labels={"end": np.flatnonzero(mdp.terminal)}, storm=ending == ".tra")
            yield name, mdp, f"m{i}{ending}"


def compare(what, ours, theirs):
    off = float(np.abs(ours - np.array(theirs)).max() / max(np.abs(ours).max(), 1e-300))
    verdict = "ok" if off < PRECISION else "DIFFERS"
    print(f"{what:58}{len(ours):8,} states   largest difference {off:.1e} of the value scale {verdict}")
    return off < PRECISION


def main():
    peer = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    warnings.simplefilter("ignore", NotStored)
    warnings.simplefilter("ignore", RowsRenormalised)  # Storm prints ten digits of a probability in DRN
    good = True
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        written = list(jobs(folder))
        (folder / "program.prism").write_text(PROGRAM)
        asked = [{"file": file, "gamma": 0.9} for _, _, file in written] + [{"file": "program.prism", "gamma": 0.9}]
        run = subprocess.run([peer, "-c", PEER, place, json.dumps(asked)], capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(f"the other Python failed:\n{run.stderr[-2000:]}")
        answers = json.loads(run.stdout.splitlines()[-1])
        for name, mdp, file in written:
            (found,) = answers[file].values()
            ours = solve(mdp, tol=1e-10).value
            good &= compare(f"Storm reads our {file[2:]:5} of {name.partition(':')[0]}", ours, found)
            for ending in (".drn", ".umb") if not file.endswith(".tra") else (".umb",):  # DRN holds no transition rewards
                back = files.read(folder / f"{file}.back{ending}", 0.9)
                good &= compare(f"  and we read its {ending}", ours, solve(back, tol=1e-10).value)
        for reward, found in answers["program.prism"].items():
            for ending in (".drn", ".umb"):
                mdp = files.read(folder / f"program.prism.back{ending}", 0.9, reward)
                good &= compare(
                    f"we read the {ending} of a PRISM program, rewards {reward!r}", solve(mdp, tol=1e-10).value, found
                )
    sys.exit(0 if good else "some values differ")


if __name__ == "__main__":
    main()
