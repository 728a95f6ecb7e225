//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the dialect kas_gpu and verifies its schedules, devices and
// attributes.
// Limits of hardware that hold for every device (threads of a block, shapes of
// tensor-core instructions) are here, those of one device in the planners
// (docs/internals/gpu.md). Numbers C, D and A are those of the attributes'
// descriptions.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/AttributeErrors.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"

using namespace kas;
using namespace mlir;

#include "kas/Dialect/KasGPU/IR/KasGPUDialect.cpp.inc"
#include "kas/Dialect/KasGPU/IR/KasGPUEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "kas/Dialect/KasGPU/IR/KasGPUAttrs.cpp.inc"

void KasGPUDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "kas/Dialect/KasGPU/IR/KasGPUAttrs.cpp.inc"
      >();
  addKasGPUOps();
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// The largest block of CUDA.
static constexpr int64_t mostThreads = 1024;

/// More than what any device has of shared memory: 2^16 elements of f32.
static constexpr int64_t maxLine = 65536;

/// Empty for a null array.
static ArrayRef<int64_t> getEntries(DenseI64ArrayAttr array) {
  return array ? array.asArrayRef() : ArrayRef<int64_t>();
}

/// How many tiles a block has along one dimension, at most `most`; the
/// quotients that pass can be multiplied.
static FailureOr<int64_t>
getNumTiles(function_ref<InFlightDiagnostic()> emitError, int64_t points,
            int64_t outputs, int64_t most) {
  if (outputs < 1 || outputs % points != 0) // C5, C10
    return emitError() << "expected an entry of block that " << points
                       << " of tile divides, got " << outputs;
  if (outputs / points > most) // C5, C10
    return emitError() << "expected an entry of block of at most " << most
                       << " tiles of " << points << ", got " << outputs;
  return outputs / points;
}

/// One thread per tile of outputs, or `depth` of them, which then exchange
/// their sums in shared memory.
static LogicalResult verifyDirect(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t threads, DenseI64ArrayAttr block,
                                  int64_t depth, int64_t padding,
                                  int64_t stages) {
  if (!getEntries(block).empty()) // C3
    return emitError() << "expected no block for direct kernels, got " << block;
  if (depth != 0 &&
      (depth < 2 || !llvm::isPowerOf2_64(depth) || threads % depth != 0)) // C3
    return emitError() << "expected a depth of 0, or a power of two above 1 "
                          "that divides the threads, for direct kernels, got "
                       << depth;
  if (padding != 0) // C3
    return emitError() << "expected no padding for direct kernels, got "
                       << padding;
  if (stages != 1) // C3
    return emitError() << "expected 1 stage for direct kernels, got " << stages;
  return success();
}

/// A block of outputs per workgroup; `depth` reductions at a time are staged in
/// shared memory, with one or two buffers.
static LogicalResult verifyStaged(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t threads, ArrayRef<int64_t> tile,
                                  ArrayRef<int64_t> block, int64_t depth,
                                  int64_t padding, int64_t stages) {
  if (tile.size() != 2) // C4
    return emitError() << "expected 2 entries in tile of staged kernels, got "
                       << tile.size();
  if (block.size() != 2) // C4
    return emitError() << "expected 2 entries in block of staged kernels, got "
                       << block.size();
  if (depth < 1) // C4
    return emitError() << "expected a depth of at least 1, got " << depth;
  int64_t product = 1;
  for (auto [points, outputs] : llvm::zip_equal(tile, block)) {
    FailureOr<int64_t> tiles =
        getNumTiles(emitError, points, outputs, mostThreads);
    if (failed(tiles)) // C5
      return failure();
    product *= *tiles;
  }
  if (product != threads) // C5
    return emitError() << "expected " << product
                       << " threads for these tiles and blocks, got "
                       << threads;
  if (padding < 0) // C6
    return emitError() << "expected a padding of at least 0, got " << padding;
  if (stages < 1 || stages > 2) // C6
    return emitError() << "expected 1 or 2 stages, got " << stages;
  return success();
}

/// `tile` is that of a warp (32 threads), in units of 16 by 16 by 16.
static LogicalResult
verifyTensorCore(function_ref<InFlightDiagnostic()> emitError, int64_t threads,
                 ArrayRef<int64_t> tile, ArrayRef<int64_t> block, int64_t depth,
                 int64_t padding, int64_t stages, GPUPrecision precision) {
  if (precision == GPUPrecision::F32) // C9
    return emitError() << "expected a precision of tf32, f16 or bf16 for "
                          "tensor-core kernels, got f32";
  if (tile.size() != 2 || block.size() != 2) // C10
    return emitError() << "expected 2 entries in tile and in block of "
                          "tensor-core kernels, got "
                       << tile.size() << " and " << block.size();
  // Each warp computes one tile of the block.
  int64_t warps = 1;
  for (auto [points, outputs] : llvm::zip_equal(tile, block)) {
    if (points % 16 != 0) // C10
      return emitError() << "expected multiples of 16 in tile of tensor-core "
                            "kernels, got "
                         << points;
    FailureOr<int64_t> tiles =
        getNumTiles(emitError, points, outputs, mostThreads / 32);
    if (failed(tiles)) // C10
      return failure();
    warps *= *tiles;
  }
  if (threads != warps * 32) // C10
    return emitError() << "expected " << warps * 32
                       << " threads for these tiles and blocks, got "
                       << threads;
  if (depth < 16 || depth % 16 != 0) // C10
    return emitError() << "expected a depth that is a multiple of 16 for "
                          "tensor-core kernels, got "
                       << depth;
  // 16 bytes: what one asynchronous copy moves.
  int64_t unit = precision == GPUPrecision::TF32 ? 4 : 8;
  if (padding < 0 || padding % unit != 0) // C10
    return emitError() << "expected a padding that is a multiple of " << unit
                       << " elements of " << stringifyEnum(precision)
                       << ", got " << padding;
  // At least two: copies run ahead of the products.
  if (stages < 2 || stages > 8) // C11
    return emitError() << "expected 2 to 8 stages for tensor-core kernels, got "
                       << stages;
  return success();
}

/// `tile` is that of a warpgroup (128 threads); wgmma has 64 rows and at most
/// 256 columns, and 64 elements of 2 bytes are a row of the 128-byte swizzle.
static LogicalResult
verifyWarpgroup(function_ref<InFlightDiagnostic()> emitError, int64_t threads,
                ArrayRef<int64_t> tile, ArrayRef<int64_t> block, int64_t depth,
                int64_t padding, int64_t stages, GPUPrecision precision) {
  if (precision != GPUPrecision::F16 && precision != GPUPrecision::BF16) // C12
    return emitError() << "expected a precision of f16 or bf16 for warpgroup "
                          "kernels, got "
                       << stringifyEnum(precision);
  if (tile.size() != 2 || block.size() != 2) // C13
    return emitError() << "expected 2 entries in tile and in block of "
                          "warpgroup kernels, got "
                       << tile.size() << " and " << block.size();
  // Each warpgroup, four warps, computes one tile of the block.
  int64_t warpgroups = 1;
  for (auto [points, outputs] : llvm::zip_equal(tile, block)) {
    if (points % 64 != 0) // C13
      return emitError() << "expected multiples of 64 in tile of warpgroup "
                            "kernels, got "
                         << points;
    if (outputs < 1 || outputs > 256 || outputs % points != 0) // C13
      return emitError() << "expected an entry of block of at most 256 that "
                         << points << " of tile divides, got " << outputs;
    warpgroups *= outputs / points;
  }
  if (threads != warpgroups * 128) // C13
    return emitError() << "expected " << warpgroups * 128
                       << " threads for these tiles and blocks, got "
                       << threads;
  if (depth != 64) // C14
    return emitError() << "expected a depth of 64 for warpgroup kernels, got "
                       << depth;
  if (padding != 0) // C14
    return emitError() << "expected no padding for warpgroup kernels, got "
                       << padding;
  if (stages < 2 || stages > 8) // C14
    return emitError() << "expected 2 to 8 stages for warpgroup kernels, got "
                       << stages;
  return success();
}

LogicalResult GPUScheduleAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, GPUStrategy strategy,
    int64_t threads, DenseI64ArrayAttr tile, DenseI64ArrayAttr block,
    int64_t depth, int64_t padding, int64_t stages, GPUPrecision precision) {
  if (threads < 1 || threads > mostThreads) // C1
    return emitError() << "expected 1 to " << mostThreads << " threads, got "
                       << threads;
  // Outputs of a tile are kept in registers: of one thread for direct and
  // staged kernels, of 32 or 128 threads with tensor cores.
  int64_t points = 1, most = strategy == GPUStrategy::Warpgroup    ? 16384
                             : strategy == GPUStrategy::TensorCore ? 8192
                                                                   : 256;
  for (int64_t entry : getEntries(tile)) {
    if (entry < 1) // C2
      return emitError() << "expected entries of tile of at least 1, got "
                         << entry;
    // Clamped, so that the product cannot overflow.
    points *= std::min<int64_t>(entry, most + 1);
    if (points > most) // C2
      return emitError() << "expected a tile of at most " << most
                         << " points, got " << tile;
  }
  for (auto [name, length] : {std::pair(StringRef("depth"), depth),
                              std::pair(StringRef("padding"), padding)})
    if (length > maxLine) // C15
      return emitError() << "expected a " << name << " of at most " << maxLine
                         << ", got " << length;
  if (strategy == GPUStrategy::TensorCore)
    return verifyTensorCore(emitError, threads, getEntries(tile),
                            getEntries(block), depth, padding, stages,
                            precision);
  if (strategy == GPUStrategy::Warpgroup)
    return verifyWarpgroup(emitError, threads, getEntries(tile),
                           getEntries(block), depth, padding, stages,
                           precision);
  if (precision != GPUPrecision::F32) // C9
    return emitError() << "expected a precision of f32 for "
                       << stringifyEnum(strategy) << " kernels, got "
                       << stringifyEnum(precision);
  if (strategy == GPUStrategy::Direct)
    return verifyDirect(emitError, threads, block, depth, padding, stages);
  return verifyStaged(emitError, threads, getEntries(tile), getEntries(block),
                      depth, padding, stages);
}

/// Bytes per block, all stages: what a planner compares with the device.
int64_t GPUScheduleAttr::getSharedBytes() const {
  // A partial sum of each thread for each point of its tile.
  if (getStrategy() == GPUStrategy::Direct) {
    int64_t bytes = getDepth() == 0 ? 0 : getThreads() * 4;
    for (int64_t points : getEntries(getTile()))
      bytes *= points;
    return bytes;
  }
  // Barriers come first, and the buffers begin at a multiple of 1024.
  if (getStrategy() == GPUStrategy::Warpgroup)
    return (getBlock()[0] + getBlock()[1]) * getDepth() * getStages() * 2 +
           1024;
  int64_t elements = 0;
  bool isStaged = getStrategy() == GPUStrategy::Staged;
  // TF32 is kept in 4 bytes, as f32.
  bool isTF32 = getPrecision() == GPUPrecision::TF32;
  // One buffer for each operand: rows of the block by depth, and columns by
  // depth.
  for (int64_t lines : getBlock().asArrayRef()) {
    int64_t padding = getDepth() * getPadding();
    // Which way the lines go depends on the tensors.
    if (!isStaged)
      padding = std::max(padding * (isTF32 ? 2 : 1), lines * getPadding());
    elements += lines * getDepth() + padding;
  }
  return elements * getStages() * (isStaged || isTF32 ? 4 : 2);
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

LogicalResult
GPUDeviceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringRef name, int64_t processors, int64_t maxThreads,
                      int64_t sharedBytes, int64_t maxBlocks, int64_t maxBytes,
                      int64_t processorThreads, int64_t processorSharedBytes,
                      int64_t registers, int64_t threadRegisters,
                      int64_t subgroup) {
  std::pair<StringRef, int64_t> numbers[] = {
      {"processors", processors},
      {"max_threads", maxThreads},
      {"shared_bytes", sharedBytes},
      {"max_blocks", maxBlocks},
      {"max_bytes", maxBytes},
      {"processor_threads", processorThreads},
      {"processor_shared_bytes", processorSharedBytes},
      {"registers", registers},
      {"thread_registers", threadRegisters},
      {"subgroup", subgroup}};
  for (auto [number, value] : numbers)
    if (value < 1) // D1
      return emitError() << "expected " << number << " of at least 1, got "
                         << value;
  // Schedules have no more (C1).
  if (maxThreads > mostThreads) // D1
    return emitError() << "expected max_threads of at most " << mostThreads
                       << ", got " << maxThreads;
  return success();
}

//===----------------------------------------------------------------------===//
// Products of matrices
//===----------------------------------------------------------------------===//

LogicalResult
GPUMatmulAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      DenseI64ArrayAttr sizes, DenseI64ArrayAttr left,
                      DenseI64ArrayAttr right, DenseI64ArrayAttr result,
                      int64_t bias, int64_t residual, bool, GPUPrecision) {
  ArrayRef<int64_t> extents = getEntries(sizes);
  if (extents.size() != 4 || llvm::any_of(extents, [](int64_t size) {
        return size < 1 || size > INT32_MAX;
      })) // M1
    return emitError() << "expected 4 sizes from 1 to " << INT32_MAX
                       << ", got [" << extents << "]";
  for (auto [name, matrix] : {std::pair(StringRef("left"), left),
                              std::pair(StringRef("right"), right),
                              std::pair(StringRef("result"), result)}) {
    ArrayRef<int64_t> entries = getEntries(matrix);
    if (entries.size() != 4 ||
        llvm::any_of(entries, [](int64_t entry) { return entry < 0; })) // M2
      return emitError() << "expected 4 entries of at least 0 in " << name
                         << ", got [" << entries << "]";
    if (entries[3] != 1 && (name == "result" || entries[2] != 1)) // M3
      return emitError() << "expected neighbours along "
                         << (name == "result" ? "the columns" : "a dimension")
                         << " of " << name << ", got [" << entries << "]";
  }
  for (auto [name, argument] : {std::pair(StringRef("bias"), bias),
                                std::pair(StringRef("residual"), residual)})
    if (argument < -1) // M4
      return emitError() << "expected a " << name << " of at least -1, got "
                         << argument;
  return success();
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// How many windows of `points` fit along an image of `size`; none: 0.
static int64_t countWindows(int64_t size, int64_t points, int64_t stride,
                            int64_t dilation, int64_t pad) {
  int64_t room = size + 2 * pad - dilation * (points - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

SmallVector<int64_t> GPUConvolutionAttr::getResultSizes() const {
  SmallVector<int64_t> sizes{getImageSizes()[0], getFilterSizes()[0]};
  for (unsigned i : {0, 1})
    sizes.push_back(countWindows(getImageSizes()[2 + i],
                                 getFilterSizes()[2 + i], getStrides()[i],
                                 getDilations()[i], getPads()[i]));
  return sizes;
}

/// So many entries that libraries take: numbers of 32 bits.
static LogicalResult verifyNumbers(function_ref<InFlightDiagnostic()> emitError,
                                   StringRef name, DenseI64ArrayAttr array,
                                   size_t count, int64_t least) {
  ArrayRef<int64_t> entries = getEntries(array);
  if (entries.size() == count && llvm::all_of(entries, [&](int64_t entry) {
        return entry >= least && entry <= INT32_MAX;
      }))
    return success();
  return emitError() << "expected " << count << " " << name << " from " << least
                     << " to " << INT32_MAX << ", got [" << entries << "]";
}

LogicalResult GPUConvolutionAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, int64_t image, int64_t filter,
    int64_t result, DenseI64ArrayAttr imageSizes, DenseI64ArrayAttr filterSizes,
    DenseI64ArrayAttr strides, DenseI64ArrayAttr dilations,
    DenseI64ArrayAttr pads, bool, int64_t bias, int64_t residual, bool,
    GPUPrecision) {
  if (failed(verifyNumbers(emitError, "image_sizes", imageSizes, 4, 1)) ||
      failed(verifyNumbers(emitError, "filter_sizes", filterSizes, 4, 1)) ||
      failed(verifyNumbers(emitError, "strides", strides, 2, 1)) ||
      failed(verifyNumbers(emitError, "dilations", dilations, 2, 1)) ||
      failed(verifyNumbers(emitError, "pads", pads, 2, 0))) // V1, V2
    return failure();
  int64_t groups = imageSizes[1] / filterSizes[1];
  if (groups * filterSizes[1] != imageSizes[1]) // V3
    return emitError() << "expected channels of a filter that divide "
                       << imageSizes[1] << " of the image, got "
                       << filterSizes[1];
  if (filterSizes[0] % groups != 0) // V3
    return emitError() << "expected channels of the result that " << groups
                       << " groups divide, got " << filterSizes[0];
  for (unsigned i : {0, 1})
    if (countWindows(imageSizes[2 + i], filterSizes[2 + i], strides[i],
                     dilations[i], pads[i]) == 0) // V4
      return emitError() << "expected a window within the image and its pads, "
                            "got "
                         << filterSizes[2 + i] << " points " << dilations[i]
                         << " apart for " << imageSizes[2 + i]
                         << " and pads of " << pads[i];
  for (auto [name, argument, least] :
       {std::tuple(StringRef("image"), image, 0),
        std::tuple(StringRef("filter"), filter, 0),
        std::tuple(StringRef("result"), result, 0),
        std::tuple(StringRef("bias"), bias, -1),
        std::tuple(StringRef("residual"), residual, -1)})
    if (argument < least) // V5
      return emitError() << "expected a position of " << name << " of at least "
                         << least << ", got " << argument;
  return success();
}

//===----------------------------------------------------------------------===//
// Attributes of operations
//===----------------------------------------------------------------------===//

/// A number of bytes, or of tensor maps.
static bool isCount(Attribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  return number && number.getType().isInteger(64) && number.getInt() >= 0;
}

/// The manifest is read by the runtime, which has no MLIR: JSON.
static bool isObject(Attribute attribute) {
  auto text = dyn_cast<StringAttr>(attribute);
  if (!text)
    return false;
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text.getValue());
  if (value)
    return value->getAsObject() != nullptr;
  llvm::consumeError(value.takeError());
  return false;
}

/// The attributes that passes write.
static LogicalResult verifyWritten(Operation *op, NamedAttribute attribute) {
  Attribute value = attribute.getValue();
  StringRef name = attribute.getName();
  if (name == KasGPUDialect::scratchName) {
    if (!isa<UnitAttr>(value)) // A5
      return emitAttributeValueError(op, "a unit", attribute);
    if (!isa<memref::AllocOp>(op)) // A5
      return emitAttributePositionError(op, "a memref.alloc", attribute);
    return success();
  }
  if (name == KasGPUDialect::manifestName) {
    if (!isObject(value)) // A6
      return emitAttributeValueError(op, "the text of a JSON object",
                                     attribute);
    if (!isa<ModuleOp>(op)) // A6
      return emitAttributePositionError(op, "a module", attribute);
    return success();
  }
  if (!isCount(value)) // A3, A4, A8
    return emitAttributeValueError(op, "a number of type i64 of at least 0",
                                   attribute);
  if (!isa<FunctionOpInterface>(op)) // A3, A4, A8
    return emitAttributePositionError(op, "a function", attribute);
  return success();
}

bool KasGPUDialect::isRounded(Operation *op, int64_t position) {
  auto positions = op->getAttrOfType<DenseI64ArrayAttr>(roundedName);
  return positions && llvm::is_contained(positions.asArrayRef(), position);
}

/// For each attribute `kas_gpu.*` of any operation; unknown ones are errors.
LogicalResult
KasGPUDialect::verifyOperationAttribute(Operation *op,
                                        NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == scheduleName) {
    if (!isa<GPUScheduleAttr>(attribute.getValue())) // C7
      return emitAttributeValueError(op, "a #kas_gpu.schedule", attribute);
    if (!isa<ApplyOp, linalg::GenericOp>(op)) // C8
      return emitAttributePositionError(op, "a kas.apply or a linalg.generic",
                                        attribute);
    return success();
  }
  if (name == deviceName) {
    if (!isa<GPUDeviceAttr>(attribute.getValue())) // D2
      return emitAttributeValueError(op, "a #kas_gpu.device", attribute);
    if (!isa<ModuleOp>(op)) // D3
      return emitAttributePositionError(op, "a module", attribute);
    return success();
  }
  if (name == libraryName) {
    if (!isa<GPUMatmulAttr, GPUConvolutionAttr>(attribute.getValue())) // A9
      return emitAttributeValueError(
          op, "a #kas_gpu.matmul or a #kas_gpu.convolution", attribute);
    if (!isa<ApplyOp, linalg::GenericOp, FunctionOpInterface>(op)) // A9
      return emitAttributePositionError(
          op, "a kas.apply, a linalg.generic or a function", attribute);
    return success();
  }
  if (name == assertionsName) {
    auto texts = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!texts || !llvm::all_of(texts, llvm::IsaPred<StringAttr>)) // A7
      return emitAttributeValueError(op, "an array of strings", attribute);
    if (!isa<FunctionOpInterface>(op)) // A7
      return emitAttributePositionError(op, "a function", attribute);
    return success();
  }
  if (name == roundedName) {
    auto positions = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (!positions ||
        !llvm::all_of(positions.asArrayRef(), [&](int64_t position) {
          return position >= 0 && position < op->getNumOperands() &&
                 getElementTypeOrSelf(op->getOperand(position)).isF32();
        })) // A10
      return emitAttributeValueError(
          op, "an array of i64 with positions of operands of f32", attribute);
    return success();
  }
  if (name == prologueName) {
    if (!isa<UnitAttr>(attribute.getValue())) // A11
      return emitAttributeValueError(op, "a unit", attribute);
    if (!isa<linalg::GenericOp>(op) || op->hasAttr(scheduleName)) // A11
      return emitAttributePositionError(
          op, "a linalg.generic without kas_gpu.schedule", attribute);
    return success();
  }
  if (name == scratchName || name == manifestName || name == dynamicBytesName ||
      name == numTensorMapsName || name == numPrepackLaunchesName)
    return verifyWritten(op, attribute);
  if (name == accessName) // A1
    return emitAttributePositionError(op, "an argument of a kernel", attribute);
  return op->emitError() // A1
         << "expected no attribute of this dialect but " << scheduleName << ", "
         << deviceName << ", " << dynamicBytesName << ", " << numTensorMapsName
         << ", " << numPrepackLaunchesName << ", " << roundedName << ", "
         << prologueName << ", " << scratchName << ", " << manifestName << ", "
         << assertionsName << " and " << libraryName << ", got " << name;
}

/// Arguments of kernels say whether they are read or written.
LogicalResult KasGPUDialect::verifyRegionArgAttribute(
    Operation *op, unsigned, unsigned argument, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name != accessName) // A1
    return op->emitError() << "expected no attribute of dialect kas_gpu but "
                           << accessName << " on argument " << argument
                           << ", got " << name;
  auto access = dyn_cast<StringAttr>(attribute.getValue());
  if (!access || (access != "read" && access != "write")) // A2
    return op->emitError() << "expected \"read\" or \"write\" as " << name
                           << " of argument " << argument << ", got "
                           << attribute.getValue();
  return success();
}

LogicalResult KasGPUDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  return emitNoAttributeError(op, "result", result, attribute); // A1
}
