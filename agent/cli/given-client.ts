// The client of a URL as the flags of `why` describe it, in the fields of the agent's question. A private key stays in its file.

import { readFileSync } from 'node:fs';
import { messageOf } from '../base/errors.ts';
import { pemBlocks } from '../base/pem.ts';
import { quote } from '../base/quote.ts';
import { readCertificates } from '../certificates/key-pair.ts';
import { MAX_CERTIFICATES } from '../report/answers/access/client.ts';
import type { Arguments, OwnFlag } from './command.ts';
import { usageError } from './command-line.ts';

export const CLIENT_FLAGS: Readonly<Record<string, OwnFlag>> = {
  from: { placeholder: 'ADDRESS', doc: "the client's address, for a URL" },
  user: { placeholder: 'USER', doc: 'the client has the password of this user, for a URL' },
  header: {
    placeholder: 'NAME:VALUE',
    isRepeated: true,
    doc: 'the request has this header, such as a password, token or cookie, which is judged and not shown; @FILE for the lines of a file, @- for those of standard input',
  },
  method: { placeholder: 'METHOD', doc: 'the method of the request' },
  cert: {
    placeholder: 'FILE',
    doc: 'the client shows this certificate, in PEM, perhaps with its chain; its key is not needed',
  },
  certificate: {
    placeholder: '',
    doc: 'the client has a certificate of the authorities that are asked for',
  },
};

const STDIN = 0;
const MAX_FILE_BYTES = 64 * 1_024;

/** What was given; empty if nothing was. Errors: USAGE, which shows no value of a header. */
export function clientFields({ own }: Arguments): Readonly<Record<string, string>> {
  const { from, user, header, certificate, cert, method } = own;
  return {
    ...(typeof from === 'string' && { from }),
    ...(typeof user === 'string' && { user }),
    ...(typeof method === 'string' && { method }),
    ...(Array.isArray(header) && { header: header.flatMap(linesOf).join('\n') }),
    ...(typeof cert === 'string' && { cert: certificatesIn(cert) }),
    ...(certificate === true && { certificate: 'true' }),
  };
}

/** The headers that one flag gives. */
function linesOf(text: string): readonly string[] {
  if (!text.startsWith('@')) {
    if (/[\r\n]/.test(text)) throw usageError('Cannot use --header: it has more than one line');
    return [text];
  }
  const file = text.slice(1);
  return read('--header', file === '-' ? STDIN : file)
    .split(/\r?\n/)
    .filter((line) => line !== '');
}

/** DER in base64url, with dots between them. */
function certificatesIn(file: string): string {
  const text = read('--cert', file);
  const certificates = readCertificates(text, file, MAX_CERTIFICATES);
  if (typeof certificates === 'string') throw usageError(`Cannot use --cert: ${certificates}`);
  if (pemBlocks(text).some(({ label }) => label.endsWith('PRIVATE KEY')))
    console.error(`The private key in ${quote(file)} is not needed: it was neither sent nor shown`);
  return certificates.map(({ raw }) => raw.toString('base64url')).join('.');
}

function read(flag: string, file: string | number): string {
  const shown = file === STDIN ? 'standard input' : quote(String(file));
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw usageError(`Cannot use ${flag}: cannot read ${shown}: ${messageOf(error)}`);
  }
  if (text.length > MAX_FILE_BYTES) throw usageError(`Cannot use ${flag}: ${shown} has more than 64 KB`);
  return text;
}
