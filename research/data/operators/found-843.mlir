kas.operator @candidate_0<N, Cin, Cout, H, W | k, g>(%o: N, %o_0: 2*Cin unordered, %o_1: H, %o_2: W) from [N, Cin unordered, H, W] {
  %r = kas.reduce sum : g
  %r_3 = kas.reduce sum : k
  %d, %w = kas.share %r_3 : k
  %r_4 = kas.reduce sum : k
  %d_5, %w_6 = kas.share %r_4 : k
  %q, %m = kas.merge %o_0 by Cin/g : 2*Cin
  %d_7, %w_8 = kas.share %m : Cin/g
  %s = kas.split %d_7, %r : Cin/g, g
  %u = kas.unfold %o_1, %d : H, k
  %u_9 = kas.unfold %o_2, %d_5 : W, k
  kas.yield data(%o, %s, %u, %u_9) weight(%q, %w_8, %w, %w_6)
}
kas.operator @candidate_1<N, Cin, Cout, H, W | k, g>(%o: N, %o_0: Cout unordered, %o_1: H, %o_2: W) from [N, 2*Cin unordered, H, W] {
  %r = kas.reduce sum : g**2
  %d, %w = kas.share %r : g**2
  %r_3 = kas.reduce sum : 2*Cin
  %d_4, %w_5 = kas.share %r_3 : 2*Cin
  kas.yield data(%o, %d_4, %o_1, %o_2) weight(%o_0, %w) weight(%d, %w_5)
}
kas.sequence @candidate [@candidate_0, @candidate_1] between [normalize_relu]
