// The 19 convolutions of ResNet-18 at 224x224 but the first one, as a kernel of
// C to C channels. One with more channels on one side is made of copies of it;
// H and W are those of the output. 64 to 128 channels count as two copies of 64.
kas.kernel canvas @convolution<C, H, W | G, k> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 64, G = 2, H = 56, W = 56, k = 3> x 4,
              <C = 64, G = 2, H = 28, W = 28, k = 3> x 2,
              <C = 64, G = 2, H = 28, W = 28, k = 1> x 2,
              <C = 128, G = 2, H = 28, W = 28, k = 3> x 3,
              <C = 128, G = 2, H = 14, W = 14, k = 3> x 2,
              <C = 128, G = 2, H = 14, W = 14, k = 1> x 2,
              <C = 256, G = 2, H = 14, W = 14, k = 3> x 3,
              <C = 256, G = 2, H = 7, W = 7, k = 3> x 2,
              <C = 256, G = 2, H = 7, W = 7, k = 1> x 2,
              <C = 512, G = 2, H = 7, W = 7, k = 3> x 3]
    budget {flops = 3391094784, params = 11157504} {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}
