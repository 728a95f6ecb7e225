// Repeats every pixel in a block of s x s pixels.
//
// Formula: Y[n,c,h,w] = X[n,c,floor(h/s),floor(w/s)]
// Source: textbook.
kas.operator @nearest_upsample2d<N, C, H, W | s>
    (%n: N, %c: C, %h: H*s, %w: W*s) from [N, C, H, W] {
  %y, %i = kas.merge %h by s : H*s
  %x, %j = kas.merge %w by s : W*s
  kas.expand %i : s
  kas.expand %j : s
  kas.yield data(%n, %c, %y, %x)
}
