#version 450 core
// SPDX-License-Identifier: Apache-2.0
//
// A copy of a buffer, 16 bytes at a time, four times a thread: as fast as a device copies. x_sizes.x is the number of uvec4.

layout(local_size_x = 256) in;
layout(set = 0, binding = 0, std430) restrict writeonly buffer OutBuffer { uvec4 t_out[]; };
layout(set = 0, binding = 1, std430) restrict readonly buffer InBuffer { uvec4 t_in[]; };
layout(push_constant) uniform restrict Block {
  ivec4 x_sizes;
};

void main() {
  const uint base = gl_WorkGroupID.x * 1024u + gl_LocalInvocationID.x;
  for (uint i = base; i < base + 1024u; i += 256u) {
    if (i < uint(x_sizes.x)) {
      t_out[i] = t_in[i];
    }
  }
}
