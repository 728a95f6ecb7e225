//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Npy.h"
#include "kas/ExecutionEngine/Inflate.h"
#include "kas/Support/OutputFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::execution;
using llvm::StringRef;

namespace {

/// A directory that goes away with the test.
class NpyTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kas-npy", directory));
  }
  void TearDown() override {
    (void)llvm::sys::fs::remove_directories(directory);
  }
  std::string path(StringRef name) {
    llvm::SmallString<128> result(directory);
    llvm::sys::path::append(result, name);
    return std::string(result);
  }
  std::string write(StringRef name, StringRef bytes) {
    std::error_code code;
    llvm::raw_fd_ostream(path(name), code) << bytes;
    return path(name);
  }
  int countFiles() {
    std::error_code code;
    int count = 0;
    for (llvm::sys::fs::directory_iterator it(directory, code), end;
         it != end && !code; it.increment(code))
      ++count;
    return count;
  }
  llvm::SmallString<128> directory;
};

std::string message(llvm::Error error) {
  return llvm::toString(std::move(error));
}

/// A .npy file, version 1, with this header and data.
std::string npy(StringRef header, StringRef data, char major = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += major;
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  if (major > 1)
    bytes.append(2, '\0');
  return bytes + header.str() + data.str();
}

std::string floats(std::initializer_list<float> values) {
  return std::string(reinterpret_cast<const char *>(values.begin()),
                     values.size() * sizeof(float));
}

std::string error(StringRef bytes) {
  auto tensor = parseNpy(bytes);
  return tensor ? "no error" : message(tensor.takeError());
}

TEST_F(NpyTest, WritesAndReadsAllRanks) {
  const llvm::SmallVector<int64_t> shapes[] = {
      {}, {3}, {2, 3}, {1, 2, 3, 4}, {0, 5}};
  for (const auto &shape : shapes) {
    Tensor tensor(shape);
    Initializer().fill(tensor.getValues(), tensor.getShape(), RandomStream(1));
    std::string bytes = formatNpy(tensor);
    EXPECT_EQ((bytes.size() - 4 * tensor.getNumElements()) % 64, 0u);
    ASSERT_EQ(message(writeNpy(path("a.npy"), tensor)), "");
    auto read = readNpy(path("a.npy"));
    ASSERT_TRUE(bool(read)) << message(read.takeError());
    EXPECT_EQ(read->getShape(), tensor.getShape());
    EXPECT_EQ(read->getValues(), tensor.getValues());
  }
}

TEST_F(NpyTest, KeepsNaNAndInfinity) {
  Tensor tensor({3});
  tensor.data()[0] = std::numeric_limits<float>::quiet_NaN();
  tensor.data()[1] = -std::numeric_limits<float>::infinity();
  auto read = parseNpy(formatNpy(tensor));
  ASSERT_TRUE(bool(read));
  EXPECT_TRUE(std::isnan(read->data()[0]));
  EXPECT_EQ(read->data()[1], tensor.data()[1]);
}

TEST_F(NpyTest, ReadsVersionsAndSpellings) {
  StringRef headers[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
      "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}",
      "{ 'fortran_order' : True , 'descr' : '<f4' , 'shape' : ( 2 , ) }  \n"};
  for (StringRef header : headers)
    for (char major : {1, 2, 3}) {
      auto tensor = parseNpy(npy(header, floats({1, 2}), major));
      ASSERT_TRUE(bool(tensor)) << message(tensor.takeError());
      EXPECT_EQ(tensor->data()[1], 2);
    }
}

TEST_F(NpyTest, ConvertsFortranOrder) {
  auto tensor =
      parseNpy(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                   floats({0, 10, 1, 11, 2, 12})));
  ASSERT_TRUE(bool(tensor));
  const float expected[] = {0, 1, 2, 10, 11, 12};
  EXPECT_EQ(tensor->getValues(), llvm::ArrayRef(expected));
}

TEST_F(NpyTest, RejectsOtherTypes) {
  auto header = [](StringRef dtype) {
    return ("{'descr': " + dtype + ", 'fortran_order': False, 'shape': (1,), }")
        .str();
  };
  EXPECT_EQ(error(npy(header("'<f8'"), floats({1, 2}))),
            "expected dtype f32 ('<f4'), got '<f8'");
  EXPECT_EQ(error(npy(header("'>f4'"), floats({1}))),
            "expected little-endian f32 ('<f4'), got big-endian ('>f4')");
  EXPECT_EQ(error(npy(header("[('a', '<f4')]"), floats({1}))),
            "expected dtype f32 ('<f4'), got '[('a', '<f4')]'");
}

TEST_F(NpyTest, RejectsWrongLengths) {
  StringRef header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(error(npy(header, floats({1}))),
            "truncated: shape 2 has 8 bytes, got 4");
  EXPECT_EQ(error(npy(header, floats({1, 2, 3}))),
            "trailing data: shape 2 has 8 bytes, got 12");
  EXPECT_EQ(error(""), "not an .npy file");
  EXPECT_EQ(error("hello, this is text"), "not an .npy file");
  std::string whole = npy(header, floats({1, 2}));
  // Every proper prefix is an error and nothing worse.
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(error(StringRef(whole).take_front(length)), "no error") << length;
}

TEST_F(NpyTest, RejectsBadHeaders) {
  EXPECT_EQ(error(npy("{}", "", 4)),
            "expected .npy format version 1, 2 or 3, got 4");
  for (StringRef header :
       {"", "{}", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': ()} and more",
        "{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(99999999999999999999,)}"})
    EXPECT_EQ(error(npy(header, "")), "malformed .npy header") << header.str();
  EXPECT_EQ(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': "
                      "(-1,), }",
                      "")),
            "shape -1 has a negative dimension");
  EXPECT_EQ(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': "
                      "(4294967296, 4294967296), }",
                      "")),
            "shape 4294967296x4294967296 is too large");
}

TEST_F(NpyTest, NamesTheFile) {
  auto missing = readNpy(path("missing.npy"));
  ASSERT_FALSE(bool(missing));
  EXPECT_EQ(message(missing.takeError()), "cannot read '" +
                                              path("missing.npy") +
                                              "': No such file or directory");
  auto empty = readNpy(write("empty.npy", ""));
  ASSERT_FALSE(bool(empty));
  EXPECT_EQ(message(empty.takeError()),
            "'" + path("empty.npy") + "': not an .npy file");
}

TEST_F(NpyTest, ArchivesKeepOrderAndValues) {
  NamedTensors tensors;
  for (StringRef name : {"z.weight", "a.bias", "input"}) {
    Tensor tensor({2, 3});
    Initializer().fill(tensor.getValues(), tensor.getShape(),
                       RandomStream(3, name));
    tensors.insert({name.str(), std::move(tensor)});
  }
  ASSERT_EQ(message(writeNpz(path("a.npz"), tensors)), "");
  auto read = readNpz(path("a.npz"));
  ASSERT_TRUE(bool(read)) << message(read.takeError());
  ASSERT_EQ(read->size(), 3u);
  for (auto [actual, expected] : llvm::zip(*read, tensors)) {
    EXPECT_EQ(actual.first, expected.first);
    EXPECT_EQ(actual.second.getValues(), expected.second.getValues());
  }
}

TEST_F(NpyTest, BrokenArchivesAreErrors) {
  NamedTensors tensors;
  tensors.insert({"x", Tensor({4})});
  ASSERT_EQ(message(writeNpz(path("a.npz"), tensors)), "");
  auto buffer = llvm::MemoryBuffer::getFile(path("a.npz"));
  ASSERT_TRUE(bool(buffer));
  std::string whole = (*buffer)->getBuffer().str();
  for (size_t length = 0; length < whole.size(); ++length) {
    auto read = readNpz(write("b.npz", StringRef(whole).take_front(length)));
    EXPECT_FALSE(bool(read)) << length;
    llvm::consumeError(read.takeError());
  }
  // One changed byte of the data: the check sum notices.
  whole[whole.find("descr")] ^= 1;
  auto read = readNpz(write("c.npz", whole));
  ASSERT_FALSE(bool(read));
  EXPECT_EQ(message(read.takeError()),
            "'" + path("c.npz") +
                "': member 'x': corrupt or truncated archive: wrong check sum");
}

TEST_F(NpyTest, MutatedArchivesNeverCrash) {
  NamedTensors tensors;
  tensors.insert({"x", Tensor({4})});
  tensors.insert({"y", Tensor({2, 2})});
  ASSERT_EQ(message(writeNpz(path("a.npz"), tensors)), "");
  auto buffer = llvm::MemoryBuffer::getFile(path("a.npz"));
  ASSERT_TRUE(bool(buffer));
  std::string whole = (*buffer)->getBuffer().str();
  Random random(11);
  for (int round = 0; round < 500; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    auto read = readNpz(write("b.npz", bytes));
    if (!read)
      llvm::consumeError(read.takeError());
  }
}

TEST_F(NpyTest, FailedWritesKeepTheOldFile) {
  std::string old = write("old.npy", "precious");
  llvm::Error error = writeFile(old, [](llvm::raw_ostream &stream) {
    stream << "half of";
    return llvm::createStringError("no more data");
  });
  EXPECT_EQ(message(std::move(error)), "no more data");
  auto buffer = llvm::MemoryBuffer::getFile(old);
  ASSERT_TRUE(bool(buffer));
  EXPECT_EQ((*buffer)->getBuffer(), "precious");
  EXPECT_EQ(countFiles(), 1);

  EXPECT_EQ(message(writeNpy(path("no/such/place.npy"), Tensor())),
            "cannot write '" + path("no/such/place.npy") +
                "': No such file or directory");
  EXPECT_EQ(message(writeNpy(directory, Tensor())),
            "cannot write '" + std::string(directory) + "': Is a directory");
}

TEST_F(NpyTest, WritesThroughSymbolicLinks) {
  std::string target = write("target.npy", "old");
  ASSERT_FALSE(llvm::sys::fs::create_link(target, path("link.npy")));
  ASSERT_EQ(message(writeNpy(path("link.npy"), Tensor({2}))), "");
  auto read = readNpy(target);
  ASSERT_TRUE(bool(read)) << message(read.takeError());
  EXPECT_TRUE(llvm::sys::fs::is_symlink_file(path("link.npy")));
}

/// Streams made by zlib 1.2.13 at level 9, raw (window bits -15).
TEST(InflateTest, DecompressesAllKindsOfBlocks) {
  struct {
    StringRef compressed, expected;
  } cases[] = {
      // Nothing at all: one fixed block without symbols.
      {StringRef("\x03\x00", 2), ""},
      // Stored.
      {StringRef("\x01\x03\x00\xfc\xff"
                 "abc",
                 8),
       "abc"},
      // Fixed codes, one overlapping match.
      {StringRef("\x4b\x4c\x44\x00\x00", 5), "aaaaaaaaaaaa"},
  };
  for (auto &[compressed, expected] : cases) {
    auto inflated = inflate(compressed, expected.size());
    ASSERT_TRUE(bool(inflated)) << message(inflated.takeError());
    EXPECT_EQ(*inflated, expected);
  }
}

TEST(InflateTest, DecompressesDynamicCodes) {
  std::string expected;
  for (int i = 0; i < 60; ++i)
    expected +=
        std::to_string(i * i % 97) + "," + std::to_string(i * 7 % 31) + ";";
  std::string compressed = llvm::fromHex(
      "1dceb911c0400803c086141c3f8cfaefcbe09057fbf028283ac43950a124b4a9"
      "01a72544e80369a643832d101a76be07412fa8b2143a54046dc7ca54c870029a"
      "34c32e3c0c65bbc9d8da38097b744772f6c4e8db7e9ccd28c683b1218f1990a2"
      "6e88b37ba5e14b553d6bffd894c3da61450edbf963f3b0de87d5d54a9f360f3b"
      "76d88ed5d69cb6e2b465a7ad5f1babbd59deda69edb4b9d8fb63f772b1fb7db1"
      "9b647fe8e307");
  auto inflated = inflate(compressed, expected.size());
  ASSERT_TRUE(bool(inflated)) << message(inflated.takeError());
  EXPECT_EQ(*inflated, expected);
  // Every proper prefix is an error.
  for (size_t length = 0; length < compressed.size(); ++length) {
    auto prefix = inflate(compressed.substr(0, length), expected.size());
    EXPECT_FALSE(bool(prefix)) << length;
    llvm::consumeError(prefix.takeError());
  }
}

TEST(InflateTest, RejectsBrokenStreams) {
  auto fails = [](StringRef bytes, uint64_t size) {
    auto inflated = inflate(bytes, size);
    bool failed = !inflated;
    llvm::consumeError(inflated.takeError());
    return failed;
  };
  EXPECT_TRUE(fails("", 0));
  EXPECT_TRUE(fails("\x07", 0));                                // reserved type
  EXPECT_TRUE(fails(StringRef("\x01\x03\x00\xfc\xfe", 5), 3));  // bad length
  EXPECT_TRUE(fails(StringRef("\x03\x00", 2), 1));              // too short
  EXPECT_TRUE(fails(StringRef("\x4b\x4c\x44\x00\x00", 5), 11)); // too long
  // Noise must end, in an error or not.
  Random random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random.below(64), '\0');
    for (char &byte : bytes)
      byte = static_cast<char>(random.below(256));
    auto inflated = inflate(bytes, 1000);
    llvm::consumeError(inflated.takeError());
  }
}

/// Files of gzip's format that Python's module gzip made.
TEST(InflateTest, DecompressesGzip) {
  std::string first = llvm::fromHex(
                  "1f8b08000000000002ff4b4c4a4e842100342a6e5a0c000000"),
              second = llvm::fromHex(
                  "1f8b08000000000002ffaba8ac020067ba8eeb03000000");
  auto content = [](StringRef bytes) {
    auto result = gunzip(bytes);
    return result ? *result : "error: " + message(result.takeError());
  };
  EXPECT_TRUE(isGzip(first));
  EXPECT_FALSE(isGzip("PK"));
  EXPECT_EQ(content(first), "abcabcabcabc");
  EXPECT_EQ(content(first + second), "abcabcabcabcxyz");
  for (size_t length = 0; length < first.size(); ++length)
    EXPECT_EQ(content(StringRef(first).take_front(length)),
              "error: the compressed data is broken");
  EXPECT_EQ(content(first + "x"), "error: the compressed data is broken");
  // The check sum and the size are the last eight bytes.
  for (size_t i = first.size() - 8; i < first.size(); ++i) {
    std::string broken = first;
    broken[i] ^= 1;
    EXPECT_EQ(content(broken), "error: the compressed data is broken");
  }
}

} // namespace
