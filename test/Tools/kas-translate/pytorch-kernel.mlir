// Kernels as PyTorch code: at --kas-bind, or at the first of their own bindings. What the code computes is tested in
// test/python/test_pytorch_code.py.

// RUN: kas-translate -kas-to-pytorch %s | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: kas-translate -kas-to-pytorch --kas-bind=C=8,x=4 %s | FileCheck %s --check-prefixes=CHECK,GIVEN
// RUN: not kas-translate -kas-to-pytorch --kas-bind=y=4 %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: requires symbols of kernel 'steps' in the binding, got 'y'
// RUN: not kas-translate -kas-to-pytorch --kas-bind=C=5 %s 2>&1 | FileCheck %s --check-prefix=ODD
// ODD: error: {{.*}}requires sizes that are integers (K3), got {{.*}} at this binding
// RUN: echo "module {}" | not kas-translate -kas-to-pytorch 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: requires a kas.operator or a kas.kernel in the module, got none

// The operator that the kernel applies is part of its file.
// CHECK: import torch
// CHECK-NOT: class
// CHECK: def apply0(data, weight0):
// CHECK-NOT: class
// CHECK: def steps(data, weight0, weight1, weight2):
// OWN-NEXT: """The kernel steps at C=4,H=6,k=3,x=2, for any batch, which is the first dimension.
// GIVEN-NEXT: """The kernel steps at C=8,H=6,k=3,x=4, for any batch, which is the first dimension.
// OWN: data: 4, 6; weight0: 2, 4; weight1: 2, 1, 3; weight2: 4; result: 4, 6
// CHECK: x0 = torch.roll(data, -1, 2)
// OWN-NEXT: x1 = torch.einsum("bcp,oc->bop", x0.reshape(-1, 4, 6), weight0.reshape(2, 4)).reshape(-1, 2, 6)
// CHECK: x2 = torch.relu(x1)
// OWN-NEXT: x3 = x2.reshape(-1, 2, 1, 6)
// OWN-NEXT: x4 = F.conv1d(F.pad(x3, (2, 2)).reshape(-1, 2, 10), weight1.reshape(2, 1, 3), dilation=(2,), groups=2)
// CHECK: x5 = torch.cat((x4[:, :, 0::2], x4[:, :, 1::2]), 2)
// CHECK-NEXT: x6 = torch.stack([apply0(sample.reshape(1, {{.*}}), weight2) for sample in data]).reshape(-1,
// OWN-NEXT: x7 = (x5.reshape(-1, 1, 1, 2, 6) * x6.reshape(-1, 1, 2, 2, 6)).reshape(-1, 4, 6)
// CHECK: return x7
// CHECK: class Steps(nn.Module):
// OWN: nn.init.normal_(self.weight0, std=0.5)
// CHECK: def forward(self, data):
// CHECK-NEXT: return steps(data, self.weight0, self.weight1, self.weight2)

kas.operator @weighted<N, C, H> (%n: N, %c: C, %h: H) from [N, C, H] {
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%n, %c_d, %h) weight(%c_w)
}

kas.kernel @steps<C, H | k | x> where [2 divides C] (%in: [C | H]) -> [C | H]
    bindings [<C = 4, H = 6, k = 3, x = 2>] {
  %s = kas.dag.shift %in dim 1 by 1 : [C | H]
  %a = kas.dag.fc %s to C/2 : [C | H]
  %r = kas.dag.unary relu %a : [C/2 | H]
  %d = kas.dag.dropout %r rate 1.0e-01 : [C/2 | H]
  %g = kas.dag.group_all %d : [C/2 | H]
  %c = kas.dag.conv %g groups 1 dims [2] by [k] dilation 2 to C/2 : [C/2, 1 | H]
  %e = kas.dag.reorder %c dim 1 : [C/2 | H]
  %w = kas.dag.apply @weighted<N = 1, C = C, H = H> %in : [C | H] -> [C | H]
  %p = kas.dag.broadcast mul %e, %w common [0, 1] : [C/2 | H], [C | H]
  kas.dag.output %p : [C | H]
}
