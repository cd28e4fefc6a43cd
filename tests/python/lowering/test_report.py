# SPDX-License-Identifier: Apache-2.0
"""The report: as a table, as JSON, as log lines."""

from __future__ import annotations

import io
import json
import logging

import pytest
from rich.console import Console

from etvk_guard.lowering import Decision, Entry, LoweringReport


def _report() -> LoweringReport:
    report = LoweringReport(programs=1)
    report.add(
        Entry(0, "layers.0.norm", "mul", "rms_norm", "(x*rsqrt(v))*w", Decision.FOLDED, "", 6, 1)
    )
    report.add(
        Entry(0, "conv", "conv", "audit", "aten.convolution.default", Decision.CPU, "no", 1, 1)
    )
    return report


def test_counts() -> None:
    report = _report()
    assert len(report) == 2
    assert [e.site for e in report] == ["layers.0.norm", "conv"]
    assert report.count(Decision.FOLDED) == report.count(Decision.CPU) == 1
    assert not report.needs_guarded_runtime
    report.add(Entry(0, "n", "n", "rms_norm", "f", Decision.KEPT, "r", 6, 1))
    assert report.needs_guarded_runtime
    report.clear()
    assert (len(report), report.programs) == (0, 0)


def test_table_in_plain_text_and_in_rich() -> None:
    text = str(_report())
    for word in ("layers.0.norm", "rms_norm", "folded", "6 -> 1", "left to the CPU", "no"):
        assert word in text
    stream = io.StringIO()
    Console(file=stream, width=160).print(_report())
    assert "layers.0.norm" in stream.getvalue()
    assert str(LoweringReport()) == "etvk-guard lowering: no site"


def test_json() -> None:
    data = json.loads(_report().to_json())
    assert data["programs"] == 1
    assert data["needs_guarded_runtime"] is False
    assert data["entries"][0] == {
        "program": 0,
        "site": "layers.0.norm",
        "node": "mul",
        "rule": "rms_norm",
        "form": "(x*rsqrt(v))*w",
        "decision": "folded",
        "reason": "",
        "ops_before": 6,
        "ops_after": 1,
    }


def test_log_levels(caplog: pytest.LogCaptureFixture) -> None:
    report = _report()
    with caplog.at_level(logging.INFO, logger="etvk_guard.lowering"):
        for entry in report:
            report.log(entry)
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("INFO", "layers.0.norm: rms_norm: (x*rsqrt(v))*w: folded (6 -> 1 ops)"),
        ("WARNING", "conv: audit: aten.convolution.default: left to the CPU: no (1 -> 1 ops)"),
    ]
