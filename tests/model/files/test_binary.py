"""The binary formats: npz, PETSc pairs, MDPtoolbox arrays in .mat and .npz."""

from __future__ import annotations

import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

from tightrope import archive
from tightrope.errors import InvalidFile
from tightrope.model import files
from tightrope.model.files import petsc

sys.path.insert(0, str(Path(__file__).parent))
from models import assert_same, random_model


def test_a_large_npz_stays_on_disk_and_is_solved_from_there(tmp_path, monkeypatch):
    from tightrope.planning import solve

    monkeypatch.setattr("tightrope.model.files.npz.MAPPED_FROM", 0)
    mdp = random_model(200, 1)
    files.write(mdp, tmp_path / "m.npz")
    mapped = files.read(tmp_path / "m.npz")
    assert_same(mdp, mapped)
    assert not mapped.P.data.flags.owndata
    np.testing.assert_array_equal(solve(mdp).value, solve(mapped).value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": np.array([5])}, "a transition leads to a state outside 0 to 0"),
        ({"indptr": np.array([0, 2])}, "row offsets do not run from 0"),
        ({"indptr": np.array([[0, 1]])}, "indptr must be a vector"),
        ({"data": np.array(["x"])}, "data must be a vector of numbers"),
        ({"data": np.array([0.5])}, "probabilities at state 0, action 0 sum to 0.5"),
        ({"r": np.array([np.nan])}, "rewards must be finite"),
        ({"first": np.array([0, 0])}, "first must have 2 entries"),
        ({"first": None}, "is not a complete model: 'first'"),
        ({"start": np.array([2.0])}, "start sums to 2"),
        ({"actions": np.array([-1])}, "actions are numbered from 0"),
    ],
)
def test_an_npz_whose_arrays_are_no_model(tmp_path, change, message):
    arrays = {
        "data": np.ones(1),
        "indices": np.array([0]),
        "indptr": np.array([0, 1]),
        "r": np.ones(1),
        "first": np.array([0, 1]),
    }
    arrays |= change
    archive.save(tmp_path / "m.npz", "mdp", {"gamma": 0.9}, {name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(InvalidFile, match=message):
        files.read(tmp_path / "m.npz")


@pytest.mark.parametrize(
    "header",
    [{"gamma": "high"}, {"state_names": 3, "gamma": 0.9}, {"labels": [3], "gamma": 0.9}, {"gamma": 1.5}, {"gamma": None}],
)
def test_an_npz_with_a_strange_header(tmp_path, header):
    arrays = {
        "data": np.ones(1),
        "indices": np.array([0]),
        "indptr": np.array([0, 1]),
        "r": np.ones(1),
        "first": np.array([0, 1]),
    }
    archive.save(tmp_path / "m.npz", "mdp", header, arrays)
    with pytest.raises(InvalidFile, match=r"discount|must be a list of names"):
        files.read(tmp_path / "m.npz")


def petsc_matrix(array, index=">i4", dense=False):
    """A PETSc matrix file, written out again here from its definition."""
    rows, columns = array.shape
    if dense:
        return np.array([1211216, rows, columns, -1], dtype=index).tobytes() + array.astype(">f8").tobytes()
    csr = sp.csr_array(array)
    head = np.array([1211216, rows, columns, csr.nnz], dtype=index).tobytes()
    return (
        head
        + np.diff(csr.indptr).astype(index).tobytes()
        + csr.indices.astype(index).tobytes()
        + csr.data.astype(">f8").tobytes()
    )


P2 = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.25, 0.75]])
G2 = np.array([[1.0, 0.0], [3.0, 4.0]])


@pytest.mark.parametrize("index", [">i4", ">i8"])
@pytest.mark.parametrize("dense", [False, True])
def test_a_petsc_pair_of_either_index_size_dense_or_sparse(tmp_path, index, dense):
    (tmp_path / "run_P_2_2.bin").write_bytes(petsc_matrix(P2, index))
    (tmp_path / "run_g_2_2.bin").write_bytes(petsc_matrix(G2, index, dense))
    found = files.inspect(tmp_path / "run_P_2_2.bin", 0.9)
    np.testing.assert_array_equal(found.mdp.P.toarray(), P2)
    np.testing.assert_array_equal(found.mdp.r, [-1, 0, -3, -4])
    assert "costs became rewards" in found.notes[0]
    np.testing.assert_array_equal(files.read(tmp_path / "run_P_2_2.bin", 0.9, costs=False).r, [1, 0, 3, 4])


def test_costs_as_a_petsc_vector(tmp_path):
    (tmp_path / "P.bin").write_bytes(petsc_matrix(P2))
    (tmp_path / "g.bin").write_bytes(np.array([1211214, 4], dtype=">i4").tobytes() + G2.ravel().astype(">f8").tobytes())
    np.testing.assert_array_equal(files.read(tmp_path / "P.bin", 0.9).r, [-1, 0, -3, -4])


def test_what_we_write_is_what_petsc_defines(tmp_path):
    mdp = random_model(3, 4, ragged=False)
    files.write(mdp, tmp_path / "P.bin")
    assert (tmp_path / "P.bin").read_bytes() == petsc_matrix(mdp.P.toarray())
    head = np.frombuffer((tmp_path / "g.bin").read_bytes()[:16], dtype=">i4")
    np.testing.assert_array_equal(head, [1211216, 3, 3, 9])


@pytest.mark.parametrize(
    ("P", "g", "message"),
    [
        (petsc_matrix(P2)[:40], petsc_matrix(G2), "P.bin, byte 16: 88 bytes expected for 4 rows and 6 entries; 24 there"),
        (petsc_matrix(P2)[:9], petsc_matrix(G2), "it ends within the header"),
        (petsc_matrix(P2[:3]), petsc_matrix(G2), "the rows of P are a multiple of its columns"),
        (petsc_matrix(P2), None, "the costs are expected beside it in g.bin, which is not there"),
        (petsc_matrix(P2), b"what", "g.bin, byte 0: the class id 1211216 of a PETSc matrix expected"),
        (petsc_matrix(P2), b"", "g.bin, byte 0"),
        (petsc_matrix(P2), petsc_matrix(G2[:1]), "costs of 2 states and 2 actions expected"),
        (petsc_matrix(P2 * 2), petsc_matrix(G2), "probabilities at state 0, action 0 sum to 2"),
        (
            np.array([1211216, 2**30, 2**30, -1], dtype=">i4").tobytes(),
            petsc_matrix(G2),
            "1152921504606846976 values expected; 0 there",
        ),
        (
            np.array([1211216, 1, 1, 1, 1, 7], dtype=">i4").tobytes() + np.ones(1, ">f8").tobytes(),
            petsc_matrix(G2),
            "outside 0 to 0",
        ),
        (
            np.array([1211216, 1, 1, 1, 5, 0], dtype=">i4").tobytes() + np.ones(1, ">f8").tobytes(),
            petsc_matrix(G2),
            "row lengths that",
        ),
    ],
)
def test_what_is_refused_of_petsc(tmp_path, P, g, message):
    (tmp_path / "P.bin").write_bytes(P)
    if g is not None:
        (tmp_path / "g.bin").write_bytes(g)
    with pytest.raises(InvalidFile, match=message):
        files.read(tmp_path / "P.bin", 0.9)


@pytest.mark.parametrize(
    ("name", "beside"), [("P.bin", "g.bin"), ("a_P_3.bin", "a_g_3.bin"), ("model.bin", "model_g.bin"), ("PP-P.bin", "PP-g.bin")]
)
def test_where_the_costs_lie(name, beside):
    assert petsc.costs_path(Path(name)).name == beside


def dense_model(S, A, seed):
    g = np.random.default_rng(seed)
    P = g.random((S, A, S))
    return P / P.sum(axis=2, keepdims=True), g.normal(size=(S, A, S))


@pytest.mark.parametrize("compressed", [False, True])
def test_python_toolbox_arrays(tmp_path, compressed):
    P, R = dense_model(4, 2, 1)
    (np.savez_compressed if compressed else np.savez)(
        tmp_path / "t.npz", P=P.transpose(1, 0, 2), R=R.transpose(1, 0, 2), discount=0.8
    )
    mdp = files.read(tmp_path / "t.npz")
    np.testing.assert_array_equal(mdp.P.toarray(), P.reshape(8, 4))
    np.testing.assert_allclose(mdp.r, (P * R).sum(axis=2).ravel())
    assert mdp.gamma == 0.8


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("form", ["array", "cell", "sparse cell"])
def test_matlab_toolbox_arrays(tmp_path, form, compressed):
    P, R = dense_model(4, 2, 1)
    cells = np.empty((1, 2), dtype=object)
    for a in range(2):
        cells[0, a] = sp.csc_matrix(P[:, a]) if form == "sparse cell" else P[:, a]
    content = {"P": P.transpose(0, 2, 1) if form == "array" else cells, "R": (P * R).sum(axis=2)}
    savemat(tmp_path / "t.mat", content, do_compression=compressed)
    mdp = files.read(tmp_path / "t.mat", 0.9)
    np.testing.assert_array_equal(mdp.P.toarray(), P.reshape(8, 4))
    np.testing.assert_array_equal(mdp.r, (P * R).sum(axis=2).ravel())


def test_a_cube_is_read_by_its_rows_and_else_noted(tmp_path):
    P, _ = dense_model(3, 3, 2)
    np.savez(tmp_path / "t.npz", P=P.transpose(0, 2, 1), R=np.zeros((3, 3)))  # MATLAB's order in a NumPy file
    found = files.inspect(tmp_path / "t.npz", 0.9)
    np.testing.assert_array_equal(found.mdp.P.toarray(), P.reshape(9, 3))
    assert not found.notes
    np.savez(tmp_path / "t.npz", P=np.full((3, 3, 3), 1 / 3), R=np.zeros((3, 3)))
    assert "could be (A, S, S) or (S, S, A); it was read as (A, S, S)" in files.inspect(tmp_path / "t.npz", 0.9).notes[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"Q": np.eye(2)}, "has no array P of transition probabilities; it has Q"),
        ({"P": np.eye(2)[None]}, "has no array R of rewards"),
        ({"P": np.eye(2)[None], "R": np.zeros(2), "r": np.zeros(2)}, "has several reward arrays: R, r; choose one"),
        ({"P": np.eye(2)[None], "R": np.zeros((7, 7))}, r"R has shape \(7, 7\); \(2, 1\), \(2,\) or that of P expected"),
        ({"P": np.array([["a", "b"]]), "R": np.zeros(2)}, "is not a matrix of numbers"),
        ({"P": np.zeros((2, 2, 3, 3)), "R": np.zeros(2)}, "P must be an array"),
        ({"P": np.ones((1, 2, 3)), "R": np.zeros(2)}, "square matrices of one size expected"),
        ({"P": np.eye(2)[None] * 3, "R": np.zeros(2)}, "sum to 3"),
        ({"P": np.eye(2)[None], "R": np.zeros(2), "discount": np.ones(2)}, "discount must be one number"),
    ],
)
def test_what_is_refused_of_toolbox_arrays(tmp_path, content, message):
    np.savez(tmp_path / "t.npz", **content)
    with pytest.raises(InvalidFile, match=message):
        files.read(tmp_path / "t.npz", 0.9)


def test_rewards_by_name_and_a_name_that_is_not_there(tmp_path):
    np.savez(tmp_path / "t.npz", P=np.eye(2)[None], fun=np.array([1.0, 2.0]))
    assert files.read(tmp_path / "t.npz", 0.9, "fun").r.tolist() == [1, 2]
    with pytest.raises(InvalidFile, match="has no array 'joy'; it has P, fun"):
        files.read(tmp_path / "t.npz", 0.9, "joy")


def test_matlab_7_3_damaged_and_bombs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_ROOM", 1 << 20)
    (tmp_path / "t.mat").write_bytes(b"MATLAB 7.3 MAT-file, HDF5".ljust(200))
    with pytest.raises(InvalidFile, match=r"save it in MATLAB with save\(..., '-v7'\)"):
        files.read(tmp_path / "t.mat", 0.9)
    (tmp_path / "t.mat").write_bytes(
        b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"\x0f\x00\x00\x00\x08\x00\x00\x00garbage!"
    )
    with pytest.raises(InvalidFile, match="does not decompress"):
        files.read(tmp_path / "t.mat", 0.9)
    bomb = zlib.compress(bytes(1 << 22))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + np.array([15, len(bomb)], dtype="<u4").tobytes()
    (tmp_path / "t.mat").write_bytes(head + bomb)
    with pytest.raises(InvalidFile, match="decompression bomb"):
        files.read(tmp_path / "t.mat", 0.9)


def test_mat_keeps_names_and_warns_of_labels(tmp_path):
    mdp = random_model(4, 2, ragged=False, names=True, start="any")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files.write(mdp, tmp_path / "m.mat")
    back = files.read(tmp_path / "m.mat")
    assert back.pairs.state_names == mdp.pairs.state_names
    assert back.pairs.action_names == mdp.pairs.action_names


def changed(path, find, replace):
    data = path.read_bytes()
    assert data.count(find) >= 1
    path.write_bytes(data.replace(find, replace, 1))


def test_a_sparse_matrix_that_points_past_its_end_is_refused(tmp_path):
    """SciPy's loader takes it, and the conversion to CSR then crashes the process."""
    savemat(tmp_path / "t.mat", {"P": sp.csc_matrix(np.eye(5)), "R": np.zeros(5)})
    assert files.read(tmp_path / "t.mat", 0.9).n_states == 5
    rows = np.arange(5, dtype="<i4")
    changed(tmp_path / "t.mat", rows.tobytes(), np.array([0, 1, 10**8, 3, 4], dtype="<i4").tobytes())
    with pytest.raises(InvalidFile, match="outside 0 to 4"):
        files.read(tmp_path / "t.mat", 0.9)


@pytest.mark.parametrize(
    ("find", "replace", "message"),
    [
        (np.array([5, 8, 3, 3], dtype="<i4"), np.array([5, 8, 3, 2**30], dtype="<i4"), "has 9 entries"),
        (
            np.array([5, 8, 1, 2], dtype="<i4"),
            np.array([5, 8, 2**20, 2**10], dtype="<i4"),
            "the cell 'P' has 1073741824 entries in",
        ),
        (np.array([5, 8, 1, 2], dtype="<i4"), np.array([5, 8, -1, 2], dtype="<i4"), r"has shape \(-1, 2\)"),
        (np.array([9, 72], dtype="<i4"), np.array([9, 2**31 - 8], dtype="<i4"), "bytes expected"),
        (np.array([9, 72], dtype="<i4"), np.array([99, 72], dtype="<i4"), "numbers of a known type expected; found type 99"),
    ],
)
def test_sizes_in_a_mat_file_are_held_against_its_length(tmp_path, find, replace, message):
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0] = cells[0, 1] = np.eye(3)
    savemat(tmp_path / "t.mat", {"P": cells, "R": np.zeros((3, 2))})
    changed(tmp_path / "t.mat", find.tobytes(), replace.tobytes())
    with pytest.raises(InvalidFile, match=message):
        files.read(tmp_path / "t.mat", 0.9)


def test_other_variables_are_passed_over_and_complex_ones_refused(tmp_path):
    savemat(tmp_path / "t.mat", {"P": np.eye(2)[None], "R": np.zeros((2, 1), dtype=np.int16), "s": {"a": 1}, "note": "hi"})
    assert files.read(tmp_path / "t.mat", 0.9).n_states == 2
    savemat(tmp_path / "t.mat", {"P": np.eye(2)[None] * 1j, "R": np.zeros(2)})
    with pytest.raises(InvalidFile, match="the variable 'P' holds complex numbers"):
        files.read(tmp_path / "t.mat", 0.9)


def test_rewards_in_a_cell_or_sparse(tmp_path):
    P, R = dense_model(4, 2, 1)
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0], cells[0, 1] = sp.csc_matrix(R[:, 0]), R[:, 1]
    savemat(tmp_path / "t.mat", {"P": P.transpose(0, 2, 1), "R": cells})
    np.testing.assert_allclose(files.read(tmp_path / "t.mat", 0.9).r, (P * R).sum(axis=2).ravel())
    cells[0, 1] = np.zeros((2, 2))
    savemat(tmp_path / "t.mat", {"P": P.transpose(0, 2, 1), "R": cells})
    with pytest.raises(InvalidFile, match="the matrices of the cell R differ in shape"):
        files.read(tmp_path / "t.mat", 0.9)
    savemat(tmp_path / "t.mat", {"P": P.transpose(0, 2, 1), "R": sp.csc_matrix((90_000, 90_000))})
    with pytest.raises(InvalidFile, match="too empty to be written out"):
        files.read(tmp_path / "t.mat", 0.9)
    savemat(tmp_path / "t.mat", {"P": P.transpose(0, 2, 1), "R": "much"})
    with pytest.raises(InvalidFile, match="R must be numbers"):
        files.read(tmp_path / "t.mat", 0.9)
