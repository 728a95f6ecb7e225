// The projection of H features to t*H queries, keys and values that Syno found for GPT-2: each output feature sees one
// of k slices of the input, in turns of B = H/(k**4*t) features.
//
// Formula: Y[n,l,(a*k+p)*B+b] = sum over r<H/k of X[n,l,p*H/k+r] * W[a,r,b], B = H/(k**4*t), for a<k**3*t**2, p<k, b<B
// Source: Zhuo et al., Syno: Structured Synthesis for Neural Operators, the GPT-2 experiment (kernel 05675 of its
//   public artifact, with k = 2 and t = 3).
kas.operator @gpt2_projection<N, L, H | k, t>
    (%n: N, %l: L, %i: H*t) from [N, L, H] {
  %r = kas.reduce sum : H/k
  %a, %pb = kas.merge %i by H/(k**3*t) : H*t
  %p, %b = kas.merge %pb by H/(k**4*t) : H/(k**3*t)
  %r_d, %r_w = kas.share %r : H/k
  %x = kas.split %p, %r_d : k, H/k
  kas.yield data(%n, %l, %x) weight(%a, %r_w, %b)
}
