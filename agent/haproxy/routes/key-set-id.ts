// The name of a set of public keys, for rows of maps and for HAProxy's file. Pure.

import { digest } from './encode.ts';

/** `name`: `configmap default/keys`; '' if there are none, which no set has for its name. */
export function keySetId(name: string): string {
  return name === '' ? 'none' : `t${digest(name, 20)}`;
}
