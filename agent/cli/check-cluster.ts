// What `headgate check` finds about the API server: from it one object of each kind, as the agent will read them, and the
// rights of the agent's account. Changes nothing.

import { HeadgateError, messageOf } from '../base/errors.ts';
import { parseJson } from '../base/parse-json.ts';
import { isMapping } from '../base/validate.ts';
import { bad, type Finding, good } from '../host/finding.ts';
import { refusalText } from '../kubernetes/api/api-answer.ts';
import type { ApiClient } from '../kubernetes/api/client.ts';
import {
  classKindOf,
  isOwnClass,
  kindsOf,
  type ReflectedKind,
  readAfter,
  resourcesOf,
} from '../kubernetes/api/reflected-kinds.ts';
import { cannot, ResourceClient, resourceRequest } from '../kubernetes/api/resource-client.ts';
import {
  certificateRights,
  isAllowed,
  neededRights,
  type Right,
  rightRequest,
  rightWords,
} from '../kubernetes/api/rights.ts';
import { KINDS } from '../kubernetes/kinds.ts';
import { parseObject } from '../kubernetes/parse-object.ts';
import { LEASE } from '../kubernetes/writers/lease.ts';
import type { Settings } from '../settings/settings.ts';
import { apiClient } from '../sources/cluster-api.ts';
import { isOfAnotherController } from '../translate/service/service-vips.ts';
import { egressFindings } from './check-egress.ts';

/** For each request to the API server. */
const API_TIMEOUT_MS = 5_000;
const EGRESS = 'headgate.io/egress';
/** An agent's class may stand behind those of others. */
const MAX_CLASSES = '500';

/** None if the settings name no cluster. Errors: SETTINGS_INVALID. */
export async function clusterFindings(settings: Settings): Promise<readonly Finding[]> {
  const client = apiClient(settings);
  if (client === undefined) return [];
  try {
    const { listed, lacking, classes, faults } = await listKinds(client, settings);
    if (faults.length === 0) faults.push(...(await missingRights(client, settings, listed, classes)));
    if (faults.length > 0) return faults.map((fault) => bad('API server', fault));
    const without = lacking.length === 0 ? '' : `; it does not have ${lacking.join(', ')}`;
    const plurals = [...listed].map((kind) => KINDS[kind].plural).join(', ');
    return [
      good('API server', `${plurals} can be listed${without}`),
      await certificates(client, settings.secretNamespaces),
      ...(await ofOtherControllers(client, settings)),
      ...(await egressFindings(client, await withEgress(client, settings), API_TIMEOUT_MS)),
    ];
  } catch (error) {
    if (!(error instanceof HeadgateError)) throw error;
    return [bad('API server', messageOf(error))];
  } finally {
    client.close();
  }
}

interface ListedKinds {
  readonly listed: ReadonlySet<ReflectedKind>;
  /** Plurals of optional kinds that the API server does not have. */
  readonly lacking: readonly string[];
  /** Kinds of class of which an object names this agent as its controller. */
  readonly classes: ReadonlySet<string>;
  readonly faults: string[];
}

/** As the agent will: those of the Gateway API and of Ingress only after their classes. */
async function listKinds(client: ApiClient, settings: Settings): Promise<ListedKinds> {
  const { namespaces, serviceSelector } = settings;
  const [listed, lacking, classes] = [new Set<ReflectedKind>(), new Set<string>(), new Set<string>()];
  const faults: string[] = [];
  for (const kind of kindsOf(settings)) {
    const after = readAfter(kind);
    if (after !== undefined && !classes.has(after)) continue;
    for (const resource of resourcesOf(kind, namespaces, serviceSelector)) {
      const limit = after === undefined && classKindOf(kind) !== undefined ? MAX_CLASSES : '1';
      const response = await client.request(resourceRequest(resource, { limit }, API_TIMEOUT_MS));
      const isUnknown = response.status === 404 && resource.isOptional;
      if (response.status === 200) listed.add(kind);
      else if (isUnknown && resource.orVersion === undefined) lacking.add(resource.plural);
      else if (!isUnknown)
        faults.push(
          `${cannot('list', resource)}: ${refusalText(response)}${adviceFor(response.status, kind)}`,
        );
      if (response.status === 401) return { listed, lacking: [...lacking], classes, faults };
      if (parseObject(response.body, '').objects.some(isOwnClass)) classes.add(kind);
    }
  }
  return { listed, lacking: [...lacking], classes, faults };
}

/** None if the API server does not answer reviews of access. */
async function missingRights(
  client: ApiClient,
  { namespaces, leaseNamespace }: Settings,
  kinds: ReadonlySet<ReflectedKind>,
  classes: ReadonlySet<string>,
): Promise<readonly string[]> {
  const lease = { namespace: leaseNamespace, name: LEASE };
  const missing = await notAllowed(client, neededRights({ namespaces, lease, kinds, classes }));
  if (missing.length === 0) return [];
  return [`Its account may not ${missing.map(rightWords).join(', ')}${adviceFor(403)}`];
}

/** Without `secretNamespaces` only the objects decide which namespaces are needed. */
async function certificates(client: ApiClient, namespaces: readonly string[]): Promise<Finding> {
  const what = 'certificates';
  const places = namespaces.length === 0 ? [''] : namespaces;
  const missing = await notAllowed(client, places.flatMap(certificateRights));
  const scope = namespaces.length === 0 ? 'all namespaces' : `namespaces ${namespaces.join(', ')}`;
  if (missing.length === 0) return good(what, `its account may read Secrets of ${scope}`);
  if (namespaces.length > 0)
    return bad(what, `its account may not ${missing.map(rightWords).join(', ')}: apply deploy/tls/`);
  return good(
    what,
    'its account may not read Secrets of all namespaces: those with TLS need deploy/tls/namespace.yaml',
  );
}

/** None if only Services that name the agent's class are served. */
async function ofOtherControllers(client: ApiClient, settings: Settings): Promise<readonly Finding[]> {
  if (!settings.handleUnclassed) return [];
  let count = 0;
  let first = '';
  const onItem = (text: string): void => {
    const [service] = parseObject({ apiVersion: 'v1', kind: 'Service', ...asMapping(text) }, '').objects;
    if (service?.kind !== 'Service' || service.type !== 'LoadBalancer' || !isOfAnotherController(service))
      return;
    count++;
    first ||= [service.key, ...service.statusIPs].join(' with ');
  };
  const restart = (): void => {
    count = 0;
  };
  for (const resource of resourcesOf('Service', settings.namespaces, settings.serviceSelector))
    await new ResourceClient(client, resource).list({}, API_TIMEOUT_MS, onItem, restart);
  const what = 'Services of another controller';
  if (count === 0)
    return [good(what, 'none: no Service has an address that neither a pool nor its author gave')];
  return [
    good(
      what,
      `${count}, such as ${first}: each is left alone, unless an AddressPool has its address; "handleUnclassed: false" leaves alone all Services without the class "${settings.loadBalancerClass}"`,
    ),
  ];
}

/** The namespaces with Services that ask for egress, sorted. */
async function withEgress(client: ApiClient, settings: Settings): Promise<readonly string[]> {
  const found = new Set<string>();
  const onItem = (text: string): void => {
    if (!text.includes(EGRESS)) return;
    const [service] = parseObject({ apiVersion: 'v1', kind: 'Service', ...asMapping(text) }, '').objects;
    if (service?.kind === 'Service' && service.annotations[EGRESS] === 'true') found.add(service.namespace);
  };
  for (const resource of resourcesOf('Service', settings.namespaces, settings.serviceSelector))
    await new ResourceClient(client, resource).list({}, API_TIMEOUT_MS, onItem, () => found.clear());
  return [...found].sort();
}

function asMapping(text: string): object {
  const json = parseJson(text);
  return isMapping(json) ? json : {};
}

async function notAllowed(client: ApiClient, needed: readonly Right[]): Promise<readonly Right[]> {
  const answers = await Promise.all(
    needed.map((right) => client.request(rightRequest(right, API_TIMEOUT_MS))),
  );
  return needed.filter((_, index) => isAllowed(answers[index]?.body) === false);
}

function adviceFor(status: number, kind?: ReflectedKind): string {
  if (status === 401) return ': correct the credentials';
  const rights = kind === 'Pod' || kind === 'NetworkPolicy' ? 'policies' : 'kubernetes';
  return status === 403 ? `: apply deploy/${rights}/rbac.yaml` : '';
}
