#version 450 core
// SPDX-License-Identifier: Apache-2.0
//
// A copy of a 3-D texture: as fast as a device copies one. x_sizes holds its extents in texels. Neighbouring threads take
// neighbouring rows, where there are enough: GPUs keep blocks of a few rows together.
// HALF: float16.

#ifdef HALF
#define TEXEL_FORMAT rgba16f
#else
#define TEXEL_FORMAT rgba32f
#endif

layout(local_size_x = 32, local_size_y = 8) in;
layout(set = 0, binding = 0, TEXEL_FORMAT) uniform restrict writeonly highp image3D t_out;
layout(set = 0, binding = 1) uniform highp sampler3D t_in;
layout(push_constant) uniform restrict Block {
  ivec4 x_sizes;
};

void main() {
  const uint rows = gl_WorkGroupSize.y;
  const uint i = gl_LocalInvocationIndex;
  const bool tall = uint(x_sizes.y) >= rows;
  const uvec3 local = tall ? uvec3(i / rows, i % rows, 0u) : gl_LocalInvocationID;
  const ivec3 at = ivec3(gl_WorkGroupID * gl_WorkGroupSize + local);
  if (all(lessThan(at, x_sizes.xyz))) {
    imageStore(t_out, at, texelFetch(t_in, at, 0));
  }
}
