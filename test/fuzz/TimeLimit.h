//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A limit for the time of one run of the fuzz tests.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_FUZZ_TIMELIMIT_H
#define KAS_TEST_FUZZ_TIMELIMIT_H

#include <csignal>
#include <sys/time.h>
#include <unistd.h>

namespace kas::fuzz {

/// Sends the process a signal after so many seconds of its processor: what else
/// runs on the machine must not look like a run that does not end. One that
/// waits gets it after 30 times as long. 0 takes the limit away.
inline void limitTime(unsigned seconds) {
  itimerval timer{{0, 0}, {static_cast<time_t>(seconds), 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(30 * seconds);
}

/// Whether this is a signal that `limitTime` sends.
inline bool isTimeLimit(int signal) {
  return signal == SIGPROF || signal == SIGALRM;
}

} // namespace kas::fuzz

#endif // KAS_TEST_FUZZ_TIMELIMIT_H
