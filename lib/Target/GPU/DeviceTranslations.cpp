//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The translations of device programs: binary and manifest.
// Both read what the GPU pipelines have left in the module: the binary as a
// `gpu.binary`, the manifest as an attribute (docs/internals/gpu.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Target/GPU/DeviceTranslations.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "kas/Support/FileLocation.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::target;
using namespace mlir;

/// One object, since the pipelines compile for one target.
static LogicalResult writeBinary(ModuleOp module, llvm::raw_ostream &stream) {
  auto binary = module.lookupSymbol<gpu::BinaryOp>(kernelModuleName);
  if (!binary || binary.getObjects().size() != 1)
    return emitError(getFileLocation(module))
           << "expected a gpu.binary '@" << kernelModuleName
           << "' with one object (see -kas-nvvm-pipeline and "
              "-kas-spirv-pipeline), got "
           << (binary ? std::to_string(binary.getObjects().size())
                      : std::string("none"));
  stream
      << cast<gpu::ObjectAttr>(binary.getObjects()[0]).getObject().getValue();
  return success();
}

static LogicalResult writeManifest(ModuleOp module, llvm::raw_ostream &stream) {
  auto manifest =
      module->getAttrOfType<StringAttr>(KasGPUDialect::manifestName);
  if (!manifest)
    return emitError(getFileLocation(module))
           << "expected a module with " << KasGPUDialect::manifestName
           << " (see -kas-gpu-write-manifest), got none";
  stream << manifest.getValue() << "\n";
  return success();
}

void kas::target::registerGPUTranslations() {
  TranslateFromMLIRRegistration binary(
      "kas-gpu-to-binary", "write the PTX, machine code or SPIR-V of kernels",
      writeBinary, registerGPUPipelineDialects);
  TranslateFromMLIRRegistration manifest(
      "kas-gpu-to-manifest", "write how kernels are launched, as JSON",
      writeManifest, registerGPUPipelineDialects);
}
