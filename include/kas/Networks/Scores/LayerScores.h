//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Zero-cost proxies of what takes the place of one layer of a network, from one
// run of the network: the input of each layer and the gradient of its output
// are kept, so that a candidate costs one layer.
//
// The gradient is that of the network with its own layer, so a score says what
// one change does, to first order; changes of several layers are taken as
// independent of each other. docs/guide/gradients.md has what that is worth,
// and a warning about what such scores are worth at all.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_SCORES_LAYERSCORES_H
#define KAS_NETWORKS_SCORES_LAYERSCORES_H

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Networks/Scores/Proxies.h"
#include "kas/Pipelines/CPU.h"
#include <map>
#include <memory>
#include <mutex>

namespace kas::networks {

struct LayerScoreOptions {
  /// Of all weights and labels that are not given.
  uint64_t seed = 0;
  bool normalize = false;
  /// Only `fisher`, `params` and `macs` of scores are wanted.
  bool onlyFisher = false;
  /// Of the code that runs.
  unsigned threads = 1;
};

/// What the proxies say about something at the place of a layer.
struct LayerScore {
  double fisher = 0, snip = 0, gradNorm = 0, synflow = 0, naswot = 0;
  /// Elements of weights, and multiply-adds.
  double params = 0, macs = 0;
};

/// The names by which `getProxy` knows them: `fisher`, `snip`, `grad-norm`,
/// `synflow`, `naswot`, `params`, `flops`, `ensemble`.
llvm::ArrayRef<llvm::StringLiteral> getProxyNames();

/// One number of `score`. `ensemble` is the mean of log(score / original) over
/// fisher, snip, grad-norm and synflow.
double getProxy(llvm::StringRef name, const LayerScore &score,
                const LayerScore &original);

/// A network, run once, that scores candidates for its layers.
class LayerScorer {
public:
  /// Compiles and runs `function` of `module`, which stays as it is, as
  /// `makeObservedFunction` has it. `given` may have arguments by name and
  /// `labels`.
  static llvm::Expected<std::unique_ptr<LayerScorer>>
  create(mlir::ModuleOp module, llvm::StringRef function,
         const execution::NamedTensors &given,
         const LayerScoreOptions &options);

  unsigned getNumLayers() const { return layers.size(); }
  llvm::StringRef getName(unsigned layer) const { return layers[layer].name; }
  /// A module of one's own with `@layer`, to be changed.
  mlir::OwningOpRef<mlir::ModuleOp> getModule(unsigned layer) const;
  /// The Fisher Potential of the layers of the network itself.
  llvm::ArrayRef<float> getFisher() const { return fisher; }
  /// The scores of the layer itself.
  const LayerScore &getOriginal(unsigned layer) const {
    return originals[layer];
  }

  /// Scores `@layer` of `candidate` in the place of a layer. Its weights are
  /// made as `kas.init` says, but that `weight` is the network's own. Compiles
  /// equal modules once, whatever layers they are for.
  llvm::Expected<LayerScore> score(unsigned layer, mlir::ModuleOp candidate);
  /// What has been compiled so far.
  unsigned getNumCompiled() const;

  /// One more of the same network, for another thread: it has modules in
  /// `context`, and shares what was observed and what is compiled.
  std::unique_ptr<LayerScorer> share(mlir::MLIRContext &context) const;

private:
  explicit LayerScorer(const LayerScoreOptions &options) : options(options) {}

  struct Observed {
    /// Shared by layers that read the same.
    std::shared_ptr<execution::Tensor> data, weight, init, gradient;
  };
  struct Compiled {
    execution::CompiledFunction plain;
    /// Without normalization, for synaptic flow.
    std::optional<execution::CompiledFunction> bare;
    double params = 0, macs = 0;
  };
  llvm::Expected<std::vector<Observed>>
  observe(mlir::ModuleOp module, llvm::StringRef function,
          const execution::NamedTensors &given, bool synflow);
  /// Of all scorers of a network.
  struct Cache {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<Compiled>> entries;
  };
  llvm::Expected<std::unique_ptr<Compiled>> recompile(unsigned layer,
                                                      mlir::ModuleOp candidate);
  llvm::Expected<Compiled *> compile(unsigned layer, mlir::ModuleOp candidate);
  llvm::Expected<llvm::SmallVector<execution::Tensor>>
  run(const execution::CompiledFunction &function, unsigned layer,
      const Observed &observed, bool magnitudes);

  LayerScoreOptions options;
  llvm::SmallVector<CutLayer> layers;
  std::vector<Observed> plain, flow;
  std::vector<float> fisher;
  std::vector<LayerScore> originals;
  std::shared_ptr<Cache> cache = std::make_shared<Cache>();
};

} // namespace kas::networks

#endif // KAS_NETWORKS_SCORES_LAYERSCORES_H
