//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest of device code (docs/internals/gpu.md) from JSON, with errors
// that name the place.
// The functions `fromJSON`, found by LLVM's ObjectMapper through their
// namespace, check each object by itself and report a path such as
// `manifest.kernels[1].grid`. DeviceManifestChecks.cpp has what objects state
// about each other.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/DeviceManifest.h"
#include "DeviceManifestChecks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::json::ObjectMapper;
using llvm::json::Path;
using llvm::json::Value;

/// The words for kinds of buffers, in the order of the enumeration.
static constexpr std::pair<DeviceManifest::BufferKind, llvm::StringLiteral>
    bufferKinds[] = {{DeviceManifest::BufferKind::Argument, "argument"},
                     {DeviceManifest::BufferKind::Result, "result"},
                     {DeviceManifest::BufferKind::Status, "status"},
                     {DeviceManifest::BufferKind::Constant, "constant"},
                     {DeviceManifest::BufferKind::Scratch, "scratch"}};

// An i1 takes a byte in memory.
uint64_t kas::getElementBytes(llvm::StringRef dtype) {
  if (dtype == "f64" || dtype == "i64")
    return 8;
  if (dtype == "f32" || dtype == "i32")
    return 4;
  if (dtype == "f16" || dtype == "bf16" || dtype == "i16")
    return 2;
  return dtype == "i8" || dtype == "i1" ? 1 : 0;
}

uint64_t DeviceManifest::TensorShape::getBytes() const {
  uint64_t bytes = getElementBytes(dtype);
  for (int64_t extent : shape)
    bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

std::vector<uint64_t> DeviceManifest::Convolution::getResultSizes() const {
  std::vector<uint64_t> sizes = {imageSizes[0], filterSizes[0]};
  for (unsigned i : {0, 1}) {
    uint64_t size = imageSizes[2 + i] + 2 * pads[i],
             window = dilations[i] * (filterSizes[2 + i] - 1) + 1;
    sizes.push_back(size < window ? 0 : (size - window) / strides[i] + 1);
  }
  return sizes;
}

llvm::StringRef DeviceManifest::getName(BufferKind kind) {
  return bufferKinds[static_cast<size_t>(kind)].second;
}

//===----------------------------------------------------------------------===//
// From JSON
//===----------------------------------------------------------------------===//

namespace kas {

namespace {

/// Three numbers, in a type of this file so that ObjectMapper finds its
/// `fromJSON`.
struct ManifestSizes {
  std::array<uint32_t, 3> values = {};
};

/// Found by ObjectMapper, as those below; each says in `path` what is wrong.
/// Extents of a grid or block: a launch with a 0 is an error of the driver that
/// says nothing useful, so it is refused here.
bool fromJSON(const Value &value, ManifestSizes &sizes, Path path) {
  std::vector<uint64_t> numbers;
  if (!llvm::json::fromJSON(value, numbers, path))
    return false;
  if (numbers.size() != 3 || !llvm::all_of(numbers, [](uint64_t number) {
        return number > 0 && number <= UINT32_MAX;
      })) {
    path.report("expected three numbers from 1 to 4294967295");
    return false;
  }
  llvm::copy(numbers, sizes.values.begin());
  return true;
}

} // namespace

/// One of the names of `bufferKinds`.
static bool fromJSON(const Value &value, DeviceManifest::BufferKind &kind,
                     Path path) {
  std::string text;
  if (!llvm::json::fromJSON(value, text, path))
    return false;
  for (auto [known, name] : bufferKinds)
    if (text == name) {
      kind = known;
      return true;
    }
  path.report("expected argument, result, status, constant or scratch");
  return false;
}

/// Reads `dtype` and `shape`, whose bytes 64 bits can hold.
static bool mapShape(const Value &value, DeviceManifest::TensorShape &tensor,
                     Path path) {
  ObjectMapper mapper(value, path);
  if (!mapper || !mapper.map("dtype", tensor.dtype) ||
      !mapper.map("shape", tensor.shape))
    return false;
  uint64_t bytes = getElementBytes(tensor.dtype);
  if (bytes == 0) {
    path.field("dtype").report("expected f32, f16, bf16 or another type");
    return false;
  }
  // The product is checked as it grows: a shape from a file can have a size of
  // more than 64 bits.
  for (int64_t extent : tensor.shape) {
    bool overflow = false;
    if (extent > 0)
      bytes = llvm::SaturatingMultiply(bytes, static_cast<uint64_t>(extent),
                                       &overflow);
    if (extent <= 0 || overflow) {
      path.field("shape").report("expected positive extents that memory can "
                                 "hold");
      return false;
    }
  }
  return true;
}

static bool fromJSON(const Value &value, DeviceManifest::Argument &argument,
                     Path path) {
  ObjectMapper mapper(value, path);
  return mapper && mapper.mapOptional("access", argument.access) &&
         mapShape(value, argument, path);
}

static bool fromJSON(const Value &value, DeviceManifest::TensorMap &map,
                     Path path) {
  ObjectMapper mapper(value, path);
  if (!mapper || !mapper.map("argument", map.argument) ||
      !mapper.map("sizes", map.sizes) || !mapper.map("strides", map.strides) ||
      !mapper.map("box", map.box))
    return false;
  // The limits of cuTensorMapEncodeTiled: rank 5 and 256 elements in each
  // dimension of the box. The innermost stride is one element and not given.
  if (map.sizes.empty() || map.sizes.size() > 5) {
    path.field("sizes").report("expected 1 to 5 numbers");
    return false;
  }
  if (map.strides.size() + 1 != map.sizes.size()) {
    path.field("strides").report("expected one number less than sizes");
    return false;
  }
  if (map.box.size() != map.sizes.size() ||
      llvm::any_of(map.box, [](uint64_t entry) { return entry > 256; })) {
    path.field("box").report(
        "expected as many numbers of at most 256 as sizes");
    return false;
  }
  return true;
}

static bool fromJSON(const Value &value, DeviceManifest::Matrix &matrix,
                     Path path) {
  ObjectMapper mapper(value, path);
  if (!mapper || !mapper.map("argument", matrix.argument) ||
      !mapper.map("strides", matrix.strides))
    return false;
  if (matrix.strides.size() == 3)
    return true;
  path.field("strides").report("expected three numbers");
  return false;
}

static bool mapEpilogue(ObjectMapper &mapper,
                        DeviceManifest::Epilogue &epilogue, Path path) {
  if (!mapper.mapOptional("bias", epilogue.bias) ||
      !mapper.mapOptional("residual", epilogue.residual) ||
      !mapper.mapOptional("rectified", epilogue.isRectified) ||
      !mapper.mapOptional("precision", epilogue.precision))
    return false;
  if (llvm::is_contained({"f32", "tf32", "f16", "bf16"}, epilogue.precision))
    return true;
  path.field("precision").report("expected f32, tf32, f16 or bf16");
  return false;
}

/// Four sizes: libraries take numbers of 32 bits.
static bool mapSizes(ObjectMapper &mapper, llvm::StringLiteral field,
                     std::vector<uint64_t> &sizes, Path path) {
  if (!mapper.map(field, sizes))
    return false;
  if (sizes.size() == 4 && llvm::all_of(sizes, [](uint64_t size) {
        return size && size <= INT32_MAX;
      }))
    return true;
  path.field(field).report("expected four numbers from 1 to 2147483647");
  return false;
}

static bool fromJSON(const Value &value, DeviceManifest::Matmul &matmul,
                     Path path) {
  ObjectMapper mapper(value, path);
  return mapper && mapSizes(mapper, "sizes", matmul.sizes, path) &&
         mapper.map("left", matmul.left) && mapper.map("right", matmul.right) &&
         mapper.map("result", matmul.result) &&
         mapEpilogue(mapper, matmul, path);
}

/// Numbers of 32 bits along height and width.
static bool mapSteps(ObjectMapper &mapper, llvm::StringLiteral field,
                     std::vector<uint64_t> &steps, bool mayBeZero, Path path) {
  if (!mapper.map(field, steps))
    return false;
  if (steps.size() == 2 && llvm::all_of(steps, [&](uint64_t step) {
        return (step || mayBeZero) && step <= INT32_MAX;
      }))
    return true;
  constexpr llvm::StringLiteral fromZero =
                                    "expected two numbers from 0 to 2147483647",
                                fromOne =
                                    "expected two numbers from 1 to 2147483647";
  path.field(field).report(mayBeZero ? fromZero : fromOne);
  return false;
}

static bool fromJSON(const Value &value,
                     DeviceManifest::Convolution &convolution, Path path) {
  ObjectMapper mapper(value, path);
  return mapper && mapper.map("image", convolution.image) &&
         mapper.map("filter", convolution.filter) &&
         mapper.map("result", convolution.result) &&
         mapSizes(mapper, "image_sizes", convolution.imageSizes, path) &&
         mapSizes(mapper, "filter_sizes", convolution.filterSizes, path) &&
         mapSteps(mapper, "strides", convolution.strides, false, path) &&
         mapSteps(mapper, "dilations", convolution.dilations, false, path) &&
         mapSteps(mapper, "pads", convolution.pads, true, path) &&
         mapper.mapOptional("channels_last", convolution.areChannelsLast) &&
         mapEpilogue(mapper, convolution, path);
}

static bool fromJSON(const Value &value, DeviceManifest::Kernel &kernel,
                     Path path) {
  ObjectMapper mapper(value, path);
  uint64_t dynamicBytes = 0;
  ManifestSizes grid, block;
  if (!mapper || !mapper.map("name", kernel.name) ||
      !mapper.map("grid", grid) || !mapper.map("block", block) ||
      !mapper.mapOptional("shared_bytes", kernel.sharedBytes) ||
      !mapper.mapOptional("dynamic_shared_bytes", dynamicBytes) ||
      !mapper.map("arguments", kernel.arguments) ||
      !mapper.mapOptional("tensor_maps", kernel.tensorMaps) ||
      !mapper.mapOptional("matmul", kernel.matmul) ||
      !mapper.mapOptional("convolution", kernel.convolution) ||
      (kernel.matmul && !checkMatmul(kernel, path)) ||
      (kernel.convolution && !checkConvolution(kernel, path)))
    return false;
  if (kernel.matmul && kernel.convolution) {
    path.field("convolution").report("expected a matmul or a convolution");
    return false;
  }
  kernel.grid = grid.values;
  kernel.block = block.values;
  // CUDA takes an `unsigned int` for it.
  if (dynamicBytes > UINT32_MAX) {
    path.field("dynamic_shared_bytes").report("expected 32 bits");
    return false;
  }
  kernel.dynamicSharedBytes = static_cast<uint32_t>(dynamicBytes);
  // Maps point to arguments; descriptors are made for 16-bit elements alone.
  for (auto [index, map] : llvm::enumerate(kernel.tensorMaps)) {
    llvm::StringRef dtype;
    if (map.argument < kernel.arguments.size())
      dtype = kernel.arguments[map.argument].dtype;
    if (dtype != "f16" && dtype != "bf16") {
      path.field("tensor_maps")
          .index(index)
          .field("argument")
          .report("expected the position of an argument of f16 or bf16");
      return false;
    }
  }
  return true;
}

static bool fromJSON(const Value &value, DeviceManifest::Buffer &buffer,
                     Path path) {
  using Kind = DeviceManifest::BufferKind;
  ObjectMapper mapper(value, path);
  // `bytes` is written for other readers and not read: it follows from the
  // shape.
  std::string data;
  if (!mapper || !mapper.map("kind", buffer.kind) ||
      !mapper.mapOptional("name", buffer.name) ||
      !mapper.mapOptional("offset", buffer.offset) ||
      !mapper.mapOptional("data", data) || !mapShape(value, buffer, path))
    return false;
  // Parts of buffers that kernels get begin at a multiple of 256 bytes
  // (docs/reference/device-runtime.md).
  if (buffer.offset % 256) {
    path.field("offset").report("expected a multiple of 256");
    return false;
  }
  // The runtime converts and checks these at its interface; temporaries and
  // constants may have any type.
  bool isTensor = buffer.kind == Kind::Argument || buffer.kind == Kind::Result;
  if (isTensor && buffer.dtype != "f32" && buffer.dtype != "f16" &&
      buffer.dtype != "bf16") {
    path.field("dtype").report("expected f32, f16 or bf16");
    return false;
  }
  // One i32: the position of the assertion that failed.
  if (buffer.kind == Kind::Status &&
      (buffer.dtype != "i32" || !buffer.shape.empty())) {
    path.report("expected an i32 without dimensions as status");
    return false;
  }
  if (buffer.kind != Kind::Constant)
    return true;
  std::vector<char> bytes;
  // Malformed base64 and a wrong number of bytes are the same mistake to a
  // user.
  Error error = llvm::decodeBase64(data, bytes);
  bool isValid = !error && bytes.size() == buffer.getBytes();
  llvm::consumeError(std::move(error));
  if (!isValid) {
    path.field("data").report("expected the constant's bytes in base64");
    return false;
  }
  buffer.data.assign(bytes.begin(), bytes.end());
  return true;
}

static bool fromJSON(const Value &value, DeviceManifest::Launch &launch,
                     Path path) {
  ObjectMapper mapper(value, path);
  uint64_t kernel = 0;
  std::vector<uint64_t> arguments;
  if (!mapper || !mapper.map("kernel", kernel) ||
      !mapper.map("arguments", arguments))
    return false;
  launch.kernel = kernel;
  launch.arguments.assign(arguments.begin(), arguments.end());
  return true;
}

static bool fromJSON(const Value &value, DeviceManifest::Function &function,
                     Path path) {
  ObjectMapper mapper(value, path);
  uint64_t numPrepackLaunches = 0;
  if (!mapper || !mapper.mapOptional("prepack_launches", numPrepackLaunches))
    return false;
  function.numPrepackLaunches = numPrepackLaunches;
  return mapper.map("name", function.name) &&
         mapper.map("buffers", function.buffers) &&
         mapper.mapOptional("scratch_bytes", function.scratchBytes) &&
         mapper.mapOptional("assertions", function.assertions) &&
         mapper.map("launches", function.launches);
}

static bool fromJSON(const Value &value, DeviceManifest::Target &target,
                     Path path) {
  ObjectMapper mapper(value, path);
  if (!mapper || !mapper.mapOptional("api", target.api) ||
      !mapper.mapOptional("chip", target.chip) ||
      !mapper.mapOptional("format", target.format) ||
      !mapper.mapOptional("capabilities", target.capabilities))
    return false;
  if (target.api == "cuda" || target.api == "vulkan")
    return true;
  path.field("api").report("expected cuda or vulkan");
  return false;
}

/// The root. Versions are compared before anything else is read.
static bool fromJSON(const Value &value, DeviceManifest &manifest, Path path) {
  ObjectMapper mapper(value, path);
  int64_t version = 0;
  if (!mapper || !mapper.map("version", version))
    return false;
  if (version != 1) {
    path.field("version").report("expected version 1");
    return false;
  }
  return mapper.map("target", manifest.target) &&
         mapper.map("kernels", manifest.kernels) &&
         mapper.map("functions", manifest.functions);
}

} // namespace kas

Expected<DeviceManifest> DeviceManifest::fromJSON(llvm::StringRef json) {
  Expected<Value> value = llvm::json::parse(json);
  if (!value)
    return createStringError("malformed manifest: " +
                             llvm::toString(value.takeError()));
  DeviceManifest manifest;
  Path::Root root("manifest");
  if (!kas::fromJSON(*value, manifest, root))
    return createStringError("malformed manifest: " +
                             llvm::toString(root.getError()));
  for (const Function &function : manifest.functions)
    if (Error error = checkFunction(manifest, function))
      return error;
  return manifest;
}

const DeviceManifest::Function *
DeviceManifest::find(llvm::StringRef name) const {
  auto found = llvm::find_if(
      functions, [&](const Function &it) { return it.name == name; });
  return found == functions.end() ? nullptr : &*found;
}
