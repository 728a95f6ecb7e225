// Sums up the last dimension.
kas.operator @sum<N, W>(%n: N) from [N, W] {
  %w = kas.reduce sum : W
  kas.yield data(%n, %w)
}
