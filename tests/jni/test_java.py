# SPDX-License-Identifier: Apache-2.0
"""What Java is given is what Python is given, on all test data and for every error."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builds import DATA, FILES, REMAINING, damaged

import etvk_guard

Java = Callable[..., str]

FAULTY = DATA / "1.5.1/one_plus.pte"


def escaped(field: object) -> str:
    text = "null" if field is None else str(field)
    for char, name in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(char, name)
    return text


def line(*fields: object) -> str:
    return "\t".join(map(escaped, fields))


def number(value: int | None) -> str:
    return str(-1 if value is None else value)


def finding_lines(kind: str, findings: tuple[etvk_guard.Finding, ...]) -> Iterator[str]:
    for found in findings:
        at = [found.method, number(found.delegate), number(found.op_index)]
        at += [found.op, found.argument, number(found.offset)]
        head = (kind, found.code, found.name, found.severity)
        yield line(*head, *at, found.message, found.stock, str(found.fixable).lower())


def error_line(error: etvk_guard.EtvkGuardError) -> str:
    at = error.where
    place = [at.method, number(at.delegate), number(at.op_index)]
    place += [at.op, at.argument, number(at.offset)]
    head = ("error", error.code, error.name, error.problem, error.advice)
    return line(*head, *place, str(error))


def check_lines(path: str) -> list[str]:
    try:
        report = etvk_guard.check(path)
    except etvk_guard.EtvkGuardError as error:
        return [error_line(error)]
    lines = [line("report", str(report.clean).lower())]
    lines += finding_lines("finding", report.findings)
    for delegate in report.delegates:
        names = " ".join(delegate.ops)
        lines.append(
            line("delegate", delegate.method, number(delegate.delegate), delegate.backend, names)
        )
    return lines


def repair_lines(path: str, target: str) -> list[str]:
    try:
        result = etvk_guard.repair(path, target)
    except etvk_guard.EtvkGuardError as error:
        return [error_line(error)]
    flags = (str(result.changed).lower(), str(result.complete).lower())
    lines = [line("repair", *flags, number(result.added_activation_bytes))]
    lines += finding_lines("repaired", result.repaired)
    lines += finding_lines("remaining", result.remaining)
    return lines


def hold(java: Java, folder: Path, commands: list[tuple[str, ...]]) -> None:
    """Run the commands in one JVM, then in Python, and compare."""
    script = folder / "commands.txt"
    script.write_text("\n".join(line(*command) for command in commands), encoding="utf-8")
    made = java("Results", script).split("\n")[:-1]
    expected: list[str] = []
    for command in commands:
        run = check_lines if command[0] == "check" else repair_lines
        expected += run(*command[1:])
    assert made == expected


def test_all_files(java: Java, tmp_path: Path) -> None:
    """Also that both write the same bytes."""
    files = [*FILES, REMAINING]
    hold(java, tmp_path, [("check", str(path)) for path in files])
    targets = [str(tmp_path / f"{index}.pte") for index in range(len(files))]
    commands = [("repair", str(path), target) for path, target in zip(files, targets, strict=True)]
    script = tmp_path / "first.txt"
    script.write_text("\n".join(line(*command) for command in commands), encoding="utf-8")
    java("Results", script)
    written = [Path(target).read_bytes() for target in targets]
    hold(java, tmp_path, commands)
    assert written == [Path(target).read_bytes() for target in targets]  # Python's, by now
    assert sum(a != b.read_bytes() for a, b in zip(written, files, strict=True)) > 20


def test_damaged_files(java: Java, tmp_path: Path) -> None:
    commands = []
    for path in FILES[::6]:
        for index, data in enumerate(damaged(path.read_bytes(), 15)):
            bad = tmp_path / f"{path.parent.name}-{path.stem}-{index}.pte"
            bad.write_bytes(data)
            commands.append(("check", str(bad)))
            commands.append(("repair", str(bad), str(tmp_path / "out.pte")))
    hold(java, tmp_path, commands)


def test_names_and_texts(java: Java, tmp_path: Path) -> None:
    """Names outside of ASCII and the first plane, control characters, bytes that are no UTF-8."""
    commands: list[tuple[str, ...]] = []
    for name in ("\u00fcber \u6a21\u578b", "\U0001f600", "a\x1b[31m\t\n\r\\", "\u202e"):
        path = tmp_path / f"{name}.pte"
        shutil.copy(FAULTY, path)
        commands += [("check", str(path)), ("repair", str(path), str(tmp_path / f"{name}.out"))]
        commands += [("check", str(tmp_path / f"{name}.missing"))]
        commands += [("repair", str(path), str(tmp_path / name / "no/such/folder"))]
    data = FAULTY.read_bytes()
    for index, text in enumerate(
        (b"\xff\xfe\xc0\x80 \xed\xa0", b"\xf0\x9f\x98\x80abc", b"a\tb\nc\rd")
    ):
        path = tmp_path / f"text{index}.pte"
        path.write_bytes(data.replace(b"forward", text[:7]))
        commands.append(("check", str(path)))
    hold(java, tmp_path, commands)


def test_errors(java: Java, tmp_path: Path) -> None:
    (tmp_path / "empty.pte").touch()
    os.mkfifo(tmp_path / "pipe.pte")
    shutil.copy(FAULTY, tmp_path / "in.pte")
    (tmp_path / "link.pte").symlink_to("in.pte")
    bad = ["missing.pte", "empty.pte", "pipe.pte", ".", "in.pte/below", "x" * 300]
    commands: list[tuple[str, ...]] = []
    for name in bad:
        commands.append(("check", str(tmp_path / name)))
        commands.append(("repair", str(tmp_path / name), str(tmp_path / "out.pte")))
    for name in ("in.pte", "link.pte", ".", "no/such/folder.pte", "in.pte/below"):
        commands.append(("repair", str(tmp_path / "in.pte"), str(tmp_path / name)))
    commands.append(("repair", str(tmp_path / "in.pte"), "/dev/null"))
    hold(java, tmp_path, commands)
    assert not (tmp_path / "out.pte").exists()


def test_abuse(java: Java, tmp_path: Path) -> None:
    """Null and other wrong arguments, loops that would show a leak, threads."""
    assert java("Abuse", FAULTY, tmp_path) == "ok\n"
    assert sorted(item.name for item in tmp_path.iterdir()) == [f"out{i}.pte" for i in range(4)]


def test_only_the_native_methods_are_exported(pytestconfig: pytest.Config) -> None:
    library = Path(pytestconfig.getoption("--jni")) / "libetvk_guard_jni.so"
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    )
    names = {row.split()[-1] for row in listed.stdout.splitlines()}
    assert names == {
        f"Java_org_etvkguard_EtvkGuard_native{name}" for name in ("Check", "Repair", "Version")
    }
