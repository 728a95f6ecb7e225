// Squeeze and excitation: a gate for each channel from the means of all.
//
// Formula: Y[c,h,w] = sigmoid(sum over i<x of W2[c,i] * max(sum over d<C of W1[i,d] * M[d], 0)) * X[c,h,w], M[d] =
//   mean over h, w of X[d,h,w]
// Source: Hu, Shen and Sun, Squeeze-and-Excitation Networks, CVPR 2018.
kas.kernel canvas @squeeze_excite<C, H, W | | x>
    (%in: [C | H, W]) -> [C | H, W] {
  %m = kas.dag.fold mean %in dims [1, 2] : [C | H, W]
  %a = kas.dag.fc %m to x : [C]
  %r = kas.dag.unary relu %a : [x]
  %b = kas.dag.fc %r to C : [x]
  %s = kas.dag.unary sigmoid %b : [C]
  %y = kas.dag.broadcast mul %s, %in common [1, 0] : [C], [C | H, W]
  kas.dag.output %y : [C | H, W]
}
