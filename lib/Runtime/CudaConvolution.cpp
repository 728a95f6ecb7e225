//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions by cuDNN: cudnnConvolutionForward without a bias, else
// cudnnConvolutionBiasActivationForward.
//
//===----------------------------------------------------------------------===//

#include "CudaConvolution.h"
#include "Device.h"

using namespace kas::rt;

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

Cudnn::Cudnn(CudaDevice &device)
    : KernelLibrary(device, {"cuDNN",
                             "KAS_RT_LIBCUDNN",
                             {"libcudnn.so.9", "libcudnn.so.8"},
                             // CUDNN_FMA_MATH came with 8.
                             8,
                             9}) {}

Status Cudnn::loadFunctions() {
  Status status;
#define KAS_LOAD(result, symbol, parameters) status += lookUp(symbol, #symbol);
  KAS_CUDNN_FUNCTIONS(KAS_LOAD)
#undef KAS_LOAD
  return status;
}

// 8907 is 8.9.7, 90100 is 9.1.0.
Cudnn::Version Cudnn::getVersion() const {
  size_t version = cudnnGetVersion(), major = version < 90000 ? 1000 : 10000;
  return {version / major, version % major / 100, version % 100};
}

Status Cudnn::createHandle() {
  return check(cudnnCreate(&handle), "cudnnCreate");
}

Status Cudnn::destroyHandle() {
  return check(cudnnDestroy(handle), "cudnnDestroy");
}

//===----------------------------------------------------------------------===//
// A convolution
//===----------------------------------------------------------------------===//

// After a failure it stops at the first call that returns an error.
#define KAS_CALL(function, ...)                                                \
  if (Status status =                                                          \
          KernelLibrary::check(library.function(__VA_ARGS__), #function);      \
      status.isError())                                                        \
  return status

static int getDataType(KasRtElement type) {
  return type == KAS_RT_F16    ? CudnnHalf
         : type == KAS_RT_BF16 ? CudnnBFloat16
                               : CudnnFloat;
}

static int getFormat(const KasRtConvolution &convolution) {
  return convolution.areChannelsLast ? CudnnChannelsLast : CudnnChannelsFirst;
}

/// Factors of f32 are rounded to tf32 at most, which has as many bits as f16
/// and more than bf16; CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION would lose the
/// range of f32.
static int getMathType(const KasRtConvolution &convolution) {
  if (convolution.elementType != KAS_RT_F32)
    return CudnnTensorOpMath;
  return convolution.precision == KAS_RT_F32 ? CudnnFmaMath : CudnnDefaultMath;
}

CudaConvolution::~CudaConvolution() {
  for (CudnnTensor tensor : {x, y, bias})
    if (tensor)
      (void)library.cudnnDestroyTensorDescriptor(tensor);
  if (w)
    (void)library.cudnnDestroyFilterDescriptor(w);
  if (window)
    (void)library.cudnnDestroyConvolutionDescriptor(window);
  if (activation)
    (void)library.cudnnDestroyActivationDescriptor(activation);
}

Status CudaConvolution::makeTensor(CudnnTensor &tensor,
                                   const uint64_t (&sizes)[4]) {
  CudnnTensor created = nullptr;
  KAS_CALL(cudnnCreateTensorDescriptor, &created);
  tensor = created;
  KAS_CALL(cudnnSetTensor4dDescriptor, tensor, getFormat(convolution),
           getDataType(convolution.elementType), static_cast<int>(sizes[0]),
           static_cast<int>(sizes[1]), static_cast<int>(sizes[2]),
           static_cast<int>(sizes[3]));
  return {};
}

Status CudaConvolution::makeTensors() {
  uint64_t results[4];
  getResultSizes(convolution, results);
  Status status = makeTensor(x, convolution.imageSizes);
  if (!status.isError())
    status = makeTensor(y, results);
  if (!status.isError() && convolution.bias >= 0)
    status = makeTensor(bias, {1, results[1], 1, 1});
  return status;
}

Status CudaConvolution::makeFilter() {
  CudnnFilter created = nullptr;
  KAS_CALL(cudnnCreateFilterDescriptor, &created);
  w = created;
  auto size = [&](int i) {
    return static_cast<int>(convolution.filterSizes[i]);
  };
  KAS_CALL(cudnnSetFilter4dDescriptor, w, getDataType(convolution.elementType),
           getFormat(convolution), size(0), size(1), size(2), size(3));
  return {};
}

// Sums have f32 whatever the tensors have.
Status CudaConvolution::makeWindow() {
  CudnnConvolution created = nullptr;
  KAS_CALL(cudnnCreateConvolutionDescriptor, &created);
  window = created;
  auto get = [](const uint64_t (&numbers)[2], int i) {
    return static_cast<int>(numbers[i]);
  };
  KAS_CALL(cudnnSetConvolution2dDescriptor, window, get(convolution.pads, 0),
           get(convolution.pads, 1), get(convolution.strides, 0),
           get(convolution.strides, 1), get(convolution.dilations, 0),
           get(convolution.dilations, 1), CudnnCrossCorrelation, CudnnFloat);
  KAS_CALL(
      cudnnSetConvolutionGroupCount, window,
      static_cast<int>(convolution.imageSizes[1] / convolution.filterSizes[1]));
  KAS_CALL(cudnnSetConvolutionMathType, window, getMathType(convolution));
  return {};
}

Status CudaConvolution::makeActivation() {
  CudnnActivation created = nullptr;
  KAS_CALL(cudnnCreateActivationDescriptor, &created);
  activation = created;
  KAS_CALL(cudnnSetActivationDescriptor, activation,
           convolution.isRectified ? CudnnRelu : CudnnIdentity,
           CudnnPropagateNaN, /*coefficient=*/0);
  return {};
}

// The bytes that the library has in its answer are those of another type of
// math than the window's.
Status CudaConvolution::take(const CudnnChoice &choice) {
  if (Status status =
          KernelLibrary::check(choice.status, "the choice of an algorithm");
      status.isError())
    return status;
  if (choice.determinism != CudnnDeterministic)
    return {KAS_RT_ERROR_DRIVER,
            "expected an algorithm that is deterministic, got none"};
  // Others have no such activation.
  if (convolution.bias >= 0 && !convolution.isRectified &&
      choice.algorithm != CudnnImplicitPrecompGemm)
    return {KAS_RT_ERROR_DRIVER,
            "expected an algorithm that adds a bias alone, got none"};
  size_t bytes = 0;
  KAS_CALL(cudnnGetConvolutionForwardWorkspaceSize, library.handle, x, w,
           window, y, choice.algorithm, &bytes);
  if (bytes > LibraryWorkspace::bytes)
    return {KAS_RT_ERROR_DRIVER,
            "expected at most " + std::to_string(LibraryWorkspace::bytes) +
                " bytes of workspace, got " + std::to_string(bytes)};
  algorithm = choice.algorithm;
  return {};
}

// The first ones are expected to be the fastest.
Status CudaConvolution::choose() {
  CudnnChoice choices[CudnnAlgorithmCount] = {};
  int count = 0;
  KAS_CALL(cudnnGetConvolutionForwardAlgorithm_v7, library.handle, x, w, window,
           y, CudnnAlgorithmCount, &count, choices);
  Status first = {KAS_RT_ERROR_DRIVER, "the library has no kernel for it"};
  for (int i = 0; i < count; ++i) {
    Status status = take(choices[i]);
    if (!status.isError())
      return status;
    first = i == 0 ? status : first;
  }
  return first;
}

Status CudaConvolution::describe() {
  if (convolution.bias < 0 &&
      (convolution.residual >= 0 || convolution.isRectified))
    return {KAS_RT_ERROR_DRIVER, "expected a bias before a residual or a "
                                 "rectifier, got none"};
  Status status = makeTensors();
  if (!status.isError())
    status = makeFilter();
  if (!status.isError())
    status = makeWindow();
  if (!status.isError() && convolution.bias >= 0)
    status = makeActivation();
  if (!status.isError())
    status = choose();
  return status;
}

Status CudaConvolution::launch(const std::vector<CUdeviceptr> &arguments,
                               CUstream stream) {
  auto getAddress = [&](uint64_t argument) {
    return reinterpret_cast<void *>(arguments[argument]);
  };
  // The caller's stream may be another one than at the last launch.
  KAS_CALL(cudnnSetStream, library.handle, stream);
  const float one = 1, zero = 0;
  void *result = getAddress(convolution.result);
  if (convolution.bias < 0) {
    KAS_CALL(cudnnConvolutionForward, library.handle, &one, x,
             getAddress(convolution.image), w, getAddress(convolution.filter),
             window, algorithm, library.getWorkspace(), LibraryWorkspace::bytes,
             &zero, y, result);
    return {};
  }
  // With a factor of 0 it is not read.
  bool hasResidual = convolution.residual >= 0;
  KAS_CALL(cudnnConvolutionBiasActivationForward, library.handle, &one, x,
           getAddress(convolution.image), w, getAddress(convolution.filter),
           window, algorithm, library.getWorkspace(), LibraryWorkspace::bytes,
           hasResidual ? &one : &zero, y,
           hasResidual ? getAddress(convolution.residual) : result, bias,
           getAddress(convolution.bias), activation, y, result);
  return {};
}
