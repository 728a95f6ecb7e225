// A space for each named operator (lib/Library), of its name and signature: of small sizes and with limits that leave
// out nothing that the operator needs. A test looks each up in the list of its space, or shows that it is not there and
// says which rule of docs/internals/canonical-form.md leaves it out; `kas-bench rediscovery` searches them.
//
// Channels are ordered where groups of them count: what is computed is compared, not what is the same up to their order.
// Each two sizes differ under some binding, so that what computes the same is the same. Symbols of the operator that no size of the space has are bound all the same, for the operator. Coefficients that the
// operator does not have are there so that there is something else to find.

//===----------------------------------------------------------------------===//
// Matrix products and linear layers
//===----------------------------------------------------------------------===//

kas.space @matmul<M, N, K | g>
    [M, N unordered] from [M, K unordered]
    bindings [<M = 7, N = 6, K = 8, g = 2>,
              <M = 5, N = 9, K = 6, g = 3>]
    limits {depth = 6, reduce = 3}
// The batch has to be a dimension that a weight may index.
kas.space @batch_matmul<B, M, N, K | g>
    [B unordered, M, N unordered] from [B unordered, M, K unordered]
    bindings [<B = 3, M = 7, N = 6, K = 8, g = 2>,
              <B = 4, M = 5, N = 9, K = 6, g = 3>]
    limits {depth = 5, reduce = 3, shift = 0, unfold = 0, occurrences.g = 2}
kas.space @linear<N, Cin, Cout | g>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<N = 5, Cin = 8, Cout = 6, g = 2>,
              <N = 4, Cin = 6, Cout = 9, g = 3>]
    limits {depth = 6, reduce = 3}
kas.space @batched_linear<N, L, Cin, Cout | g>
    [N, L, Cout unordered] from [N, L, Cin unordered]
    bindings [<N = 1, L = 7, Cin = 8, Cout = 6, g = 2>,
              <N = 1, L = 5, Cin = 6, Cout = 9, g = 3>]
    limits {depth = 5, reduce = 3, occurrences.g = 3}

//===----------------------------------------------------------------------===//
// Linear layers with structured weights
//===----------------------------------------------------------------------===//

kas.space @linear_low_rank<N, Cin, Cout | r>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<N = 5, Cin = 8, Cout = 12, r = 2>,
              <N = 4, Cin = 12, Cout = 9, r = 3>]
    limits {depth = 6, reduce = 3}
kas.space @linear_block_diagonal<N, Cin, Cout | g>
    [N, Cout] from [N, Cin]
    bindings [<N = 5, Cin = 4, Cout = 6, g = 2>,
              <N = 4, Cin = 6, Cout = 12, g = 3>]
    limits {depth = 6, reduce = 3}
kas.space @linear_kronecker<N, Cin, Cout | p, g>
    [N, Cout] from [N, Cin]
    bindings [<N = 5, Cin = 8, Cout = 18, p = 3, g = 2>]
    limits {depth = 6, reduce = 2, split = 1, shift = 0, occurrences.p = 3, occurrences.g = 3}
kas.space @linear_monarch<N, Cin, Cout | g, p>
    [N, Cout] from [N, Cin]
    bindings [<N = 5, Cin = 8, Cout = 18, g = 2, p = 3>]
    limits {depth = 6, reduce = 2, split = 1, shift = 0}
kas.space @linear_monarch_transposed<N, Cin, Cout | g, p>
    [N, Cout] from [N, Cin]
    bindings [<N = 5, Cin = 18, Cout = 8, g = 2, p = 3>]
    limits {depth = 6, reduce = 2, split = 1, shift = 0}
kas.space @linear_block_tensor_train<N, Cin, Cout | g, p, r>
    [N, Cout] from [N, Cin]
    bindings [<N = 5, Cin = 22, Cout = 27, g = 2, p = 3, r = 4>]
    limits {depth = 7, reduce = 3, split = 1, shift = 0}
kas.space @linear_shuffled_groups<N, Cin, Cout | g>
    [N, Cout] from [N, Cin]
    bindings [<N = 5, Cin = 21, Cout = 36, g = 3>]
    limits {depth = 7, reduce = 3, split = 1, shift = 0, occurrences.g = 10}
kas.space @linear_blast<N, Cin, Cout | b, r>
    [N, Cout] from [N, Cin]
    bindings [<N = 4, Cin = 15, Cout = 21, b = 3, r = 2>]
    limits {depth = 8, reduce = 3, split = 1, shift = 0, weights = 3}
kas.space @linear_butterfly3<N, C | r>
    [N, C] from [N, C]
    bindings [<N = 3, C = 20, r = 2>]
    limits {depth = 10, reduce = 3, split = 2, merge = 2, shift = 0, unfold = 0, weights = 3, chain = 6,
            weight_elements = 40, linear_path = 1, occurrences.C = 5, occurrences.r = 5}
kas.space @linear_toeplitz<N, C | k>
    [N, C] from [N, C]
    bindings [<N = 5, C = 8, k = 3>]
    limits {depth = 6, reduce = 3, occurrences.k = 3, weight_takes = 0}

//===----------------------------------------------------------------------===//
// Convolutions along one axis
//===----------------------------------------------------------------------===//

kas.space @conv1d<N, Cin, Cout, L | k, g>
    [N, Cout unordered, L] from [N, Cin unordered, L]
    bindings [<N = 1, Cin = 4, Cout = 6, L = 10, k = 3, g = 2>,
              <N = 1, Cin = 6, Cout = 12, L = 8, k = 3, g = 3>]
    limits {depth = 6, reduce = 3, occurrences.k = 2, occurrences.g = 2}
kas.space @conv1d_strided<N, Cin, Cout, L | k, s>
    [N, Cout unordered, L/s] from [N, Cin unordered, L]
    bindings [<N = 1, Cin = 5, Cout = 7, L = 20, k = 3, s = 2>]
    limits {depth = 6, reduce = 3, stride = 1, occurrences.k = 2, occurrences.s = 2}
// Windows of the search lie around their middle: p = floor(d*k/2).
kas.space @conv1d_dilated<N, Cin, Cout, L | k, d, p>
    [N, Cout unordered, L] from [N, Cin unordered, L]
    bindings [<N = 1, Cin = 4, Cout = 7, L = 16, k = 3, d = 5, p = 7>]
    limits {depth = 6, reduce = 2, merge = 0, stride = 1, unfold_ratio = 1.0,
            occurrences.k = 2, occurrences.d = 2, occurrences.p = 0}
kas.space @conv1d_depthwise<N, C, L | k>
    [N, C unordered, L] from [N, C unordered, L]
    bindings [<N = 1, C = 4, L = 10, k = 3>]
    limits {depth = 5, reduce = 3, occurrences.k = 2, weight_takes = 0}
kas.space @conv1d_depthwise_causal<N, C, L | k>
    [N, C unordered, L] from [N, C unordered, L]
    bindings [<N = 1, C = 4, L = 10, k = 3>]
    limits {depth = 5, reduce = 3, occurrences.k = 2, weight_takes = 0, causal = 1}

//===----------------------------------------------------------------------===//
// Convolutions along two axes
//===----------------------------------------------------------------------===//

kas.space @conv2d<N, Cin, Cout, H, W | k>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 5, H = 6, W = 7, k = 3>]
    limits {depth = 6, reduce = 3, occurrences.k = 3}
kas.space @conv2d_strided<N, Cin, Cout, H, W | k, s>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 5, Cout = 13, H = 14, W = 20, k = 3, s = 2>]
    limits {depth = 8, reduce = 3, merge = 0, stride = 2, weights = 1, occurrences.k = 2, occurrences.s = 2}
kas.space @conv2d_dilated<N, Cin, Cout, H, W | k, d, p>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 2, Cout = 4, H = 16, W = 17, k = 3, d = 5, p = 7>]
    limits {depth = 8, reduce = 3, merge = 0, split = 0, shift = 0, stride = 2, weights = 1, unfold_ratio = 1.0,
            occurrences.k = 2, occurrences.d = 2, occurrences.p = 0}
kas.space @conv2d_strided_dilated<N, Cin, Cout, H, W | k, s, d, p>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 7, H = 16, W = 22, k = 3, s = 2, d = 5, p = 7>]
    limits {depth = 10, reduce = 3, merge = 0, split = 0, shift = 0, stride = 4, weights = 1, unfold_ratio = 1.0,
            occurrences.k = 2, occurrences.s = 1, occurrences.d = 2, occurrences.p = 0}
// Windows of the search have padding. Those that fit the stride, k = s and d = 1, are splits: patches.
kas.space @conv2d_strided_unpadded<N, Cin, Cout, H, W | k, s, d>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 5, Cout = 13, H = 14, W = 20, k = 2, s = 2, d = 1>]
    limits {depth = 6, reduce = 3, occurrences.k = 0, occurrences.d = 0, occurrences.s = 3}
kas.space @conv2d_grouped<N, Cin, Cout, H, W | k, g>
    [N, Cout, H, W] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 4, Cout = 6, H = 7, W = 8, k = 3, g = 2>,
              <N = 1, Cin = 6, Cout = 12, H = 6, W = 7, k = 3, g = 3>]
    limits {depth = 8, reduce = 3, shift = 0, split = 1, weights = 1, occurrences.k = 2, occurrences.g = 2}
kas.space @conv2d_grouped_strided<N, Cin, Cout, H, W | k, s, g>
    [N, Cout, H/s, W/s] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 10, Cout = 20, H = 14, W = 12, k = 3, s = 2, g = 5>]
    limits {depth = 10, reduce = 3, shift = 0, split = 1, stride = 2, weights = 1, occurrences.k = 2, occurrences.g = 2,
            occurrences.s = 0}
kas.space @conv2d_depthwise<N, C, H, W | k>
    [N, C unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 4, H = 6, W = 7, k = 3>]
    limits {depth = 5, reduce = 3, occurrences.k = 2, weight_takes = 0}
kas.space @conv2d_depthwise_strided<N, C, H, W | k, s>
    [N, C unordered, H/s, W/s] from [N, C unordered, H, W]
    bindings [<N = 1, C = 5, H = 14, W = 20, k = 3, s = 2>]
    limits {depth = 7, reduce = 2, merge = 0, stride = 2, weights = 1, occurrences.k = 2, occurrences.s = 2,
            weight_takes = 0}
kas.space @conv2d_depthwise_dilated<N, C, H, W | k, d, p>
    [N, C unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 4, H = 16, W = 17, k = 3, d = 5, p = 7>]
    limits {depth = 7, reduce = 2, merge = 0, split = 0, stride = 2, weights = 1, unfold_ratio = 1.0,
            occurrences.k = 2, occurrences.d = 2, occurrences.p = 0, weight_takes = 0}
kas.space @conv2d_depthwise_separable<N, Cin, Cout, H, W | k>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 5, H = 6, W = 7, k = 3>]
    limits {depth = 7, reduce = 3, shift = 0, merge = 0, occurrences.k = 2, weight_takes = 0}
kas.space @conv2d_spatially_separable<N, Cin, Cout, H, W | k>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 5, H = 6, W = 7, k = 3>]
    limits {depth = 8, reduce = 4, shift = 0, merge = 0, split = 0, occurrences.k = 2}
kas.space @conv1x1<N, Cin, Cout, H, W | g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 10, Cout = 14, H = 3, W = 9, g = 2>]
    limits {depth = 5, reduce = 2, occurrences.g = 2}
kas.space @conv1x1_strided<N, Cin, Cout, H, W | s>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 5, Cout = 13, H = 14, W = 20, s = 2>]
    limits {depth = 6, reduce = 3, stride = 2, occurrences.s = 2}
kas.space @bottleneck<N, Cin, Cout, H, W | k, r>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 10, H = 6, W = 7, k = 3, r = 5>]
    limits {depth = 10, reduce = 5, split = 0, merge = 0, shift = 0, weights = 3, occurrences.k = 2, occurrences.r = 2,
            occurrences.Cin = 2, occurrences.Cout = 7}

//===----------------------------------------------------------------------===//
// Shifts, pooling and rearrangements
//===----------------------------------------------------------------------===//

kas.space @shift_conv2d<N, Cin, Cout, H, W | g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 10, Cout = 14, H = 3, W = 9, g = 2>]
    limits {depth = 5, reduce = 2, occurrences.g = 2}
kas.space @shift2d<N, Cin, Cout, H, W | g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 10, Cout = 14, H = 3, W = 9, g = 2>]
    limits {depth = 5, reduce = 2, occurrences.g = 2}
// Reductions of the search are sums: a mean is one, up to a constant factor.
kas.space @average_pool2d<N, C, H, W | s>
    [N, C unordered, H/s, W/s] from [N, C unordered, H, W]
    bindings [<N = 1, C = 3, H = 14, W = 10, s = 2>]
    limits {depth = 6, reduce = 2, shift = 1, stride = 2, weights = 0}
kas.space @global_average_pool2d<N, C, H, W>
    [N, C unordered] from [N, C unordered, H, W]
    bindings [<N = 1, C = 3, H = 5, W = 7>]
    limits {depth = 4, weights = 0, pooling = 64}
kas.space @max_pool2d<N, C, H, W | k, s>
    [N, C unordered, H/s, W/s] from [N, C unordered, H, W]
    bindings [<N = 1, C = 3, H = 14, W = 8, k = 3, s = 2>]
    limits {depth = 6, reduce = 2, shift = 0, stride = 2, weights = 0, pooling = 64}
kas.space @pixel_shuffle<N, C, H, W | r>
    [N, C, H*r, W*r] from [N, C*r**2, H, W]
    bindings [<N = 1, C = 5, H = 3, W = 7, r = 2>]
    limits {depth = 5, reduce = 0, merge = 2, shift = 1, weights = 0}
kas.space @pixel_unshuffle<N, C, H, W | r>
    [N, C*r**2, H, W] from [N, C, H*r, W*r]
    bindings [<N = 1, C = 5, H = 3, W = 7, r = 2>]
    limits {depth = 5, reduce = 0, merge = 2, shift = 1, weights = 0}
kas.space @channel_shuffle<N, C, H, W | g>
    [N, C, H, W] from [N, C, H, W]
    bindings [<N = 1, C = 6, H = 5, W = 7, g = 2>]
    limits {depth = 4, reduce = 0, weights = 0}
kas.space @nearest_upsample2d<N, C, H, W | s>
    [N, C unordered, H*s, W*s] from [N, C unordered, H, W]
    bindings [<N = 1, C = 5, H = 3, W = 7, s = 2>]
    limits {depth = 5, reduce = 0, merge = 2, expand = 2, shift = 1, weights = 0}

//===----------------------------------------------------------------------===//
// Operators found by synthesis, and those it is compared with
//===----------------------------------------------------------------------===//

kas.space @syno_operator1<N, Cin, Cout, H, W | k, g, s>
    [N, Cout, H, W] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 6, Cout = 12, H = 7, W = 8, k = 3, g = 3, s = 2>,
              <N = 1, Cin = 10, Cout = 12, H = 6, W = 7, k = 3, g = 2, s = 3>]
    limits {depth = 10, reduce = 5, split = 1, merge = 0, shift = 0, occurrences.k = 2, occurrences.g = 3,
            occurrences.s = 1}
kas.space @syno_operator2<N, Cin, Cout, H, W | k, g, s>
    [N, Cout, H, W] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 6, Cout = 12, H = 7, W = 8, k = 3, g = 3, s = 2>,
              <N = 1, Cin = 10, Cout = 12, H = 6, W = 7, k = 3, g = 2, s = 3>]
    limits {depth = 11, reduce = 5, split = 1, merge = 0, shift = 1, occurrences.k = 2, occurrences.g = 3,
            occurrences.s = 1, shift_backward = 0}
kas.space @stacked_conv2d<N, Cin, Cout, H, W | k, g, s>
    [N, Cout, H, W] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 6, Cout = 12, H = 7, W = 8, k = 3, g = 3, s = 2>,
              <N = 1, Cin = 10, Cout = 12, H = 6, W = 7, k = 3, g = 2, s = 3>]
    limits {depth = 12, reduce = 6, split = 1, merge = 0, shift = 0, unfold = 3, occurrences.k = 3, occurrences.g = 3,
            occurrences.s = 1, occurrences.Cin = 2, occurrences.Cout = 4, chain = 4, reduce_ratio = 8.0}
kas.space @conv2d_group_shared<N, Cin, Cout, H, W | k, g>
    [N, Cout, H, W] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 4, Cout = 6, H = 7, W = 8, k = 3, g = 2>,
              <N = 1, Cin = 6, Cout = 12, H = 6, W = 7, k = 3, g = 3>]
    limits {depth = 8, reduce = 3, shift = 0, split = 1, weights = 1, occurrences.k = 2, occurrences.g = 2}
kas.space @conv2d_group_oas<N, Cin, Cout, H, W | k, g, s>
    [N, Cout, H, W] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 6, Cout = 12, H = 7, W = 8, k = 3, g = 3, s = 2>,
              <N = 1, Cin = 10, Cout = 12, H = 6, W = 7, k = 3, g = 2, s = 3>]
    limits {depth = 10, reduce = 5, split = 1, merge = 0, shift = 0, occurrences.k = 2, occurrences.g = 3,
            occurrences.s = 1}
kas.space @multi_query_projection<N, L, H | t>
    [N, L, H*t] from [N, L, H unordered]
    bindings [<N = 1, L = 7, H = 6, t = 2>,
              <N = 1, L = 5, H = 8, t = 3>]
    limits {depth = 5, reduce = 2, merge = 2, expand = 1}
kas.space @pool_conv2d<N, Cin, Cout, H, W | k, s>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 5, Cout = 11, H = 12, W = 14, k = 3, s = 2>]
    limits {depth = 14, reduce = 5, merge = 2, expand = 2, shift = 0, weights = 1, chain = 4, pooling = 4,
            occurrences.k = 2, occurrences.s = 3, occurrences.Cin = 2, occurrences.Cout = 1}
kas.space @pool_conv1d<N, Cin, Cout, H, W | k, s>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 5, Cout = 11, H = 14, W = 8, k = 3, s = 2>]
    limits {depth = 10, reduce = 4, merge = 1, expand = 1, shift = 0, split = 1, weights = 1, occurrences.k = 2,
            occurrences.s = 2}
kas.space @conv1d_shift1d<N, Cin, Cout, H, W | k>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 5, H = 6, W = 7, k = 3>]
    limits {depth = 5, reduce = 3, occurrences.k = 2}
kas.space @kernel_07923<N, Cin, Cout, H, W | k, s>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 5, Cout = 7, H = 6, W = 8, k = 3, s = 2>]
    limits {depth = 8, reduce = 3, split = 1, unfold = 1, shift = 1, weights = 1, occurrences.k = 2, occurrences.s = 2}
kas.space @conv1d_patch1d<N, Cin, Cout, H, W | k, p>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 3, Cout = 5, H = 7, W = 6, k = 3, p = 2>,
              <N = 1, Cin = 4, Cout = 5, H = 8, W = 10, k = 3, p = 2>]
    limits {depth = 7, reduce = 3, split = 1, shift = 1, weights = 1, occurrences.k = 2, occurrences.p = 2}
// M = k**3*t and A = k**3*t**2 are symbols of their own: a coefficient has no third power in a size of the search.
kas.space @gpt2_projection<N, L, A, B, M, H | k, t>
    [N, L, A*B*k] from [N, L, B*M*k]
    bindings [<N = 1, L = 3, A = 8, B = 2, M = 8, H = 32, k = 2, t = 1>]
    limits {depth = 5, reduce = 1, merge = 2, split = 1, shift = 0, weights = 1, size_symbols = 4, occurrences.A = 4,
            occurrences.B = 4, occurrences.M = 4, occurrences.H = 0, occurrences.t = 0}

//===----------------------------------------------------------------------===//
// Convolutions after transformations of their loop nest
//===----------------------------------------------------------------------===//

kas.space @conv2d_slabs<N, Cin, Cout, H, W | k, s>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 5, Cout = 11, H = 14, W = 10, k = 3, s = 2>]
    limits {depth = 8, reduce = 3, shift = 0, split = 1, weights = 1, occurrences.k = 2, occurrences.s = 2}
kas.space @conv2d_input_bottleneck<N, Cin, Cout, H, W | k, b>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 5, H = 6, W = 7, k = 3, b = 2>]
    limits {depth = 7, reduce = 3, shift = 0, stride = 1, weights = 1, occurrences.k = 2, occurrences.b = 2}
kas.space @conv2d_output_bottleneck<N, Cin, Cout, H, W | k, b>
    [N, Cout, H, W] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 4, Cout = 6, H = 6, W = 7, k = 3, b = 2>,
              <N = 1, Cin = 5, Cout = 12, H = 6, W = 7, k = 3, b = 3>]
    limits {depth = 8, reduce = 3, shift = 0, split = 1, expand = 1, weights = 1, occurrences.k = 2, occurrences.b = 2}
kas.space @conv2d_spatial_bottleneck<N, Cin, Cout, H, W | k, b>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 3, Cout = 5, H = 12, W = 14, k = 3, b = 2>]
    limits {depth = 12, reduce = 3, merge = 2, expand = 2, shift = 0, split = 0, stride = 2, weights = 1, chain = 5,
            occurrences.k = 2, occurrences.b = 3, occurrences.Cin = 2, occurrences.Cout = 1}
