// Reads `show servers state`: what every server is told, and what HAProxy makes of it. Columns are found by the header's
// names, never by position. Pure. A text that is something else throws RUNTIME_REPLY with its words.

import { parseAddress } from '../../ip.ts';
import { quote } from '../../quote.ts';
import { integer, linesOf, unreadable } from './answer-text.ts';

export interface ServerState {
  readonly backend: string;
  readonly server: string;
  readonly id: number;
  /** '' while HAProxy has none, as for a name that does not resolve. */
  readonly address: string;
  readonly port: number;
  /** The one in force, 0 to 256. */
  readonly weight: number;
  /** What it was told. */
  readonly state: 'ready' | 'drain' | 'maint';
  /** What it makes of it and of its checks. */
  readonly operational: 'down' | 'starting' | 'up' | 'stopping';
  /** `none`: the server has no check; `off`: it has one that is not enabled; `paused`: while it is in maintenance. */
  readonly check: 'none' | 'off' | 'paused' | 'on';
  /** What the last check has found: HCHK_STATUS_* of HAProxy's source. */
  readonly checkStatus: number;
}

// Bits of srv_admin_state (include/haproxy/server-t.h, the same in 2.6 and 3.4). 0x04 only remembers that the file
// said "disabled", and stays when the server is made ready.
const MAINT = 0x01 | 0x02 | 0x20 | 0x40;
const DRAIN = 0x08 | 0x10;
// Bits of srv_check_state (include/haproxy/check-t.h).
const CHECK_CONFIGURED = 0x02;
const CHECK_ENABLED = 0x04;
const CHECK_PAUSED = 0x08;
const OPERATIONAL = ['down', 'starting', 'up', 'stopping'] as const;

const STATE_COLUMNS = [
  'be_name',
  'srv_id',
  'srv_name',
  'srv_addr',
  'srv_op_state',
  'srv_admin_state',
  'srv_uweight',
  'srv_check_status',
  'srv_check_state',
  'srv_port',
] as const;

/**
 * Of `show servers state [BACKEND]`, one by one, so that the caller may let other work pass between two rows of a
 * text of megabytes.
 */
export function* parseServersState(text: string): Generator<ServerState, void, void> {
  const what = 'servers state';
  const headerAt = text.indexOf('\n') + 1;
  const rowsAt = headerAt === 0 ? 0 : text.indexOf('\n', headerAt) + 1;
  const header = text.slice(headerAt, rowsAt === 0 ? undefined : rowsAt - 1);
  if (!text.startsWith('1\n') || header === '') throw unreadable(what, text);
  const columns = columnsOf(what, header.replace(/^# /, '').split(' '), STATE_COLUMNS);
  const [backend, id, server, address, operational, admin, weight, checkStatus, check, port] = columns;
  const row = new Row(what, text, Math.max(...columns));
  for (let at = rowsAt === 0 ? text.length : rowsAt; at < text.length; at = row.end + 1) {
    if (!row.cut(at)) continue;
    yield {
      backend: row.text(backend),
      server: row.text(server),
      id: row.integer(id),
      address: row.text(address) === '-' ? '' : row.text(address),
      port: row.integer(port),
      weight: row.integer(weight),
      state: adminState(row.integer(admin)),
      operational: OPERATIONAL[row.integer(operational)] ?? 'down',
      check: checkState(row.integer(check)),
      checkStatus: row.integer(checkStatus),
    };
  }
}

/**
 * Of `show servers state BACKEND`, word for word as HAProxy reads them at its next start: the header, and the rows of
 * servers that are down although nobody has taken them out of service, and of those that are simply up: one that has no
 * row is taken down by its first failed check. A row carries the address over, too: of a server that was moved away
 * from the address in its name there is none; and a weight that it was told: of such a server that is up neither.
 */
export function keptRows(text: string): { readonly header: string; readonly rows: readonly string[] } {
  if (text.startsWith("Can't find backend")) return { header: '', rows: [] };
  const what = 'servers state';
  const [format, header = '', ...all] = linesOf(text);
  if (format !== '1') throw unreadable(what, text);
  const names = [
    'srv_op_state',
    'srv_admin_state',
    'srv_name',
    'srv_addr',
    'srv_port',
    'srv_uweight',
    'srv_iweight',
  ] as const;
  const [operational, admin, server, address, port, weight, initial] = columnsOf(
    what,
    header.replace(/^# /, '').split(' '),
    names,
  );
  const rows = all.filter((row) => {
    if (row === '') return false;
    const field = fieldsOf(what, row, row.split(' '));
    const isOut = (integer(what, row, field(admin)) & MAINT) !== 0;
    const state = OPERATIONAL[integer(what, row, field(operational))];
    const isDown = state === 'down' && !isOut;
    const isUp = state === 'up' && field(admin) === '0' && field(weight) === field(initial);
    return (isDown || isUp) && isAtHome(field(server), field(address), field(port));
  });
  return { header, rows };
}

/** Whether a server is at the address and port that its name says, as all of ours are. */
export function isAtHome(server: string, address: string, port: number | string): boolean {
  const isAt = (text: string): boolean => server === `${text}:${port}`;
  return isAt(address) || isAt(parseAddress(address)?.address ?? '');
}

function adminState(bits: number): ServerState['state'] {
  if ((bits & MAINT) !== 0) return 'maint';
  return (bits & DRAIN) === 0 ? 'ready' : 'drain';
}

function checkState(bits: number): ServerState['check'] {
  if ((bits & CHECK_CONFIGURED) === 0) return 'none';
  if ((bits & CHECK_ENABLED) === 0) return 'off';
  return (bits & CHECK_PAUSED) === 0 ? 'on' : 'paused';
}

/** The positions of `names` in a header. */
function columnsOf<const Names extends readonly string[]>(
  what: string,
  header: readonly string[],
  names: Names,
): { readonly [at in keyof Names]: number } {
  const positions = names.map((name) => {
    const at = header.indexOf(name);
    if (at === -1) throw unreadable(what, header.join(' '), `no column "${name}"`);
    return at;
  });
  return positions as unknown as { readonly [at in keyof Names]: number };
}

function fieldsOf(what: string, row: string, fields: readonly string[]): (column: number) => string {
  return (column) => {
    const value = fields[column];
    if (value === undefined) throw unreadable(what, row, 'too few fields');
    return value;
  };
}

/**
 * One row of a long text after the other, cut where its blanks are: an audit reads tens of thousands of them, and a
 * list of all their fields would cost several times as much as what is done with the few that matter.
 */
class Row {
  readonly #what: string;
  readonly #text: string;
  readonly #last: number;
  /** Where each field begins, and behind the last one. */
  readonly #begins: number[];
  #at = 0;
  /** Where the row ends. */
  end = 0;

  /** `last`: the last column that is of interest. */
  constructor(what: string, text: string, last: number) {
    this.#what = what;
    this.#text = text;
    this.#last = last;
    this.#begins = new Array<number>(last + 2).fill(0);
  }

  /** Takes the row that begins here; false where it is empty. Throws where it has too few fields. */
  cut(at: number): boolean {
    const text = this.#text;
    const newline = text.indexOf('\n', at);
    this.#at = at;
    this.end = newline === -1 ? text.length : newline;
    if (this.end === at) return false;
    let begin = at;
    for (let column = 0; column <= this.#last; column++) {
      if (begin > this.end) throw unreadable(this.#what, this.#whole(), 'too few fields');
      this.#begins[column] = begin;
      const blank = text.indexOf(' ', begin);
      begin = (blank === -1 || blank > this.end ? this.end : blank) + 1;
    }
    this.#begins[this.#last + 1] = begin;
    return true;
  }

  text(column: number): string {
    return this.#text.slice(this.#begins[column], (this.#begins[column + 1] ?? 0) - 1);
  }

  integer(column: number): number {
    const end = (this.#begins[column + 1] ?? 0) - 1;
    let at = this.#begins[column] ?? 0;
    const isNegative = this.#text.charCodeAt(at) === MINUS;
    if (isNegative) at++;
    let value = 0;
    let isNumber = end > at && end - at <= MOST_DIGITS;
    for (; isNumber && at < end; at++) {
      const digit = this.#text.charCodeAt(at) - ZERO;
      isNumber = digit >= 0 && digit <= 9;
      value = value * 10 + digit;
    }
    if (!isNumber) throw unreadable(this.#what, this.#whole(), `${quote(this.text(column))} is not a number`);
    return isNegative ? -value : value;
  }

  #whole(): string {
    return this.#text.slice(this.#at, this.end);
  }
}

const [MINUS, ZERO] = [0x2d, 0x30];
const MOST_DIGITS = 15;
