// An amphora serves what Octavia's controller says: a source of objects, or VIPs of a pair, would be without effect. Pure.

import { HeadgateError } from '../base/errors.ts';
import type { Settings } from './settings.ts';

/** Errors: SETTINGS_INVALID. */
export function checkAmphora(settings: Settings): void {
  if (settings.amphora === '') return;
  const { manifests, kubeconfig, inCluster, vrrp, pairPeer } = settings;
  const others = Object.entries({
    manifests: manifests.length > 0,
    kubeconfig: kubeconfig !== '',
    inCluster,
    vrrp: vrrp !== undefined,
    pairPeer: pairPeer !== '',
  }).flatMap(([name, isSet]) => (isSet ? [name] : []));
  if (others.length === 0) return;
  const message = `Cannot use "amphora" together with "${others.join('", "')}": Octavia's controller alone says what an amphora serves`;
  throw new HeadgateError('SETTINGS_INVALID', message, { retry: 'never' });
}
