// What it takes to get from the file that keepalived has to the one it shall have. Pure.

import { frameOf, heldIn } from './config/config-text.ts';

export type KeepalivedPlan =
  | { readonly kind: 'none' }
  /** Only VIPs come and go; no advertisement changes. */
  | { readonly kind: 'vips'; readonly added: readonly string[]; readonly removed: readonly string[] }
  /** There was no file, or the settings have changed. */
  | { readonly kind: 'settings' };

/** Both are whole texts of ours; undefined where there is none yet. */
export function planKeepalived(old: string | undefined, wanted: string): KeepalivedPlan {
  if (old === wanted) return { kind: 'none' };
  if (old === undefined || frameOf(old) !== frameOf(wanted)) return { kind: 'settings' };
  const [before, after] = [old, wanted].map(heldIn) as [ReadonlySet<string>, ReadonlySet<string>];
  return {
    kind: 'vips',
    added: [...after].filter((address) => !before.has(address)),
    removed: [...before].filter((address) => !after.has(address)),
  };
}
