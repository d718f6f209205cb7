// The condition SupportedVersion of a GatewayClass: whether the cluster's definitions of the Gateway API are of the version
// that the agent is made for. With others it does what it can, so that the class is accepted all the same. Pure.

import { quote } from '../../base/quote.ts';
import type { StatusCondition } from '../../model/object-status.ts';
import { isFalse, isTrue } from './conditions.ts';

/** Its patches change no field. */
const SUPPORTED = 'v1.6';
const OF_SUPPORTED = /^v1\.6\.\d{1,4}$/;

/** By the name of the definition; '' for one without a version. */
export function supportedVersion(versions: Readonly<Record<string, string>>): StatusCondition {
  const names = Object.keys(versions);
  const others = names.filter((name) => !OF_SUPPORTED.test(versions[name] ?? ''));
  if (others.length === 0)
    return isTrue(
      'SupportedVersion',
      'SupportedVersion',
      `The definitions of Gateway API are of ${SUPPORTED}`,
    );
  const byVersion = Map.groupBy(others, (name) => versions[name] ?? '');
  const found = Array.from(byVersion, ([version, of]) => {
    const kinds = of.map((name) => name.split('.', 1)[0]).join(', ');
    return `${version === '' ? 'without a version' : quote(version)} (${kinds})`;
  });
  const message = `Definitions of Gateway API are ${found.join('; ')}, and ${SUPPORTED} is supported: what they lack cannot be asked for, the rest is served`;
  return isFalse('SupportedVersion', 'UnsupportedVersion', message);
}
