// Fully connected layer whose weight is the Kronecker product of W1, of p x g elements, and W2.
//
// Formula: Y[n,u*Cout/p+v] = sum over a<g, b<Cin/g of X[n,a*Cin/g+b] * W1[u,a] * W2[v,b]
// Source: Zhou et al., Exploiting Local Structures with the Kronecker Layer in Convolutional Networks,
//   arXiv:1512.09194, with one product.
kas.operator @linear_kronecker<N, Cin, Cout | p, g>
    (%n: N, %o: Cout) from [N, Cin] {
  %a = kas.reduce sum : g
  %b = kas.reduce sum : Cin/g
  %u, %v = kas.merge %o by Cout/p : Cout
  %a_d, %a_w1 = kas.share %a : g
  %b_d, %b_w2 = kas.share %b : Cin/g
  %x = kas.split %a_d, %b_d : g, Cin/g
  kas.yield data(%n, %x) weight(%u, %a_w1) weight(%v, %b_w2)
}
