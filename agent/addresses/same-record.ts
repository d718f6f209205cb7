// Whether two values that the same code has made say the same. Pure.

/** Of plain values without bigints, whose fields stand in the same order. */
export function sameRecord(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
