"""Names for the kinds of arrays that the library works with."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "ArrayLike", "Counts", "Indices", "Mask", "Patterns"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Patterns = NDArray[np.uint8]  # which units are chosen, a bit per unit: (units / 8, patterns)
