//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Dataset.h"
#include "DataFileBytes.h"
#include "TemporaryDirectory.h"
#include "gtest/gtest.h"
#include <set>

using namespace kas;
using namespace kas::training;
using llvm::StringRef;

namespace {

class DataFilesTest : public testing::Test {
protected:
  std::string write(StringRef name, StringRef bytes) {
    writeFile(directory.getPath(name), bytes);
    return directory.getPath(name);
  }
  /// Loads `idx:` of these two files.
  llvm::Expected<Dataset> load(StringRef images, StringRef labels,
                               StringRef options = "") {
    return loadDataset("idx:" + write("images", images) + "," +
                       write("labels", labels) + options.str());
  }
  TemporaryDirectory directory;
};

/// Whether `text` ends as the message of an error should.
void expectError(const std::string &text, StringRef part) {
  EXPECT_NE(text.find(part.str()), std::string::npos) << text;
}

TEST_F(DataFilesTest, ReadsIdx) {
  std::string pixels = randomBytes(1, 3 * 2 * 4);
  auto data = load(makeIdx(8, {3, 2, 4}, pixels), makeIdx(8, {3}, "\1\4\2"));
  ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->getShape(), llvm::ArrayRef<int64_t>({1, 2, 4}));
  EXPECT_EQ(data->getNumClasses(), 5);
  EXPECT_EQ(data->getLabels(), llvm::ArrayRef<int32_t>({1, 4, 2}));
  EXPECT_EQ(llvm::toStringRef(data->getBytes(2)), StringRef(pixels).substr(16));
}

TEST_F(DataFilesTest, ReadsNumbersOfOtherTypes) {
  // Big-endian f32 0.5 and -2, labels as i32.
  StringRef floats("\x3f\0\0\0\xc0\0\0\0", 8);
  StringRef labels("\0\0\0\1\0\0\1\0", 8);
  auto data = load(makeIdx(13, {2, 1}, floats), makeIdx(12, {2}, labels));
  ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
  EXPECT_EQ(data->getElementType(), ElementType::F32);
  EXPECT_EQ(data->getFloats(0)[0], 0.5f);
  EXPECT_EQ(data->getFloats(1)[0], -2.0f);
  EXPECT_EQ(data->getLabels(), llvm::ArrayRef<int32_t>({1, 256}));
  EXPECT_EQ(data->getNumClasses(), 257);
}

TEST_F(DataFilesTest, RejectsBrokenIdx) {
  std::string labels = makeIdx(8, {2}, StringRef("\0\1", 2));
  expectError(errorOf(load("", labels)), "images': not an idx file");
  expectError(errorOf(load("PK", labels)), "not an idx file");
  expectError(errorOf(load(StringRef("\0\0\x8", 3), labels)),
              "truncated idx header");
  expectError(errorOf(load(makeIdx(7, {2, 1}, "ab"), labels)),
              "requires an idx type of 8, 9, 11, 12, 13 or 14, got 7");
  expectError(errorOf(load(StringRef("\0\0\x8\3\0\0", 6), labels)),
              "truncated idx header: rank 3 has 16 bytes, got 6");
  expectError(errorOf(load(makeIdx(8, {2, 3}, "abcde"), labels)),
              "truncated: shape 2x3 of u8 has 6 bytes, got 5");
  expectError(errorOf(load(makeIdx(8, {2, 3}, "abcdefg"), labels)),
              "trailing data: shape 2x3 of u8 has 6 bytes, got 7");
  expectError(errorOf(load(makeIdx(8, {0, 3}, ""), labels)),
              "requires at least one example and element, got shape 0x3");
  expectError(errorOf(load(makeIdx(8, {2}, "ab"), labels)),
              "requires examples of rank 2 or more, got shape 2");
  expectError(errorOf(load(makeIdx(12, {2, 1}, "abcdabcd"), labels)),
              "requires examples of u8, f32 or f64, got i32");
  expectError(errorOf(load(makeIdx(8, {4000000000, 4000000000, 4000000000}, ""),
                           labels)),
              "is too large");
}

TEST_F(DataFilesTest, RejectsBadLabels) {
  std::string images = makeIdx(8, {2, 2}, "abcd");
  expectError(errorOf(load(images, makeIdx(8, {3}, "\1\1\1"))),
              "requires 2 labels, one for each example, got 3");
  expectError(errorOf(load(images, makeIdx(8, {2}, "\1\3"), ",classes=3")),
              "requires labels in [0, 3), got 3 for example 1");
  expectError(errorOf(load(images, makeIdx(9, {2}, "\1\xff"))),
              "requires labels in [0, 65536) where the number of classes is "
              "not given, got -1 for example 1");
  expectError(
      errorOf(load(images, makeIdx(12, {2}, StringRef("\0\1\0\0\0\0\0\0", 8)))),
      "got 65536 for example 0");
  expectError(errorOf(load(images, makeIdx(13, {2}, "abcdabcd"))),
              "requires labels of an integer type, got f32");
  expectError(errorOf(load(images, makeIdx(8, {2, 2}, "abcd"))),
              "requires labels of shape N or Nx1, got 2x2");
}

TEST_F(DataFilesTest, RejectsElementsThatAreNotFinite) {
  std::string labels = makeIdx(8, {2}, StringRef("\0\1", 2));
  StringRef nan("\0\0\0\0\x7f\xc0\0\0", 8), inf("\xff\x80\0\0\0\0\0\0", 8);
  expectError(errorOf(load(makeIdx(13, {2, 1}, nan), labels)),
              "requires finite elements, got nan at element 0 of example 1");
  expectError(errorOf(load(makeIdx(13, {2, 1}, inf), labels)),
              "requires finite elements, got -inf at element 0 of example 0");
}

TEST_F(DataFilesTest, RejectsBadSpecifications) {
  expectError(errorOf(loadDataset("")), "requires one of the formats");
  expectError(errorOf(loadDataset("mnists:x")),
              "bad data set 'mnists:x': requires one of the formats "
              "fashion-mnist, mnist, idx");
  expectError(errorOf(loadDataset("idx:images")),
              "requires 'idx:IMAGES,LABELS', got 'idx:images'");
  expectError(errorOf(loadDataset("idx:,labels")), "requires 'idx:IMAGES");
  expectError(errorOf(loadDataset("idx:a,b,classes=0")),
              "requires a positive integer for 'classes', got '0'");
  expectError(errorOf(loadDataset("idx:a,b,layout=nhwc")),
              "unknown option 'layout', format 'idx' has 'classes'");
  expectError(errorOf(loadDataset("fashion-mnist,classes=10")),
              "unknown option 'classes', format 'fashion-mnist' has none");
  expectError(errorOf(loadDataset("idx:/no/such,b")),
              "cannot read '/no/such': No such file or directory");
  expectError(errorOf(loadDataset("idx:a,b", DatasetPart::Test)),
              "data of format 'idx' has no part for testing");
}

TEST(DatasetTest, TakesSubsets) {
  Dataset data = makeBytes({1, 2, 2}, 20, 3);
  auto first = llvm::cantFail(data.takeFirst(4));
  EXPECT_EQ(first.size(), 4);
  EXPECT_EQ(first.getBytes(3).data(), data.getBytes(3).data());
  auto random = llvm::cantFail(data.takeRandom(7, 5));
  EXPECT_EQ(random.size(), 7);
  const uint8_t *previous = nullptr;
  for (int64_t i = 0; i < 7; ++i) {
    const uint8_t *start = random.getBytes(i).data();
    int64_t number = (start - data.getBytes(0).data()) / 4;
    EXPECT_EQ(random.getLabels()[i], data.getLabels()[number]);
    EXPECT_LT(previous, start);
    previous = start;
  }
  EXPECT_EQ(random.checkSum(),
            llvm::cantFail(data.takeRandom(7, 5)).checkSum());
  EXPECT_NE(random.checkSum(),
            llvm::cantFail(data.takeRandom(7, 6)).checkSum());
  EXPECT_EQ(errorOf(data.takeFirst(21)),
            "requires from 1 to 20 examples, got 21");
  EXPECT_EQ(errorOf(data.takeRandom(0, 0)),
            "requires from 1 to 20 examples, got 0");
}

TEST(DatasetTest, ChecksumsAllThatMatters) {
  std::set<std::string> sums;
  Dataset data = makeBytes({1, 2, 2}, 6, 3);
  sums.insert(data.checkSum());
  sums.insert(makeBytes({1, 2, 2}, 6, 4).checkSum());
  sums.insert(makeBytes({1, 4, 1}, 6, 3).checkSum());
  sums.insert(data.select({1, 0, 2, 3, 4, 5}).checkSum());
  Examples examples;
  examples.shape = {1, 2, 2};
  for (int64_t i = 0; i < 6; ++i)
    examples.starts.push_back(data.getBytes(i).data());
  sums.insert(
      llvm::cantFail(Dataset::create(examples, {0, 1, 2, 0, 1, 1})).checkSum());
  sums.insert(llvm::cantFail(Dataset::create(examples, {0, 1, 2, 0, 1, 2}, 4))
                  .checkSum());
  EXPECT_EQ(sums.size(), 6u);
}

/// Debian's package is one of those that kas's tests need.
TEST(DatasetTest, ReadsFashionMnist) {
  auto train = loadDataset("fashion-mnist");
  ASSERT_TRUE(bool(train)) << llvm::toString(train.takeError());
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(train->getShape(), llvm::ArrayRef<int64_t>({1, 28, 28}));
  EXPECT_EQ(train->getNumClasses(), 10);
  auto test = loadDataset("fashion-mnist", DatasetPart::Test);
  ASSERT_TRUE(bool(test)) << llvm::toString(test.takeError());
  EXPECT_EQ(test->size(), 10000);
  for (const Dataset &data : {*train, *test}) {
    std::vector<int64_t> counts(10);
    for (int32_t label : data.getLabels())
      ++counts[label];
    EXPECT_EQ(counts, std::vector<int64_t>(10, data.size() / 10));
  }
}

} // namespace
