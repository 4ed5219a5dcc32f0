"""Names for the kinds of arrays that the library works with, and numpy, imported at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Array", "ArrayLike", "Counts", "Indices", "Mask", "Patterns", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Counts = NDArray[np.int64]
    Mask = NDArray[np.bool_]
    Patterns = NDArray[np.uint8]  # which units are chosen, a bit per unit: (units / 8, patterns)
else:
    Array = ArrayLike = Counts = Indices = Mask = Patterns = Any

    class _Numpy:
        """The attributes of numpy.

        Importing numpy takes a third of the time of `show`, `list` and `gate`, which print stored values.
        Modules that these commands import take `np` from here.
        """

        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)  # the next time it is an ordinary attribute
            return value

    np = _Numpy()
