//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of mathematics on floats. Each is computed in double by textbook
// series, expansions and integrals, so that what they cancel is far below what
// a float keeps; numbers of equations are those of the NIST Digital Library of
// Mathematical Functions (dlmf.nist.gov).
//
// PyTorch's functions of torch.special are what results are compared with, also
// where an argument is outside of the domain: comments say where it decides.
//
//===----------------------------------------------------------------------===//

#include "SpecialFunctions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

using namespace kas::execution;

namespace {

// Constants of double: all of this computes in double.
constexpr double pi = 3.14159265358979323846;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double epsilon = std::numeric_limits<double>::epsilon();

//===----------------------------------------------------------------------===//
// Error functions
//===----------------------------------------------------------------------===//

/// exp(x^2) erfc(x).
double erfcx(double x) {
  // exp(625) is finite; beyond 26 it overflows.
  if (x < 25)
    return std::exp(x * x) * std::erfc(x);
  // 7.12.1
  double y = 1 / (2 * x * x);
  return (1 - y * (1 - 3 * y * (1 - 5 * y))) / (x * std::sqrt(pi));
}

/// The x with erfc(x) = y, for 0 < y <= 1: Newton's method for the logarithm,
/// which is concave.
double invertErfc(double y) {
  double x = y > 0.5 ? 1 - y : std::sqrt(-std::log(y));
  for (int i = 0; i < 50; ++i) {
    double value = std::erfc(x);
    double step =
        std::log(value / y) * value * std::exp(x * x) * (std::sqrt(pi) / 2);
    x += step;
    if (std::abs(step) <= 1e-15 * std::abs(x))
      break;
  }
  return x;
}

/// The x with erf(x) = y; odd, infinite at 1 and -1.
double erfinv(double y) {
  double size = std::abs(y);
  if (!(size <= 1))
    return nan;
  if (size == 1)
    return std::copysign(infinity, y);
  // Away from zero erfc keeps the digits that erf near 1 loses.
  if (size > 0.25)
    return std::copysign(invertErfc(1 - size), y);
  // Newton's method from the first terms of the series, 7.17.2.
  double x = std::sqrt(pi) / 2 * y * (1 + pi / 12 * y * y);
  for (int i = 0; i < 3; ++i)
    x -= (std::erf(x) - y) * std::exp(x * x) * (std::sqrt(pi) / 2);
  return x;
}

/// The quantile of the normal distribution.
double ndtri(double p) {
  if (!(p >= 0 && p <= 1))
    return nan;
  if (p == 0 || p == 1)
    return p == 0 ? -infinity : infinity;
  return p < 0.5 ? -std::sqrt(2) * invertErfc(2 * p)
                 : std::sqrt(2) * invertErfc(2 * (1 - p));
}

/// The logarithm of the normal distribution function. On the left by erfcx,
/// since erfc itself underflows near x = -38.
double logNdtr(double x) {
  double t = x / std::sqrt(2);
  return x < 1 ? std::log(erfcx(-t) / 2) - t * t
               : std::log1p(-std::erfc(t) / 2);
}

//===----------------------------------------------------------------------===//
// Gamma functions
//===----------------------------------------------------------------------===//

/// log |Gamma(x)|. The C library's `lgamma` writes a global variable.
double logGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

/// The Bernoulli numbers B_2, B_4, ..., 24.2.
constexpr double bernoulli[] = {
    1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
    -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};

/// Gamma'(x) / Gamma(x), by reflection, recurrence and an asymptotic expansion.
double digamma(double x) {
  if (x == 0)
    return std::copysign(infinity, -x);
  double result = 0;
  if (x < 0) {
    double whole, part = std::modf(x, &whole);
    if (part == 0)
      return nan;
    // 5.5.4
    result = -pi / std::tan(pi * part);
    x = 1 - x;
  }
  // 5.5.2
  // From 10 on eight terms of the expansion are exact to double.
  for (; x < 10; x += 1)
    result -= 1 / x;
  // 5.11.2
  double square = 1 / (x * x), power = square, sum = 0;
  for (int k = 1; k <= 8; ++k, power *= square)
    sum += bernoulli[k - 1] / (2 * k) * power;
  return result + std::log(x) - 1 / (2 * x) - sum;
}

/// Hurwitz's function, the sum of (q + k)^-s, by Euler and Maclaurin, 25.11.5.
double zeta(double s, double q) {
  if (s == 1)
    return infinity;
  if (s < 1)
    return nan;
  if (q <= 0) {
    if (q == std::floor(q))
      return infinity;
    if (s != std::floor(s))
      return nan;
  }
  if (std::isnan(s) || std::isnan(q) || std::isinf(q))
    return nan;
  double sum = 0;
  // The first terms one by one, then the integral and the corrections at q >=
  // 10.
  for (int k = 0; k < 10 || q < 10; ++k, q += 1) {
    double term = std::pow(q, -s);
    sum += term;
    // Of numbers far below zero, too.
    if (std::abs(term) < epsilon * std::abs(sum) / 16)
      return sum;
    if (q < 0 && q + 1 == q)
      return nan;
  }
  // PyTorch's terms of nothing are infinite for such exponents.
  if (sum == 0)
    return s > 6e12 ? nan : 0;
  double factor = std::pow(q, -s);
  sum += factor * q / (s - 1) + factor / 2;
  factor *= s / q;
  double factorial = 2;
  for (int k = 1; k <= 10; ++k) {
    double term = bernoulli[k - 1] / factorial * factor;
    sum += term;
    if (std::abs(term) <= epsilon * std::abs(sum))
      break;
    factor *= (s + 2 * k - 1) * (s + 2 * k) / (q * q);
    factorial *= (2 * k + 1) * (2 * k + 2);
  }
  return sum;
}

/// The derivative of digamma, by Hurwitz's function.
double trigamma(double x) {
  if (x >= 0.5)
    return std::isinf(x) ? 0 : zeta(2, x);
  // 5.15.6, 5.5.3
  double sine = std::sin(pi * std::remainder(x, 2.0));
  // Floats have no such place but 0: their pi is not exact.
  if (x == std::floor(x))
    sine = std::sin(static_cast<float>(pi) * static_cast<float>(x));
  return pi * pi / (sine * sine) - zeta(2, 1 - x);
}

/// The n-th derivative of digamma.
double polygamma(double n, double x) {
  if (n == 0)
    return digamma(x);
  if (n == 1)
    return trigamma(x);
  // 5.15.1
  double sign = std::fmod(n, 2) == 1 ? 1 : -1;
  return sign * std::exp(logGamma(n + 1)) * zeta(n + 1, x);
}

/// x^a e^-x / Gamma(a + 1), without overflow.
double getGammaFactor(double a, double x) {
  if (a < 20)
    return std::exp(a * std::log(x) - x - logGamma(a + 1));
  // Stirling's series, 5.11.1; x = a (1 + d).
  double d = (x - a) / a;
  double exponent = a * (std::log1p(d) - d);
  double correction = (1 - 1 / (30 * a * a)) / (12 * a);
  return std::exp(exponent - correction) / std::sqrt(2 * pi * a);
}

/// The regularized incomplete gamma functions, lower and upper.
std::pair<double, double> gammaPQ(double a, double x) {
  if (a < 0 || x < 0)
    return {nan, nan};
  if (a == 0)
    return x > 0 ? std::pair(1.0, 0.0) : std::pair(nan, nan);
  if (x == 0)
    return {0.0, 1.0};
  if (std::isinf(a))
    return std::isinf(x) ? std::pair(nan, nan) : std::pair(0.0, 1.0);
  if (std::isinf(x))
    return {1.0, 0.0};
  if (std::isnan(a) || std::isnan(x))
    return {nan, nan};
  if (a > 1e6) {
    // The first terms of 8.12.3 and 8.12.4.
    double d = (x - a) / a;
    double half = d - std::log1p(d);
    double eta = std::copysign(std::sqrt(2 * half), d);
    double first = std::abs(d) < 1e-4 ? -1.0 / 3 + eta / 12 : 1 / d - 1 / eta;
    double rest = std::exp(-a * half) / std::sqrt(2 * pi * a) * first;
    double upper = std::erfc(eta * std::sqrt(a / 2)) / 2 + rest;
    double lower = std::erfc(-eta * std::sqrt(a / 2)) / 2 - rest;
    return {lower, upper};
  }
  double factor = getGammaFactor(a, x);
  // Left of the peak the series converges fast, right of it the continued
  // fraction does. The other function is the complement.
  if (x < a + 1) {
    // 8.11.4
    double term = 1, sum = 1;
    for (double n = a + 1; term > epsilon * sum; n += 1)
      sum += term *= x / n;
    double lower = std::min(factor * sum, 1.0);
    return {lower, 1 - lower};
  }
  // The continued fraction 8.9.2, from the front.
  double b = x + 1 - a, c = 1e300, d = 1 / b, fraction = d;
  for (double i = 1; i < 1e6; i += 1) {
    double numerator = -i * (i - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    double step = c * d;
    fraction *= step;
    if (std::abs(step - 1) <= epsilon)
      break;
  }
  double upper = std::min(factor * a * fraction, 1.0);
  return {1 - upper, upper};
}

double igamma(double a, double x) { return gammaPQ(a, x).first; }
double igammac(double a, double x) { return gammaPQ(a, x).second; }

//===----------------------------------------------------------------------===//
// Bessel functions
//===----------------------------------------------------------------------===//

/// exp(-|x|) I_order(|x|), of order 0 or 1.
double besselIe(int order, double x) {
  x = std::abs(x);
  if (std::isinf(x))
    return 0;
  // The power series for small arguments; its terms are positive, so nothing
  // cancels.
  double term = 1, sum = 1;
  if (x < 30) {
    // 10.25.2
    double quarter = x * x / 4;
    for (int k = 1; term > epsilon * sum; ++k)
      sum += term *= quarter / (double(k) * (k + order));
    return sum * (order ? x / 2 : 1) * std::exp(-x);
  }
  // 10.40.1
  for (int k = 1; k < 60 && std::abs(term) > epsilon; ++k) {
    term *= ((2.0 * k - 1) * (2.0 * k - 1) - 4.0 * order) / (8 * k * x);
    sum += term;
  }
  return sum / std::sqrt(2 * pi * x);
}
// Odd in order 1, even in order 0.
double i0e(double x) { return besselIe(0, x); }
double i1e(double x) { return std::copysign(1.0, x) * besselIe(1, x); }
/// Infinity times nothing is what PyTorch has far out.
double i0(double x) { return i0e(x) * std::exp(std::abs(x)); }
double i1(double x) { return i1e(x) * std::exp(std::abs(x)); }

/// exp(x) K_order(x) by the integral 10.32.9. The trapezoidal rule converges
/// exponentially for an integrand that is analytic and decays like this one.
double besselKe(double order, double x) {
  if (x == 0)
    return infinity;
  if (!(x > 0))
    return nan;
  if (std::isinf(x))
    return 0;
  // Narrow enough for the peak, whose width is about 1 / sqrt(x).
  double step = std::min(0.125, 0.5 / std::sqrt(x)), sum = 0.5;
  for (int k = 1;; ++k) {
    double t = k * step, sine = std::sinh(t / 2);
    double exponent = -2 * x * sine * sine;
    // exp(-45) is below the last digit of a double.
    if (exponent + order * t < -45)
      return step * sum;
    sum += std::exp(exponent) * std::cosh(order * t);
  }
}
double k0e(double x) { return besselKe(0, x); }
double k1e(double x) { return besselKe(1, x); }
double k0(double x) { return besselKe(0, x) * std::exp(-x); }
double k1(double x) { return besselKe(1, x) * std::exp(-x); }

// The C library has J and Y in double; only their limits are ours.
double besselJ0(double x) { return std::isinf(x) ? nan : ::j0(x); }
double besselJ1(double x) { return std::isinf(x) ? nan : ::j1(x); }
double besselY0(double x) {
  return x == 0 ? -infinity : x < 0 || std::isinf(x) ? nan : ::y0(x);
}
double besselY1(double x) {
  return x == 0 ? -infinity : x < 0 || std::isinf(x) ? nan : ::y1(x);
}

/// sin(x) / x, continued by 1.
double sphericalBesselJ0(double x) {
  if (std::isinf(x))
    return 0;
  return x == 0 ? 1 : std::sin(x) / x;
}

/// Ai(x): by K of order 1/3 on the right, asymptotically far to the left, by
/// the power series between.
double airyAi(double x) {
  if (std::isinf(x) || std::isnan(x))
    return nan;
  double size = 2 * std::abs(x) * std::sqrt(std::abs(x)) / 3;
  // 9.6.1
  if (x > 2)
    return std::sqrt(x / 3) / pi * besselKe(1.0 / 3, size) * std::exp(-size);
  if (x < -8) {
    // 9.7.9
    double even = 1, odd = 0, term = 1;
    for (int k = 1; k < 12; ++k) {
      term *= (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) /
              (216.0 * k * (2 * k - 1) * size);
      (k % 2 ? odd : even) += k % 4 < 2 ? term : -term;
    }
    double angle = size - pi / 4;
    return (std::cos(angle) * even + std::sin(angle) * odd) /
           (std::sqrt(pi) * std::sqrt(std::sqrt(-x)));
  }
  // 9.4.1, with the values 9.2.3 and 9.2.4.
  double one = 1, two = x, first = 1, second = x;
  for (int k = 1; k < 60; ++k) {
    first *= x * x * x / ((3.0 * k - 1) * (3.0 * k));
    second *= x * x * x / ((3.0 * k) * (3.0 * k + 1));
    one += first;
    two += second;
  }
  return one * 0.35502805388781723926 - two * 0.25881940379280679841;
}

//===----------------------------------------------------------------------===//
// Orthogonal polynomials
//===----------------------------------------------------------------------===//

/// The degree, as a conversion of the processor makes it an integer.
int64_t getDegree(double n) {
  return std::abs(n) < 9.2e18 ? static_cast<int64_t>(n)
                              : std::numeric_limits<int64_t>::min();
}

/// A polynomial by its recurrence: `next(k, p_k, p_(k-1))` is p_(k+1). Of
/// floats, with fused products: of what overflows, as much is NaN as in
/// PyTorch.
template <typename Next>
float recur(float n, float one, Next next) {
  int64_t degree = getDegree(n);
  if (degree < 0)
    return 0;
  if (degree == 0)
    return 1;
  float before = 1, now = one;
  for (int64_t k = 1; k < degree && !std::isnan(now); ++k)
    before = std::exchange(now, next(float(k), now, before));
  return now;
}

/// Chebyshev's polynomials of the first to the fourth kind.
enum class Kind { T, U, V, W };

/// 18.5.1 to 18.5.4, where x = cos(angle).
double chebyshevOfAngle(Kind kind, double angle, double n) {
  switch (kind) {
  case Kind::T:
    return std::cos(n * angle);
  case Kind::U:
    return std::sin((n + 1) * angle) / std::sin(angle);
  case Kind::V:
    return std::cos((n + 0.5) * angle) / std::cos(angle / 2);
  case Kind::W:
    return std::sin((n + 0.5) * angle) / std::sin(angle / 2);
  }
  return nan;
}

/// At 1 or -1: 18.6.1 and its like.
float chebyshevAtEnd(Kind kind, bool isOne, int64_t degree) {
  float n = static_cast<float>(degree);
  float sign = isOne || degree % 2 == 0 ? 1 : -1;
  switch (kind) {
  case Kind::T:
    return sign;
  case Kind::U:
    return sign * (n + 1);
  case Kind::V:
    return isOne ? 1 : sign * (n + n + 1);
  case Kind::W:
    return isOne ? n + n + 1 : sign;
  }
  return nan;
}

template <Kind kind>
float chebyshev(float x, float n) {
  int64_t degree = getDegree(n);
  if (degree < 0)
    return 0;
  if (std::abs(x) == 1)
    return chebyshevAtEnd(kind, x > 0, degree);
  // Low degrees by recurrence; the formula with cosines costs the same for all.
  constexpr int64_t mostSteps = kind == Kind::T || kind == Kind::U ? 6 : 8;
  if (degree > mostSteps && std::abs(x) < 1)
    return static_cast<float>(
        chebyshevOfAngle(kind, std::acos(double(x)), double(degree)));
  float one = kind == Kind::T   ? x
              : kind == Kind::U ? x + x
              : kind == Kind::V ? x + x - 1
                                : x + x + 1;
  // 18.9.1
  return recur(n, one, [x](float, float now, float before) {
    return std::fma(x + x, now, -before);
  });
}
template <Kind kind>
/// The shifted polynomials: those of 2 x - 1.
float shifted(float x, float n) {
  return chebyshev<kind>(x + x - 1, n);
}

/// What PyTorch computes of Hermite's polynomials on floats.
constexpr int64_t largestHermite = 128;

float hermiteH(float x, float n) {
  if (getDegree(n) > largestHermite)
    return nan;
  return recur(n, x + x, [x](float k, float now, float before) {
    return std::fma(x + x, now, -((k + k) * before));
  });
}
float hermiteHe(float x, float n) {
  if (getDegree(n) > largestHermite)
    return nan;
  return recur(n, x, [x](float k, float now, float before) {
    return std::fma(x, now, -(k * before));
  });
}
float laguerreL(float x, float n) {
  if (x == 0 && getDegree(n) >= 0)
    return 1;
  return recur(n, 1 - x, [x](float k, float now, float before) {
    return std::fma(k + k + (1 - x), now, -(k * before)) / (k + 1);
  });
}

//===----------------------------------------------------------------------===//
// On floats
//===----------------------------------------------------------------------===//

template <double (*function)(double)>
/// A function of double as one of float, with one rounding at the end.
float one(float x) {
  return static_cast<float>(std::isnan(x) ? nan : function(x));
}
template <double (*function)(double, double)>
float two(float x, float y) {
  return static_cast<float>(function(x, y));
}
template <typename Function>
SpecialFunction make(llvm::StringRef name, Function *function) {
  return {name, reinterpret_cast<void *>(function)};
}
float nextAfter(float x, float y) { return std::nextafter(x, y); }
float getMantissa(float x) {
  int exponent;
  return std::frexp(x, &exponent);
}
int32_t getExponent(float x) {
  int exponent = 0;
  if (std::isfinite(x))
    (void)std::frexp(x, &exponent);
  return exponent;
}
double upperErf(double x) { return std::erfc(x); }

} // namespace

llvm::ArrayRef<SpecialFunction> kas::execution::getSpecialFunctions() {
  static const SpecialFunction functions[] = {
      make("kas_airy_ai", one<airyAi>),
      make("kas_bessel_j0", one<besselJ0>),
      make("kas_bessel_j1", one<besselJ1>),
      make("kas_bessel_y0", one<besselY0>),
      make("kas_bessel_y1", one<besselY1>),
      make("kas_chebyshev_polynomial_t", &chebyshev<Kind::T>),
      make("kas_chebyshev_polynomial_u", &chebyshev<Kind::U>),
      make("kas_chebyshev_polynomial_w", &chebyshev<Kind::W>),
      make("kas_digamma", one<digamma>),
      make("kas_erfc", one<upperErf>),
      make("kas_erfcx", one<erfcx>),
      make("kas_erfinv", one<erfinv>),
      make("kas_frexp_exponent", &getExponent),
      make("kas_frexp_mantissa", &getMantissa),
      make("kas_hermite_polynomial_h", &hermiteH),
      make("kas_hermite_polynomial_he", &hermiteHe),
      make("kas_i0", one<i0>),
      make("kas_i0e", one<i0e>),
      make("kas_i1", one<i1>),
      make("kas_i1e", one<i1e>),
      make("kas_igamma", two<igamma>),
      make("kas_igammac", two<igammac>),
      make("kas_laguerre_polynomial_l", &laguerreL),
      make("kas_lgamma", one<logGamma>),
      make("kas_log_ndtr", one<logNdtr>),
      make("kas_modified_bessel_k0", one<k0>),
      make("kas_modified_bessel_k1", one<k1>),
      make("kas_ndtri", one<ndtri>),
      make("kas_nextafter", &nextAfter),
      make("kas_polygamma", two<polygamma>),
      make("kas_scaled_modified_bessel_k0", one<k0e>),
      make("kas_scaled_modified_bessel_k1", one<k1e>),
      make("kas_shifted_chebyshev_polynomial_t", &shifted<Kind::T>),
      make("kas_shifted_chebyshev_polynomial_v", &shifted<Kind::V>),
      make("kas_spherical_bessel_j0", one<sphericalBesselJ0>),
      make("kas_zeta", two<zeta>),
  };
  return functions;
}
