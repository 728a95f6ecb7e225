//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the objects of a manifest state about each other.
//
//===----------------------------------------------------------------------===//

#include "DeviceManifestChecks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using llvm::createStringError;
using llvm::Error;
using llvm::json::Path;

//===----------------------------------------------------------------------===//
// What libraries compute
//===----------------------------------------------------------------------===//

/// Whether all elements of `matrix` are in its argument: lines of `steps`
/// elements.
static bool isWithin(const DeviceManifest::Kernel &kernel,
                     const DeviceManifest::Matrix &matrix, uint64_t batches,
                     uint64_t lines, uint64_t steps) {
  if (matrix.argument >= kernel.arguments.size())
    return false;
  const DeviceManifest::Argument &argument = kernel.arguments[matrix.argument];
  uint64_t last = 0;
  const uint64_t sizes[] = {batches, lines, steps};
  for (auto [size, stride] : llvm::zip_equal(sizes, matrix.strides))
    last = llvm::SaturatingMultiplyAdd(size - 1, stride, last);
  return last < argument.getBytes() / getElementBytes(argument.dtype);
}

bool kas::checkMatmul(const DeviceManifest::Kernel &kernel, Path path) {
  const DeviceManifest::Matmul &matmul = *kernel.matmul;
  auto fail = [&](llvm::StringLiteral field, llvm::StringLiteral text) {
    path.field("matmul").field(field).report(text);
    return false;
  };
  uint64_t batches = matmul.sizes[0], rows = matmul.sizes[1],
           columns = matmul.sizes[2], steps = matmul.sizes[3];
  constexpr llvm::StringLiteral within =
      "expected a matrix within an argument of the kernel";
  if (!isWithin(kernel, matmul.left, batches, rows, steps))
    return fail("left", within);
  if (!isWithin(kernel, matmul.right, batches, columns, steps))
    return fail("right", within);
  if (!isWithin(kernel, matmul.result, batches, rows, columns))
    return fail("result", within);
  auto getDtype = [&](uint64_t argument) -> llvm::StringRef {
    return kernel.arguments[argument].dtype;
  };
  llvm::StringRef factor = getDtype(matmul.left.argument),
                  result = getDtype(matmul.result.argument);
  if (factor != getDtype(matmul.right.argument))
    return fail("right", "expected the type of the left matrix");
  if (!llvm::is_contained({"f32", "f16", "bf16"}, factor))
    return fail("left", "expected f32, f16 or bf16");
  if (result != "f32" && result != factor)
    return fail("result", "expected f32 or the type of the factors");
  // The residual lies as the result does.
  DeviceManifest::Matrix added = matmul.result;
  added.argument = matmul.residual.value_or(added.argument);
  if (!isWithin(kernel, added, batches, rows, columns) ||
      getDtype(added.argument) != result)
    return fail("residual", "expected an argument like the result");
  if (matmul.bias &&
      (!isWithin(kernel, {*matmul.bias, {0, 0, 1}}, 1, 1, columns) ||
       getDtype(*matmul.bias) != result))
    return fail("bias", "expected an argument with a number for each column, "
                        "of the type of the result");
  return true;
}

/// Whether argument `argument` has so many elements of type `dtype`.
static bool hasElements(const DeviceManifest::Kernel &kernel, uint64_t argument,
                        llvm::ArrayRef<uint64_t> sizes, llvm::StringRef dtype) {
  if (argument >= kernel.arguments.size() ||
      kernel.arguments[argument].dtype != dtype)
    return false;
  uint64_t count = getElementBytes(dtype);
  for (uint64_t size : sizes)
    count = llvm::SaturatingMultiply(count, size);
  return count == kernel.arguments[argument].getBytes();
}

bool kas::checkConvolution(const DeviceManifest::Kernel &kernel, Path path) {
  const DeviceManifest::Convolution &convolution = *kernel.convolution;
  auto fail = [&](llvm::StringLiteral field, llvm::StringLiteral text) {
    path.field("convolution").field(field).report(text);
    return false;
  };
  uint64_t channels = convolution.imageSizes[1],
           groups = channels / convolution.filterSizes[1];
  if (groups * convolution.filterSizes[1] != channels ||
      convolution.filterSizes[0] % groups != 0)
    return fail("filter_sizes", "expected channels that divide those of the "
                                "image, and groups those of the result");
  std::vector<uint64_t> results = convolution.getResultSizes();
  if (llvm::is_contained(results, 0))
    return fail("pads", "expected a window within the image and its pads");
  if (convolution.image >= kernel.arguments.size())
    return fail("image", "expected an argument of the kernel");
  llvm::StringRef dtype = kernel.arguments[convolution.image].dtype;
  if (!llvm::is_contained({"f32", "f16", "bf16"}, dtype))
    return fail("image", "expected f32, f16 or bf16");
  auto has = [&](uint64_t argument, llvm::ArrayRef<uint64_t> sizes) {
    return hasElements(kernel, argument, sizes, dtype);
  };
  if (!has(convolution.image, convolution.imageSizes))
    return fail("image", "expected an argument of these sizes");
  constexpr llvm::StringLiteral same =
      "expected an argument of these sizes, of the type of the image";
  if (!has(convolution.filter, convolution.filterSizes))
    return fail("filter", same);
  if (!has(convolution.result, results))
    return fail("result", same);
  if (convolution.residual && !has(*convolution.residual, results))
    return fail("residual", same);
  if (convolution.bias && !has(*convolution.bias, results[1]))
    return fail("bias", same);
  return true;
}

//===----------------------------------------------------------------------===//
// Launches and buffers
//===----------------------------------------------------------------------===//

/// A launch must name a kernel and buffers that exist, with as many bytes as
/// the kernel reads and writes: shapes may differ (a reshape needs no copy).
static Error checkLaunch(const DeviceManifest &manifest,
                         const DeviceManifest::Function &function,
                         const DeviceManifest::Launch &launch) {
  auto fail = [&](const llvm::Twine &text) {
    return createStringError("malformed manifest: function '" + function.name +
                             "': " + text);
  };
  if (launch.kernel >= manifest.kernels.size())
    return fail("expected a kernel below " +
                llvm::Twine(manifest.kernels.size()) + ", got " +
                llvm::Twine(launch.kernel));
  const DeviceManifest::Kernel &kernel = manifest.kernels[launch.kernel];
  if (launch.arguments.size() != kernel.arguments.size())
    return fail("expected " + llvm::Twine(kernel.arguments.size()) +
                " arguments for kernel '" + kernel.name + "', got " +
                llvm::Twine(launch.arguments.size()));
  for (auto [index, position] : llvm::enumerate(launch.arguments)) {
    if (position >= function.buffers.size())
      return fail("expected a buffer below " +
                  llvm::Twine(function.buffers.size()) + ", got " +
                  llvm::Twine(position));
    uint64_t bytes = function.buffers[position].getBytes();
    uint64_t expected = kernel.arguments[index].getBytes();
    if (expected != bytes)
      return fail("expected a buffer of " + llvm::Twine(expected) +
                  " bytes as argument " + llvm::Twine(index) + " of kernel '" +
                  kernel.name + "', got " + llvm::Twine(bytes));
  }
  return Error::success();
}

// Temporaries must lie within the scratch buffer. The difference cannot wrap,
// as the offset was compared before.
Error kas::checkFunction(const DeviceManifest &manifest,
                         const DeviceManifest::Function &function) {
  for (const DeviceManifest::Buffer &buffer : function.buffers) {
    if (buffer.kind != DeviceManifest::BufferKind::Scratch)
      continue;
    if (buffer.offset > function.scratchBytes ||
        buffer.getBytes() > function.scratchBytes - buffer.offset)
      return createStringError("malformed manifest: function '" +
                               function.name +
                               "': expected temporaries within " +
                               llvm::Twine(function.scratchBytes) +
                               " bytes, got " + llvm::Twine(buffer.getBytes()) +
                               " from " + llvm::Twine(buffer.offset) + " on");
  }
  if (function.numPrepackLaunches > function.launches.size())
    return createStringError("malformed manifest: function '" + function.name +
                             "': expected at most " +
                             llvm::Twine(function.launches.size()) +
                             " launches to prepack weights, got " +
                             llvm::Twine(function.numPrepackLaunches));
  for (const DeviceManifest::Launch &launch : function.launches)
    if (Error error = checkLaunch(manifest, function, launch))
      return error;
  return Error::success();
}
