// What checks have found, for the next worker: the rows of `show servers state` with nothing but health, because a row also
// brings weight, maintenance and address, which must be those of the text. Pure.

import { parseAddress } from '../base/ip.ts';
import { parseServersState } from '../haproxy/socket/servers-state.ts';
import type { PushedText, Section } from './text/pushed-text.ts';

/** A file without rows: the version of the format. */
export const NO_HEALTH = '1\n';

/** `answer`: to `show servers state`; `next`: the text that the next worker boots. Errors: RUNTIME_REPLY. */
export function healthRows(answer: string, running: PushedText, next: PushedText): string {
  const [, header = '', ...rows] = answer.split('\n');
  const names = header.replace(/^# /, '').split(' ');
  const places = ['srv_admin_state', 'srv_uweight', 'srv_iweight'].map((name) => names.indexOf(name));
  const kept: string[] = [];
  let at = -1;
  for (const { backend, server, address, port, state } of parseServersState(answer)) {
    at++;
    const section = next.sections.get(`backend ${backend}`);
    const line = section?.servers.get(server);
    if (section === undefined || line === undefined || state !== 'ready' || line.isDisabled) continue;
    if (!line.words.includes('check') || line.fault !== '') continue;
    if (port !== line.port || parseAddress(address)?.address !== parseAddress(line.address)?.address)
      continue;
    if (monitorOf(section) !== monitorOf(running.sections.get(`backend ${backend}`))) continue;
    const fields = rows[at]?.split(' ') ?? [];
    const [admin = -1, weight = -1, initialWeight = -1] = places;
    fields[admin] = '0';
    fields[weight] = String(line.weight);
    fields[initialWeight] = String(line.weight);
    kept.push(fields.join(' '));
  }
  return kept.length === 0 ? NO_HEALTH : [NO_HEALTH + header, ...kept, ''].join('\n');
}

/** Results of another monitor do not count. */
function monitorOf(section: Section | undefined): string {
  const lines = section?.lines.filter((line) =>
    /^(?:option (?:httpchk|external-check|ssl-hello-chk)|http-check|external-check|timeout check)/.test(line),
  );
  return lines?.join('\n') ?? '';
}
