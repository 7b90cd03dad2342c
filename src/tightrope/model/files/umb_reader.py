"""Reading a UMB archive: the tar, the index, and arrays whose sizes are held against it before they are used."""

from __future__ import annotations

import io
import itertools
import json
import lzma
import tarfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import archive
from tightrope.errors import InvalidFile
from tightrope.model.files.actions import number_actions
from tightrope.model.files.npz import csr
from tightrope.model.files.reading import Reading, Wishes, assemble, choose_reward, expected, firsts, initial, with_deadlocks

if TYPE_CHECKING:
    from pathlib import Path

    from tightrope.model.validate import BoolArray, FloatArray, IntArray

NAME = "UMB"
_BITS = {"bool": 1, "int": 64, "uint": 64, "double": 64, "rational": 128, "string": 64}


class Reader:
    """One archive in memory, and its index."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = _members(path)
        try:
            self.index: dict[str, Any] = json.loads(self.files["index.json"].decode("utf-8"))
        except KeyError:
            raise InvalidFile(f"{path} has no index.json; it is not a UMB file") from None
        except (ValueError, RecursionError) as error:
            raise InvalidFile(f"{path}: index.json does not read as JSON ({error})") from None
        if not isinstance(self.index, dict):
            raise InvalidFile(f"{path}: index.json is not an object")

    def read(self, wishes: Wishes) -> Reading:
        """The model."""
        path, system = self.path, self._table(self.index, "transition-system")
        version = self.index.get("format-version")
        if version not in (0, 1):
            raise InvalidFile(f"{path} has UMB format version {version!r}; this release reads version 1")
        notes = self._check_kind(system)
        S, C, B = (self._count(system, key) for key in ("#states", "#choices", "#branches"))
        first, branches = self._csr("state-to-choices.bin", S, C), self._csr("choice-to-branches.bin", C, B)
        target = self._array("branch-to-target.bin", "<u8", B).astype(np.int64)
        p = self._values("branch-to-probability.bin", self._type(system, "branch-probability-type"), B)
        if p is None:
            raise InvalidFile(f"{path} has no branch-to-probability.bin")
        raw = csr(path, p, target, branches, S)
        reward = self._reward(wishes, raw, S, C, B)
        states = np.repeat(np.arange(S), np.diff(first))
        P, all_states, kept, added = with_deadlocks(raw, states, np.arange(C), S)
        real = np.ones(len(all_states), dtype=bool)
        real[added] = False
        state_reward, choice_reward = reward
        r = np.where(real, choice_reward[kept] if C else 0.0, 0.0) + state_reward[all_states]
        if len(added):
            notes.append(f"{len(added)} states without choices (deadlocks) stay where they are")
        begins = firsts(all_states, S)
        ids, action_names = self._actions(system, C, kept, real, begins, notes)
        labels, start = self._labels(S), self._bits("state-is-initial.bin", S)
        begin = self._start(S)
        if begin is None and start is not None:
            begin = initial({"init": np.flatnonzero(start)}, "init", S)
        return assemble(
            path,
            NAME,
            wishes,
            gamma=self._discount(),
            P=P,
            r=r,
            first=begins,
            actions=ids,
            start=begin,
            state_names=self._state_names(S),
            action_names=action_names,
            labels=labels,
            notes=notes,
        )

    def _check_kind(self, system: dict[str, Any]) -> list[str]:
        """Refuse by name what is not an MDP."""
        if system.get("time") != "discrete":
            raise InvalidFile(f"{self.path}: models with {system.get('time')!r} time are not read; only discrete ones are")
        players = self._count(system, "#players")
        if players > 1:
            raise InvalidFile(f"{self.path}: games of {players} players are not read")
        notes = ["a Markov chain: every state has one action"] if players == 0 else []
        if self._count(system, "#observations"):
            notes.append("the underlying MDP of a POMDP: observations are ignored")
        return notes

    def _reward(self, wishes: Wishes, P: Any, S: int, C: int, B: int) -> tuple[FloatArray, FloatArray]:
        """The chosen reward model: a reward per state and one per choice."""
        models = self._group("rewards")
        names = [str(model.get("alias", key)) for key, model in models.items()]
        chosen = choose_reward(self.path, wishes, names)
        states, choices = np.zeros(S), np.zeros(C)
        if chosen is None:
            return states, choices
        key, model = list(models.items())[chosen]
        kind, folder = self._type(model, "type"), f"annotations/rewards/{key}"
        applies = model.get("applies-to")
        if not isinstance(applies, list) or not set(map(str, applies)) <= {"states", "choices", "branches"}:
            raise InvalidFile(
                f"{self.path}: reward model {names[chosen]!r} applies to {applies!r}; states, choices or branches expected"
            )
        given = {
            what: self._values(f"{folder}/{what}/values.bin", kind, n)
            for what, n in (("states", S), ("choices", C), ("branches", B))
        }
        if given["states"] is not None:
            states = given["states"]
        if given["choices"] is not None:
            choices = given["choices"]
        if given["branches"] is not None and B:
            full = np.diff(P.indptr) > 0
            per_choice = np.zeros(C)
            per_choice[full] = expected(P[full] if not full.all() else P, given["branches"])
            choices = choices + per_choice
        return states, choices

    def _actions(
        self, system: dict[str, Any], C: int, kept: IntArray, real: BoolArray, first: IntArray, notes: list[str]
    ) -> tuple[IntArray | None, list[str] | None]:
        n = self._count(system, "#choice-actions")
        if not n or not C:
            return None, None
        values = (
            self._array("actions/choices/values.bin", "<u4", C) if "actions/choices/values.bin" in self.files else np.zeros(C)
        )
        codes = np.where(real, values.astype(np.int64)[kept], -1)
        if codes.max() >= n:
            raise InvalidFile(f"{self.path}: actions/choices/values.bin names action {codes.max()} of {n}")
        names = self._texts("actions/choices/", n)
        numbers = np.maximum(codes, 0)
        rising = np.diff(numbers) > 0
        rising[first[1:-1] - 1] = True
        if rising.all():
            return numbers, names
        return number_actions(names or [f"a{i}" for i in range(n)], codes, first, notes)

    def _labels(self, S: int) -> dict[str, IntArray]:
        labels: dict[str, IntArray] = {}
        for key, model in self._group("aps").items():
            mark = self._bits(f"annotations/aps/{key}/states/values.bin", S)
            labels[str(model.get("alias", key))] = np.flatnonzero(mark) if mark is not None else np.empty(0, dtype=np.int64)
        return labels

    def _start(self, S: int) -> FloatArray | None:
        if "start" not in self._group("tightrope"):
            return None
        return self._values("annotations/tightrope/start/states/values.bin", ("double", 64), S)

    def _state_names(self, S: int) -> list[str] | None:
        """Our own names, else the values of the variables of each state where they are simple."""
        names = self._parameter("state-names")
        if isinstance(names, list) and len(names) == S and all(isinstance(name, str) for name in names):
            return names
        described = self.index.get("valuations")
        described = described.get("states") if isinstance(described, dict) else None
        classes = described.get("classes") if isinstance(described, dict) else None
        if not isinstance(classes, list) or len(classes) != 1 or "valuations/states/valuation-to-class.bin" in self.files:
            return None
        variables = classes[0].get("variables") if isinstance(classes[0], dict) else None
        return self._valuations(variables, S) if isinstance(variables, list) else None

    def _valuations(self, variables: list[Any], S: int) -> list[str] | None:
        """`x=1,b=true` for bit-packed variables of type bool, int and uint; None where there are others."""
        fields: list[tuple[str, str, int, int, int]] = []
        at = 0
        for variable in variables:
            if not isinstance(variable, dict) or variable.get("is-optional"):
                return None
            if "padding" in variable:
                at += self._count(variable, "padding")
                continue
            kind, size = self._type(variable, "type")
            offset = variable.get("offset", 0)
            if kind not in ("bool", "int", "uint") or size > 62 or not isinstance(offset, int):
                return None
            fields.append((str(variable.get("name")), kind, at, size, offset))
            at += size
        if at % 8 or not at or at > 4096 or S * at > 1 << 28:
            return None
        raw = self._array("valuations/states/valuations.bin", "u1", S * at // 8).reshape(S, at // 8)
        bits = np.unpackbits(raw, axis=1, bitorder="little")
        columns = []
        for name, kind, begin, size, offset in fields:
            value = bits[:, begin : begin + size].astype(np.int64) @ (np.int64(1) << np.arange(size, dtype=np.int64))
            if kind == "int":
                value = np.where(bits[:, begin + size - 1] == 1, value - (1 << size), value)
            shown = np.where(value != 0, "true", "false") if kind == "bool" else (value + offset).astype(str)
            columns.append([f"{name}={x}" for x in shown.tolist()])
        return [",".join(parts) for parts in zip(*columns, strict=True)] if columns else None

    def _discount(self) -> float | None:
        gamma = self._parameter("discount")
        return float(gamma) if isinstance(gamma, float | int) and not isinstance(gamma, bool) else None

    def _parameter(self, key: str) -> Any:
        """What our own files say in file-data/parameters."""
        data = self.index.get("file-data")
        parameters = data.get("parameters") if isinstance(data, dict) else None
        return parameters.get(key) if isinstance(parameters, dict) else None

    def _group(self, name: str) -> dict[str, dict[str, Any]]:
        groups = self.index.get("annotations", {})
        found = groups.get(name, {}) if isinstance(groups, dict) else None
        if not isinstance(found, dict) or not all(isinstance(model, dict) for model in found.values()):
            raise InvalidFile(f"{self.path}: annotations/{name} in index.json is not an object of annotations")
        return found

    def _table(self, holder: dict[str, Any], key: str) -> dict[str, Any]:
        found = holder.get(key)
        if not isinstance(found, dict):
            raise InvalidFile(f"{self.path}: index.json has no {key}")
        return found

    def _count(self, holder: dict[str, Any], key: str) -> int:
        found = holder.get(key, 0)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 1 << 62:
            raise InvalidFile(f"{self.path}: {key} in index.json must be a whole number; found {str(found)[:40]!r}")
        return found

    def _type(self, holder: dict[str, Any], key: str) -> tuple[str, int]:
        found = holder.get(key)
        kind = found.get("type") if isinstance(found, dict) else None
        if isinstance(kind, str) and kind.endswith("-interval"):
            raise InvalidFile(f"{self.path}: interval models are not read ({key} is {kind})")
        if not isinstance(kind, str) or kind not in _BITS or not isinstance(found, dict):
            raise InvalidFile(f"{self.path}: {key} in index.json is not a known type; found {str(found)[:60]!r}")
        return kind, self._count(found, "size") or _BITS[kind]

    def _array(self, name: str, dtype: str, count: int) -> Any:
        if name not in self.files:
            raise InvalidFile(f"{self.path} has no {name}")
        content, wanted = self.files[name], count * np.dtype(dtype).itemsize
        if len(content) != wanted:
            raise InvalidFile(f"{self.path}: {name} has {len(content)} bytes; {wanted} expected for {count} entries")
        return np.frombuffer(content, dtype=dtype)

    def _csr(self, name: str, n: int, limit: int) -> IntArray:
        """Offsets [n+1] that run from 0 to `limit`; one each where the file is absent."""
        if name not in self.files:
            if n != limit:
                raise InvalidFile(f"{self.path} has no {name}, which is needed when numbers differ ({n} and {limit})")
            if limit * 8 > sum(map(len, self.files.values())):
                raise InvalidFile(f"{self.path}: index.json speaks of {limit:,} entries that no file holds")
            return np.arange(n + 1, dtype=np.int64)
        offsets = self._array(name, "<u8", n + 1)
        if offsets[0] != 0 or offsets[-1] != limit or (np.diff(offsets.astype(np.int64)) < 0).any() or offsets.max() > limit:
            raise InvalidFile(f"{self.path}: {name} does not run from 0 to {limit}")
        return offsets.astype(np.int64)

    def _bits(self, name: str, count: int) -> BoolArray | None:
        if name not in self.files:
            return None
        words = self._array(name, "<u8", -(-count // 64))
        return np.unpackbits(words.view(np.uint8), bitorder="little")[:count].astype(bool)

    def _values(self, name: str, kind: tuple[str, int], count: int) -> FloatArray | None:
        """Numbers of the given type, as floats; None where the file is absent."""
        if name not in self.files:
            return None
        if kind == ("double", 64):
            return self._array(name, "<f8", count).astype(np.float64)
        if kind in (("int", 64), ("uint", 64)):
            return self._array(name, "<i8" if kind[0] == "int" else "<u8", count).astype(np.float64)
        if kind[0] == "rational" and kind[1] % 128 == 0 and kind[1] <= 1 << 16:
            half = kind[1] // 16
            raw = self._array(name, f"V{2 * half}", count).tobytes()
            parts = [(raw[i : i + half], raw[i + half : i + 2 * half]) for i in range(0, len(raw), 2 * half)]
            try:
                return np.array(
                    [int.from_bytes(a, "little", signed=True) / int.from_bytes(b, "little") for a, b in parts], dtype=float
                )
            except (ZeroDivisionError, OverflowError):
                raise InvalidFile(f"{self.path}: {name} holds a rational that is no number") from None
        raise InvalidFile(f"{self.path}: {name} has type {kind[0]} of {kind[1]} bits, which is not read")

    def _texts(self, folder: str, count: int) -> list[str] | None:
        if f"{folder}string-mapping.bin" not in self.files:
            return None
        content = self.files.get(f"{folder}strings.bin", b"")
        ends = self._csr(f"{folder}string-mapping.bin", count, len(content)).tolist()
        try:
            return [content[a:b].decode("utf-8") for a, b in itertools.pairwise(ends)]
        except UnicodeDecodeError as error:
            raise InvalidFile(f"{self.path}: {folder}strings.bin is not UTF-8 text ({error})") from None


def _members(path: Path) -> dict[str, bytes]:
    """The files of the archive, by name; nothing is ever unpacked to disk."""
    content = path.read_bytes()
    if content[:3] == b"\x1f\x8b\x08":
        content = archive.inflate(path, content, zlib.decompressobj(wbits=31))
    elif content[:6] == b"\xfd7zXZ\0":
        content = archive.inflate(path, content, lzma.LZMADecompressor(memlimit=1 << 28))
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for entry in tar:
                if entry.isdir():
                    continue
                name = entry.name.removeprefix("./").lstrip("/")
                if not entry.isreg() or ".." in name.split("/") or entry.size > len(content):
                    raise InvalidFile(f"{path}, byte {entry.offset}: {entry.name[:80]!r} is no plain file inside the archive")
                if name in files:
                    raise InvalidFile(f"{path}, byte {entry.offset}: {name[:80]!r} is there twice")
                source = tar.extractfile(entry)
                files[name] = source.read() if source is not None else b""
                if len(files[name]) != entry.size:
                    raise InvalidFile(f"{path}, byte {entry.offset}: {name[:80]!r} is cut short")
    except (tarfile.TarError, EOFError, ValueError, OSError, OverflowError, RecursionError) as error:
        if isinstance(error, InvalidFile):
            raise
        raise InvalidFile(f"{path} is not a tar archive of the UMB format ({error})") from None
    return files
