"""Read what builds and boots left, in a child process with limits of memory and time.

`limited_reader` starts such a child behind the walls and returns its answer, `limited_child` is the
frame of a child, `boot_task` and `kbuild.build_task` are what the two children do. The children
import as little as possible, because one starts for every build and boot.
"""

from __future__ import annotations
