// Operators as text: formulas, graphs, loops in C, PyTorch code.

// RUN: kas-translate -kas-to-formula %s | FileCheck %s --check-prefix=FORMULA
// FORMULA: conv1d: Y[n,cout,w] = sum over i<Cin, j<k of X[n,i,w+j-floor(k/2)] * W[cout,i,j]
// FORMULA-NEXT: every: Y[o0,o1] = mean over i<2 of max over j<3 of X[floor(((o0+1) mod 8)/2),2*floor((o1+j)/2)+i]; a term counts where 0 <= o1+j < 8

// RUN: kas-translate -kas-to-dot %s | FileCheck %s --check-prefix=DOT
// DOT: digraph "conv1d" {
// DOT: output0 [label="output 0", shape=ellipse]
// DOT: p0 [label="reduce sum"]
// DOT: [[UNFOLD:p[0-9]+]] [label="unfold"]
// DOT: [[UNFOLD]] -> data [label="W"]
// DOT: -> weight0 [label="k"]
// DOT: }
// DOT: digraph "every" {
// DOT: [label="shift by 1"]
// DOT: [label="merge by 2"]

// RUN: kas-translate -kas-to-c --kas-bind=N=1,Cin=2,Cout=3,W=4,k=3 %s -o %t.c
// RUN: FileCheck %s --check-prefix=LOOPS < %t.c
// LOOPS: // From X[1][2][4], W[3][2][3] to Y[1][3][4].
// LOOPS-NEXT: void conv1d(const float *X, const float *W, float *Y) {
// LOOPS: for (int j = 0; j < 3; ++j) {
// LOOPS-NEXT: if (0 <= w + j - 1 && w + j - 1 < 4) {
// LOOPS-NEXT: sum +=
// LOOPS: exists
// RUN: %cc -std=c11 -Wall -Werror -c %t.c -o %t.o

// RUN: kas-translate -kas-to-pytorch --kas-bind=N=1,Cin=2,Cout=3,W=4,k=3 %s | FileCheck %s --check-prefix=TORCH
// TORCH: def conv1d(data, weight0):
// TORCH-NEXT: """Y[n,cout,w] = {{.*}}; at N=1,Cin=2,Cout=3,W=4,k=3
// TORCH: x = F.pad(data, (1, 1))  # 1, 2, 6
// TORCH-NEXT: x = x.unfold(2, 3, 1)  # 1, 2, 4, 3
// TORCH-NEXT: y = torch.einsum("abcd,ebd->aec", x, weight0)
// TORCH-NEXT: return y
// TORCH: class Conv1d(nn.Module):
// TORCH: nn.init.normal_(self.weight0, std=0.57735027)
// TORCH: def every(data):
// TORCH: exists = (o1 + j >= 0) & (o1 + j < 8)
// TORCH: y = torch.where(exists, y, float("-inf"))
// TORCH-NEXT: y = y.amax(-1)
// TORCH-NEXT: exists = exists.any(-1)
// TORCH-NEXT: y = torch.where(exists, y, 0)
// TORCH-NEXT: y = y.sum(-1) / 2

// RUN: not kas-translate -kas-to-pytorch %s 2>&1 | FileCheck %s --check-prefix=UNBOUND
// UNBOUND: error: requires values for the symbols of 'conv1d', such as --kas-bind=N=1,C=64, got none
// UNBOUND-NOT: see current operation
// RUN: not kas-translate -kas-to-c --kas-bind=N=1 %s 2>&1 | FileCheck %s --check-prefix=PARTLY
// PARTLY: error: requires a value for symbol 'Cin' of operator 'conv1d', got none
// RUN: echo "module {}" | not kas-translate -kas-to-formula 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: requires a kas.operator in the module, got none

kas.operator @conv1d<N, Cin, Cout, W | k>
    (%n: N, %co: Cout, %w: W) from [N, Cin, W] {
  %ci = kas.reduce sum : Cin
  %kw = kas.reduce sum : k
  %ci_d, %ci_w = kas.share %ci : Cin
  %kw_d, %kw_w = kas.share %kw : k
  %iw = kas.unfold %w, %kw_d : W, k
  kas.yield data(%n, %ci_d, %iw) weight(%co, %ci_w, %kw_w)
}

kas.operator @every(%c: 8, %h: 8) from [4, 8] {
  %i = kas.reduce mean : 2
  %j = kas.reduce max : 3
  %s = kas.shift %c by 1 : 8
  %q, %r = kas.merge %s by 2 : 8
  kas.expand %r : 2
  %u = kas.unfold %h, %j low 0 : 8, 3
  %a, %b = kas.merge %u by 2 : 8
  kas.expand %b : 2
  %t = kas.split %a, %i : 4, 2
  kas.yield data(%q, %t)
}
