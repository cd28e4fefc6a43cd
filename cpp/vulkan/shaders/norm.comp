#version 450 core
// SPDX-License-Identifier: Apache-2.0
//
// RMS norm and layer norm of the rows of x, times a weight, plus a shift:
//   rms:    out = x * rsqrt(mean(x^2) + eps) * weight + shift
//   layer:  out = (x - mean(x)) * rsqrt(var(x) + eps) * weight + shift, and mean and rsqrt(...) of each row
// Arithmetic is float32 whatever the dtype. x is read once, except for what is beyond CHUNKS chunks a thread.
// What the host must bind and push is in kernels/norm_kernels.h, which is the manual of this file.
//
// Built once for each combination of
//   LAYER_NORM  layer norm, else RMS norm
//   X_TEXTURE   x, out, mean and rstd are width-packed 3-D textures, else contiguous buffers
//   W_TEXTURE   weight and shift are width-packed 3-D textures, else contiguous buffers
//   HALF        elements are float16, else float32
//   SCALAR      buffers are read element by element (D not a multiple of 4), else four at a time
//   WIDE        half buffers are read eight at a time (D a multiple of 8)
//   WHOLE       x is a texture whose rows are exactly CHUNKS chunks for each thread: nothing to clamp, mask or
//               loop over
//   SUBGROUP    sums use subgroup arithmetic, else shared memory alone

#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#ifdef HALF
#if defined(SCALAR) || (defined(LAYER_NORM) && !defined(X_TEXTURE))
#extension GL_EXT_shader_16bit_storage : require
#endif
#endif
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;

layout(constant_id = 3) const uint CHUNKS = 4u;      // chunks a thread keeps in registers
layout(constant_id = 4) const uint WEIGHT_MODE = 0u; // OPERAND_*
layout(constant_id = 5) const uint SHIFT_MODE = 3u;  // OPERAND_*
#ifdef X_TEXTURE
layout(constant_id = 6) const uint ROWS = 1u;        // rows that neighbouring threads take in turn: 1, 2 or 4
#else
const uint ROWS = 1u;
#endif
#if defined(X_TEXTURE) || defined(W_TEXTURE)
layout(constant_id = 7) const uint EARLY = 0u;       // when weight and shift are loaded: EARLY_*
#else
const uint EARLY = 0u;
#endif
#ifdef X_TEXTURE
layout(constant_id = 8) const uint SPLIT = 1u;       // workgroups in z, which share out the writing of a row
#else
const uint SPLIT = 1u;
#endif

#ifdef WHOLE
layout(constant_id = 9) const uint EACH = 1u;        // rows that a thread works on at once
#else
const uint EACH = 1u;
#endif

const uint EARLY_NOT = 0u;  // once the row's sum is known
const uint EARLY_ROW = 1u;  // before that; where EACH is not 1, all rows of a band have the same weight and shift

const uint OPERAND_ONE_ROW = 0u;   // one row for all rows of x
const uint OPERAND_BROADCAST = 1u; // leading or trailing dimensions of size 1
const uint OPERAND_FULL = 2u;      // a row for each row of x
const uint OPERAND_NONE = 3u;      // not there: weight 1, shift 0
const uint OPERAND_PLANE = 4u;     // a row for each plane of x, the rows of one z

const uint LANES = gl_WorkGroupSize.x / ROWS; // threads that share a row

#include "tensor_io.glslh"
#include "reduce.glslh"

// Row of a weight or shift that belongs to a row of x. Its sizes, other than width, are 1 or those of x, and the ones
// that are not 1 are neighbours: rows repeat `inner` times within, and the whole repeats without.
OperandRow operand_row(const uint mode, const ivec4 sizes, const Place p) {
  OperandRow r;
  r.row = 0u;
  r.yz = ivec2(0);
  if (mode == OPERAND_FULL) {
    r.row = p.row;
    r.yz = p.yz;
  } else if (mode == OPERAND_PLANE) {
    const int z = sizes.z * sizes.w == 1 ? 0 : p.yz.y;
    r.row = uint(z);
    r.yz = ivec2(0, z);
  } else if (mode == OPERAND_BROADCAST) {
    int inner = 1;
    if (sizes.y == 1) {
      inner = x_sizes.y;
      if (sizes.z == 1) {
        inner *= x_sizes.z;
        if (sizes.w == 1) {
          inner *= x_sizes.w;
        }
      }
    }
    // Divisions are slow, so none is made whose result is known.
    const int operand_rows = sizes.y * sizes.z * sizes.w;
#ifdef W_TEXTURE
    r.row = sizes.y == 1 && sizes.z != 1 ? uint(p.yz.y) : p.row / uint(inner);
#else
    r.row = p.row / uint(inner);
#endif
    if (inner * operand_rows < x_sizes.y * x_sizes.z * x_sizes.w) {
      r.row %= uint(operand_rows);
    }
#ifdef W_TEXTURE
    r.yz = sizes.y == 1 ? ivec2(0, int(r.row)) : ivec2(int(r.row) % sizes.y, int(r.row) / sizes.y);
#endif
  }
  return r;
}

// What a unit works on at once is a *band* of neighbours in y. Of a thread's rows there, one is ROWS below the other.
const uint BAND = ROWS * EACH;

// Finds a row of a band; false if it does not exist.
bool find_row(const uint band, const uint sub, inout Place p) {
  const uint height = uint(x_sizes.y);
  const uint depth = uint(x_sizes.z * x_sizes.w);
#ifdef X_TEXTURE
  const uint bands = (height + BAND - 1u) / BAND;
  const uint z = depth == 1u ? 0u : band / bands;
  const uint y = (band - z * bands) * BAND + sub;
  p.yz = ivec2(int(min(y, height - 1u)), int(min(z, depth - 1u)));
  p.row = uint(p.yz.y) * height + uint(p.yz.x);
  return y < height && z < depth;
#else
  p.row = min(band, height * depth - 1u);
  p.yz = ivec2(int(p.row % height), int(p.row / height));
  return band < height * depth;
#endif
}

void load_operands(const Place p, const OperandRow wr, const OperandRow sr, const uint k,
                   out vec4 w[VECS], out vec4 s[VECS]) {
  [[unroll]] for (uint part = 0u; part < VECS; ++part) {
    w[part] = vec4(1.0);
    s[part] = vec4(0.0);
  }
  if (WEIGHT_MODE != OPERAND_NONE) {
    load_weight(p, wr, k, w);
  }
  if (SHIFT_MODE != OPERAND_NONE) {
    load_shift(p, sr, k, s);
  }
}

void finish(const Place p, const uint k, const float mean, const float rstd, const vec4 x[VECS],
            const vec4 w[VECS], const vec4 s[VECS]) {
  vec4 y[VECS];
  [[unroll]] for (uint part = 0u; part < VECS; ++part) {
    y[part] = (x[part] - mean) * rstd * w[part] + s[part];
  }
  store_out(p, k, y);
}

// Workgroups that differ in z only all read the whole row, and share out the writing of it.
bool is_mine(const uint k) {
  return SPLIT == 1u || k % SPLIT == gl_WorkGroupID.z;
}

// A chunk that a thread keeps. Halves of textures come as floats: of several rows they are packed, since registers are few.
#if defined(WHOLE) && defined(HALF)
#define KEPT_T uvec4
KEPT_T keep(const vec4 v[VECS]) {
  return EACH == 1u ? floatBitsToUint(v[0]) : uvec4(pack4(v[0]), 0u, 0u);
}
vec4[VECS] kept_chunk(const KEPT_T kept) {
  return vec4[VECS](EACH == 1u ? uintBitsToFloat(kept) : unpack4(kept.xy));
}
#else
#define KEPT_T vec4[VECS]
KEPT_T keep(const vec4 v[VECS]) {
  return v;
}
vec4[VECS] kept_chunk(const KEPT_T kept) {
  return kept;
}
#endif

// The operands' chunks, where they are loaded early.
KEPT_T kept_weight[CHUNKS];
KEPT_T kept_shift[CHUNKS];

void keep_operands(const Place p, const OperandRow wr, const OperandRow sr) {
  vec4 w[VECS];
  vec4 s[VECS];
  [[unroll]] for (uint k = 0u; k < CHUNKS; ++k) {
    if (is_mine(k)) {
      load_operands(p, wr, sr, k, w, s);
      kept_weight[k] = keep(w);
      kept_shift[k] = keep(s);
    }
  }
}

// What a chunk adds to the sum of squares about the mean.
float squares(const Place p, const uint k, const float mean, const vec4 x[VECS]) {
  float sum = 0.0;
  [[unroll]] for (uint part = 0u; part < VECS; ++part) {
#ifdef LAYER_NORM
    const vec4 d = (x[part] - mean) * mask4(p, k, part);
#else
    const vec4 d = x[part];
#endif
    sum += dot(d, d);
  }
  return sum;
}

float sum_of(const vec4 x[VECS]) {
  float sum = 0.0;
  [[unroll]] for (uint part = 0u; part < VECS; ++part) {
    sum += dot(x[part], vec4(1.0));
  }
  return sum;
}

// Adds up a row: its elements, or with `squared` their squares about the mean.
float row_sum(const Place p, const uint steps, const bool squared, const float mean, const KEPT_T kept[CHUNKS]) {
  float sum = 0.0;
  vec4 x[VECS];
  [[unroll]] for (uint k = 0u; k < CHUNKS; ++k) {
    x = kept_chunk(kept[k]);
    sum += squared ? squares(p, k, mean, x) : sum_of(x);
  }
  for (uint k = CHUNKS; k < steps; ++k) {
    load_x(p, k, x);
    sum += squared ? squares(p, k, mean, x) : sum_of(x);
  }
  return sum;
}

// Whether the rows that a thread has share the rows of weight and shift.
const bool SHARED_OPERANDS = WEIGHT_MODE != OPERAND_FULL && WEIGHT_MODE != OPERAND_BROADCAST &&
                             SHIFT_MODE != OPERAND_FULL && SHIFT_MODE != OPERAND_BROADCAST;

// Writes a row whose operands are kept, where there is nothing beyond what is kept. The branches are within the loop: where
// few rows are split among workgroups, that is faster.
void finish_kept_row(const Place p, const bool exists, const float mean, const float rstd, const KEPT_T kept[CHUNKS]) {
  [[unroll]] for (uint k = 0u; k < CHUNKS; ++k) {
    if (exists && is_mine(k)) {
      finish(p, k, mean, rstd, kept_chunk(kept[k]), kept_chunk(kept_weight[k]), kept_chunk(kept_shift[k]));
    }
  }
}

void finish_row(const Place p, const uint steps, const OperandRow wr, const OperandRow sr, const float mean,
                const float rstd, const KEPT_T kept[CHUNKS]) {
  vec4 x[VECS];
  vec4 w[VECS];
  vec4 s[VECS];
  [[unroll]] for (uint k = 0u; k < CHUNKS; ++k) {
    if (is_mine(k)) {
      if (EARLY == EARLY_NOT) {
        load_operands(p, wr, sr, k, w, s);
      } else {
        w = kept_chunk(kept_weight[k]);
        s = kept_chunk(kept_shift[k]);
      }
      finish(p, k, mean, rstd, kept_chunk(kept[k]), w, s);
    }
  }
  for (uint k = CHUNKS; k < steps; ++k) {
    if (is_mine(k)) {
      load_x(p, k, x);
      load_operands(p, wr, sr, k, w, s);
      finish(p, k, mean, rstd, x, w, s);
    }
  }
}

// A chunk of all rows that a thread has, then the next: the operands, which these rows share, are loaded once.
void finish_together(const Place p[EACH], const bool exists[EACH], const OperandRow wr, const OperandRow sr,
                     const float mean[EACH], const float rstd[EACH], const KEPT_T kept[EACH][CHUNKS]) {
  vec4 w[VECS];
  vec4 s[VECS];
  [[unroll]] for (uint k = 0u; k < CHUNKS; ++k) {
    if (is_mine(k)) {
      load_operands(p[0], wr, sr, k, w, s);
      [[unroll]] for (uint r = 0u; r < EACH; ++r) {
        if (exists[r]) {
          finish(p[r], k, mean[r], rstd[r], kept_chunk(kept[r][k]), w, s);
        }
      }
    }
  }
}

void main() {
  const uint thread = thread_in_unit();
  const uint sub = ROWS == 1u ? 0u : thread % ROWS;
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint band = group * gl_WorkGroupSize.y + unit_in_workgroup();
  Place p[EACH];
  OperandRow wr[EACH];
  OperandRow sr[EACH];
  bool exists[EACH];
  [[unroll]] for (uint r = 0u; r < EACH; ++r) {
    p[r].lane = ROWS == 1u ? thread : thread / ROWS;
    p[r].width = uint(x_sizes.x);
    p[r].chunks = (p[r].width + ELEMS - 1u) / ELEMS;
    exists[r] = find_row(band, r * ROWS + sub, p[r]);
    wr[r] = operand_row(WEIGHT_MODE, weight_sizes, p[r]);
    sr[r] = operand_row(SHIFT_MODE, shift_sizes, p[r]);
  }
#ifdef WHOLE
  const uint steps = CHUNKS;
#else
  const uint steps = (p[0].chunks + LANES - 1u) / LANES;
#endif
  const float inverse_width = 1.0 / float(p[0].width);

  KEPT_T kept[EACH][CHUNKS];
  [[unroll]] for (uint k = 0u; k < CHUNKS; ++k) {
    [[unroll]] for (uint r = 0u; r < EACH; ++r) {
      vec4 x[VECS];
      load_x(p[r], k, x);
      kept[r][k] = keep(x);
    }
  }
  if (EARLY == EARLY_ROW) {
    keep_operands(p[0], wr[0], sr[0]);
  }

  float mean[EACH];
  float sums[EACH];
  [[unroll]] for (uint r = 0u; r < EACH; ++r) {
    mean[r] = 0.0;
  }
#ifdef LAYER_NORM
  [[unroll]] for (uint r = 0u; r < EACH; ++r) {
    sums[r] = row_sum(p[r], steps, false, 0.0, kept[r]);
  }
  unit_sums(sums, sub, 0u);
  [[unroll]] for (uint r = 0u; r < EACH; ++r) {
    mean[r] = sums[r] * inverse_width;
  }
#endif
  [[unroll]] for (uint r = 0u; r < EACH; ++r) {
    sums[r] = row_sum(p[r], steps, true, mean[r], kept[r]);
  }
  unit_sums(sums, sub, 1u);
  float rstd[EACH];
  [[unroll]] for (uint r = 0u; r < EACH; ++r) {
    rstd[r] = inversesqrt(sums[r] * inverse_width + epsilon);
#ifdef LAYER_NORM
    if (exists[r] && p[r].lane == 0u && is_mine(0u)) {
      store_stats(p[r], mean[r], rstd[r]);
    }
#endif
  }
  if (EACH != 1u && EARLY == EARLY_NOT && SHARED_OPERANDS) {
    finish_together(p, exists, wr[0], sr[0], mean, rstd, kept);
    return;
  }
#ifdef WHOLE
  if (EACH == 1u && EARLY == EARLY_ROW) {
    finish_kept_row(p[0], exists[0], mean[0], rstd[0], kept[0]);
    return;
  }
#endif
  [[unroll]] for (uint r = 0u; r < EACH; ++r) {
    if (exists[r]) {
      finish_row(p[r], steps, wr[r], sr[r], mean[r], rstd[r], kept[r]);
    }
  }
}
