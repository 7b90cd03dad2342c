"""PRISM's explicit files in both dialects."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.errors import InvalidFile
from tightrope.model import files

TRA = """4 5 8
0 0 1 0.5 go
0 0 2 0.5 go
0 1 3 1 stop
1 0 0 0.25 go
1 0 3 0.75 go
2 0 3 1 stop
2 0 1 0 stop
3 0 3 1e0 stop
"""


def put(folder, **parts):
    for ending, content in parts.items():
        (folder / f"m.{ending}").write_text(content)
    return folder / "m.tra"


def test_the_prism_dialect_with_everything_beside_it(tmp_path):
    path = put(
        tmp_path,
        tra=TRA,
        sta="(x,b)\n0:(0,false)\n1:(1,false)\n2:(1,true)\n3:(2,true)\n",
        lab='0="init" 1="deadlock" 2="goal"\n0: 0\n2: 2\n3: 2 1\n',
        srew='# Reward structure "cost"\n# State rewards\n4 2\n1 2.5\n3 -1\n',
        trew="4 5 3\n0 0 1 8\n0 0 2 4\n0 1 3 7\n",
    )
    found = files.inspect(path, 0.9)
    mdp = found.mdp
    np.testing.assert_array_equal(
        mdp.P.toarray(), [[0, 0.5, 0.5, 0], [0, 0, 0, 1], [0.25, 0, 0, 0.75], [0, 0, 0, 1], [0, 0, 0, 1]]
    )
    np.testing.assert_array_equal(mdp.r, [6.0, 7.0, 2.5, 0.0, -1.0])  # state reward + expected transition reward
    np.testing.assert_array_equal(mdp.first, [0, 2, 3, 4, 5])
    np.testing.assert_array_equal(mdp.start, [1, 0, 0, 0])
    assert mdp.pairs.action_names == ("go", "stop")
    np.testing.assert_array_equal(mdp.pairs.actions, [0, 1, 0, 1, 1])
    assert mdp.pairs.state_names == ("x=0,b=false", "x=1,b=false", "x=1,b=true", "x=2,b=true")
    assert {name: states.tolist() for name, states in found.labels.items()} == {"deadlock": [3], "goal": [2, 3]}


@pytest.mark.parametrize("keyword", ["mdp", "MDP", "Mdp"])
def test_the_storm_dialect_in_any_case(tmp_path, keyword):
    body = "\n".join(line for line in TRA.splitlines()[1:])
    path = put(
        tmp_path,
        tra=f"{keyword}\n{body}\n",
        lab="#DECLARATION\ninit goal\n#END\n0 init\n3 goal\n",
        srew="1 2.5\n",
        trew="0 1 3 7\n",
    )
    found = files.inspect(path, 0.9)
    np.testing.assert_array_equal(found.mdp.r, [0.0, 7.0, 2.5, 0.0, 0.0])
    assert found.labels["goal"].tolist() == [3]


def test_both_dialects_are_written_and_differ_only_in_form(tmp_path):
    mdp = files.read(put(tmp_path, tra=TRA), 0.9)
    files.write(mdp, tmp_path / "prism.tra")
    files.write(mdp, tmp_path / "storm.tra", storm=True)
    prism, storm = ((tmp_path / f"{name}.tra").read_text().splitlines() for name in ("prism", "storm"))
    assert prism[0] == "4 5 7"
    assert storm[0] == "mdp"
    assert prism[1:] == storm[1:]
    assert (tmp_path / "prism.lab").read_text().startswith('0="init"\n0: 0\n')
    assert (tmp_path / "storm.lab").read_text().startswith("#DECLARATION\ninit\n#END\n0 init\n")


def test_a_deadlock_stays_where_it_is_and_a_chain_has_one_action(tmp_path):
    found = files.inspect(put(tmp_path, tra="3 2\n0 1 0.5\n0 2 0.5\n", srew="3 1\n2 5\n"), 0.5)
    np.testing.assert_array_equal(found.mdp.P.toarray(), [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(found.mdp.r, [0, 0, 5])
    assert found.notes == (
        "a Markov chain: every state has one action",
        "2 states without choices (deadlocks) stay where they are",
    )


def test_a_reward_of_state_n_is_not_taken_for_a_header(tmp_path):
    assert files.read(put(tmp_path, tra="2 2\n0 1 1\n1 0 1\n", srew="0 3\n1 4\n"), 0.5).r.tolist() == [3, 4]
    assert files.read(put(tmp_path, tra="2 2\n0 1 1\n1 0 1\n", srew="2 2\n0 3\n1 4\n"), 0.5).r.tolist() == [3, 4]


def test_several_reward_structures_as_prism_numbers_them(tmp_path):
    path = put(tmp_path, tra="2 2\n0 1 1\n1 0 1\n")
    (tmp_path / "m1.srew").write_text('# Reward structure "time"\n# State rewards\n2 2\n0 1\n1 1\n')
    (tmp_path / "m2.srew").write_text("2 1\n1 5\n")
    (tmp_path / "m2.trew").write_text("2 1\n0 1 7\n")
    with pytest.raises(InvalidFile, match=r"has 2 reward models: 'time', '2'; choose one"):
        files.read(path, 0.9)
    assert files.read(path, 0.9, "time").r.tolist() == [1, 1]
    assert files.read(path, 0.9, "2").r.tolist() == [7, 5]


def test_the_header_of_a_reward_file_of_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("tightrope.model.files.text.BLOCK", 16)
    S = 50
    rewards = "".join(f"{s} {s / 8}\n" for s in range(S))
    path = put(tmp_path, tra=f"{S} {S}\n" + "".join(f"{s} 0 1\n" for s in range(S)), srew=f"{S} {S}\n{rewards}")
    np.testing.assert_array_equal(files.read(path, 0.9).r, np.arange(S) / 8)
    put(tmp_path, srew=rewards)
    np.testing.assert_array_equal(files.read(path, 0.9).r, np.arange(S) / 8)


def test_lines_in_any_order(tmp_path):
    head, *lines = TRA.splitlines()
    mdp = files.read(put(tmp_path, tra=TRA), 0.9)
    again = files.read(put(tmp_path, tra="\n".join([head, *lines[::-1]])), 0.9)
    np.testing.assert_array_equal(mdp.P.toarray(), again.P.toarray())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"tra": "4 5 9\n0 0 1 1\n"}, "declares 9 transitions but lists 1; it is damaged or truncated"),
        ({"tra": "1 2 1\n0 0 0 1\n"}, "declares 2 choices but lists 1"),
        ({"tra": "1 1 1\n0 0 x 1\n"}, "line 2: a state, a whole number, expected; found 'x'"),
        ({"tra": "1 1 1\n0 0 -1 1\n"}, "line 2: a state, a whole number, expected; found '-1'"),
        ({"tra": "1 1 1\n0 0 7 1\n"}, "line 2: target state 7 is outside 0 to 0"),
        ({"tra": "1 1 1\n0 0 0 1-2\n"}, "line 2: a probability expected; found '1-2'"),
        ({"tra": "1 1 1\n0 0 0 nan\n"}, "line 2: a probability expected; found 'nan'"),
        ({"tra": "1 1 1\n0 0 0 1e999\n"}, "line 2: a probability, a finite number, expected; found '1e999'"),
        ({"tra": "1 1 1\n0 0 0\n"}, "line 2: source, choice, target, probability .action. expected, 3 entries"),
        ({"tra": "1 1 1\n0 0 0 [0.5,1]\n"}, r"line 2: a probability expected; found '\[0.5,1\]'"),
        ({"tra": "2 2 2\n0 0 0 1\n1 0 1 0.5\n"}, "probabilities at state 1, action 0 sum to 0.5"),
        ({"tra": "ctmc\n0 0 1\n"}, "line 1: a header expected: 'mdp', 'dtmc'"),
        ({"tra": "mdp\n"}, "line 1: it lists no transitions"),
        ({"tra": "900000000 1 1\n0 0 0 1\n"}, "speaks of 900,000,000 states but has only 1 transitions"),
        ({"tra": "mdp\n0 0 900000000 1\n"}, "speaks of 900,000,001 states"),
        ({"tra": "1 1 1\n0 0 0 1\n", "trew": "1 1 1\n0 1 0 3\n"}, "m.trew, line 2: choice 1 is outside 0 to 0"),
        (
            {"tra": "2 2 2\n0 0 0 1\n1 0 1 1\n", "trew": "2 2 1\n0 0 1 3\n"},
            "a reward for a transition that the .tra file does not have",
        ),
        ({"tra": "1 1 1\n0 0 0 1\n", "srew": "1 1\n4 3\n"}, "m.srew, line 2: state 4 is outside 0 to 0"),
        ({"tra": "1 1 1\n0 0 0 1\n", "srew": "1 2\n0 3\n"}, "m.srew declares 2 rewards but lists 1; it is damaged or truncated"),
        ({"tra": "1 1 1\n0 0 0 1\n", "srew": "1 2\n0 3\n0 4\n"}, "m.srew, line 3: a reward that line 2 gives already"),
        ({"tra": "1 1 1\n0 0 0 1\n", "trew": "1 1 2\n0 0 0 3\n0 0 0 4\n"}, "m.trew, line 3: a reward that line 2 gives already"),
        ({"tra": "2 1 2\n0 0 0 0.5 a\n0 0 1 0.5 b\n"}, "line 2: another action than the other lines of this choice name"),
        (
            {"tra": "1 1 1\n0 0 0 1\n", "srew": "1 1\n0 1e308\n", "trew": "1 1 1\n0 0 0 1e308\n"},
            "r at state 0, action 0 is inf; rewards must",
        ),
        ({"tra": "1 1 1\n0 0 0 1\n", "lab": "what\n"}, "m.lab, line 1: labels expected"),
        ({"tra": "1 1 1\n0 0 0 1\n", "lab": '0="init"\n0: 3\n'}, "m.lab, line 2: a declared label expected; found '3'"),
        ({"tra": "1 1 1\n0 0 0 1\n", "sta": "(x)\n0:1\n"}, r"m.sta, line 2: 'index:\(values\)' with an index below 1 expected"),
        ({"tra": "2 2 2\n0 0 0 1\n1 0 1 1\n", "sta": "(x)\n0:(1)\n"}, "m.sta does not name state 1"),
        ({"tra": "1 1 1\n0 0 0 1\n0 0\x00 0 1"}, "line 3: a zero byte in a text file"),
    ],
)
def test_what_is_refused_and_where(tmp_path, parts, message):
    with pytest.raises(InvalidFile, match=message):
        files.read(put(tmp_path, **parts), 0.9)


def test_a_reward_model_that_is_not_there(tmp_path):
    with pytest.raises(InvalidFile, match="has no reward model 'time'; it has none"):
        files.read(put(tmp_path, tra=TRA), 0.9, "time")
