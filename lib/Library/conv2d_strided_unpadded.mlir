// Convolution along two axes with stride s, kernel points d apart and no padding on the low side: with k = s and d = 1
// a linear map of patches of s x s pixels.
//
// Formula: Y[n,o,h,w] = sum over c<Cin, i<k, j<k of X[n,c,s*h+d*i,s*w+d*j] * W[o,c,i,j]
// Source: Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021, section 3.1 (patches).
kas.operator @conv2d_strided_unpadded<N, Cin, Cout, H, W | k, s, d>
    (%n: N, %o: Cout, %h: H/s, %w: W/s) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %h_s = kas.stride %h by s : H/s
  %w_s = kas.stride %w by s : W/s
  %i_s = kas.stride %i_d by d : k
  %j_s = kas.stride %j_d by d : k
  %y = kas.unfold %h_s, %i_s low 0 : H, d*k
  %x = kas.unfold %w_s, %j_s low 0 : W, d*k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
