// Judges HAProxy's reply to a command by the exact success text of this command. Severity numbers are no help: "port
// changed" and "Invalid addr" both come as errors. The texts are those of 2.6.12, 3.0.11, 3.2.26 and 3.4.7. Pure.

import type { Command } from './commands.ts';

export type Reply = Done | Failed;

export interface Done {
  readonly ok: true;
}

export interface Failed {
  readonly ok: false;
  readonly kind: Failure;
  /** HAProxy's own text, without line feeds at the end. */
  readonly text: string;
}

/**
 * - `gone`: the server or pattern to delete does not exist;
 * - `exists`: a server with this name exists, with any address;
 * - `id-taken`: a server with another name has this id;
 * - `busy`: the server still has connections; retry later;
 * - `not-removable`: the server is not in maintenance, or the configuration refers to it;
 * - `refused`: anything else, also an unknown text.
 */
export type Failure =
  | 'missing-backend'
  | 'missing-server'
  | 'missing-acl'
  | 'gone'
  | 'exists'
  | 'id-taken'
  | 'busy'
  | 'not-removable'
  | 'refused';

/** '' for all other commands. The same on all versions so far; if a version differs, its text belongs in Capabilities. */
const SUCCESS: { readonly [kind in Command['kind']]?: string } = {
  AddServer: 'New server registered.',
  DeleteServer: 'Server deleted.',
};

const FAILURES: ReadonlyMap<string, Failure> = new Map([
  ['No such backend.', 'missing-backend'],
  ['No such server.', 'missing-server'],
  ['Unknown ACL identifier. Please use #<id> or <file>.', 'missing-acl'],
  // The reply of `del acl` before 3.2.
  ['Unknown map identifier. Please use #<id> or <file>.', 'missing-acl'],
  ['Key not found.', 'gone'],
  ['Already exists a server with the same name in backend.', 'exists'],
  ['Server still has connections attached to it, cannot remove it.', 'busy'],
  ['Only servers in maintenance mode can be deleted.', 'not-removable'],
  [
    'This server cannot be removed at runtime due to other configuration elements pointing to it.',
    'not-removable',
  ],
]);

/** Before 3.3 HAProxy compares the id before the name, so this is also the reply if the same server is added twice. */
const ID_TAKEN = /^'id' : custom id \d+ already used at .* \('server ([^']*)'\)\.$/;

/** `text`: the whole reply without the prompt. */
export function judgeReply(command: Command, text: string): Reply {
  const trimmed = text.replace(/\n+$/, '');
  if (trimmed === (SUCCESS[command.kind] ?? '')) return DONE;
  return { ok: false, kind: failureOf(command, trimmed), text: trimmed };
}

const DONE: Done = { ok: true };

function failureOf(command: Command, text: string): Failure {
  const known = FAILURES.get(text);
  if (known === 'missing-server' && command.kind === 'DeleteServer') return 'gone';
  if (known !== undefined) return known;
  const holder = command.kind === 'AddServer' ? ID_TAKEN.exec(text)?.[1] : undefined;
  if (holder === undefined) return 'refused';
  return command.kind === 'AddServer' && holder === command.server ? 'exists' : 'id-taken';
}
