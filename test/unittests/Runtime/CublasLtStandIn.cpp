//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stand-in for libcublasLt on the stand-in for libcuda: it checks each call
// as "Using the cuBLASLt API" says what it takes (sizes and values of
// attributes, live objects, shapes that suit, leading dimensions, memory that
// is allocated and aligned), computes products with plain loops in the stream,
// and lets calls fail.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Runtime/CublasLt.h"
#include "LibraryStandIn.h"
#include <set>

using namespace kas::rt;

namespace {

constexpr CublasStatus invalidValue = 7, notSupported = 15;
/// What begins the algorithms that the stand-in chooses.
constexpr uint64_t algorithmMark = 0xa190;

struct Desc {
  int computeType;
  int32_t transA = CublasAsItIs, transB = CublasAsItIs;
  uint32_t epilogue = CublasEpilogueDefault;
  uint64_t bias = 0;
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batches = 1;
  int64_t batchOffset = 0;
};

struct Preference {
  uint64_t maxWorkspaceBytes = 0;
  uint32_t reductions = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

struct State : LibraryCalls {
  std::set<CublasHandle> handles;
  std::map<CublasMatmulDesc, Desc> descs;
  std::map<CublasLayout, Layout> layouts;
  std::map<CublasPreference, Preference> preferences;

  int countLive() const {
    return static_cast<int>(handles.size() + descs.size() + layouts.size() +
                            preferences.size());
  }
};

State state;

/// Sets `to` to an attribute's value, whose bytes must be those of its type.
template <typename Value>
CublasStatus set(Value &to, const void *value, size_t bytes) {
  if (bytes != sizeof(Value)) {
    state.violate("an attribute of " + std::to_string(bytes) + " bytes");
    return invalidValue;
  }
  std::memcpy(&to, value, bytes);
  return CublasSuccess;
}

Element getElement(int type) {
  return type == CudaReal32F   ? Element::F32
         : type == CudaReal16F ? Element::F16
                               : Element::BF16;
}

/// What a factor is rounded to.
float roundFactor(float value, int computeType) {
  switch (computeType) {
  case CublasCompute32FFast16F:
    return static_cast<float>(static_cast<_Float16>(value));
  case CublasCompute32FFast16BF:
    return roundTo(value, 7);
  case CublasCompute32FFastTF32:
    return roundTo(value, 10);
  default:
    return value;
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A product with its addresses.
struct Product {
  Desc desc;
  Layout a, b, c, d;
  uint64_t aAddress, bAddress, cAddress, dAddress;
  float beta;
};

bool isTransposed(int32_t operation) { return operation == CublasTransposed; }

/// Whether the library could compute such a product; `k` is set.
bool isPossible(const Desc &desc, const Layout &a, const Layout &b,
                const Layout &c, const Layout &d, uint64_t &k) {
  bool ta = isTransposed(desc.transA), tb = isTransposed(desc.transB);
  k = ta ? a.rows : a.columns;
  uint64_t m = ta ? a.columns : a.rows, n = tb ? b.rows : b.columns;
  for (const Layout *layout : {&a, &b, &c, &d})
    if (layout->batches != d.batches)
      return false;
  // A and B may be the same for all batches, D may not.
  if (d.batches > 1 && d.batchOffset == 0)
    return false;
  bool isNarrow = a.type != CudaReal32F;
  return k == (tb ? b.columns : b.rows) && m == d.rows && n == d.columns &&
         c.rows == d.rows && c.columns == d.columns && a.type == b.type &&
         c.type == d.type &&
         (d.type == a.type || (isNarrow && d.type == CudaReal32F)) &&
         (!isNarrow || desc.computeType == CublasCompute32F);
}

void checkMatrix(const Layout &layout, uint64_t address, const char *name) {
  size_t elements = layout.batchOffset * (layout.batches - 1) +
                    layout.leading * (layout.columns - 1) + layout.rows;
  checkMemory(state, address, getElement(layout.type), elements,
              std::string("matrix ") + name);
}

float loadElement(const Layout &layout, uint64_t address, int64_t batch,
                  int64_t row, int64_t column, bool isTransposed) {
  if (isTransposed)
    std::swap(row, column);
  return load(address, getElement(layout.type),
              batch * layout.batchOffset + column * layout.leading + row);
}

void compute(const Product &product, int64_t batch, int64_t row, int64_t column,
             uint64_t k) {
  const Desc &desc = product.desc;
  float sum = 0;
  for (uint64_t step = 0; step < k; ++step)
    sum += roundFactor(loadElement(product.a, product.aAddress, batch, row,
                                   step, isTransposed(desc.transA)),
                       desc.computeType) *
           roundFactor(loadElement(product.b, product.bAddress, batch, step,
                                   column, isTransposed(desc.transB)),
                       desc.computeType);
  if (product.beta != 0)
    sum += product.beta *
           loadElement(product.c, product.cAddress, batch, row, column, false);
  if (desc.epilogue & CublasEpilogueBias)
    sum += load(desc.bias, getElement(product.d.type), row);
  if (desc.epilogue & CublasEpilogueRelu)
    sum = sum > 0 ? sum : 0;
  const Layout &d = product.d;
  store(product.dAddress, getElement(d.type),
        batch * d.batchOffset + column * d.leading + row, sum);
}

void compute(const Product &product, uint64_t k) {
  checkMatrix(product.a, product.aAddress, "A");
  checkMatrix(product.b, product.bAddress, "B");
  if (product.beta != 0)
    checkMatrix(product.c, product.cAddress, "C");
  checkMatrix(product.d, product.dAddress, "D");
  if ((product.desc.epilogue & CublasEpilogueBias) &&
      !getDriver().isAllocated(product.desc.bias,
                               product.d.rows *
                                   getBytes(getElement(product.d.type))))
    state.violate("the bias is beyond an allocation");
  if (!state.violations.str().empty())
    return;
  for (int64_t batch = 0; batch < product.d.batches; ++batch)
    for (uint64_t column = 0; column < product.d.columns; ++column)
      for (uint64_t row = 0; row < product.d.rows; ++row)
        compute(product, batch, row, column, k);
}

} // namespace

static const StandInControls controls = getLibraryControls<state>();
static const LibraryReport report{"cuBLASLt", controls};

extern "C" {

KAS_API const StandInControls *standInControls = &controls;

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

KAS_API size_t cublasLtGetVersion() {
  // A test may request another one.
  CublasStatus other = state.enter(__func__);
  return other ? other : 120103;
}

KAS_API CublasStatus cublasLtCreate(CublasHandle *handle) {
  KAS_ENTER("");
  if (!getDriver().hasContext())
    state.violate("the library without a current context");
  *handle = state.makeHandle<CublasHandle>();
  state.handles.insert(*handle);
  return CublasSuccess;
}

KAS_API CublasStatus cublasLtDestroy(CublasHandle handle) {
  KAS_ENTER(handle);
  if (!state.handles.erase(handle))
    state.violate("a handle is destroyed that does not exist");
  return CublasSuccess;
}

KAS_API CublasStatus cublasLtMatmulDescCreate(CublasMatmulDesc *desc,
                                              int computeType, int scaleType) {
  KAS_ENTER(computeType, scaleType);
  if (computeType < CublasCompute32F ||
      computeType > CublasCompute32FFastTF32 || scaleType != CudaReal32F)
    return invalidValue;
  *desc = state.makeHandle<CublasMatmulDesc>();
  state.descs[*desc].computeType = computeType;
  return CublasSuccess;
}

KAS_API CublasStatus cublasLtMatmulDescDestroy(CublasMatmulDesc desc) {
  KAS_ENTER(desc);
  if (!state.descs.erase(desc))
    state.violate("a description is destroyed that does not exist");
  return CublasSuccess;
}

KAS_API CublasStatus cublasLtMatmulDescSetAttribute(CublasMatmulDesc handle,
                                                    int attribute,
                                                    const void *value,
                                                    size_t bytes) {
  KAS_ENTER(handle, attribute, bytes);
  Desc *desc = state.find(state.descs, handle);
  if (!desc)
    return invalidValue;
  switch (attribute) {
  case CublasDescTransA:
    return set(desc->transA, value, bytes);
  case CublasDescTransB:
    return set(desc->transB, value, bytes);
  case CublasDescEpilogue:
    return set(desc->epilogue, value, bytes);
  case CublasDescBiasPointer:
    return set(desc->bias, value, bytes);
  default:
    return invalidValue;
  }
}

KAS_API CublasStatus cublasLtMatrixLayoutCreate(CublasLayout *layout, int type,
                                                uint64_t rows, uint64_t columns,
                                                int64_t leading) {
  KAS_ENTER(type, rows, columns, leading);
  bool isType =
      type == CudaReal32F || type == CudaReal16F || type == CudaReal16BF;
  if (!isType || !rows || !columns || leading < static_cast<int64_t>(rows))
    return invalidValue;
  *layout = state.makeHandle<CublasLayout>();
  state.layouts[*layout] = {type, rows, columns, leading};
  return CublasSuccess;
}

KAS_API CublasStatus cublasLtMatrixLayoutDestroy(CublasLayout layout) {
  KAS_ENTER(layout);
  if (!state.layouts.erase(layout))
    state.violate("a layout is destroyed that does not exist");
  return CublasSuccess;
}

KAS_API CublasStatus cublasLtMatrixLayoutSetAttribute(CublasLayout handle,
                                                      int attribute,
                                                      const void *value,
                                                      size_t bytes) {
  KAS_ENTER(handle, attribute, bytes);
  Layout *layout = state.find(state.layouts, handle);
  if (layout && attribute == CublasLayoutBatchCount)
    return set(layout->batches, value, bytes);
  if (layout && attribute == CublasLayoutBatchOffset)
    return set(layout->batchOffset, value, bytes);
  return invalidValue;
}

KAS_API CublasStatus
cublasLtMatmulPreferenceCreate(CublasPreference *preference) {
  KAS_ENTER("");
  *preference = state.makeHandle<CublasPreference>();
  state.preferences[*preference] = {};
  return CublasSuccess;
}

KAS_API CublasStatus
cublasLtMatmulPreferenceDestroy(CublasPreference preference) {
  KAS_ENTER(preference);
  if (!state.preferences.erase(preference))
    state.violate("a preference is destroyed that does not exist");
  return CublasSuccess;
}

// An old version lacks it here, to stand for all that lack something.
#ifndef KAS_OLD_LIBRARY
KAS_API CublasStatus cublasLtMatmulPreferenceSetAttribute(
    CublasPreference handle, int attribute, const void *value, size_t bytes) {
  KAS_ENTER(handle, attribute, bytes);
  Preference *preference = state.find(state.preferences, handle);
  if (!preference)
    return invalidValue;
  if (attribute == CublasPreferenceMaxWorkspaceBytes)
    return set(preference->maxWorkspaceBytes, value, bytes);
  if (attribute == CublasPreferenceReductionMask)
    return set(preference->reductions, value, bytes);
  int matrix = attribute - CublasPreferenceMinAlignmentA;
  if (matrix >= 0 && matrix < 4)
    return set(preference->alignments[matrix], value, bytes);
  return invalidValue;
}
#endif

KAS_API CublasStatus cublasLtMatmulAlgoGetHeuristic(
    CublasHandle handle, CublasMatmulDesc descHandle, CublasLayout aHandle,
    CublasLayout bHandle, CublasLayout cHandle, CublasLayout dHandle,
    CublasPreference preferenceHandle, int requested, CublasChoice *choices,
    int *count) {
  KAS_ENTER(handle, requested);
  Desc *desc = state.find(state.descs, descHandle);
  Layout *a = state.find(state.layouts, aHandle),
         *b = state.find(state.layouts, bHandle),
         *c = state.find(state.layouts, cHandle),
         *d = state.find(state.layouts, dHandle);
  Preference *preference = state.find(state.preferences, preferenceHandle);
  if (!state.handles.count(handle) || !desc || !a || !b || !c || !d ||
      !preference || requested < 1)
    return invalidValue;
  // Sums that are split stay in f32; arguments of kernels are aligned to 16.
  if (preference->reductions != CublasReductionComputeType)
    state.violate("partial sums that are rounded");
  for (uint32_t alignment : preference->alignments)
    if (alignment > 16)
      state.violate("an alignment that is not promised");
  uint64_t k = 0;
  *count = 0;
  if (!isPossible(*desc, *a, *b, *c, *d, k))
    return notSupported;
  // The address says how the bias is aligned.
  if ((desc->epilogue & CublasEpilogueBias) &&
      (!desc->bias || desc->bias % 32 == 0))
    state.violate("a bias whose alignment is not promised");
  size_t workspace = std::min<uint64_t>(1 << 20, preference->maxWorkspaceBytes);
  choices[0] = {
      {{algorithmMark, workspace, k}}, workspace, CublasSuccess, 1, {}};
  *count = 1;
  return CublasSuccess;
}

KAS_API CublasStatus cublasLtMatmul(
    CublasHandle handle, CublasMatmulDesc descHandle, const void *alpha,
    const void *a, CublasLayout aHandle, const void *b, CublasLayout bHandle,
    const void *beta, const void *c, CublasLayout cHandle, void *d,
    CublasLayout dHandle, const CublasAlgorithm *algorithm, void *workspace,
    size_t workspaceBytes, CUstream stream) {
  Desc *desc = state.find(state.descs, descHandle);
  Layout *aLayout = state.find(state.layouts, aHandle),
         *bLayout = state.find(state.layouts, bHandle),
         *cLayout = state.find(state.layouts, cHandle),
         *dLayout = state.find(state.layouts, dHandle);
  if (!state.handles.count(handle) || !desc || !aLayout || !bLayout ||
      !cLayout || !dLayout)
    return invalidValue;
  float one = *static_cast<const float *>(alpha),
        residual = *static_cast<const float *>(beta);
  KAS_ENTER(dLayout->rows, dLayout->columns, dLayout->batches, desc->transA,
            desc->transB, aLayout->leading, bLayout->leading, dLayout->leading,
            desc->computeType, desc->epilogue, residual);
  if (!getDriver().hasContext())
    state.violate("a product without a current context");
  uint64_t k = 0;
  if (!isPossible(*desc, *aLayout, *bLayout, *cLayout, *dLayout, k) ||
      algorithm->data[0] != algorithmMark || algorithm->data[2] != k)
    return invalidValue;
  checkWorkspace(state, workspace, workspaceBytes, algorithm->data[1]);
  if (one != 1 || (residual == 0 && c != d))
    state.violate("a factor that is not 1, or a residual that is not added");
  Product product{*desc,
                  *aLayout,
                  *bLayout,
                  *cLayout,
                  *dLayout,
                  reinterpret_cast<uint64_t>(a),
                  reinterpret_cast<uint64_t>(b),
                  reinterpret_cast<uint64_t>(c),
                  reinterpret_cast<uint64_t>(d),
                  residual};
  getDriver().enqueue(stream, [=] { compute(product, k); });
  return CublasSuccess;
}
}
