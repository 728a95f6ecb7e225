// RUN: kas-opt %s -split-input-file -verify-diagnostics

// D1: three bytes for each lane
func.func @d1_0(%a: vector<48xi8>, %b: vector<48xi8>, %sum: vector<16xi32>) {
  // expected-error@below {{expected 64 bytes for 16 lanes of the sum, got 48}}
  %r = kas_cpu.dot %a, %b, %sum : vector<48xi8>, vector<16xi32>
  return
}
