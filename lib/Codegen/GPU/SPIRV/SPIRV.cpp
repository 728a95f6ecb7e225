//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From kernels to SPIR-V for Vulkan.
// The conversion is upstream's; the steps before it bring kernels into the form
// that Vulkan's rules for shaders allow (docs/internals/gpu.md, "Pitfalls of
// the toolchain", S1 to S11). Source of those rules: Vulkan specification,
// appendix "Vulkan Environment for SPIR-V".
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/SPIRV.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Support/FileLocation.h"
#include "mlir/Conversion/ArithToSPIRV/ArithToSPIRV.h"
#include "mlir/Conversion/FuncToSPIRV/FuncToSPIRV.h"
#include "mlir/Conversion/GPUToSPIRV/GPUToSPIRV.h"
#include "mlir/Conversion/MathToSPIRV/MathToSPIRV.h"
#include "mlir/Conversion/MemRefToSPIRV/MemRefToSPIRV.h"
#include "mlir/Conversion/SCFToSPIRV/SCFToSPIRV.h"
#include "mlir/Conversion/UBToSPIRV/UBToSPIRV.h"
#include "mlir/Conversion/VectorToSPIRV/VectorToSPIRV.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "mlir/Dialect/SPIRV/Transforms/Passes.h"
#include "mlir/Dialect/SPIRV/Transforms/SPIRVConversion.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUTOSPIRVPASS
#define GEN_PASS_DEF_KASGPUSERIALIZESPIRVPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

SmallVector<spirv::Capability> codegen::getCapabilities(SPIRVProfile profile) {
  if (profile == SPIRVProfile::F32)
    return {spirv::Capability::Shader};
  return {spirv::Capability::Shader, spirv::Capability::Float16,
          spirv::Capability::StorageBuffer16BitAccess};
}

static spirv::TargetEnvAttr
getTargetEnvironment(MLIRContext *context,
                     ArrayRef<spirv::Capability> capabilities) {
  // Those of 64 bits are needed by modules that use them only.
  SmallVector<spirv::Capability> allowed(capabilities);
  allowed.append({spirv::Capability::Float64, spirv::Capability::Int64});
  auto triple = spirv::VerCapExtAttr::get(
      // The version of Vulkan 1.1. A module gets the lowest one that it needs
      // (`spirv-update-vce`).
      spirv::Version::V_1_3, allowed,
      {spirv::Extension::SPV_KHR_storage_buffer_storage_class,
       spirv::Extension::SPV_KHR_16bit_storage},
      context);
  return spirv::TargetEnvAttr::get(
      triple, spirv::getDefaultResourceLimits(context),
      spirv::ClientAPI::Vulkan, spirv::Vendor::Unknown,
      spirv::DeviceType::Unknown, spirv::TargetEnvAttr::kUnknownDeviceID);
}

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

/// Buffers get the storage class that they have in SPIR-V.
static void setStorageClasses(gpu::GPUModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [](MemRefType type) -> std::optional<std::pair<Type, WalkResult>> {
        auto space =
            dyn_cast_or_null<gpu::AddressSpaceAttr>(type.getMemorySpace());
        // A storage class already.
        if (type.getMemorySpace() && !space)
          return std::nullopt;
        auto storage = space && space.getValue() == gpu::AddressSpace::Workgroup
                           ? spirv::StorageClass::Workgroup
                           : spirv::StorageClass::StorageBuffer;
        return std::pair<Type, WalkResult>(
            MemRefType::Builder(type).setMemorySpace(
                spirv::StorageClassAttr::get(type.getContext(), storage)),
            WalkResult::skip());
      });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

/// Workgroup memory is allocated inside of the kernel: patterns upstream know
/// no attributions.
static void moveAttributions(gpu::GPUFuncOp kernel) {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  Block &entry = kernel.getBody().front();
  // Attributions are block arguments after those of the function.
  unsigned first = kernel.getFunctionType().getNumInputs();
  // Backwards, as an argument that is erased moves those after it.
  for (unsigned i = kernel.getNumWorkgroupAttributions(); i-- > 0;) {
    BlockArgument attribution = entry.getArgument(first + i);
    Value memory = memref::AllocOp::create(
        builder, kernel.getLoc(), cast<MemRefType>(attribution.getType()));
    attribution.replaceAllUsesWith(memory);
    entry.eraseArgument(first + i);
  }
  kernel->setAttr(kernel.getNumWorkgroupAttributionsAttrName(),
                  builder.getI64IntegerAttr(0));
  kernel->removeAttr("workgroup_attrib_attrs");
}

/// Workgroup memory of all kernels is counted together by validation, as
/// variables of one module: they get the same, as large as the largest needs.
static void enlargeAttributions(gpu::GPUModuleOp module) {
  // By position and element type.
  llvm::MapVector<std::pair<unsigned, Type>, int64_t> sizes;
  auto forEach = [&](function_ref<void(BlockArgument, int64_t &)> visit) {
    for (auto kernel : module.getOps<gpu::GPUFuncOp>())
      for (auto [i, memory] :
           llvm::enumerate(kernel.getWorkgroupAttributions())) {
        auto type = cast<MemRefType>(memory.getType());
        // Kernels of kas have flat memory; other kernels keep their variables
        // apart.
        if (type.getRank() == 1 && type.hasStaticShape())
          visit(memory, sizes[{i, type.getElementType()}]);
      }
  };
  forEach([](BlockArgument memory, int64_t &size) {
    size = std::max(size, cast<MemRefType>(memory.getType()).getNumElements());
  });
  forEach([](BlockArgument memory, int64_t &size) {
    memory.setType(
        MemRefType::Builder(cast<MemRefType>(memory.getType())).setShape(size));
  });
}

/// Kernels with workgroup memory of one type share it.
static void shareVariables(spirv::ModuleOp module) {
  llvm::MapVector<std::pair<unsigned, Type>, spirv::GlobalVariableOp> shared;
  for (auto function : module.getOps<spirv::FuncOp>()) {
    // By type: the variables that the kernel has.
    llvm::MapVector<Type, llvm::SetVector<Operation *>> own;
    function.walk([&](spirv::AddressOfOp address) {
      auto variable =
          SymbolTable::lookupNearestSymbolFrom<spirv::GlobalVariableOp>(
              address, address.getVariableAttr());
      auto type = dyn_cast<spirv::PointerType>(address.getType());
      if (!type || type.getStorageClass() != spirv::StorageClass::Workgroup)
        return;
      llvm::SetVector<Operation *> &variables = own[type];
      variables.insert(variable);
      unsigned number = llvm::find(variables, variable) - variables.begin();
      spirv::GlobalVariableOp &first =
          shared.insert({{number, type}, variable}).first->second;
      address.setVariableAttr(FlatSymbolRefAttr::get(first.getSymNameAttr()));
    });
  }
  SymbolTable symbols(module);
  for (auto variable :
       llvm::make_early_inc_range(module.getOps<spirv::GlobalVariableOp>())) {
    auto type = cast<spirv::PointerType>(variable.getType());
    if (type.getStorageClass() == spirv::StorageClass::Workgroup &&
        SymbolTable::symbolKnownUseEmpty(variable, module))
      symbols.erase(variable);
  }
}

/// The block size becomes the execution mode LocalSize. Attributes of arguments
/// that the conversion does not know are removed.
static LogicalResult setEntryPoint(gpu::GPUFuncOp kernel) {
  if (!kernel.getKnownBlockSizeAttr())
    return kernel.emitError()
           << "expected a kernel with known_block_size, got none";
  ArrayRef<int32_t> block = kernel.getKnownBlockSizeAttr();
  kernel->setAttr(spirv::getEntryPointABIAttrName(),
                  spirv::getEntryPointABIAttr(kernel.getContext(), block));
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    kernel.removeArgAttr(i, KasGPUDialect::accessName);
  return success();
}

static Value addIndex(OpBuilder &builder, Location loc, Value index,
                      int64_t offset) {
  if (offset == 0)
    return index;
  return arith::AddIOp::create(
      builder, loc, index,
      arith::ConstantIndexOp::create(builder, loc, offset));
}

namespace {
/// What one access of a buffer reads or writes.
struct VectorAccess {
  Operation *op;
  VectorType type;
  uint64_t alignment;
};
} // namespace

/// The accesses of `buffer`; nothing where some are of one element, or of more
/// dimensions.
static std::optional<SmallVector<VectorAccess>>
getVectorAccesses(Value buffer) {
  SmallVector<VectorAccess> accesses;
  for (Operation *user : buffer.getUsers()) {
    if (auto load = dyn_cast<vector::LoadOp>(user))
      accesses.push_back(
          {user, load.getVectorType(), load.getAlignment().value_or(0)});
    else if (auto store = dyn_cast<vector::StoreOp>(user))
      accesses.push_back(
          {user, store.getVectorType(), store.getAlignment().value_or(0)});
    else
      return std::nullopt;
    if (accesses.back().type.getRank() != 1)
      return std::nullopt;
  }
  return accesses;
}

/// The lanes, 4, 2 or 1, that all accesses of `buffer` are multiples of, in
/// number and in address.
static int64_t getCommonWidth(MemRefType buffer,
                              ArrayRef<VectorAccess> accesses) {
  unsigned bytes = buffer.getElementTypeBitWidth() / 8;
  for (unsigned width : {4, 2})
    if (bytes != 0 && llvm::all_of(accesses, [&](const VectorAccess &access) {
          return access.type.getNumElements() % width == 0 &&
                 access.alignment % (width * bytes) == 0 &&
                 access.alignment != 0;
        }))
      return width;
  return 1;
}

/// Replaces an access of `buffer`, whose elements have become vectors of
/// `width` lanes.
static void replaceAccess(const VectorAccess &access, Value buffer,
                          int64_t width) {
  OpBuilder builder(access.op);
  Location loc = access.op->getLoc();
  auto type = VectorType::get({width}, access.type.getElementType());
  int64_t lanes = access.type.getNumElements();
  auto getPlace = [&](Value index, int64_t part) {
    Value place = arith::DivUIOp::create(
        builder, loc, index,
        arith::ConstantIndexOp::create(builder, loc, width));
    return addIndex(builder, loc, place, part);
  };
  if (auto load = dyn_cast<vector::LoadOp>(access.op)) {
    SmallVector<Value> elements;
    Value loaded;
    for (int64_t part = 0; part < lanes / width; ++part) {
      loaded = memref::LoadOp::create(
          builder, loc, buffer, getPlace(load.getIndices().front(), part));
      for (int64_t i = 0; i < width && lanes != width; ++i)
        elements.push_back(vector::ExtractOp::create(builder, loc, loaded,
                                                     ArrayRef<int64_t>{i}));
    }
    if (lanes != width)
      loaded =
          vector::FromElementsOp::create(builder, loc, access.type, elements);
    load.replaceAllUsesWith(loaded);
  } else {
    auto store = cast<vector::StoreOp>(access.op);
    for (int64_t part = 0; part < lanes / width; ++part) {
      Value stored = store.getValueToStore();
      if (lanes != width) {
        SmallVector<Value> elements;
        for (int64_t i = 0; i < width; ++i)
          elements.push_back(vector::ExtractOp::create(
              builder, loc, stored, ArrayRef<int64_t>{part * width + i}));
        stored = vector::FromElementsOp::create(builder, loc, type, elements);
      }
      memref::StoreOp::create(builder, loc, stored, buffer,
                              getPlace(store.getIndices().front(), part));
    }
  }
  access.op->erase();
}

/// Buffers that are read and written as vectors alone become buffers of
/// vectors, so that each is one access of up to 16 bytes. A shader has one type
/// for each buffer.
static void widenBuffers(gpu::GPUFuncOp kernel) {
  for (BlockArgument buffer : kernel.getArguments()) {
    auto type = cast<MemRefType>(buffer.getType());
    std::optional<SmallVector<VectorAccess>> accesses =
        getVectorAccesses(buffer);
    // A layout says how many elements are between two, and not vectors.
    if (!accesses || accesses->empty() || type.getRank() != 1 ||
        !type.getLayout().isIdentity() || !type.getElementType().isIntOrFloat())
      continue;
    int64_t width = getCommonWidth(type, *accesses);
    if (width == 1)
      continue;
    int64_t size = type.getDimSize(0);
    // What is beyond the last vector nobody reads.
    buffer.setType(
        MemRefType::get({ShapedType::isDynamic(size) ? size : size / width},
                        VectorType::get({width}, type.getElementType()),
                        MemRefLayoutAttrInterface(), type.getMemorySpace()));
    for (const VectorAccess &access : *accesses)
      replaceAccess(access, buffer, width);
  }
  SmallVector<Type> types(ValueRange(kernel.getArguments()).getTypes());
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
}

/// Other vectors are loaded and stored element by element: a pointer to an
/// element cannot become one to a vector.
static void splitVectors(gpu::GPUFuncOp kernel) {
  SmallVector<Operation *> accesses;
  kernel.walk([&](Operation *op) {
    if (isa<vector::LoadOp, vector::StoreOp>(op))
      accesses.push_back(op);
  });
  for (Operation *op : accesses) {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    auto getIndices = [&](ValueRange indices, int64_t offset) {
      SmallVector<Value> shifted(indices);
      shifted.back() = addIndex(builder, loc, shifted.back(), offset);
      return shifted;
    };
    if (auto load = dyn_cast<vector::LoadOp>(op)) {
      SmallVector<Value> elements;
      for (int64_t i = 0; i < load.getVectorType().getNumElements(); ++i)
        elements.push_back(memref::LoadOp::create(
            builder, loc, load.getBase(), getIndices(load.getIndices(), i)));
      Value vector = vector::FromElementsOp::create(
          builder, loc, load.getVectorType(), elements);
      load.replaceAllUsesWith(vector);
    } else {
      auto store = cast<vector::StoreOp>(op);
      for (int64_t i = 0; i < store.getVectorType().getNumElements(); ++i) {
        Value element = vector::ExtractOp::create(
            builder, loc, store.getValueToStore(), ArrayRef<int64_t>{i});
        memref::StoreOp::create(builder, loc, element, store.getBase(),
                                getIndices(store.getIndices(), i));
      }
    }
    op->erase();
  }
}

/// Tells drivers, and the runtime, which buffers kernels only read.
static void markReadBuffers(gpu::GPUModuleOp kernels, spirv::ModuleOp module) {
  for (auto kernel : kernels.getOps<gpu::GPUFuncOp>())
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      auto access =
          kernel.getArgAttrOfType<StringAttr>(i, KasGPUDialect::accessName);
      if (!access || access.getValue() != "read")
        continue;
      // As `spirv-lower-abi-attrs` names the variables of an entry point.
      auto *variable = SymbolTable::lookupSymbolIn(
          module, (kernel.getName() + "_arg_" + Twine(i)).str());
      if (variable)
        variable->setAttr("non_writable", UnitAttr::get(module.getContext()));
    }
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

static LogicalResult convert(gpu::GPUModuleOp module,
                             spirv::TargetEnvAttr environment) {
  MLIRContext *context = module.getContext();
  std::unique_ptr<ConversionTarget> target =
      SPIRVConversionTarget::get(environment);
  SPIRVConversionOptions options;
  // The capability Int64 is not everywhere; buffers are checked to have less
  // than 2^31 elements.
  options.use64bitIndex = false;
  // Emulation changes the layout of buffers without a word.
  options.emulateLT32BitScalarTypes = false;
  options.emulateUnsupportedFloatTypes = false;
  SPIRVTypeConverter converter(environment, options);
  RewritePatternSet patterns(context);
  ScfToSPIRVContext loops;
  populateGPUToSPIRVPatterns(converter, patterns);
  arith::populateArithToSPIRVPatterns(converter, patterns);
  populateMathToSPIRVPatterns(converter, patterns);
  populateMemRefToSPIRVPatterns(converter, patterns);
  populateSCFToSPIRVPatterns(converter, loops, patterns);
  populateVectorToSPIRVPatterns(converter, patterns);
  populateFuncToSPIRVPatterns(converter, patterns);
  populateBuiltinFuncToSPIRVPatterns(converter, patterns);
  ub::populateUBToSPIRVConversionPatterns(converter, patterns);
  return applyFullConversion(module, *target, std::move(patterns));
}

/// SPIR-V has no such type before 1.6 and an extension.
static bool hasBF16(ModuleOp module) {
  return module
      .walk([](gpu::GPUFuncOp kernel) {
        return llvm::any_of(kernel.getArgumentTypes(),
                            [](Type type) {
                              return getElementTypeOrSelf(type).isBF16();
                            })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {
struct GPUToSPIRV : kas::codegen::impl::KasGPUToSPIRVPassBase<GPUToSPIRV> {
  using KasGPUToSPIRVPassBase::KasGPUToSPIRVPassBase;

  void runOnOperation() override {
    if (hasBF16(getOperation())) {
      mlir::emitError(getFileLocation(getOperation()))
          << "expected elements of f32 and f16 for Vulkan, got 'bf16'";
      return signalPassFailure();
    }
    spirv::TargetEnvAttr environment =
        getTargetEnvironment(&getContext(), getCapabilities(profile));
    for (auto kernels : llvm::make_early_inc_range(
             getOperation().getOps<gpu::GPUModuleOp>())) {
      OpBuilder builder(kernels);
      builder.setInsertionPointAfter(kernels);
      // The kernels themselves stay in `gpu` types, which launches refer to; a
      // clone is converted and lands after them.
      auto copy = cast<gpu::GPUModuleOp>(builder.clone(*kernels));
      copy->setAttr(spirv::getTargetEnvAttrName(), environment);
      setStorageClasses(copy);
      enlargeAttributions(copy);
      for (auto kernel : copy.getOps<gpu::GPUFuncOp>()) {
        moveAttributions(kernel);
        if (failed(setEntryPoint(kernel)))
          return signalPassFailure();
        widenBuffers(kernel);
        splitVectors(kernel);
      }
      if (failed(convert(copy, environment)))
        return signalPassFailure();
      if (auto module =
              dyn_cast_or_null<spirv::ModuleOp>(kernels->getNextNode()))
        shareVariables(module);
    }
  }
};

struct GPUSerializeSPIRV
    : kas::codegen::impl::KasGPUSerializeSPIRVPassBase<GPUSerializeSPIRV> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto kernels :
         llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
      auto spirvModule =
          dyn_cast_or_null<spirv::ModuleOp>(kernels->getNextNode());
      if (!spirvModule) {
        kernels.emitError() << "expected a spirv.module after the module of "
                               "kernels (see -kas-gpu-to-spirv), got none";
        return signalPassFailure();
      }
      markReadBuffers(kernels, spirvModule);
      SmallVector<uint32_t> words;
      if (failed(spirv::serialize(spirvModule, words)))
        return signalPassFailure();
      StringRef bytes(reinterpret_cast<const char *>(words.data()),
                      words.size() * sizeof(uint32_t));
      OpBuilder builder(kernels);
      Attribute object = gpu::ObjectAttr::get(
          getTargetEnvironment(&getContext(), {spirv::Capability::Shader}),
          gpu::CompilationTarget::Binary, builder.getStringAttr(bytes));
      auto binary =
          gpu::BinaryOp::create(builder, kernels.getLoc(), kernels.getName(),
                                nullptr, ArrayRef<Attribute>(object));
      (void)binary;
      spirvModule->erase();
      kernels.erase();
    }
  }
};
} // namespace
