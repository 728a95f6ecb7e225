// Pointwise convolution: a linear map of the channels of each pixel.
//
// Formula: Y[n,o,h,w] = sum over c<Cin of X[n,c,h,w] * W[o,c]
// Source: Lin, Chen and Yan, Network In Network, ICLR 2014, section 3.1.
kas.operator @conv1x1<N, Cin, Cout, H, W>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
