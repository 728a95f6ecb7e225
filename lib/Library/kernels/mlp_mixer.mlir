// A step of an MLP-Mixer without its normalizations: two layers over the points, then two over the channels.
//
// Formula: Y[o,p] = Z[o,p] + sum over j<z of W4[o,j] * gelu(sum over c<C of W3[j,c] * Z[c,p]), Z[c,p] = X[c,p] + sum
//   over i<x of W2[p,i] * gelu(sum over q<H*W of W1[i,q] * X[c,q])
// Source: Tolstikhin et al., MLP-Mixer, NeurIPS 2021, section 2.
kas.kernel @mlp_mixer<C, H, W | | x, z>
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.mix %in dims [1, 2] to [x, 1] : [C | H, W]
  %b = kas.dag.unary gelu %a : [C | x, 1]
  %c = kas.dag.mix %b dims [1, 2] to [H, W] : [C | x, 1]
  %y = kas.dag.broadcast add %in, %c common [3, 0] : [C | H, W], [C | H, W]
  %d = kas.dag.fc %y to z : [C | H, W]
  %e = kas.dag.unary gelu %d : [z | H, W]
  %f = kas.dag.fc %e to C : [z | H, W]
  %o = kas.dag.broadcast add %y, %f common [3, 0] : [C | H, W], [C | H, W]
  kas.dag.output %o : [C | H, W]
}
