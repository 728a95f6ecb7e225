// 1x1 to twice the channels, a window for each, 1x1 back.
kas.operator @expand<N, Cin, Cout, H, W>(%n: N, %o: 2*Cin, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.operator @window<N, Cin, H, W | k>(%n: N, %o: 2*Cin, %h: H, %w: W) from [N, 2*Cin, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %o_d, %o_w = kas.share %o : 2*Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %h, %i_d : H, k
  %y = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %o_d, %x, %y) weight(%o_w, %i_w, %j_w)
}
kas.operator @project<N, Cin, Cout, H, W>(%n: N, %o: Cout, %h: H, %w: W) from [N, 2*Cin, H, W] {
  %c = kas.reduce sum : 2*Cin
  %c_d, %c_w = kas.share %c : 2*Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.sequence @inverted [@expand, @window, @project] between [normalize_relu, normalize_relu]
