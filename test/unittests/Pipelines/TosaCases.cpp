//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations of TOSA, in the generic form.
//
//===----------------------------------------------------------------------===//

#include "OperationCase.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace kas::pipelines;
using llvm::StringRef;

namespace {

class Cases {
public:
  /// An operation on arguments of `types`, of which the last is the result, and
  /// on values that `before` defines, `operands` with their types.
  OperationCase &add(StringRef op, StringRef variant,
                     std::vector<std::string> types, StringRef attributes = "",
                     StringRef before = "", StringRef operands = "",
                     StringRef operandTypes = "") {
    OperationCase made;
    made.name = "tosa." + op.str();
    made.variant = variant.str();
    made.numArguments = types.size() - 1;
    made.results = {made.numArguments};
    std::string values, names;
    for (unsigned i = 0; i < made.numArguments; ++i) {
      values += (i ? ", %a" : "%a") + std::to_string(i);
      names += (i ? ", $" : "$") + std::to_string(i);
    }
    if (!operands.empty()) {
      values += (values.empty() ? "" : ", ") + operands.str();
      names += (names.empty() ? "" : ", ") + operandTypes.str();
    }
    made.body = before.str() + "  %r = \"" + made.name + "\"(" + values + ")" +
                (attributes.empty() ? "" : " <{" + attributes.str() + "}>") +
                " : (" + names + ") -> $" + std::to_string(made.results[0]);
    made.types = std::move(types);
    made.match = Match::Rounding;
    all.push_back(std::move(made));
    return all.back();
  }

  /// A case that is written out; the result is `%r`.
  OperationCase &addText(StringRef op, StringRef variant,
                         std::vector<std::string> types, StringRef body) {
    OperationCase &made = add(op, variant, std::move(types));
    made.body = body.str();
    return made;
  }

  std::vector<OperationCase> all;
};

} // namespace

static std::string constant(StringRef name, StringRef value, StringRef type) {
  return ("  " + name + " = \"tosa.const\"() <{values = dense<" + value +
          "> : " + type + "}> : () -> " + type + "\n")
      .str();
}

static std::string shape(StringRef name, StringRef values, unsigned rank) {
  std::string n = std::to_string(rank);
  return ("  " + name + " = tosa.const_shape {values = dense<" + values +
          "> : tensor<" + n + "xindex>} : () -> !tosa.shape<" + n + ">\n")
      .str();
}

static void addElementwise(Cases &cases) {
  for (const char *op : {"abs", "ceil", "floor", "exp", "log", "rsqrt",
                         "reciprocal", "sigmoid", "tanh", "erf", "cos", "sin"})
    cases.add(op, "f32", {"3x7xf32", "3x7xf32"}).fills = {Fill::Fractions};
  cases.add("identity", "f32", {"3x7xf32", "3x7xf32"});
  cases.add("abs", "i32", {"3x7xi32", "3x7xi32"});
  cases.add("logical_not", "i1", {"3x7xi1", "3x7xi1"});
  cases.add("bitwise_not", "i32", {"3x7xi32", "3x7xi32"});
  cases.add("clz", "i32", {"3x7xi32", "3x7xi32"});
  // The second one is one row, or of the same shape.
  for (const char *rows : {"3", "1"})
    for (const char *element : {"f32", "i32"}) {
      std::string x = std::string("3x7x") + element,
                  y = std::string(rows) + "x7x" + element;
      for (const char *op : {"add", "sub", "maximum", "minimum"})
        cases.add(op, y, {x, y, x});
      for (const char *op : {"equal", "greater", "greater_equal"})
        cases.add(op, y, {x, y, "3x7xi1"});
      cases.add("select", y, {"3x7xi1", y, x, x});
      cases.add("mul", y, {x, y, x}, "", constant("%s", "0", "tensor<1xi8>"),
                "%s", "tensor<1xi8>");
    }
  cases.add("mul", "shifted", {"3x7xi32", "3x7xi32", "3x7xi32"}, "",
            constant("%s", "3", "tensor<1xi8>"), "%s", "tensor<1xi8>");
  cases.add("pow", "f32", {"3x7xf32", "3x7xf32", "3x7xf32"}).fills = {
      Fill::Fractions, Fill::Fractions};
  for (const char *op : {"bitwise_and", "bitwise_or", "bitwise_xor"})
    cases.add(op, "i32", {"3x7xi32", "3x7xi32", "3x7xi32"});
  for (const char *op : {"logical_and", "logical_or", "logical_xor"})
    cases.add(op, "i1", {"3x7xi1", "3x7xi1", "3x7xi1"});
  for (const char *op : {"logical_left_shift", "logical_right_shift"}) {
    OperationCase &made =
        cases.add(op, "i32", {"3x7xi32", "3x7xi32", "3x7xi32"});
    made.fills = {Fill::Small, Fill::Indices};
    made.limit = 8;
  }
  for (const char *round : {"true", "false"}) {
    OperationCase &made = cases.add("arithmetic_right_shift", round,
                                    {"3x7xi32", "3x7xi32", "3x7xi32"},
                                    std::string("round = ") + round);
    made.fills = {Fill::Small, Fill::Indices};
    made.limit = 8;
  }
  cases.add("intdiv", "i32", {"3x7xi32", "3x7xi32", "3x7xi32"}).fills = {
      Fill::NonZero, Fill::NonZero};
  for (const char *element : {"f32", "i32", "i8"}) {
    std::string e = element, type = "tensor<1x" + e + ">",
                zero = e == "f32" ? "0.0" : "0";
    cases.add("negate", e, {"3x7x" + e, "3x7x" + e}, "",
              constant("%z", zero, type), "%z, %z", type + ", " + type);
  }
  cases.add("clamp", "f32", {"3x7xf32", "3x7xf32"},
            "min_val = -1.5 : f32, max_val = 2.0 : f32");
  cases.add("clamp", "i8", {"3x7xi8", "3x7xi8"},
            "min_val = -2 : i8, max_val = 3 : i8");
  for (auto [from, to] : {std::pair{"f32", "i32"}, std::pair{"i32", "f32"},
                          std::pair{"f32", "f16"}, std::pair{"f16", "f32"},
                          std::pair{"i8", "i32"}, std::pair{"i32", "i8"},
                          std::pair{"i1", "i32"}, std::pair{"i32", "i1"},
                          std::pair{"f32", "bf16"}, std::pair{"f32", "i8"}})
    cases
        .add("cast", std::string(from) + " to " + to,
             {std::string("3x7x") + from, std::string("3x7x") + to})
        .fills = {Fill::Fractions};
}

static void addReductions(Cases &cases) {
  for (const char *axis : {"0", "1"}) {
    std::string attribute = std::string("axis = ") + axis + " : i32";
    std::string rows = *axis == '0' ? "1x7x" : "5x1x",
                kept = *axis == '0' ? "7x" : "5x";
    for (const char *element : {"f32", "i32"}) {
      std::string e = element;
      for (const char *op :
           {"reduce_max", "reduce_min", "reduce_product", "reduce_sum"})
        if (e == "f32" || StringRef(op) != "reduce_product")
          cases.add(op, axis + (" " + e), {"5x7x" + e, rows + e}, attribute);
    }
    for (const char *op : {"reduce_all", "reduce_any"})
      cases.add(op, axis, {"5x7xi1", rows + "i1"}, attribute);
    for (const char *element : {"f32", "i8"})
      cases.add("argmax", axis + (" " + std::string(element)),
                {std::string("5x7x") + element, kept + "i32"}, attribute);
    cases.add("reverse", axis, {"5x7xf32", "5x7xf32"}, attribute);
  }
  cases.add("concat", "", {"5x7xf32", "2x7xf32", "7x7xf32"}, "axis = 0 : i32");
}

static void addShapes(Cases &cases) {
  cases.add("pad", "", {"3x4xf32", "4x7xf32"}, "",
            shape("%s", "[1, 0, 2, 1]", 4) +
                constant("%c", "1.5", "tensor<1xf32>"),
            "%s, %c", "!tosa.shape<4>, tensor<1xf32>");
  cases.add("reshape", "", {"3x4xf32", "2x6xf32"}, "", shape("%s", "[2, 6]", 2),
            "%s", "!tosa.shape<2>");
  cases.add("reshape", "-1", {"3x4xf32", "2x6xf32"}, "",
            shape("%s", "[2, -1]", 2), "%s", "!tosa.shape<2>");
  cases.add("slice", "", {"5x7xf32", "2x3xf32"}, "",
            shape("%s", "[1, 2]", 2) + shape("%n", "[2, 3]", 2), "%s, %n",
            "!tosa.shape<2>, !tosa.shape<2>");
  cases.add("tile", "", {"2x3xf32", "6x6xf32"}, "", shape("%s", "[3, 2]", 2),
            "%s", "!tosa.shape<2>");
  cases.add("transpose", "", {"2x3x4xf32", "4x2x3xf32"},
            "perms = array<i32: 2, 0, 1>");
  OperationCase &gather =
      cases.add("gather", "", {"2x5x3xf32", "2x4xi32", "2x4x3xf32"});
  gather.fills = {Fill::Small, Fill::Indices};
  gather.limit = 5;
  OperationCase &scatter = cases.add(
      "scatter", "", {"2x5x3xf32", "2x1xi32", "2x1x3xf32", "2x5x3xf32"});
  scatter.fills = {Fill::Small, Fill::Indices};
  scatter.limit = 5;
  cases.addText("const", "", {"2x2xf32", "2x2xf32"},
                constant("%c", "[[1.0, 2.0], [3.0, 4.0]]", "tensor<2x2xf32>") +
                    "  %r = tosa.add %a0, %c : ($0, tensor<2x2xf32>) -> $1");
  OperationCase &table =
      cases.add("table", "i8", {"3x7xi8", "256xi8", "3x7xi8"});
  table.fills = {Fill::Small, Fill::Small};
}

static void addWindows(Cases &cases) {
  size_t first = cases.all.size();
  for (auto [x, acc] : {std::pair{"f32", "f32"}, std::pair{"i8", "i32"}}) {
    std::string e = x, a = acc, zp = "tensor<1x" + e + ">",
                zeros = constant("%z", e == "f32" ? "0.0" : "1", zp),
                types = zp + ", " + zp, type = ", acc_type = " + a;
    cases.add("conv2d", e,
              {"2x9x8x3x" + e, "4x3x2x3x" + e, "4x" + a, "2x5x8x4x" + a},
              "pad = array<i64: 1, 1, 1, 0>, stride = array<i64: 2, 1>, "
              "dilation = array<i64: 1, 1>" +
                  type,
              zeros, "%z, %z", types);
    cases.add("conv2d", "dilated " + e,
              {"2x9x9x2x" + e, "4x3x3x2x" + e, "1x" + a, "2x5x5x4x" + a},
              "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, "
              "dilation = array<i64: 2, 2>" +
                  type,
              zeros, "%z, %z", types);
    cases.add("conv3d", e,
              {"1x5x6x7x2x" + e, "3x2x3x2x2x" + e, "3x" + a, "1x4x4x6x3x" + a},
              "pad = array<i64: 0, 0, 0, 0, 0, 0>, stride = array<i64: 1, 1, "
              "1>, dilation = array<i64: 1, 1, 1>" +
                  type,
              zeros, "%z, %z", types);
    cases.add("depthwise_conv2d", e,
              {"1x7x7x3x" + e, "3x3x3x2x" + e, "6x" + a, "1x7x7x6x" + a},
              "pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>, "
              "dilation = array<i64: 1, 1>" +
                  type,
              zeros, "%z, %z", types);
    cases.add("transpose_conv2d", e,
              {"1x4x4x3x" + e, "2x3x3x3x" + e, "2x" + a, "1x9x9x2x" + a},
              "out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>" +
                  type,
              zeros, "%z, %z", types);
    cases.add("avg_pool2d", e, {"1x7x7x3x" + e, "1x4x4x3x" + e},
              "kernel = array<i64: 3, 3>, pad = array<i64: 1, 1, 1, 1>, "
              "stride = array<i64: 2, 2>" +
                  type,
              constant("%z", e == "f32" ? "0.0" : "0", zp), "%z, %z", types);
    cases.add("max_pool2d", e, {"1x7x7x3x" + e, "1x4x4x3x" + e},
              "kernel = array<i64: 3, 3>, pad = array<i64: 1, 1, 1, 1>, "
              "stride = array<i64: 2, 2>");
    cases.add("matmul", e, {"2x5x9x" + e, "2x9x17x" + e, "2x5x17x" + a}, "",
              constant("%z", e == "f32" ? "0.0" : "1", zp), "%z, %z", types);
  }
  // Upstream's lowerings need the sizes of windows.
  for (size_t i = first; i < cases.all.size(); ++i)
    cases.all[i].hasOnlyBatch = cases.all[i].name != "tosa.matmul";
  for (const char *mode : {"BILINEAR", "NEAREST_NEIGHBOR"})
    cases.add("resize", mode, {"1x4x5x2xf32", "1x7x9x2xf32"},
              std::string("mode = #tosa.resize_mode<") + mode + ">",
              shape("%s", "[4, 2, 4, 2]", 4) + shape("%o", "[0, 0]", 2) +
                  shape("%b", "[0, 0]", 2),
              "%s, %o, %b", "!tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>");
  for (const char *mode : {"SINGLE_ROUND", "DOUBLE_ROUND"})
    cases.add("rescale", mode, {"3x7xi32", "3x7xi8"},
              std::string("rounding_mode = #tosa.rounding_mode<") + mode +
                  ">, scale32 = true, per_channel = false, input_unsigned = "
                  "false, output_unsigned = false",
              constant("%m", "1073741824", "tensor<1xi32>") +
                  constant("%s", "31", "tensor<1xi8>") +
                  constant("%i", "0", "tensor<1xi32>") +
                  constant("%o", "3", "tensor<1xi8>"),
              "%m, %s, %i, %o",
              "tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>");
  OperationCase &scale =
      cases.add("apply_scale", "", {"5xi32", "5xi32", "5xi8", "5xi32"},
                "rounding_mode = #tosa.rounding_mode<SINGLE_ROUND>");
  scale.fills = {Fill::Small, Fill::Indices, Fill::Indices};
  scale.limit = 20;
}

static void addTransforms(Cases &cases) {
  OperationCase &fft = cases.addText(
      "fft2d", "", {"2x4x8xf32", "2x4x8xf32", "2x4x8xf32", "2x4x8xf32"},
      "  %r0, %r1 = \"tosa.fft2d\"(%a0, %a1) <{inverse = false}> : ($0, $1) -> "
      "($2, $3)");
  fft.numArguments = 2;
  fft.results = {2, 3};
  OperationCase &real =
      cases.addText("rfft2d", "", {"2x4x8xf32", "2x4x5xf32", "2x4x5xf32"},
                    "  %r0, %r1 = \"tosa.rfft2d\"(%a0) : ($0) -> ($1, $2)");
  real.numArguments = 1;
  real.results = {1, 2};
}

static void addControlFlow(Cases &cases) {
  OperationCase &condition = cases.addText(
      "cond_if", "", {"i1", "3xf32", "3xf32", "3xf32"},
      "  %c = tensor.from_elements %a0 : tensor<i1>\n"
      "  %r = \"tosa.cond_if\"(%c, %a1, %a2) ({\n"
      "  ^bb0(%x: $1, %y: $2):\n"
      "    %s = tosa.add %x, %y : ($1, $2) -> $3\n    tosa.yield %s : $3\n"
      "  }, {\n  ^bb0(%x: $1, %y: $2):\n"
      "    %s = tosa.sub %x, %y : ($1, $2) -> $3\n    tosa.yield %s : $3\n"
      "  }) : (tensor<i1>, $1, $2) -> $3");
  condition.isStatic = true;
  cases.addText(
      "while_loop", "", {"3xf32", "3xf32"},
      constant("%z", "0", "tensor<i32>") +
          constant("%one", "1", "tensor<i32>") +
          constant("%n", "4", "tensor<i32>") +
          "  %l:2 = \"tosa.while_loop\"(%z, %a0) ({\n"
          "  ^bb0(%i: tensor<i32>, %x: $0):\n"
          "    %c = tosa.greater %n, %i : (tensor<i32>, tensor<i32>) -> "
          "tensor<i1>\n    tosa.yield %c : tensor<i1>\n"
          "  }, {\n  ^bb0(%i: tensor<i32>, %x: $0):\n"
          "    %j = tosa.add %i, %one : (tensor<i32>, tensor<i32>) -> "
          "tensor<i32>\n"
          "    %y = tosa.add %x, %x : ($0, $0) -> $0\n"
          "    tosa.yield %j, %y : tensor<i32>, $0\n"
          "  }) : (tensor<i32>, $0) -> (tensor<i32>, $0)\n"
          "  %r = tensor.cast %l#1 : $0 to $1");
}

/// Of which upstream has no lowering.
static void addOthers(Cases &cases) {
  cases.addText("custom", "", {"3xf32", "3xf32"},
                "  %r = tosa.custom %a0 {operator_name = \"f\", domain_name = "
                "\"d\", implementation_attrs = \"\"} : ($0) -> $1");
  OperationCase &variable =
      cases.addText("variable", "", {"3xf32", "3xf32"},
                    "  tosa.variable_write @v, %a0 : $0\n"
                    "  %v = tosa.variable_read @v : tensor<3xf32>\n"
                    "  %r = tensor.cast %v : tensor<3xf32> to $1");
  variable.globals = "tosa.variable @v = dense<0.0> : tensor<3xf32>";
  for (const char *name : {"variable_read", "variable_write"}) {
    OperationCase copy = cases.all.back();
    copy.name = std::string("tosa.") + name;
    cases.all.push_back(copy);
  }
  for (const char *op :
       {"add_shape", "div_ceil_shape", "div_floor_shape", "max_shape",
        "min_shape", "mod_shape", "mul_shape", "sub_shape"})
    cases.addText(op, "", {"12xf32", "12xf32"},
                  shape("%s", "12", 1) + shape("%o", "12", 1) + "  %t = tosa." +
                      op +
                      " %s, %o : (!tosa.shape<1>, !tosa.shape<1>) -> "
                      "!tosa.shape<1>\n"
                      "  %x = tosa.reshape %a0, %t : ($0, !tosa.shape<1>) -> "
                      "tensor<?xf32>\n"
                      "  %r = tensor.cast %x : tensor<?xf32> to $1");
  for (const char *op : {"exp2_shape", "log2_ceil_shape", "log2_floor_shape"})
    cases.addText(op, "", {"12xf32", "12xf32"},
                  shape("%s", "12", 1) + "  %t = tosa." + op +
                      " %s : (!tosa.shape<1>) -> !tosa.shape<1>\n"
                      "  %x = tosa.reshape %a0, %t : ($0, !tosa.shape<1>) -> "
                      "tensor<?xf32>\n"
                      "  %r = tensor.cast %x : tensor<?xf32> to $1");
  cases.addText("dim", "", {"3x4xf32", "12xf32"},
                "  %d = tosa.dim %a0 {axis = 0 : i32} : ($0) -> "
                "!tosa.shape<1>\n" +
                    shape("%o", "4", 1) +
                    "  %t = tosa.mul_shape %d, %o : (!tosa.shape<1>, "
                    "!tosa.shape<1>) -> !tosa.shape<1>\n"
                    "  %x = tosa.reshape %a0, %t : ($0, !tosa.shape<1>) -> "
                    "tensor<?xf32>\n"
                    "  %r = tensor.cast %x : tensor<?xf32> to $1");
  for (const char *op : {"concat_shape", "slice_shape"})
    cases.addText(
        op, "", {"12xf32", "12xf32"},
        shape("%s", "12", 1) + constant("%z", "0", "tensor<1xi32>") +
            constant("%n", "1", "tensor<1xi32>") +
            (StringRef(op) == "concat_shape"
                 ? "  %t = tosa.concat_shape %s : (!tosa.shape<1>) "
                   "-> !tosa.shape<1>\n"
                 : "  %t = tosa.slice_shape %s, %z, %n : "
                   "(!tosa.shape<1>, tensor<1xi32>, tensor<1xi32>) -> "
                   "!tosa.shape<1>\n") +
            "  %x = tosa.reshape %a0, %t : ($0, !tosa.shape<1>) -> "
            "tensor<?xf32>\n"
            "  %r = tensor.cast %x : tensor<?xf32> to $1");
  cases.addText("cast_to_block_scaled", "", {"4x32xf32", "4x32xf32"},
                "  %d, %s = tosa.cast_to_block_scaled %a0 {block_size = "
                "BLOCK_SIZE_32} : ($0) -> (tensor<4x32xf8E5M2>, "
                "tensor<4x1xf8E8M0FNU>)\n"
                "  %r = tosa.cast_from_block_scaled %d, %s {block_size = "
                "BLOCK_SIZE_32} : (tensor<4x32xf8E5M2>, "
                "tensor<4x1xf8E8M0FNU>) -> $1");
  OperationCase copy = cases.all.back();
  copy.name = "tosa.cast_from_block_scaled";
  cases.all.push_back(copy);
  copy.name = "tosa.matmul_t_block_scaled";
  copy.types = {"1x4x32xf32", "1x4x4xf32"};
  copy.body =
      "  %d, %s = tosa.cast_to_block_scaled %a0 {block_size = BLOCK_SIZE_32} : "
      "($0) -> (tensor<1x4x32xf8E5M2>, tensor<1x4x1xf8E8M0FNU>)\n"
      "  %r = tosa.matmul_t_block_scaled %d, %s, %d, %s {block_size = "
      "BLOCK_SIZE_32} : (tensor<1x4x32xf8E5M2>, tensor<1x4x1xf8E8M0FNU>, "
      "tensor<1x4x32xf8E5M2>, tensor<1x4x1xf8E8M0FNU>) -> $1";
  cases.all.push_back(copy);
}

std::vector<OperationCase>
kas::pipelines::makeTosaCases(std::mt19937_64 &random) {
  Cases cases;
  addElementwise(cases);
  addReductions(cases);
  addShapes(cases);
  addWindows(cases);
  addTransforms(cases);
  addControlFlow(cases);
  size_t first = cases.all.size();
  addOthers(cases);
  // Folds of dynamic shapes would leave nothing of some of them.
  for (size_t i = first; i < cases.all.size(); ++i)
    cases.all[i].isStatic = true;
  return std::move(cases.all);
}
