//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Modules of MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PYTHON_EXTENSION_MODULE_H
#define KAS_PYTHON_EXTENSION_MODULE_H

#include "Functions.h"
#include "kas-c/Search.h"

namespace kas::python {

class Module {
public:
  using Array = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

  Module(const std::string &text, const std::string &name) {
    Diagnostics diagnostics;
    {
      nb::gil_scoped_release release;
      module.reset(kasModuleParse(text.data(), text.size(), name.c_str(),
                                  diagnostics.sink()));
    }
    diagnostics.check(module != nullptr);
  }

  std::string print(bool generic) {
    Text text;
    nb::gil_scoped_release release;
    kasModulePrint(module.get(), generic, text.stream());
    return text.take();
  }
  nb::bytes toBytecode() {
    std::string bytes = read([&](KasStream stream, KasDiagnostics sink) {
      return kasModuleWriteBytecode(module.get(), stream, sink);
    });
    return nb::bytes(bytes.data(), bytes.size());
  }
  void verify() {
    run([&](KasDiagnostics sink) {
      return kasModuleVerify(module.get(), sink);
    });
  }
  /// What the passes had to say.
  std::vector<Diagnostic> runPasses(const std::string &pipeline,
                                    bool verifyEach) {
    return run([&](KasDiagnostics sink) {
      return kasModuleRunPassesWith(module.get(), pipeline.c_str(),
                                    {verifyEach}, sink);
    });
  }
  /// The layers that the operator of `text` does not fit, as remarks.
  std::vector<Diagnostic> substitute(const std::string &text,
                                     const std::string &space,
                                     const std::vector<std::string> &layers,
                                     const std::string &binding) {
    std::vector<const char *> names;
    for (const std::string &layer : layers)
      names.push_back(layer.c_str());
    return run([&](KasDiagnostics sink) {
      return kasModuleSubstitute(
          module.get(), text.data(), text.size(),
          {space.c_str(), names.data(), names.size(), binding.c_str()}, sink);
    });
  }
  std::string getSymbolText(const std::string &name) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasModuleGetText(module.get(), name.c_str(), stream, sink);
    });
  }
  std::string listSymbols() {
    Text text;
    nb::gil_scoped_release release;
    kasModuleListSymbols(module.get(), text.stream());
    return text.take();
  }

  std::string describeSpace(const std::optional<std::string> &space) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasSpaceDescribe(module.get(), getPointer(space), stream, sink);
    });
  }
  void setLimit(const std::optional<std::string> &space,
                const std::string &name,
                const std::optional<std::string> &value) {
    run([&](KasDiagnostics sink) {
      return kasSpaceSetLimit(module.get(), getPointer(space), name.c_str(),
                              getPointer(value), sink);
    });
  }
  std::string findMember(const std::optional<std::string> &space,
                         Module &operators, const std::string &name) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasSpaceFindMember(module.get(), getPointer(space),
                                operators.get(), name.c_str(), stream, sink);
    });
  }
  std::string describe(const std::string &name) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasOperatorDescribe(module.get(), name.c_str(), stream, sink);
    });
  }
  std::string getShapes(const std::string &name, const std::string &binding) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasOperatorGetShapes(module.get(), name.c_str(), binding.c_str(),
                                  stream, sink);
    });
  }
  std::string getEffectiveConvolution(const std::string &name,
                                      const std::string &binding,
                                      int64_t limit) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasOperatorGetEffectiveConvolution(
          module.get(), name.c_str(), binding.c_str(), limit, stream, sink);
    });
  }
  std::string getAxes(const std::string &name, const std::string &binding) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasOperatorGetAxes(module.get(), name.c_str(), binding.c_str(),
                                stream, sink);
    });
  }
  std::string findLookahead(const std::string &name, const std::string &binding,
                            int64_t output, int64_t input, int64_t stride) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasOperatorFindLookahead(module.get(), name.c_str(),
                                      binding.c_str(), output, input, stride,
                                      stream, sink);
    });
  }
  std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>
  getCost(const std::string &name, const std::string &binding) {
    KasCost cost = {};
    run([&](KasDiagnostics sink) {
      return kasOperatorGetCost(module.get(), name.c_str(), binding.c_str(),
                                &cost, sink);
    });
    return {cost.macs,          cost.flops,      cost.flopsUnprepared,
            cost.trainingFlops, cost.parameters, cost.bytes};
  }
  int64_t getExistingFlops(const std::string &name,
                           const std::string &binding) {
    int64_t flops = 0;
    run([&](KasDiagnostics sink) {
      return kasOperatorGetExistingFlops(module.get(), name.c_str(),
                                         binding.c_str(), &flops, sink);
    });
    return flops;
  }
  double getFanIn(const std::string &name, const std::string &binding) {
    double fanIn = 0;
    run([&](KasDiagnostics sink) {
      return kasOperatorGetFanIn(module.get(), name.c_str(), binding.c_str(),
                                 &fanIn, sink);
    });
    return fanIn;
  }
  double predictTime(const std::string &name, const std::string &binding) {
    double milliseconds = 0;
    run([&](KasDiagnostics sink) {
      return kasOperatorPredictTime(module.get(), name.c_str(), binding.c_str(),
                                    &milliseconds, sink);
    });
    return milliseconds;
  }
  std::string getText(const std::string &name, KasOperatorText kind,
                      const std::optional<std::string> &binding) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasOperatorGetText(module.get(), name.c_str(), kind,
                                getPointer(binding), stream, sink);
    });
  }
  /// The caller has checked the shapes.
  void evaluate(const std::string &name, const std::string &binding,
                std::vector<Array> tensors) {
    evaluateWith(kasOperatorEvaluate, name, binding, tensors);
  }
  Function *compile(const std::string &name, const std::string &binding,
                    unsigned threads, unsigned optLevel) {
    return compileWith([&](KasDiagnostics sink) {
      return kasOperatorCompile(module.get(), name.c_str(), binding.c_str(),
                                {threads, optLevel}, sink);
    });
  }
  /// Empty `binding`: `name` is a function.
  std::string checkExactly(const std::string &name,
                           const std::optional<std::string> &binding,
                           unsigned threads, unsigned optLevel, uint64_t seed,
                           unsigned draws) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      KasCompileOptions compile = {threads, optLevel};
      KasExactOptions options = {seed, draws};
      return binding ? kasOperatorCheckExactly(module.get(), name.c_str(),
                                               binding->c_str(), compile,
                                               options, stream, sink)
                     : kasModuleCheckExactly(module.get(), name.c_str(),
                                             compile, options, stream, sink);
    });
  }
  Function *compileGradient(const std::string &name, const std::string &binding,
                            size_t tensor, KasGradientStrategy strategy,
                            unsigned threads, unsigned optLevel) {
    return compileWith([&](KasDiagnostics sink) {
      return kasOperatorCompileGradient(module.get(), name.c_str(),
                                        binding.c_str(), tensor, strategy,
                                        {threads, optLevel}, sink);
    });
  }
  std::string describeKernel(const std::string &name) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasKernelDescribe(module.get(), name.c_str(), stream, sink);
    });
  }
  std::string getKernelShapes(const std::string &name,
                              const std::string &binding, int64_t batch) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasKernelGetShapes(module.get(), name.c_str(), binding.c_str(),
                                batch, stream, sink);
    });
  }
  std::string kernelToPyTorch(const std::string &name,
                              const std::string &binding) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasKernelToPyTorch(module.get(), name.c_str(), binding.c_str(),
                                stream, sink);
    });
  }
  /// The caller has checked the shapes.
  void evaluateKernel(const std::string &name, const std::string &binding,
                      std::vector<Array> tensors) {
    evaluateWith(kasKernelEvaluate, name, binding, tensors);
  }
  Function *compileKernel(const std::string &name, const std::string &binding,
                          int64_t batch, bool gradient, unsigned threads,
                          unsigned optLevel) {
    auto compile = gradient ? kasKernelCompileGradient : kasKernelCompile;
    return compileWith([&](KasDiagnostics sink) {
      return compile(module.get(), name.c_str(), binding.c_str(), batch,
                     {threads, optLevel}, sink);
    });
  }
  Function *compileFunction(const std::string &name, unsigned threads,
                            unsigned optLevel, bool prepackWeights,
                            bool anyBatch, KasPrecision precision,
                            bool keepCode) {
    return compileWith([&](KasDiagnostics sink) {
      return kasModuleCompileWith(
          module.get(), name.c_str(), {threads, optLevel},
          {prepackWeights, anyBatch, precision, keepCode}, sink);
    });
  }

  /// Kept in the cache under the key, with the note, if there is one.
  Program *load(unsigned optLevel, const std::optional<std::string> &key,
                const std::string &note) {
    KasProgram *program = nullptr;
    run([&](KasDiagnostics sink) {
      program = key ? kasModuleLoadAs(module.get(), optLevel, key->c_str(),
                                      note.c_str(), sink)
                    : kasModuleLoad(module.get(), optLevel, sink);
      return program != nullptr;
    });
    return new Program(program);
  }
  std::string tune(const std::string &name, const std::string &database,
                   const std::string &network, int64_t trials, int64_t runs,
                   uint64_t seed, unsigned threads) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasModuleTune(
          module.get(), name.c_str(),
          {database.c_str(), network.c_str(), trials, runs, seed, threads},
          stream, sink);
    });
  }

  KasModule *get() const { return module.get(); }

private:
  template <typename Compile>
  Function *compileWith(Compile compile) {
    KasFunction *function = nullptr;
    run([&](KasDiagnostics sink) {
      function = compile(sink);
      return function != nullptr;
    });
    return new Function(function);
  }
  template <typename Evaluate>
  void evaluateWith(Evaluate evaluate, const std::string &name,
                    const std::string &binding, std::vector<Array> &tensors) {
    std::vector<float *> pointers;
    for (Array &tensor : tensors)
      pointers.push_back(tensor.data());
    run([&](KasDiagnostics sink) {
      return evaluate(module.get(), name.c_str(), binding.c_str(),
                      pointers.data(), sink);
    });
  }

  struct Destroy {
    void operator()(KasModule *module) const { kasModuleDestroy(module); }
  };
  std::unique_ptr<KasModule, Destroy> module;
};

/// Adds the class, and what belongs to it.
void addModule(nb::module_ &m);

} // namespace kas::python

#endif // KAS_PYTHON_EXTENSION_MODULE_H
