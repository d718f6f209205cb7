// bcrypt, as crypt(3) has it for $2a$, $2b$ and $2y$: https://www.usenix.org/legacy/events/usenix99/provos.html. Pure.

import { piWords } from './pi-words.ts';

interface Cipher {
  /** The keys of the 16 rounds, and two more. */
  readonly keys: Int32Array;
  /** Four tables of 256 words. */
  readonly boxes: Int32Array;
}

const KEYS = 18;
const BOXES = 4 * 256;
const KEY_BYTES = 72;
const DIGEST_BYTES = 23;
const LETTERS = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const USUAL_LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const HASH = /^\$2[aby]\$(\d\d)\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/;

/** undefined if the hash is of another kind. Takes time that doubles with each step of the hash's cost. */
export function isBcryptOf(password: string, hash: string): boolean | undefined {
  const [, cost, salt = '', text] = HASH.exec(hash) ?? [];
  if (cost === undefined) return undefined;
  return (
    textOf(
      digestOf(password, Buffer.from(inLetters(salt, LETTERS, USUAL_LETTERS), 'base64'), Number(cost)),
    ) === text
  );
}

function digestOf(password: string, salt: Buffer, cost: number): Buffer {
  const key = wordsOf(Buffer.alloc(KEY_BYTES, `${password}\0`));
  const saltWords = wordsOf(salt);
  const words = piWords(KEYS + BOXES);
  const cipher = { keys: words.slice(0, KEYS), boxes: words.slice(KEYS) };
  expand(cipher, key, saltWords);
  for (let round = 0; round < 2 ** cost; round++) {
    expand(cipher, key);
    expand(
      cipher,
      Int32Array.from({ length: KEYS }, (_, at) => saltWords[at % 4] ?? 0),
    );
  }
  const text = wordsOf(Buffer.from('OrpheanBeholderScryDoubt'));
  for (let at = 0; at < text.length; at += 2)
    for (let times = 0; times < 64; times++) encrypt(cipher, text, at);
  const digest = Buffer.alloc(text.length * 4);
  for (const [at, word] of text.entries()) digest.writeInt32BE(word, at * 4);
  return digest.subarray(0, DIGEST_BYTES);
}

function expand(cipher: Cipher, key: Int32Array, salt?: Int32Array): void {
  const { keys, boxes } = cipher;
  for (let at = 0; at < KEYS; at++) keys[at] = (keys[at] ?? 0) ^ (key[at] ?? 0);
  const block = new Int32Array(2);
  let place = 0;
  for (const words of [keys, boxes])
    for (let at = 0; at < words.length; at += 2) {
      if (salt !== undefined) {
        block[0] = (block[0] ?? 0) ^ (salt[place % 4] ?? 0);
        block[1] = (block[1] ?? 0) ^ (salt[(place + 1) % 4] ?? 0);
        place += 2;
      }
      encrypt(cipher, block, 0);
      words[at] = block[0] ?? 0;
      words[at + 1] = block[1] ?? 0;
    }
}

/** Blowfish: two words at this place. */
function encrypt({ keys, boxes }: Cipher, block: Int32Array, place: number): void {
  let [left, right] = [(block[place] ?? 0) ^ (keys[0] ?? 0), block[place + 1] ?? 0];
  for (let round = 1; round <= 16; round++) {
    const sum = (boxes[left >>> 24] ?? 0) + (boxes[256 + ((left >>> 16) & 255)] ?? 0);
    const mixed = (sum ^ (boxes[512 + ((left >>> 8) & 255)] ?? 0)) + (boxes[768 + (left & 255)] ?? 0);
    [left, right] = [right ^ mixed ^ (keys[round] ?? 0), left];
  }
  block[place] = right ^ (keys[17] ?? 0);
  block[place + 1] = left;
}

function wordsOf(bytes: Buffer): Int32Array {
  return Int32Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readInt32BE(at * 4));
}

function textOf(digest: Buffer): string {
  return inLetters(digest.toString('base64').replace(/=+$/, ''), USUAL_LETTERS, LETTERS);
}

function inLetters(text: string, from: string, to: string): string {
  return text.replace(/./g, (letter) => to[from.indexOf(letter)] ?? '');
}
