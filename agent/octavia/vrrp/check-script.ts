// The script that keepalived runs by the controller's text, and the list of what it checks. Both are files, so that it works
// while no agent runs (templates/octavia/check-script.pl).

import { readFileSync } from 'node:fs';
import { HeadgateError } from '../../base/errors.ts';
import { KeptFile } from '../../host/kept-file.ts';
import type { VrrpPaths } from './paths.ts';

/** What must answer so that this amphora may have the VIPs; nothing at all: it may not. */
export interface Checked {
  /** Sockets of HAProxy processes: each must answer. */
  readonly sockets: readonly string[];
  /** The kernel serves listeners of UDP or SCTP, which need no process. */
  readonly hasDatagrams: boolean;
}

const SCRIPT = readFileSync(new URL('../../../templates/octavia/check-script.pl', import.meta.url), 'utf8');

export class CheckScript {
  readonly #paths: VrrpPaths;
  readonly #script: KeptFile;

  constructor(paths: VrrpPaths) {
    this.#paths = paths;
    this.#script = new KeptFile(paths.script, SCRIPT, 0o755);
  }

  /** Errors: FILE_WRITE. */
  keep(): Promise<void> {
    return this.#script.keep();
  }

  /** Errors: FILE_WRITE; RUNTIME_TOKEN if a path is no line. */
  async check(checked: Checked): Promise<void> {
    await new KeptFile(this.#paths.checked, checkedText(checked), 0o644).keep();
  }
}

/** Errors: RUNTIME_TOKEN. */
export function checkedText({ sockets, hasDatagrams }: Checked): string {
  const wrong = sockets.find((path) => !/^\/[\x21-\x7e]*$/.test(path));
  if (wrong !== undefined)
    throw new HeadgateError('RUNTIME_TOKEN', 'Cannot check a socket whose path is no plain line');
  return [...sockets.toSorted(), ...(hasDatagrams ? ['datagrams'] : [])].map((line) => `${line}\n`).join('');
}
