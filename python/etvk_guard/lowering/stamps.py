# SPDX-License-Identifier: Apache-2.0
"""The names under which a guarded lowering leaves notes in a program."""

from __future__ import annotations

__all__ = ["MARK", "SITE_KEY"]

SITE_KEY = "etvk_guard_site"
"""`node.meta` key: index of the report's entry for the site that a node stands for."""

MARK = "etvk_guard_runtime"
"""Compile-spec key of a delegate that only a guarded runtime runs; stock ignores it."""
