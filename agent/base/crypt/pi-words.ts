// What follows the point of pi in base 2^32, with which Blowfish begins: computed, because a table of it would be 1042 numbers. Pure.

const GUARD_BITS = 64n;

/** Signed words. */
export function piWords(count: number): Int32Array {
  const bits = BigInt(count) * 32n;
  const one = 1n << (bits + GUARD_BITS);
  // Machin's formula.
  const pi = 4n * (4n * inverseTangent(5n, one) - inverseTangent(239n, one));
  const fraction = (pi >> GUARD_BITS) & ((1n << bits) - 1n);
  const digits = fraction.toString(16).padStart(count * 8, '0');
  return Int32Array.from({ length: count }, (_, at) => Number.parseInt(digits.slice(at * 8, at * 8 + 8), 16));
}

/** The inverse tangent of 1/x, times `one`. */
function inverseTangent(x: bigint, one: bigint): bigint {
  let power = one / x;
  let sum = power;
  for (let divisor = 3n, sign = -1n; power > 0n; divisor += 2n, sign = -sign) {
    power /= x * x;
    sum += (sign * power) / divisor;
  }
  return sum;
}
