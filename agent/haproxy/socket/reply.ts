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
 * - `exists`: a server or certificate with this name exists, whatever it has;
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
  // The prompts before the lines of a payload, up to 3.1.
  const trimmed = text.replace(/^(?:\+ )+/, '').replace(/\n+$/, '');
  if (isSuccess(command, trimmed)) return DONE;
  return { ok: false, kind: failureOf(command, trimmed), text: trimmed };
}

const DONE: Done = { ok: true };

/** Replies about certificates name the file: with a transaction of another file under way, 2.6 changes that one. */
function isSuccess(command: Command, text: string): boolean {
  switch (command.kind) {
    case 'NewCertificate':
      return text === `New empty certificate store '${command.file}'!`;
    case 'StageCertificate':
      return (
        text === `Transaction created for certificate ${command.file}!` ||
        text === `Transaction updated for certificate ${command.file}!`
      );
    case 'CommitCertificate':
      return inProgress(text) === `Committing ${command.file}`;
    case 'AddToList':
      return inProgress(text) === `Inserting certificate '${command.file}' in crt-list '${command.list}'`;
    case 'RemoveFromList':
      return text === `Entry '${command.file}' deleted in crtlist '${command.list}'!`;
    case 'DisableFrontend':
      return text === '' || text === 'All sockets are already disabled.';
    case 'EnableFrontend':
      return text === '' || text === 'All sockets are already enabled.';
    case 'AbortCertificate':
      return text === `Transaction aborted for certificate '${command.file}'!`;
    default:
      return text === (SUCCESS[command.kind] ?? '');
  }
}

/** The line before `Success!`, without a dot for each place that has the certificate; '' for another end. */
function inProgress(text: string): string {
  return /^([^\n]*?)\.*\nSuccess!$/.exec(text)?.[1] ?? '';
}

function failureOf(command: Command, text: string): Failure {
  if (command.kind === 'NewCertificate' && text === `Certificate '${command.file}' already exists!`)
    return 'exists';
  const known = FAILURES.get(text);
  if (known === 'missing-server' && command.kind === 'DeleteServer') return 'gone';
  if (known !== undefined) return known;
  const holder = command.kind === 'AddServer' ? ID_TAKEN.exec(text)?.[1] : undefined;
  if (holder === undefined) return 'refused';
  return command.kind === 'AddServer' && holder === command.server ? 'exists' : 'id-taken';
}
