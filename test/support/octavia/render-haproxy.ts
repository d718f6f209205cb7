// Texts of haproxy.cfg by Octavia's own renderer (render-haproxy.py), which is in Debian's package python3-octavia.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export interface RenderedMember {
  readonly id: string;
  readonly ip_address: string;
  readonly protocol_port: number;
  readonly weight: number;
  readonly enabled: boolean;
  readonly backup: boolean;
}

/** As in render-haproxy.py. */
export interface RenderSpec {
  readonly base: string;
  readonly vip?: string;
  readonly port?: number;
  readonly listener?: Readonly<Record<string, unknown>>;
  readonly pool?: Readonly<Record<string, unknown>>;
  readonly members?: readonly RenderedMember[];
  readonly monitor?: Readonly<Record<string, unknown>>;
  readonly limit?: number;
}

const SCRIPT = fileURLToPath(new URL('render-haproxy.py', import.meta.url));
/** The names in Octavia's sample objects. */
export const SAMPLE_LISTENER = 'sample_listener_id_1';
export const SAMPLE_BACKEND = `sample_pool_id_1:${SAMPLE_LISTENER}`;

/** One text for each specification, in one run of Octavia's code. */
export async function renderTexts(specs: readonly RenderSpec[]): Promise<readonly string[]> {
  return JSON.parse(await python([], JSON.stringify(specs)));
}

/** A text of each of Octavia's sample objects. */
export async function sampleTexts(
  base: string,
): Promise<readonly { readonly name: string; readonly text: string }[]> {
  return JSON.parse(await python(['--samples', base], ''));
}

/** The same by Octavia 18, which runs on no Debian yet: its output, kept. */
export async function newestTexts(): Promise<readonly { readonly name: string; readonly text: string }[]> {
  const all = await readFile(new URL('newest-texts.txt', import.meta.url), 'utf8');
  return all
    .split(/^---- /m)
    .slice(1)
    .map((each) => ({ name: each.slice(0, each.indexOf('\n')), text: each.slice(each.indexOf('\n') + 1) }));
}

/** Debian's own Python, which has Debian's packages. */
async function python(args: readonly string[], input: string): Promise<string> {
  const child = spawn('/usr/bin/python3', [SCRIPT, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(input);
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`Octavia's renderer ended with ${code}`);
  return output;
}
