// Decides how far keepalived authenticates advertisements, and with which keys. Two hosts understand each other while their
// levels differ by one at most, so that each takes single steps, by what the other reports to have. Pure.

import type { AdvertKey } from './advert-key.ts';

/** `off`: as without a key. `receive`: checks what is signed, signs nothing. `sign`: signs, and takes what is not signed. */
export const AUTH_LEVELS = ['off', 'receive', 'sign', 'enforce'] as const;
export type AuthLevel = (typeof AUTH_LEVELS)[number];

/** What a keepalived has. */
export interface AuthState {
  readonly level: AuthLevel;
  /** All that it accepts; empty if off. */
  readonly keys: readonly AdvertKey[];
  /** The name of the one that it signs with; '' if off. */
  readonly active: string;
}

/** What the other host reports of its keepalived, and how far it would go. */
export interface PeerAuth {
  readonly level: AuthLevel;
  readonly wants: AuthLevel;
  /** The names of the keys that it accepts. */
  readonly keys: readonly string[];
  readonly active: string;
}

export const noAuth: AuthState = { level: 'off', keys: [], active: '' };

/**
 * The next state. `now`: undefined if keepalived has never run here. `key`: that of the settings, undefined if there is none or
 * this keepalived cannot use it. Without a report of the peer a level stays.
 */
export function nextAuth(
  now: AuthState | undefined,
  key: AdvertKey | undefined,
  peer: PeerAuth | undefined,
): AuthState {
  if (now === undefined)
    return key === undefined ? noAuth : { level: 'receive', keys: [key], active: key.name };
  const keys = keysOf(now, key, peer);
  const active = activeOf(now, keys, key, peer);
  const level = AUTH_LEVELS[levelOf({ ...now, keys, active }, key, peer)] ?? 'off';
  return level === 'off' ? noAuth : { level, keys, active };
}

/** A former key stays while a host signs with it. Of two keys with the same id the former one stays. */
function keysOf(
  { keys, active }: AuthState,
  key: AdvertKey | undefined,
  peer: PeerAuth | undefined,
): readonly AdvertKey[] {
  const isUsed = ({ name }: AdvertKey): boolean =>
    key === undefined ||
    name === key.name ||
    peer === undefined ||
    peer.active === name ||
    (active === name && !peer.keys.includes(key.name));
  const kept = keys.filter(isUsed);
  const isNew = key !== undefined && kept.every(({ name, id }) => name !== key.name && id !== key.id);
  return isNew ? [...kept, key] : kept;
}

/** The newest key that both hosts accept. */
function activeOf(
  { active }: AuthState,
  keys: readonly AdvertKey[],
  key: AdvertKey | undefined,
  peer: PeerAuth | undefined,
): string {
  const isHere = (name: string): boolean => keys.some((each) => each.name === name);
  if (key !== undefined && isHere(key.name) && peer?.keys.includes(key.name)) return key.name;
  if (isHere(active)) return active;
  return keys.at(-1)?.name ?? '';
}

function levelOf(
  { level, keys, active }: AuthState,
  key: AdvertKey | undefined,
  peer: PeerAuth | undefined,
): number {
  const here = AUTH_LEVELS.indexOf(level);
  if (peer === undefined) return here === 0 && key !== undefined ? 1 : here;
  const there = AUTH_LEVELS.indexOf(peer.level);
  const wanted = key === undefined ? 0 : AUTH_LEVELS.indexOf(peer.wants);
  if (wanted < here) {
    // One that only checks what is signed hinders no host.
    const least = key === undefined ? 0 : 1;
    return here > least && there <= here ? here - 1 : here;
  }
  if (wanted === here && (here > 0 || key === undefined)) return here;
  const next = here + 1;
  if (next > 3 || there < here) return key !== undefined && here === 0 ? 1 : here;
  const accepts = next < 2 || peer.keys.includes(active);
  const isAccepted = next < 3 || keys.some(({ name }) => name === peer.active);
  return accepts && isAccepted ? next : here;
}

/** Why advertisements are not authenticated as the settings want it, as half a sentence; '' if they are. */
export function whyNotEnforced(
  { level, keys, active }: AuthState,
  key: AdvertKey | undefined,
  peer: PeerAuth | undefined,
): string {
  if (key === undefined) return '';
  if (keys.every(({ name }) => name !== key.name))
    return 'another key must be made: this one has the same number as the former one';
  if (level === 'enforce' && active === key.name && keys.length === 1) return '';
  if (peer === undefined) return 'the peer is not heard';
  if (peer.wants === 'off') return 'the peer has no key that it can use';
  if (!peer.keys.includes(key.name)) return 'the peer does not have this key yet';
  return 'both hosts are about to';
}
