// The rules of egress as a file for nft, and a change of single pods as a line. Each token passes an allow-list; one that does not
// is a bug of the agent. Pure, except that it reads the template at start.

import { HeadgateError } from '../../base/errors.ts';
import { familyOf, parseAddress } from '../../base/ip.ts';
import { subdomain } from '../../base/name-forms.ts';
import { quote } from '../../base/quote.ts';
import { loadTemplate } from '../../base/template.ts';
import type { EgressMapping as Mapping } from '../../dataplane/egress-facts.ts';
import type { Family } from '../../model/load-balancer.ts';
import type { Count } from '../rules/elements.ts';

const template = loadTemplate('nftables/egress');

/** Ports from which flows leave: those that Linux gives to a pod's connections, so that most keep theirs. */
export const EGRESS_PORTS = [32_768, 60_999] as const;

const IP: Readonly<Record<Family, string>> = { v4: 'ip', v6: 'ip6' };
const FAMILIES = [
  { ip: 'ip', address: 'ipv4_addr' },
  { ip: 'ip6', address: 'ipv6_addr' },
];
/** Sets that count, by VIP. */
export const COUNTING = ['opened', 'sent', 'received'] as const;

/** What left from a VIP, and came back to it. */
export type VipCounts = Readonly<Record<(typeof COUNTING)[number], Count>>;

export interface EgressText {
  readonly table: string;
  /** 16 hex digits, which show whether the kernel still has these rules. */
  readonly generation: string;
  readonly mappings: readonly Mapping[];
  readonly vips: Iterable<string>;
  /** By VIP, until now. */
  readonly counts: ReadonlyMap<string, VipCounts>;
  readonly countsTraffic: boolean;
  readonly knowsSockets: boolean;
}

/** The VIP that a pod leaves from; undefined: from none. */
export interface PodChange {
  readonly pod: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Replaces the tables. Comments name the pods of each Service. Errors, not to be retried: RUNTIME_TOKEN. */
export function* egressText(rules: EgressText): Generator<string> {
  const { table, generation, mappings, vips, counts, countsTraffic, knowsSockets } = rules;
  const [first, last] = EGRESS_PORTS;
  const words = { table, generation, countsTraffic, knowsSockets, first, last };
  yield template({ families: FAMILIES.map((family) => ({ ...family, ...words })) });
  for (const vip of vips) yield `${[...vipStatements('add', table, vip, counts.get(vip))].join('\n')}\n`;
  for (const { pod, vip, owner } of mappings) {
    yield `${MAPPED}${ownerText(owner)} ${address(pod)}\n`;
    yield `${podStatements('add', table, pod, vip).join('\n')}\n`;
  }
}

/** Commands that take effect together or not at all. Errors: as egressText(). */
export function egressChange(
  table: string,
  changes: readonly PodChange[],
  vips: { readonly gone: readonly string[]; readonly fresh: readonly string[] },
): string {
  return [
    ...changes.flatMap(({ pod, before }) =>
      before === undefined ? [] : podStatements('delete', table, pod, before),
    ),
    ...vips.gone.flatMap((vip) => [...vipStatements('delete', table, vip)]),
    ...vips.fresh.flatMap((vip) => [...vipStatements('add', table, vip)]),
    ...changes.flatMap(({ pod, after }) =>
      after === undefined ? [] : podStatements('add', table, pod, after),
    ),
  ].join('; ');
}

const MAPPED = '# pod ';

/** By Service: the addresses of pods that the file has. */
export function mappedIn(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const [, owner = '', pod = ''] of text.matchAll(/^# pod (\S+) (\S+)$/gm)) {
    const pods = found.get(owner) ?? new Set();
    pods.add(pod);
    found.set(owner, pods);
  }
  return found;
}

function podStatements(verb: 'add' | 'delete', table: string, pod: string, vip: string): readonly string[] {
  const of = `${IP[familyOf(pod)]} ${table}`;
  const value = verb === 'add' ? ` : ${address(vip)}` : '';
  return [
    `${verb} element ${of} pods { ${address(pod)}${value} }`,
    `${verb} element ${of} known { ${address(pod)} }`,
  ];
}

function* vipStatements(
  verb: 'add' | 'delete',
  table: string,
  vip: string,
  counts?: VipCounts,
): Generator<string> {
  const of = `${IP[familyOf(vip)]} ${table}`;
  yield `${verb} element ${of} vips { ${address(vip)} }`;
  for (const set of COUNTING) yield `${verb} element ${of} ${set} { ${vip}${counterText(counts?.[set])} }`;
}

function counterText(count: Count | undefined): string {
  return count === undefined ? '' : ` counter packets ${number(count.packets)} bytes ${number(count.bytes)}`;
}

function number(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw wrong('number', String(value));
  return value;
}

function address(text: string): string {
  if (parseAddress(text)?.address !== text) throw wrong('address', text);
  return text;
}

function ownerText(owner: string): string {
  if (!owner.split('/').every((each) => subdomain.check(each))) throw wrong('name', owner);
  return owner;
}

function wrong(what: string, text: string): HeadgateError {
  return new HeadgateError('RUNTIME_TOKEN', `Cannot be a ${what} for nft: ${quote(text)}`, {
    retry: 'never',
  });
}
