//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks convolutions that a caller says a kernel computes, whatever the back
// end.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

using namespace kas::rt;

void kas::rt::getResultSizes(const KasRtConvolution &convolution,
                             uint64_t (&sizes)[4]) {
  sizes[0] = convolution.imageSizes[0];
  sizes[1] = convolution.filterSizes[0];
  for (int i = 0; i < 2; ++i) {
    uint64_t size = convolution.imageSizes[2 + i] + 2 * convolution.pads[i],
             points = convolution.dilations[i] *
                          (convolution.filterSizes[2 + i] - 1) +
                      1;
    sizes[2 + i] =
        size < points ? 0 : (size - points) / convolution.strides[i] + 1;
  }
}

Status kas::rt::checkConvolution(const KasRtKernelImpl &kernel,
                                 const KasRtConvolution &convolution) {
  auto fail = [&](const std::string &what, int64_t got) {
    return invalidArgument("expected " + what + " for kernel '" + kernel.name +
                           "', got " + std::to_string(got));
  };
  auto check = [&](const auto &numbers, uint64_t least, const char *what) {
    for (uint64_t number : numbers)
      if (number < least || number > INT32_MAX)
        return fail(std::string(what) + " from " + std::to_string(least) +
                        " to 2147483647",
                    number);
    return Status();
  };
  Status status = check(convolution.imageSizes, 1, "sizes of an image");
  status += check(convolution.filterSizes, 1, "sizes of a filter");
  status += check(convolution.strides, 1, "strides");
  status += check(convolution.dilations, 1, "dilations");
  status += check(convolution.pads, 0, "pads");
  if (status.isError())
    return status;
  uint64_t groups = convolution.imageSizes[1] / convolution.filterSizes[1];
  if (groups * convolution.filterSizes[1] != convolution.imageSizes[1])
    return fail("channels of a filter that divide those of the image",
                convolution.filterSizes[1]);
  if (convolution.filterSizes[0] % groups)
    return fail("channels of the result that the groups divide",
                convolution.filterSizes[0]);
  uint64_t results[4];
  getResultSizes(convolution, results);
  for (uint64_t size : results)
    if (size == 0)
      return fail("a window within the image and its pads", size);
  for (uint32_t argument :
       {convolution.image, convolution.filter, convolution.result})
    if (argument >= kernel.bufferCount)
      return fail("tensors in " + std::to_string(kernel.bufferCount) +
                      " buffers",
                  argument);
  for (int32_t argument : {convolution.bias, convolution.residual})
    if (argument >= 0 && static_cast<uint32_t>(argument) >= kernel.bufferCount)
      return fail("a bias and a residual in " +
                      std::to_string(kernel.bufferCount) + " buffers",
                  argument);
  KasRtElement type = convolution.elementType;
  if (type != KAS_RT_F32 && type != KAS_RT_F16 && type != KAS_RT_BF16)
    return fail("tensors of F32, F16 or BF16", type);
  return {};
}
