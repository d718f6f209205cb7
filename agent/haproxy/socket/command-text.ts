// Turns a command into a line for HAProxy's socket, and checks each token against the allow-list of its kind. A token
// that is not allowed is a bug of the agent, not a user's mistake: objects are validated before. Pure.

import { isIP } from 'node:net';
import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import type { Command } from './commands.ts';
import type { Capabilities } from './version.ts';

/** In UTF-8. A line longer than `tune.bufsize` (16384) can kill HAProxy 2.6, 2.8 and 3.2.0. */
export const MAX_COMMAND_BYTES = 12 * 1024;

/** 2.6 and 3.0 silently drop the words after the 64th, 3.2 refuses the line (MAX_CLI_ARGS). */
const MAX_WORDS = 64;
const NAME = /^[A-Za-z0-9_.:-]{1,200}$/;
const KEYWORD = /^[A-Za-z0-9_./,:@%=+~!*-]{1,1000}$/;
/** 2.6 accepts them, but never sends connections to the server (issue #2497). */
const FORBIDDEN_KEYWORDS = new Set(['enabled', 'disabled']);
/** The limit of HAProxy's atoi() and of `id`. */
const INT_MAX = 2 ** 31 - 1;

/** Errors, not to be retried: RUNTIME_TOKEN for a token that is not allowed; RUNTIME_TOO_LONG for too many bytes or words. */
export function commandText(command: Command, capabilities: Capabilities): string {
  const line = wordsOf(command, capabilities).join(' ');
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
    case 'SetServerWeight':
      return ['set server', server(command), 'weight', number('weight', command.weight, 0, 256)];
    case 'ForgetClients':
      return [
        'clear table',
        name('backend', command.backend),
        'data.server_id eq',
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
