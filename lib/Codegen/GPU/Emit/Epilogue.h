//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The end of a kernel: what becomes of its results before they are stored.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_EMIT_EPILOGUE_H
#define LIB_CODEGEN_GPU_EMIT_EPILOGUE_H

#include "../Strategy/Epilogue.h"
#include "IndexEmitter.h"

namespace kas::codegen {

/// What `access` reads of `buffer`, where its dimensions are `coordinates`; of
/// `type` where it reads nothing.
mlir::Value emitAccess(mlir::ImplicitLocOpBuilder &b, IndexEmitter &index,
                       const TensorAccess &access, mlir::Value buffer,
                       llvm::ArrayRef<mlir::AffineExpr> coordinates,
                       mlir::Type type);

/// What is stored of `value`, the result of a kernel of `shape` at
/// `coordinates`, or a vector of it and those after it in memory, which begins
/// at a multiple of its width. `inputs` are the buffers of what else is read.
mlir::Value emitEpilogue(mlir::ImplicitLocOpBuilder &b, IndexEmitter &index,
                         const Epilogue &epilogue,
                         llvm::ArrayRef<int64_t> shape, mlir::ValueRange inputs,
                         mlir::Value value,
                         llvm::ArrayRef<mlir::AffineExpr> coordinates);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_EMIT_EPILOGUE_H
