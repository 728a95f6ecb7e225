/* Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
 * See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What one core can do at best: independent fused multiply-adds in registers. */

typedef float vector __attribute__((vector_size(64)));

enum { sums = 24, steps = 25000 };

/* Two per multiply-add. */
double kas_peak_flops(void) { return 2.0 * 16 * sums * steps; }

float kas_peak(void) {
  vector sum[sums], factor = {0}, term = {0};
  factor = factor + 0.999f;
  term = term + 1e-9f;
  for (int i = 0; i < sums; ++i)
    sum[i] = factor + (float)i;
  for (int step = 0; step < steps; ++step) {
#pragma clang loop unroll(full)
    for (int i = 0; i < sums; ++i) {
      sum[i] = sum[i] * factor + term;
      /* Keeps each step a step. */
      __asm__ volatile("" : "+v"(sum[i]));
    }
  }
  for (int i = 1; i < sums; ++i)
    sum[0] += sum[i];
  return sum[0][0];
}
