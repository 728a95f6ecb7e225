//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products by cuBLASLt.
// The library's matrices have columns of neighbours. Our results have rows of
// neighbours, so it computes the transposed product: its `a` is our right
// matrix, its `b` our left one, its rows are our columns. A bias for each of
// our columns is then one for each of its rows, the only kind that it has.
//
//===----------------------------------------------------------------------===//

#include "CudaMatmul.h"
#include <algorithm>

using namespace kas::rt;

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

CublasLt::CublasLt(CudaDevice &device)
    : KernelLibrary(
          device,
          {"cuBLASLt",
           "KAS_RT_LIBCUBLASLT",
           {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"},
           // Before 11 cublasLtMatmulDescCreate had other parameters.
           11,
           13}) {}

Status CublasLt::loadFunctions() {
  Status status;
#define KAS_LOAD(result, symbol, parameters) status += lookUp(symbol, #symbol);
  KAS_CUBLASLT_FUNCTIONS(KAS_LOAD)
#undef KAS_LOAD
  return status;
}

// 120103 is 12.1.3.
CublasLt::Version CublasLt::getVersion() const {
  size_t version = cublasLtGetVersion();
  return {version / 10000, version / 100 % 100, version % 100};
}

Status CublasLt::createHandle() {
  return check(cublasLtCreate(&handle), "cublasLtCreate");
}

Status CublasLt::destroyHandle() {
  return check(cublasLtDestroy(handle), "cublasLtDestroy");
}

//===----------------------------------------------------------------------===//
// A product
//===----------------------------------------------------------------------===//

static int getDataType(KasRtElement type) {
  return type == KAS_RT_F16    ? CudaReal16F
         : type == KAS_RT_BF16 ? CudaReal16BF
                               : CudaReal32F;
}

/// Sums always have 32 bits; factors may be rounded as the product says.
static int getComputeType(const KasRtMatmul &product) {
  switch (product.precision) {
  case KAS_RT_TF32:
    return CublasCompute32FFastTF32;
  case KAS_RT_F16:
    return CublasCompute32FFast16F;
  case KAS_RT_BF16:
    return CublasCompute32FFast16BF;
  default:
    return CublasCompute32F;
  }
}

CudaMatmul::~CudaMatmul() {
  for (CublasLayout layout : {a, b, d})
    if (layout)
      (void)library.cublasLtMatrixLayoutDestroy(layout);
  if (description)
    (void)library.cublasLtMatmulDescDestroy(description);
}

Status CudaMatmul::makeLayout(CublasLayout &layout, KasRtElement type,
                              uint64_t rows, uint64_t columns, uint64_t leading,
                              uint64_t batchStride) {
  CublasLayout created = nullptr;
  // The distance of columns; of one column it may be any.
  if (columns == 1)
    leading = std::max(leading, rows);
  Status status = CublasLt::check(library.cublasLtMatrixLayoutCreate(
                                      &created, getDataType(type), rows,
                                      columns, static_cast<int64_t>(leading)),
                                  "cublasLtMatrixLayoutCreate");
  if (status.isError())
    return status;
  layout = created;
  auto count = static_cast<int32_t>(product.batches);
  auto offset = static_cast<int64_t>(batchStride);
  status += CublasLt::check(
      library.cublasLtMatrixLayoutSetAttribute(layout, CublasLayoutBatchCount,
                                               &count, sizeof(count)),
      "cublasLtMatrixLayoutSetAttribute");
  status += CublasLt::check(
      library.cublasLtMatrixLayoutSetAttribute(layout, CublasLayoutBatchOffset,
                                               &offset, sizeof(offset)),
      "cublasLtMatrixLayoutSetAttribute");
  return status;
}

/// Whether steps are neighbours in memory, not the rows or columns.
static bool isAlongSteps(const KasRtMatrix &matrix) {
  return matrix.strides[2] == 1;
}

Status CudaMatmul::makeLayouts() {
  // A layout is what lies in memory, before it is transposed.
  auto make = [&](CublasLayout &layout, const KasRtMatrix &matrix,
                  uint64_t lines) {
    bool alongSteps = isAlongSteps(matrix);
    return makeLayout(layout, product.factorType,
                      alongSteps ? product.steps : lines,
                      alongSteps ? lines : product.steps,
                      matrix.strides[alongSteps ? 1 : 2], matrix.strides[0]);
  };
  if (Status status = make(a, product.right, product.columns); status.isError())
    return status;
  if (Status status = make(b, product.left, product.rows); status.isError())
    return status;
  return makeLayout(d, product.resultType, product.columns, product.rows,
                    product.result.strides[1], product.result.strides[0]);
}

Status CudaMatmul::setBias(CUdeviceptr address) {
  return CublasLt::check(
      library.cublasLtMatmulDescSetAttribute(description, CublasDescBiasPointer,
                                             &address, sizeof(address)),
      "cublasLtMatmulDescSetAttribute");
}

Status CudaMatmul::makeDescription() {
  CublasMatmulDesc created = nullptr;
  if (Status status =
          CublasLt::check(library.cublasLtMatmulDescCreate(
                              &created, getComputeType(product), CudaReal32F),
                          "cublasLtMatmulDescCreate");
      status.isError())
    return status;
  description = created;
  uint32_t epilogue = (product.isRectified ? CublasEpilogueRelu : 0) |
                      (product.bias >= 0 ? CublasEpilogueBias : 0);
  if (!epilogue)
    epilogue = CublasEpilogueDefault;
  // `a` has a row for each column of ours, `b` a column for each row.
  int32_t transA =
      isAlongSteps(product.right) ? CublasTransposed : CublasAsItIs;
  int32_t transB = isAlongSteps(product.left) ? CublasAsItIs : CublasTransposed;
  Status status;
  auto set = [&](int attribute, const void *value, size_t bytes) {
    status += CublasLt::check(library.cublasLtMatmulDescSetAttribute(
                                  description, attribute, value, bytes),
                              "cublasLtMatmulDescSetAttribute");
  };
  set(CublasDescTransA, &transA, sizeof(transA));
  set(CublasDescTransB, &transB, sizeof(transB));
  set(CublasDescEpilogue, &epilogue, sizeof(epilogue));
  // The choice of a kernel depends on how it is aligned: as all arguments.
  if (product.bias >= 0 && !status.isError())
    status +=
        setBias(reinterpret_cast<CUdeviceptr>(library.getWorkspace()) + 16);
  return status;
}

Status CudaMatmul::setPreferences(CublasPreference preference) {
  Status status;
  auto set = [&](int attribute, const void *value, size_t bytes) {
    status += CublasLt::check(library.cublasLtMatmulPreferenceSetAttribute(
                                  preference, attribute, value, bytes),
                              "cublasLtMatmulPreferenceSetAttribute");
  };
  uint64_t workspace = LibraryWorkspace::bytes;
  set(CublasPreferenceMaxWorkspaceBytes, &workspace, sizeof(workspace));
  // Where a sum is split its parts stay in f32, and are added in one order.
  uint32_t reductions = CublasReductionComputeType;
  set(CublasPreferenceReductionMask, &reductions, sizeof(reductions));
  uint32_t alignment = 16;
  for (int matrix = 0; matrix < 4; ++matrix)
    set(CublasPreferenceMinAlignmentA + matrix, &alignment, sizeof(alignment));
  return status;
}

Status CudaMatmul::choose() {
  CublasPreference preference = nullptr;
  if (Status status =
          CublasLt::check(library.cublasLtMatmulPreferenceCreate(&preference),
                          "cublasLtMatmulPreferenceCreate");
      status.isError())
    return status;
  Status status = setPreferences(preference);
  int count = 0;
  if (!status.isError())
    status = CublasLt::check(library.cublasLtMatmulAlgoGetHeuristic(
                                 library.handle, description, a, b, d, d,
                                 preference, 1, &choice, &count),
                             "cublasLtMatmulAlgoGetHeuristic");
  (void)library.cublasLtMatmulPreferenceDestroy(preference);
  if (!status.isError() && count < 1)
    status = {KAS_RT_ERROR_DRIVER, "the library has no kernel for it"};
  if (!status.isError())
    status = CublasLt::check(choice.state, "the choice of a kernel");
  if (!status.isError() && choice.workspaceBytes > LibraryWorkspace::bytes)
    status = {KAS_RT_ERROR_DRIVER, "expected at most " +
                                       std::to_string(LibraryWorkspace::bytes) +
                                       " bytes of workspace, got " +
                                       std::to_string(choice.workspaceBytes)};
  return status;
}

Status CudaMatmul::describe() {
  Status status = makeDescription();
  if (!status.isError())
    status = makeLayouts();
  if (!status.isError())
    status = choose();
  return status;
}

Status CudaMatmul::launch(const std::vector<CUdeviceptr> &arguments,
                          CUstream stream) {
  auto getAddress = [&](uint64_t argument) {
    return reinterpret_cast<void *>(arguments[argument]);
  };
  // Part of the description, which the library reads during the call.
  if (product.bias >= 0)
    if (Status status = setBias(arguments[product.bias]); status.isError())
      return status;
  const float one = 1, residual = product.residual >= 0 ? 1 : 0;
  void *result = getAddress(product.result.argument);
  // With a factor of 0 it is not read.
  void *added = product.residual >= 0 ? getAddress(product.residual) : result;
  return CublasLt::check(
      library.cublasLtMatmul(
          library.handle, description, &one, getAddress(product.right.argument),
          a, getAddress(product.left.argument), b, &residual, added, d, result,
          d, &choice.algorithm, library.getWorkspace(), LibraryWorkspace::bytes,
          stream),
      "cublasLtMatmul");
}
