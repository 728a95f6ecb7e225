// Mean over blocks of s x s pixels.
//
// Formula: Y[n,c,h,w] = 1/(s*s) * sum over i<s, j<s of X[n,c,s*h+i,s*w+j]
// Source: textbook.
kas.operator @average_pool2d<N, C, H, W | s>
    (%n: N, %c: C, %h: H/s, %w: W/s) from [N, C, H, W] {
  %i = kas.reduce mean : s
  %j = kas.reduce mean : s
  %y = kas.split %h, %i : H/s, s
  %x = kas.split %w, %j : W/s, s
  kas.yield data(%n, %c, %y, %x)
}
