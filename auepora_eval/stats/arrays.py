"""Names for the kinds of arrays that the library works with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]
