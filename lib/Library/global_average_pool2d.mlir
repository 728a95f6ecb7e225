// Mean over all pixels of a channel.
//
// Formula: Y[n,c] = 1/(H*W) * sum over h<H, w<W of X[n,c,h,w]
// Source: Lin, Chen and Yan, Network In Network, ICLR 2014, section 3.2.
kas.operator @global_average_pool2d<N, C, H, W>
    (%n: N, %c: C) from [N, C, H, W] {
  %h = kas.reduce mean : H
  %w = kas.reduce mean : W
  kas.yield data(%n, %c, %h, %w)
}
