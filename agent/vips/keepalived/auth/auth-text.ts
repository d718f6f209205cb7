// The part of keepalived.conf that authenticates advertisements: its values for the template, and back from a text of the agent,
// from which the next agent continues. Pure.

import { type AdvertKey, advertKey } from './advert-key.ts';
import { type AuthLevel, type AuthState, noAuth } from './auth-steps.ts';

const MODES: Readonly<Record<Exclude<AuthLevel, 'off'>, string>> = {
  receive: 'receive-only',
  sign: 'permissive',
  enforce: 'enforce',
};

/** For the template; empty if nothing is authenticated. */
export function authValues({ level, keys, active }: AuthState) {
  if (level === 'off') return [];
  const sorted = [...keys].sort((a, b) => a.id - b.id);
  const values = {
    keys: sorted.map(({ id, hex }) => ({ id, hex })),
    active: keys.find(({ name }) => name === active)?.id ?? 0,
    mode: MODES[level],
  };
  return [values];
}

/** What a text of the agent has. */
export function authIn(text: string): AuthState {
  const [, mode] = /^ {4}mode (\S+)$/m.exec(text) ?? [];
  const [level] = Object.entries(MODES).find(([, word]) => word === mode) ?? [];
  if (level === undefined) return noAuth;
  const keys = new Map<number, AdvertKey>();
  for (const [, id = '', hex = ''] of text.matchAll(/^ {4}key (\d+) hex:([0-9a-f]+)$/gm))
    keys.set(Number(id), advertKey(hex));
  const [, active = ''] = /^ {4}active_key (\d+)$/m.exec(text) ?? [];
  return {
    level: level as AuthLevel,
    keys: [...keys.values()],
    active: keys.get(Number(active))?.name ?? '',
  };
}
