"""Writes a residual network as linalg on tensors, as exporters make it.

usage: resnet.py DEPTH [IMAGE [WIDTH]]

DEPTH is 18, 34, 50, 101, 152 or, for tests, 4: one block; IMAGE the size of the image (224), WIDTH the channels of the
first stage (64). Batch normalizations are part of the convolutions' weights and biases (He et al., "Deep Residual
Learning for Image Recognition", CVPR 2016, table 1).
"""

import sys

STAGES = {4: (1,), 18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
MAP = "affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>"


class Writer:
    def __init__(self, batch=1):
        self.lines, self.arguments, self.count, self.batch = [], [], 0, batch

    def emit(self, text, type_):
        self.count += 1
        self.lines.append(f"  %{self.count} = {text}")
        return f"%{self.count}", type_

    def argument(self, name, *sizes):
        type_ = "x".join(map(str, sizes))
        self.arguments.append(f'%{name.replace(".", "_")}: tensor<{type_}xf32> {{kas.name = "{name}"}}')
        return f"%{name.replace('.', '_')}", type_

    def conv(self, value, name, channels, kernel, stride):
        _, inputs, height, width = map(int, value[1].split("x"))
        weight = self.argument(name + ".weight", channels, inputs, kernel, kernel)
        bias = self.argument(name + ".bias", channels)
        if kernel > 1:
            pad = kernel // 2
            padded = f"{self.batch}x{inputs}x{height + 2 * pad}x{width + 2 * pad}"
            low = f"[0, 0, {pad}, {pad}]"
            value = self.emit(
                f"tensor.pad {value[0]} low{low} high{low} {{\n  ^bb0(%a: index, %b: index, %c: index, %d: index):\n"
                f"    tensor.yield %zero : f32\n  }} : tensor<{value[1]}xf32> to tensor<{padded}xf32>",
                padded,
            )
        out = f"{self.batch}x{channels}x{-(-height // stride)}x{-(-width // stride)}"
        empty = self.emit(f"tensor.empty() : tensor<{out}xf32>", out)
        init = self.emit(
            f"linalg.broadcast ins({bias[0]} : tensor<{bias[1]}xf32>) outs({empty[0]} : tensor<{out}xf32>) "
            "dimensions = [0, 2, 3]",
            out,
        )
        return self.emit(
            f"linalg.conv_2d_nchw_fchw {{dilations = dense<1> : vector<2xi64>, strides = dense<{stride}> : "
            f"vector<2xi64>}} "
            f"ins({value[0]}, {weight[0]} : tensor<{value[1]}xf32>, tensor<{weight[1]}xf32>) "
            f"outs({init[0]} : tensor<{out}xf32>) -> tensor<{out}xf32>",
            out,
        )

    def elementwise(self, body, *values):
        type_ = values[0][1]
        empty = self.emit(f"tensor.empty() : tensor<{type_}xf32>", type_)
        maps = ", ".join([MAP] * (len(values) + 1))
        names = ", ".join(value[0] for value in values)
        types = ", ".join([f"tensor<{type_}xf32>"] * len(values))
        arguments = ", ".join(f"%x{i}: f32" for i in range(len(values)))
        return self.emit(
            f'linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", '
            f'"parallel"]}} '
            f"ins({names} : {types}) outs({empty[0]} : tensor<{type_}xf32>) {{\n  ^bb0({arguments}, %o: f32):\n"
            f"    {body}\n    linalg.yield %r : f32\n  }} -> tensor<{type_}xf32>",
            type_,
        )

    def relu(self, value):
        return self.elementwise(
            "%c = arith.cmpf ugt, %x0, %zero : f32\n    %r = arith.select %c, %x0, %zero : f32", value
        )

    def add(self, one, other):
        return self.elementwise("%r = arith.addf %x0, %x1 : f32", one, other)

    def max_pool(self, value):
        _, channels, height, width = map(int, value[1].split("x"))
        padded = f"{self.batch}x{channels}x{height + 2}x{width + 2}"
        value = self.emit(
            "tensor.pad " + value[0] + " low[0, 0, 1, 1] high[0, 0, 1, 1] {\n"
            "  ^bb0(%a: index, %b: index, %c: index, %d: index):\n"
            f"    tensor.yield %least : f32\n  }} : tensor<{value[1]}xf32> to tensor<{padded}xf32>",
            padded,
        )
        window = self.emit("tensor.empty() : tensor<3x3xf32>", "3x3")
        out = f"{self.batch}x{channels}x{height // 2}x{width // 2}"
        empty = self.emit(f"tensor.empty() : tensor<{out}xf32>", out)
        init = self.emit(
            f"linalg.fill ins(%least : f32) outs({empty[0]} : tensor<{out}xf32>) -> tensor<{out}xf32>", out
        )
        return self.emit(
            "linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} "
            f"ins({value[0]}, {window[0]} : tensor<{padded}xf32>, tensor<3x3xf32>) outs({init[0]} : tensor<{out}xf32>) "
            f"-> tensor<{out}xf32>",
            out,
        )

    def block(self, value, name, channels, stride, bottleneck):
        layers = (
            [(channels, 1, 1), (channels, 3, stride), (4 * channels, 1, 1)]
            if bottleneck
            else [(channels, 3, stride), (channels, 3, 1)]
        )
        result = value
        for number, (outputs, kernel, step) in enumerate(layers):
            result = self.conv(result, f"{name}.conv{number + 1}", outputs, kernel, step)
            if number + 1 < len(layers):
                result = self.relu(result)
        if value[1] != result[1]:
            value = self.conv(value, f"{name}.downsample", layers[-1][0], 1, stride)
        return self.relu(self.add(result, value))


def main():
    depth = int(sys.argv[1])
    image = int(sys.argv[2]) if len(sys.argv) > 2 else 224
    width = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    writer = Writer()
    value = writer.argument("input", 1, 3, image, image)
    value = writer.max_pool(writer.relu(writer.conv(value, "conv1", width, 7, 2)))
    for stage, blocks in enumerate(STAGES[depth]):
        for number in range(blocks):
            value = writer.block(
                value, f"layer{stage + 1}.{number}", width << stage, 2 if stage and not number else 1, depth >= 50
            )
    print(f"// ResNet-{depth} without its classifier, images of {image}x{image}.")
    print(f"func.func @forward({', '.join(writer.arguments)}) -> tensor<{value[1]}xf32> {{")
    print("  %zero = arith.constant 0.0 : f32\n  %least = arith.constant 0xFF800000 : f32")
    print("\n".join(writer.lines))
    print(f"  return {value[0]} : tensor<{value[1]}xf32>\n}}")


if __name__ == "__main__":
    main()
