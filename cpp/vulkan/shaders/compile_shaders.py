# SPDX-License-Identifier: Apache-2.0
"""Compile GLSL to SPIR-V at build time and write it out as C++ arrays.

`norm` compiles every variant of norm.comp and writes the kernel table that
kernels/norm_kernels.h declares.
`plain` compiles single shaders (NAME=SOURCE[:DEFINE,...]) and writes one `EmbeddedSpirv` for each.
The compiler is glslc, or glslangValidator where glslc is missing; the target is Vulkan 1.1 (SPIR-V
1.3).
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

SPIRV_MAGIC = 0x07230203
PREFIX = "etvk_guard_"


@dataclass(frozen=True)
class Shader:
    """One SPIR-V module to build: source, defines, and C++ initialisers to store beside it."""

    name: str
    source: Path
    defines: tuple[str, ...]
    traits: str = ""


def compiler_command(compiler: str, shader: Shader, output: Path) -> list[str]:
    """The command that compiles `shader` into `output`."""
    defines = [f"-D{define}" for define in shader.defines]
    if "glslang" in Path(compiler).name:
        options = ["--target-env", "vulkan1.1", "-S", "comp", "-Os", "-g0", "--quiet"]
        options += [f"-I{shader.source.parent}"]
        return [compiler, *options, *defines, str(shader.source), "-o", str(output)]
    options = ["--target-env=vulkan1.1", "-fshader-stage=compute", "-O", "-Werror"]
    return [compiler, *options, *defines, str(shader.source), "-o", str(output)]


def compile_shader(compiler: str, shader: Shader) -> tuple[int, ...]:
    """The 32-bit words of the compiled module.

    Raises RuntimeError, with what the compiler said, if it fails or its output is not SPIR-V.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "shader.spv"
        command = compiler_command(compiler, shader, output)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{shader.name}: {done.stdout}{done.stderr}")
        data = output.read_bytes()
    words = struct.unpack(f"<{len(data) // 4}I", data)
    if not words or words[0] != SPIRV_MAGIC:
        raise RuntimeError(f"{shader.name}: {compiler} wrote no SPIR-V")
    return words


def norm_variants(source: Path) -> list[Shader]:
    """Every variant of norm.comp: see the list of defines at its head."""
    stores = list(product((False, True), repeat=2))
    shaders = []
    for layer, half, (x_tex, w_tex), subgroup in product(
        (False, True), (False, True), stores, (False, True)
    ):
        accesses = ["vec4"]
        accesses += ["scalar"] if not (x_tex and w_tex) else []
        accesses += ["whole"] if x_tex else []
        accesses += ["vec8"] if half and not x_tex and not w_tex else []
        shaders += [norm_variant(source, layer, half, x_tex, w_tex, subgroup, a) for a in accesses]
    return shaders


def norm_variant(
    source: Path, layer: bool, half: bool, x_tex: bool, w_tex: bool, subgroup: bool, access: str
) -> Shader:
    """One variant of norm.comp, with the C++ initialisers of its `Kernel`."""
    defines = {
        "LAYER_NORM": layer,
        "HALF": half,
        "X_TEXTURE": x_tex,
        "W_TEXTURE": w_tex,
        "SUBGROUP": subgroup,
        "SCALAR": access == "scalar",
        "WIDE": access == "vec8",
        "WHOLE": access == "whole",
    }
    name = "_".join(
        (
            "layer_norm" if layer else "rms_norm",
            "texture3d" if x_tex else "buffer",
            "texture3d" if w_tex else "buffer",
            "half" if half else "float",
            access,
            "subgroup" if subgroup else "shared",
        )
    )
    needs_16bit = half and (access == "scalar" or (layer and not x_tex))
    traits = ", ".join(
        (
            "Norm::kLayer" if layer else "Norm::kRms",
            "Storage::kTexture3d" if x_tex else "Storage::kBuffer",
            "Storage::kTexture3d" if w_tex else "Storage::kBuffer",
            "Dtype::kHalf" if half else "Dtype::kFloat",
            f"Access::k{access.capitalize()}",
            "Reduction::kSubgroup" if subgroup else "Reduction::kShared",
        )
    )
    traits = f"{{{traits}}}, {'true' if needs_16bit else 'false'}"
    return Shader(PREFIX + name, source, tuple(d for d, on in defines.items() if on), traits)


def plain_shader(text: str, folder: Path) -> Shader:
    """The shader that NAME=SOURCE[:DEFINE,...] describes."""
    name, _, rest = text.partition("=")
    source, _, defines = rest.partition(":")
    return Shader(PREFIX + name, folder / source, tuple(d for d in defines.split(",") if d))


def words_array(shader: Shader, words: tuple[int, ...]) -> str:
    """A C++ array with the module's words."""
    rows = [
        ",".join(f"0x{word:x}u" for word in words[at : at + 12]) for at in range(0, len(words), 12)
    ]
    body = ",\n".join(rows)
    return f"constexpr std::uint32_t k_{shader.name}[] = {{\n{body}}};\n"


def norm_table(shaders: list[Shader]) -> str:
    """The C++ that defines `kernel_table()` over the arrays."""
    rows = [
        f'    {{"{s.name}", {s.traits}, k_{s.name}, sizeof(k_{s.name}) / 4u}},' for s in shaders
    ]
    return "\n".join(
        [
            "constexpr Kernel kTable[] = {",
            *rows,
            "};",
            "}  // namespace",
            "KernelTable kernel_table() noexcept {",
            "  return {kTable, sizeof(kTable) / sizeof(kTable[0])};",
            "}",
            "}  // namespace etvk_guard::kernels",
            "",
        ]
    )


def plain_table(shaders: list[Shader]) -> str:
    """The C++ that defines one `EmbeddedSpirv` a shader."""
    rows = [
        f"extern const EmbeddedSpirv {s.name};\n"
        f'const EmbeddedSpirv {s.name}{{"{s.name}", k_{s.name}, sizeof(k_{s.name}) / 4u}};'
        for s in shaders
    ]
    return "\n".join(["}  // namespace", *rows, "}  // namespace etvk_guard::kernels", ""])


def generate(compiler: str, shaders: list[Shader], include: str, table: str) -> str:
    """The whole generated C++ file."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        modules = list(pool.map(lambda shader: compile_shader(compiler, shader), shaders))
    head = (
        "// SPDX-License-Identifier: Apache-2.0\n// Generated by compile_shaders.py.\n"
        f'#include <cstdint>\n#include "{include}"\n'
        "namespace etvk_guard::kernels {\nnamespace {\n"
    )
    return head + "".join(map(words_array, shaders, modules)) + table


def main() -> int:
    """Command line; 0 on success, 1 with the compiler's message on failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True, help="path of glslc or glslangValidator")
    parser.add_argument("--output", required=True, type=Path, help="C++ file to write")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    parser.add_argument("--plain", nargs="+", metavar="NAME=SOURCE[:DEFINE,...]")
    options = parser.parse_args()
    folder: Path = options.folder
    try:
        if options.plain:
            shaders = [plain_shader(text, folder) for text in options.plain]
            text = generate(options.compiler, shaders, "embedded_spirv.h", plain_table(shaders))
        else:
            shaders = norm_variants(folder / "norm.comp")
            text = generate(options.compiler, shaders, "norm_kernels.h", norm_table(shaders))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    options.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
