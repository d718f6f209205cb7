// Compares the state of a worker with the agent's record of it and corrects the record; the plans that follow repair the
// worker. Reads behind all urgent commands; a listener that changes during the audit is left for the next one.

import { Slice } from '../../base/slice.ts';
import type { Certificate } from '../../model/load-balancer.ts';
import type { Worker } from '../booted-worker.ts';
import type { HaproxyPaths } from '../paths.ts';
import {
  correctRows,
  readAllowed,
  readCertificates,
  readDisabled,
  readListener,
  readServers,
  serversOf,
} from '../readback.ts';
import type { RunningListener, RunningServer } from '../running.ts';

/** So that the cost of an audit does not grow with the cluster: listeners whose allowed clients it reads, and certificates. */
const ALLOWED_READ_PER_AUDIT = 50;
const CERTIFICATES_READ_PER_AUDIT = 200;

/** Where an audit begins among the listeners, whose allowed clients it reads, and among the certificates. */
export interface AuditPosition {
  readonly listener: number;
  readonly certificate: number;
}

export const FIRST_POSITION: AuditPosition = { listener: 0, certificate: 0 };

export interface AuditResult {
  /** Listeners that differed, with the differences for the log. */
  readonly drifted: ReadonlyMap<string, string>;
  /** Where the next audit begins. */
  readonly next: AuditPosition;
}

/** `from`: `next` of the last audit. Errors: those of the connection. */
export async function audit(
  worker: Worker,
  from: AuditPosition,
  { certificates, routes }: Pick<HaproxyPaths, 'certificates' | 'routes'>,
): Promise<AuditResult> {
  const { runtime, running } = worker;
  const names = [...running.names()];
  const before = new Map(names.map((name) => [name, running.changesOf(name)]));
  /** '' if the servers are as recorded, or if a command has changed them since the begin of the audit. */
  const difference = (name: string, servers: Servers): string =>
    running.changesOf(name) === before.get(name)
      ? serversInWords(servers, running.get(name)?.servers ?? new Map())
      : '';
  /** Key: a listener that may differ; value: its servers in the worker. */
  const suspects = new Map<string, Servers>();
  const compare = (name: string, answer: string): void => {
    const servers = serversOf(answer);
    if (difference(name, servers) !== '') suspects.set(name, servers);
  };
  await readServers(runtime, names, compare);
  if (suspects.size > 0) await settled(worker);
  const drifted = new Map<string, string>();
  for (const [name, servers] of suspects) {
    const words = difference(name, servers);
    if (words === '') continue;
    drifted.set(name, words);
    running.putServers(name, servers);
  }
  for (const [name, words] of await otherFrontends(worker, (each) => before.get(each)))
    drifted.set(name, words);
  const some = names.slice(from.listener, from.listener + ALLOWED_READ_PER_AUDIT);
  for (const name of await withOtherClients(worker, some)) {
    const believed = running.get(name)?.allowed ?? [];
    const changes = running.changesOf(name);
    await readListener(worker, name, () => running.changesOf(name) === changes);
    const words = clientsInWords(running.get(name)?.allowed ?? [], believed);
    if (running.changesOf(name) === changes + 1 && words !== '') drifted.set(name, words);
  }
  const all = running.certificates();
  const believed = all.slice(from.certificate, from.certificate + CERTIFICATES_READ_PER_AUDIT);
  for (const [name, words] of await otherCertificates(worker, believed, certificates))
    drifted.set(name, words);
  for (const [name, words] of await correctRows(worker, routes)) drifted.set(name, shortened(words));
  return {
    drifted,
    next: {
      listener: after(from.listener, some.length, names.length),
      certificate: after(from.certificate, believed.length, all.length),
    },
  };
}

/** The first one again after the last one. */
function after(from: number, read: number, all: number): number {
  return from + read >= all ? 0 : from + read;
}

/** Listeners whose sockets another process has disabled or enabled, with words for the log. */
async function otherFrontends(
  worker: Worker,
  changesBefore: (listener: string) => number | undefined,
): Promise<ReadonlyMap<string, string>> {
  const { runtime, running } = worker;
  const disabled = await readDisabled(runtime);
  await settled(worker);
  const drifted = new Map<string, string>();
  for (const name of new Set([...disabled, ...running.disabled()])) {
    const isDisabled = disabled.has(name);
    if (running.changesOf(name) !== changesBefore(name)) continue;
    if (running.get(name)?.isDisabled === isDisabled) continue;
    drifted.set(name, isDisabled ? 'it refuses connections' : 'it accepts connections');
    running.setDisabled(name, isDisabled);
  }
  return drifted;
}

/** Listeners with a certificate of which the worker has another content than recorded, with words for the log. */
async function otherCertificates(
  { runtime, running }: Worker,
  believed: readonly Certificate[],
  folder: string,
): Promise<ReadonlyMap<string, string>> {
  const drifted = new Map<string, string>();
  const found = await readCertificates(runtime, believed, folder);
  for (const certificate of believed) {
    const { name } = certificate;
    const isChangedSince = running.certificate(name) !== certificate;
    // The worker may have no file any more of a certificate that no list has.
    if (found.get(name) !== undefined || isChangedSince) continue;
    running.putCertificate(name, undefined);
    for (const listener of running.names())
      if (running.get(listener)?.certificates.has(name) === true)
        drifted.set(listener, `certificate ${name} has another content`);
  }
  return drifted;
}

/** Listeners whose allowed clients differ, or changed while they were read. */
async function withOtherClients({ runtime, running }: Worker, names: readonly string[]): Promise<string[]> {
  const believed = names.map((name) => running.get(name)?.allowed ?? []);
  const ids = believed.flat().map(({ id }) => id);
  const read = new Map((await readAllowed(runtime, ids, 'bulk')).map(({ id, cidrs }) => [id, cidrs]));
  const isOther = ({ id, cidrs }: RunningListener['allowed'][number]): boolean => {
    const now = read.get(id);
    return now?.size !== cidrs.size || ![...now].every((cidr) => cidrs.has(cidr));
  };
  return names.filter((_, at) => believed[at]?.some(isOther));
}

/**
 * Answers of the bulk lane may overtake replies to commands on the urgent lane: resolves when the replies to all commands
 * under way have been processed.
 */
async function settled({ runtime }: Worker): Promise<void> {
  await runtime.ask('show version');
  await new Slice().breathe();
}

/** Differences that one log line names. */
const MAX_NAMED = 3;

type Servers = ReadonlyMap<string, RunningServer>;

export function serversInWords(now: Servers, believed: Servers): string {
  const words = [...new Set([...now.keys(), ...believed.keys()])].flatMap((name) => {
    const [is, was] = [now.get(name), believed.get(name)];
    if (is === undefined) return `server ${name} is missing`;
    if (was === undefined) return `server ${name} was added by another process`;
    if (is.isMoved !== was.isMoved) return `server ${name} has ${is.isMoved ? 'another' : 'its own'} address`;
    const other = (['state', 'weight', 'check', 'id'] as const).find((field) => is[field] !== was[field]);
    return other === undefined ? [] : `server ${name} has ${other} ${is[other]}, not ${was[other]}`;
  });
  return shortened(words);
}

export function clientsInWords(
  now: RunningListener['allowed'],
  believed: RunningListener['allowed'],
): string {
  const [is, was] = [now, believed].map((lines) => new Set(lines.flatMap(({ cidrs }) => [...cidrs])));
  const only = (some: ReadonlySet<string> = new Set(), others: ReadonlySet<string> = new Set()) =>
    [...some].filter((cidr) => !others.has(cidr));
  return shortened([
    ...only(is, was).map((cidr) => `${cidr} is allowed`),
    ...only(was, is).map((cidr) => `${cidr} is not allowed`),
  ]);
}

function shortened(words: readonly string[]): string {
  const more = words.length - MAX_NAMED;
  return [...words.slice(0, MAX_NAMED), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}
