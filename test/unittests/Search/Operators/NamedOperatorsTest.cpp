//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each named operator is a member of its space (spaces/named.mlir), or a rule
// says why it is not.
//
//===----------------------------------------------------------------------===//

#include "Problems.h"
#include "Sameness.h"
#include "kas/Library/Operators.h"
#include "kas/Search/Core/Enumerator.h"
#include "mlir/IR/SymbolTable.h"
#include <cstdlib>

using namespace kas;
using namespace kas::library;
using namespace kas::search;
using namespace kas::test;

namespace {

/// Operators that the search cannot make, and the rules of
/// docs/internals/canonical-form.md, or the primitives, that leave them out.
struct Outsider {
  llvm::StringLiteral name, reason;
};
constexpr Outsider outsiders[] = {
    {"conv2d_input_bottleneck",
     "T2, D: a channel is strided; the search strides positions and windows"},
    {"conv2d_spatial_bottleneck",
     "T2: an output is strided by a coefficient, and no window"},
    {"max_pool2d", "reductions of the search are sums"},
};

const Outsider *lookupOutsider(llvm::StringRef name) {
  const Outsider *found = llvm::find_if(
      outsiders, [&](const Outsider &entry) { return entry.name == name; });
  return found == std::end(outsiders) ? nullptr : found;
}

class NamedOperatorsTest : public ProblemTest,
                           public testing::WithParamInterface<std::string> {
protected:
  NamedOperatorsTest()
      : spaces(mlir::parseSourceFile<mlir::ModuleOp>(
            KAS_SPACES_DIRECTORY "/named.mlir", &context)),
        library(parseNamedOperators(&context)) {}

  mlir::OwningOpRef<mlir::ModuleOp> spaces, library;
};

struct Member {
  Path path;
  uint64_t key = 0;
};

} // namespace

/// The values of the symbols of `op`, by name, at `binding` of the problem.
static Binding getBinding(OperatorOp op, const SearchProblem &problem,
                          const Binding &values) {
  SymbolSet symbols = op.getSymbolSet();
  Binding binding;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol) {
    std::optional<unsigned> index =
        problem.symbols.lookup(symbols.getName(symbol));
    EXPECT_TRUE(index) << "no symbol " << symbols.getName(symbol).str();
    binding.push_back(values[index.value_or(0)]);
  }
  return binding;
}

static uint64_t getNumParams(const ConcreteOperator &op) {
  uint64_t params = 0;
  for (const auto &weight : op.weights) {
    uint64_t product = 1;
    for (unsigned coord : weight)
      product *= op.coords[coord].size;
    params += product;
  }
  return params;
}

/// `op` at each binding of `problem`; nothing for one with `max`.
static std::optional<ConcreteOperators>
makeConcreteAtAll(OperatorOp op, const SearchProblem &problem) {
  ConcreteOperators result;
  for (const Binding &binding : problem.bindings) {
    auto concrete = makeConcrete(op, getBinding(op, problem, binding));
    if (!concrete)
      return std::nullopt;
    // Which dimensions are unordered is said by the space. A mean is a sum, as
    // constant factors do not count.
    for (auto [axis, dimension] :
         llvm::zip_equal(concrete->outputs, problem.outputs))
      axis.isUnordered = dimension.isUnordered;
    for (auto [axis, dimension] :
         llvm::zip_equal(concrete->inputs, problem.inputs))
      axis.isUnordered = dimension.isUnordered;
    concrete->divisor = 1;
    result.push_back(std::move(*concrete));
  }
  return result;
}

static ConcreteOperators makeConcreteAtAll(const SearchProblem &problem,
                                           const OperatorGraph &graph) {
  ConcreteOperators result;
  for (const Binding &binding : problem.bindings)
    result.push_back(makeConcrete(problem, graph, binding));
  return result;
}

/// The solution that is the same as `op`: among those of as many parameters,
/// as neither has any that are redundant.
static std::optional<Member>
findMember(std::shared_ptr<const SearchProblem> problem, OperatorOp op,
           uint64_t &total) {
  auto wanted = makeConcreteAtAll(op, *problem);
  if (!wanted)
    return std::nullopt;
  std::optional<Member> member;
  uint64_t params = 0;
  for (const ConcreteOperator &concrete : *wanted)
    params += getNumParams(concrete);
  Enumerator enumerator(makeGraphState(problem), {});
  auto status =
      enumerator.run({}, [&](llvm::ArrayRef<Move> path, const State &state) {
        ++total;
        auto graph =
            std::static_pointer_cast<const OperatorGraph>(state.getSolution());
        if (graph->weights.size() != wanted->front().weights.size() ||
            graph->cost.params != params ||
            !areSame(*wanted, makeConcreteAtAll(*problem, *graph)))
          return;
        member = Member{Path(path.begin(), path.end()), graph->key()};
        enumerator.stop();
      });
  EXPECT_EQ(status, member ? Enumerator::Status::Interrupted
                           : Enumerator::Status::Complete);
  return member;
}

/// Makes the moves of `member` one by one, each of which must be given.
static void replay(std::shared_ptr<const SearchProblem> problem,
                   const Member &member) {
  std::unique_ptr<State> state = makeGraphState(std::move(problem));
  for (Move move : member.path) {
    llvm::SmallVector<Move> moves;
    state->getMoves(moves);
    ASSERT_TRUE(llvm::is_contained(moves, move));
    state->apply(move);
  }
  ASSERT_TRUE(state->isTerminal());
  EXPECT_EQ(state->key(), member.key);
}

/// After some ten thousand operators of its space.
static bool isSlow(llvm::StringRef name) { return name == "stacked_conv2d"; }

TEST_P(NamedOperatorsTest, IsAMemberOrSaysWhyNot) {
  if (isSlow(GetParam()) && !std::getenv("KAS_SLOW_TESTS"))
    GTEST_SKIP() << "takes a minute";
  auto space = mlir::SymbolTable(*spaces).lookup<SpaceOp>(GetParam());
  auto op = mlir::SymbolTable(*library).lookup<OperatorOp>(GetParam());
  ASSERT_TRUE(space && op) << "spaces/named.mlir has no space of that name";
  auto problem =
      std::make_shared<const SearchProblem>(SearchProblem::get(space));
  uint64_t total = 0;
  std::optional<Member> member = findMember(problem, op, total);
  if (const Outsider *outsider = lookupOutsider(GetParam())) {
    EXPECT_FALSE(member) << "is a member, but was said not to be: "
                         << outsider->reason.str();
    return;
  }
  ASSERT_TRUE(member) << "none of " << total << " operators";
  replay(problem, *member);
}

/// All of the library, so that none is forgotten.
INSTANTIATE_TEST_SUITE_P(
    Library, NamedOperatorsTest,
    testing::ValuesIn(llvm::map_to_vector(getNamedOperators(),
                                          [](const NamedOperator &op) {
                                            return op.name.str();
                                          })),
    [](const testing::TestParamInfo<std::string> &info) { return info.param; });

TEST(NamedOperatorsListTest, OutsidersAreNamedOperators) {
  for (const Outsider &outsider : outsiders)
    EXPECT_TRUE(lookupNamedOperator(outsider.name)) << outsider.name.str();
}
