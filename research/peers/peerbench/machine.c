/* Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
 * See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What one core can do at best: independent fused multiply-adds in registers.
 * And calls as C code makes them, without what a call from Python takes. */

#include <time.h>

/* Sums, a factor and a term in the registers of the instruction set. */
#ifdef __AVX512F__
enum { lanes = 16, sums = 24 };
#else
enum { lanes = 8, sums = 12 };
#endif
typedef float vector __attribute__((vector_size(4 * lanes)));

/* As many operations, whatever the set. */
enum { steps = 25000 * (16 * 24) / (lanes * sums) };

/* Two per multiply-add. */
double kas_peak_flops(void) { return 2.0 * lanes * sums * steps; }

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

/* Nanoseconds of `count` calls; arguments[i] are those of the i-th of `inputs`
 * inputs. A function takes the first ones and leaves the others alone. */
void kas_time_calls(void (*function)(void *, void *, void *, void *, void *,
                                     void *),
                    void *arguments[][6], int inputs, int start, int count,
                    double *nanoseconds) {
  for (int i = 0; i < count; ++i) {
    void **a = arguments[(start + i) % inputs];
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    function(a[0], a[1], a[2], a[3], a[4], a[5]);
    clock_gettime(CLOCK_MONOTONIC, &after);
    nanoseconds[i] = 1e9 * (after.tv_sec - before.tv_sec) +
                     (after.tv_nsec - before.tv_nsec);
  }
}
