"""The version of the adapter: that of Headwater."""

import headwater

__all__ = ["version"]

version = headwater.__version__
