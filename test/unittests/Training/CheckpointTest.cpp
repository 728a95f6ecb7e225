//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Checkpoint.h"
#include "Mutation.h"
#include "TemporaryDirectory.h"
#include "kas/ExecutionEngine/Npy.h"
#include "kas/ExecutionEngine/Zip.h"
#include "gtest/gtest.h"
#include <bit>
#include <cmath>
#include <cstdlib>

using namespace kas;
using namespace kas::training;
using llvm::StringRef;

namespace {

/// A state of two parameters and a scalar, whose bits are random: with NaNs,
/// infinities, denormal numbers and zeros of both signs.
struct State {
  std::vector<float> weight = std::vector<float>(6), bias = {1, 2},
                     scalar = {3};

  explicit State(uint64_t seed) {
    Random random(seed);
    for (float &value : weight)
      value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    weight[0] = std::bit_cast<float>(0x7fa00001u);
    weight[1] = -0.0f;
    weight[2] = 1e-44f;
    weight[3] = -INFINITY;
  }
  std::vector<NamedBuffer> buffers() {
    return {{"layer.weight", {2, 3}, weight.data()},
            {"layer.bias", {2}, bias.data()},
            {"scalar", {}, scalar.data()}};
  }
  std::vector<uint32_t> bits() const {
    std::vector<uint32_t> result;
    for (auto *values : {&weight, &bias, &scalar})
      for (float value : *values)
        result.push_back(std::bit_cast<uint32_t>(value));
    return result;
  }
};

class CheckpointTest : public testing::Test {
protected:
  TemporaryDirectory directory;
  std::string path = directory.getPath("state.npz");
  Counters counters = {{"step", 17}, {"seed", ~0ull}, {"epoch", 0}};

  void write(State &state, StringRef network = "net 1") {
    llvm::cantFail(writeCheckpoint(path, network, counters, state.buffers()));
  }
  /// The error of reading what is at `path` into `buffers`.
  std::string read(llvm::ArrayRef<NamedBuffer> buffers,
                   StringRef network = "net 1") {
    return errorOf(readCheckpoint(path, network, buffers));
  }
};

TEST_F(CheckpointTest, ContinuesBitByBit) {
  State state(1), other(2);
  write(state);
  auto buffers = other.buffers();
  std::reverse(buffers.begin(), buffers.end());
  auto read = readCheckpoint(path, "net 1", buffers);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(*read, counters);
  EXPECT_EQ(other.bits(), state.bits());
  std::string bytes = readFile(path);
  write(state);
  EXPECT_EQ(readFile(path), bytes);
}

TEST_F(CheckpointTest, IsAnArchiveOfArrays) {
  State state(1);
  write(state);
  std::string bytes = readFile(path);
  auto archive = llvm::cantFail(execution::ZipArchive::open(bytes));
  ASSERT_EQ(archive.getMembers().size(), 4u);
  EXPECT_EQ(llvm::cantFail(archive.read(archive.getMembers()[0])).bytes, R"({
  "kas-checkpoint": 1,
  "network": "net 1",
  "counters": {
    "epoch": 0,
    "seed": 18446744073709551615,
    "step": 17
  }
}
)");
  auto weight = llvm::cantFail(execution::parseNpy(
      llvm::cantFail(archive.read(archive.getMembers()[1])).bytes));
  EXPECT_EQ(archive.getMembers()[1].name, "layer.weight.npy");
  EXPECT_EQ(weight.getShape(), llvm::ArrayRef<int64_t>({2, 3}));
}

TEST_F(CheckpointTest, RejectsOtherStates) {
  State state(1), other(2);
  write(state);
  auto before = other.bits();
  auto expectError = [&](const std::string &error, const std::string &message) {
    EXPECT_EQ(error, "'" + path + "': " + message);
    EXPECT_EQ(other.bits(), before);
  };
  auto buffers = other.buffers();
  expectError(read(buffers, "net 2"), "requires a checkpoint of the network "
                                      "'net 2', got one of 'net 1'");
  buffers[0].shape = {3, 2};
  expectError(read(buffers),
              "tensor 'layer.weight': requires shape 3x2, got 2x3");
  buffers = other.buffers();
  buffers[2].name = "other";
  expectError(read(buffers), "requires a tensor 'other', got none");
  buffers = other.buffers();
  buffers.pop_back();
  expectError(read(buffers), "requires 2 tensors, got 3");

  execution::NamedTensors tensors;
  tensors.insert({"a", execution::Tensor()});
  llvm::cantFail(execution::writeNpz(path, tensors));
  expectError(read(other.buffers()),
              "not a checkpoint: requires a member 'checkpoint.json'");
}

TEST_F(CheckpointTest, RejectsOtherDescriptions) {
  State state(1);
  auto readWith = [&](StringRef text) {
    std::string bytes;
    llvm::raw_string_ostream stream(bytes);
    execution::ZipWriter writer(stream);
    llvm::cantFail(writer.add("checkpoint.json", text));
    writer.finish();
    writeFile(path, bytes);
    return StringRef(read(state.buffers())).drop_front(path.size() + 4).str();
  };
  EXPECT_EQ(readWith("{"), "malformed checkpoint.json: [1:1, byte=1]: Expected "
                           "object key");
  EXPECT_EQ(readWith(std::string(1000000, '[')),
            "malformed checkpoint.json: requires at most 1000 brackets");
  EXPECT_EQ(readWith("[]"),
            "malformed checkpoint.json: requires the version of the format");
  EXPECT_EQ(readWith(R"({"kas-checkpoint": 2})"),
            "requires version 1 of the format, got 2");
  EXPECT_EQ(readWith(R"({"kas-checkpoint": 1, "network": 3})"),
            "malformed checkpoint.json: requires 'network' and 'counters'");
  EXPECT_EQ(readWith(R"({"kas-checkpoint": 1, "network": "net 1",
                         "counters": {"step": -1}})"),
            "malformed checkpoint.json: requires an integer of 64 bits for "
            "'step'");
}

TEST_F(CheckpointTest, KeepsTheOldOneWhenWritingFails) {
  State state(1), other(2);
  write(state);
  std::string bytes = readFile(path);
  auto buffers = other.buffers();
  // The archive ends in the middle: a name that is too long for its format.
  buffers[2].name = std::string(70000, 'x');
  EXPECT_EQ(llvm::toString(writeCheckpoint(path, "net 1", counters, buffers)),
            "cannot write '" + path +
                "': requires names of at most 65535 bytes, got 70004");
  buffers[2].name = "layer.bias";
  EXPECT_EQ(llvm::toString(writeCheckpoint(path, "net 1", counters, buffers)),
            "cannot write '" + path +
                "': requires different names of buffers, got 'layer.bias' "
                "twice");
  EXPECT_EQ(
      llvm::toString(writeCheckpoint(path, "\xff", counters, other.buffers())),
      "cannot write '" + path +
          "': requires UTF-8 in the names of a checkpoint");
  EXPECT_EQ(readFile(path), bytes);
  std::string missing = path + "/no/folder";
  EXPECT_NE(llvm::toString(writeCheckpoint(missing, "", counters, buffers)),
            "");
}

/// What is read from a damaged file is what was written, or nothing.
TEST_F(CheckpointTest, SurvivesMutations) {
  State state(1);
  write(state);
  std::string bytes = readFile(path);
  int64_t rounds = std::getenv("KAS_SLOW_TESTS") ? 20000 : 2000, good = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    uint64_t seed = 1000 + round;
    Random random(seed);
    llvm::sys::fs::remove(path);
    writeFile(path, mutate(bytes, random));
    State other(2);
    auto before = other.bits();
    auto read = readCheckpoint(path, "net 1", other.buffers());
    good += bool(read);
    if (read) {
      EXPECT_EQ(*read, counters) << "seed " << seed;
      EXPECT_EQ(other.bits(), state.bits()) << "seed " << seed;
    } else {
      llvm::consumeError(read.takeError());
      EXPECT_EQ(other.bits(), before) << "seed " << seed;
    }
  }
  // Times, for example, are not checked.
  EXPECT_GE(good, rounds / 100);
  EXPECT_LE(good, rounds / 2);
}

} // namespace
