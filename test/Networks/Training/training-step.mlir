// RUN: kas-opt %s -kas-training-step | FileCheck %s
// RUN: kas-opt %s -kas-training-step='optimizer=adamw clip-norm=1 label-smoothing=0.1' | FileCheck %s --check-prefix=ADAMW
// RUN: kas-opt %s -kas-training-step='momentum=0 loss=mse' | FileCheck %s --check-prefix=PLAIN
// RUN: kas-opt %s -kas-training-step='momentum=0 weight-decay=0.125' | FileCheck %s --check-prefix=DECAY
// RUN: kas-opt %s -kas-training-step='momentum=0 weight-decay=0.125 decay-all=1' | FileCheck %s --check-prefix=DECAYALL
// RUN: kas-opt %s -kas-training-step -kas-cpu-pipeline=threads=1 -o /dev/null
// RUN: not kas-opt %s -kas-training-step=function=none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kas-opt %s -kas-training-step=momentum=1.5 2>&1 | FileCheck %s --check-prefix=MOMENTUM
// RUN: not kas-opt %s -kas-training-step=clip-norm=nan 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: not kas-opt %s -kas-training-step='nesterov=1 momentum=0' 2>&1 | FileCheck %s --check-prefix=NESTEROV

// NONE: error: option 'function' requires a function with a body, got 'none'
// MOMENTUM: error: option 'momentum' requires a number of at least 0 and less than 1, got 1.5
// CLIP: error: option 'clip-norm' requires a number of at least 0, got nan
// NESTEROV: error: option 'nesterov' requires a momentum, got 0

// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: tensor<4x3x5x5xf32> {kas.name = "input"}, %{{[a-z0-9]*}}: tensor<4xf32> {kas.name = "labels"},
// CHECK-SAME: tensor<f32> {kas.init = "constant(0.1)", kas.name = "learning_rate"},
// CHECK-SAME: tensor<2x3xf32> {kas.name = "mix.weight"},
// CHECK-SAME: tensor<2xf32> {kas.name = "norm.weight"}, %{{[a-z0-9]*}}: tensor<2xf32> {kas.name = "norm.bias"},
// CHECK-SAME: tensor<2xf32> {kas.name = "norm.running_mean"}, %{{[a-z0-9]*}}: tensor<2xf32> {kas.name = "norm.running_var"},
// CHECK-SAME: tensor<2x3xf32> {kas.init = "zeros", kas.name = "mix.weight.momentum"},
// CHECK-SAME: tensor<2xf32> {kas.init = "zeros", kas.name = "norm.weight.momentum"},
// CHECK-SAME: tensor<2xf32> {kas.init = "zeros", kas.name = "norm.bias.momentum"})
// CHECK-SAME: -> (tensor<f32> {kas.name = "loss"}, tensor<f32> {kas.name = "correct"},
// CHECK-SAME: tensor<2x3xf32> {kas.name = "mix.weight"},
// CHECK-SAME: tensor<2xf32> {kas.name = "norm.running_var"},
// CHECK-SAME: tensor<2xf32> {kas.name = "norm.bias.momentum"})
// Normalized by the batch: its statistics are of what comes out of the layer.
// CHECK: %[[X:.*]] = linalg.generic {{.*}} : tensor<4x3x5x5xf32>, tensor<2x3xf32>) outs(
// CHECK: kas.batch_norm %[[X]], %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<4x2x5x5xf32>, tensor<2xf32>
// CHECK: cf.assert %{{.*}}, "requires labels that are numbers of classes, less than 2"

// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: tensor<4xf32> {kas.name = "labels"}, %{{[a-z0-9]*}}: tensor<2x3xf32> {kas.name = "mix.weight"},
// CHECK-SAME: -> (tensor<f32> {kas.name = "loss"}, tensor<f32> {kas.name = "correct"})

// The weight of the convolution is of rank 2, those of the normalization are of rank 1.
// DECAY: %[[RATE:.*]] = arith.constant 1.250000e-01 : f32
// DECAY-COUNT-1: arith.mulf %{{.*}}, %[[RATE]] : f32
// DECAY-NOT: %[[RATE]] :
// DECAY: func.func @evaluate(
// DECAYALL: %[[RATE:.*]] = arith.constant 1.250000e-01 : f32
// DECAYALL-COUNT-3: arith.mulf %{{.*}}, %[[RATE]] : f32
// DECAYALL-NOT: %[[RATE]] :
// DECAYALL: func.func @evaluate(

// ADAMW-LABEL: func.func @train_step(
// ADAMW-SAME: {kas.init = "zeros", kas.name = "mix.weight.exp_avg"}
// ADAMW-SAME: {kas.init = "zeros", kas.name = "mix.weight.exp_avg_sq"}
// ADAMW-SAME: tensor<f32> {kas.init = "zeros", kas.name = "step"}) ->

// No state; targets as large as the logits.
// PLAIN-LABEL: func.func @train_step(
// PLAIN-SAME: tensor<4x2xf32> {kas.name = "labels"}
// PLAIN-SAME: tensor<2xf32> {kas.name = "norm.running_var"}) ->

#elements = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channels = affine_map<(n, c, h, w) -> (c, 0, 0)>
#one = affine_map<(c) -> (c)>
func.func @forward(%input: tensor<4x3x5x5xf32> {kas.name = "input"}, %mix: tensor<2x3xf32> {kas.name = "mix.weight"},
    %scale: tensor<2xf32> {kas.name = "norm.weight"}, %offset: tensor<2xf32> {kas.name = "norm.bias"},
    %mean: tensor<2xf32> {kas.name = "norm.running_mean"}, %var: tensor<2xf32> {kas.name = "norm.running_var"}) -> tensor<4x2xf32> {
  %zero = arith.constant 0.0 : f32
  %epsilon = arith.constant 1.0e-5 : f64
  %e = tensor.empty() : tensor<4x2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2x5x5xf32>) -> tensor<4x2x5x5xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(n, o, h, w, i) -> (n, i, h, w)>, affine_map<(n, o, h, w, i) -> (o, i)>,
      affine_map<(n, o, h, w, i) -> (n, o, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%input, %mix : tensor<4x3x5x5xf32>, tensor<2x3xf32>) outs(%f : tensor<4x2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x2x5x5xf32>
  %t = tensor.empty() : tensor<2xf32>
  %shifted = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%var : tensor<2xf32>) outs(%t : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %small = arith.truncf %epsilon : f64 to f32
    %s = arith.addf %a, %small : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  %inverse = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%shifted : tensor<2xf32>) outs(%t : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = math.rsqrt %a : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  %mean3 = tensor.expand_shape %mean [[0, 1, 2]] output_shape [2, 1, 1] : tensor<2xf32> into tensor<2x1x1xf32>
  %inverse3 = tensor.expand_shape %inverse [[0, 1, 2]] output_shape [2, 1, 1] : tensor<2xf32> into tensor<2x1x1xf32>
  %scale3 = tensor.expand_shape %scale [[0, 1, 2]] output_shape [2, 1, 1] : tensor<2xf32> into tensor<2x1x1xf32>
  %offset3 = tensor.expand_shape %offset [[0, 1, 2]] output_shape [2, 1, 1] : tensor<2xf32> into tensor<2x1x1xf32>
  %centred = linalg.generic {indexing_maps = [#elements, #channels, #elements], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %mean3 : tensor<4x2x5x5xf32>, tensor<2x1x1xf32>) outs(%e : tensor<4x2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x2x5x5xf32>
  %scaled = linalg.generic {indexing_maps = [#elements, #channels, #elements], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%centred, %inverse3 : tensor<4x2x5x5xf32>, tensor<2x1x1xf32>) outs(%e : tensor<4x2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x2x5x5xf32>
  %stretched = linalg.generic {indexing_maps = [#elements, #channels, #elements], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scaled, %scale3 : tensor<4x2x5x5xf32>, tensor<2x1x1xf32>) outs(%e : tensor<4x2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x2x5x5xf32>
  %y = linalg.generic {indexing_maps = [#elements, #channels, #elements], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%stretched, %offset3 : tensor<4x2x5x5xf32>, tensor<2x1x1xf32>) outs(%e : tensor<4x2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x2x5x5xf32>
  %g = tensor.empty() : tensor<4x2xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<4x2xf32>) -> tensor<4x2xf32>
  %logits = linalg.generic {indexing_maps = [#elements, affine_map<(n, c, h, w) -> (n, c)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%y : tensor<4x2x5x5xf32>) outs(%h : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %a : f32
    %s = arith.addf %b, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32>
  return %logits : tensor<4x2xf32>
}
