// Reads `show servers state`: the state and weight that each server was given, and what its checks found. Columns are
// found by the header's names. Pure. An answer that is something else throws RUNTIME_REPLY with its text.

import { parseAddress } from '../../base/ip.ts';
import { quote } from '../../base/quote.ts';
import { unreadable } from './readings.ts';

export interface ServerState {
  readonly backend: string;
  readonly server: string;
  readonly id: number;
  /** '' while HAProxy has none, such as for a name that does not resolve. */
  readonly address: string;
  readonly port: number;
  /** The weight in force, 0 to 256. */
  readonly weight: number;
  /** The weight in the file. */
  readonly initialWeight: number;
  /** The state that it was given. */
  readonly state: 'ready' | 'drain' | 'maint';
  /** It still has the state that the file gave it. */
  readonly hasInitialState: boolean;
  /** The state by its checks. */
  readonly operational: 'down' | 'starting' | 'up' | 'stopping';
  /** `off`: the check is not enabled; `paused`: the server is in maintenance. */
  readonly check: 'none' | 'off' | 'paused' | 'on';
  /** The last check's result: HCHK_STATUS_* of HAProxy's source. */
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

type Column = (typeof COLUMNS)[number];
/** A row's fields, and the position of each column. */
interface Row {
  readonly fields: readonly string[];
  readonly positions: Readonly<Record<Column, number>>;
}

/**
 * Parses `show servers state [BACKEND]`. A generator, so that the caller can pause between two rows of a text of megabytes.
 * No rows if HAProxy does not have the backend.
 */
export function* parseServersState(text: string): Generator<ServerState, void, void> {
  for (const row of rowsOf(text)) yield serverState(row);
}

/** The server's name is its address and port, as Headgate names servers. */
export function isAtHome({ server, address, port }: ServerState): boolean {
  return server === `${address}:${port}` || server === `${parseAddress(address)?.address}:${port}`;
}

/**
 * Parses `show servers state BACKEND` for HAProxy's next start: the header, and the rows of servers that their checks have
 * taken down, and of servers that are up, so that one failed check does not take these down. A row also carries the
 * address and the weight over, so servers with another address than in their name, and servers that are up with another
 * weight or state than in the file, are left out. Draining is not carried over: it would outlast its weight in the file.
 */
export function keptRows(text: string): { readonly header: string; readonly rows: readonly string[] } {
  const kept: string[] = [];
  let header = '';
  for (const row of rowsOf(text)) {
    header = row.header;
    const server = serverState(row);
    const isDown = server.operational === 'down' && server.state !== 'maint';
    const isAsInFile = server.hasInitialState && server.weight === server.initialWeight;
    const isUp = server.operational === 'up' && isAsInFile;
    if ((isDown || isUp) && isAtHome(server)) kept.push(server.state === 'drain' ? undrained(row) : row.text);
  }
  return { header, rows: kept };
}

/** The row without draining and with the file's weight. */
function undrained({ fields, positions: { srv_admin_state, srv_uweight, srv_iweight } }: Row): string {
  return fields
    .with(srv_admin_state, '0')
    .with(srv_uweight, fields[srv_iweight] ?? '')
    .join(' ');
}

function* rowsOf(text: string): Generator<Row & { readonly header: string; readonly text: string }> {
  if (text.startsWith("Can't find backend")) return;
  const [version, header = '', ...lines] = text.split('\n');
  if (version !== '1' || header === '') throw unreadable('servers state', text);
  const positions = positionsIn(header);
  for (const line of lines) if (line !== '') yield { header, text: line, fields: line.split(' '), positions };
}

function serverState(row: Row): ServerState {
  const admin = integer(row, 'srv_admin_state');
  const address = field(row, 'srv_addr');
  return {
    backend: field(row, 'be_name'),
    server: field(row, 'srv_name'),
    id: integer(row, 'srv_id'),
    address: address === '-' ? '' : address,
    port: integer(row, 'srv_port'),
    weight: integer(row, 'srv_uweight'),
    initialWeight: integer(row, 'srv_iweight'),
    state: (admin & MAINT) !== 0 ? 'maint' : (admin & DRAIN) === 0 ? 'ready' : 'drain',
    hasInitialState: admin === 0,
    operational: OPERATIONAL[integer(row, 'srv_op_state')] ?? 'down',
    check: checkOf(integer(row, 'srv_check_state')),
    checkStatus: integer(row, 'srv_check_status'),
  };
}

function checkOf(bits: number): ServerState['check'] {
  if ((bits & CHECK_CONFIGURED) === 0) return 'none';
  if ((bits & CHECK_ENABLED) === 0) return 'off';
  return (bits & CHECK_PAUSED) === 0 ? 'on' : 'paused';
}

function field({ fields, positions }: Row, column: Column): string {
  const value = fields[positions[column]];
  if (value === undefined) throw unreadable('servers state', fields.join(' '), 'too few fields');
  return value;
}

function integer(row: Row, column: Column): number {
  const value = field(row, column);
  if (/^-?\d{1,15}$/.test(value)) return Number(value);
  throw unreadable('servers state', row.fields.join(' '), `${quote(value)} is not a number`);
}

/** The last header: all answers of one HAProxy have the same. */
let known: { readonly header: string; readonly positions: Row['positions'] } | undefined;

function positionsIn(header: string): Row['positions'] {
  if (known?.header === header) return known.positions;
  const names = header.replace(/^# /, '').split(' ');
  const positions = COLUMNS.map((name) => {
    const at = names.indexOf(name);
    if (at === -1) throw unreadable('servers state', names.join(' '), `no column "${name}"`);
    return [name, at] as const;
  });
  known = { header, positions: Object.fromEntries(positions) as Row['positions'] };
  return known.positions;
}
