// Turns a command into a line for HAProxy's socket, and checks each token against the allow-list of its kind. A token
// that is not allowed is a bug of the agent, not a user's mistake: objects are validated before. Pure.

import { isIP } from 'node:net';
import { HeadgateError } from '../../base/errors.ts';
import { pemBlocks } from '../../base/pem.ts';
import { quote } from '../../base/quote.ts';
import type { Command, MapEntryCommand } from './commands.ts';
import type { Capabilities } from './version.ts';

/** In UTF-8. A line longer than `tune.bufsize` (16384) can kill HAProxy 2.6, 2.8 and 3.2.0. */
export const MAX_COMMAND_BYTES = 12 * 1024;

/** 2.6 and 3.0 silently drop the words after the 64th, 3.2 refuses the line (MAX_CLI_ARGS). */
const MAX_WORDS = 64;
const NAME = /^[A-Za-z0-9_.:-]{1,600}$/;
/** Also a name as `sni` takes it: `str(web.example)`. */
const KEYWORD = /^(?:[A-Za-z0-9_./,:@%=+~!*-]{1,1000}|str\([A-Za-z0-9.-]{1,253}\))$/;
const FILE = /^\/[A-Za-z0-9._/@%+=-]{1,1000}$/;
const PEM = /^[-A-Za-z0-9+/= \n]+$/;
const CRT_LINE =
  /^\/[A-Za-z0-9._/@%+=-]{1,1000}(?: \[(?:ca-file \/[A-Za-z0-9._/@%+=-]{1,1000} )?verify (?:none|optional|required)\])?(?: [a-z0-9.*!-]{1,255})?$/;
/** A key of a map, and a value, which may have blanks inside. */
const MAP_WORD = /^[!-~]{1,8000}$/;
const MAP_VALUE = /^[!-~](?:[ -~]{0,10000}[!-~])?$/;
/** 2.6 accepts them, but never sends connections to the server (issue #2497). */
const FORBIDDEN_KEYWORDS = new Set(['enabled', 'disabled']);
/** The limit of HAProxy's atoi() and of `id`. */
const INT_MAX = 2 ** 31 - 1;

/** HAProxy reads the lines behind it as the payload, up to an empty line. */
const PAYLOAD = '<<';

/**
 * `payload`: the text of the file of a StageCertificate.
 * Errors, not to be retried: RUNTIME_TOKEN for a token that is not allowed; RUNTIME_TOO_LONG for too many bytes or words.
 */
export function commandText(command: Command, capabilities: Capabilities, payload = ''): string {
  const line = wordsOf(command, capabilities).join(' ');
  if (command.kind === 'StageCertificate') return withPayload(line, payload);
  if (command.kind === 'AddToList' && command.line !== undefined) return withCrtLine(line, command.line);
  if (command.kind === 'AddMapEntry') return withEntry(line, command);
  if (Buffer.byteLength(line) > MAX_COMMAND_BYTES || line.split(' ').length > MAX_WORDS) {
    throw new HeadgateError('RUNTIME_TOO_LONG', `Command is too long: ${quote(line)}`, { retry: 'never' });
  }
  return line;
}

function wordsOf(command: Command, capabilities: Capabilities): readonly string[] {
  switch (command.kind) {
    case 'AddServer':
      return [
        'add server',
        server(command),
        endpoint(command.address, command.port),
        ...command.keywords.map(keyword),
        ...poolKeywords(command.keywords, capabilities),
      ];
    case 'SetServerState':
      return ['set server', server(command), 'state', oneOf(command.state, ['ready', 'drain', 'maint'])];
    case 'EnableHealth':
      return ['enable health', server(command)];
    case 'AssumeHealth':
      return ['set server', server(command), 'health up'];
    case 'AssumeFailure':
      return ['set server', server(command), 'health down'];
    case 'SetServerWeight':
      return ['set server', server(command), 'weight', number('weight', command.weight, 0, 256)];
    case 'SetCookieKey':
      return [
        'set dynamic-cookie-key backend',
        name('backend', command.backend),
        name('cookie key', command.key),
      ];
    case 'ForgetClients':
      return [
        'clear table',
        name('backend', command.backend),
        'data.server_id eq',
        number('id', command.serverId, 1, INT_MAX),
      ];
    case 'RememberClient':
      return [
        'set table',
        name('backend', command.backend),
        'key',
        address(command.address),
        'data.server_id',
        number('id', command.serverId, 1, INT_MAX),
      ];
    case 'ShutdownSessions':
      return ['shutdown sessions server', server(command)];
    case 'DeleteServer':
      return ['del server', server(command)];
    case 'AddCidr':
      return ['add acl', acl(command.acl), cidr(command.cidr)];
    case 'DeleteCidr':
      return ['del acl', acl(command.acl), cidr(command.cidr)];
    case 'DisableFrontend':
      return ['disable frontend', name('frontend', command.frontend)];
    case 'EnableFrontend':
      return ['enable frontend', name('frontend', command.frontend)];
    case 'AddMapEntry':
      return ['add map', file(command.map), PAYLOAD];
    case 'SetMapEntry':
      return ['set map', file(command.map), mapWord(command.key), mapWord(command.value)];
    case 'DeleteMapEntry':
      return ['del map', file(command.map), mapWord(command.key)];
    case 'ClearMap':
      return ['clear map', file(command.map)];
    case 'NewCertificate':
      return ['new ssl cert', file(command.file)];
    case 'StageCertificate':
      return ['set ssl cert', file(command.file), PAYLOAD];
    case 'CommitCertificate':
      return ['commit ssl cert', file(command.file)];
    case 'AbortCertificate':
      return ['abort ssl cert', file(command.file)];
    case 'AddToList':
      return [
        'add ssl crt-list',
        file(command.list),
        command.line === undefined ? file(command.file) : PAYLOAD,
      ];
    case 'RemoveFromList':
      return ['del ssl crt-list', file(command.list), file(command.file)];
  }
}

function poolKeywords(
  given: readonly string[],
  { dynamicServerNeedsPoolKeywords }: Capabilities,
): readonly string[] {
  if (!dynamicServerNeedsPoolKeywords) return [];
  return [
    ...(given.includes('pool-max-conn') ? [] : ['pool-max-conn', '-1']),
    ...(given.includes('pool-purge-delay') ? [] : ['pool-purge-delay', '5s']),
  ];
}

function server({ backend, server }: { readonly backend: string; readonly server: string }): string {
  return `${name('backend', backend)}/${name('server', server)}`;
}

function name(what: string, text: string): string {
  if (!NAME.test(text)) throw wrong(`Not the name of a ${what}`, text);
  return text;
}

/** `10.0.0.1:80`, `[2001:db8::1]:80`. */
function endpoint(text: string, port: number): string {
  const family = isIP(address(text));
  return `${family === 6 ? `[${text}]` : text}:${number('port', port, 1, 65_535)}`;
}

function address(text: string): string {
  // A zone (`fe80::1%eth0`) passes isIP().
  if (isIP(text) === 0 || text.includes('%')) throw wrong('Not an address', text);
  return text;
}

function cidr(text: string): string {
  const [network = '', prefix = '', ...rest] = text.split('/');
  const bits = isIP(address(network)) === 4 ? 32 : 128;
  if (rest.length > 0 || !/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) throw wrong('Not a CIDR', text);
  return text;
}

function acl(id: number): string {
  return `#${number('ACL', id, 0, INT_MAX)}`;
}

function keyword(text: string): string {
  if (!KEYWORD.test(text) || FORBIDDEN_KEYWORDS.has(text)) throw wrong('Not a keyword of a server', text);
  return text;
}

function file(path: string): string {
  if (!FILE.test(path)) throw wrong('Not the path of a file', path);
  return path;
}

/** A key or value among the words of a line, in which HAProxy would end a command at a semicolon. */
function mapWord(text: string): string {
  if (!MAP_WORD.test(text) || text.startsWith('#') || text.includes(PAYLOAD))
    throw wrong('Not a word of a map', text);
  return text.replace(/[\\;]/g, '\\$&');
}

/** Blocks of PEM have no empty line. No message shows the payload. */
function withPayload(line: string, payload: string): string {
  const text = pemBlocks(payload)
    .map((block) => block.text)
    .join('');
  if (text === '' || !PEM.test(text)) throw wrong('Not PEM in the file of a command', line);
  const all = `${line}\n${text}`;
  if (Buffer.byteLength(all) > MAX_COMMAND_BYTES)
    throw new HeadgateError('RUNTIME_TOO_LONG', `The payload is too long: ${quote(line)}`, {
      retry: 'never',
    });
  return all;
}

/** A line with options or a filter has blanks. */
function withCrtLine(line: string, text: string): string {
  if (!CRT_LINE.test(text)) throw wrong('Not a line of a crt-list', text);
  return `${line}\n${text}\n`;
}

/** The line of the payload ends the key at its first blank. */
function withEntry(line: string, { key, value }: MapEntryCommand): string {
  if (!MAP_WORD.test(key) || !MAP_VALUE.test(value)) throw wrong('Not an entry of a map', `${key} ${value}`);
  const all = `${line}\n${key} ${value}\n`;
  if (Buffer.byteLength(all) > MAX_COMMAND_BYTES)
    throw new HeadgateError('RUNTIME_TOO_LONG', `An entry of a map is too long: ${quote(key)}`, {
      retry: 'never',
    });
  return all;
}

function number(what: string, value: number, from: number, to: number): string {
  if (!Number.isInteger(value) || value < from || value > to) {
    throw wrong(`Not a ${what} from ${from} to ${to}`, String(value));
  }
  return String(value);
}

function oneOf<Word extends string>(word: Word, words: readonly Word[]): Word {
  if (!words.includes(word)) throw wrong(`Not one of ${words.join(', ')}`, word);
  return word;
}

function wrong(message: string, detail: string): HeadgateError {
  return new HeadgateError('RUNTIME_TOKEN', `${message}: ${quote(detail)}`, { retry: 'never' });
}
