// What `headgate check` says of the cluster: does the API server answer, and may this account read and write what the
// agent needs? Asks for one object of each kind, as the agent will, and for its rights, and writes nothing.

import { HeadgateError, messageOf } from '../base/errors.ts';
import { refusalText } from '../kubernetes/api/api-answer.ts';
import type { ApiClient } from '../kubernetes/api/client.ts';
import { KINDS, resourcesOf } from '../kubernetes/api/reflected-kinds.ts';
import { cannot, resourceRequest } from '../kubernetes/api/resource-client.ts';
import { isAllowed, neededRights, rightRequest, rightWords } from '../kubernetes/api/rights.ts';
import { LEASE } from '../kubernetes/writers/lease.ts';
import type { Settings } from '../settings/settings.ts';
import { apiClient } from '../sources/cluster-api.ts';
import type { Finding } from './finding.ts';

const what = 'API server';
/** Milliseconds for each answer. */
const TIMEOUT = 5_000;

/** Nothing where the settings name no cluster. Errors: SETTINGS_INVALID. */
export async function checkApi(settings: Settings): Promise<readonly Finding[]> {
  const client = apiClient(settings);
  if (client === undefined) return [];
  const { namespaces, serviceSelector } = settings;
  const resources = KINDS.flatMap((kind) => resourcesOf(kind, namespaces, serviceSelector));
  const [listed, lacking] = [new Set<string>(), new Set<string>()];
  const faults: string[] = [];
  try {
    for (const resource of resources) {
      const response = await client.request(resourceRequest(resource, { limit: '1' }, TIMEOUT));
      if (response.status === 200) listed.add(resource.plural);
      else if (response.status === 404 && resource.isOptional) lacking.add(resource.plural);
      else faults.push(`${cannot('list', resource)}: ${refusalText(response)}${adviceFor(response.status)}`);
      if (response.status === 401) break;
    }
    if (faults.length === 0) faults.push(...(await rightsMissing(client, settings, lacking)));
  } catch (error) {
    if (!(error instanceof HeadgateError)) throw error;
    faults.push(messageOf(error));
  } finally {
    client.close();
  }
  if (faults.length > 0) return faults.map((detail) => ({ what, ok: false, detail }));
  const without = lacking.size === 0 ? '' : `; it does not know ${words(lacking)} (deploy/crds)`;
  return [{ what, ok: true, detail: `${words(listed)} can be listed${without}` }];
}

/** Nothing where the API server does not say. */
async function rightsMissing(
  client: ApiClient,
  { namespaces, leaseNamespace }: Settings,
  lacking: ReadonlySet<string>,
): Promise<readonly string[]> {
  const lease = { namespace: leaseNamespace, name: LEASE };
  const needed = neededRights({ namespaces, lease, hasPools: lacking.size === 0 });
  const answers = await Promise.all(needed.map((right) => client.request(rightRequest(right, TIMEOUT))));
  const missing = needed.filter((_, index) => isAllowed(answers[index]?.body) === false);
  if (missing.length === 0) return [];
  return [`Its account may not ${missing.map(rightWords).join(', ')}${adviceFor(403)}`];
}

function adviceFor(status: number): string {
  if (status === 401) return ': correct the credentials';
  return status === 403 ? ': apply deploy/rbac.yaml' : '';
}

function words(names: ReadonlySet<string>): string {
  return [...names].join(', ');
}
