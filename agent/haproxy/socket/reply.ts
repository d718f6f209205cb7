// Judges HAProxy's reply to a command by the exact success text of that command: severity numbers and "looks fine"
// are not to be trusted ("port changed" and "Invalid addr" both come as errors). Texts measured on 2.6.12, 3.0.11,
// 3.2.26 and 3.4.7. Pure.

import type { Command } from './commands.ts';

export type Reply = Done | Failed;

export interface Done {
  readonly ok: true;
}

export interface Failed {
  readonly ok: false;
  readonly kind: Failure;
  /** HAProxy's own words, without line feeds at the end. */
  readonly text: string;
}

/**
 * - `gone`: what should be deleted is not there (any more);
 * - `exists`: a server of this name is there already, whatever its address;
 * - `id-taken`: a server of another name has this id;
 * - `busy`: the server still has connections; try again later;
 * - `not-removable`: the server is not in maintenance, or the configuration refers to it;
 * - `refused`: anything else, also a text that no version is known to send.
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

/** The texts are the same on all versions so far; a version that differs goes into Capabilities. */
const SUCCESS: { readonly [kind in Command['kind']]: string } = {
  AddServer: 'New server registered.',
  SetServerState: '',
  EnableHealth: '',
  AssumeHealth: '',
  SetServerWeight: '',
  ForgetClients: '',
  ShutdownSessions: '',
  DeleteServer: 'Server deleted.',
  AddCidr: '',
  DeleteCidr: '',
};

const FAILURES: ReadonlyMap<string, Failure> = new Map([
  ['No such backend.', 'missing-backend'],
  ['No such server.', 'missing-server'],
  ['Unknown ACL identifier. Please use #<id> or <file>.', 'missing-acl'],
  // `del acl` before 3.2 says so of an ACL too.
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

/** Before 3.3 the id is compared before the name, so that this is also the answer to the same server added twice. */
const ID_TAKEN = /^'id' : custom id \d+ already used at .* \('server ([^']*)'\)\.$/;

/** `text` is the whole reply without the prompt. */
export function judgeReply(command: Command, text: string): Reply {
  const trimmed = text.replace(/\n+$/, '');
  if (trimmed === SUCCESS[command.kind]) return DONE;
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
