// An amphora serves what Octavia's controller says: a source of objects, or VIPs of a pair, would be without effect. Pure.

import { HeadgateError } from '../base/errors.ts';
import type { Settings } from './settings.ts';

/** Errors: SETTINGS_INVALID. */
export function checkAmphora(settings: Settings): void {
  if (settings.amphora === '') return;
  const { manifests, kubeconfig, inCluster, vrrp, bgp, pairPeer, runtimeDir } = settings;
  const others = Object.entries({
    manifests: manifests.length > 0,
    kubeconfig: kubeconfig !== '',
    inCluster,
    vrrp: vrrp !== undefined,
    bgp: bgp !== undefined,
    pairPeer: pairPeer !== '',
  }).flatMap(([name, isSet]) => (isSet ? [name] : []));
  if (others.length > 0)
    throw invalid(
      `Cannot use "amphora" together with "${others.join('", "')}": Octavia's controller alone says what an amphora serves`,
    );
  if (Buffer.byteLength(runtimeDir) > MAX_RUNTIME_DIR)
    throw invalid(
      `Cannot use the runtimeDir "${runtimeDir}" for an amphora: its path may have at most ${MAX_RUNTIME_DIR} bytes, because a folder for each load balancer with its sockets is in it`,
    );
}

/** HAProxy takes 97 bytes for the path of a socket: `/octavia/UUID/exporter.sock` has 59. */
const MAX_RUNTIME_DIR = 97 - 59;

function invalid(message: string): HeadgateError {
  return new HeadgateError('SETTINGS_INVALID', message, { retry: 'never' });
}
