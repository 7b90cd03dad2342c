"""Vectors that are spread over ranks, on their way to one place: rank 0 takes them piece by piece, or whole when asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import archive
from tightrope.cluster import ranks

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

#: Entries that are sent at once: a few megabytes.
PIECE = 1 << 20


def save(
    comm: Any,
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    spread: Mapping[str, Any],
    whole: Mapping[str, Any],
) -> None:
    """Write an archive of vectors `spread` over the ranks and arrays that rank 0 has `whole`; nobody holds a spread one whole."""
    parts = {name: np.ascontiguousarray(array) for name, array in spread.items()}
    lengths = [comm.allgather(len(array)) for array in parts.values()]
    with ranks.agreeing(comm):
        if comm.rank == 0:
            streams = {
                name: archive.Stream(array.dtype, sum(sizes), _pieces(comm, array, sizes))
                for (name, array), sizes in zip(parts.items(), lengths, strict=True)
            }
            try:
                archive.save(path, kind, header, {**whole, **streams})
            finally:  # a disk that is full must not leave the others waiting to be heard
                for stream in streams.values():
                    for _ in stream.pieces:
                        pass
        else:
            for array in parts.values():
                for at in range(0, len(array), PIECE):
                    comm.Send(array[at : at + PIECE], dest=0)


def gather(comm: Any, array: Any) -> Any:
    """The whole of a spread vector on rank 0, None elsewhere."""
    sizes = comm.allgather(len(array))
    if comm.rank == 0:
        return np.concatenate(list(_pieces(comm, array, sizes)) or [array])
    for at in range(0, len(array), PIECE):
        comm.Send(np.ascontiguousarray(array[at : at + PIECE]), dest=0)
    return None


def _pieces(comm: Any, mine: Any, lengths: list[int]) -> Iterator[Any]:
    """All parts in the order of ranks, in pieces; on rank 0."""
    yield from (mine[at : at + PIECE] for at in range(0, len(mine), PIECE))
    for source, length in enumerate(lengths[1:], 1):
        for at in range(0, length, PIECE):
            piece = np.empty(min(PIECE, length - at), dtype=mine.dtype)
            comm.Recv(piece, source=source)
            yield piece
