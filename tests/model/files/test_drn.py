"""Storm's DRN format: what Storm itself writes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.errors import InvalidFile
from tightrope.model import files

#: As Storm's exporter writes a small program with two reward models, state valuations and an unnamed action.
STORM = """// Exported by storm
// Original model type: MDP
@type: MDP
@value_type: double
@parameters

@reward_models
other cost 
@nr_states
4
@nr_choices
5
@model
state 0 [1, 0] init
//[x=0]
	action a [0, 1]
		1 : 0.5
		2 : 0.5
	action b [0, 0]
		3 : 1
state 1 [1, 2.5]
//[x=1]
	action __NOLABEL__ [0, 0]
		0 : 1/3
		3 : 2/3
state 2 [1, 0]
//[x=2]
	action a [0, 1]
		3 : 1
state 3 [1, 0] goal "far away"
//[x=3]
	action c [0, 0]
		3 : 1
"""  # noqa: W291  (Storm leaves a space after the last name)


def put(folder, content, name="m.drn"):
    (folder / name).write_text(content)
    return folder / name


def test_what_storm_writes(tmp_path):
    found = files.inspect(put(tmp_path, STORM), 0.9, "cost")
    mdp = found.mdp
    np.testing.assert_array_equal(mdp.r, [1, 0, 2.5, 1, 0])
    np.testing.assert_array_equal(files.read(put(tmp_path, STORM), 0.9, "other").r, [1, 1, 1, 1, 1])
    assert mdp.P.toarray()[2].tolist() == [1 / 3, 0, 0, 2 / 3]
    assert mdp.pairs.state_names == ("x=0", "x=1", "x=2", "x=3")
    assert mdp.pairs.describe(2) == "state 1 (x=1), action 2 ()"
    assert [mdp.pairs.action_names[a] for a in mdp.pairs.actions] == ["a", "b", "", "a", "c"]
    assert {name: states.tolist() for name, states in found.labels.items()} == {"goal": [3], "far away": [3]}
    np.testing.assert_array_equal(mdp.start, [1, 0, 0, 0])


def test_several_reward_models_are_listed(tmp_path):
    with pytest.raises(
        InvalidFile, match=r"has 2 reward models: 'other', 'cost'; choose one: read\(path, reward='other'\), or --reward"
    ):
        files.read(put(tmp_path, STORM), 0.9)
    with pytest.raises(InvalidFile, match="has no reward model 'time'; it has 'other', 'cost'"):
        files.read(put(tmp_path, STORM), 0.9, "time")


@pytest.mark.parametrize("block", [1 << 19, 64, 7])
def test_blocks_of_any_size_read_the_same(tmp_path, monkeypatch, block):
    monkeypatch.setattr("tightrope.model.files.text.BLOCK", block)
    test_what_storm_writes(tmp_path)


def test_our_own_discount_is_kept(tmp_path):
    mdp = files.read(put(tmp_path, STORM), 0.9, "cost")
    files.write(mdp, tmp_path / "ours.drn")
    assert (tmp_path / "ours.drn").read_text().startswith("// discount: 0.9\n@type: MDP\n")
    assert files.read(tmp_path / "ours.drn").gamma == 0.9


def test_a_pomdp_and_a_chain_are_noted(tmp_path):
    pomdp = STORM.replace("MDP\n", "POMDP\n").replace("state 0 [", "state 0 {3} [").replace("state 1 [", "state 1 {0} [")
    pomdp = pomdp.replace("state 2 [", "state 2 {1} [").replace("state 3 [", "state 3 {2} [")
    found = files.inspect(put(tmp_path, pomdp), 0.9, "cost")
    assert "underlying MDP of a POMDP" in found.notes[0]
    np.testing.assert_array_equal(found.mdp.r, [1, 0, 2.5, 1, 0])
    assert found.labels["goal"].tolist() == [3]
    chain = "@type: DTMC\n@nr_states\n2\n@model\nstate 0\n\taction 0\n\t\t1 : 1\nstate 1\n"
    found = files.inspect(put(tmp_path, chain), 0.9)
    assert found.notes == (
        "1 states without actions (deadlocks) stay where they are",
        "a Markov chain: every state has one action",
    )


def test_names_with_spaces_as_storm_writes_them(tmp_path):
    """Storm's exporter does not quote them; taking the first word for the name would lose the rewards in silence."""
    content = STORM.replace("action a [", "action go far, [a] away [").replace("action b [", "action go [")
    mdp = files.read(put(tmp_path, content), 0.9, "cost")
    np.testing.assert_array_equal(mdp.r, [1, 0, 2.5, 1, 0])
    assert [mdp.pairs.action_names[a] for a in mdp.pairs.actions] == ["go far, [a] away", "go", "", "go far, [a] away", "c"]


HEAD = "@type: MDP\n@nr_states\n1\n@model\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            STORM.replace("@type: MDP", "@type: Markov Automaton"),
            "line 3: models of type Markov Automaton are not discrete-time MDPs",
        ),
        (
            STORM.replace("@value_type: double", "@value_type: double-interval"),
            "line 4: values of type double-interval are not read",
        ),
        (STORM.replace("@parameters\n", "@parameters\np q"), "line 6: parametric models are not read; instantiate p q first"),
        (
            STORM.replace("@reward_models", "@placeholders\n$0 : 1\n@reward_models"),
            "placeholders are not read; export the model without",
        ),
        (STORM.replace("@nr_states\n4", "@nr_states\nfour"), "line 10: a number expected after @nr_states; found 'four'"),
        (STORM.replace("@nr_states\n4", "@nr_states\n5"), "declares 5 states but lists 4; it is damaged or truncated"),
        (STORM.replace("@nr_choices\n5", "@nr_choices\n6"), "declares 6 choices but lists 5"),
        (STORM.replace("state 2", "state 3"), "line 26: state 2 expected: states are numbered in order"),
        (STORM.replace("3 : 2/3", "9 : 2/3"), "line 25: target state 9 is outside 0 to 3"),
        (STORM.replace("3 : 2/3", "3 2/3"), "line 25: 'target : probability' expected"),
        (STORM.replace("3 : 2/3", "3 : : 2/3"), "line 25: 'target : probability' expected"),
        (STORM.replace("3 : 2/3", "3 : 2/0"), "line 25: a probability expected; found '2/0'"),
        (STORM.replace("3 : 2/3", "3 : $2"), r"line 25: a probability expected; found '\$2'"),
        (STORM.replace("[1, 2.5]", "[1, 2.5"), r"line 21: a closing \] expected on the line"),
        (
            STORM.replace("[1, 2.5]", "sad [1, 2.5]"),
            "line 21: rewards expected directly after the number of the state",
        ),
        (
            STORM.replace("action b [0, 0]", "action b [0, 0] c"),
            "line 19: rewards expected at the end of the line",
        ),
        (STORM.replace("action b [0, 0]", "action b [0, 0"), r"line 19: a closing \] expected on the line"),
        (STORM.replace("[1, 2.5]", "[1, x]"), "line 21: a reward expected; found 'x'"),
        (STORM.replace("\taction b [0, 0]", "\tacton b"), "line 19: a state, an action or a transition"),
        (STORM.replace("@model\n", ""), "line 13: a header line or @model expected; found 'state 0"),
        ("@type: MDP\n", "line 2: a header line or @model expected; found ''"),
        ("@type: MDP\n@type: MDP\n@model\n", "line 2: @type given twice"),
        ("@type: MDP\n@what\n@model\n", "line 2: an unknown header line; found '@what'"),
        ("@type: MDP\n@model\n", "the header does not give @nr_states"),
        (HEAD + "\taction a\n", "line 5: a state expected before its first action"),
        (HEAD + "state 0\n0 : 1\n", "line 6: an action expected before its first transition"),
        (HEAD + "state\n", "line 5: a state number expected after the word"),
        (HEAD + "state 0\n\taction\n", "line 6: an action's name expected after the word"),
        (HEAD + "state 0\n\taction a\n\t\t0 : 0.5\n", "probabilities at state 0, action 0 .a. sum to 0.5"),
        ("@type: MDP\n@nr_states\n99999999999\n@model\nstate 0\n", "declares 99999999999 states but lists 1"),
    ],
)
def test_what_is_refused_and_where(tmp_path, content, message):
    with pytest.raises(InvalidFile, match=message):
        files.read(put(tmp_path, content), 0.9, "cost" if "cost" in content else None)
