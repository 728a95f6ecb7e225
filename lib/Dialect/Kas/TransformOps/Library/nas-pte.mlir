// The three sequences of Turner et al., "Neural Architecture Search as Program Transformation Exploration" (ASPLOS 2021),
// section 7.3, for convolutions with the iterators of linalg.conv_2d_nchw_fchw (batch, output channel, row, column, input
// channel, kernel row, kernel column). Each returns the convolutions that replace the one it is given; their weights are
// parts of the old ones until transform.kas.new_weights gives them their own. To use them:
//
//   kas-opt MODEL.mlir -transform-preload-library=transform-library-paths=nas-pte.mlir -transform-interpreter
//
// where the script declares the sequence and includes it: test/Dialect/Kas/TransformOps/sequences.mlir has an example.

module attributes {transform.with_named_sequence} {
  // Sequence 1: rows in slabs, each convolved by weights of its own. Slabs divide the rows of input and output. The same
  // work, as many times the weights as there are slabs.
  transform.named_sequence @nas_pte_sequence_1(
      %convolution: !transform.any_op {transform.consumed},
      %slabs: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %result = transform.kas.slabs %convolution iterator 2 by %slabs
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    transform.yield %result : !transform.any_op
  }

  // Sequence 2: the first outputs from all inputs; the others in groups from the inputs after as many. `unrolled` is less
  // than the number of output and of input channels; the groups divide what is left of both.
  transform.named_sequence @nas_pte_sequence_2(
      %convolution: !transform.any_op {transform.consumed},
      %unrolled: !transform.param<i64> {transform.readonly},
      %groups: !transform.param<i64> {transform.readonly}) -> (!transform.any_op, !transform.any_op) {
    %parts = transform.structured.split %convolution after %unrolled {dimension = 1}
        : !transform.any_op, !transform.param<i64>
    %dense, %rest = transform.split_handle %parts : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fewer = transform.kas.restrict %rest iterator 4 from %unrolled
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    %grouped = transform.kas.group %fewer iterators [1, 4] by %groups
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    transform.yield %dense, %grouped : !transform.any_op, !transform.any_op
  }

  // Sequence 3: two parts of the outputs, each from all inputs in groups of its own number. `outputs` is the size of the
  // first part, half of the channels in the paper.
  transform.named_sequence @nas_pte_sequence_3(
      %convolution: !transform.any_op {transform.consumed},
      %outputs: !transform.param<i64> {transform.readonly},
      %groups0: !transform.param<i64> {transform.readonly},
      %groups1: !transform.param<i64> {transform.readonly}) -> (!transform.any_op, !transform.any_op) {
    %parts = transform.structured.split %convolution after %outputs {dimension = 1}
        : !transform.any_op, !transform.param<i64>
    %first, %second = transform.split_handle %parts : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %grouped0 = transform.kas.group %first iterators [1, 4] by %groups0
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    %grouped1 = transform.kas.group %second iterators [1, 4] by %groups1
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    transform.yield %grouped0, %grouped1 : !transform.any_op, !transform.any_op
  }
}
