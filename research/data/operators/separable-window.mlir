// A window for each channel, 1x1, and another window for each channel.
kas.operator @depthwise<N, Cin, H, W | k>(%n: N, %o: Cin, %h: H, %w: W) from [N, Cin, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %o_d, %o_w = kas.share %o : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %h, %i_d : H, k
  %y = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %o_d, %x, %y) weight(%o_w, %i_w, %j_w)
}
kas.operator @pointwise<N, Cin, Cout, H, W>(%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.operator @window<N, Cout, H, W | k>(%n: N, %o: Cout, %h: H, %w: W) from [N, Cout, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %o_d, %o_w = kas.share %o : Cout
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %h, %i_d : H, k
  %y = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %o_d, %x, %y) weight(%o_w, %i_w, %j_w)
}
kas.sequence @separable_window [@depthwise, @pointwise, @window] between [normalize_relu, normalize_relu]
