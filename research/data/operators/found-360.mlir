kas.operator @candidate_0<N, Cin, Cout, H, W | k, g>(%o: N, %o_0: 2*Cin unordered, %o_1: H, %o_2: W) from [N, Cin unordered, H, W] {
  %r = kas.reduce sum : k
  %d, %w = kas.share %r : k
  %r_3 = kas.reduce sum : k
  %d_4, %w_5 = kas.share %r_3 : k
  %q, %m = kas.merge %o_0 by Cin : 2*Cin
  %d_6, %w_7 = kas.share %m : Cin
  %u = kas.unfold %o_1, %d : H, k
  %u_8 = kas.unfold %o_2, %d_4 : W, k
  kas.yield data(%o, %d_6, %u, %u_8) weight(%q, %w_7, %w, %w_5)
}
kas.operator @candidate_1<N, Cin, Cout, H, W | k, g>(%o: N, %o_0: Cout unordered, %o_1: H, %o_2: W) from [N, 2*Cin unordered, H, W] {
  %r = kas.reduce sum : 2
  %r_3 = kas.reduce sum : Cin
  %d, %w = kas.share %r_3 : Cin
  %s = kas.split %d, %r : Cin, 2
  kas.yield data(%o, %s, %o_1, %o_2) weight(%o_0, %w)
}
kas.sequence @candidate [@candidate_0, @candidate_1] between [normalize_relu]
