# SPDX-License-Identifier: Apache-2.0
"""The table itself: that it is complete, consistent, and what its readers rely on."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from importlib.resources import files
from typing import Any

import pytest

from etvk_guard import contract

TABLE: dict[str, Any] = json.loads((files(contract) / "table.json").read_text(encoding="utf-8"))
ROWS = [(op, row) for op, entry in TABLE["ops"].items() for row in entry["prepack"]]
IDS = [f"{op}:{row['name']}" for op, row in ROWS]
RELEASES = ["1.3", "1.4", "1.5", "main"]

# Others script against the codes: neither a name nor its number may ever change.
ERRORS = [
    "io-error",
    "not-a-file",
    "empty-file",
    "not-a-pte",
    "truncated",
    "bad-extended-header",
    "bad-program-flatbuffer",
    "segment-out-of-range",
    "segments-overlap",
    "bad-delegate-reference",
    "bad-delegate-header",
    "bad-graph-flatbuffer",
    "bad-value-index",
    "bad-constant",
    "unsupported-schema",
    "shared-blob",
    "too-large",
    "output-error",
    "output-is-input",
    "recheck-failed",
    "out-of-memory",
    "internal",
]
FINDINGS = {
    "EG101": ("norm-weight-runtime", "abort"),
    "EG102": ("norm-weight-shape", "wrong"),
    "EG103": ("norm-weight-missing", "abort"),
    "EG104": ("norm-bias-runtime", "abort"),
    "EG105": ("norm-bias-shape", "wrong"),
    "EG106": ("norm-bias-missing", "abort"),
    "EG107": ("norm-result-shape", "wrong"),
    "EG108": ("norm-dtype", "wrong"),
    "EG109": ("norm-dims", "abort"),
    "EG110": ("prepack-mutable", "wrong"),
    "EG111": ("norm-rank", "wrong"),
    "EG112": ("norm-layout", "abort"),
    "EG201": ("prepack-runtime", "abort"),
    "EG202": ("prepack-missing", "abort"),
    "EG203": ("prepack-shape", "wrong"),
    "EG204": ("constant-input", "abort"),
    "EG205": ("prepack-ignored", "wrong"),
    "EG206": ("symbolic-size", "abort"),
    "EG207": ("convolution-groups", "wrong"),
    "EG208": ("embedding-packing", "wrong"),
    "EG209": ("reduced-channels", "abort"),
    "EG210": ("number-type", "abort"),
    "EG211": ("short-list", "abort"),
    "EG212": ("depthwise-edge", "wrong"),
    "EG213": ("convolution-form", "abort"),
    "EG214": ("argument-ignored", "wrong"),
    "EG215": ("integer-equality", "abort"),
    "EG216": ("no-dimensions", "abort"),
    "EG217": ("rounding-mode", "wrong"),
    "EG218": ("several-indices", "abort"),
    "EG219": ("resampled-sizes", "wrong"),
    "EG220": ("resampling-factor", "abort"),
    "EG221": ("negative-dim", "wrong"),
    "EG301": ("unknown-op", "none"),
    "EG302": ("needs-guarded-runtime", "abort"),
    "EG303": ("missing-op", "abort"),
    "EG304": ("delegate-arguments", "abort"),
}


def test_head() -> None:
    assert set(TABLE) == {"schema", "releases", "errors", "findings", "ops", "missing"}
    assert TABLE["schema"] == 1
    assert TABLE["releases"] == RELEASES


def test_errors_keep_their_codes() -> None:
    want = [(f"EG{number:03}", name) for number, name in enumerate(ERRORS, 1)]
    assert [(row["code"], row["name"]) for row in TABLE["errors"]] == want


def test_findings_keep_their_codes() -> None:
    assert {row["code"]: (row["name"], row["stock"]) for row in TABLE["findings"]} == FINDINGS
    assert [row["code"] for row in TABLE["findings"]] == sorted(FINDINGS)


def test_names_are_unique() -> None:
    names = [row["name"] for row in TABLE["errors"] + TABLE["findings"]]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


@pytest.mark.parametrize("row", TABLE["errors"] + TABLE["findings"], ids=lambda row: row["code"])
def test_texts(row: dict[str, Any]) -> None:
    assert row["title"]
    assert not row["title"].endswith(".")
    for key in ("explain", "advice"):
        assert row[key].endswith((".", ".)", '"')), key
        assert row[key].isascii()


@pytest.mark.parametrize("row", TABLE["findings"], ids=lambda row: row["code"])
def test_finding(row: dict[str, Any]) -> None:
    assert set(row) == {
        "code", "name", "severity", "stock", "repair", "title", "explain", "advice",
    }  # fmt: skip
    assert row["severity"] in ("error", "warning", "info")
    assert row["stock"] in ("abort", "wrong", "none")
    # What stock does wrong is an error, unless the file was made for another runtime on purpose.
    fails = row["stock"] != "none" and row["name"] != "needs-guarded-runtime"
    assert (row["severity"] == "error") == fails


@pytest.mark.parametrize("op", TABLE["ops"])
def test_op(op: str) -> None:
    entry = TABLE["ops"][op]
    need = {"args", "since", "until", "releases", "prepack"}
    assert need <= set(entry) <= need | {"either", "writes", "symbolic", "integers", "note"}
    assert len(entry["args"]) == len(set(entry["args"])) <= 32
    assert entry["releases"] == [r for r in RELEASES if r in entry["releases"]] != []
    assert entry["until"] is None
    # A release never takes an op back within the table, and `since` is the first to have it.
    assert entry["releases"] == RELEASES[RELEASES.index(entry["releases"][0]) :]
    first = entry["since"] if entry["since"] in RELEASES else "1.3"
    assert entry["releases"][0] == first
    rows = [row["arg"] for row in entry["prepack"]]
    assert rows == sorted(set(rows))
    places = {key: entry.get(key, []) for key in ("either", "writes", "symbolic", "integers")}
    assert not set(rows) & set(places["either"])
    assert all(arg < len(entry["args"]) for listed in places.values() for arg in listed)


@pytest.mark.parametrize(("op", "row"), ROWS, ids=IDS)
def test_row(op: str, row: dict[str, Any]) -> None:
    entry = TABLE["ops"][op]
    need = {"arg", "name", "condition", "none_ok", "broken", "rewrite", "releases"}
    assert need <= set(row) <= need | {"note", "lowering", "builder"}
    assert entry["args"][row["arg"]] == row["name"]
    assert row["condition"] in ("constant", "row-constant")
    assert row["rewrite"] in (
        None,
        "norm-unit-weight",
        "layer-norm-unit",
        "channel-norm-unit",
        "runtime-linear",
        "runtime-embedding",
    )
    assert set(row["broken"]) <= {"runtime", "shape", "none", "mutable"}
    assert "runtime" in row["broken"]
    assert ("none" in row["broken"]) == (not row["none_ok"])
    assert ("shape" in row["broken"]) == (row["condition"] == "row-constant")
    assert set(row["broken"].values()) <= set(FINDINGS)
    assert list(row["releases"]) == entry["releases"]


@pytest.mark.parametrize(("op", "row"), ROWS, ids=IDS)
def test_row_agrees_with_its_finding(op: str, row: dict[str, Any]) -> None:
    code = row["broken"]["runtime"]
    assert set(row["releases"].values()) == {FINDINGS[code][1]}
    repairs = {info["code"]: info["repair"] for info in TABLE["findings"]}
    for way, finding in row["broken"].items():
        if row["rewrite"] is not None and way != "mutable":
            assert repairs[finding] is not None
        elif finding.startswith("EG1") or way == "mutable":
            assert repairs[finding] is None


@pytest.mark.parametrize("op", TABLE["missing"])
def test_missing(op: str) -> None:
    entry = TABLE["missing"][op]
    assert set(entry) == {"since", "until", "lowered_by"}
    assert op not in TABLE["ops"]
    assert (entry["since"] is None) == (entry["until"] is None)
    assert entry["until"] not in RELEASES
    assert set(entry["lowered_by"]) <= set(RELEASES)
    assert entry["lowered_by"] or entry["until"]


# From the issue: the families of which each must be in the table, with what they prepack.
@pytest.mark.parametrize(
    ("op", "names"),
    [
        ("et_vk.rms_norm.default", ["weight"]),
        ("aten.native_layer_norm.default", ["weight", "bias"]),
        ("aten.native_group_norm.default", ["weight", "bias"]),
        (
            "aten._native_batch_norm_legit_no_training.default",
            ["weight", "bias", "running_mean", "running_var"],
        ),
        ("aten.linear.default", ["weight", "bias"]),
        ("aten.mm.default", []),
        ("aten.convolution.default", ["weight", "bias"]),
        ("aten.embedding.default", ["weight"]),
        ("sdpa_with_kv_cache.default", ["key_cache", "value_cache"]),
        ("aten.mul.Tensor", []),
    ],
)
def test_families(op: str, names: list[str]) -> None:
    assert [row.name for row in contract.rows(op)] == names


def test_loader_reads_everything() -> None:
    assert [info.code for info in contract.errors()] == [r["code"] for r in TABLE["errors"]]
    assert [info.code for info in contract.findings()] == [r["code"] for r in TABLE["findings"]]
    assert [(row.op, row.arg) for row in contract.rows()] == sorted(
        (op, row["arg"]) for op, row in ROWS
    )
    assert contract.known_ops() == tuple(sorted(TABLE["ops"]))
    assert [info.name for info in contract.missing_ops()] == sorted(TABLE["missing"])
    assert contract.releases() == tuple(RELEASES)
    assert contract.error("EG004").name == "not-a-pte"
    assert contract.finding("EG101").name == "norm-weight-runtime"


def test_loader_on_unknown_names() -> None:
    assert contract.op("aten.no_such_op.default") is None
    assert contract.rows("aten.no_such_op.default") == ()
    with pytest.raises(KeyError):
        contract.finding("EG999")
    with pytest.raises(KeyError):
        contract.error("EG101")


def test_loader_is_immutable() -> None:
    row = contract.rows("et_vk.rms_norm.default")[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.arg = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        row.broken["runtime"] = "EG201"  # type: ignore[index]


def test_loader_needs_only_the_standard_library() -> None:
    script = (
        "import sys, etvk_guard.contract as c; c.rows(); c.findings(); c.errors(); c.missing_ops();"
        "assert not {'torch', 'numpy', 'executorch'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
