// Fully connected layer in g blocks: outputs of a block see only the inputs of that block.
//
// Formula: Y[n,G*Cout/g+o] = sum over c<Cin/g of X[n,G*Cin/g+c] * W[G,o,c]
// Source: textbook; a 1x1 convolution in g groups.
kas.operator @linear_block_diagonal<N, Cin, Cout | g>
    (%n: N, %Go: Cout) from [N, Cin] {
  %c = kas.reduce sum : Cin/g
  %G, %o = kas.merge %Go by Cout/g : Cout
  %G_d, %G_w = kas.share %G : g
  %c_d, %c_w = kas.share %c : Cin/g
  %x = kas.split %G_d, %c_d : g, Cin/g
  kas.yield data(%n, %x) weight(%G_w, %o, %c_w)
}
