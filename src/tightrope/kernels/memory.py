"""What a loop over random places in memory needs besides arithmetic: lines asked for early, arrays without counts."""

from __future__ import annotations

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefetch(typing_context, array, index):  # noqa: ARG001  (numba's signature)
    """Ask for the line of memory that holds array[index], without waiting for it; nothing else happens."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        held = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, kind, held, [arguments[1]])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(fetch, [builder.bitcast(place, byte), number(0), number(3), number(1)])  # to read, keep near, data
        return context.get_dummy_value()

    return types.void(array, index), generate


@intrinsic
def borrow(typing_context, *arrays):  # noqa: ARG001  (numba's signature)
    """The same arrays without the counts of their holders, which a loop would raise and lower at every call it makes."""
    kinds = types.BaseTuple.from_types(arrays)

    def generate(context, builder, signature, arguments):
        borrowed = []
        for kind, array in zip(arrays, cgutils.unpack_tuple(builder, arguments[0]), strict=True):
            held = context.make_array(kind)(context, builder, array)
            held.meminfo = cgutils.get_null_value(held.meminfo.type)
            held.parent = cgutils.get_null_value(held.parent.type)
            borrowed.append(held._getvalue())  # noqa: SLF001  (numba's way to read a structure)
        return context.make_tuple(builder, signature.return_type, borrowed)

    return kinds(kinds), generate
