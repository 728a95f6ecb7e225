// Large kernel attention: two depthwise convolutions, one dilated, gate the image.
//
// Formula: Y = X + W5 * (T * (W4 * D2)), T = gelu(W1 * X), D1[c,h,w] = sum over i<k, j<k of W2[c,0,i,j] *
//   T[c,h+i-floor(k/2),w+j-floor(k/2)], D2[c,h,w] = sum over i<l, j<l of W3[c,0,i,j] *
//   D1[c,h+3*(i-floor(l/2)),w+3*(j-floor(l/2))]; W1, W4, W5 are C x C
// Source: Guo et al., Visual Attention Network, 2022, section 3.
kas.kernel canvas @large_kernel_attention<C, H, W | k, l>
    (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to C : [C | H, W]
  %t = kas.dag.unary gelu %a : [C | H, W]
  %g = kas.dag.group_all %t : [C | H, W]
  %d = kas.dag.conv %g groups 1 dims [2, 3] by [k, k] to C : [C, 1 | H, W]
  %f = kas.dag.group_all %d : [C | H, W]
  %e = kas.dag.conv %f groups 1 dims [2, 3] by [l, l] dilation 3 to C : [C, 1 | H, W]
  %b = kas.dag.fc %e to C : [C | H, W]
  %m = kas.dag.broadcast mul %b, %t common [3, 0] : [C | H, W], [C | H, W]
  %c = kas.dag.fc %m to C : [C | H, W]
  %y = kas.dag.broadcast add %in, %c common [3, 0] : [C | H, W], [C | H, W]
  kas.dag.output %y : [C | H, W]
}
