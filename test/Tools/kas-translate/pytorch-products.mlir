// RUN: kas-translate -kas-to-pytorch --kas-bind=N=8,Cin=16,Cout=16,W=32,k=3,s=2,g=4 %s | FileCheck %s

// Channels that no weight sees are summed before there are windows, and the two
// weights, which are small, are multiplied first. PyTorch itself would go from
// left to right: 4 times as many products, and numbers to keep.
// CHECK-LABEL: def small_weights(data, weight0, weight1):
// CHECK: x = data.unflatten(1, (8, 2))  # 8, 8, 2, 32
// CHECK-NEXT: x = x.sum((2,))  # 8, 8, 32
// CHECK-NEXT: x = F.pad(x, (1, 1))  # 8, 8, 34
// CHECK-NEXT: x = x.unfold(2, 3, 1)  # 8, 8, 32, 3
// CHECK-NEXT: p0 = torch.einsum("ebdf,fd->ebd", weight0, weight1)
// CHECK-NEXT: y = torch.einsum("abcd,ebd->aec", x, p0)
// CHECK-NEXT: return y
kas.operator @small_weights<N, Cin, Cout, W | k, s, g>(%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %r = kas.reduce sum : s
  %j = kas.reduce sum : g
  %j0, %j1 = kas.share %j : g
  %i = kas.reduce sum : k
  %d0, %a0 = kas.share %i : k
  %d, %a1 = kas.share %d0 : k
  %c = kas.reduce sum : Cin/s
  %c0, %c1 = kas.share %c : Cin/s
  %u = kas.unfold %w, %d : W, k
  %s = kas.split %c0, %r : Cin/s, s
  kas.yield data(%n, %s, %u) weight(%o, %c1, %a0, %j0) weight(%j1, %a1)
}

// The data and the weight that has its channels are multiplied first.
// CHECK-LABEL: def separable(data, weight0, weight1):
// CHECK: x = x.unfold(2, 3, 1)  # 8, 16, 32, 3
// CHECK-NEXT: p0 = torch.einsum("abcd,bd->abc", x, weight1)
// CHECK-NEXT: y = torch.einsum("abc,eb->aec", p0, weight0)
kas.operator @separable<N, Cin, Cout, W | k, s, g>(%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %i = kas.reduce sum : k
  %d, %a = kas.share %i : k
  %c = kas.reduce sum : Cin
  %c0, %c1 = kas.share %c : Cin
  %c2, %c3 = kas.share %c0 : Cin
  %u = kas.unfold %w, %d : W, k
  kas.yield data(%n, %c2, %u) weight(%o, %c1) weight(%c3, %a)
}
