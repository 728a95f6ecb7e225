//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of a search for transformations: layer after layer, step after step
// (after Turner et al., ASPLOS 2021).
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Networks/NetworkState.h"
#include "kas/Dialect/Kas/TransformOps/KasTransformOps.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Networks/Scores/Proxies.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/Bytecode.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::networks;
using namespace kas::search;
using namespace mlir;

namespace {

/// A program for the layers of one shape, made.
struct ProgramNode {
  LayerProgram program;
  /// Before weights are renewed: what further steps go on from.
  OwningOpRef<ModuleOp> module;
  SmallVector<linalg::LinalgOp, 2> parts;
  double macs = 0, params = 0;
  /// Of the program of loops.
  uint64_t hash = 0;
  /// What may come next, and the nodes of it: `unknown` until it is tried,
  /// `illegal` where it does not qualify.
  std::vector<ProgramStep> choices;
  std::vector<int32_t> next;
  static constexpr int32_t unknown = -1, illegal = -2;
  bool isListed = false;
};

/// What the states of one root share.
class ProgramTable {
public:
  explicit ProgramTable(std::shared_ptr<const NetworkProblem> problem);

  const NetworkProblem &getProblem() const { return *problem; }
  const ProgramNode &get(uint32_t node) const { return *nodes[node]; }
  /// The node of the empty program.
  uint32_t getRoot(unsigned shape) const { return shape; }
  /// The node after a choice, if it qualifies.
  std::optional<uint32_t> getNext(uint32_t node, uint32_t choice);
  ArrayRef<ProgramStep> getChoices(uint32_t node);

private:
  void finish(ProgramNode &node);
  std::unique_ptr<ProgramNode> make(const ProgramNode &from,
                                    const ProgramStep &step);

  std::shared_ptr<const NetworkProblem> problem;
  MLIRContext context;
  std::vector<std::unique_ptr<ProgramNode>> nodes;
};

class NetworkState final : public State {
public:
  explicit NetworkState(std::shared_ptr<ProgramTable> table)
      : table(std::move(table)) {
    open();
  }

  std::unique_ptr<State> clone() const override {
    return std::make_unique<NetworkState>(*this);
  }
  void assign(const State &other) override {
    *this = static_cast<const NetworkState &>(other);
  }
  unsigned getNumKinds() const override { return 1 + numStepKinds; }
  StringRef getKindName(unsigned kind) const override {
    return kind == 0 ? "keep" : getName(static_cast<StepKind>(kind - 1));
  }
  std::optional<Move> nextMove(unsigned kind,
                               std::optional<Move> previous) const override;
  std::optional<Move> drawMove(Random &random) const override;
  void apply(Move move) override;
  bool isTerminal() const override {
    return done.size() == table->getProblem().layers.size();
  }
  std::shared_ptr<const Solution> getSolution() const override;
  uint64_t key() const override;

private:
  /// Begins the next layer, if there is one.
  void open();

  std::shared_ptr<ProgramTable> table;
  /// The nodes of layers that are done, and of the one that is not.
  std::vector<uint32_t> done;
  uint32_t node = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  registry.insert<KasCPUDialect>();
  registerTransformDialectExtension(registry);
  return registry;
}

static uint64_t hashText(StringRef text) {
  return RandomStream(0, std::string_view(text.data(), text.size())).bits(0);
}

ProgramTable::ProgramTable(std::shared_ptr<const NetworkProblem> given)
    : problem(std::move(given)),
      context(makeRegistry(), MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  for (const std::string &bytecode : problem->modules) {
    auto node = std::make_unique<ProgramNode>();
    node->module = readBytecode(bytecode, &context);
    assert(node->module && "a layer was written before");
    auto layer = node->module->lookupSymbol<func::FuncOp>(layerFunctionName);
    node->parts = {findConvolutions(layer).front()};
    finish(*node);
    nodes.push_back(std::move(node));
  }
}

/// Computes what `node` costs, once it has its weights; without a text it does
/// not qualify.
void ProgramTable::finish(ProgramNode &node) {
  IRMapping mapping;
  OwningOpRef<ModuleOp> copy =
      cast<ModuleOp>(ModuleOp(node.module.get())->clone(mapping));
  SmallVector<linalg::LinalgOp, 2> parts;
  for (linalg::LinalgOp part : node.parts)
    parts.push_back(
        cast<linalg::LinalgOp>(mapping.lookup(part.getOperation())));
  IRRewriter rewriter(&context);
  std::string text;
  if (failed(finishProgram(rewriter, parts, node.program, text)))
    return;
  auto layer = copy->lookupSymbol<func::FuncOp>(layerFunctionName);
  node.macs = countProducts(layer);
  for (Type type : layer.getArgumentTypes().drop_front().drop_back())
    node.params += static_cast<double>(cast<ShapedType>(type).getNumElements());
  text.clear();
  llvm::raw_string_ostream(text) << *copy;
  node.hash = hashText(text) | 1;
}

std::unique_ptr<ProgramNode> ProgramTable::make(const ProgramNode &from,
                                                const ProgramStep &step) {
  auto node = std::make_unique<ProgramNode>();
  node->program = from.program;
  node->program.push_back(step);
  IRMapping mapping;
  node->module = cast<ModuleOp>(ModuleOp(from.module.get())->clone(mapping));
  for (linalg::LinalgOp part : from.parts)
    node->parts.push_back(
        cast<linalg::LinalgOp>(mapping.lookup(part.getOperation())));
  IRRewriter rewriter(&context);
  std::string reason;
  if (failed(applyStep(rewriter, node->parts, step, reason)))
    return nullptr;
  finish(*node);
  return node->hash ? std::move(node) : nullptr;
}

ArrayRef<ProgramStep> ProgramTable::getChoices(uint32_t index) {
  ProgramNode &node = *nodes[index];
  if (!node.isListed) {
    node.isListed = true;
    if (node.program.size() < problem->limits.steps)
      node.choices =
          listSteps(node.parts, node.program, problem->limits.choices);
    node.next.assign(node.choices.size(), ProgramNode::unknown);
  }
  return node.choices;
}

std::optional<uint32_t> ProgramTable::getNext(uint32_t index, uint32_t choice) {
  ProgramNode &node = *nodes[index];
  int32_t &next = node.next[choice];
  if (next == ProgramNode::unknown) {
    std::unique_ptr<ProgramNode> made = make(node, node.choices[choice]);
    next = made ? static_cast<int32_t>(nodes.size()) : ProgramNode::illegal;
    if (made)
      nodes.push_back(std::move(made));
  }
  return next == ProgramNode::illegal ? std::nullopt
                                      : std::optional<uint32_t>(next);
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

void NetworkState::open() {
  if (!isTerminal())
    node = table->getRoot(table->getProblem().layers[done.size()].shape);
}

std::optional<Move> NetworkState::nextMove(unsigned kind,
                                           std::optional<Move> previous) const {
  if (isTerminal())
    return std::nullopt;
  if (kind == 0)
    return previous ? std::nullopt : std::optional(Move{0, 0});
  ArrayRef<ProgramStep> choices = table->getChoices(node);
  for (uint32_t code = previous ? previous->code + 1 : 0; code < choices.size();
       ++code)
    if (choices[code].kind == static_cast<StepKind>(kind - 1) &&
        table->getNext(node, code))
      return Move{kind, code};
  return std::nullopt;
}

/// Half of the programs end at each step; else kinds are equally probable.
std::optional<Move> NetworkState::drawMove(Random &random) const {
  if (isTerminal())
    return std::nullopt;
  SmallVector<unsigned, numStepKinds> kinds;
  for (unsigned kind = 1; kind <= numStepKinds; ++kind)
    kinds.push_back(kind);
  bool ends = random.below(2) == 0;
  while (!ends && !kinds.empty()) {
    size_t position = random.below(kinds.size());
    SmallVector<Move, 16> moves;
    for (auto move = nextMove(kinds[position], std::nullopt); move;
         move = nextMove(kinds[position], move))
      moves.push_back(*move);
    if (!moves.empty())
      return moves[random.below(moves.size())];
    kinds.erase(kinds.begin() + position);
  }
  return Move{0, 0};
}

void NetworkState::apply(Move move) {
  if (move.kind != 0) {
    std::optional<uint32_t> next = table->getNext(node, move.code);
    assert(next && "a move that this state gave");
    node = *next;
    return;
  }
  done.push_back(node);
  open();
}

uint64_t NetworkState::key() const {
  uint64_t key = mixBits(done.size());
  for (uint32_t layer : done)
    key = mixBits(key ^ table->get(layer).hash);
  if (isTerminal())
    return key;
  // What can follow depends on how many steps there were, and on the last.
  const ProgramNode &open = table->get(node);
  key = mixBits(key ^ open.hash);
  return mixBits(key ^ hashText(toString(open.program)));
}

std::shared_ptr<const Solution> NetworkState::getSolution() const {
  const NetworkProblem &problem = table->getProblem();
  auto solution = std::make_shared<NetworkConfiguration>();
  solution->macs = problem.otherMacs;
  solution->params = problem.otherParams;
  for (auto [layer, index] : llvm::zip_equal(problem.layers, done)) {
    const ProgramNode &made = table->get(index);
    const ProgramNode &original = table->get(table->getRoot(layer.shape));
    solution->programs.push_back(made.program);
    solution->macs += made.macs;
    solution->params += made.params;
    solution->features.push_back(made.macs / original.macs);
    solution->features.push_back(made.params / original.params);
  }
  solution->hash = key();
  return solution;
}

std::unique_ptr<State>
kas::search::makeNetworkState(std::shared_ptr<const NetworkProblem> problem) {
  return std::make_unique<NetworkState>(
      std::make_shared<ProgramTable>(std::move(problem)));
}
