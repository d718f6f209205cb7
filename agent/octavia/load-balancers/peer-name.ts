// The name by which HAProxy knows itself among the peers of the controller's text. Pure.

import { createHash } from 'node:crypto';

/** As octavia.common.utils.base64_sha1_string(), without the padding. */
export function peerName(amphoraId: string): string {
  const digest = createHash('sha1').update(amphoraId).digest('base64');
  return digest.replaceAll('+', '_').replaceAll('/', '-').replace(/^-/, 'x').replace(/=+$/, '');
}
