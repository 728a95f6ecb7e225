//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest of device code (docs/internals/gpu.md) to JSON.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/DeviceManifest.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"

using namespace kas;

/// An array of numbers as the attribute `name` of the open object.
template <typename Numbers>
static void writeNumbers(llvm::json::OStream &json, llvm::StringRef name,
                         const Numbers &numbers) {
  json.attributeArray(name, [&] {
    for (auto number : numbers)
      json.value(number);
  });
}

static void writeEpilogue(llvm::json::OStream &json,
                          const DeviceManifest::Epilogue &epilogue) {
  if (epilogue.bias)
    json.attribute("bias", *epilogue.bias);
  if (epilogue.residual)
    json.attribute("residual", *epilogue.residual);
  json.attribute("rectified", epilogue.isRectified);
  json.attribute("precision", epilogue.precision);
}

static void writeMatmul(llvm::json::OStream &json,
                        const DeviceManifest::Matmul &matmul) {
  auto writeMatrix = [&](llvm::StringRef name,
                         const DeviceManifest::Matrix &matrix) {
    json.attributeObject(name, [&] {
      json.attribute("argument", matrix.argument);
      writeNumbers(json, "strides", matrix.strides);
    });
  };
  json.attributeObject("matmul", [&] {
    writeNumbers(json, "sizes", matmul.sizes);
    writeMatrix("left", matmul.left);
    writeMatrix("right", matmul.right);
    writeMatrix("result", matmul.result);
    writeEpilogue(json, matmul);
  });
}

static void writeConvolution(llvm::json::OStream &json,
                             const DeviceManifest::Convolution &convolution) {
  json.attributeObject("convolution", [&] {
    json.attribute("image", convolution.image);
    json.attribute("filter", convolution.filter);
    json.attribute("result", convolution.result);
    writeNumbers(json, "image_sizes", convolution.imageSizes);
    writeNumbers(json, "filter_sizes", convolution.filterSizes);
    writeNumbers(json, "strides", convolution.strides);
    writeNumbers(json, "dilations", convolution.dilations);
    writeNumbers(json, "pads", convolution.pads);
    json.attribute("channels_last", convolution.areChannelsLast);
    writeEpilogue(json, convolution);
  });
}

static void writeKernel(llvm::json::OStream &json,
                        const DeviceManifest::Kernel &kernel) {
  json.object([&] {
    json.attribute("name", kernel.name);
    writeNumbers(json, "grid", kernel.grid);
    writeNumbers(json, "block", kernel.block);
    json.attribute("shared_bytes", kernel.sharedBytes);
    json.attribute("dynamic_shared_bytes", kernel.dynamicSharedBytes);
    json.attributeArray("arguments", [&] {
      for (const DeviceManifest::Argument &argument : kernel.arguments)
        json.object([&] {
          json.attribute("dtype", argument.dtype);
          writeNumbers(json, "shape", argument.shape);
          json.attribute("access", argument.access);
        });
    });
    // Left out rather than empty: only kernels for sm_90 (TMA) have them.
    if (!kernel.tensorMaps.empty())
      json.attributeArray("tensor_maps", [&] {
        for (const DeviceManifest::TensorMap &map : kernel.tensorMaps)
          json.object([&] {
            json.attribute("argument", map.argument);
            writeNumbers(json, "sizes", map.sizes);
            writeNumbers(json, "strides", map.strides);
            writeNumbers(json, "box", map.box);
          });
      });
    if (kernel.matmul)
      writeMatmul(json, *kernel.matmul);
    if (kernel.convolution)
      writeConvolution(json, *kernel.convolution);
  });
}

static void writeBuffer(llvm::json::OStream &json,
                        const DeviceManifest::Buffer &buffer) {
  using Kind = DeviceManifest::BufferKind;
  // A temporary has a position in the scratch buffer and no name; arguments and
  // results have a name; a constant brings its bytes.
  json.object([&] {
    if (buffer.kind != Kind::Scratch)
      json.attribute("name", buffer.name);
    json.attribute("kind", DeviceManifest::getName(buffer.kind));
    json.attribute("dtype", buffer.dtype);
    writeNumbers(json, "shape", buffer.shape);
    json.attribute("bytes", buffer.getBytes());
    if (buffer.kind == Kind::Scratch)
      json.attribute("offset", buffer.offset);
    if (buffer.kind == Kind::Constant)
      json.attribute("data", llvm::encodeBase64(buffer.data));
  });
}

static void writeFunction(llvm::json::OStream &json,
                          const DeviceManifest::Function &function) {
  json.object([&] {
    json.attribute("name", function.name);
    json.attributeArray("buffers", [&] {
      for (const DeviceManifest::Buffer &buffer : function.buffers)
        writeBuffer(json, buffer);
    });
    json.attribute("scratch_bytes", function.scratchBytes);
    if (!function.assertions.empty())
      json.attributeArray("assertions", [&] {
        for (const std::string &text : function.assertions)
          // The texts of assertions come from the user's program, whose bytes
          // need not be UTF-8; JSON has to be.
          json.value(llvm::json::fixUTF8(text));
      });
    if (function.numPrepackLaunches)
      json.attribute("prepack_launches", function.numPrepackLaunches);
    json.attributeArray("launches", [&] {
      for (const DeviceManifest::Launch &launch : function.launches)
        json.object([&] {
          json.attribute("kernel", launch.kernel);
          json.attributeArray("arguments", [&] {
            for (size_t argument : launch.arguments)
              json.value(argument);
          });
        });
    });
  });
}

std::string DeviceManifest::toJSON() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.object([&] {
    // Readers refuse another number: raise it when old runtimes would misread.
    json.attribute("version", 1);
    json.attributeObject("target", [&] {
      json.attribute("api", target.api);
      json.attribute("chip", target.chip);
      json.attribute("format", target.format);
      json.attributeArray("capabilities", [&] {
        for (const std::string &capability : target.capabilities)
          json.value(capability);
      });
    });
    json.attributeArray("kernels", [&] {
      for (const Kernel &kernel : kernels)
        writeKernel(json, kernel);
    });
    json.attributeArray("functions", [&] {
      for (const Function &function : functions)
        writeFunction(json, function);
    });
  });
  return text;
}
