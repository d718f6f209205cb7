// One `server` line of a pushed text: what commands can change, and the words that a command would repeat. Pure.

export interface ServerLine {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly weight: number;
  readonly isDisabled: boolean;
  /** The words after the address without `weight N` and `disabled`, in their order. */
  readonly words: readonly string[];
  /** The whole line, trimmed. */
  readonly line: string;
  /** Why no command may repeat it; '' if one may. */
  readonly fault: string;
}

/** Each word that Octavia's templates write, and whether a value follows. No other word reaches the socket. */
const WORDS: Readonly<Record<string, 'alone' | RegExp>> = (() => {
  const count = /^\d{1,9}$/;
  const file = /^\/[A-Za-z0-9_./@=+-]{1,1000}$/;
  const list = /^[A-Za-z0-9_./:,!+@=-]{1,1000}$/;
  return {
    weight: count,
    check: 'alone',
    'check-ssl': 'alone',
    'check-alpn': list,
    inter: /^\d{1,9}(?:ms|s|m)?$/,
    fall: count,
    rise: count,
    addr: /^[0-9A-Fa-f.:]{2,45}$/,
    port: count,
    cookie: /^[A-Za-z0-9_.:-]{1,255}$/,
    'send-proxy': 'alone',
    'send-proxy-v2': 'alone',
    'send-proxy-v2-ssl-cn': 'alone',
    backup: 'alone',
    disabled: 'alone',
    ssl: 'alone',
    crt: file,
    'ca-file': file,
    'crl-file': file,
    verify: /^(?:none|required)$/,
    sni: /^ssl_fc_sni$/,
    ciphers: list,
    'no-sslv3': 'alone',
    'no-tlsv10': 'alone',
    'no-tlsv11': 'alone',
    'no-tlsv12': 'alone',
    'no-tlsv13': 'alone',
    alpn: list,
  };
})();

export const SERVER_NAME = /^[A-Za-z0-9_.:-]{1,255}$/;
const ENDPOINT = /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([0-9.]{7,15})|([0-9A-Fa-f:.]{2,45})):(\d{1,5})$/;
const MAX_WEIGHT = 256;

/** `line`: trimmed, begins with `server`. */
export function readServerLine(line: string): ServerLine {
  const [, name = '', endpoint = '', ...rest] = line.split(/[ \t]+/);
  const [, bracketed, v4, v6, port = ''] = ENDPOINT.exec(endpoint) ?? [];
  const address = bracketed ?? v4 ?? v6 ?? '';
  const words: string[] = [];
  let weight = 1;
  let isDisabled = false;
  let fault = SERVER_NAME.test(name) ? '' : 'its name has a character that no member has';
  if (address === '') fault ||= 'its address is no address and port';
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] as string;
    const kind = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (kind === undefined) {
      fault ||= `the word "${word}" is not one of Octavia's`;
      words.push(word);
      continue;
    }
    if (kind === 'alone') {
      if (word === 'disabled') isDisabled = true;
      else words.push(word);
      continue;
    }
    const value = rest[++at] ?? '';
    if (!kind.test(value)) fault ||= `"${word}" has the value "${value}"`;
    if (word === 'weight') weight = Number(value);
    else words.push(word, value);
  }
  if (!(weight <= MAX_WEIGHT)) fault ||= `its weight is above ${MAX_WEIGHT}`;
  return { name, address, port: Number(port), weight, isDisabled, words, line, fault };
}
