#version 450 core
// SPDX-License-Identifier: Apache-2.0
//
// The yardstick: RMS norm with a weight of one row in the plain scheme (one workgroup of 64 a row; a tree of sums in shared
// memory; x is read twice). Same bindings 0 to 2 and push constants as the kernels it is compared with.
// TEXTURE: width-packed 3-D textures, else buffers, read element by element. HALF: float16.

#ifdef HALF
#define TEXEL_FORMAT rgba16f
#define T float16_t
#ifndef TEXTURE
#extension GL_EXT_shader_16bit_storage : require
#endif
#else
#define TEXEL_FORMAT rgba32f
#define T float
#endif

const uint WORKERS = 64u;
layout(local_size_x = 64) in;

#ifdef TEXTURE
layout(set = 0, binding = 0, TEXEL_FORMAT) uniform restrict writeonly highp image3D t_out;
layout(set = 0, binding = 1) uniform highp sampler3D t_x;
layout(set = 0, binding = 2) uniform highp sampler3D t_weight;
#else
layout(set = 0, binding = 0, std430) restrict writeonly buffer OutBuffer { T t_out[]; };
layout(set = 0, binding = 1, std430) restrict readonly buffer XBuffer { T t_x[]; };
layout(set = 0, binding = 2, std430) restrict readonly buffer WeightBuffer { T t_weight[]; };
#endif

layout(push_constant) uniform restrict Block {
  ivec4 x_sizes;
  ivec4 weight_sizes;
  ivec4 shift_sizes;
  float epsilon;
};

shared float sums[WORKERS];

float sum_of_all(const uint worker, const float value) {
  sums[worker] = value;
  barrier();
  for (uint stride = WORKERS / 2u; stride > 0u; stride >>= 1) {
    if (worker < stride) {
      sums[worker] += sums[worker + stride];
    }
    barrier();
  }
  return sums[0];
}

void main() {
  const uint worker = gl_LocalInvocationID.x;
  const uint row = gl_WorkGroupID.y;
  const uint width = uint(x_sizes.x);
  float mine = 0.0;
#ifdef TEXTURE
  const ivec2 yz = ivec2(int(row) % x_sizes.y, int(row) / x_sizes.y);
  const uint texels = (width + 3u) / 4u;
  const vec4 last_mask = vec4(lessThan(uvec4(0u, 1u, 2u, 3u), uvec4(width - 4u * (texels - 1u))));
  for (uint i = worker; i < texels; i += WORKERS) {
    vec4 v = texelFetch(t_x, ivec3(int(i), yz), 0);
    v = i == texels - 1u ? v * last_mask : v;
    mine += dot(v, v);
  }
#else
  for (uint i = worker; i < width; i += WORKERS) {
    const float v = float(t_x[row * width + i]);
    mine += v * v;
  }
#endif
  const float rstd = inversesqrt(sum_of_all(worker, mine) / float(width) + epsilon);
#ifdef TEXTURE
  for (uint i = worker; i < texels; i += WORKERS) {
    const vec4 v = texelFetch(t_x, ivec3(int(i), yz), 0);
    imageStore(t_out, ivec3(int(i), yz), v * rstd * texelFetch(t_weight, ivec3(int(i), 0, 0), 0));
  }
#else
  for (uint i = worker; i < width; i += WORKERS) {
    t_out[row * width + i] = T(float(t_x[row * width + i]) * rstd * float(t_weight[i]));
  }
#endif
}
