# SPDX-License-Identifier: Apache-2.0
"""The package's version, in one place: pyproject.toml and CMakeLists.txt read it from here."""

__version__ = "0.1.0"
