# SPDX-License-Identifier: Apache-2.0
"""`python -m etvk_guard` is `etvk-guard`."""

from __future__ import annotations

from etvk_guard.cli import main

if __name__ == "__main__":
    main()
