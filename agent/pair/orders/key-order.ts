// Carries out `headgate vrrp-key`: VRRP reads its key again, and both hosts have some seconds to take it into use.

import { type Clock, passed } from '../../base/clock.ts';

export interface KeyOutcome {
  readonly ok: boolean;
  readonly message: string;
}

/** VRRP of this host, as far as the order needs it. */
export interface KeyedVrrp {
  renewKey(): Promise<void>;
  readonly auth: { status(): { readonly level: string; readonly key: string; readonly why: string } };
}

const PATIENCE_MS = 10_000;
const POLL_MS = 200;

export async function takeKey(
  vrrp: KeyedVrrp | undefined,
  hasKey: boolean,
  clock: Clock,
): Promise<KeyOutcome> {
  if (vrrp === undefined) return { ok: false, message: 'This host has no VRRP' };
  if (!hasKey) return { ok: false, message: 'The setting vrrpKey names no file' };
  await vrrp.renewKey();
  const isDone = (): boolean => {
    const { level, why } = vrrp.auth.status();
    return level === 'enforce' && why === '';
  };
  for (const until = clock.monotonic() + PATIENCE_MS; !isDone() && clock.monotonic() < until; )
    await passed(clock, POLL_MS);
  const { level, key, why } = vrrp.auth.status();
  const ok = isDone();
  const message = ok
    ? `Both hosts use only key ${key}`
    : `Not only the key of the file is in use (${level}${key === '' ? '' : `, key ${key}`}): ${why}`;
  return { ok, message };
}
