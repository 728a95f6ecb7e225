// One projection of H features, repeated t times: the shared head of multi-query attention.
//
// Formula: Y[n,l,r*H+o] = sum over c<H of X[n,l,c] * W[c,o], for every r<t
// Source: Shazeer, Fast Transformer Decoding: One Write-Head is All You Need, arXiv:1911.02150, section 3; Syno's
//   manual kernel MQA, in its public code.
kas.operator @multi_query_projection<N, L, H | t>
    (%n: N, %l: L, %ro: H*t) from [N, L, H] {
  %c = kas.reduce sum : H
  %r, %o = kas.merge %ro by H : H*t
  kas.expand %r : t
  %c_d, %c_w = kas.share %c : H
  kas.yield data(%n, %l, %c_d) weight(%c_w, %o)
}
