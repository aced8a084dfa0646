"""The Rust core: one module for each part of it, typed by the ``.pyi`` beside this file.

The modules live in one extension, ``knotless_core._native``, which registers them when it is
loaded; the source of module NAME is ``core/python/src/NAME.rs``.
"""

from knotless_core import _native as _native
