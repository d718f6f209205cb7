// Turns changes of elements into the text of one transaction for nft, and checks each token against the allow-list of its
// kind. A token that is not allowed is a bug of the agent, not a user's mistake: objects are validated before. Pure.

import { HeadgateError } from '../../base/errors.ts';
import { familyOf, parseAddress, parseCidr } from '../../base/ip.ts';
import { quote } from '../../base/quote.ts';
import type { Member } from '../../model/load-balancer.ts';
import { isListener } from '../../model/names.ts';
import { AFFINITY_SECONDS } from './affinity.ts';
import type { DirectElement } from './direct-elements.ts';
import type { Count, CountingElement, Element, ElementChange } from './elements.ts';
import { TABLE_SIZES } from './maglev.ts';
import type { Place } from './place.ts';

/** The mark of the first packet of a flow while its member is chosen: this number, plus the slot or the member's number. */
export const MARK_OFFSET = 0x4c42_0000;
const MAX_IN_MARK = 0x7fff;

const FAMILIES = { v4: 'ip', v6: 'ip6' } as const;
const PROTOCOLS = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' } as const;
const PROTOCOL_NUMBERS = { TCP: 6, UDP: 17, SCTP: 132 } as const;
/** The words of conntrack: `original` is from the client. */
const DIRECTIONS = { received: 'original', sent: 'reply' } as const;

/** Commands joined by `;`, which take effect together or not at all; '' for no change. Errors, not to be retried: RUNTIME_TOKEN. */
export function transactionText(table: string, changes: readonly ElementChange[]): string {
  return [
    ...elementStatements(
      'delete',
      table,
      changes.flatMap(({ removed }) => removed),
    ),
    ...elementStatements(
      'add',
      table,
      changes.flatMap(({ added }) => added),
    ),
  ].join('; ');
}

/** The statements that add these elements, one per line, for a file. `counts`: until now, by the keys of their elements. */
export function* additions(
  table: string,
  elements: readonly Element[],
  counts: ReadonlyMap<string, Count>,
): Generator<string> {
  for (const statement of elementStatements('add', table, elements, counts)) yield `${statement}\n`;
}

/** A line that names a listener. Errors: as transactionText(). */
export function comment(listener: string): string {
  if (!isListener(listener)) throw wrong('listener', listener);
  return `# ${listener}\n`;
}

/** The element's key in its set; no other counting element has it. */
export function counterKey(element: CountingElement): string {
  return partsOf(element, '')[2];
}

const NO_COUNTS: ReadonlyMap<string, Count> = new Map();

/** One statement for each family and map. */
function elementStatements(
  verb: 'add' | 'delete',
  table: string,
  elements: readonly Element[],
  counts = NO_COUNTS,
): readonly string[] {
  const groups = new Map<string, string[]>();
  for (const element of elements) {
    const [family, name, key, value] = partsOf(element, table);
    const place = `${family} ${name}`;
    const group = groups.get(place);
    // The key of an element that counts is also in sets that do not, and nft refuses a count there.
    const counted = isCounting(element) ? counts.get(key) : undefined;
    const text = verb === 'add' && value !== '' ? `${key} : ${value}` : `${key}${counterText(counted)}`;
    if (group === undefined) groups.set(place, [text]);
    else group.push(text);
  }
  return Array.from(groups, ([place, texts]) => `${verb} element ${place} { ${texts.join(', ')} }`);
}

function isCounting({ map }: Element): boolean {
  return map === 'flows' || map === 'traffic' || map === 'passed';
}

function counterText(counted: Count | undefined): string {
  return counted === undefined
    ? ''
    : ` counter packets ${count(counted.packets)} bytes ${count(counted.bytes)}`;
}

/** Family, table and map, key, value ('' for a set). Errors: as transactionText(). */
export function partsOf(element: Element, table: string): readonly [string, string, string, string] {
  if (element.map === 'sources') {
    const { vip, group } = element;
    return [FAMILIES[familyOf(vip)], `${table} sources`, address(vip), `goto ${sourceChain(group)}`];
  }
  if (element.map === 'anchors' || element.map === 'neighbours')
    return [FAMILIES[familyOf(element.address)], `${table} ${element.map}`, address(element.address), ''];
  if (element.map === 'answers' || element.map === 'unclear') {
    const { map, member } = element;
    const value = map === 'answers' ? `${address(element.place.address)} . ${port(element.place.port)}` : '';
    return [FAMILIES[familyOf(member.address)], `${table} ${map}`, endpoint(member), value];
  }
  const { place } = element;
  const family = FAMILIES[place.family];
  const key = placeText(place);
  switch (element.map) {
    case 'slots': {
      const { slot, member } = element;
      return [family, `${table} slots`, `${key} . ${mark(slot)}`, endpoint(member)];
    }
    case 'shares': {
      const { from, to } = element;
      return [family, `${table} shares`, `${key} . ${mark(from)}`, String(mark(to))];
    }
    case 'members': {
      const { number, member } = element;
      return [family, `${table} members`, `${key} . ${mark(number)}`, endpoint(member)];
    }
    case 'choosers':
      return [family, `${table} choosers`, key, `goto affinity_${size(element.size)}`];
    case 'timeouts': {
      const { seconds } = element;
      if (!AFFINITY_SECONDS.some((each) => each === seconds)) throw wrong('timeout', String(seconds));
      return [family, `${table}_affinity timeouts`, key, `goto for_${seconds}`];
    }
    case 'choices':
      return [family, `${table} choices`, key, `goto ${chain(element)}`];
    case 'allowed':
      return [family, `${table} allowed`, `${key} . ${cidr(element.client)}`, ''];
    case 'passed':
      return [family, `${table}_counts passed`, passedKey(place), ''];
    case 'direct-choices':
    case 'direct-errors':
    case 'direct-shares':
    case 'direct-error-slots':
    case 'direct-members':
    case 'direct-ready':
    case 'direct-allowed':
      return [family, ...directParts(element, `${table}_direct`)];
    case 'flows':
      return [family, `${table}_counts flows`, key, ''];
    case 'traffic':
      return [family, `${table}_counts traffic`, `${key} . ${DIRECTIONS[element.direction]}`, ''];
    default:
      return [family, `${table} ${element.map}`, key, ''];
  }
}

/** Elements of direct members: table and map, key, value. */
function directParts(element: DirectElement, table: string): [string, string, string] {
  const { place } = element;
  const key = placeText(place);
  const inError = `${address(place.address)} . ${errorMark(place)}`;
  switch (element.map) {
    case 'direct-choices':
      return [`${table} choices`, key, `goto ${element.isGuarded ? 'guarded_' : ''}${chain(element)}`];
    case 'direct-errors':
      return [`${table} errors`, inError, `goto error_${chain(element)}`];
    case 'direct-shares':
      return [`${table} shares`, `${key} . ${mark(element.from)}`, String(mark(element.to))];
    case 'direct-error-slots': {
      const slot = mark(element.slot);
      const words = `${(slot >>> 16).toString(16)}:${(slot & 0xffff).toString(16)}`;
      return [`${table} error_slots`, `${inError} . ${words}`, address(element.member.address)];
    }
    case 'direct-members':
      return [`${table} members`, `${key} . ${mark(element.number)}`, address(element.member.address)];
    case 'direct-ready':
      return [`${table} ready`, `${key} . ${mark(element.number)}`, ''];
    case 'direct-allowed':
      return [`${table} allowed`, `${key} . ${cidr(element.client)}`, ''];
  }
}

/** Protocol and port of a place, as the chain `error` finds them in a packet: the bytes of the port are the other way round. */
function errorMark({ protocol, port: number }: Place): number {
  const bytes = port(number);
  return PROTOCOL_NUMBERS[protocol] * 0x1_0000 + (bytes & 0xff) * 0x100 + (bytes >> 8);
}

/** Not as placeText(), so that the counters of both sets differ. */
function passedKey(place: Place): string {
  return `${PROTOCOLS[place.protocol]} . ${address(place.address)} . ${port(place.port)}`;
}

function placeText(place: Place): string {
  const protocol = PROTOCOLS[place.protocol];
  if (protocol === undefined) throw wrong('protocol', place.protocol);
  return `${address(place.address)} . ${protocol} . ${port(place.port)}`;
}

/** The chain that gives packets a source address of a group. */
export function sourceChain(group: number): string {
  return `from_${number(group, 1, 255)}`;
}

/** For a map of nftables from 0 up. */
export function sourceMap(addresses: readonly string[]): string {
  return addresses.map((each, at) => `${at} : ${address(each)}`).join(', ');
}

function endpoint(member: Member): string {
  return `${address(member.address)} . ${port(member.port)}`;
}

function chain({
  by,
  size: slots,
  prefix,
}: Pick<Extract<Element, { map: 'choices' }>, 'by' | 'size' | 'prefix'>): string {
  if (by === 'affinity') return by;
  if (by !== 'flow' && by !== 'client') throw wrong('choice', by);
  return prefix === undefined ? `${by}_${size(slots)}` : `${by}_${size(slots)}_${number(prefix, 1, 128)}`;
}

/** A number of slots. */
function size(slots: number): number {
  if (!TABLE_SIZES.some((each) => each === slots)) throw wrong('size', String(slots));
  return slots;
}

/** The mark of packets to a slot, or to the member of a number. */
function mark(value: number): number {
  return MARK_OFFSET + number(value, 0, MAX_IN_MARK);
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

function count(value: number): number {
  return number(value, 0, Number.MAX_SAFE_INTEGER);
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
