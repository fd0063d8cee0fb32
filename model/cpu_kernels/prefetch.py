"""An instruction that numba has no word for: memory is brought into the cache before it is needed."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_WRITE_ACCESS, _HIGH_LOCALITY, _DATA_CACHE = (ir.IntType(32)(each) for each in (1, 3, 1))


@intrinsic
def prefetch(_, array, offset):  # type: ignore[no-untyped-def]
    """Fetch the cache line of an array's number at a place, which is to be read and written soon."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, ir.IntType(32), ir.IntType(32), ir.IntType(32)])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [pointer, _WRITE_ACCESS, _HIGH_LOCALITY, _DATA_CACHE])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate
