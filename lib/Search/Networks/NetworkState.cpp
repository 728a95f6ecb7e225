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
// A configuration is a sequence of programs, one for each layer. Within a layer
// the state is a node of a trie of programs; which steps qualify is determined
// by making them, once per shape, and kept in the trie.
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

/// A program for the layers of one shape, made. Nodes are made once, never
/// changed afterwards, and shared by all layers of the shape.
struct ProgramNode {
  /// From the root of the trie.
  LayerProgram program;
  /// Before weights are renewed: what further steps go on from.
  OwningOpRef<ModuleOp> module;
  /// The operations in `module` that the layer consists of: one, or two after a
  /// split.
  SmallVector<linalg::LinalgOp, 2> parts;
  double macs = 0, params = 0;
  /// Of the program of loops. 0 marks a program that does not qualify.
  uint64_t hash = 0;
  /// What may come next, and the nodes of it: `unknown` until it is tried,
  /// `illegal` where it does not qualify.
  std::vector<ProgramStep> choices;
  /// By choice; parallel to `choices`.
  std::vector<int32_t> next;
  static constexpr int32_t unknown = -1, illegal = -2;
  bool isListed = false;
};

/// What the states of one root share. The trie. It grows while states are
/// explored, so states of one root must stay in one thread.
class ProgramTable {
public:
  explicit ProgramTable(std::shared_ptr<const NetworkProblem> problem);

  const NetworkProblem &getProblem() const { return *problem; }
  const ProgramNode &get(uint32_t node) const { return *nodes[node]; }
  /// The node of the empty program. The first nodes are the roots, in the order
  /// of the shapes.
  uint32_t getRoot(unsigned shape) const { return shape; }
  /// The node after a choice, if it qualifies.
  std::optional<uint32_t> getNext(uint32_t node, uint32_t choice);
  /// The steps that may follow; listed on demand.
  ArrayRef<ProgramStep> getChoices(uint32_t node);

private:
  void finish(ProgramNode &node);
  std::unique_ptr<ProgramNode> make(const ProgramNode &from,
                                    const ProgramStep &step);

  std::shared_ptr<const NetworkProblem> problem;
  /// Of its own, without threads: the search may run on a thread that must not
  /// touch the context of the pass.
  MLIRContext context;
  std::vector<std::unique_ptr<ProgramNode>> nodes;
};

/// Plain data but for the shared table, so assigning is cheap.
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
  /// Kind 0 is `keep`; the others are the kinds of steps.
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

/// Everything that the layers' modules and the steps on them need.
static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  registry.insert<KasCPUDialect>();
  registerTransformDialectExtension(registry);
  return registry;
}

/// Deterministic on every machine, unlike llvm::hash_value.
static uint64_t hashText(StringRef text) {
  return RandomStream(0, std::string_view(text.data(), text.size())).bits(0);
}

/// One root per shape: the layer as it is.
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
/// not qualify. Works on a copy, since further steps go on from the operations
/// with their old weights.
void ProgramTable::finish(ProgramNode &node) {
  IRMapping mapping;
  OwningOpRef<ModuleOp> copy =
      cast<ModuleOp>(ModuleOp(node.module.get())->clone(mapping));
  // The operations in the copy.
  SmallVector<linalg::LinalgOp, 2> parts;
  for (linalg::LinalgOp part : node.parts)
    parts.push_back(
        cast<linalg::LinalgOp>(mapping.lookup(part.getOperation())));
  IRRewriter rewriter(&context);
  std::string text;
  if (failed(finishProgram(rewriter, parts, node.program, text)))
    return;
  auto layer = copy->lookupSymbol<func::FuncOp>(layerFunctionName);
  node.macs = countMACs(layer);
  // Data is the first argument and `init` the last; weights are in between.
  for (Type type : layer.getArgumentTypes().drop_front().drop_back())
    node.params += static_cast<double>(cast<ShapedType>(type).getNumElements());
  text.clear();
  llvm::raw_string_ostream(text) << *copy;
  // By the text of the loops: programs that come to the same loops have the
  // same hash. Never 0.
  node.hash = hashText(text) | 1;
}

/// Null if the step does not qualify, or the weights cannot be renewed.
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
  // `finish` has left 0.
  return node->hash ? std::move(node) : nullptr;
}

/// Empty at the limit of steps.
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

/// `choice` is an index into `getChoices(node)`. Made at the first call.
std::optional<uint32_t> ProgramTable::getNext(uint32_t index, uint32_t choice) {
  ProgramNode &node = *nodes[index];
  int32_t &next = node.next[choice];
  // Nodes are on the heap, so `node` and `next` stay valid when `nodes` grows.
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

/// After the last layer `node` keeps its value, which nobody reads.
void NetworkState::open() {
  if (!isTerminal())
    node = table->getRoot(table->getProblem().layers[done.size()].shape);
}

/// `keep` is always possible, so there are no dead ends. Looking for moves of a
/// kind makes programs, which is the expensive part.
std::optional<Move> NetworkState::nextMove(unsigned kind,
                                           std::optional<Move> previous) const {
  if (isTerminal())
    return std::nullopt;
  if (kind == 0)
    return previous ? std::nullopt : std::optional(Move{0, 0});
  ArrayRef<ProgramStep> choices = table->getChoices(node);
  for (uint32_t code = previous ? previous->code + 1 : 0; code < choices.size();
       ++code)
    // Steps that do not qualify are passed over.
    if (choices[code].kind == static_cast<StepKind>(kind - 1) &&
        table->getNext(node, code))
      return Move{kind, code};
  return std::nullopt;
}

/// Half of the programs end at each step; else kinds are equally probable.
/// `keep` is as likely as all steps together: otherwise most layers would get
/// programs of the maximal length. Kinds are drawn without replacement until
/// one has a move.
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

/// Kind 0 closes the layer, any other kind moves down the trie.
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

/// Equal for configurations with the same loops in all layers. Within a layer
/// the text of the program counts, too.
uint64_t NetworkState::key() const {
  uint64_t key = mixBits(done.size());
  for (uint32_t layer : done)
    key = mixBits(key ^ table->get(layer).hash);
  if (isTerminal())
    return key;
  // What can follow depends on how many steps there were, and on the last.
  const ProgramNode &open = table->get(node);
  key = mixBits(key ^ open.hash);
  // Programs with the same loops may differ in what may follow.
  return mixBits(key ^ hashText(toString(open.program)));
}

/// Costs are sums over the layers, plus that of the rest of the network.
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
    // Relative to the layer as it was, so layers of any size have features of
    // the same range.
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
