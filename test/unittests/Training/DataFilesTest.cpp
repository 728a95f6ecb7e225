//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DataFileBytes.h"
#include "TemporaryDirectory.h"
#include "kas/ExecutionEngine/Zip.h"
#include "kas/Training/Dataset.h"
#include "gtest/gtest.h"

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

TEST_F(DataFilesTest, ReadsCompressedIdx) {
  auto data = load(getCompressedIdx(), makeIdx(8, {6}, "\1\1\1\1\1\1"));
  ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
  EXPECT_EQ(data->size(), 6);
  for (int64_t i = 0; i < 72; ++i)
    EXPECT_EQ(data->getBytes(i / 12)[i % 12], (i * 7 + i * i / 5) % 256);
  expectError(errorOf(load(StringRef(getCompressedIdx()).drop_back(),
                           makeIdx(8, {6}, "\1\1\1\1\1\1"))),
              "images': the compressed data is broken");
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
              "fashion-mnist, mnist, idx, npy, npz, cifar10, cifar100, got "
              "'mnists'");
  expectError(errorOf(loadDataset("idx:images")),
              "requires 'idx:IMAGES,LABELS', got 'idx:images'");
  expectError(errorOf(loadDataset("idx:,labels")), "requires 'idx:IMAGES");
  expectError(errorOf(loadDataset("idx,a,b")),
              "requires 'idx:IMAGES,LABELS', got 'idx,a,b'");
  expectError(errorOf(loadDataset("fashion-mnist:/folder")),
              "requires 'fashion-mnist', got 'fashion-mnist:/folder'");
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

std::string
makeZip(std::initializer_list<std::pair<StringRef, std::string>> members) {
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  execution::ZipWriter writer(stream);
  for (auto &[name, content] : members)
    llvm::cantFail(writer.add(name, content));
  writer.finish();
  return bytes;
}

std::string bytesOf(llvm::ArrayRef<float> values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(float)};
}

TEST_F(DataFilesTest, ReadsCompressedNpz) {
  std::string spec = "npz:" + write("data.npz", getCompressedNpz());
  auto train = loadDataset(spec);
  ASSERT_TRUE(bool(train)) << llvm::toString(train.takeError());
  EXPECT_EQ(train->size(), 4);
  EXPECT_EQ(train->getShape(), llvm::ArrayRef<int64_t>({1, 2, 3}));
  EXPECT_EQ(train->getLabels(), llvm::ArrayRef<int32_t>({0, 2, 1, 2}));
  EXPECT_EQ(train->getNumClasses(), 3);
  for (int64_t i = 0; i < 24; ++i)
    EXPECT_EQ(train->getBytes(i / 6)[i % 6], 7 * i);
  auto test = loadDataset(spec, DatasetPart::Test);
  ASSERT_TRUE(bool(test)) << llvm::toString(test.takeError());
  EXPECT_EQ(test->size(), 2);
  EXPECT_EQ(test->getBytes(1)[5], 7 * 11 + 1);
}

TEST_F(DataFilesTest, ReadsStoredNpzAndAllOrders) {
  // Images NHWC 2x1x2x3, in Fortran order too, and as big-endian f32 and f64.
  std::vector<float> values(12);
  for (int i = 0; i < 12; ++i)
    values[i] = static_cast<float>(i);
  std::string labels = makeNpy("<i4", "2, 1", StringRef("\0\0\0\0\1\0\0\0", 8));
  auto check = [&](std::string images, StringRef order) {
    std::string spec =
        "npz:" +
        write("a.npz", makeZip({{"images.npy", std::move(images)},
                                {"labels.npy", labels},
                                {"other.npy", makeNpy("|S3", "", "abc")}})) +
        ",layout=nhwc,classes=2";
    auto data = loadDataset(spec);
    ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
    ASSERT_EQ(data->getShape(), llvm::ArrayRef<int64_t>({3, 1, 2}));
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t x = 0; x < 2; ++x)
        for (int64_t c = 0; c < 3; ++c) {
          int64_t place =
              order == "C" ? (n * 2 + x) * 3 + c : n + 2 * (x + 2 * c);
          EXPECT_EQ(data->getFloats(n)[c * 2 + x], values[place]);
        }
  };
  std::string big, doubles;
  for (float value : values) {
    std::string bytes = bytesOf(value);
    big.append(bytes.rbegin(), bytes.rend());
    double wide = value;
    doubles.append(reinterpret_cast<char *>(&wide), sizeof(wide));
  }
  check(makeNpy("<f4", "2, 1, 2, 3", bytesOf(values)), "C");
  check(makeNpy("<f4", "2, 1, 2, 3", bytesOf(values), true), "Fortran");
  check(makeNpy(">f4", "2, 1, 2, 3", big), "C");
  check(makeNpy("<f8", "2, 1, 2, 3", doubles), "C");
}

TEST_F(DataFilesTest, ReadsNpy) {
  auto data = loadDataset(
      "npy:" + write("x.npy", makeNpy("<f4", "2, 2", bytesOf({1, 2, 3, 4}))) +
      "," + write("y.npy", makeNpy("|i1", "2,", StringRef("\1\0", 2))) +
      ",classes=4");
  ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
  EXPECT_EQ(data->getShape(), llvm::ArrayRef<int64_t>(2));
  EXPECT_FALSE(data->hasImages());
  EXPECT_EQ(data->getFloats(1)[0], 3.0f);
  EXPECT_EQ(data->getNumClasses(), 4);
}

/// The values of a stored member start at any byte of the file.
TEST_F(DataFilesTest, ReadsFloatsAtAnyAddress) {
  for (const char *other : {"", "a", "ab", "abc"}) {
    auto data = loadDataset(
        "npz:" +
        write("a.npz",
              makeZip({{"other", other},
                       {"x.npy", makeNpy("<f4", "2, 2", bytesOf({1, 2, 3, 4}))},
                       {"y.npy", makeNpy("|u1", "2,", "\1\1")}})));
    ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
    EXPECT_EQ(data->getFloats(1)[1], 4.0f);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data->getFloats(0).data()) % 4, 0u);
  }
}

TEST_F(DataFilesTest, RejectsBrokenNpz) {
  auto load = [&](const std::string &bytes) {
    return errorOf(loadDataset("npz:" + write("a.npz", bytes)));
  };
  std::string x = makeNpy("|u1", "2, 1", "ab"),
              y = makeNpy("|u1", "2,", "\1\1");
  expectError(load("PK"), "a.npz': corrupt or truncated archive");
  expectError(
      load(makeZip({{"x.npy", x}})),
      "requires arrays 'x_train' and 'y_train', or 'train_images' and "
      "'train_labels', or 'images' and 'labels', or 'x' and 'y', got x");
  expectError(load(makeZip({{"x.npy", x}, {"y.npy", y}, {"x.npy", x}})),
              "member 'x' is twice in the archive");
  expectError(load(makeZip({{"x.npy", "ab"}, {"y.npy", y}})),
              "a.npz': member 'x': not an .npy file");
  expectError(load(makeZip(
                  {{"x.npy", makeNpy("<c8", "1,", "abcdabcd")}, {"y.npy", y}})),
              "requires an array of integers, f32 or f64, got dtype '<c8'");
  expectError(
      load(makeZip({{"x.npy", makeNpy("|u1", "2, 2", "abc")}, {"y.npy", y}})),
      "truncated: shape 2x2 of u8 has 4 bytes, got 3");
  expectError(
      load(makeZip({{"x.npy", makeNpy("|u1", "-2, 2", "abcd")}, {"y.npy", y}})),
      "shape -2x2 has a negative dimension");
  expectError(errorOf(loadDataset("npz:" + write("b.npz", makeZip({{"x", x}})),
                                  DatasetPart::Test)),
              "requires arrays 'x_test' and 'y_test', or");
  expectError(errorOf(loadDataset("npz:a,layout=chw")),
              "requires 'nchw' or 'nhwc' for 'layout', got 'chw'");
}

TEST_F(DataFilesTest, ReadsCifar) {
  std::vector<std::string> files;
  for (int i = 1; i <= 5; ++i) {
    files.push_back(makeCifar(i, 3, 1, 10));
    write("data_batch_" + std::to_string(i) + ".bin", files.back());
  }
  std::string folder = directory.getPath("");
  auto data = loadDataset("cifar10:" + folder);
  ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
  EXPECT_EQ(data->size(), 15);
  EXPECT_EQ(data->getNumClasses(), 10);
  EXPECT_EQ(data->getShape(), llvm::ArrayRef<int64_t>({3, 32, 32}));
  EXPECT_EQ(data->getLabels()[4], files[1][3073]);
  EXPECT_EQ(llvm::toStringRef(data->getBytes(4)),
            StringRef(files[1]).substr(3073 + 1, 3072));
  expectError(errorOf(loadDataset("cifar10:" + folder, DatasetPart::Test)),
              "test_batch.bin': No such file");

  std::string fine = makeCifar(9, 4, 2, 20);
  write("test.bin", fine);
  auto hundred = loadDataset("cifar100:" + folder, DatasetPart::Test);
  ASSERT_TRUE(bool(hundred)) << llvm::toString(hundred.takeError());
  EXPECT_EQ(hundred->size(), 4);
  EXPECT_EQ(hundred->getNumClasses(), 100);
  EXPECT_EQ(hundred->getLabels()[1], fine[3075]);
  EXPECT_EQ(llvm::toStringRef(hundred->getBytes(1)),
            StringRef(fine).substr(3074 + 2, 3072));
}

TEST_F(DataFilesTest, RejectsBrokenCifar) {
  std::string folder = directory.getPath("");
  write("train.bin", "");
  expectError(errorOf(loadDataset("cifar100:" + folder)),
              "requires records of 3074 bytes, got 0 bytes");
  write("train.bin", makeCifar(9, 4, 1, 20));
  expectError(errorOf(loadDataset("cifar100:" + folder)),
              "train.bin': truncated or of another format: requires records of "
              "3074 bytes, got 12292 bytes");
  std::string bad = makeCifar(9, 4, 2, 20);
  bad[3075] = 100;
  write("train.bin", bad);
  expectError(errorOf(loadDataset("cifar100:" + folder)),
              "requires labels in [0, 100), got 100 for example 1");
}

TEST_F(DataFilesTest, ReadsMnistFolders) {
  write("train-images-idx3-ubyte", makeIdx(8, {2, 1, 2}, "abcd"));
  write("train-labels-idx1-ubyte", makeIdx(8, {2}, "\1\2"));
  write("t10k-images-idx3-ubyte", makeIdx(8, {1, 1, 2}, "ef"));
  write("t10k-labels-idx1-ubyte", makeIdx(8, {1}, "\x0a"));
  std::string spec = "mnist:" + directory.getPath("");
  auto data = loadDataset(spec);
  ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
  EXPECT_EQ(data->getNumClasses(), 10);
  expectError(errorOf(loadDataset(spec, DatasetPart::Test)),
              "requires labels in [0, 10), got 10 for example 0");
}

TEST_F(DataFilesTest, ComparesPartsOfSplits) {
  std::string labels = write("y", makeIdx(8, {2}, StringRef("\0\1", 2)));
  auto load = [&](const std::string &train, const std::string &test) {
    SplitSpec spec;
    spec.train = "idx:" + write("train", train) + "," + labels;
    spec.test = "idx:" + write("test", test) + "," + labels;
    return loadSplits(spec);
  };
  std::string bytes = makeIdx(8, {2, 4}, "abcdefgh");
  auto splits = load(bytes, bytes);
  ASSERT_TRUE(bool(splits)) << llvm::toString(splits.takeError());
  EXPECT_FALSE(splits->validation);
  EXPECT_EQ(splits->test->checkSum(), splits->train.checkSum());
  expectError(errorOf(load(bytes, makeIdx(8, {2, 2, 2}, "abcdefgh"))),
              "requires examples for testing of shape 4 and type u8, as those "
              "for training, got 1x2x2 and u8");
  labels = write("y", makeIdx(8, {2}, "\1\1"));
  SplitSpec spec;
  spec.train = "idx:" + directory.getPath("train") + "," + labels;
  spec.test = "idx:" + directory.getPath("train") + "," +
              write("z", makeIdx(8, {2}, "\1\2"));
  expectError(errorOf(loadSplits(spec)),
              "in the part for testing: requires labels in [0, 2), got 2");
  spec.test.clear();
  spec.hasTest = false;
  spec.validation = -1;
  EXPECT_EQ(errorOf(loadSplits(spec)), "requires from 1 to 1 examples, got -1");
  spec.validation = 1;
  spec.limit = 2;
  EXPECT_EQ(errorOf(loadSplits(spec)), "requires from 1 to 1 examples, got 2");
}

} // namespace
