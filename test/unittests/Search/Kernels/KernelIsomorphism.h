//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether two kernels are one, by a search for a bijection of their nodes: the
// oracle that the canonical hash of the sampler is compared with. It shares
// nothing with it but the plain data of kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_KERNELS_KERNELISOMORPHISM_H
#define TEST_UNITTESTS_SEARCH_KERNELS_KERNELISOMORPHISM_H

#include "kas/Search/Kernels/KernelGraph.h"
#include <map>

namespace kas {

/// Matches nodes from the outputs on; a commutative merge is tried both ways.
class KernelIsomorphism {
public:
  static bool areSame(const search::KernelGraph &a,
                      const search::KernelGraph &b) {
    if (a.nodes.size() != b.nodes.size() || a.groups != b.groups)
      return false;
    KernelIsomorphism search(a, b);
    auto last = static_cast<int>(a.nodes.size()) - 1;
    return search.match({{last, last}});
  }

private:
  KernelIsomorphism(const search::KernelGraph &a, const search::KernelGraph &b)
      : a(a), b(b), there(a.nodes.size(), -1), back(b.nodes.size(), -1) {}

  bool match(std::vector<std::pair<int, int>> open) {
    while (!open.empty()) {
      auto [i, j] = open.back();
      open.pop_back();
      if (there[i] == j)
        continue;
      if (there[i] >= 0 || back[j] >= 0 ||
          !haveSameStep(a.nodes[i], b.nodes[j]))
        return false;
      there[i] = j;
      back[j] = i;
      const search::KernelNode &x = a.nodes[i], &y = b.nodes[j];
      if (x.right >= 0 && x.commutes) {
        KernelIsomorphism other = *this;
        auto swapped = open;
        swapped.push_back({x.left, y.right});
        swapped.push_back({x.right, y.left});
        if (other.match(swapped))
          return true;
      }
      if (x.left >= 0)
        open.push_back({x.left, y.left});
      if (x.right >= 0)
        open.push_back({x.right, y.right});
    }
    return true;
  }

  bool haveSameStep(const search::KernelNode &x, const search::KernelNode &y) {
    if (x.step != y.step || x.dims != y.dims || x.amount != y.amount ||
        x.transposesLeft != y.transposesLeft ||
        x.transposesRight != y.transposesRight || x.isScaled != y.isScaled ||
        x.windows != y.windows || (x.left < 0) != (y.left < 0) ||
        (x.right < 0) != (y.right < 0) || x.commutes != y.commutes ||
        x.shape.numChannelDims != y.shape.numChannelDims ||
        x.shape.dims.size() != y.shape.dims.size() || !isSame(x.size, y.size))
      return false;
    for (unsigned dim = 0; dim < x.shape.dims.size(); ++dim)
      if (!isSame(x.shape.dims[dim], y.shape.dims[dim]))
        return false;
    if (x.step < search::KernelStep::Add || x.step > search::KernelStep::Max)
      return true;
    Size ratioX = getRatio(a, x), ratioY = getRatio(b, y);
    if (!isSame(ratioX, ratioY))
      return false;
    // Where the left block is repeated, what is before it counts.
    return ratioX.isOne() || isSame(getPrefix(a, x), getPrefix(b, y));
  }

  static Size getProduct(llvm::ArrayRef<Size> dims) {
    Size product;
    for (const Size &dim : dims)
      product = *product.multiply(dim);
    return product;
  }
  static Size getRatio(const search::KernelGraph &graph,
                       const search::KernelNode &node) {
    return *getProduct(graph.nodes[node.right].shape.dims)
                .divide(getProduct(graph.nodes[node.left].shape.dims));
  }
  static Size getPrefix(const search::KernelGraph &graph,
                        const search::KernelNode &node) {
    return getProduct(llvm::ArrayRef(graph.nodes[node.left].shape.dims)
                          .take_front(node.prefix));
  }

  /// Equal once variables are renamed, each to one other.
  bool isSame(const Size &x, const Size &y) {
    if (x.getNumerator() != y.getNumerator() ||
        x.getDenominator() != y.getDenominator())
      return false;
    llvm::SmallVector<std::pair<unsigned, int>, 2> left, right;
    for (unsigned symbol = 0; symbol < a.problem->symbols.size(); ++symbol) {
      int ex = x.getExponent(symbol), ey = y.getExponent(symbol);
      if (!a.problem->isVariable(symbol)) {
        if (ex != ey)
          return false;
        continue;
      }
      if (ex)
        left.push_back({symbol, ex});
      if (ey)
        right.push_back({symbol, ey});
    }
    if (left.empty() && right.empty())
      return true;
    // One variable in a size at most, so there is no choice.
    if (left.size() != 1 || right.size() != 1 ||
        left[0].second != right[0].second)
      return false;
    auto [to, isNew] = names.try_emplace(left[0].first, right[0].first);
    auto [from, isNewBack] =
        namesBack.try_emplace(right[0].first, left[0].first);
    return to->second == right[0].first && from->second == left[0].first;
  }

  const search::KernelGraph &a, &b;
  std::vector<int> there, back;
  std::map<unsigned, unsigned> names, namesBack;
};

/// The same for isomorphic kernels: colours of the nodes, refined by those of
/// operands and users; says nothing of names and of which node is which.
inline uint64_t getColours(const search::KernelGraph &graph) {
  auto mix = [](uint64_t hash, uint64_t value) {
    return (hash ^ (value + 0x9e3779b97f4a7c15ull)) * 0x100000001b3ull;
  };
  std::vector<uint64_t> colours;
  for (const search::KernelNode &node : graph.nodes) {
    uint64_t colour = mix(static_cast<uint64_t>(node.step), node.dims);
    colour = mix(mix(colour, node.amount), node.shape.dims.size());
    for (const Size &dim : node.shape.dims)
      for (unsigned symbol = 0; symbol < graph.problem->symbols.size();
           ++symbol)
        if (!graph.problem->isVariable(symbol))
          colour = mix(colour, static_cast<uint8_t>(dim.getExponent(symbol)));
    colours.push_back(colour);
  }
  for (unsigned round = 0; round < 4; ++round) {
    std::vector<uint64_t> next = colours;
    for (unsigned index = 0; index < graph.nodes.size(); ++index) {
      const search::KernelNode &node = graph.nodes[index];
      if (node.left < 0)
        continue;
      uint64_t left = colours[node.left];
      uint64_t right = node.right < 0 ? 0 : colours[node.right];
      if (node.commutes && left > right)
        std::swap(left, right);
      next[index] = mix(mix(next[index], left), right);
      next[node.left] += mix(colours[index], 1);
      if (node.right >= 0)
        next[node.right] += mix(colours[index], node.commutes ? 1 : 2);
    }
    colours = next;
  }
  uint64_t sum = graph.groups.value_or(0);
  for (uint64_t colour : colours)
    sum += mix(colour, 7);
  return sum;
}

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_KERNELS_KERNELISOMORPHISM_H
