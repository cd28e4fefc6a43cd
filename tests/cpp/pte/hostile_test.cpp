// SPDX-License-Identifier: Apache-2.0
//
// Bytes that mean harm: no prefix of a sound file passes, no damage crashes, and small files cannot ask for much work or
// memory.
#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "builder.h"
#include "exercise.h"
#include "program.h"

namespace etvk_guard::testing {
namespace {

// Of the processor: other processes do not count.
double seconds(const Buffer& file, Opened* into) {
  const std::clock_t start = std::clock();
  open_and_check(file, into);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// The limit that we set ourselves is 1 s a MB; the sanitizers take several times as long as the rest.
double limit(const Buffer& file) { return 5.0 * (0.1 + static_cast<double>(file.size()) / 1e6); }

// One of each: rms and layer norm, constants named and in the blob, an inline blob, two methods.
Buffer varied_file() {
  GraphBuilder graph;
  const int x = graph.input({2, 4});
  const int scale = graph.tensor({2, 4});
  graph.op("aten.sigmoid.default", {x, scale});
  const int out = graph.rms_norm(x, scale, {2, 4});
  const int last = graph.layer_norm(out, graph.constant({4}), graph.null(), {2, 4});
  graph.outputs({static_cast<uint32_t>(last)});
  ProgramSpec spec = program_of(graph);
  GraphBuilder other;
  const int w = other.tensor({4}, other.add_bytes(0, 16, nullptr));
  other.rms_norm(other.input({1, 4}), w, {1, 4});
  BlobSpec blob;
  blob.graph = other.finish();
  blob.bytes = Buffer(16, 1);
  spec.inline_blobs.push_back(blob.build());
  spec.methods.push_back({});
  spec.methods[1].name = "decode";
  spec.methods[1].delegates = {DelegateSpec(), DelegateSpec()};
  spec.methods[1].delegates[1].location = 0;
  spec.constant_segment = {{1, {0, 0}}};
  return spec.build();
}

// Bytes of its own for each prefix, so that a read past the end is seen by AddressSanitizer.
TEST(Hostile, EveryPrefixFails) {
  const Buffer whole = varied_file();
  {
    Opened opened;
    open_and_check(whole, &opened);
    ASSERT_FALSE(opened.error) << opened.error.message;
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    const Buffer prefix(whole.begin(), whole.begin() + static_cast<long>(size));
    Opened opened;
    open_and_check(prefix, &opened);
    ASSERT_TRUE(opened.error) << size << " of " << whole.size() << " bytes pass";
  }
}

TEST(Hostile, NoSingleBitFlipCrashes) {
  const Buffer whole = varied_file();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Buffer file = whole;
      file[at] = static_cast<uint8_t>(file[at] ^ (1 << bit));
      Opened opened;
      open_and_check(file, &opened);
      if (!opened.error) {
        walk(opened.program);
      }
    }
  }
}

TEST(Hostile, NoCorruptionCrashes) {
  const Buffer whole = varied_file();
  std::mt19937 random(20260901);
  const uint8_t telling[] = {0, 1, 4, 0x7f, 0x80, 0xfc, 0xff};
  for (int round = 0; round < 10000; ++round) {
    Buffer file = whole;
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < changes; ++i) {
      const size_t at = random() % file.size();
      file[at] = random() % 2 != 0 ? telling[random() % sizeof(telling)] : static_cast<uint8_t>(random());
    }
    Opened opened;
    open_and_check(file, &opened);
    if (!opened.error) {
      walk(opened.program);
    }
  }
}

// A graph whose `count` ops share one list of `items` arguments and one name.
Buffer sharing_ops(uint32_t ops, size_t items, size_t name_length) {
  flatbuffers::FlatBufferBuilder fbb;
  const auto null = vk::CreateVkValue(fbb, vk::GraphTypes::Null, vk::CreateNull(fbb).Union());
  const auto args = fbb.CreateVector(std::vector<int32_t>(items, 0));
  const auto name = fbb.CreateString(std::string(name_length, 'n'));
  const auto op = vk::CreateOperatorCall(fbb, 0, name, args);
  const auto chain = fbb.CreateVector(std::vector<flatbuffers::Offset<vk::OperatorCall>>(ops, op));
  const auto values = fbb.CreateVector(std::vector<flatbuffers::Offset<vk::VkValue>>{null});
  fbb.Finish(vk::CreateVkGraph(fbb, 0, chain, values), "VK00");
  return {fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()};
}

Buffer program_with(const Buffer& graph, int delegates) {
  ProgramSpec spec;
  BlobSpec blob;
  blob.graph = graph;
  spec.segments.push_back(blob.build());
  spec.methods.push_back({});
  spec.methods[0].delegates.assign(static_cast<size_t>(delegates), DelegateSpec());
  return spec.build();
}

TEST(Hostile, OpsThatShareTheirArguments) {
  const Buffer file = program_with(sharing_ops(100000, 100000, 8), 1);
  Opened opened;
  EXPECT_LT(seconds(file, &opened), limit(file));
  EXPECT_EQ(opened.error.code, ErrorCode::kBadGraphFlatbuffer) << opened.error.message;
}

TEST(Hostile, OpsThatShareALongName) {
  const Buffer file = program_with(sharing_ops(100000, 4, 400000), 1);
  Opened opened;
  EXPECT_LT(seconds(file, &opened), limit(file));
  EXPECT_EQ(opened.error.code, ErrorCode::kBadGraphFlatbuffer) << opened.error.message;
}

TEST(Hostile, DelegatesThatShareABlob) {
  const Buffer file = program_with(sharing_ops(5000, 4, 8), 2000);  // 10 million ops to report in 0.2 MB
  Opened opened;
  EXPECT_LT(seconds(file, &opened), limit(file));
  EXPECT_EQ(opened.error.code, ErrorCode::kTooLarge) << opened.error.message;
}

TEST(Hostile, OpsThatShareWhatAnHonestWriterMayShare) {
  GraphBuilder graph;
  const std::vector<int32_t> args = {graph.tensor({4}), graph.tensor({4})};
  for (int i = 0; i < 1000; ++i) {
    graph.op("aten.sigmoid.default", args);
  }
  const Buffer file = program_with(graph.finish(), 10);
  Opened opened;
  open_and_check(file, &opened);
  EXPECT_FALSE(opened.error) << opened.error.message;
}

TEST(Hostile, ListsThatAllOpsWrite) {
  GraphBuilder graph;
  const int item = graph.tensor({1});
  const int list = graph.value_list(std::vector<int32_t>(20000, item));
  for (int i = 0; i < 20000; ++i) {
    graph.op("aten.split.Tensor", {item, list});
  }
  const Buffer file = program_of(graph).build();
  Opened opened;
  EXPECT_LT(seconds(file, &opened), limit(file));
  EXPECT_FALSE(opened.error) << opened.error.message;
}

TEST(Hostile, InlineBlobsInsideOneAnother) {
  // Two blob entries over one vector: the second one starts 16 bytes into the first, where a length was planted.
  GraphBuilder graph;
  graph.null();
  BlobSpec blob;
  blob.graph = graph.finish();
  Buffer bytes = blob.build();
  ProgramSpec spec;
  spec.header = false;
  spec.inline_blobs = {bytes, bytes};
  spec.methods.push_back({});
  spec.methods[0].delegates.assign(2, DelegateSpec());
  spec.methods[0].delegates[0].location = spec.methods[0].delegates[1].location = 0;
  spec.methods[0].delegates[1].index = 1;
  Buffer file = spec.build();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error) << opened.error.message;
  // Make the first vector so long that it reaches into the second.
  const ProgramImpl& program = opened.program.impl();
  const uint64_t lower = std::min(program.blobs[0].range.offset, program.blobs[1].range.offset);
  const uint64_t upper = std::max(program.blobs[0].range.offset, program.blobs[1].range.offset);
  const uint32_t length = static_cast<uint32_t>(upper - lower + 1);
  std::copy_n(reinterpret_cast<const uint8_t*>(&length), 4, file.begin() + static_cast<long>(lower) - 4);
  Opened damaged;
  open_and_check(file, &damaged);
  EXPECT_EQ(damaged.error.code, ErrorCode::kSegmentsOverlap) << damaged.error.message;
}

// A reader that fails at its n-th read: an error each time, and success when there are no more to fail.
class FailingReader final : public Reader {
 public:
  FailingReader(const Buffer& file, int fail_at) : file_(file), left_(fail_at) {}
  uint64_t size() const override { return file_.size(); }
  bool read(uint64_t offset, void* into, size_t count) const override {
    if (left_-- == 0) {
      return false;
    }
    return BytesReader(file_.data(), file_.size()).read(offset, into, count);
  }

 private:
  const Buffer& file_;
  mutable int left_;
};

TEST(Hostile, AnyReadMayFail) {
  const Buffer file = varied_file();
  int failed = 0;
  for (;; ++failed) {
    const FailingReader reader(file, failed);
    Program program;
    const Error error = Program::open(reader, &program);
    if (!error) {
      break;
    }
    ASSERT_EQ(error.code, ErrorCode::kIoError) << error.message;
    ASSERT_LT(failed, 100);
  }
  EXPECT_EQ(failed, 6);  // head, program, and header and graph of two blobs
}

}  // namespace
}  // namespace etvk_guard::testing
