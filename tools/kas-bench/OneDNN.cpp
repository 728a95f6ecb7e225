//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peer.h"
#ifdef KAS_HAS_ONEDNN
#define DNNL_ENABLE_EXCEPTIONS 0
#include "oneapi/dnnl/dnnl.hpp"
#include <dlfcn.h>
#endif

using namespace kas;
using namespace kas::execution;

PeerLayer::~PeerLayer() = default;

#ifndef KAS_HAS_ONEDNN

llvm::ArrayRef<llvm::StringLiteral> kas::getPeerNames() { return {}; }

std::vector<std::unique_ptr<PeerLayer>>
kas::makeOneDNNLayers(const Layer &, const Tensor &, const Tensor &, unsigned,
                      llvm::StringRef) {
  return {};
}

#else

using dnnl::memory;

llvm::ArrayRef<llvm::StringLiteral> kas::getPeerNames() {
  static constexpr llvm::StringLiteral names[] = {"onednn"};
  return names;
}

namespace {

/// The descriptors of one primitive: what kas has, and what oneDNN wants.
struct Layouts {
  memory::desc input, weight, output;
};

class OneDNNLayer final : public PeerLayer {
public:
  /// `wanted` comes of `primitive`'s description.
  OneDNNLayer(llvm::StringRef name, const dnnl::engine &engine,
              const dnnl::primitive &primitive, const Layouts &natural,
              const Layouts &wanted, const Tensor &input, const Tensor &weight)
      : name(name), engine(engine), stream(engine), primitive(primitive),
        naturalOutput(natural.output) {
    naturalInput =
        memory(natural.input, engine, const_cast<float *>(input.data()));
    packedInput = naturalInput;
    if (wanted.input != natural.input) {
      packedInput = memory(wanted.input, engine);
      inputReorder = dnnl::reorder(naturalInput, packedInput);
    }
    if (wanted.output != natural.output)
      packedOutput = memory(wanted.output, engine);
    packedWeight = memory(wanted.weight, engine);
    memory given(natural.weight, engine, const_cast<float *>(weight.data()));
    dnnl::reorder(given, packedWeight).execute(stream, given, packedWeight);
    stream.wait();
  }

  llvm::StringRef getName() const override { return name; }

  void run(Tensor &output) override {
    if (inputReorder)
      inputReorder.execute(stream, naturalInput, packedInput);
    memory result(naturalOutput, engine, output.data());
    memory &own = packedOutput ? packedOutput : result;
    primitive.execute(stream, {{DNNL_ARG_SRC, packedInput},
                               {DNNL_ARG_WEIGHTS, packedWeight},
                               {DNNL_ARG_DST, own}});
    if (packedOutput)
      dnnl::reorder(packedOutput, result).execute(stream, packedOutput, result);
    stream.wait();
  }

private:
  std::string name;
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::primitive primitive;
  memory::desc naturalOutput;
  memory naturalInput, packedInput, packedWeight, packedOutput;
  dnnl::reorder inputReorder;
};

using Tag = memory::format_tag;

memory::dims getDims(llvm::ArrayRef<int64_t> shape) {
  return memory::dims(shape.begin(), shape.end());
}

memory::desc describe(const memory::dims &dims, Tag tag) {
  return memory::desc(dims, memory::data_type::f32, tag);
}

/// `tag` is the layout of input and output: that of kas, or any.
std::unique_ptr<PeerLayer> makeMatmul(const dnnl::engine &engine,
                                      const Layer &layer, const Tensor &input,
                                      const Tensor &weight) {
  memory::dims m = getDims(layer.input), w = getDims(layer.weight),
               y = getDims(layer.output);
  Layouts natural = {describe(m, Tag::ab), describe(w, Tag::ab),
                     describe(y, Tag::ab)};
  dnnl::matmul::primitive_desc description(
      dnnl::matmul::desc(natural.input, describe(w, Tag::any), natural.output),
      engine);
  Layouts wanted = {description.src_desc(), description.weights_desc(),
                    description.dst_desc()};
  return std::make_unique<OneDNNLayer>("onednn", engine,
                                       dnnl::matmul(description), natural,
                                       wanted, input, weight);
}

/// Kernels as [G, O/G, I/G, kh, kw], or without groups [O, I, kh, kw].
memory::dims getKernelDims(const Layer &layer) {
  int64_t outputs = layer.output[1], inputs = layer.input[1];
  bool isPointwise = layer.weight.size() == 2;
  int64_t height = isPointwise ? 1 : layer.weight[layer.weight.size() - 2];
  int64_t width = isPointwise ? 1 : layer.weight.back();
  if (layer.groups == 1)
    return {outputs, inputs, height, width};
  return {layer.groups, outputs / layer.groups, inputs / layer.groups, height,
          width};
}

std::unique_ptr<PeerLayer> makeConvolution(const dnnl::engine &engine,
                                           const Layer &layer, bool isNatural,
                                           const Tensor &input,
                                           const Tensor &weight) {
  memory::dims x = getDims(layer.input), y = getDims(layer.output),
               w = getKernelDims(layer);
  Layouts natural = {describe(x, Tag::nchw),
                     describe(w, w.size() == 5 ? Tag::goihw : Tag::oihw),
                     describe(y, Tag::nchw)};
  Tag tag = isNatural ? Tag::nchw : Tag::any;
  memory::dims strides(2, layer.stride), dilations(2, layer.dilation - 1);
  memory::dims before, after;
  for (unsigned axis : {0, 1}) {
    int64_t window = layer.dilation * (w[w.size() - 2 + axis] - 1) + 1;
    before.push_back(window / 2);
    after.push_back((y[2 + axis] - 1) * layer.stride + window - x[2 + axis] -
                    before.back());
  }
  dnnl::convolution_forward::primitive_desc description(
      dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference,
                                      dnnl::algorithm::convolution_direct,
                                      describe(x, tag), describe(w, Tag::any),
                                      describe(y, tag), strides, dilations,
                                      before, after),
      engine);
  Layouts wanted = {description.src_desc(), description.weights_desc(),
                    description.dst_desc()};
  return std::make_unique<OneDNNLayer>(
      isNatural ? "onednn-nchw" : "onednn-blocked", engine,
      dnnl::convolution_forward(description), natural, wanted, input, weight);
}

/// Debian's oneDNN runs on GCC's OpenMP, kas on LLVM's: the functions of both
/// have one name, so ask for the one of that library.
void setThreads(unsigned threads) {
  void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library)
    return;
  if (void *symbol = dlsym(library, "omp_set_num_threads"))
    reinterpret_cast<void (*)(int)>(symbol)(static_cast<int>(threads));
  dlclose(library);
}

} // namespace

std::vector<std::unique_ptr<PeerLayer>>
kas::makeOneDNNLayers(const Layer &layer, const Tensor &input,
                      const Tensor &weight, unsigned threads,
                      llvm::StringRef isa) {
  setThreads(threads);
  // It has an effect before the first primitive is made. AVX-512 is all there
  // is in `native`.
  if (isa == "avx2")
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  std::vector<std::unique_ptr<PeerLayer>> layers;
  if (layer.kind == Layer::Kind::Other)
    return layers;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  if (layer.kind == Layer::Kind::Matmul) {
    layers.push_back(makeMatmul(engine, layer, input, weight));
    return layers;
  }
  for (bool isNatural : {true, false})
    layers.push_back(makeConvolution(engine, layer, isNatural, input, weight));
  return layers;
}

#endif
