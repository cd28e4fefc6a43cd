// SPDX-License-Identifier: Apache-2.0
#include "sha256.h"

#include <algorithm>
#include <cstring>

#include "text.h"

namespace etvk_guard::tool {
namespace {

constexpr size_t kBlock = 64;

// The fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

uint32_t rotate(uint32_t word, int by) { return (word >> by) | (word << (32 - by)); }

uint32_t load_be(const uint8_t* from) {
  return uint32_t{from[0]} << 24 | uint32_t{from[1]} << 16 | uint32_t{from[2]} << 8 | from[3];
}

void schedule(const uint8_t* block, uint32_t* w) {
  for (int i = 0; i < 16; ++i) {
    w[i] = load_be(block + 4 * i);
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
}

void compress(const uint8_t* block, uint32_t* state) {
  uint32_t w[64];
  schedule(block, w);
  uint32_t v[8];
  std::copy(state, state + 8, v);
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
    const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    const uint32_t first = v[7] + s1 + choice + kRound[i] + w[i];
    const uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
    const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    std::copy_backward(v, v + 7, v + 8);
    v[4] += first;
    v[0] = first + s0 + majority;
  }
  for (int i = 0; i < 8; ++i) {
    state[i] += v[i];
  }
}

}  // namespace

std::string sha256(const uint8_t* data, size_t size) {
  // The fractional parts of the square roots of the first 8 primes.
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const size_t whole = size / kBlock * kBlock;
  for (size_t at = 0; at < whole; at += kBlock) {
    compress(data + at, state);
  }
  uint8_t tail[2 * kBlock] = {};  // what is left, a one bit, zeros, and the length in bits
  const size_t left = size - whole;
  if (left != 0) {
    std::memcpy(tail, data + whole, left);
  }
  tail[left] = 0x80;
  const size_t end = left + 9 <= kBlock ? kBlock : 2 * kBlock;
  for (size_t i = 0; i < 8; ++i) {
    tail[end - 1 - i] = static_cast<uint8_t>((uint64_t{size} * 8) >> (8 * i));
  }
  for (size_t at = 0; at < end; at += kBlock) {
    compress(tail + at, state);
  }
  uint8_t digest[32];
  for (size_t i = 0; i < sizeof(digest); ++i) {
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return hex(digest, sizeof(digest));
}

}  // namespace etvk_guard::tool
