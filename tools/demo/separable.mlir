// The depthwise-separable layer, with the normalization and the rectifier of MobileNet between its operators.
kas.operator @separable_0<N, Cin, H, W | k>(%n: N, %o: Cin, %h: H, %w: W) from [N, Cin, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %o_d, %o_w = kas.share %o : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %h, %i_d : H, k
  %y = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %o_d, %x, %y) weight(%o_w, %i_w, %j_w)
}
kas.operator @separable_1<N, Cin, Cout, H, W>(%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.sequence @separable [@separable_0, @separable_1] between [normalize_relu]
