kas.operator @candidate_0<N, Cin, Cout, H, W | k, g>(%o: N, %o_0: 2*Cin unordered, %o_1: H, %o_2: W) from [N, Cin unordered, H, W] {
  %r = kas.reduce sum : k
  %d, %w = kas.share %r : k
  %r_3 = kas.reduce sum : k
  %d_4, %w_5 = kas.share %r_3 : k
  %r_6 = kas.reduce sum : Cin/g**2
  %d_7, %w_8 = kas.share %r_6 : Cin/g**2
  %q, %m = kas.merge %o_0 by 2*Cin/g**2 : 2*Cin
  %d_9, %w_10 = kas.share %q : g**2
  %s = kas.split %d_9, %d_7 : g**2, Cin/g**2
  %u = kas.unfold %o_1, %d : H, k
  %u_11 = kas.unfold %o_2, %d_4 : W, k
  kas.yield data(%o, %s, %u, %u_11) weight(%w_10, %m, %w, %w_5, %w_8)
}
kas.operator @candidate_1<N, Cin, Cout, H, W | k, g>(%o: N, %o_0: Cout unordered, %o_1: H, %o_2: W) from [N, 2*Cin unordered, H, W] {
  %r = kas.reduce sum : 2*g
  %d, %w = kas.share %r : 2*g
  %d_3, %w_4 = kas.share %d : 2*g
  %r_5 = kas.reduce sum : Cin/g
  %d_6, %w_7 = kas.share %r_5 : Cin/g
  %s = kas.split %d_3, %d_6 : 2*g, Cin/g
  %q, %m = kas.merge %o_0 by Cout/g : Cout
  %d_8, %w_9 = kas.share %m : Cout/g
  kas.yield data(%o, %s, %o_1, %o_2) weight(%q, %w_9, %w) weight(%d_8, %w_4, %w_7)
}
kas.sequence @candidate [@candidate_0, @candidate_1] between [normalize_relu]
