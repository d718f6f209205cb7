// The address of the dashboard that the setting `dashboardUrl` names, for the page as a whole or for one load balancer. Pure.

import type { OwnerKey } from '../../model/load-balancer.ts';
import { ownerOf } from '../../model/names.ts';

const PLACEHOLDER = /\{(namespace|name)\}/;
const PLACEHOLDERS = new RegExp(PLACEHOLDER, 'g');

/** Without the parameters that have a placeholder. '' for ''. */
export function dashboardOf(url: string): string {
  const [, place = '', query = ''] = /^([^?]*)\??(.*)$/.exec(url) ?? [];
  const general = query.split('&').filter((each) => each !== '' && !PLACEHOLDER.test(each));
  return general.length === 0 ? place : `${place}?${general.join('&')}`;
}

/** With the load balancer's values of the metrics' labels `namespace` and `service`; '' if the URL has no placeholder. */
export function dashboardOfOne(url: string, key: OwnerKey): string {
  if (!PLACEHOLDER.test(url)) return '';
  const { namespace, name } = ownerOf(key);
  const values: Readonly<Record<string, string>> = { namespace, name };
  return url.replaceAll(PLACEHOLDERS, (_, which: string) => encodeURIComponent(values[which] ?? ''));
}
