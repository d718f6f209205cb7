// Turns changes of elements into the text of one transaction for nft, and checks each token against the allow-list of its
// kind. A token that is not allowed is a bug of the agent, not a user's mistake: objects are validated before. Pure.

import { hash } from 'node:crypto';
import { HeadgateError } from '../base/errors.ts';
import { familyOf, parseAddress, parseCidr } from '../base/ip.ts';
import { quote } from '../base/quote.ts';
import { isListener } from '../model/names.ts';
import type { Counter, Element, ElementChange, Place } from './elements.ts';
import { TABLE_SIZES } from './maglev.ts';

/** Marks of packets whose flow gets a member: this number, plus the slot. No other tool of the host may use them. */
export const MARK_OFFSET = 0x4c42_0000;

const FAMILIES = { v4: 'ip', v6: 'ip6' } as const;
const PROTOCOLS = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' } as const;

/** Commands joined by `;`, which take effect together or not at all; '' for no change. Errors, not to be retried: RUNTIME_TOKEN. */
export function transactionText(table: string, changes: readonly ElementChange[]): string {
  return [
    ...elementStatements(
      'delete',
      table,
      changes.flatMap(({ removed }) => removed),
    ),
    // Not before no map has them any more.
    ...changes.flatMap(({ removedCounters }) =>
      removedCounters.map((each) => `delete ${counterText(table, each)}`),
    ),
    ...changes.flatMap(({ addedCounters }) => addedCounters.map((each) => `add ${counterText(table, each)}`)),
    ...elementStatements(
      'add',
      table,
      changes.flatMap(({ added }) => added),
    ),
  ].join('; ');
}

/** The statements that add all of this, one per line, for a file. `counts`: new flows by listener until now. */
export function* additions(
  table: string,
  changes: Iterable<ElementChange>,
  counts: ReadonlyMap<string, number>,
): Generator<string> {
  for (const { added, addedCounters } of changes) {
    for (const counter of addedCounters) {
      const flows = number(counts.get(counter.listener) ?? 0, 0, Number.MAX_SAFE_INTEGER);
      yield `add ${counterText(table, counter)} { packets ${flows} bytes 0 ; }\n`;
    }
    for (const statement of elementStatements('add', table, added)) yield `${statement}\n`;
  }
}

/** The name of a listener's counter: nft allows fewer characters than names of listeners have. */
export function counterName(listener: string): string {
  if (!isListener(listener)) throw wrong('listener', listener);
  return `l_${hash('sha256', listener).slice(0, 16)}`;
}

/** One statement for each family and map. */
function elementStatements(
  verb: 'add' | 'delete',
  table: string,
  elements: readonly Element[],
): readonly string[] {
  const groups = new Map<string, string[]>();
  for (const element of elements) {
    const [family, name, key, value] = partsOf(element, table);
    const place = `${family} ${name}`;
    const group = groups.get(place);
    const text = verb === 'add' && value !== '' ? `${key} : ${value}` : key;
    if (group === undefined) groups.set(place, [text]);
    else group.push(text);
  }
  return Array.from(groups, ([place, texts]) => `${verb} element ${place} { ${texts.join(', ')} }`);
}

function counterText(table: string, { family, listener }: Counter): string {
  return `counter ${FAMILIES[family]} ${table}_counts ${counterName(listener)}`;
}

/** Family, table and map, key, value ('' for a set). */
function partsOf(element: Element, table: string): readonly [string, string, string, string] {
  if (element.map === 'sources') {
    const { vip, source } = element;
    return [FAMILIES[familyOf(vip)], `${table} sources`, address(vip), address(source)];
  }
  if (element.map === 'anchors')
    return [FAMILIES[familyOf(element.address)], `${table} anchors`, address(element.address), ''];
  const { place } = element;
  const family = FAMILIES[place.family];
  const key = placeText(place);
  switch (element.map) {
    case 'slots': {
      const { slot, member } = element;
      const mark = MARK_OFFSET + number(slot, 0, 0xffff);
      return [
        family,
        `${table} slots`,
        `${key} . ${mark}`,
        `${address(member.address)} . ${port(member.port)}`,
      ];
    }
    case 'choices':
      return [family, `${table} choices`, key, `goto ${chain(element)}`];
    case 'allowed':
      return [family, `${table} allowed`, `${key} . ${cidr(element.client)}`, ''];
    case 'counters':
      return [family, `${table}_counts counters`, key, `"${counterName(element.listener)}"`];
    default:
      return [family, `${table} ${element.map}`, key, ''];
  }
}

function placeText(place: Place): string {
  const protocol = PROTOCOLS[place.protocol];
  if (protocol === undefined) throw wrong('protocol', place.protocol);
  return `${address(place.address)} . ${protocol} . ${port(place.port)}`;
}

function chain({ by, size }: Extract<Element, { map: 'choices' }>): string {
  if (by !== 'flow' && by !== 'client') throw wrong('choice', by);
  if (!TABLE_SIZES.some((each) => each === size)) throw wrong('size', String(size));
  return `${by}_${size}`;
}

function address(text: string): string {
  if (parseAddress(text)?.address !== text) throw wrong('address', text);
  return text;
}

function cidr(text: string): string {
  if (parseCidr(text)?.cidr !== text) throw wrong('source range', text);
  return text;
}

function port(value: number): number {
  return number(value, 1, 65_535);
}

function number(value: number, least: number, most: number): number {
  if (!Number.isInteger(value) || value < least || value > most) throw wrong('number', String(value));
  return value;
}

function wrong(what: string, text: string): HeadgateError {
  return new HeadgateError('RUNTIME_TOKEN', `Cannot be a ${what} for nft: ${quote(text)}`, {
    retry: 'never',
  });
}
