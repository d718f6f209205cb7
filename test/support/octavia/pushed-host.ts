// A folder, a loopback network and members for tests of pushed texts, with one HAProxy that ends with the test.

import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';
import { killHaproxy } from '../../../agent/haproxy/instance/process.ts';
import { askOnce } from '../../../agent/haproxy/socket/ask-once.ts';
import { parseInfo } from '../../../agent/haproxy/socket/readings.ts';
import { createLog, type Log } from '../../../agent/host/log.ts';
import { type PushedFiles, pushedFiles } from '../../../agent/pushed/files.ts';
import { OwnHaproxy } from '../../../agent/pushed/own-haproxy.ts';
import type { StatRow } from '../../../agent/pushed/pushed.ts';
import { haproxyExecutable } from '../haproxy/haproxy.ts';
import { ownNetwork } from '../host/own-network.ts';
import { startMember, type TestMember } from '../traffic/members.ts';
import { type RenderedMember, type RenderSpec, renderTexts } from './render-haproxy.ts';

export const MEMBER_PORT = 8_080;
export const VIP_PORT = 8_000;

export interface PushedHost {
  readonly base: string;
  readonly files: PushedFiles;
  readonly haproxy: OwnHaproxy;
  /** Rows that workers had right before a reload. */
  readonly replaced: (readonly StatRow[])[];
  readonly logged: string[];
  /** As an agent after the present one, which has ended without a word. */
  readonly restarted: () => OwnHaproxy;
  /** A second HAProxy with other files, for the same texts. */
  readonly beside: () => { readonly haproxy: OwnHaproxy; readonly files: PushedFiles };
  readonly address: (last: number) => string;
  readonly member: (last: number, more?: Partial<RenderedMember>) => RenderedMember;
  /** Texts with these members, by Octavia's renderer. */
  readonly texts: (
    pools: readonly (readonly RenderedMember[])[],
    spec?: Partial<RenderSpec>,
  ) => Promise<readonly string[]>;
  readonly startMembers: (...lasts: readonly number[]) => Promise<readonly TestMember[]>;
  /** The body of the answer of the VIP; the code of an error. */
  readonly ask: () => Promise<string>;
  /** The answers of so many requests, without repetitions, sorted. */
  readonly answers: (requests: number) => Promise<readonly string[]>;
  readonly workerPid: () => Promise<number>;
  readonly serversState: () => Promise<string>;
}

/** `netns`: where HAProxy runs; '' for the namespace of the test. `peer`: its name among the peers of texts. */
export async function pushedHost(
  t: ExecutionContext<unknown>,
  { netns = '', peer = '' }: { readonly netns?: string; readonly peer?: string } = {},
): Promise<PushedHost> {
  const base = await mkdtemp(join(tmpdir(), 'headgate-pushed-'));
  // HAProxy's user goes through it to the agent's socket.
  await chmod(base, 0o711);
  await mkdir(join(base, 'sample_loadbalancer_id_1'));
  const network = await ownNetwork(t);
  const files = pushedFiles(join(base, 'run'), peer);
  const logged: string[] = [];
  const replaced: (readonly StatRow[])[] = [];
  const log: Log = createLog({
    level: 'info',
    format: 'json',
    destination: { write: (line: string) => logged.push(line) },
  });
  const made: OwnHaproxy[] = [];
  const make = (own = files): OwnHaproxy => {
    const haproxy = new OwnHaproxy({
      executable: haproxyExecutable,
      netns,
      group: 'nogroup',
      files: own,
      log,
      serverState: join(base, 'sample_loadbalancer_id_1', 'servers-state'),
      onReplace: (rows) => replaced.push(rows),
    });
    made.push(haproxy);
    return haproxy;
  };
  const haproxy = make();
  t.teardown(async () => {
    for (const each of made) each.close();
    await killHaproxy(files);
    await rm(base, { recursive: true, force: true, maxRetries: 5 });
  });
  const address = (last: number): string => `${network}.${last}`;
  const ask = (): Promise<string> => answerOf(address(1), VIP_PORT);
  return {
    base,
    files,
    haproxy,
    replaced,
    logged,
    restarted: () => {
      for (const each of made) each.close();
      return make();
    },
    beside: () => {
      const own = pushedFiles(join(base, `beside-${made.length}`));
      t.teardown(() => killHaproxy(own));
      return { haproxy: make(own), files: own };
    },
    address,
    member: (last, more = {}) => ({
      id: `member-${last}`,
      ip_address: address(last),
      protocol_port: MEMBER_PORT,
      weight: 1,
      enabled: true,
      backup: false,
      ...more,
    }),
    texts: (pools, spec = {}) =>
      renderTexts(
        pools.map((members) => ({
          base,
          vip: address(1),
          port: VIP_PORT,
          listener: { persistence: false, monitor: false },
          members,
          ...spec,
        })),
      ),
    startMembers: async (...lasts) => {
      const members = await Promise.all(lasts.map((last) => startMember(address(last), MEMBER_PORT)));
      t.teardown(() => Promise.all(members.map((member) => member.kill())));
      return members;
    },
    ask,
    answers: async (requests) => {
      const found = new Set<string>();
      for (let at = 0; at < requests; at++) found.add(await ask());
      return [...found].sort();
    },
    workerPid: async () => parseInfo(await askOnce(files.adminSocket, 'show info')).pid,
    serversState: () => askOnce(files.adminSocket, 'show servers state'),
  };
}

/** On a connection of its own. */
function answerOf(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const request = get({ host, port, agent: false }, (response) => {
      void text(response).then((body) =>
        resolve(response.statusCode === 200 ? body : String(response.statusCode)),
      );
    });
    request.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}
