"""Model files read by many ranks, each its own rows: our .npz and PETSc pairs. Other formats are read whole and cut."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import archive
from tightrope.cluster import ranks
from tightrope.cluster.share import Share, of_function, of_mdp, span
from tightrope.errors import InvalidFile
from tightrope.model import locate
from tightrope.model.files import npz, petsc, sniff
from tightrope.model.files.reading import Reading, Wishes, discount
from tightrope.model.function import Function, built_by

if TYPE_CHECKING:
    from tightrope.archive import Member

_WHOLE = "every rank read the whole model before keeping its part; `tightrope convert` to .npz lets each read its own rows"
_CHUNK = 1 << 24


def read(
    path: str | os.PathLike[str], gamma: float | None = None, reward: str | None = None, *, costs: bool | None = None
) -> Share:
    """As `tightrope.read`, with every rank of the job reading its own rows only where the format allows (.npz, PETSc)."""
    return find(os.fspath(path), gamma, reward, costs=costs).mdp  # type: ignore[return-value]  # a rank's share of one


def find(name: str, gamma: float | None = None, reward: str | None = None, *, costs: bool | None = None) -> Reading:
    """As `locate.find`: a file, an environment or a problem of the zoo, of which every rank keeps its share."""
    comm, path, wishes = ranks.world(), Path(name), Wishes(gamma, reward, costs)
    share: Share | None = None
    if path.is_file():
        with ranks.agreeing(comm):
            module = sniff.module(path)
        if module is npz:
            share = _npz(comm, path, wishes)
        elif module is petsc:
            share = _petsc(comm, path, wishes)
        if share is not None:
            return _reading(share, module.NAME, share.notes)
    # A problem defined by a function is built in parts; whatever else there is comes as a whole model.
    with ranks.agreeing(comm), built_by(lambda function: function):
        found = locate.find(name, gamma, reward, costs=costs)
    if isinstance(found.mdp, Function):
        return _reading(of_function(comm, found.mdp), found.format, found.notes)
    notes = (*found.notes, _WHOLE) if comm.size > 1 else found.notes
    return _reading(of_mdp(comm, found.mdp), found.format, notes)


def _reading(share: Any, name: str, notes: tuple[str, ...]) -> Reading:
    """A share where others would have the whole model."""
    return Reading(share, name, notes)


def check(comm: Any, path: Path, members: dict[str, Member]) -> None:
    """Compare the checksums of an archive, every byte read by one rank only."""
    for name, member in members.items():
        begin, size, expected = member.content
        lo, hi = span(size, comm.rank, comm.size)
        found = 0
        with ranks.agreeing(comm), path.open("rb") as file:
            file.seek(begin + lo)
            while lo < hi and (part := file.read(min(_CHUNK, hi - lo))):
                found, lo = zlib.crc32(part, found), lo + len(part)
        crc = 0
        for rank, part in enumerate(comm.allgather(found)):
            a, b = span(size, rank, comm.size)
            crc = joined(crc, part, b - a)
        with ranks.agreeing(comm):
            if crc != expected:
                raise InvalidFile(f"{path}: the checksum of {name} differs: the file is damaged")


def joined(first: int, second: int, length: int) -> int:
    """The CRC-32 of two stretches of bytes, from that of each and the length of the second: polynomials over GF(2)."""
    power, factor, n = 1 << 31, 1 << 30, 8 * length  # 1, x, and the exponent of x to multiply with; bit 31 is the lowest power
    while n:
        if n & 1:
            power = _times(power, factor)
        factor, n = _times(factor, factor), n >> 1
    return _times(power, first) ^ second


def _times(a: int, b: int) -> int:
    """The product of two polynomials modulo that of CRC-32."""
    product = 0
    for bit in range(31, -1, -1):
        product ^= b if a >> bit & 1 else 0
        b = b >> 1 ^ (0xEDB88320 if b & 1 else 0)
    return product


def _npz(comm: Any, path: Path, wishes: Wishes) -> Share | None:
    """The rows of this rank's states; None where the archive is compressed."""
    with ranks.agreeing(comm):
        found = archive.open_parts(path, npz.KIND)
    if found is None:
        return None
    header, members = found
    check(comm, path, members)
    with ranks.agreeing(comm):
        missing = [name for name in ("data", "indices", "indptr", "r", "first") if name not in members]
        if missing:
            raise InvalidFile(f"{path} is not a complete model: {missing[0]} is missing")
        S = members["first"].shape[0] - 1
        gamma = discount(path, wishes, header.get("gamma"))
        begin, end = span(S, comm.rank, comm.size)
        start = members["start"].read(path, begin, end) if "start" in members else None

    def rows() -> tuple[Any, ...]:
        first = members["first"].read(path, begin, end + 1).astype(np.int64)
        lo, hi = int(first[0]), int(first[-1])
        if not 0 <= lo <= hi <= members["r"].shape[0]:
            raise InvalidFile(f"{path}: rows of the states {begin} to {end - 1} are said to be {lo} to {hi}")
        indptr = members["indptr"].read(path, lo, hi + 1).astype(np.int64)
        a, b = int(indptr[0]), int(indptr[-1])
        if not 0 <= a <= b <= members["data"].shape[0]:
            raise InvalidFile(f"{path}: row offsets do not run from 0 to the number of transitions")
        P = npz.csr(path, members["data"].read(path, a, b), members["indices"].read(path, a, b), indptr - a, S)
        r = members["r"].read(path, lo, hi)
        ids = members["actions"].read(path, lo, hi) if "actions" in members else None
        return P, 0.0 - r if wishes.costs else r, first - lo, ids

    names = {"state_names": header.get("state_names"), "action_names": header.get("action_names")}
    notes = ("costs became rewards: every number was negated",) if wishes.costs else ()
    return Share.of_rows(comm, S, gamma, rows, start=start, notes=notes, **names)


def _petsc(comm: Any, path: Path, wishes: Wishes) -> Share:
    """The rows s*A + a of this rank's states, and their costs."""
    beside = petsc.costs_path(path)
    with ranks.agreeing(comm):
        P, g = petsc.Part(path), petsc.Part(beside, vector=True) if beside.is_file() else None
        S = P.columns
        A = petsc.actions(path, P.rows, S)
        if g is None:
            raise InvalidFile(f"{path}: the costs are expected beside it in {beside.name}, which is not there")
        if (g.rows, g.columns) not in ((S, A), (S * A, 1)):
            raise InvalidFile(f"{beside} is a matrix {(g.rows, g.columns)}; costs of {S} states and {A} actions expected")
        gamma = discount(path, wishes, None)
        begin, end = span(S, comm.rank, comm.size)
    before = [_before(comm, part, begin * part.rows // S, end * part.rows // S) for part in (P, g)]

    def rows() -> tuple[Any, ...]:
        g_rows = g.read(begin * g.rows // S, end * g.rows // S, before[1])
        costs = np.asarray(g_rows.toarray() if sp.issparse(g_rows) else g_rows).reshape(-1)
        r = costs if wishes.costs is False else 0.0 - costs
        return P.read(begin * A, end * A, before[0]), r, np.arange(0, (end - begin) * A + 1, A), None

    notes = () if wishes.costs is False else ("costs became rewards: every number was negated",)
    return Share.of_rows(comm, S, gamma, rows, notes=notes)


def _before(comm: Any, part: Any, begin: int, end: int) -> int:
    """How many entries the rows of the ranks before this one hold."""
    with ranks.agreeing(comm):
        mine = int(part.widths(begin, end).sum())
    return int(comm.exscan(mine) or 0)
