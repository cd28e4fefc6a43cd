#version 450 core
// SPDX-License-Identifier: Apache-2.0
//
// A copy of a 3-D texture: as fast as a device copies one. x_sizes holds its extents in texels.
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
  const ivec3 at = ivec3(gl_GlobalInvocationID);
  if (all(lessThan(at, x_sizes.xyz))) {
    imageStore(t_out, at, texelFetch(t_in, at, 0));
  }
}
