//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The primes and the divisors of numbers.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_PRIMEFACTORS_H
#define KAS_SUPPORT_PRIMEFACTORS_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace kas {

/// Appends to `primes` those prime factors of `number` that are not there, in
/// ascending order. `number` is at least 1, and of 32 bits, like the constants
/// that the text form takes: trial division is slow for more.
inline void addPrimeFactors(int64_t number,
                            llvm::SmallVectorImpl<int64_t> &primes) {
  for (int64_t prime = 2; number > 1; ++prime) {
    if (prime * prime > number)
      prime = number;
    if (number % prime == 0 && !llvm::is_contained(primes, prime))
      primes.push_back(prime);
    while (number % prime == 0)
      number /= prime;
  }
}

/// All divisors of `number`, which is at least 1, in ascending order. Takes as
/// many steps as the square root of the number.
inline llvm::SmallVector<int64_t> listDivisors(int64_t number) {
  llvm::SmallVector<int64_t> divisors, others;
  for (int64_t divisor = 1; divisor <= number / divisor; ++divisor) {
    if (number % divisor != 0)
      continue;
    divisors.push_back(divisor);
    if (divisor != number / divisor)
      others.push_back(number / divisor);
  }
  divisors.append(others.rbegin(), others.rend());
  return divisors;
}

} // namespace kas

#endif // KAS_SUPPORT_PRIMEFACTORS_H
