// The order of names in which people read them: `new-2` before `new-10`. Pure.

const ZERO = 0x30;
const NINE = 0x39;

/** For sort(): as by code units, but digits that stand at the same place are numbers. 0 only for equal texts. */
export function inNaturalOrder(a: string, b: string): number {
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(j)];
    if (isDigit(x) && isDigit(y)) {
      const [ofA, ofB] = [digitsAt(a, i), digitsAt(b, j)];
      const [one, other] = [withoutZeros(ofA), withoutZeros(ofB)];
      if (one.length !== other.length) return one.length - other.length;
      if (one !== other) return one < other ? -1 : 1;
      i += ofA.length;
      j += ofB.length;
    } else if (x !== y) {
      return x - y;
    } else {
      i++;
      j++;
    }
  }
  const rest = a.length - i - (b.length - j);
  if (rest !== 0 || a === b) return rest;
  return a < b ? -1 : 1;
}

function digitsAt(text: string, from: number): string {
  let end = from;
  while (end < text.length && isDigit(text.charCodeAt(end))) end++;
  return text.slice(from, end);
}

function withoutZeros(digits: string): string {
  return digits.replace(/^0+/, '');
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
