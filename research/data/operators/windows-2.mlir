// Two windows for each channel, then 1x1.
kas.operator @windows<N, Cin, H, W | k>(%n: N, %o: 2*Cin, %h: H, %w: W) from [N, Cin, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %q, %c = kas.merge %o by Cin : 2*Cin
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %h, %i_d : H, k
  %y = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %x, %y) weight(%q, %c_w, %i_w, %j_w)
}
kas.operator @project<N, Cin, Cout, H, W>(%n: N, %o: Cout, %h: H, %w: W) from [N, 2*Cin, H, W] {
  %c = kas.reduce sum : 2*Cin
  %c_d, %c_w = kas.share %c : 2*Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.sequence @windows_separable [@windows, @project] between [normalize_relu]
