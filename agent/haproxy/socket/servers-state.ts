// Reads `show servers state`: what every server is told, and what HAProxy makes of it. Columns are found by the header's
// names, never by position. An audit reads tens of thousands of rows, so they can be walked without a value for each.
// Pure. A text that is something else throws RUNTIME_REPLY with its words.

import { parseAddress } from '../../base/ip.ts';
import { quote } from '../../base/quote.ts';
import { unreadable } from './answer-text.ts';

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

const WHAT = 'servers state';
const COLUMNS = [
  'be_name',
  'srv_id',
  'srv_name',
  'srv_addr',
  'srv_op_state',
  'srv_admin_state',
  'srv_uweight',
  'srv_iweight',
  'srv_check_status',
  'srv_check_state',
  'srv_port',
] as const;

/**
 * Of `show servers state [BACKEND]`, one by one, so that the caller may let other work pass between two rows of a
 * text of megabytes.
 */
export function* parseServersState(text: string): Generator<ServerState, void, void> {
  const rows = new ServerRows(text);
  while (rows.next()) {
    yield {
      backend: rows.backend,
      server: rows.server,
      id: rows.id,
      address: rows.address,
      port: rows.port,
      weight: rows.weight,
      state: rows.state,
      operational: rows.operational,
      check: rows.check,
      checkStatus: rows.checkStatus,
    };
  }
}

/** The same without a value for each row: it stands on one row at a time, whose fields are read when asked for. */
export class ServerRows implements ServerState {
  /** The line of the columns' names. */
  readonly header: string;
  readonly #text: string;
  readonly #columns: Columns;
  /** Where each field of the row begins, up to the last one that is of interest, and behind that. */
  readonly #begins: number[];
  #at = 0;
  #end: number;

  /** Before the first row: call `next`. */
  constructor(text: string) {
    const headerAt = text.indexOf('\n') + 1;
    const rowsAt = headerAt === 0 ? 0 : text.indexOf('\n', headerAt) + 1;
    this.header = text.slice(headerAt, rowsAt === 0 ? undefined : rowsAt - 1);
    if (!text.startsWith('1\n') || this.header === '') throw unreadable(WHAT, text);
    this.#text = text;
    this.#columns = columnsOf(this.header);
    this.#begins = new Array<number>(this.#columns.last + 2).fill(0);
    this.#end = rowsAt === 0 ? text.length : rowsAt - 1;
  }

  /** False after the last row. Throws where the row has too few fields. */
  next(): boolean {
    const text = this.#text;
    do {
      this.#at = this.#end + 1;
      if (this.#at >= text.length) return false;
      const newline = text.indexOf('\n', this.#at);
      this.#end = newline === -1 ? text.length : newline;
    } while (this.#end === this.#at);
    let begin = this.#at;
    const { last } = this.#columns;
    for (let column = 0; column <= last; column++) {
      if (begin > this.#end) throw unreadable(WHAT, this.row, 'too few fields');
      this.#begins[column] = begin;
      const blank = text.indexOf(' ', begin);
      begin = (blank === -1 || blank > this.#end ? this.#end : blank) + 1;
    }
    this.#begins[last + 1] = begin;
    return true;
  }

  get backend(): string {
    return this.#field(this.#columns.by.be_name);
  }

  get server(): string {
    return this.#field(this.#columns.by.srv_name);
  }

  get id(): number {
    return this.#integer(this.#columns.by.srv_id);
  }

  get address(): string {
    const address = this.#field(this.#columns.by.srv_addr);
    return address === '-' ? '' : address;
  }

  get port(): number {
    return this.#integer(this.#columns.by.srv_port);
  }

  get weight(): number {
    return this.#integer(this.#columns.by.srv_uweight);
  }

  get state(): ServerState['state'] {
    const bits = this.#integer(this.#columns.by.srv_admin_state);
    if ((bits & MAINT) !== 0) return 'maint';
    return (bits & DRAIN) === 0 ? 'ready' : 'drain';
  }

  get operational(): ServerState['operational'] {
    return OPERATIONAL[this.#integer(this.#columns.by.srv_op_state)] ?? 'down';
  }

  get check(): ServerState['check'] {
    const bits = this.#integer(this.#columns.by.srv_check_state);
    if ((bits & CHECK_CONFIGURED) === 0) return 'none';
    if ((bits & CHECK_ENABLED) === 0) return 'off';
    return (bits & CHECK_PAUSED) === 0 ? 'on' : 'paused';
  }

  get checkStatus(): number {
    return this.#integer(this.#columns.by.srv_check_status);
  }

  /** Nobody has told it another state or weight than the file gave it. */
  get isAsConfigured(): boolean {
    const { srv_admin_state, srv_uweight, srv_iweight } = this.#columns.by;
    return this.#integer(srv_admin_state) === 0 && this.#integer(srv_uweight) === this.#integer(srv_iweight);
  }

  /** Whether the server is at the address and port that its name says, as all of ours are. */
  get isAtHome(): boolean {
    const { server, address } = this;
    const port = `:${this.port}`;
    const isAt = (text: string): boolean =>
      server.length === text.length + port.length && server.startsWith(text) && server.endsWith(port);
    return isAt(address) || isAt(parseAddress(address)?.address ?? '');
  }

  /** The whole of it. */
  get row(): string {
    return this.#text.slice(this.#at, this.#end);
  }

  /** The same as it were if it had neither been told to drain nor given a weight. */
  get undrained(): string {
    const { srv_admin_state, srv_uweight, srv_iweight } = this.#columns.by;
    const fields = this.row.split(' ');
    fields[srv_admin_state] = '0';
    fields[srv_uweight] = fields[srv_iweight] ?? '';
    return fields.join(' ');
  }

  #field(column: number): string {
    return this.#text.slice(this.#begins[column], (this.#begins[column + 1] ?? 0) - 1);
  }

  #integer(column: number): number {
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
    if (!isNumber) throw unreadable(WHAT, this.row, `${quote(this.#field(column))} is not a number`);
    return isNegative ? -value : value;
  }
}

const [MINUS, ZERO] = [0x2d, 0x30];
const MOST_DIGITS = 15;

interface Columns {
  readonly by: { readonly [name in (typeof COLUMNS)[number]]: number };
  /** The last one of them. */
  readonly last: number;
}

/** Of the header that was read last: one HAProxy sends the same a thousand times. */
let known: { readonly header: string; readonly columns: Columns } = {
  header: '',
  columns: { by: {} as Columns['by'], last: 0 },
};

function columnsOf(header: string): Columns {
  if (header === known.header) return known.columns;
  const names = header.replace(/^# /, '').split(' ');
  const positions = COLUMNS.map((name) => {
    const at = names.indexOf(name);
    if (at === -1) throw unreadable(WHAT, names.join(' '), `no column "${name}"`);
    return [name, at] as const;
  });
  const by = Object.fromEntries(positions) as Columns['by'];
  known = { header, columns: { by, last: Math.max(...Object.values(by)) } };
  return known.columns;
}

/**
 * Of `show servers state BACKEND`, as HAProxy reads them at its next start: the header, and the rows of servers that are
 * down although nobody has taken them out of service, and of those that are simply up: one that has no row is taken down
 * by its first failed check. A row carries the address over, too: of a server that was moved away from the address in
 * its name there is none; and a weight that it was told: of such a server that is up neither. That one drains is not
 * carried over, which would stay until somebody ends it: its weight in the file says so.
 */
export function keptRows(text: string): { readonly header: string; readonly rows: readonly string[] } {
  if (text.startsWith("Can't find backend")) return { header: '', rows: [] };
  const rows = new ServerRows(text);
  const kept: string[] = [];
  while (rows.next()) {
    const isDown = rows.operational === 'down' && rows.state !== 'maint';
    const isUp = rows.operational === 'up' && rows.isAsConfigured;
    if ((isDown || isUp) && rows.isAtHome) kept.push(rows.state === 'drain' ? rows.undrained : rows.row);
  }
  return { header: rows.header, rows: kept };
}
