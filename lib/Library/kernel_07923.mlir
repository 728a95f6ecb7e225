// A convolution along the width, and along the height a sum over s rows of a refined and shifted height.
//
// Formula: Y[n,o,h,w] = sum over r<s, c<Cin, j<k of X[n,c,floor(q/s),w+j-floor(k/2)] * W[q mod s,o,j,c], q = (s*h+r+1)
//   mod (s*H)
// Source: Syno's manual kernel kernel_07923, in its public code.
kas.operator @kernel_07923<N, Cin, Cout, H, W | k, s>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %r = kas.reduce sum : s
  %c = kas.reduce sum : Cin
  %j = kas.reduce sum : k
  %hr = kas.split %h, %r : H, s
  %q = kas.shift %hr by 1 : H*s
  %y, %q_w = kas.merge %q by s : H*s
  %c_d, %c_w = kas.share %c : Cin
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%q_w, %o, %j_w, %c_w)
}
