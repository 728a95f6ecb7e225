#include "kas/Support/Size.h"
#include "gtest/gtest.h"

using namespace kas;

TEST(Size, PrintsInNormalOrder) {
  SymbolSet symbols;
  cantFail(symbols.add("H", SymbolKind::Primary));
  cantFail(symbols.add("C", SymbolKind::Primary));
  cantFail(symbols.add("g", SymbolKind::Coefficient));
  cantFail(symbols.add("s", SymbolKind::Coefficient));
  auto normal = [&](llvm::StringRef text) {
    return toString(cantFail(parseSize(text, symbols)), symbols);
  };
  EXPECT_EQ(normal("H*C"), "C*H");
  EXPECT_EQ(normal("C/s/g"), "C/(g*s)");
  EXPECT_EQ(normal("C/(s*g)*3"), "3*C/(g*s)");
  EXPECT_EQ(normal("g**2*H*2/4"), "H*g**2/2");
  EXPECT_EQ(normal("1"), "1");
  EXPECT_EQ(normal("1/s**2"), "1/s**2");
  EXPECT_EQ(normal("C/C"), "1");
}
