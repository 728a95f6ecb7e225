//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits what the strategies chose, as loops at the insertion point of a
// builder.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_EMIT_EMITCONTRACTION_H
#define LIB_CODEGEN_CPU_EMIT_EMITCONTRACTION_H

#include "../Strategy/ContractionEpilogue.h"
#include "../Strategy/ContractionTarget.h"
#include "../Strategy/InnerProductPlan.h"
#include "../Strategy/Rearrangement.h"
#include "../Strategy/StridedContraction.h"

namespace kas::codegen {

/// Emits `contraction` as loops over register tiles, by the strategy that takes
/// the least time according to the plans, or nothing, and fails, if none suits.
/// A remark says how it was cut; `tookEpilogue` gets whether the epilogue of
/// the options was computed with it.
mlir::LogicalResult
emitContraction(mlir::OpBuilder &builder, mlir::Location loc,
                const StridedContraction &contraction,
                const ContractionOptions &options,
                llvm::function_ref<void(const llvm::Twine &)> emitReason,
                bool *tookEpilogue = nullptr);

/// Emits `contraction` as `plan` cuts it.
void emitPanels(mlir::OpBuilder &builder, mlir::Location loc,
                const StridedContraction &contraction, const PanelPlan &plan,
                const ContractionTarget &target,
                const ContractionOptions &options);
void emitDirect(mlir::OpBuilder &builder, mlir::Location loc,
                const StridedContraction &contraction, const DirectPlan &plan,
                const ContractionTarget &target,
                const ContractionOptions &options);
/// A loop that packs the weights, and those that multiply.
void emitRowVectors(mlir::OpBuilder &builder, mlir::Location loc,
                    const StridedContraction &contraction,
                    const RowVectorPlan &plan, const ContractionTarget &target,
                    const ContractionOptions &options);

/// Emits the buffer with the combined inputs, which `combined` gets, and the
/// loops that fill it.
void emitCombinedInputs(mlir::OpBuilder &builder, mlir::Location loc,
                        CombinedInputs &combined);

/// Emits the loops that write to `output`.
void emitInnerProducts(mlir::OpBuilder &builder, mlir::Location loc,
                       const InnerProductPlan &plan, mlir::Value output,
                       const ContractionTarget &target, int64_t threads);

/// Fills `copied` with the inputs of the copies.
void emitCopies(mlir::OpBuilder &builder, mlir::Location loc,
                const Contraction &contraction,
                const Rearrangement &rearrangement, mlir::ValueRange copied);

/// Moves the sums from `from`, whose dimensions are the output's loops of
/// `rearrangement`, to `to`.
void emitTransposition(mlir::OpBuilder &builder, mlir::Location loc,
                       const Contraction &contraction,
                       const Rearrangement &rearrangement, mlir::Value from,
                       mlir::Value to, int64_t threads);

/// Lets the result of the elementwise operation of `epilogue` be written where
/// `op` is.
void prepareEpilogue(const ContractionEpilogue &epilogue,
                     mlir::linalg::LinalgOp op);
/// One vector of the results of the elementwise operation `op`; `inputs` are
/// vectors of its inputs.
mlir::Value emitElementwise(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::linalg::GenericOp op,
                            mlir::ValueRange inputs);
/// Removes the operations on buffers once they are computed otherwise.
void eraseEpilogue(const ContractionEpilogue &epilogue);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_EMIT_EMITCONTRACTION_H
