// SHA-crypt, as crypt(3) has it for $5$ and $6$: https://www.akkadia.org/drepper/SHA-crypt.txt. Pure.

import { createHash } from 'node:crypto';

interface Kind {
  readonly name: 'sha256' | 'sha512';
  readonly bytes: 32 | 64;
  /** The order of the bytes of the digest in the text: three for each four characters. */
  readonly order: readonly (readonly number[])[];
}

const KINDS: Readonly<Record<string, Kind>> = {
  5: { name: 'sha256', bytes: 32, order: [...orderOf(10, [0, 10, 20], 21), [31, 30]] },
  6: { name: 'sha512', bytes: 64, order: [...orderOf(21, [0, 21, 42], 22), [63]] },
};
const LETTERS = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const USUAL_ROUNDS = 5_000;
const HASH = /^\$([56])\$(?:rounds=(\d+)\$)?([^$]{0,16})\$(.*)$/;

/** undefined if the hash is of another kind. */
export function isShaCryptOf(password: string, hash: string): boolean | undefined {
  const [, id = '', rounds, salt = '', text] = HASH.exec(hash) ?? [];
  const kind = KINDS[id];
  if (kind === undefined) return undefined;
  const digest = digestOf(kind, Buffer.from(password), Buffer.from(salt), Number(rounds ?? USUAL_ROUNDS));
  return textOf(kind, digest) === text;
}

function digestOf({ name, bytes }: Kind, password: Buffer, salt: Buffer, rounds: number): Buffer {
  const sum = (...parts: readonly Buffer[]): Buffer => {
    const hash = createHash(name);
    for (const part of parts) hash.update(part);
    return hash.digest();
  };
  const other = sum(password, salt, password);
  const parts = [password, salt, repeated(other, password.length)];
  for (let rest = password.length; rest > 0; rest >>= 1) parts.push((rest & 1) === 1 ? other : password);
  let digest = sum(...parts);
  const ofPassword = repeated(sum(...Array.from(password, () => password)), password.length);
  const times = 16 + (digest[0] ?? 0);
  const ofSalt = repeated(sum(...Array.from({ length: times }, () => salt)), salt.length);
  for (let round = 0; round < rounds; round++) {
    const isOdd = round % 2 === 1;
    digest = sum(
      isOdd ? ofPassword : digest,
      ...(round % 3 === 0 ? [] : [ofSalt]),
      ...(round % 7 === 0 ? [] : [ofPassword]),
      isOdd ? digest : ofPassword,
    );
  }
  return digest.subarray(0, bytes);
}

function repeated(bytes: Buffer, length: number): Buffer {
  return Buffer.alloc(length, length === 0 ? undefined : bytes);
}

/** Each group of three bytes has the places of the one before, moved by one in a circle. */
function orderOf(groups: number, first: readonly number[], step: number): readonly (readonly number[])[] {
  const most = groups * 3;
  return Array.from({ length: groups }, (_, at) => first.map((place) => (place + at * step) % most));
}

function textOf({ order }: Kind, digest: Buffer): string {
  let text = '';
  for (const places of order) {
    let value = places.reduce((sum, place) => sum * 256 + (digest[place] ?? 0), 0);
    for (let count = places.length + 1; count > 0; count--, value = Math.floor(value / 64))
      text += LETTERS[value % 64];
  }
  return text;
}
