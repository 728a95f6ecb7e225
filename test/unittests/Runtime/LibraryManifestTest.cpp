//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Descriptions in manifests of kernels that libraries may compute: how they are
// written and read, and what is refused.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/DeviceManifest.h"
#include "llvm/Support/Error.h"
#include <gtest/gtest.h>

using namespace kas;

/// The first `from` in `text` replaced by `to`.
static std::string replace(std::string text, const std::string &from,
                           const std::string &to) {
  return text.replace(from.empty() ? 0 : text.find(from), from.size(), to);
}

/// Expects an error of the manifest `text` with `from` replaced by `to`.
static void expectError(const std::string &text, const std::string &from,
                        const std::string &to, const std::string &error) {
  SCOPED_TRACE(to);
  ASSERT_NE(text.find(from), std::string::npos) << from;
  auto manifest = DeviceManifest::fromJSON(replace(text, from, to));
  ASSERT_FALSE(bool(manifest));
  EXPECT_EQ(llvm::toString(manifest.takeError()),
            "malformed manifest: expected " + error);
}

//===----------------------------------------------------------------------===//
// Products of matrices
//===----------------------------------------------------------------------===//

/// A manifest with a kernel of three arguments that is a product of matrices,
/// left 4x2 and right 8x2 to 4x8, with `from` replaced by `to`.
static std::string getProduct(const std::string &from = "",
                              const std::string &to = "") {
  return replace(
      R"({"version":1,"target":{"api":"cuda","chip":"sm_90","format":"ptx",)"
      R"("capabilities":[]},"kernels":[{"name":"product","grid":[1,1,1],)"
      R"("block":[32,1,1],"shared_bytes":0,"dynamic_shared_bytes":0,)"
      R"("arguments":[{"dtype":"f16","shape":[4,2],"access":"read"},)"
      R"({"dtype":"f16","shape":[8,2],"access":"read"},)"
      R"({"dtype":"f16","shape":[8],"access":"read"},)"
      R"({"dtype":"f16","shape":[4,8],"access":"write"}],)"
      R"("matmul":{"sizes":[1,4,8,2],"left":{"argument":0,"strides":[0,2,1]},)"
      R"("right":{"argument":1,"strides":[0,2,1]},)"
      R"("result":{"argument":3,"strides":[0,8,1]},"bias":2,"rectified":true,)"
      R"("precision":"f32"}}],"functions":[]})",
      from, to);
}

TEST(DeviceManifest, DescribesProductsOfMatrices) {
  auto manifest = DeviceManifest::fromJSON(getProduct());
  ASSERT_TRUE(bool(manifest)) << llvm::toString(manifest.takeError());
  EXPECT_EQ(manifest->toJSON(), getProduct());
  const DeviceManifest::Matmul &matmul = *manifest->kernels[0].matmul;
  EXPECT_EQ(matmul.bias, 2u);
  EXPECT_FALSE(matmul.residual);
  // Other arguments of the same size and type may be the residual.
  EXPECT_TRUE(bool(DeviceManifest::fromJSON(
      getProduct("\"bias\":2", "\"bias\":2,\"residual\":3"))));
}

// The library would read and write there without a question.
TEST(DeviceManifest, SaysWhatIsNoProduct) {
  auto expect = [](const std::string &from, const std::string &to,
                   const std::string &error) {
    expectError(getProduct(), from, to, error);
  };
  std::string matmul = " at manifest.kernels[0].matmul.";
  std::string within = "a matrix within an argument of the kernel" + matmul;
  expect("[1,4,8,2]", "[1,4,8]",
         "four numbers from 1 to 2147483647" + matmul + "sizes");
  expect("[1,4,8,2]", "[1,4,0,2]",
         "four numbers from 1 to 2147483647" + matmul + "sizes");
  expect("[0,2,1]", "[2,1]", "three numbers" + matmul + "left.strides");
  expect("\"precision\":\"f32\"", "\"precision\":\"f8\"",
         "f32, tf32, f16 or bf16" + matmul + "precision");
  expect("[1,4,8,2]", "[1,4,8,3]", within + "left");
  expect("\"argument\":0", "\"argument\":4", within + "left");
  expect("\"argument\":1", "\"argument\":2", within + "right");
  expect("[0,8,1]", "[0,9,1]", within + "result");
  // Beyond 64 bits.
  expect("[0,8,1]", "[0,9223372036854775807,1]", within + "result");
  expect("\"f16\",\"shape\":[8,2]", "\"bf16\",\"shape\":[8,2]",
         "the type of the left matrix" + matmul + "right");
  expect("\"f16\",\"shape\":[4,8]", "\"bf16\",\"shape\":[4,8]",
         "f32 or the type of the factors" + matmul + "result");
  expect(
      "\"bias\":2", "\"bias\":4",
      "an argument with a number for each column, of the type of the result" +
          matmul + "bias");
  expect("\"bias\":2", "\"residual\":2",
         "an argument like the result" + matmul + "residual");
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// A manifest with a kernel that is a convolution in two groups: 4 channels of
/// 5x6 to 6 channels of 3x2.
static std::string getConvolution(const std::string &from = "",
                                  const std::string &to = "") {
  return replace(
      R"({"version":1,"target":{"api":"cuda","chip":"sm_90","format":"ptx",)"
      R"("capabilities":[]},"kernels":[{"name":"convolution","grid":[1,1,1],)"
      R"("block":[32,1,1],"shared_bytes":0,"dynamic_shared_bytes":0,)"
      R"("arguments":[{"dtype":"f16","shape":[1,4,5,6],"access":"read"},)"
      R"({"dtype":"f16","shape":[6,2,3,4],"access":"read"},)"
      R"({"dtype":"f16","shape":[6],"access":"read"},)"
      R"({"dtype":"f16","shape":[36],"access":"write"}],)"
      R"("convolution":{"image":0,"filter":1,"result":3,)"
      R"("image_sizes":[1,4,5,6],"filter_sizes":[6,2,3,4],"strides":[2,1],)"
      R"("dilations":[1,2],"pads":[1,1],"channels_last":false,"bias":2,)"
      R"("rectified":true,"precision":"f32"}}],"functions":[]})",
      from, to);
}

TEST(DeviceManifest, DescribesConvolutions) {
  auto manifest = DeviceManifest::fromJSON(getConvolution());
  ASSERT_TRUE(bool(manifest)) << llvm::toString(manifest.takeError());
  EXPECT_EQ(manifest->toJSON(), getConvolution());
  const DeviceManifest::Convolution &convolution =
      *manifest->kernels[0].convolution;
  EXPECT_EQ(convolution.bias, 2u);
  EXPECT_FALSE(convolution.residual);
  EXPECT_EQ(convolution.getResultSizes(), (std::vector<uint64_t>{1, 6, 3, 2}));
  EXPECT_TRUE(bool(DeviceManifest::fromJSON(
      getConvolution("\"bias\":2", "\"bias\":2,\"residual\":3"))));
}

TEST(DeviceManifest, SaysWhatIsNoConvolution) {
  auto expect = [](const std::string &from, const std::string &to,
                   const std::string &error) {
    expectError(getConvolution(), from, to, error);
  };
  std::string at = " at manifest.kernels[0].convolution.";
  std::string sizes = "four numbers from 1 to 2147483647" + at;
  expect("s\":[1,4,5,6]", "s\":[1,4,5]", sizes + "image_sizes");
  expect("s\":[1,4,5,6]", "s\":[1,4,5,0]", sizes + "image_sizes");
  expect("s\":[6,2,3,4]", "s\":[6,2,3,4294967296]", sizes + "filter_sizes");
  expect("[2,1]", "[2,0]", "two numbers from 1 to 2147483647" + at + "strides");
  expect("[1,2]", "[1]", "two numbers from 1 to 2147483647" + at + "dilations");
  expect("[1,1],\"channels", "[1,2147483648],\"channels",
         "two numbers from 0 to 2147483647" + at + "pads");
  expect("\"precision\":\"f32\"", "\"precision\":\"f8\"",
         "f32, tf32, f16 or bf16" + at + "precision");
  std::string groups = "channels that divide those of the image, and groups "
                       "those of the result" +
                       at + "filter_sizes";
  expect("s\":[6,2,3,4]", "s\":[6,3,3,4]", groups);
  expect("s\":[6,2,3,4]", "s\":[5,2,3,4]", groups);
  expect("[1,2]", "[1,3]",
         "a window within the image and its pads" + at + "pads");
  std::string same =
      "an argument of these sizes, of the type of the image" + at;
  expect("\"image\":0", "\"image\":4",
         "an argument of the kernel" + at + "image");
  expect("s\":[1,4,5,6]", "s\":[2,4,5,6]",
         "an argument of these sizes" + at + "image");
  expect("\"dtype\":\"f16\",\"shape\":[1,4,5,6]",
         "\"dtype\":\"i16\",\"shape\":[1,4,5,6]",
         "f32, f16 or bf16" + at + "image");
  expect("\"filter\":1", "\"filter\":2", same + "filter");
  expect("\"dtype\":\"f16\",\"shape\":[6,2,3,4]",
         "\"dtype\":\"bf16\",\"shape\":[6,2,3,4]", same + "filter");
  expect("\"result\":3", "\"result\":0", same + "result");
  expect("\"bias\":2", "\"bias\":4", same + "bias");
  expect("\"bias\":2", "\"bias\":3", same + "bias");
  expect("\"bias\":2", "\"residual\":2", same + "residual");
  // Of one kernel there is one description.
  expect("\"convolution\":{",
         R"("matmul":{"sizes":[1,6,1,2],"left":{"argument":1,)"
         R"("strides":[0,2,1]},"right":{"argument":1,"strides":[0,2,1]},)"
         R"("result":{"argument":3,"strides":[0,1,1]}},"convolution":{)",
         "a matmul or a convolution at manifest.kernels[0].convolution");
}
