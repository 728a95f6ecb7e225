//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stand-in for libcudnn on the stand-in for libcuda: it checks each call as
// "NVIDIA cuDNN", "API Reference" says what it takes (live objects that are
// set, sizes and types that suit, formats of all tensors, memory that is
// allocated and aligned, what algorithms can do), computes convolutions with
// plain loops in the stream, and lets calls fail.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Runtime/Cudnn.h"
#include "LibraryStandIn.h"

using namespace kas::rt;

namespace {

constexpr CudnnStatus badParameter = 3, notSupported = 9;
/// Algorithms that are offered, the fastest first, and what they need: the one
/// has no memory, the next another order of terms each time.
constexpr int winogradNonfused = 7, gemm = 2;
[[maybe_unused]] constexpr int winograd = 6;
constexpr size_t largeWorkspace = size_t(64) << 20, smallWorkspace = size_t(1)
                                                                     << 20;

/// Of a tensor or a filter.
struct Tensor {
  bool isSet = false;
  int format = 0, type = 0;
  /// Images, channels, height and width.
  int sizes[4] = {};

  int64_t getNumElements() const {
    return int64_t(sizes[0]) * sizes[1] * sizes[2] * sizes[3];
  }
  int64_t getIndex(int n, int c, int h, int w) const {
    return format == CudnnChannelsFirst
               ? ((int64_t(n) * sizes[1] + c) * sizes[2] + h) * sizes[3] + w
               : ((int64_t(n) * sizes[2] + h) * sizes[3] + w) * sizes[1] + c;
  }
};

struct Window {
  bool isSet = false;
  int pads[2] = {}, strides[2] = {}, dilations[2] = {};
  int mode = 0, computeType = -1, groups = 1, math = CudnnDefaultMath;
};

struct Activation {
  bool isSet = false;
  int mode = 0;
};

struct State : LibraryCalls {
  /// With their streams.
  std::map<CudnnHandle, CUstream> handles;
  std::map<CudnnTensor, Tensor> tensors;
  std::map<CudnnFilter, Tensor> filters;
  std::map<CudnnConvolution, Window> windows;
  std::map<CudnnActivation, Activation> activations;

  int countLive() const {
    return static_cast<int>(handles.size() + tensors.size() + filters.size() +
                            windows.size() + activations.size());
  }
};

State state;

/// Destroys an object, which must exist.
template <typename Object, typename Handle>
CudnnStatus erase(std::map<Handle, Object> &objects, Handle handle) {
  if (!objects.erase(handle))
    state.violate("an object is destroyed that does not exist");
  return CudnnSuccess;
}

CudnnStatus set(Tensor *tensor, int format, int type, const int (&sizes)[4]) {
  bool isType =
      type == CudnnFloat || type == CudnnHalf || type == CudnnBFloat16;
  bool isFormat = format == CudnnChannelsFirst || format == CudnnChannelsLast;
  if (!tensor || !isType || !isFormat)
    return badParameter;
  for (int size : sizes)
    if (size < 1)
      return badParameter;
  tensor->isSet = true;
  tensor->format = format;
  tensor->type = type;
  std::copy(sizes, sizes + 4, tensor->sizes);
  return CudnnSuccess;
}

Element getElement(const Tensor &tensor) {
  return tensor.type == CudnnFloat  ? Element::F32
         : tensor.type == CudnnHalf ? Element::F16
                                    : Element::BF16;
}

/// A convolution with its addresses.
struct Convolution {
  Tensor x, w, y;
  Window window;
  uint64_t xAddress, wAddress, yAddress;
  bool hasBias = false, hasResidual = false, isRectified = false;
  uint64_t bias = 0, z = 0;
};

/// Whether the library can compute it.
bool isPossible(const Tensor &x, const Tensor &w, const Tensor &y,
                const Window &window) {
  for (const Tensor *tensor : {&w, &y})
    if (tensor->format != x.format || tensor->type != x.type)
      return false;
  if (x.sizes[1] != w.sizes[1] * window.groups || w.sizes[0] % window.groups ||
      y.sizes[0] != x.sizes[0] || y.sizes[1] != w.sizes[0])
    return false;
  for (int i = 0; i < 2; ++i) {
    int room = x.sizes[2 + i] + 2 * window.pads[i] -
               window.dilations[i] * (w.sizes[2 + i] - 1) - 1;
    if (room < 0 || y.sizes[2 + i] != room / window.strides[i] + 1)
      return false;
  }
  return true;
}

/// What kas promises of its calls.
void checkWindow(const Window &window, const Tensor &x) {
  if (window.mode != CudnnCrossCorrelation)
    state.violate("a window that is reversed");
  if (window.computeType != CudnnFloat)
    state.violate("sums of less than 32 bits");
  bool isFloat = x.type == CudnnFloat;
  if (isFloat ? window.math != CudnnFmaMath && window.math != CudnnDefaultMath
              : window.math != CudnnTensorOpMath)
    state.violate("factors that lose their range, or no tensor cores");
}

float roundFactor(float value, const Convolution &one) {
  bool isRounded =
      one.x.type == CudnnFloat && one.window.math == CudnnDefaultMath;
  return isRounded ? roundTo(value, 10) : value;
}

float getSum(const Convolution &one, int n, int k, int row, int column) {
  const Tensor &x = one.x, &w = one.w;
  const Window &window = one.window;
  int group = k / (w.sizes[0] / window.groups);
  float sum = 0;
  for (int c = 0; c < w.sizes[1]; ++c)
    for (int i = 0; i < w.sizes[2]; ++i)
      for (int j = 0; j < w.sizes[3]; ++j) {
        int h =
            row * window.strides[0] + i * window.dilations[0] - window.pads[0];
        int v = column * window.strides[1] + j * window.dilations[1] -
                window.pads[1];
        if (h < 0 || v < 0 || h >= x.sizes[2] || v >= x.sizes[3])
          continue;
        int64_t place = x.getIndex(n, group * w.sizes[1] + c, h, v);
        sum +=
            roundFactor(load(one.xAddress, getElement(x), place), one) *
            roundFactor(
                load(one.wAddress, getElement(w), w.getIndex(k, c, i, j)), one);
      }
  return sum;
}

void compute(const Convolution &one) {
  const Tensor &y = one.y;
  Element type = getElement(y);
  checkMemory(state, one.xAddress, type, one.x.getNumElements(), "x");
  checkMemory(state, one.wAddress, type, one.w.getNumElements(), "w");
  checkMemory(state, one.yAddress, type, y.getNumElements(), "y");
  if (one.hasBias)
    checkMemory(state, one.bias, type, y.sizes[1], "the bias");
  if (one.hasResidual)
    checkMemory(state, one.z, type, y.getNumElements(), "z");
  if (!state.violations.str().empty())
    return;
  for (int n = 0; n < y.sizes[0]; ++n)
    for (int k = 0; k < y.sizes[1]; ++k)
      for (int h = 0; h < y.sizes[2]; ++h)
        for (int v = 0; v < y.sizes[3]; ++v) {
          float sum = getSum(one, n, k, h, v);
          int64_t place = y.getIndex(n, k, h, v);
          if (one.hasResidual)
            sum += load(one.z, type, place);
          if (one.hasBias)
            sum += load(one.bias, type, k);
          if (one.isRectified)
            sum = sum > 0 ? sum : 0;
          store(one.yAddress, type, place, sum);
        }
}

size_t getWorkspaceBytes(int algorithm) {
  return algorithm == winogradNonfused           ? largeWorkspace
         : algorithm == CudnnImplicitPrecompGemm ? smallWorkspace
                                                 : 0;
}

/// What two functions have in common: an error, or success and the convolution.
CudnnStatus get(CudnnHandle handle, CudnnTensor x, CudnnFilter w,
                CudnnConvolution convolution, CudnnTensor y,
                Convolution &result) {
  Tensor *xTensor = state.find(state.tensors, x),
         *yTensor = state.find(state.tensors, y),
         *filter = state.find(state.filters, w);
  Window *window = state.find(state.windows, convolution);
  if (!state.handles.count(handle) || !xTensor || !yTensor || !filter ||
      !window || !xTensor->isSet || !yTensor->isSet || !filter->isSet ||
      !window->isSet)
    return badParameter;
  result = {*xTensor, *filter, *yTensor, *window, 0, 0, 0};
  checkWindow(*window, *xTensor);
  return isPossible(*xTensor, *filter, *yTensor, *window) ? CudnnSuccess
                                                          : notSupported;
}

/// Starts it where it is allowed.
CudnnStatus start(CudnnHandle handle, Convolution &one, int algorithm,
                  const void *x, const void *w, void *y, const void *workspace,
                  size_t workspaceBytes) {
  if (!getDriver().hasContext())
    state.violate("a convolution without a current context");
  if (algorithm == gemm)
    state.violate("an algorithm that is not deterministic");
  checkWorkspace(state, workspace, workspaceBytes,
                 getWorkspaceBytes(algorithm));
  one.xAddress = reinterpret_cast<uint64_t>(x);
  one.wAddress = reinterpret_cast<uint64_t>(w);
  one.yAddress = reinterpret_cast<uint64_t>(y);
  getDriver().enqueue(state.handles[handle], [one] { compute(one); });
  return CudnnSuccess;
}

float getScalar(const void *scalar) {
  return *static_cast<const float *>(scalar);
}

} // namespace

static const StandInControls controls = getLibraryControls<state>();
static const LibraryReport report{"cuDNN", controls};

extern "C" {

KAS_API const StandInControls *standInControls = &controls;

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

KAS_API size_t cudnnGetVersion() {
  // A test may request another one.
  CudnnStatus other = state.enter(__func__);
  return other ? other : 8907;
}

KAS_API CudnnStatus cudnnCreate(CudnnHandle *handle) {
  KAS_ENTER("");
  if (!getDriver().hasContext())
    state.violate("the library without a current context");
  *handle = state.makeHandle<CudnnHandle>();
  state.handles[*handle] = nullptr;
  return CudnnSuccess;
}

KAS_API CudnnStatus cudnnDestroy(CudnnHandle handle) {
  KAS_ENTER(handle);
  return erase(state.handles, handle);
}

KAS_API CudnnStatus cudnnSetStream(CudnnHandle handle, CUstream stream) {
  KAS_ENTER(handle);
  CUstream *known = state.find(state.handles, handle);
  if (!known)
    return badParameter;
  *known = stream;
  return CudnnSuccess;
}

KAS_API CudnnStatus cudnnCreateTensorDescriptor(CudnnTensor *tensor) {
  KAS_ENTER("");
  *tensor = state.makeHandle<CudnnTensor>();
  state.tensors[*tensor] = {};
  return CudnnSuccess;
}

KAS_API CudnnStatus cudnnDestroyTensorDescriptor(CudnnTensor tensor) {
  KAS_ENTER(tensor);
  return erase(state.tensors, tensor);
}

KAS_API CudnnStatus cudnnSetTensor4dDescriptor(CudnnTensor tensor, int format,
                                               int type, int n, int c, int h,
                                               int w) {
  KAS_ENTER(format, type, n, c, h, w);
  return set(state.find(state.tensors, tensor), format, type, {n, c, h, w});
}

KAS_API CudnnStatus cudnnCreateFilterDescriptor(CudnnFilter *filter) {
  KAS_ENTER("");
  *filter = state.makeHandle<CudnnFilter>();
  state.filters[*filter] = {};
  return CudnnSuccess;
}

KAS_API CudnnStatus cudnnDestroyFilterDescriptor(CudnnFilter filter) {
  KAS_ENTER(filter);
  return erase(state.filters, filter);
}

KAS_API CudnnStatus cudnnSetFilter4dDescriptor(CudnnFilter filter, int type,
                                               int format, int k, int c, int h,
                                               int w) {
  KAS_ENTER(type, format, k, c, h, w);
  return set(state.find(state.filters, filter), format, type, {k, c, h, w});
}

KAS_API CudnnStatus
cudnnCreateConvolutionDescriptor(CudnnConvolution *convolution) {
  KAS_ENTER("");
  *convolution = state.makeHandle<CudnnConvolution>();
  state.windows[*convolution] = {};
  return CudnnSuccess;
}

KAS_API CudnnStatus
cudnnDestroyConvolutionDescriptor(CudnnConvolution convolution) {
  KAS_ENTER(convolution);
  return erase(state.windows, convolution);
}

KAS_API CudnnStatus cudnnSetConvolution2dDescriptor(
    CudnnConvolution convolution, int padHeight, int padWidth, int strideHeight,
    int strideWidth, int dilationHeight, int dilationWidth, int mode,
    int computeType) {
  KAS_ENTER(padHeight, padWidth, strideHeight, strideWidth, dilationHeight,
            dilationWidth, mode, computeType);
  Window *window = state.find(state.windows, convolution);
  if (!window || padHeight < 0 || padWidth < 0 || strideHeight < 1 ||
      strideWidth < 1 || dilationHeight < 1 || dilationWidth < 1)
    return badParameter;
  window->isSet = true;
  window->pads[0] = padHeight;
  window->pads[1] = padWidth;
  window->strides[0] = strideHeight;
  window->strides[1] = strideWidth;
  window->dilations[0] = dilationHeight;
  window->dilations[1] = dilationWidth;
  window->mode = mode;
  window->computeType = computeType;
  return CudnnSuccess;
}

KAS_API CudnnStatus cudnnSetConvolutionGroupCount(CudnnConvolution convolution,
                                                  int count) {
  KAS_ENTER(count);
  Window *window = state.find(state.windows, convolution);
  if (!window || count < 1)
    return badParameter;
  window->groups = count;
  return CudnnSuccess;
}

KAS_API CudnnStatus cudnnSetConvolutionMathType(CudnnConvolution convolution,
                                                int type) {
  KAS_ENTER(type);
  Window *window = state.find(state.windows, convolution);
  if (!window || type < CudnnDefaultMath || type > CudnnFmaMath)
    return badParameter;
  window->math = type;
  return CudnnSuccess;
}

KAS_API CudnnStatus
cudnnCreateActivationDescriptor(CudnnActivation *activation) {
  KAS_ENTER("");
  *activation = state.makeHandle<CudnnActivation>();
  state.activations[*activation] = {};
  return CudnnSuccess;
}

KAS_API CudnnStatus
cudnnDestroyActivationDescriptor(CudnnActivation activation) {
  KAS_ENTER(activation);
  return erase(state.activations, activation);
}

KAS_API CudnnStatus cudnnSetActivationDescriptor(CudnnActivation handle,
                                                 int mode, int nan,
                                                 double coefficient) {
  KAS_ENTER(mode, nan, coefficient);
  Activation *activation = state.find(state.activations, handle);
  if (!activation || nan < 0 || nan > 1)
    return badParameter;
  activation->isSet = true;
  activation->mode = mode;
  return CudnnSuccess;
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

// An old version lacks it here, to stand for all that lack something.
#ifndef KAS_OLD_LIBRARY
KAS_API CudnnStatus cudnnGetConvolutionForwardAlgorithm_v7(
    CudnnHandle handle, CudnnTensor x, CudnnFilter w,
    CudnnConvolution convolution, CudnnTensor y, int requested, int *count,
    CudnnChoice *choices) {
  KAS_ENTER(requested);
  *count = 0;
  Convolution one;
  if (CudnnStatus status = get(handle, x, w, convolution, y, one))
    return status;
  const int algorithms[] = {winogradNonfused, gemm, winograd,
                            CudnnImplicitPrecompGemm};
  for (int algorithm : algorithms) {
    if (*count == requested)
      break;
    CudnnChoice &choice = choices[(*count)++];
    choice = {};
    choice.algorithm = algorithm;
    choice.determinism = algorithm == gemm ? 0 : CudnnDeterministic;
    // That of another type of math.
    choice.workspaceBytes = 1;
  }
  return CudnnSuccess;
}
#endif

KAS_API CudnnStatus cudnnGetConvolutionForwardWorkspaceSize(
    CudnnHandle handle, CudnnTensor x, CudnnFilter w,
    CudnnConvolution convolution, CudnnTensor y, int algorithm, size_t *bytes) {
  KAS_ENTER(algorithm);
  Convolution one;
  *bytes = getWorkspaceBytes(algorithm);
  return get(handle, x, w, convolution, y, one);
}

KAS_API CudnnStatus cudnnConvolutionForward(
    CudnnHandle handle, const void *alpha, CudnnTensor xTensor, const void *x,
    CudnnFilter wFilter, const void *w, CudnnConvolution convolution,
    int algorithm, void *workspace, size_t workspaceBytes, const void *beta,
    CudnnTensor yTensor, void *y) {
  KAS_ENTER(algorithm);
  Convolution one;
  if (CudnnStatus status =
          get(handle, xTensor, wFilter, convolution, yTensor, one))
    return status;
  if (getScalar(alpha) != 1 || getScalar(beta) != 0)
    state.violate("a factor that is not 1, or a result that is added to");
  return start(handle, one, algorithm, x, w, y, workspace, workspaceBytes);
}

KAS_API CudnnStatus cudnnConvolutionBiasActivationForward(
    CudnnHandle handle, const void *alpha1, CudnnTensor xTensor, const void *x,
    CudnnFilter wFilter, const void *w, CudnnConvolution convolution,
    int algorithm, void *workspace, size_t workspaceBytes, const void *alpha2,
    CudnnTensor zTensor, const void *z, CudnnTensor biasTensor,
    const void *bias, CudnnActivation activationHandle, CudnnTensor yTensor,
    void *y) {
  float residual = getScalar(alpha2);
  KAS_ENTER(algorithm, residual);
  Convolution one;
  if (CudnnStatus status =
          get(handle, xTensor, wFilter, convolution, yTensor, one))
    return status;
  Tensor *biased = state.find(state.tensors, biasTensor),
         *added = state.find(state.tensors, zTensor);
  Activation *activation = state.find(state.activations, activationHandle);
  if (!biased || !added || !activation || !biased->isSet ||
      !activation->isSet || biased->type != one.y.type ||
      biased->getNumElements() != one.y.sizes[1] ||
      biased->sizes[1] != one.y.sizes[1] || added->type != one.y.type ||
      added->getNumElements() != one.y.getNumElements())
    return badParameter;
  if (activation->mode != CudnnRelu && activation->mode != CudnnIdentity)
    return badParameter;
  if (activation->mode == CudnnIdentity &&
      algorithm != CudnnImplicitPrecompGemm)
    return notSupported;
  if (getScalar(alpha1) != 1 || (residual != 0 && residual != 1) ||
      (residual == 0 && z != y))
    state.violate("a factor that is not 1, or a residual that is not added");
  one.hasBias = true;
  one.hasResidual = residual != 0;
  one.isRectified = activation->mode == CudnnRelu;
  one.bias = reinterpret_cast<uint64_t>(bias);
  one.z = reinterpret_cast<uint64_t>(z);
  return start(handle, one, algorithm, x, w, y, workspace, workspaceBytes);
}
}
